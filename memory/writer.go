package memory

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"time"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"synthbot/core"
)

// ErrFull is core's, which writes fail with while the disk is full. Reads go on, and so
// do writes as soon as there is room.
var ErrFull = core.ErrFull

// writer is the one goroutine that writes. It ends when the queue is closed and
// empty.
func (db *DB) writer() {
	defer close(db.queue.ended)
	debug.SetPanicOnFault(true)
	var crowd crowd
	for range db.queue.wake {
		for {
			crowd.gather(db.queue)
			jobs, closed := db.queue.take()
			start := time.Now()
			if len(jobs) > 0 {
				db.came = 0
				db.commit(jobs)
			}
			crowd.left(len(jobs), db.came, time.Since(start))
			if closed {
				db.leave()
				return
			}
			if len(jobs) == 0 {
				break
			}
		}
	}
}

// crowd remembers how many wrote together of late. Those whom a commit answered
// get the chance to come back before the next one begins: without it, they
// split in two halves that wait for each other's sync. Whoever writes alone
// never waits.
type crowd struct {
	size int
	took time.Duration
}

// left notes what the last commit carried, how many came meanwhile, and how long
// it took.
func (c *crowd) left(jobs, came int, took time.Duration) {
	c.size, c.took = max(jobs+came, c.size*3/4), took
	if jobs == 0 {
		c.size = 0
	}
}

// gather waits until as many are there again, for a fraction of what a commit
// takes at most. While they come, it only lets them pass; then it sleeps, since
// those who run on another processor would not be fetched from there otherwise.
func (c *crowd) gather(q *queue) {
	if c.size < 3 { // two are a place whose one turn ends while its next begins
		return
	}
	const patience = 8 // turns of others without a newcomer
	for seen, quiet := 0, 0; quiet < patience; quiet++ {
		runtime.Gosched()
		if n := q.length(); n > seen {
			seen, quiet = n, 0
		}
		if seen >= c.size {
			return
		}
	}
	q.await(c.size, min(c.took/2, 2*time.Millisecond))
}

// commit writes the jobs in one transaction. One that fails is taken out; when
// the transaction itself fails, each is tried alone.
func (db *DB) commit(jobs []*job) {
	if len(jobs) == 1 && jobs[0].alone != nil {
		jobs[0].done <- db.guard(jobs[0].alone)
		return
	}
	for len(jobs) > 0 {
		failed, err := db.try(jobs)
		switch {
		case err == nil:
			db.came = db.queue.length()
			for _, j := range jobs {
				if j.publish != nil {
					j.publish()
				}
				j.done <- nil
			}
			return
		case failed >= 0:
			jobs[failed].done <- err
			jobs = slices.Delete(jobs, failed, failed+1)
		case len(jobs) == 1:
			db.room.failed(err, jobs[0].size)
			jobs[0].done <- err
			return
		default:
			for _, j := range jobs {
				db.commit([]*job{j})
			}
			return
		}
	}
}

// try runs the jobs in one transaction. failed is the job that broke it, -1
// when it was none of them.
func (db *DB) try(jobs []*job) (failed int, err error) {
	failed = -1
	if err := db.mend(); err != nil {
		return failed, db.writeError(err)
	}
	id := 0
	var saved []uint64
	err = db.update(func(t *tx) error {
		id = t.ID()
		defer func() { saved = t.saved }()
		for i, j := range jobs {
			if err := db.guard(func() error { return j.run(t) }); err != nil {
				failed = i
				return err
			}
		}
		return nil
	})
	if failed < 0 && err != nil {
		err = db.settle(id, err)
	}
	if err == nil {
		db.meaning.saved(saved)
	}
	return failed, db.writeError(err)
}

// update is one read-write transaction. A panic outside of the jobs may leave
// bbolt's locks behind: after one, nothing is written any more.
func (db *DB) update(f func(*tx) error) error {
	if db.broken != nil {
		return db.broken
	}
	marked, returned := db.marked, false
	err := db.guard(func() error {
		err := db.bolt.Update(func(b *bbolt.Tx) error {
			t := &tx{Tx: b, db: db, now: db.clock(), floor: db.epochs.floor}
			if err := f(t); err != nil {
				return err
			}
			if err := t.mark(marked); err != nil {
				return err
			}
			return t.finish()
		})
		returned = true
		return err
	})
	if !returned {
		db.broken = err
	}
	db.marked = marked || err == nil
	return err
}

// mark notes in the file, with the first thing that is written, that it is in
// use.
func (t *tx) mark(marked bool) error {
	if marked {
		return nil
	}
	return t.bucket(bucketMeta).Delete([]byte(metaClean))
}

// settle decides what became of transaction id, whose commit failed with err.
// If its last page was written and only the sync of it failed, readers see the
// transaction already, and the pages that it gave up must not be used again
// before it is durable: the page is written once more.
func (db *DB) settle(id int, err error) error {
	seen := 0
	if view := db.view(context.Background(), func(v *view) error { seen = v.ID(); return nil }); view != nil || seen < id {
		return err
	}
	db.torn = id
	if again := db.mend(); again != nil {
		return err
	}
	return nil
}

// mend writes the meta page of a transaction whose sync failed again. Until
// that works nothing else may be written.
func (db *DB) mend() error {
	if db.torn == 0 {
		return nil
	}
	page := make([]byte, db.bolt.Info().PageSize)
	at := int64(db.torn%2) * int64(len(page))
	if _, err := db.handle.ReadAt(page, at); err != nil {
		return err
	}
	if _, err := db.handle.WriteAt(page, at); err != nil {
		return err
	}
	if err := db.bolt.Sync(); err != nil {
		return err
	}
	db.torn = 0
	return nil
}

// writeError names the file, and the kind where it is known. What a caller did
// wrong stays as it is.
func (db *DB) writeError(err error) error {
	switch {
	case err == nil, errors.Is(err, ErrBatch):
		return err
	case isFull(err):
		return fmt.Errorf("%s: %w: %w", db.file, ErrFull, err)
	}
	return fmt.Errorf("%s: %w", db.file, err)
}

// isFull recognises a lack of room, also where bbolt kept only the words.
func isFull(err error) bool {
	if errors.Is(err, berrors.ErrMaxSizeReached) {
		return true
	}
	for _, e := range []syscall.Errno{syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG} {
		if errors.Is(err, e) || strings.Contains(err.Error(), e.Error()) {
			return true
		}
	}
	return false
}

// guard turns a panic into an error. Inside of the store a panic means a page
// that is not what it should be.
func (db *DB) guard(f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			db.log.Error("the store panicked", "file", db.file, "panic", v, "stack", string(debug.Stack()))
			err = fmt.Errorf("%w: %v", core.ErrDamaged, v)
		}
	}()
	return f()
}
