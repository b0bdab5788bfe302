package memory

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"synthbot/core"
)

// ride is how long a job that can wait waits for a transaction to ride in.
const ride = 100 * time.Millisecond

// job is something to write.
type job struct {
	// run writes. It may be called again, in another transaction, when what
	// shares the transaction with it fails.
	run func(*tx) error
	// publish, if set, tells the caller what run found out, once it is durable.
	publish func()
	// alone, instead of run, is called between two transactions.
	alone func() error
	name  func() string // what it is for; nil: as the context of write says
	size  int           // rough, in bytes; 0: it adds nothing
	ends  bool          // what has begun: it is written even while the disk is full
	rides bool          // with the next transaction, which it does not start for a while
	done  chan error
	taken bool // guarded by the queue
}

// queue holds the jobs that wait for the writer.
type queue struct {
	mu      sync.Mutex
	waiting []*job
	closed  bool
	wake    chan struct{} // holds one token while there is something to do
	ended   chan struct{}
}

func newQueue() *queue {
	return &queue{wake: make(chan struct{}, 1), ended: make(chan struct{})}
}

// add puts a job in line.
func (q *queue) add(j *job) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return core.ErrClosed
	}
	q.waiting = append(q.waiting, j)
	if j.rides {
		time.AfterFunc(ride, q.poke)
	} else {
		q.poke()
	}
	return nil
}

func (q *queue) poke() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// await returns when a job may wait, or after a while.
func (q *queue) await(patience time.Duration) {
	late := time.NewTimer(patience)
	defer late.Stop()
	select {
	case <-q.wake:
	case <-late.C:
	}
}

// take moves jobs into a group, as many as fit, and shuts it when one does not;
// closed tells that no more will come after these.
func (q *queue) take(g *groupCommit) (closed bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := 0
	for n < len(q.waiting) && g.fits(q.waiting[n]) {
		g.add(q.waiting[n])
		n++
	}
	q.waiting = slices.Delete(q.waiting, 0, n)
	g.shut = g.shut || len(q.waiting) > 0
	return q.closed && len(q.waiting) == 0
}

// withdraw takes a job back; false when the writer has it already.
func (q *queue) withdraw(j *job) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if j.taken {
		return false
	}
	q.waiting = slices.DeleteFunc(q.waiting, func(other *job) bool { return other == j })
	return true
}

func (q *queue) isClosed() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.closed
}

// length is the number of jobs that wait.
func (q *queue) length() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.waiting)
}

// close lets no more jobs in and waits until those that wait are written. It
// reports whether it was the first to do so.
func (q *queue) close() bool {
	q.mu.Lock()
	first := !q.closed
	q.closed = true
	q.mu.Unlock()
	q.poke()
	<-q.ended
	return first
}

// write has run called in a transaction and returns when that is durable, or
// run's own error. When ctx ends before the writer took the job, nothing of it
// is written; later ctx is not looked at.
func (db *DB) write(ctx context.Context, j *job) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if name, ok := ctx.Value(jobKey{}).(string); ok && j.name == nil {
		j.name = func() string { return name }
	}
	if db.room.full.Load() && j.size > 0 && !j.ends {
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
