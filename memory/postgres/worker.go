package postgres

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
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
	heldTenths    = 7 // tenths of a lease for which a renewal counts by the clock of this process
	createTries   = 20
	registerPause = 200 * time.Millisecond
	registerSlack = time.Second // how much longer than a lease a new worker waits for a command
)

const (
	createWorkers = `create table if not exists worker ` +
		`(id bigint generated always as identity primary key, name text not null, until timestamptz not null, ` +
		`barrier bigint not null default 0)`
	lockWorkers  = `lock table worker, part in share row exclusive mode`
	listWorkers  = `select id, name, until > clock_timestamp() from worker order by id`
	pruneWorkers = `delete from worker where until <= clock_timestamp()`
	insertWorker = `insert into worker (name, until) ` +
		`values ($1, clock_timestamp() + $2::bigint * interval '1 ms') returning id`
	// renewWorker renews an expired lease, too, but not one that endWorker has ended: the server may still execute
	// a renewal that this process has cancelled.
	renewWorker = `update worker set until = clock_timestamp() + $2::bigint * interval '1 ms' ` +
		`where id = $1 and isfinite(until) returning barrier`
	endWorker = `update worker set until = '-infinity' where id = $1`
	endParts  = `delete from part where worker = $1`
	// checkWorker locks the worker's own row. It fails with divisionByZero if the lease has expired or the
	// row is gone, or if there is a barrier that this process has not handled yet. It also sets how long
	// the transaction may be idle.
	checkWorker = `select 1 / count(*), set_config('idle_in_transaction_session_timeout', $3, true) ` +
		`from (select id from worker ` +
		`where id = $1 and until > clock_timestamp() and barrier = $2 for key share) as mine`
	raiseBarrier = `update worker set barrier = barrier + 1 where id <> $1`
)

// worker is this process as one of those that write to the database. It is safe for concurrent use,
// except for register.
type worker struct {
	name   string
	lease  time.Duration
	newest int64 // with JoinOnWrite: the id of the newest worker when the database was opened

	fenced atomic.Bool // another worker has taken over

	id       atomic.Int64 // 0: not registered
	handling sync.Mutex   // held while a barrier is handled
	barrier  atomic.Int64 // the last one that was handled
	renewed  atomic.Value // a time.Time: when the last successful renewal began; zero: the lease is overdue

	stop    context.CancelFunc // ends the renewals; set by register
	running sync.WaitGroup
}

// unrenewed returns how long ago the last successful renewal began, including time in which the machine slept.
func (w *worker) unrenewed() time.Duration {
	renewed := w.renewed.Load().(time.Time)
	return max(time.Since(renewed), time.Now().Round(0).Sub(renewed.Round(0)))
}

// overdue reports whether the lease may have expired, by the clock of this process.
func (w *worker) overdue() bool { return w.unrenewed() > w.lease*heldTenths/10 }

// claim makes sure that this process may write: it registers the worker or renews an overdue lease.
func (db *DB) claim(ctx context.Context) error {
	w := db.worker
	switch {
	case w.fenced.Load():
		return core.ErrFenced
	case w.id.Load() == 0:
		return db.register(ctx)
	case w.overdue():
		_, err := db.renew(ctx)
		return err
	}
	return nil
}

// registerPatiently registers the worker. While another process must be alone, it retries for a little
// longer than the lease.
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

// register adds this process to the workers. It deletes workers with expired leases, and waits for their transactions.
// The error wraps core.ErrLocked if another worker must be alone, or if this one must be and others run.
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
		{sql: pruneWorkers}, {sql: pruneParts}, {insertWorker, params},
	})
	if err != nil {
		return err
	}
	id := numberOf(all[2].Rows[0][0])
	last := []statement{{sql: "commit"}}
	if db.o.JoinOnWrite || db.o.SoleWorker {
		last = slices.Insert(last, 0, storeOwnership(exclusive, id, true))
	}
	if _, err := send(ctx, conn, last); err != nil {
		return err
	}
	w.renewed.Store(began)
	w.id.Store(id)
	background, stop := context.WithCancel(context.Background())
	w.stop = stop
	w.running.Go(func() { db.keepRenewing(background) })
	if !db.o.JoinOnWrite {
		w.running.Go(func() { db.listen(background) })
	}
	return nil
}

// mayRegister returns an error if another worker must be alone, or if this one must be and others run. With
// JoinOnWrite, it also does if a worker has run since the database was opened: what was read may be outdated.
func (db *DB) mayRegister(workers, parts [][][]byte) error {
	alone := make(map[int64]bool)
	for _, row := range parts {
		if string(row[0]) == exclusive {
			alone[numberOf(row[1])] = true
		}
	}
	for _, row := range workers {
		id, name, lives := numberOf(row[0]), row[1], row[2][0] != 0
		switch {
		case lives && db.o.JoinOnWrite:
			return fmt.Errorf("%w: worker %q runs with it; run this command on a machine where a bot runs, "+
				"which then executes it, or stop all bots", core.ErrLocked, name)
		case lives && db.o.SoleWorker:
			return fmt.Errorf("%w: worker %q runs with it; stop it", core.ErrLocked, name)
		case lives && alone[id]:
			return fmt.Errorf("%w: a command writes to it on %q; wait until it has finished", core.ErrLocked, name)
		case db.o.JoinOnWrite && id > db.worker.newest:
			return fmt.Errorf("worker %q has used the database meanwhile; run the command again", name)
		}
	}
	return nil
}

// keepRenewing renews the lease and divides the parts, until ctx ends or another worker has taken over.
func (db *DB) keepRenewing(ctx context.Context) {
	tick := time.NewTicker(db.worker.lease / renewals)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-db.parts.recheck:
		}
		released := db.parts.released.Load()
		now, err := db.renew(ctx)
		if err == nil && !db.o.JoinOnWrite {
			err = db.balanceParts(ctx, released, now)
		}
		away := isAway(err)
		if errors.Is(err, core.ErrFenced) {
			return
		}
		if err == nil {
			db.setAway(nil, false)
		} else if !away && !isConflict(err) && ctx.Err() == nil {
			db.log.Warn("lease not renewed", "file", db.name, "err", err)
		}
		if away && db.worker.overdue() {
			db.parts.pause()
		}
		if away && db.worker.unrenewed() > patience {
			db.pool.breakUsed()
			db.setAway(err, true)
		}
	}
}

// renew renews the lease, even an expired one. If another worker has taken over, the error wraps
// core.ErrFenced. It returns the state of all workers and parts.
func (db *DB) renew(ctx context.Context) (snapshot, error) {
	ctx, cancel := context.WithTimeout(ctx, db.worker.lease/2)
	defer cancel()
	conn, _, err := db.pool.take(ctx)
	if errors.Is(err, context.DeadlineExceeded) { // all connections are in use and stuck
		err = &awayError{err}
	}
	if err != nil {
		return snapshot{}, err
	}
	defer db.pool.put(conn)
	began, w := time.Now(), db.worker
	params := [][]byte{long(w.id.Load()), long(w.lease.Milliseconds())}
	all, err := send(ctx, conn, []statement{
		{renewWorker, params}, {sql: listWorkers}, {sql: listParts},
	})
	switch {
	case err != nil && conn.IsClosed():
		db.pool.closeIdle()
		return snapshot{}, &awayError{err}
	case err != nil:
		return snapshot{}, err
	case len(all[0].Rows) == 0: // another worker has taken over
		if !w.fenced.Swap(true) {
			db.o.OnFenced(fmt.Errorf("%s: %w", db.name, core.ErrFenced))
		}
		return snapshot{}, core.ErrFenced
	}
	w.renewed.Store(began)
	if err := db.handleBarrier(numberOf(all[0].Rows[0][0])); err != nil {
		return snapshot{}, err
	}
	return newSnapshot(all[1].Rows, all[2].Rows), nil
}

// handleBarrier calls OnBarrier unless this barrier was handled already.
func (db *DB) handleBarrier(barrier int64) error {
	w := db.worker
	w.handling.Lock()
	defer w.handling.Unlock()
	if w.barrier.Load() == barrier {
		return nil
	}
	if err := db.o.OnBarrier(); err != nil {
		return err
	}
	w.barrier.Store(barrier)
	return nil
}

// resign stops the renewals, ends the lease, so that other workers need not wait until it expires, and deletes the
// marker of the last transaction.
func (db *DB) resign() {
	w := db.worker
	if w.stop == nil {
		return
	}
	w.stop()
	w.running.Wait()
	me := [][]byte{long(w.id.Load())}
	// If this fails, the lease expires by itself, and a marker that stays does no harm.
	_, _ = db.ask(context.Background(), statement{endWorker, me}, statement{endParts, me}, hint(hintParts),
		statement{deleteAll, [][]byte{list([][]byte{[]byte(db.marker)})}})
}

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
	return errors.New("the tables kv, worker and part could not be created")
}

func long(n int64) []byte { return binary.BigEndian.AppendUint64(nil, uint64(n)) }

func numberOf(value []byte) int64 { return int64(binary.BigEndian.Uint64(value)) }
