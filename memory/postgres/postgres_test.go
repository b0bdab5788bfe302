package postgres

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"synthbot/core"
	"synthbot/core/coretest"
	"synthbot/memory/kv"
)

func open(t *testing.T, url string) *DB {
	t.Helper()
	db := openWith(t, url, Options{})
	if err := db.Update(func(t kv.Tx) error { return t.MakeBucket("a") }); err != nil {
		t.Fatal(err)
	}
	return db
}

func openWith(t *testing.T, url string, o Options) *DB {
	t.Helper()
	db, err := Open(t.Context(), url, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

// increment adds one to the number.
func increment(db *DB) error {
	return db.Update(func(t kv.Tx) error {
		n, _ := strconv.Atoi(string(t.Bucket("a").Get([]byte("n"))))
		return t.Bucket("a").Put([]byte("n"), []byte(strconv.Itoa(n+1)))
	})
}

func number(t *testing.T, db *DB) (n int) {
	t.Helper()
	err := catchFault(func() error {
		v, err := db.Begin(t.Context())
		if err != nil {
			return err
		}
		defer v.End()
		n, err = strconv.Atoi(string(v.Bucket("a").Get([]byte("n"))))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestCrashes: while the server crashes and connections are cut, each increment is counted once and
// no caller sees an error.
func TestCrashes(t *testing.T) {
	server := coretest.StartPostgres(t)
	db := open(t, server.URL)
	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	all.Go(func() {
		for ctx.Err() == nil { // cuts the writing connection at random moments
			conn, err := pgconn.Connect(context.Background(), server.URL)
			if err != nil {
				continue
			}
			const cut = "select pg_terminate_backend(pid) from pg_stat_activity " +
				"where pid <> pg_backend_pid() and datname = 'postgres'"
			_, _ = conn.Exec(context.Background(), cut).ReadAll() // the server may crash
			_ = conn.Close(context.Background())
		}
	})
	counted := 0
	var back sync.WaitGroup
	for round := range 3 {
		if round > 0 {
			back.Wait()
			server.Crash()
			back.Go(server.Start)
		}
		for range 50 {
			if err := increment(db); err != nil {
				t.Fatalf("after %d increments: %v", counted, err)
			}
			counted++
		}
	}
	stop()
	back.Wait()
	all.Wait()
	if n := number(t, db); n != counted {
		t.Errorf("the number is %d, want %d", n, counted)
	}
}

// TestOneUpdateAtATime: an engine runs one update at a time, since one number identifies its
// transaction. Compaction counts as an update.
func TestOneUpdateAtATime(t *testing.T) {
	db := open(t, coretest.StartPostgres(t).URL)
	var inside atomic.Int32
	count := func(tx kv.Tx) error {
		if inside.Add(1) > 1 {
			t.Error("two updates ran at once")
		}
		defer inside.Add(-1)
		n, _ := strconv.Atoi(string(tx.Bucket("a").Get([]byte("n"))))
		time.Sleep(time.Millisecond)
		return tx.Bucket("a").Put([]byte("n"), []byte(strconv.Itoa(n+1)))
	}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 5 {
				_, _, err := db.Compact(t.Context(), count)
				if err := errors.Join(err, db.Update(count)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if n := number(t, db); n != 40 {
		t.Errorf("40 increments were counted as %d", n)
	}
}

// TestTwoEngines: transactions of two processes on the same pair run one after the other, and each
// sees the other's buckets.
func TestTwoEngines(t *testing.T) {
	server := coretest.StartPostgres(t)
	var all sync.WaitGroup
	dbs := []*DB{open(t, server.URL), besides(t, server.URL)}
	for _, db := range dbs {
		all.Go(func() {
			for range 100 {
				if err := increment(db); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if n := number(t, dbs[0]); n != 200 {
		t.Errorf("200 increments were counted as %d", n)
	}
}

// besides opens the database as a second worker, which Open does not allow.
func besides(t *testing.T, url string) *DB {
	t.Helper()
	db := openWith(t, url, Options{JoinOnWrite: true})
	conn, err := pgconn.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	const insert = "insert into worker (name, until) values ('second', now() + interval '1 h') returning id"
	all, err := send(t.Context(), conn, []statement{{sql: insert}})
	if err != nil {
		t.Fatal(err)
	}
	db.worker.id.Store(numberOf(all[0].Rows[0][0]))
	db.worker.renewed.Store(time.Now().Add(time.Hour))
	return db
}

// TestAway: while the server is away, the first transaction fails after a while and later ones at
// once. Views return the cause.
func TestAway(t *testing.T) {
	server := coretest.StartPostgres(t)
	db := open(t, server.URL)
	server.Crash()
	first := time.Now()
	if err := increment(db); !isAway(err) || time.Since(first) < patience {
		t.Errorf("unexpected after %v: %v", time.Since(first), err)
	}
	again := time.Now()
	if err := increment(db); !isAway(err) || time.Since(again) > patience/2 {
		t.Errorf("unexpected after %v: %v", time.Since(again), err)
	}
	err := catchFault(func() error {
		v, err := db.Begin(t.Context())
		if err != nil {
			return err
		}
		defer v.End()
		v.Bucket("a").Get([]byte("n"))
		return nil
	})
	if !isAway(err) {
		t.Errorf("a view: unexpected error %v", err)
	}
	server.Start()
	if err := increment(db); err != nil {
		t.Error(err)
	}
}

// TestOpenErrors: errors of Open name the cause and the fix, but no password.
func TestOpenErrors(t *testing.T) {
	server := coretest.StartPostgres(t)
	conn, err := pgconn.Connect(t.Context(), server.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	const role = "create role guarded login password 'right'; revoke create on schema public from public"
	if _, err := conn.Exec(t.Context(), role).ReadAll(); err != nil {
		t.Fatal(err)
	}
	_, host, _ := strings.Cut(server.URL, "?")
	for url, says := range map[string]string{
		"postgres://guarded:SECRET@/postgres?" + host: "user or password",
		"postgres://guarded:right@/postgres?" + host:  "grant create",
		"postgres://bot:SECRET@/none?" + host:         "create the database",
		"postgres://bot:SECRET@127.0.0.1:1/postgres":  "start it, or correct the URL",
		"postgres://bot:SEC RET@[/postgres":           "is invalid",
		"mysql://bot:SECRET@localhost/x":              "is invalid",
	} {
		db, err := Open(t.Context(), url, Options{})
		if err == nil {
			db.Close()
		}
		text := fmt.Sprint(err)
		if !strings.Contains(text, says) || strings.Contains(text, "SEC") || strings.Contains(text, "right@") {
			t.Errorf("the error must say %q without the password: %s", says, text)
		}
	}
}

// TestPooler: if a pooler switches to a server process that does not know the prepared statements,
// or already knows them, transactions are retried without prepared statements.
func TestPooler(t *testing.T) {
	url := coretest.StartPostgres(t).URL
	for name, do := range map[string]func(*DB) error{
		"write": increment, "view": func(db *DB) error { number(t, db); return nil },
	} {
		for _, forgets := range []bool{true, false} {
			db := open(t, url)
			if err := increment(db); err != nil {
				t.Fatal(err)
			}
			want := number(t, db)
			freeze(db) // renewals would hold a connection
			awaitIdle(db)
			for _, conn := range db.pool.idle {
				if forgets {
					if _, err := conn.Exec(t.Context(), "deallocate all").ReadAll(); err != nil {
						t.Fatal(err)
					}
				} else {
					clear(conn.CustomData())
				}
			}
			if err := do(db); err != nil {
				t.Errorf("%s: unexpected error %v", name, err)
			}
			if name == "write" {
				want++
			}
			if got := number(t, db); got != want || !db.unprepared.Load() {
				t.Errorf("%s: got %d, want %d; unprepared: %v", name, got, want, db.unprepared.Load())
			}
			if err := db.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// awaitIdle waits until no connection is in use.
func awaitIdle(db *DB) {
	for range maxConnections {
		db.pool.slots <- struct{}{}
	}
	for range maxConnections {
		<-db.pool.slots
	}
}

// plainPooler is a connection to a pooler that refuses unknown settings.
type plainPooler struct {
	net.Conn
	refusal bytes.Reader
}

func (p *plainPooler) Write(b []byte) (int, error) {
	if !bytes.Contains(b, []byte("plan_cache_mode")) {
		return p.Conn.Write(b)
	}
	answer, err := (&pgproto3.ErrorResponse{
		Severity: "FATAL", Code: "08P01", Message: "unsupported startup parameter: plan_cache_mode",
	}).Encode(nil)
	p.refusal.Reset(answer)
	return len(b), err
}

func (p *plainPooler) Read(b []byte) (int, error) {
	if p.refusal.Len() > 0 {
		return p.refusal.Read(b)
	}
	return p.Conn.Read(b)
}

// TestPlainPooler: a pooler that refuses our settings still works.
func TestPlainPooler(t *testing.T) {
	db, err := newDB(coretest.StartPostgres(t).URL, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, config := range []*pgconn.Config{db.pool.plain, db.pool.config.Load()} {
		dial := config.DialFunc
		config.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := dial(ctx, network, address)
			return &plainPooler{Conn: conn}, err
		}
	}
	make := func(t kv.Tx) error { return t.MakeBucket("a") }
	if err := errors.Join(db.prepare(t.Context()), db.Update(make), increment(db)); err != nil {
		t.Fatal(err)
	}
	if got := number(t, db); got != 1 {
		t.Errorf("unexpected number %d", got)
	}
	if err := db.Close(); err != nil {
		t.Error(err)
	}
}

// TestClosed: every operation on a closed engine fails, and the engine leaves nothing in the table
// of results.
func TestClosed(t *testing.T) {
	server := coretest.StartPostgres(t)
	db := open(t, server.URL)
	if err := errors.Join(increment(db), db.Close(), db.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Begin(t.Context()); !errors.Is(err, core.ErrClosed) {
		t.Errorf("begin: unexpected error %v", err)
	}
	if err := increment(db); !errors.Is(err, core.ErrClosed) {
		t.Errorf("update: unexpected error %v", err)
	}
	conn, err := pgconn.Connect(t.Context(), server.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	left, err := conn.Exec(t.Context(), `select encode(k, 'escape') from kv order by k`).ReadAll()
	if err != nil || len(left[0].Rows) != 2 {
		t.Errorf("%d results are left, %v", len(left), err)
	}
}
