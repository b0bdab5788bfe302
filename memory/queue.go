package memory

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"go.etcd.io/bbolt"

	"synthbot/core"
)

// maxDelay is how long a job that can wait waits for a transaction of others.
const maxDelay = 100 * time.Millisecond

// job is something to write.
type job struct {
	// run writes. It may be called again, in another transaction, when what
	// shares the transaction with it fails.
	run func(*tx) error
	// publish, if set, is called when what run wrote is durable.
	publish func()
	// exclusive, instead of run, is called between two transactions.
	exclusive func() error
	name      string // empty: that of the context of write
	size      int    // rough, in bytes; 0: it adds nothing
	finishing bool   // finishes what has begun: it is written even if the disk is full
	canWait   bool   // for the next transaction, up to maxDelay
	done      chan error
}

// queue holds the jobs that wait for the writer.
type queue struct {
	mu      sync.Mutex
	waiting []*job
	closed  bool
	wake    chan struct{} // holds one token while there is something to do
	ended   chan struct{}
}

// add puts a job in line.
func (q *queue) add(j *job) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return core.ErrClosed
	}
	q.waiting = append(q.waiting, j)
	if j.canWait {
		time.AfterFunc(maxDelay, func() { core.Notify(q.wake) })
	} else {
		core.Notify(q.wake)
	}
	return nil
}

// take moves jobs into a group, as many as fit, and seals it if one does not. closed reports
// that no more will come.
func (q *queue) take(g *groupCommit) (closed bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := 0
	for ; n < len(q.waiting); n++ {
		j := q.waiting[n]
		alone := j.exclusive != nil || len(g.jobs) > 0 && g.jobs[0].exclusive != nil
		if len(g.jobs) > 0 && (alone || len(g.jobs) == maxGroup || g.size+j.size > maxGroupBytes) {
			break
		}
		g.jobs, g.size = append(g.jobs, j), g.size+j.size
	}
	q.waiting = slices.Delete(q.waiting, 0, n)
	g.sealed = g.sealed || len(q.waiting) > 0
	return q.closed && len(q.waiting) == 0
}

// withdraw removes a job; false if the writer has it already.
func (q *queue) withdraw(j *job) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	i := slices.Index(q.waiting, j)
	if i < 0 {
		return false
	}
	q.waiting = slices.Delete(q.waiting, i, i+1)
	return true
}

// length is the number of jobs that wait.
func (q *queue) length() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.waiting)
}

// close accepts no more jobs and waits until the others are written. It reports whether it
// was the first call.
func (q *queue) close() bool {
	q.mu.Lock()
	first := !q.closed
	q.closed = true
	q.mu.Unlock()
	core.Notify(q.wake)
	<-q.ended
	return first
}

// update is write for a function that returns no error.
func (db *DB) update(ctx context.Context, run func(*tx)) error {
	return db.write(ctx, &job{run: func(t *tx) error {
		run(t)
		return nil
	}})
}

// updateAndView is update, and then a view without what is written later.
func updateAndView(ctx context.Context, db *DB, run func(*tx), f func(*view) error) error {
	var b *bbolt.Tx
	var handle *os.File
	var begin error
	err := db.write(ctx, &job{
		run:     func(t *tx) error { run(t); return nil },
		publish: func() { handle = db.file.handle; b, begin = db.file.bolt.Begin(false) },
	})
	if err = cmp.Or(err, begin); err != nil {
		return err
	}
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() { _ = b.Rollback() }() // of a view, it cannot fail
	return db.file.guard(func() error { return f(&view{tx: tx{Tx: b, db: db, now: db.clock()}, file: handle}) })
}

// write calls run in a transaction and returns when that is durable, or run's error. If ctx
// ends before the writer took the job, nothing is written; later ctx has no effect.
func (db *DB) write(ctx context.Context, j *job) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if j.name == "" {
		j.name, _ = ctx.Value(jobKey{}).(string)
	}
	if db.space.full.Load() && j.size > 0 && !j.finishing {
		return fmt.Errorf("%s: %w", db.file.name, core.ErrFull)
	}
	j.done = make(chan error, 1)
	if err := db.queue.add(j); err != nil {
		return err
	}
	select {
	case err := <-j.done:
		return err
	case <-ctx.Done():
	}
	if db.queue.withdraw(j) {
		return ctx.Err()
	}
	return <-j.done
}
