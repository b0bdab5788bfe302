package memory

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"synthbot/core"
	"synthbot/core/coretest"
	"synthbot/core/secret"
	"synthbot/memory/bolt"
	"synthbot/memory/kv"
	"synthbot/memory/postgres"
)

// onPostgres is the environment variable with the URL of the server on which the databases of
// tests are made.
const onPostgres = "SYNTHBOT_TEST_POSTGRES"

// engineOf returns the options for the database of a folder: a file, or a schema of its own on
// a server.
func engineOf(t testing.TB, dir string, o Options) Options {
	t.Helper()
	server := os.Getenv(onPostgres)
	if server == "" {
		return o
	}
	schema := fmt.Sprintf("s%x", sha256.Sum256([]byte(dir)))[:32]
	conn, err := pgconn.Connect(context.Background(), server)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	create := "select pg_advisory_lock(1); create schema if not exists " + schema // fails if another runs at the same time
	if _, err := conn.Exec(context.Background(), create).ReadAll(); err != nil {
		t.Fatal(err)
	}
	o.Server.URL = secret.New(server + "&search_path=" + schema)
	return o
}

// TestOnPostgres runs the tests of the core.Store contract and of the upgrade of ids again on a
// server.
func TestOnPostgres(t *testing.T) {
	if os.Getenv(onPostgres) != "" {
		t.Skip("this is the run on PostgreSQL")
	}
	self := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^(TestStore|TestItems.*|TestUpgradeOfIDs)$", "-test.timeout=10m")
	self.Env = append(os.Environ(), "TEST_FULL=", onPostgres+"="+coretest.StartPostgres(t).URL)
	out, err := self.CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestBackupOfPostgres: a backup of a server is a file that can be restored like any other, with
// counters and the next numbers.
func TestBackupOfPostgres(t *testing.T) {
	t.Setenv(onPostgres, coretest.StartPostgres(t).URL)
	db := furnished(t, t.TempDir())
	populated(t, db)
	first := save(t, db, core.Fact{Text: "tea is hot", Origin: kitchen})
	before := everything(t, db)
	dir := t.TempDir()
	file := filepath.Join(dir, "backup.db")
	if err := errors.Join(db.Backup(file), Restore(dir, file)); err != nil {
		t.Fatal(err)
	}
	t.Setenv(onPostgres, "")
	restored := open(t, dir)
	if diff := equal(before, everything(t, restored)); diff != "" {
		t.Error(diff)
	}
	found := recall(t, restored, core.FactQuery{Text: "tea", See: []core.Path{kitchen}})
	want(t, "memories", found, []string{"tea is hot"})
	number, err := factNumber(first.ID)
	next, err2 := factNumber(save(t, restored, core.Fact{Text: "coffee too", Origin: kitchen}).ID)
	if err := errors.Join(err, err2); err != nil || next != number+1 {
		t.Errorf("the next memory has the number %d, want the one after %d: %v", next, number, err)
	}
}

// TestRoundTrips: a turn waits for the server at most eight times, and three times more for
// memories.
func TestRoundTrips(t *testing.T) {
	t.Setenv(onPostgres, coretest.StartPostgres(t).URL)
	db := openWith(t, t.TempDir(), Options{SkipCheck: true})
	db.starting.Wait()
	for i := range 120 {
		m := message(group, fmt.Sprint("m", i), "words")
		m.Message.Author.ID = "1000"
		add(t, db, m)
		save(t, db, core.Fact{Text: fmt.Sprint("tea number ", i), Origin: group})
	}
	trips := func(what string, most int64, work func() error) {
		t.Helper()
		server := db.engine.Engine.(*postgres.DB)
		before := server.Trips()
		if err := work(); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if n := server.Trips() - before; n > most {
			t.Errorf("%s: %d round trips, want at most %d", what, n, most)
		}
	}
	ctx := t.Context()
	asked := message(group, "asked", "is the tea hot?")
	asked.Due, asked.Message.Author.ID = true, "1000"
	receipt := &core.Batch{Append: []core.Entry{asked}, Begin: true}
	trips("receipt", 2, func() error { return db.Commit(ctx, receipt) })
	turn := core.TurnID{Path: group, Seq: receipt.Append[0].Message.Seq}
	trips("view of a turn", 2, func() error {
		return db.View(ctx, func(v core.View) error {
			head, err := v.Head(group)
			due, err2 := v.Due(group, 20)
			journal, err3 := v.Journal(turn)
			past, err4 := v.After(group, turn.Seq-40, 60, nil)
			_, err5 := v.State(group)
			if head.Last != turn.Seq || len(due) != 1 || len(journal) != 1 || len(past) != 40 {
				t.Errorf("unexpected head %+v, %d waiting, %d records or %d entries", head, len(due), len(journal), len(past))
			}
			return errors.Join(err, err2, err3, err4, err5)
		})
	})
	key := core.Key{Turn: turn, Round: 1}
	plan := &core.Batch{Journal: []core.Record{{Key: key, Progress: core.ProgressAccepted, Data: json.RawMessage(`{}`)}}}
	trips("plan", 2, func() error { return db.Commit(ctx, plan) })
	said := message(group, "said", "it is")
	said.Self = true
	end := &core.Batch{
		Append: []core.Entry{said}, Answered: []core.TurnID{turn}, Closed: []core.TurnID{turn},
		States: map[core.Path]core.State{group: {Topic: "tea"}}, Finishing: true,
	}
	trips("end of a turn", 2, func() error { return db.Commit(ctx, end) })
	trips("recall", 3, func() error {
		found, err := db.Recall(ctx, core.FactQuery{Text: "which tea is hot", See: []core.Path{group, kitchen}, N: 8})
		if len(found) != 8 {
			t.Errorf("unexpected number of memories: %d", len(found))
		}
		return err
	})
}

// TestEnginesAgree: random operations have the same results on both engines.
func TestEnginesAgree(t *testing.T) {
	server, err := postgres.Open(t.Context(), coretest.StartPostgres(t).URL, postgres.Options{})
	if err != nil {
		t.Fatal(err)
	}
	file, err := bolt.Open(filepath.Join(t.TempDir(), "x.db"), bolt.Options{NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	for seed := range uint64(coretest.Sample(200, 15)) {
		var saw [2]string
		for i, engine := range []kv.Engine{file, server} {
			saw[i] = walk(t, engine, rand.New(rand.NewPCG(seed, 0)))
		}
		if saw[0] != saw[1] {
			t.Fatalf("seed %d:\n%s\n%s", seed, saw[0], saw[1])
		}
	}
	if err := errors.Join(file.Close(), server.Close()); err != nil {
		t.Error(err)
	}
}

// walk changes an engine at random and returns what it read.
func walk(t *testing.T, engine kv.Engine, r *rand.Rand) string {
	t.Helper()
	var saw strings.Builder
	key := func() []byte { return fmt.Append(nil, r.IntN(60)) }
	note := func(k, v []byte) { fmt.Fprintf(&saw, "%s=%s ", k, v) }
	announce := func(t kv.Tx) {
		what := kv.Range{Bucket: []string{"a", "b"}[r.IntN(2)], From: key(), Backward: r.IntN(2) == 0, Limit: r.IntN(8)}
		if r.IntN(3) > 0 {
			what.To = key()
		}
		if reader, ok := t.(kv.Prefetcher); ok {
			reader.Prefetch(what)
		}
	}
	err := engine.Update(func(t kv.Tx) error {
		if r.IntN(5) == 0 && t.Bucket("a") != nil {
			var keys [][]byte
			c := t.Bucket("a").Cursor(nil, nil)
			for k, _ := c.Seek(nil); k != nil; k, _ = c.Next() {
				keys = append(keys, bytes.Clone(k))
			}
			for _, k := range keys {
				if err := t.Bucket("a").Delete(k); err != nil {
					return err
				}
			}
		}
		var dropped error
		if r.IntN(4) == 0 {
			dropped = t.DropBucket("b")
		}
		if err := errors.Join(dropped, t.MakeBucket("a"), t.MakeBucket("b")); err != nil {
			return err
		}
		fmt.Fprint(&saw, t.Buckets(), t.Bucket("c") == nil)
		for range 40 {
			b := t.Bucket([]string{"a", "b"}[r.IntN(2)])
			var err error
			switch r.IntN(7) {
			case 0, 1:
				err = b.Put(key(), key())
			case 2:
				err = b.Delete(key())
			case 3:
				note(nil, b.Get(key()))
			case 4:
				c := b.Cursor(nil, nil)
				note(c.Seek(key()))
				note(c.Next())
			case 5:
				n, err2 := b.NextSequence()
				fmt.Fprint(&saw, n, b.Sequence(), " ")
				err = err2
			case 6:
				announce(t)
			}
			if err != nil {
				return err
			}
		}
		if b := t.Bucket("a"); b.Put(nil, key()) == nil || b.Put(make([]byte, kv.MaxKey+1), nil) == nil {
			return errors.New("a bad key was stored")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	v, err := engine.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer v.End()
	for _, name := range v.Buckets() {
		announce(v)
		c := v.Bucket(name).Cursor(nil, nil)
		note(c.Before(nil))
		for range 25 {
			note(c.Prev())
		}
		for k, value := c.Seek(nil); k != nil; k, value = c.Next() {
			note(k, value)
		}
		note(c.Before(key()))
		note(c.Prev())
		announce(v)
		note(c.Seek([]byte("3")))
		step := c.Next
		for range 30 {
			if r.IntN(3) == 0 {
				step = []func() (k, v []byte){c.Next, c.Prev}[r.IntN(2)]
			}
			k, value := step()
			if note(k, value); k == nil {
				break
			}
		}
	}
	return saw.String()
}

// TestGuests: a guest sees what a running bot has stored but cannot write. Without a database it
// returns an error and creates none.
func TestGuests(t *testing.T) {
	t.Setenv(onPostgres, coretest.StartPostgres(t).URL)
	dir := t.TempDir()
	guest := engineOf(t, dir, Options{BesideBot: true})
	for range 2 {
		if _, err := Open(dir, guest); !errors.Is(err, ErrMissing) {
			t.Fatalf("on a server: unexpected error %v", err)
		}
	}
	if _, err := Open(filepath.Join(dir, "none"), Options{BesideBot: true}); !errors.Is(err, ErrMissing) {
		t.Fatalf("a file: unexpected error %v", err)
	}
	if found, err := os.ReadDir(dir); err != nil || len(found) > 0 {
		t.Errorf("guests created %v, %v", found, err)
	}
	bot := furnished(t, dir)
	save(t, bot, core.Fact{Text: "tea is hot", Origin: kitchen})
	beside, err := Open(dir, guest)
	if err != nil {
		t.Fatal(err)
	}
	tea := core.FactQuery{Text: "green tea", See: []core.Path{kitchen}}
	want(t, "memories", recall(t, beside, tea), []string{"tea is hot"})
	if _, err := beside.SaveFact(t.Context(), core.Fact{Text: "coffee", Origin: kitchen}); !errors.Is(err, core.ErrLocked) {
		t.Errorf("writing as a guest: unexpected error %v", err)
	}
	if err := errors.Join(beside.Close(), bot.Close()); err != nil {
		t.Fatal(err)
	}
	alone, err := Open(dir, guest)
	if err != nil {
		t.Fatal(err)
	}
	save(t, alone, core.Fact{Text: "tea is green", Origin: kitchen})
	if err := alone.Close(); err != nil {
		t.Fatal(err)
	}
	want(t, "memories", recall(t, furnished(t, dir), tea), []string{"tea is green", "tea is hot"})
}

// BenchmarkEngines measures how many messages a second become durable, alternately with a file and
// a server on the same disk. Target: at least 0.7 times the file's rate.
func BenchmarkEngines(b *testing.B) {
	server := coretest.StartPostgres(b, "fsync=on").URL
	for _, places := range []int{1, 10, 100} {
		b.Run(fmt.Sprintf("places=%d", places), func(b *testing.B) {
			const warm, rounds = 20, 100
			var times [2][]float64
			for b.Loop() {
				for i, url := range []string{"", server} {
					b.Setenv(onPostgres, url)
					dir := b.TempDir()
					db, err := Open(dir, engineOf(b, dir, Options{}))
					if err != nil {
						b.Fatal(err)
					}
					receiveInParallel(b, db, places, warm, 0)
					times[i] = append(times[i], receiveInParallel(b, db, places, rounds, warm*places).Seconds())
					if err := db.Close(); err != nil {
						b.Error(err)
					}
				}
			}
			file, ours := median(times[0]), median(times[1])
			b.ReportMetric(float64(places*rounds)/file, "file-msg/s")
			b.ReportMetric(float64(places*rounds)/ours, "msg/s")
			b.ReportMetric(file/ours, "of-file")
		})
	}
}
