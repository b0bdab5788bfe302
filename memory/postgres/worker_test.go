package postgres

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"synthbot/core"
	"synthbot/core/coretest"
	"synthbot/memory/kv"
)

// short is a lease that tests can wait for.
const short = 2 * time.Second

// freeze stops the renewals of a worker, as if its process were stopped.
func freeze(db *DB) {
	db.worker.stop()
	db.worker.running.Wait()
}

func put(db *DB, value string) error {
	return db.Update(func(t kv.Tx) error { return t.Bucket("a").Put([]byte("k"), []byte(value)) })
}

func value(t *testing.T, db *DB) (value string) {
	t.Helper()
	err := catchFault(func() error {
		v, err := db.Begin(t.Context())
		if err != nil {
			return err
		}
		defer v.End()
		value = string(v.Bucket("a").Get([]byte("k")))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return value
}

// started opens a database and stores "old".
func started(t *testing.T, url string, o Options) *DB {
	t.Helper()
	db := openWith(t, url, o)
	if err := errors.Join(db.Update(func(t kv.Tx) error { return t.MakeBucket("a") }), put(db, "old")); err != nil {
		t.Fatal(err)
	}
	return db
}

// awaitAlone waits until other workers were replaced.
func awaitAlone(t *testing.T, db *DB) {
	t.Helper()
	for {
		workers, err := db.Workers(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if len(workers) == 1 {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// TestFence: a worker that stops renewing its lease is replaced at most a second after the lease
// ends. Its later writes are refused, and it is notified once.
func TestFence(t *testing.T) {
	server := coretest.StartPostgres(t)
	fenced := make(chan error, 10)
	former := started(t, server.URL, Options{Lease: short, OnFenced: func(err error) { fenced <- err }})
	freeze(former)
	began := time.Now()
	next := openWith(t, server.URL, Options{Lease: short})
	awaitAlone(t, next)
	if took := time.Since(began); took > short+time.Second {
		t.Errorf("the takeover took %v", took)
	}
	write := func(t kv.Tx) error { return t.Bucket("a").Put([]byte("k"), []byte("late")) }
	if err := former.try(write, false); codeOf(err) != divisionByZero { // stopped after it checked its lease
		t.Errorf("the server accepted the replaced worker's write: %v", err)
	}
	for range 2 {
		if err := put(former, "late"); !errors.Is(err, core.ErrFenced) {
			t.Errorf("the replaced worker's write: unexpected error %v", err)
		}
	}
	if got := value(t, next); got != "old" {
		t.Errorf("unexpected stored value %q", got)
	}
	if err := <-fenced; !errors.Is(err, core.ErrFenced) || len(fenced) > 0 {
		t.Errorf("the worker was notified of %v, and %d times more", err, len(fenced))
	}
	if err := put(next, "new"); err != nil {
		t.Error(err)
	}
}

// takeOver makes the server delete every worker in the transaction that stores next, after it was checked: as if
// another one took over at the moment of its commit.
const takeOver = `
create function bury() returns trigger language plpgsql as 'begin delete from worker; return null; end';
create trigger bury after insert or update on kv execute function bury()`

// TestFenceAfterCommit: a worker that is replaced at the moment of its commit learns of it right
// after.
func TestFenceAfterCommit(t *testing.T) {
	server := coretest.StartPostgres(t)
	former := started(t, server.URL, Options{Lease: short})
	freeze(former)
	conn, err := pgconn.Connect(t.Context(), server.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if _, err := conn.Exec(t.Context(), takeOver).ReadAll(); err != nil {
		t.Fatal(err)
	}
	err = former.Update(func(tx kv.Tx) error {
		tx.Bucket("a").Get([]byte("k"))          // begins the transaction, which checks the worker
		former.worker.renewed.Store(time.Time{}) // as if the lease were long over
		return tx.Bucket("a").Put([]byte("k"), []byte("committed"))
	})
	if !errors.Is(err, core.ErrFenced) {
		t.Errorf("unexpected result of the commit: %v", err)
	}
	if got := value(t, openWith(t, server.URL, Options{Lease: short})); got != "committed" {
		t.Errorf("unexpected stored value %q", got)
	}
}

// TestFenceByRenewal: a worker that writes nothing also learns that it was replaced.
func TestFenceByRenewal(t *testing.T) {
	server := coretest.StartPostgres(t)
	fenced := make(chan error, 1)
	former := started(t, server.URL, Options{Lease: short, OnFenced: func(err error) { fenced <- err }})
	conn, err := pgconn.Connect(t.Context(), server.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if _, err := conn.Exec(t.Context(), "delete from worker").ReadAll(); err != nil {
		t.Fatal(err)
	}
	if err := <-fenced; !errors.Is(err, core.ErrFenced) {
		t.Error(err)
	}
	if err := put(former, "late"); !errors.Is(err, core.ErrFenced) || former.OwnsParts() {
		t.Errorf("unexpected error %v; owns parts: %v", err, former.OwnsParts())
	}
}

// TestRenewalAfterResigning checks that a renewal that the server executes after the worker has ended its lease does
// not bring it back: commands would have to wait until it expires.
func TestRenewalAfterResigning(t *testing.T) {
	db := started(t, coretest.StartPostgres(t).URL, Options{})
	db.resign()
	if _, err := db.renew(t.Context()); !errors.Is(err, core.ErrFenced) {
		t.Errorf("renewal: got %v, want %v", err, core.ErrFenced)
	}
	workers, err := db.Workers(t.Context())
	if err != nil || slices.ContainsFunc(workers, func(w kv.Worker) bool { return w.Lease > 0 }) {
		t.Errorf("got the workers %+v, %v; want none with a lease", workers, err)
	}
}

// TestLateCommit: if a worker stops within a transaction, the next worker waits until the server
// aborts that transaction, which is never stored.
func TestLateCommit(t *testing.T) {
	server := coretest.StartPostgres(t)
	former := started(t, server.URL, Options{Lease: short})
	within, goOn, over := make(chan bool, 10), make(chan bool), make(chan error)
	go func() {
		over <- former.Update(func(t kv.Tx) error {
			t.Bucket("a").Get([]byte("k"))
			within <- true
			<-goOn
			return t.Bucket("a").Put([]byte("k"), []byte("late"))
		})
	}()
	<-within
	freeze(former)
	next := openWith(t, server.URL, Options{Lease: short})
	awaitAlone(t, next)
	close(goOn)
	if err := <-over; !errors.Is(err, core.ErrFenced) {
		t.Errorf("the late commit: unexpected error %v", err)
	}
	if got := value(t, next); got != "old" {
		t.Errorf("unexpected stored value %q", got)
	}
}

// TestCommitInFlight: a new worker waits for a transaction that commits in time, and sees its
// result.
func TestCommitInFlight(t *testing.T) {
	server := coretest.StartPostgres(t)
	former := started(t, server.URL, Options{Lease: short})
	freeze(former)
	time.Sleep(short - short/4)
	within, over := make(chan bool), make(chan error)
	go func() {
		over <- former.try(func(t kv.Tx) error {
			t.Bucket("a").Get([]byte("k"))
			close(within)
			time.Sleep(short * 4 / 10) // longer than the lease, shorter than the server's timeout
			return t.Bucket("a").Put([]byte("k"), []byte("in time"))
		}, false)
	}()
	<-within
	next := openWith(t, server.URL, Options{Lease: short})
	awaitAlone(t, next)
	if err := <-over; err != nil {
		t.Error(err)
	}
	if got := value(t, next); got != "in time" {
		t.Errorf("unexpected stored value %q", got)
	}
}

// TestLapse: a lease that has ended is renewed if no other worker took over.
func TestLapse(t *testing.T) {
	server := coretest.StartPostgres(t)
	db := started(t, server.URL, Options{Lease: short})
	if !db.OwnsParts() {
		t.Error("a new worker does not own its parts")
	}
	freeze(db)
	time.Sleep(short + short/4)
	if db.OwnsParts() {
		t.Error("the worker owns parts after its lease ended")
	}
	if err := put(db, "new"); err != nil || !db.OwnsParts() {
		t.Errorf("unexpected error %v; owns parts: %v", err, db.OwnsParts())
	}
	db.worker.renewed.Store(time.Now().Add(time.Hour)) // as if the clock of this process were wrong
	time.Sleep(short + short/4)
	if err := put(db, "newer"); err != nil {
		t.Error(err)
	}
	if got := value(t, db); got != "newer" {
		t.Errorf("unexpected stored value %q", got)
	}
}

// TestWorkersWaitForGuests: a worker waits while a command writes as a guest. If that takes long,
// it logs the guest's name. It starts as soon as the guest is done.
func TestWorkersWaitForGuests(t *testing.T) {
	server := coretest.StartPostgres(t)
	started(t, server.URL, Options{}).Close()
	guest := openWith(t, server.URL, Options{Worker: "first", JoinOnWrite: true})
	if err := put(guest, "guest"); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	o := Options{Worker: "second", Lease: short, Log: slog.New(slog.NewTextHandler(&log, nil))}
	second, err := Open(t.Context(), server.URL, o)
	if err == nil {
		second.Close()
	}
	for _, want := range []string{`on "first"`, "a command writes", "postgres database"} {
		if !errors.Is(err, core.ErrLocked) || !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("the error %v lacks %q", err, want)
		}
	}
	if n := strings.Count(log.String(), "waiting for a command"); n != 1 {
		t.Errorf("logged %d times:\n%s", n, &log)
	}
	if err := guest.Close(); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	openWith(t, server.URL, Options{})
	if took := time.Since(began); took > short {
		t.Errorf("the next worker waited for %v", took)
	}
}

// TestGuest: a guest can always read. It can write only while there is no worker, and only if there
// was none since it opened the database.
func TestGuest(t *testing.T) {
	server := coretest.StartPostgres(t)
	empty := openWith(t, server.URL, Options{JoinOnWrite: true})
	if v, err := empty.Begin(t.Context()); err != nil || len(v.Buckets()) > 0 {
		t.Errorf("a guest sees %v in an empty database, %v", v.Buckets(), err)
	}
	bot := started(t, server.URL, Options{Worker: "bot"})
	guest := openWith(t, server.URL, Options{JoinOnWrite: true})
	if got := value(t, guest); got != "old" {
		t.Errorf("unexpected value %q for a guest", got)
	}
	if err := put(guest, "guest"); !errors.Is(err, core.ErrLocked) || !strings.Contains(err.Error(), `worker "bot"`) {
		t.Errorf("writing as a guest beside a worker: unexpected error %v", err)
	}
	if err := bot.Close(); err != nil {
		t.Fatal(err)
	}
	if err := put(guest, "guest"); err != nil {
		t.Errorf("writing as the only guest: unexpected error %v", err)
	}
	if err := put(empty, "stale"); !errors.Is(err, core.ErrLocked) {
		t.Errorf("writing beside another guest: unexpected error %v", err)
	}
	if err := guest.Close(); err != nil {
		t.Fatal(err)
	}
	if err := put(empty, "stale"); err == nil || !strings.Contains(err.Error(), "run the command again") {
		t.Errorf("writing as a guest after others: unexpected error %v", err)
	}
}

// TestRoundTrips: checking the lease needs no extra round trip: a transaction that only writes
// takes one, one that reads first takes two.
func TestRoundTrips(t *testing.T) {
	server := coretest.StartPostgres(t)
	db := started(t, server.URL, Options{})
	for name, c := range map[string]struct {
		work func() error
		want int64
	}{
		"write":          {func() error { return put(db, "x") }, 1},
		"read and write": {func() error { return increment(db) }, 2},
	} {
		before := db.Trips()
		if err := c.work(); err != nil {
			t.Fatal(err)
		}
		if n := db.Trips() - before; n != c.want {
			t.Errorf("%s takes %d round trips, want %d", name, n, c.want)
		}
	}
}

// TestProbe: the probe tells an administrator what is wrong with a database and how to fix it.
func TestProbe(t *testing.T) {
	server := coretest.StartPostgres(t)
	conn, err := pgconn.Connect(t.Context(), server.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	do := func(sql string) {
		t.Helper()
		if _, err := conn.Exec(t.Context(), sql).ReadAll(); err != nil {
			t.Fatal(err)
		}
	}
	found := func(url string) string {
		t.Helper()
		all, err := Probe(t.Context(), url)
		if err != nil {
			t.Fatal(err)
		}
		var lines strings.Builder
		for _, f := range all {
			fmt.Fprintf(&lines, "%s: %s | %s\n", f.What, f.Found, f.Fix)
		}
		return lines.String()
	}
	want := func(got string, all ...string) {
		t.Helper()
		for _, one := range all {
			if !strings.Contains(got, one) {
				t.Errorf("the probe lacks %q:\n%s", one, got)
			}
		}
	}
	empty := found(server.URL)
	want(empty, "version 1", "clock: ", "this machine | \n", "rights: tables can be made and used | \n",
		"durability: fsync is off | turn it on", "standby: none", "log: the server does not log values | \n")
	if strings.Contains(empty, "worker") || strings.Contains(empty, "isolation") {
		t.Errorf("unexpected probe without tables:\n%s", empty)
	}
	bot := openWith(t, server.URL, Options{Worker: "bot"})
	want(found(server.URL), "worker: bot runs | \n", "isolation: transactions are serialisable | \n")
	if err := bot.Close(); err != nil {
		t.Fatal(err)
	}
	left, err := conn.Exec(t.Context(), "select k from kv").ReadAll()
	if err != nil || len(left[0].Rows) > 0 {
		t.Errorf("the probe left %d pairs, %v", len(left[0].Rows), err)
	}
	do("alter database postgres set synchronous_commit = off; alter database postgres set log_statement = 'all'; " +
		"create role other login; revoke create on schema public from public")
	worse := found(server.URL)
	want(worse, "worker: none runs", "log: the server logs statements with their values | set log_parameter_max_length = 0")
	other := strings.Replace(server.URL, "bot@", "other@", 1)
	if _, err := Probe(t.Context(), other); err == nil || !strings.Contains(err.Error(), "may not create or use the tables") {
		t.Error(err)
	}
	do("grant select on worker to other")
	want(found(other), "rights: no tables can be made | grant create")
	do("grant create on schema public to other")
	want(found(other), "rights: the tables cannot be used | grant select")
	if _, err := Probe(t.Context(), server.URL+"&dbname=none"); err == nil || !strings.Contains(err.Error(), "create the database") {
		t.Error(err)
	}
}

// TestProbeJudges: the probe judges settings that a test server cannot have.
func TestProbeJudges(t *testing.T) {
	for _, c := range []struct {
		got  core.Finding
		well bool
	}{
		{judgeSafety([]string{"on", "on"}), true},
		{judgeSafety([]string{"remote_apply", "on"}), true},
		{judgeSafety([]string{"off", "on"}), false},
		{judgeSafety([]string{"on", "off"}), false},
		{judgeCopies([]string{"0", "0"}), true},
		{judgeCopies([]string{"2", "0"}), false},
		{judgeCopies([]string{"2", "1"}), true},
		{judgeLog([]string{"ddl", "-1", "-1"}), true},
		{judgeLog([]string{"none", "250", "-1"}), false},
		{judgeLog([]string{"mod", "-1", "-1"}), false},
		{judgeLog([]string{"all", "0", "0"}), true},
	} {
		if c.got.Found == "" || (c.got.Fix == "") != c.well {
			t.Errorf("unexpected verdict %+v", c.got)
		}
	}
}

// TestSilentNetwork: transactions whose packets are lost end after a while, and everything works
// again once the network does.
func TestSilentNetwork(t *testing.T) {
	server := coretest.StartPostgres(t)
	away := make(chan bool, 10)
	db := started(t, server.URL, Options{Lease: short, OnAway: func(is bool) { away <- is }})
	var silent atomic.Bool
	for range maxConnections { // no connection is in use
		db.pool.slots <- struct{}{}
	}
	config := db.pool.config.Load()
	dial := config.DialFunc
	config.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		if silent.Load() {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		conn, err := dial(ctx, network, address)
		return &swallowing{conn, &silent}, err
	}
	db.pool.closeIdle()
	for range maxConnections {
		<-db.pool.slots
	}
	if err := put(db, "before"); err != nil {
		t.Fatal(err)
	}
	silent.Store(true)
	var all sync.WaitGroup
	for range maxConnections + 2 { // leaves no connection for renewals
		all.Go(func() {
			err := catchFault(func() error {
				v, err := db.Begin(context.Background())
				if err != nil {
					return err
				}
				defer v.End()
				v.Bucket("a").Get([]byte("k"))
				return nil
			})
			if !isAway(err) {
				t.Errorf("a view: %v", err)
			}
		})
	}
	if err := put(db, "swallowed"); !isAway(err) {
		t.Errorf("a write: unexpected error %v", err)
	}
	if !<-away {
		t.Error("the database is reported as reachable")
	}
	all.Wait()
	silent.Store(false)
	if <-away {
		t.Error("the database is reported as away again")
	}
	if err := put(db, "after"); err != nil || value(t, db) != "after" {
		t.Errorf("after the outage: unexpected error %v", err)
	}
}

// swallowing is a connection that drops everything while it is silent.
type swallowing struct {
	net.Conn
	silent *atomic.Bool
}

func (s *swallowing) Write(b []byte) (int, error) {
	if s.silent.Load() {
		return len(b), nil
	}
	return s.Conn.Write(b)
}
