// Package postgres is a kv.Engine that stores its pairs in a PostgreSQL database, or in a service that
// speaks its protocol, and lets several processes share it. Its tables are:
//
//	kv(k bytea primary key, v bytea not null)
//	worker(id bigint primary key, name text not null, until timestamptz not null, barrier bigint not null)
//	part(name text, worker bigint, owned boolean not null, primary key (name, worker))
//
// The first byte of k says what follows:
//
//	0   name of a bucket → the byte with which its keys begin, from 16 on
//	1   byte of a bucket → its counter (8 bytes, big endian)
//	2   random name of a DB → the number of its last transaction (8 bytes, big endian)
//	16… a key of a bucket → its value
//
// Transactions that write are serialisable. They read on demand, and send their writes with the commit.
// They keep no state in sessions, so a pooler in between does no harm.
//
// A process that writes is a worker. Its row holds a lease, measured by the database's clock, which the
// worker renews. If the lease expires, another worker may delete the row. Each transaction that writes
// first locks its worker's row. So a worker that takes over waits for the open transaction of the former
// one, which cannot commit any others: it is fenced. An expired lease can be renewed as long as no other
// worker has taken over, as after an outage of the database.
//
// A part is work that only one worker may do at a time. Each worker checks several times within a lease
// which workers want and own which parts, and takes or gives up parts until they are divided evenly. A
// transaction can raise a barrier: other workers handle it before their next transaction.
package postgres

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"synthbot/core"
	"synthbot/memory/kv"
)

const (
	minVersion   = 120000           // of the server
	patience     = 15 * time.Second // how long a transaction is retried
	firstPause   = 10 * time.Millisecond
	longestPause = 500 * time.Millisecond
	maxKey       = 2600 // bytes; an index of PostgreSQL takes little more
)

// Options of a DB.
type Options struct {
	Log    *slog.Logger  // nil: silent
	Worker string        // the name of this process; "": the host's name
	Lease  time.Duration // 0: 10 seconds
	// JoinOnWrite is for a process that usually only reads, such as a command. It becomes a worker, and creates missing
	// tables, with its first transaction that writes. That fails with core.ErrLocked if another worker runs.
	JoinOnWrite bool
	// SoleWorker is for a process that must be the only worker. If another one runs, Open waits until its
	// lease would have expired, and then fails with core.ErrLocked. No other can start while it runs.
	SoleWorker bool
	// OnFenced, if set, is called once if another worker has taken over, with an error that wraps
	// core.ErrFenced. From then on all transactions that write fail. It must not block.
	OnFenced func(error)
	// OnAway, if set, is called with true when the database cannot be reached, and with false when
	// it can again. It must not block.
	OnAway func(bool)
	// OnBarrier, if set, is called before the next transaction if another process has raised a barrier.
	// If it fails, it is called again before the one after. It may read from the DB.
	OnBarrier func() error
	// OnHint, if set, is called with the texts that processes send with Hint, including this one, and
	// with "" when some may have been lost. It must not block.
	OnHint func(string)
}

const findTables = `select to_regclass('kv') is not null and to_regclass('worker') is not null ` +
	`and to_regclass('part') is not null`

const createTable = `create table if not exists kv (k bytea primary key, v bytea not null)`

// DB is an open database. It is a kv.Engine and kv.Shared.
type DB struct {
	name   string
	log    *slog.Logger
	pool   *pool
	worker *worker
	parts  *parts
	o      Options // none of its functions is nil

	ids        atomic.Pointer[map[string]byte] // of buckets, by name; replaced, never changed
	marker     string                          // the key of this engine's last transaction
	updating   sync.Mutex                      // held by Update
	number     uint64                          // of the last transaction; only Update uses it
	unprepared atomic.Bool                     // a pooler is in between: statements are not prepared
	away       atomic.Bool                     // the database could not be reached
	closed     atomic.Bool
	trips      atomic.Int64 // round trips of transactions
}

// Open connects to the database of a URL (postgres://…), creates missing tables and becomes a worker,
// unless the Options say otherwise. While another process must be alone, Open waits until the lease would
// have expired, and then returns an error that wraps core.ErrLocked. Errors name the cause and the fix,
// never the password. The caller closes the DB.
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

// CheckURL returns an error if a URL cannot be that of a database. It connects to nothing.
func CheckURL(url string) error {
	_, err := parseURL(url)
	return err
}

func parseURL(url string) (*pgconn.Config, error) {
	config, err := pgconn.ParseConfig(url)
	if err != nil { // its text may contain a part of the password
		return nil, errors.New("is invalid: it must look like postgres://user:password@host:5432/database")
	}
	return config, nil
}

// newDB returns a DB that has not connected yet.
func newDB(url string, o Options) (*DB, error) {
	config, err := parseURL(url)
	if err != nil {
		return nil, fmt.Errorf("the URL of the database %w", err)
	}
	host, _ := os.Hostname() // "" is a name, too
	config.ConnectTimeout = cmp.Or(config.ConnectTimeout, connectTimeout)
	db := &DB{
		name: fmt.Sprintf("postgres database %s on %s:%d", config.Database, config.Host, config.Port),
		log:  cmp.Or(o.Log, slog.New(slog.DiscardHandler)), pool: newPool(config),
		worker: &worker{name: cmp.Or(o.Worker, host), lease: cmp.Or(o.Lease, defaultLease)},
		parts:  &parts{wanted: make(map[string]*part), recheck: make(chan struct{}, 1)},
		o:      o, marker: string(rune(markers)) + rand.Text(),
	}
	db.worker.renewed.Store(time.Time{})
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

// Trips returns how many round trips transactions have made.
func (db *DB) Trips() int64 { return db.trips.Load() }

// Name returns a name of the database for errors and logs.
func (db *DB) Name() string { return db.name }

// prepare checks the server, becomes a worker unless JoinOnWrite is set, and reads the names of the buckets.
func (db *DB) prepare(ctx context.Context) error {
	hasTables, err := db.inspect(ctx)
	if err != nil {
		return err
	}
	if !db.o.JoinOnWrite {
		err = db.registerPatiently(ctx)
	}
	if err != nil || db.o.JoinOnWrite && !hasTables {
		db.ids.Store(new(map[string]byte))
		return err
	}
	return db.refreshIDs(ctx)
}

// inspect checks the server's version and reports whether the tables exist. It remembers the newest worker.
func (db *DB) inspect(ctx context.Context) (hasTables bool, err error) {
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
		return false, fmt.Errorf("its version is %d; %d or newer is required", n/10000, minVersion/10000)
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

// refreshIDs reads the names of the buckets, which another process may have created.
func (db *DB) refreshIDs(ctx context.Context) error {
	return catchFault(func() error {
		t := db.newTx(ctx, beginView)
		defer t.End()
		t.ids = nil
		t.readIDs()
		db.ids.Store(&t.ids)
		return nil
	})
}

// catchFault calls work, and returns the error of a kv.Fault if work panics with one.
func catchFault(work func() error) (err error) {
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

// Begin implements kv.Engine. It fails only if the DB is closed: the view connects when it first reads.
func (db *DB) Begin(ctx context.Context) (kv.View, error) {
	if db.closed.Load() {
		return nil, core.ErrClosed
	}
	return db.newTx(ctx, beginView), nil
}

// Update implements kv.Engine. If the database cannot be reached, it retries for 15 seconds. Further
// calls then try once each until the database is back. If the connection breaks during the commit, the
// next attempt finds out whether it took effect.
func (db *DB) Update(f func(kv.Tx) error) error {
	if db.closed.Load() {
		return core.ErrClosed
	}
	db.updating.Lock()
	defer db.updating.Unlock()
	db.number++
	until, pause, unsure := time.Now().Add(patience), firstPause, false
	for {
		err := db.claim(context.Background())
		if err == nil {
			err = db.try(f, unsure)
		}
		if err == nil && errors.Is(db.claim(context.Background()), core.ErrFenced) {
			err = core.ErrFenced // another worker has taken over meanwhile, as while this process was suspended
		}
		lost := isAway(err)
		unsure = unsure || lost
		if codeOf(err) == divisionByZero {
			db.worker.renewed.Store(time.Time{}) // renewing finds out whether another worker has taken over
		}
		if !lost && !isConflict(err) || lost && db.away.Load() || time.Now().After(until) {
			db.setAway(err, lost)
			if codeOf(err) == diskFull {
				err = fmt.Errorf("%w: %w", core.ErrFull, err)
			}
			return err
		}
		time.Sleep(pause)
		pause = min(2*pause, longestPause)
	}
}

// setAway logs and reports when the database cannot be reached, and when it can again.
func (db *DB) setAway(err error, away bool) {
	if db.away.Swap(away) == away {
		return
	}
	if away {
		db.log.Error("database away: no messages are accepted until it is back", "file", db.name, "err", err)
	} else {
		db.log.Info("database back", "file", db.name)
	}
	db.o.OnAway(away)
}

// try makes one attempt at a transaction. unsure means that an earlier attempt may have been committed.
func (db *DB) try(f func(kv.Tx) error, unsure bool) error {
	t := db.newTx(context.Background(), beginWrite)
	defer t.release()
	return catchFault(func() error {
		number := binary.BigEndian.AppendUint64(nil, db.number)
		if unsure && string(t.get(db.marker)) == string(number) {
			return db.refreshIDs(t.ctx)
		}
		if err := f(t); err != nil {
			return err
		}
		t.put(db.marker, number)
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
	db.resign()
	db.pool.close()
	return nil
}

// Compact lets the database reuse the space of deleted pairs (VACUUM), then calls last in a transaction.
// It blocks until both are done. It returns the size of the table in bytes before and after. Deleted
// data may remain on the server's disk until it is overwritten, and in its archives.
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
