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

	"synthbot/core"
)

// writer is the one goroutine that writes.
type writer struct {
	db    *DB
	watch watch
	// recentWriters is how many jobs shared a commit of late. Only from three on does a
	// commit wait for more: two are one place whose turn ends while its next begins.
	recentWriters int
	took          time.Duration   // the last commit
	fault         func(*tx, *job) // see Options; the transaction is nil between two
	changed       changes         // while the file is compacted
	unsynced      int             // the transaction whose last sync failed; 0: none
	inUse         bool            // the file says that it is in use
	broken        error           // why nothing can be written any more
}

// run writes until the queue is closed and empty.
func (w *writer) run() {
	defer close(w.db.queue.ended)
	debug.SetPanicOnFault(true)
	for range w.db.queue.wake {
		for {
			g := &groupCommit{sealed: w.recentWriters < 3}
			closed := w.db.queue.take(g)
			some := len(g.jobs) > 0 || w.join(g)
			if some {
				w.commit(g)
			}
			if closed {
				w.markClean()
				return
			}
			if !some {
				w.recentWriters = 0
				break
			}
		}
	}
}

// commit writes the jobs of a group in one transaction. A job that fails is taken out; if
// the transaction itself fails, each job is tried alone.
func (w *writer) commit(g *groupCommit) {
	defer w.watch.note(work{})
	j := g.jobs[0]
	if j.exclusive != nil {
		err := w.watch.startJob(j, w.db.clock())
		if err == nil {
			err = w.db.file.guard(func() error {
				w.fault(nil, j)
				return j.exclusive()
			})
		}
		j.done <- err
		return
	}
	start := time.Now()
	for len(g.jobs) > 0 {
		failed, err := w.try(g)
		g.sealed = true
		switch {
		case err == nil:
			w.recentWriters = max(len(g.jobs)+w.db.queue.length(), w.recentWriters*3/4)
			w.took = time.Since(start) - g.waited
			for _, j := range g.jobs {
				if j.publish != nil {
					j.publish()
				}
				j.done <- nil
			}
			return
		case failed >= 0:
			g.jobs[failed].done <- err
			g.jobs = slices.Delete(g.jobs, failed, failed+1)
		case len(g.jobs) == 1:
			if w.db.space.noteFailure(err, g.jobs[0]) {
				continue
			}
			g.jobs[0].done <- err
			return
		default:
			for _, j := range g.jobs {
				w.commit(&groupCommit{jobs: []*job{j}, sealed: true})
			}
			return
		}
	}
}

// try runs the jobs in one transaction, and those that join meanwhile. failed is the job
// that failed, -1 if it was none of them.
func (w *writer) try(g *groupCommit) (failed int, err error) {
	failed = -1
	if err := w.syncAgain(); err != nil {
		return failed, w.db.file.writeError(err)
	}
	id := 0
	var saved []uint64
	err = w.transact(func(t *tx) error {
		id = t.ID()
		defer func() { saved = t.saved }()
		for i := 0; i < len(g.jobs) || w.join(g); i++ {
			err := w.watch.startJob(g.jobs[i], t.now)
			if err == nil {
				err = w.db.file.guard(func() error {
					w.fault(t, g.jobs[i])
					if err := g.jobs[i].run(t); err != nil {
						return err
					}
					return t.err
				})
			}
			if err != nil {
				failed = i
				return err
			}
		}
		w.watch.note(work{busy: true, slow: true})
		return nil
	})
	if failed < 0 && err != nil {
		err = w.resolveCommit(id, err)
	}
	if err == nil {
		w.db.embeds.saved(saved)
	}
	return failed, w.db.file.writeError(err)
}

// transact is one read-write transaction. If it panics outside of the jobs, bbolt's locks
// may be held for ever: then nothing is written any more.
func (w *writer) transact(f func(*tx) error) error {
	if w.broken != nil {
		return w.broken
	}
	marked, returned := w.inUse, false
	err := w.db.file.guard(func() error {
		err := w.db.file.bolt.Update(func(b *bbolt.Tx) error {
			t := &tx{Tx: b, db: w.db, changed: w.changed, now: w.db.clock(), floor: w.db.epochs.floor}
			if err := f(t); err != nil {
				return err
			}
			if !marked { // the first write stores that the file is in use, and its name
				t.bucket(bucketMeta).Delete([]byte(metaClean))
				t.bucket(bucketMeta).Put([]byte(metaName), []byte(w.db.file.installation))
			}
			t.finish()
			return t.err
		})
		returned = true
		return err
	})
	if !returned {
		w.broken = err
	}
	w.inUse = marked || err == nil
	return err
}

// resolveCommit decides about transaction id, whose commit failed with err. If only the sync
// of its last page failed, readers see the transaction already, and the pages that it freed
// must not be used before it is durable: the page is written again.
func (w *writer) resolveCommit(id int, err error) error {
	seen := 0
	viewErr := w.db.view(context.Background(), func(v *view) error { seen = v.ID(); return nil })
	if viewErr != nil || seen < id {
		return err
	}
	w.unsynced = id
	if w.syncAgain() != nil {
		return err
	}
	return nil
}

// syncAgain writes the meta page of a transaction whose sync failed again. Until that works,
// nothing else may be written.
func (w *writer) syncAgain() error {
	if w.unsynced == 0 {
		return nil
	}
	page := make([]byte, w.db.file.bolt.Info().PageSize)
	at := int64(w.unsynced%2) * int64(len(page))
	if _, err := w.db.file.handle.ReadAt(page, at); err != nil {
		return err
	}
	if _, err := w.db.file.handle.WriteAt(page, at); err != nil {
		return err
	}
	if err := w.db.file.bolt.Sync(); err != nil {
		return err
	}
	w.unsynced = 0
	return nil
}

// isFull reports whether an error means a full disk, also if bbolt kept only its text.
func isFull(err error) bool {
	if errors.Is(err, berrors.ErrMaxSizeReached) {
		return true
	}
	for _, e := range []syscall.Errno{syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG} {
		if strings.Contains(err.Error(), e.Error()) {
			return true
		}
	}
	return false
}

// Limits of one transaction.
const (
	maxGroup      = 1024
	maxGroupBytes = 16 << 20
)

// groupCommit is the jobs of one transaction.
type groupCommit struct {
	jobs   []*job
	size   int           // of the jobs, in bytes
	sealed bool          // no more jobs join
	waited time.Duration // for more jobs
}

// join adds jobs to the group, whose transaction already runs. It waits until there are as
// many as of late, for a fraction of a commit at most. Without it, callers that write again
// and again would split in two groups that wait for each other's sync.
func (w *writer) join(g *groupCommit) bool {
	patience := min(w.took/2, 2*time.Millisecond)
	for before := len(g.jobs); !g.sealed && before < w.recentWriters; {
		closed := w.db.queue.take(g)
		if len(g.jobs) > before {
			return true
		}
		if closed {
			core.Notify(w.db.queue.wake) // so that run, too, finds it closed
			break
		}
		if g.waited >= patience {
			break
		}
		start := time.Now()
		select {
		case <-w.db.queue.wake:
		case <-time.After(patience - g.waited):
		}
		g.waited += time.Since(start)
	}
	g.sealed = true
	return false
}
