package postgres

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"synthbot/core"
)

const (
	defaultLease  = 10 * time.Second
	renewals      = 5 // within a lease
	heldTenths    = 7 // of a lease, for which a renewal counts by the clock of this process
	createTries   = 20
	registerPause = 200 * time.Millisecond
	registerSlack = time.Second // for which a new worker waits for a guest beyond its lease
)

const (
	createWorkers = `create table if not exists worker ` +
		`(id bigint generated always as identity primary key, name text not null, until timestamptz not null, ` +
		`barrier bigint not null default 0)`
	lockWorkers  = `lock table worker, part in share row exclusive mode`
	listWorkers  = `select id, name, until > clock_timestamp() from worker order by id`
	buryWorkers  = `delete from worker where until <= clock_timestamp()`
	insertWorker = `insert into worker (name, until) values ($1, clock_timestamp() + $2 * interval '1 ms') returning id`
	renewWorker  = `update worker set until = clock_timestamp() + $2 * interval '1 ms' where id = $1 returning barrier`
	endWorker    = `update worker set until = '-infinity' where id = $1`
	endParts     = `delete from part where worker = $1`
	// checkWorker locks the worker's own row, and fails (divisionByZero) if there is none with a lease,
	// or if it met a barrier that this process does not know. It also sets how long the transaction may be idle.
	checkWorker = `select 1 / count(*), set_config('idle_in_transaction_session_timeout', $3, true) ` +
		`from (select id from worker ` +
		`where id = $1 and until > clock_timestamp() and barrier = $2 for key share) as mine`
	raiseBarrier = `update worker set barrier = barrier + 1 where id <> $1`
)

// worker is this process among those that write to the database. It is safe for concurrent use,
// but for register.
type worker struct {
	name   string
	lease  time.Duration
	newest int64 // the worker that had come last when a guest opened the database

	fenced atomic.Bool // another one has taken over

	meeting sync.Mutex // is held at a barrier

	mu      sync.Mutex
	id      int64     // 0: it is not registered
	barrier int64     // the last one that it met
	renewed time.Time // when the renewal began that succeeded last

	stop context.CancelFunc // ends the renewals; set by register
	over sync.WaitGroup
}

func newWorker(o Options) *worker {
	host, _ := os.Hostname() // "" is a name, too
	return &worker{name: cmp.Or(o.Worker, host), lease: cmp.Or(o.Lease, defaultLease)}
}

// number returns the worker's id; 0 if it is not registered.
func (w *worker) number() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.id
}

// unrenewed returns how long ago the last renewal began, also if the machine slept meanwhile.
func (w *worker) unrenewed() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return max(time.Since(w.renewed), time.Now().Round(0).Sub(w.renewed.Round(0)))
}

// overdue reports whether the lease may be over, by the clock of this process.
func (w *worker) overdue() bool { return w.unrenewed() > w.lease*heldTenths/10 }

// renewedAt notes when a renewal began that succeeded; the zero Time: none counts.
func (w *worker) renewedAt(began time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.renewed = began
}

// claim makes sure that this process may write: it is registered, and its lease is not over.
func (db *DB) claim(ctx context.Context) error {
	w := db.worker
	switch {
	case w.fenced.Load():
		return core.ErrFenced
	case w.number() == 0:
		return db.register(ctx)
	case w.overdue():
		_, err := db.renew(ctx)
		return err
	}
	return nil
}

// registerPatiently waits until no guest writes, for as long as the lease and a little more.
func (db *DB) registerPatiently(ctx context.Context) error {
	until := time.Now().Add(db.worker.lease + registerSlack)
	for first := true; ; first = false {
		err := db.register(ctx)
		if !errors.Is(err, core.ErrLocked) || time.Now().After(until) {
			return err
		}
		if first {
			db.log.Info("waiting for a command to end", "file", db.name, "until", until, "err", err)
		}
		select {
		case <-time.After(registerPause):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// register adds this process to the workers. It buries those whose leases are over, and waits for
// their transactions. If one lives that must be alone, or if this one must and others live, the error wraps
// core.ErrLocked.
func (db *DB) register(ctx context.Context) error {
	conn, _, err := db.pool.take(ctx)
	if err != nil {
		return err
	}
	defer db.pool.put(conn) // which ends the transaction if it is open
	began := time.Now()
	if err := createTables(ctx, conn); err != nil {
		return err
	}
	all, err := send(ctx, conn, []statement{{sql: "begin"}, {sql: lockWorkers}, {sql: listWorkers}, {sql: listParts}})
	if err != nil {
		return err
	}
	if err := db.mayRegister(all[2].Rows, all[3].Rows); err != nil {
		return err
	}
	w := db.worker
	params := [][]byte{[]byte(w.name), long(w.lease.Milliseconds())}
	all, err = send(ctx, conn, []statement{
		{sql: buryWorkers}, {sql: buryParts}, {insertWorker, params, []uint32{oidText, oidLong}},
	})
	if err != nil {
		return err
	}
	id := numberOf(all[2].Rows[0][0])
	last := []statement{{sql: "commit"}}
	if db.o.Guest || db.o.Alone {
		last = slices.Insert(last, 0, ownership(exclusive, id, true))
	}
	if _, err := send(ctx, conn, last); err != nil {
		return err
	}
	w.mu.Lock()
	w.id, w.barrier, w.renewed = id, 0, began
	w.mu.Unlock()
	background, stop := context.WithCancel(context.Background())
	w.stop = stop
	w.over.Go(func() { db.keepRenewing(background) })
	if !db.o.Guest {
		w.over.Go(func() { db.listen(background) })
	}
	return nil
}

// mayRegister holds the other workers against the rules: no guest writes; and for a guest, none
// lives, and none has lived since it opened the database, whose state it may have read before.
func (db *DB) mayRegister(workers, parts [][][]byte) error {
	writes := make(map[int64]bool) // guests
	for _, row := range parts {
		if string(row[0]) == exclusive {
			writes[numberOf(row[1])] = true
		}
	}
	for _, row := range workers {
		id, name, lives := numberOf(row[0]), row[1], row[2][0] != 0
		switch {
		case lives && db.o.Guest:
			return fmt.Errorf("%w: worker %q runs with it; give this command where a bot runs, "+
				"which carries it out then, or stop all of them", core.ErrLocked, name)
		case lives && db.o.Alone:
			return fmt.Errorf("%w: worker %q runs with it; stop it", core.ErrLocked, name)
		case lives && writes[id]:
			return fmt.Errorf("%w: a command writes to it on %q; wait until that is over", core.ErrLocked, name)
		case db.o.Guest && id > db.worker.newest:
			return fmt.Errorf("worker %q has used the database meanwhile; give the command again", name)
		}
	}
	return nil
}

// keepRenewing renews the lease, and looks who is to own what, until ctx ends or another worker has
// taken over.
func (db *DB) keepRenewing(ctx context.Context) {
	tick := time.NewTicker(db.worker.lease / renewals)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-db.parts.look:
		}
		released := db.parts.looks()
		now, err := db.renew(ctx)
		if err == nil && !db.o.Guest {
			err = db.share(ctx, released, now)
		}
		away := isAway(err)
		if errors.Is(err, core.ErrFenced) {
			return
		}
		if err == nil {
			db.noteAway(nil, false)
		} else if !away && !isConflict(err) && ctx.Err() == nil {
			db.log.Warn("the lease is not renewed", "file", db.name, "err", err)
		}
		if away && db.worker.overdue() {
			db.parts.pause()
		}
		if away && db.worker.unrenewed() > patience {
			db.pool.cut()
			db.noteAway(err, true)
		}
	}
}

// renew renews the lease, also one that is over, unless another worker has taken over. Then the
// error wraps core.ErrFenced. It returns who lives, and owns what.
func (db *DB) renew(ctx context.Context) (state, error) {
	ctx, cancel := context.WithTimeout(ctx, db.worker.lease/2)
	defer cancel()
	conn, _, err := db.pool.take(ctx)
	if errors.Is(err, context.DeadlineExceeded) { // all connections are in use, and none gets an answer
		err = &awayError{err}
	}
	if err != nil {
		return state{}, err
	}
	defer db.pool.put(conn)
	began, w := time.Now(), db.worker
	params := [][]byte{long(w.number()), long(w.lease.Milliseconds())}
	all, err := send(ctx, conn, []statement{
		{renewWorker, params, []uint32{oidLong, oidLong}}, {sql: listWorkers}, {sql: listParts},
	})
	switch {
	case err != nil && conn.IsClosed():
		db.pool.drop()
		return state{}, &awayError{err}
	case err != nil:
		return state{}, err
	case len(all[0].Rows) == 0:
		return state{}, db.fence()
	}
	w.renewedAt(began)
	if err := db.meet(numberOf(all[0].Rows[0][0])); err != nil {
		return state{}, err
	}
	return stateOf(all[1].Rows, all[2].Rows), nil
}

// meet does what is to be done at a barrier, unless it was met before.
func (db *DB) meet(barrier int64) error {
	w := db.worker
	w.meeting.Lock()
	defer w.meeting.Unlock()
	if w.met() == barrier {
		return nil
	}
	if err := db.o.OnBarrier(); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.barrier = barrier
	return nil
}

// met returns the last barrier that the worker met.
func (w *worker) met() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.barrier
}

// fence notes that another worker has taken over.
func (db *DB) fence() error {
	if !db.worker.fenced.Swap(true) {
		db.o.OnFenced(fmt.Errorf("%s: %w", db.name, core.ErrFenced))
	}
	return core.ErrFenced
}

// resign ends the lease, so that the next worker need not wait for its end.
func (db *DB) resign(ctx context.Context) {
	w := db.worker
	if w.stop == nil {
		return
	}
	w.stop()
	w.over.Wait()
	conn, _, err := db.pool.take(ctx)
	if err != nil {
		return // the lease ends by itself
	}
	defer db.pool.put(conn)
	me := [][]byte{long(w.number())}
	_, _ = send(ctx, conn, []statement{ // likewise
		{endWorker, me, []uint32{oidLong}}, {endParts, me, []uint32{oidLong}}, hint(hintParts),
	})
}

// createTables makes the tables unless they are there.
func createTables(ctx context.Context, conn *pgconn.PgConn) error {
	for range createTries {
		made, err := send(ctx, conn, []statement{{sql: findTables}})
		if err != nil || made[0].Rows[0][0][0] != 0 {
			return err
		}
		_, err = send(ctx, conn, []statement{{sql: createTable}, {sql: createWorkers}, {sql: createParts}})
		raced := []string{uniqueViolation, duplicateTable, duplicateType} // another process makes them
		if !slices.Contains(raced, codeOf(err)) {
			return err
		}
		time.Sleep(firstPause)
	}
	return errors.New("the tables cannot be made")
}

func long(n int64) []byte { return binary.BigEndian.AppendUint64(nil, uint64(n)) }

func numberOf(value []byte) int64 { return int64(binary.BigEndian.Uint64(value)) }
