package memory

import (
	"context"
	"errors"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"time"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"
)

// writer is the one goroutine that writes. Its fields are its own.
type writer struct {
	db      *DB
	watch   watch
	crowd   crowd           // who writes together
	fault   func(*tx, *job) // see Options; the transaction is nil between two
	changed changes         // while the file is compacted
	torn    int             // the transaction whose last sync failed; 0: none
	marked  bool            // the file says that it is in use
	broken  error           // why nothing can be written any more
}

// run writes until the queue is closed and empty.
func (w *writer) run() {
	defer close(w.db.queue.ended)
	debug.SetPanicOnFault(true)
	for range w.db.queue.wake {
		for {
			g := &groupCommit{shut: !w.crowd.many()}
			closed := w.db.queue.take(g)
			some := len(g.jobs) > 0 || w.join(g)
			if some {
				w.commit(g)
			}
			if closed {
				w.leave()
				return
			}
			if !some {
				w.crowd = crowd{}
				break
			}
		}
	}
}

// commit writes the jobs of a group in one transaction. One that fails is taken
// out; when the transaction itself fails, each is tried alone.
func (w *writer) commit(g *groupCommit) {
	defer w.watch.rest()
	j := g.jobs[0]
	if j.alone != nil {
		err := w.watch.enter(j, w.db.clock())
		if err == nil {
			err = w.db.file.guard(func() error { return w.runJob(nil, j) })
		}
		j.done <- err
		return
	}
	start := time.Now()
	for len(g.jobs) > 0 {
		failed, err := w.try(g)
		g.shut = true
		switch {
		case err == nil:
			w.crowd = w.crowd.after(len(g.jobs)+w.db.queue.length(), time.Since(start)-g.waited)
			g.publish()
			return
		case failed >= 0:
			g.jobs[failed].done <- err
			g.jobs = slices.Delete(g.jobs, failed, failed+1)
		case len(g.jobs) == 1:
			if w.db.room.failed(err, g.jobs[0]) {
				continue
			}
			g.jobs[0].done <- err
			return
		default:
			for _, j := range g.jobs {
				w.commit(&groupCommit{jobs: []*job{j}, shut: true})
			}
			return
		}
	}
}

// try runs the jobs in one transaction, and those that join meanwhile.
// failed is the job that broke it, -1 when it was none of them.
func (w *writer) try(g *groupCommit) (failed int, err error) {
	failed = -1
	if err := w.syncAgain(); err != nil {
		return failed, w.db.file.writeError(err)
	}
	id := 0
	var saved []uint64
	err = w.update(func(t *tx) error {
		id = t.ID()
		defer func() { saved = t.saved }()
		for i := 0; i < len(g.jobs) || w.join(g); i++ {
			err := w.watch.enter(g.jobs[i], t.now)
			if err == nil {
				err = w.db.file.guard(func() error { return w.runJob(t, g.jobs[i]) })
			}
			if err != nil {
				failed = i
				return err
			}
		}
		w.watch.waitForDisk()
		return nil
	})
	if failed < 0 && err != nil {
		err = w.settle(id, err)
	}
	if err == nil {
		w.db.meaning.saved(saved)
	}
	return failed, w.db.file.writeError(err)
}

// runJob runs a job in a transaction, or with none between two of them.
func (w *writer) runJob(t *tx, j *job) error {
	if w.fault != nil {
		w.fault(t, j)
	}
	if t == nil {
		return j.alone()
	}
	if err := j.run(t); err != nil {
		return err
	}
	return t.err
}

// update is one read-write transaction. A panic outside of the jobs may leave
// bbolt's locks behind: after one, nothing is written any more.
func (w *writer) update(f func(*tx) error) error {
	if w.broken != nil {
		return w.broken
	}
	marked, returned := w.marked, false
	err := w.db.file.guard(func() error {
		err := w.db.file.bolt.Update(func(b *bbolt.Tx) error {
			t := &tx{Tx: b, db: w.db, changed: w.changed, now: w.db.clock(), floor: w.db.epochs.floor}
			if err := f(t); err != nil {
				return err
			}
			t.mark(marked)
			t.finish()
			return t.err
		})
		returned = true
		return err
	})
	if !returned {
		w.broken = err
	}
	w.marked = marked || err == nil
	return err
}

// mark notes in the file, with the first thing that is written, that it is in
// use, and its name.
func (t *tx) mark(marked bool) {
	if !marked {
		t.bucket(bucketMeta).Delete([]byte(metaClean))
		t.bucket(bucketMeta).Put([]byte(metaName), []byte(t.db.file.installation))
	}
}

// settle decides what became of transaction id, whose commit failed with err.
// If its last page was written and only the sync of it failed, readers see the
// transaction already, and the pages that it gave up must not be used again
// before it is durable: the page is written once more.
func (w *writer) settle(id int, err error) error {
	seen := 0
	viewErr := w.db.view(context.Background(), func(v *view) error { seen = v.ID(); return nil })
	if viewErr != nil || seen < id {
		return err
	}
	w.torn = id
	if w.syncAgain() != nil {
		return err
	}
	return nil
}

// syncAgain writes again the meta page of a transaction whose sync failed. Until
// that works nothing else may be written.
func (w *writer) syncAgain() error {
	if w.torn == 0 {
		return nil
	}
	page := make([]byte, w.db.file.bolt.Info().PageSize)
	at := int64(w.torn%2) * int64(len(page))
	if _, err := w.db.file.handle.ReadAt(page, at); err != nil {
		return err
	}
	if _, err := w.db.file.handle.WriteAt(page, at); err != nil {
		return err
	}
	if err := w.db.file.bolt.Sync(); err != nil {
		return err
	}
	w.torn = 0
	return nil
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
