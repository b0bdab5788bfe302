// Package postgres is the engine of package memory that stores everything in one table of a
// PostgreSQL database, or of a service that speaks its protocol, and who writes to it in others:
//
//	kv(k bytea primary key, v bytea not null)
//	worker(id bigint primary key, name text not null, until timestamptz not null, barrier bigint not null)
//	part(name text, worker bigint, owned boolean not null, primary key (name, worker))
//
// The first byte of k says what follows:
//
//	0   name of a bucket → the byte with which its keys begin, from 16 on
//	1   byte of a bucket → its counter (8 bytes, big endian)
//	2   random name of an engine → the number of its last transaction (8 bytes)
//	16… a key of a bucket → its value
//
// A transaction that writes is serialisable. What it reads is read when it asks, and what it
// writes is sent with its commit. There is no state in sessions, so that a pooler between them
// does no harm.
//
// A process that writes is a worker: it has a row with a lease by the database's clock, which it
// renews. Its row is deleted when its lease is over and another one takes over. Each transaction that
// writes locks its worker's row with its first statements, so that the one who takes over waits for
// it, and none of the former worker's can commit afterwards: it is fenced. A lease that is over, while
// nobody took over, as after the database was away, is renewed.
//
// What only one worker may do is a part, which one of those that want it owns. Each worker looks
// several times within a lease who wants and owns what, and takes and gives up parts so that all have
// the same number. At a barrier, which one transaction raises, all others begin anew.
package postgres

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"synthbot/core"
	"synthbot/memory/kv"
)

const (
	minVersion   = 120000           // of the server
	patience     = 15 * time.Second // for which a transaction is tried again
	firstPause   = 10 * time.Millisecond
	longestPause = 500 * time.Millisecond
	maxKey       = 2600 // bytes; an index of PostgreSQL takes little more
)

// Options of a DB.
type Options struct {
	Log    *slog.Logger  // nil: silent
	Worker string        // the name of this process among those that write; "": the host's
	Lease  time.Duration // 0: 10 seconds
	// Guest is for a process that may only read: it becomes a worker with its first transaction
	// that writes, which fails with core.ErrLocked if another worker lives then, and makes no
	// tables before.
	Guest bool
	// Alone is for a process beside which no other may write. While another worker lives, Open waits
	// until its lease would be over; then the error wraps core.ErrLocked. None begins meanwhile.
	Alone bool
	// OnFenced, if set, is called once if another worker has taken over, with an error that wraps
	// core.ErrFenced, as all transactions that write fail from then on. It must not block.
	OnFenced func(error)
	// OnAway, if set, is called with true when the database cannot be reached, and with false when
	// it can again. It must not block.
	OnAway func(bool)
	// OnBarrier, if set, is called before a transaction if another process has raised a barrier, and
	// before the next if it fails. It may read.
	OnBarrier func() error
	// OnHint, if set, is called with what a process said by Hint, also with its own hints, and with
	// "" when hints may have been lost. It must not block.
	OnHint func(string)
}

const findTables = `select to_regclass('kv') is not null and to_regclass('worker') is not null ` +
	`and to_regclass('part') is not null`

const createTable = `create table if not exists kv (k bytea primary key, v bytea not null)`

// DB is an open database. It is a kv.Engine.
type DB struct {
	name   string
	log    *slog.Logger
	pool   *pool
	worker *worker
	parts  *parts
	o      Options // its functions are set

	ids        atomic.Pointer[map[string]byte] // of buckets, by name; replaced, never changed
	marker     string                          // the key of this engine's last transaction
	number     uint64                          // of the transaction; Update's
	unprepared atomic.Bool                     // a pooler is in between
	away       atomic.Bool                     // the last transaction found no database
	closed     atomic.Bool
	trips      atomic.Int64 // round trips of transactions
}

var (
	_ kv.Engine = (*DB)(nil)
	_ kv.Shared = (*DB)(nil)
)

// Open connects to the database of a URL (postgres://…), makes the tables if they are missing and
// becomes a worker. While a process lives that must be alone, it waits until the lease would be
// over; then the error wraps core.ErrLocked. Its errors name the cause and the fix, and never the password. The
// caller closes the DB.
func Open(ctx context.Context, url string, o Options) (*DB, error) {
	db, err := newDB(url, o)
	if err != nil {
		return nil, err
	}
	err = db.prepare(ctx)
	if err != nil {
		db.pool.close()
		return nil, db.openError(err)
	}
	return db, nil
}

// newDB returns a DB that has not connected yet.
func newDB(url string, o Options) (*DB, error) {
	config, err := pgconn.ParseConfig(url)
	if err != nil { // its text may hold a part of the password
		return nil, errors.New("the URL of the database cannot be read: " +
			"it must look like postgres://user:password@host:5432/database")
	}
	config.ConnectTimeout = cmp.Or(config.ConnectTimeout, connectTimeout)
	db := &DB{
		name: nameOf(config), log: cmp.Or(o.Log, slog.New(slog.DiscardHandler)), pool: newPool(config),
		worker: newWorker(o), parts: newParts(), o: o, marker: string(rune(markers)) + rand.Text(),
	}
	if o.OnFenced == nil {
		db.o.OnFenced = func(error) {}
	}
	if o.OnAway == nil {
		db.o.OnAway = func(bool) {}
	}
	if o.OnBarrier == nil {
		db.o.OnBarrier = func() error { return nil }
	}
	if o.OnHint == nil {
		db.o.OnHint = func(string) {}
	}
	return db, nil
}

// nameOf names a database without its user and password.
func nameOf(c *pgconn.Config) string {
	return fmt.Sprintf("postgres database %s on %s:%d", c.Database, c.Host, c.Port)
}

// Trips is how many round trips of transactions there were.
func (db *DB) Trips() int64 { return db.trips.Load() }

// Name names the database in errors and logs.
func (db *DB) Name() string { return db.name }

// prepare checks the server, becomes the worker unless this is a guest, and reads the names of the
// buckets.
func (db *DB) prepare(ctx context.Context) error {
	made, err := db.inspect(ctx)
	if err != nil {
		return err
	}
	if !db.o.Guest {
		err = db.registerPatiently(ctx)
	}
	if err != nil || db.o.Guest && !made {
		db.ids.Store(new(map[string]byte))
		return err
	}
	return db.refreshIDs(ctx)
}

// inspect checks the server's version. It reports whether the tables are made, and remembers for a
// guest which worker came last.
func (db *DB) inspect(ctx context.Context) (made bool, err error) {
	conn, _, err := db.pool.take(ctx)
	if err != nil {
		return false, err
	}
	defer db.pool.put(conn)
	version, err := conn.Exec(ctx, "show server_version_num").ReadAll()
	if err != nil {
		return false, err
	}
	n, _ := strconv.Atoi(string(version[0].Rows[0][0]))
	if n < minVersion {
		return false, fmt.Errorf("its version is %d, and %d or newer is needed", n/10000, minVersion/10000)
	}
	tables, err := send(ctx, conn, []statement{{sql: findTables}})
	if err != nil || tables[0].Rows[0][0][0] == 0 {
		return false, err
	}
	newest, err := send(ctx, conn, []statement{{sql: "select coalesce(max(id), 0) from worker"}})
	if err == nil {
		db.worker.newest = numberOf(newest[0].Rows[0][0])
	}
	return true, err
}

// refreshIDs reads the names of the buckets, which another process may have made.
func (db *DB) refreshIDs(ctx context.Context) error {
	return recovered(func() error {
		t := db.newTx(ctx, beginView)
		defer t.End()
		t.ids = nil
		t.readIDs()
		db.ids.Store(&t.ids)
		return nil
	})
}

// recovered returns the error of a kv.Fault.
func recovered(work func() error) (err error) {
	defer func() {
		v := recover()
		fault, ok := v.(*kv.Fault)
		switch {
		case ok:
			err = fault.Err
		case v != nil:
			panic(v)
		}
	}()
	return work()
}

// Begin implements kv.Engine. It fails on a closed DB only: the view connects when it first
// reads.
func (db *DB) Begin(ctx context.Context) (kv.View, error) {
	if db.closed.Load() {
		return nil, core.ErrClosed
	}
	return db.newTx(ctx, beginView), nil
}

// Update implements kv.Engine. While the database cannot be reached, it tries for 15 seconds,
// and from then on once, until it can be reached again. If the connection is lost during the
// commit, the next one finds out whether that took effect.
func (db *DB) Update(f func(kv.Tx) error) error {
	if db.closed.Load() {
		return core.ErrClosed
	}
	db.number++
	until, pause, unsure := time.Now().Add(patience), firstPause, false
	for {
		err := db.claim(context.Background())
		if err == nil {
			err = db.try(f, unsure)
		}
		if err == nil {
			err = db.confirm()
		}
		lost := isAway(err)
		unsure = unsure || lost
		if codeOf(err) == divisionByZero {
			db.worker.renewedAt(time.Time{}) // renewing finds out whether another worker has taken over
		}
		if !lost && !isConflict(err) || lost && db.away.Load() || time.Now().After(until) {
			db.noteAway(err, lost)
			return fullError(err)
		}
		time.Sleep(pause)
		pause = min(2*pause, longestPause)
	}
}

// confirm makes sure after a commit that what follows from it may be done: a process that was stopped
// meanwhile learns if another one has taken over. While the server cannot be reached, nobody knows.
func (db *DB) confirm() error {
	err := db.claim(context.Background())
	if errors.Is(err, core.ErrFenced) {
		return err
	}
	return nil
}

// noteAway tells when the database cannot be reached, and when it can again.
func (db *DB) noteAway(err error, away bool) {
	if db.away.Swap(away) == away {
		return
	}
	if away {
		db.log.Error("the database cannot be reached; nothing is accepted until it can", "file", db.name, "err", err)
	} else {
		db.log.Info("the database can be reached again", "file", db.name)
	}
	db.o.OnAway(away)
}

// try runs one attempt of a transaction. unsure says that an earlier one may have taken effect.
func (db *DB) try(f func(kv.Tx) error, unsure bool) error {
	t := db.newTx(context.Background(), beginWrite)
	defer t.release()
	return recovered(func() error {
		number := binary.BigEndian.AppendUint64(nil, db.number)
		if unsure && string(t.get(db.marker)) == string(number) {
			return db.refreshIDs(t.ctx)
		}
		if err := f(t); err != nil {
			return err
		}
		t.dirty[db.marker] = number
		t.flush("commit")
		db.ids.Store(&t.ids)
		return nil
	})
}

// Close implements kv.Engine.
func (db *DB) Close() error {
	if db.closed.Swap(true) {
		return nil
	}
	if db.worker.number() != 0 {
		_ = recovered(func() error { // else it stays, which does no harm
			t := db.newTx(context.Background(), beginWrite)
			defer t.release()
			t.dirty[db.marker] = nil
			t.flush("commit")
			return nil
		})
	}
	db.resign(context.Background())
	db.pool.close()
	return nil
}

// Compact lets the database use the space of what was deleted again, and calls last in a
// transaction. It returns the size before and after. Deleted bytes may stay on the server's disk
// until they are overwritten, and in its archives.
func (db *DB) Compact(ctx context.Context, last func(kv.Tx) error) (before, after int64, err error) {
	conn, _, err := db.pool.take(ctx)
	if err != nil {
		return 0, 0, err
	}
	defer db.pool.put(conn)
	size := func() (n int64, err error) {
		all, err := conn.Exec(ctx, "select pg_total_relation_size('kv')").ReadAll()
		if err != nil {
			return 0, err
		}
		return strconv.ParseInt(string(all[0].Rows[0][0]), 10, 64)
	}
	before, err = size()
	if err == nil {
		_, err = conn.Exec(ctx, "vacuum kv").ReadAll()
	}
	if err == nil {
		after, err = size()
	}
	if err == nil {
		err = db.Update(last)
	}
	return before, after, err
}
