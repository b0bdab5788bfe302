package memory

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"sync/atomic"
	"time"

	"synthbot/core"
	"synthbot/core/loop"
	"synthbot/memory/bolt"
)

const (
	probePause = 5 * time.Second
	minProbe   = 64 << 10 // bytes that must be free before writing works again
	metaProbe  = "probe"
)

// The reserve is a file beside the database that is deleted when the disk is full, so that
// what has begun can be finished.
const (
	reserveSuffix = ".reserve"
	reserveSize   = 1 << 20
)

// diskSpace handles a full disk: after a write found no space, step tries regularly whether writing works again.
type diskSpace struct {
	db       *DB
	onFull   func(bool)
	failures chan struct{} // holds a token after a write found no space
	full     atomic.Bool   // only jobs with finishing are written
	size     atomic.Int64  // of the largest write that found no space
	reserved bool          // step has tried to create the reserve
	tried    time.Time     // when step last tried to write, or reported a full disk; zero: the disk is not full
}

// noteFailure is called by the writer after a job failed in a transaction of its own. It reports whether it
// deleted the reserve, so that the job can be tried again.
func (r *diskSpace) noteFailure(err error, j *job) (again bool) {
	if !errors.Is(err, core.ErrFull) {
		return false
	}
	r.full.Store(true)
	r.size.Store(max(int64(j.size), r.size.Load(), minProbe)) // only the writer raises it
	loop.Notify(r.failures)
	return j.finishing && os.Remove(r.reserve()) == nil
}

func (r *diskSpace) reserve() string { return r.db.engine.file + reserveSuffix }

// makeReserve creates the reserve if it is missing. Its content is random: a file system may store zeros in no space.
func (r *diskSpace) makeReserve() error {
	if r.db.engine.remote { // the reserve is for a file
		return nil
	}
	info, err := os.Lstat(r.reserve())
	switch {
	case err == nil && !info.Mode().IsRegular(): // it may be a link to another file
		_ = os.Remove(r.reserve())
	case err == nil && info.Size() == reserveSize:
		return nil
	}
	f, err := os.OpenFile(r.reserve(), os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = io.CopyN(f, rand.NewChaCha8([32]byte{}), reserveSize)
	return errors.Join(err, f.Sync(), f.Close(), bolt.KeepOwner(r.reserve(), r.db.engine.file))
}

// step creates the reserve, reports a full disk, and tries to write until that works again.
// It returns when to go on; see loop.Repeat.
func (r *diskSpace) step(ctx context.Context) time.Duration {
	if !r.reserved {
		r.reserved = true
		if err := r.makeReserve(); err != nil {
			r.db.log.Warn("the reserve for a full disk cannot be written", "file", r.reserve(), "err", err)
		}
	}
	wait := time.Until(r.tried.Add(probePause))
	switch {
	case !r.full.Load():
		return -1
	case r.tried.IsZero():
		r.db.log.Error("the disk is full; nothing new is accepted until there is space", "file", r.db.engine.name)
		r.onFull(true)
	case wait > 0:
		return wait
	case r.probe(ctx):
		r.tried = time.Time{}
		r.db.log.Info("the disk has space again", "file", r.db.engine.name)
		r.onFull(false)
		return 0 // it may have filled again
	}
	r.tried = time.Now()
	return probePause
}

// probe writes as much as found no space, deletes it, which leaves room in the file, and restores the reserve.
func (r *diskSpace) probe(ctx context.Context) bool {
	write := func(t *tx) { t.bucket(bucketMeta).Put([]byte(metaProbe), make([]byte, r.size.Load())) }
	drop := func(t *tx) { t.bucket(bucketMeta).Delete([]byte(metaProbe)) }
	if r.db.update(ctx, write) != nil || r.db.update(ctx, drop) != nil || r.makeReserve() != nil {
		return false
	}
	r.size.Store(0)
	r.full.Store(false)
	return true
}
