package memory

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"synthbot/core"
	"synthbot/core/loop"
	"synthbot/memory/kv"
)

type writer struct {
	db        *DB
	watch     watch
	beforeJob func(*tx, *job) // see Options
	inUse     bool            // the file says that it is in use
}

// run writes until the queue is closed and empty, a group of jobs in each transaction.
func (w *writer) run() {
	defer close(w.db.queue.ended)
	debug.SetPanicOnFault(true)
	for range w.db.queue.wake {
		g := &groupCommit{db: w.db}
		closed := w.db.queue.take(g)
		for len(g.jobs) > 0 {
			w.watch.set(work{busy: true, onDisk: true})
			w.conclude(g, w.db.engine.Update(g.write))
		}
		if closed {
			w.markClean()
			return
		}
	}
}

// conclude handles the result of a group's transaction. After a success it reports to all jobs. A job that failed
// leaves the group, and the others are tried again. If the transaction itself failed, each job is tried alone.
func (w *writer) conclude(g *groupCommit, err error) {
	defer w.watch.set(work{})
	g.sealed = true
	err = w.db.engine.withName(err)
	switch {
	case err == nil:
		w.inUse = true
		w.db.embeds.noteSaved(g.saved)
		for _, j := range g.jobs {
			if j.publish != nil {
				j.publish()
			}
			j.done <- nil
		}
		g.jobs = nil
	case g.failed != nil:
		g.failed.done <- err
		g.jobs = slices.DeleteFunc(g.jobs, func(j *job) bool { return j == g.failed })
	case len(g.jobs) > 1:
		g.jobs, g.retryAlone = nil, g.jobs
	case !w.db.space.noteFailure(err, g.jobs[0]):
		g.jobs[0].done <- err
		g.jobs = nil
	}
	g.failed = nil
	if len(g.jobs) == 0 && len(g.retryAlone) > 0 {
		g.jobs, g.retryAlone = g.retryAlone[:1], g.retryAlone[1:]
	}
}

// transact runs a transaction outside of the queue. Only the writer may call it, or Open before the writer starts.
func (w *writer) transact(run func(*tx) error) error {
	err := w.db.engine.Update(func(b kv.Tx) error {
		t := newTx(w.db, b)
		if err := run(&t); err != nil {
			return err
		}
		return t.finish()
	})
	w.inUse = w.inUse || err == nil
	return err
}

const maxDelay = 100 * time.Millisecond

type job struct {
	// run writes. It may be called again, in another transaction, if another job in the first one fails.
	run       func(*tx) error
	prefetch  func(*tx, *reads) // nil, or lists what run will read
	publish   func()            // nil, or called when what run wrote is durable
	name      string            // "": see withJobName
	size      int               // roughly, in bytes; 0: it adds nothing
	finishing bool              // finishes what has begun: it is written even if the disk is full
	canWait   bool              // for the next transaction, up to maxDelay
	done      chan error
}

// Limits of one transaction.
const (
	maxGroup      = 1024
	maxGroupBytes = 16 << 20
)

type groupCommit struct {
	db         *DB
	jobs       []*job
	size       int      // of the jobs, in bytes
	sealed     bool     // no more jobs join
	retryAlone []*job   // to be tried one by one afterwards
	failed     *job     // in the latest transaction; nil: none of them
	saved      []uint64 // see tx
}

// write runs the jobs, and those that join meanwhile, in a transaction. The engine may call it again.
func (g *groupCommit) write(b kv.Tx) error {
	t, w, announced := newTx(g.db, b), g.db.writer, 0
	for i := 0; ; i++ {
		if i == len(g.jobs) && !g.sealed {
			runtime.Gosched() // so that the callers of the last transaction can queue their next jobs
			g.db.queue.take(g)
		}
		if i == len(g.jobs) {
			break
		}
		for ; announced < len(g.jobs); announced++ {
			j := g.jobs[announced]
			if j.prefetch != nil {
				prefetch(&t, func(r *reads) { j.prefetch(&t, r) })
			}
		}
		g.failed = g.jobs[i]
		if err := w.runJob(&t, g.failed); err != nil {
			return err
		}
		g.failed = nil // a failure from here on is the transaction's
	}
	g.saved = t.saved
	w.watch.set(work{busy: true, onDisk: true})
	return t.finish()
}

func (w *writer) runJob(t *tx, j *job) (err error) {
	defer w.db.engine.recoverPanic(debug.SetPanicOnFault(true), &err)
	if t.now.Before(w.watch.refused[j.name]) {
		return fmt.Errorf("%s: %w", j.name, ErrRefused)
	}
	w.watch.set(work{job: j.name, busy: true})
	w.beforeJob(t, j)
	if err := j.run(t); err != nil {
		return err
	}
	return t.err
}

type queue struct {
	mu      sync.Mutex
	waiting []*job
	closed  bool
	wake    chan struct{} // holds one token while there is something to do
	ended   chan struct{}
}

func (q *queue) add(j *job) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return core.ErrClosed
	}
	q.waiting = append(q.waiting, j)
	if j.canWait {
		time.AfterFunc(maxDelay, func() { loop.Notify(q.wake) })
	} else {
		loop.Notify(q.wake)
	}
	return nil
}

// take moves jobs into a group, as many as fit. closed reports that no more will come.
func (q *queue) take(g *groupCommit) (closed bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := 0
	for ; n < len(q.waiting); n++ {
		j := q.waiting[n]
		if len(g.jobs) > 0 && (len(g.jobs) == maxGroup || g.size+j.size > maxGroupBytes) {
			break
		}
		g.jobs, g.size = append(g.jobs, j), g.size+j.size
	}
	q.waiting = slices.Delete(q.waiting, 0, n)
	if len(q.waiting) > 0 {
		loop.Notify(q.wake)
	}
	return q.closed && len(q.waiting) == 0
}

// withdraw removes a job; false if the writer has it already.
func (q *queue) withdraw(j *job) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	before := len(q.waiting)
	q.waiting = slices.DeleteFunc(q.waiting, func(other *job) bool { return other == j })
	return len(q.waiting) < before
}

// close accepts no more jobs and waits until the others are written. It reports whether it was the first call.
func (q *queue) close() bool {
	q.mu.Lock()
	first := !q.closed
	q.closed = true
	q.mu.Unlock()
	loop.Notify(q.wake)
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

// read is view for a function that returns no error.
func (db *DB) read(ctx context.Context, f func(*view)) error {
	return db.view(ctx, func(v *view) error {
		f(v)
		return nil
	})
}

// updateAndView calls run in a transaction, and then f in a view of its result.
func updateAndView(ctx context.Context, db *DB, run func(*tx), f func(*view)) (err error) {
	var b kv.View
	var begin error
	err = db.write(ctx, &job{run: func(t *tx) error { run(t); return nil }, publish: func() {
		defer db.engine.recoverPanic(debug.SetPanicOnFault(true), &begin)
		b, begin = db.engine.Begin(ctx)
		if begin == nil { // the first read takes the snapshot
			b.Bucket(bucketMeta).Get([]byte(metaSchema))
		}
	}})
	if b != nil {
		defer b.End()
	}
	if err = cmp.Or(err, begin); err != nil {
		return err
	}
	defer db.engine.recoverPanic(debug.SetPanicOnFault(true), &err)
	f(&view{tx: newTx(db, b)})
	return nil
}

// write returns when what the job wrote is durable. If ctx ends before the writer took it, nothing is written.
func (db *DB) write(ctx context.Context, j *job) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if j.name == "" {
		j.name, _ = ctx.Value(jobKey{}).(string)
	}
	if db.space.full.Load() && j.size > 0 && !j.finishing {
		return fmt.Errorf("%s: %w", db.engine.name, core.ErrFull)
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
