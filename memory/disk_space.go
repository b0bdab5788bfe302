package memory

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"os"
	"sync/atomic"
	"time"

	"synthbot/core"
)

const (
	probeEvery = 5 * time.Second
	probeLeast = 64 << 10 // bytes for which there must be room before writing is said to work again
	metaProbe  = "probe"
)

// The reserve is a file beside the database that takes room on the disk: it is
// given up when there is none left for what has begun.
const (
	reserveSuffix = ".reserve"
	reserveSize   = 1 << 20
)

// room watches whether there is room on the disk. A write that finds none says
// so at once; from then on, since nobody may write any more, it tries by itself.
type room struct {
	db     *DB
	tell   func(bool)
	scarce chan struct{} // a token when a write found no room
	full   atomic.Bool   // nothing is written but what ends what has begun
	size   atomic.Int64  // of the largest write that found no room
}

// failed takes note of a write that failed alone. It reports whether there is room for
// it now. The writer calls it.
func (r *room) failed(err error, j *job) (again bool) {
	if !errors.Is(err, core.ErrFull) {
		return false
	}
	r.full.Store(true)
	r.size.Store(max(int64(j.size), r.size.Load(), probeLeast)) // only the writer raises it
	select {
	case r.scarce <- struct{}{}:
	default:
	}
	return j.ends && os.Remove(r.reserve()) == nil
}

func (r *room) reserve() string { return r.db.file.name + reserveSuffix }

// keep makes sure that there is a reserve. Its content is random: a file system may
// need no room for zeros.
func (r *room) keep() error {
	if info, err := os.Stat(r.reserve()); err == nil && info.Size() == reserveSize {
		return nil
	}
	f, err := os.OpenFile(r.reserve(), os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = io.CopyN(f, rand.Reader, reserveSize)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		err = errors.Join(err, os.Remove(r.reserve()))
	}
	return err
}

// begin starts to watch.
func (r *room) begin(ctx context.Context) {
	r.db.work.Go(func() {
		if err := r.keep(); err != nil {
			r.db.log.Warn("no room is kept for a full disk", "file", r.reserve(), "err", err)
		}
		for {
			select {
			case <-ctx.Done():
				return
			case <-r.scarce:
			}
			r.say(true)
			if !r.await(ctx) {
				return
			}
			r.say(false)
		}
	})
}

func (r *room) say(full bool) {
	if full {
		r.db.log.Error("the disk is full; nothing new is taken until there is room", "file", r.db.file.name)
	} else {
		r.db.log.Info("there is room on the disk again", "file", r.db.file.name)
	}
	if r.tell != nil {
		r.tell(full)
	}
}

// await returns when a write works again; false when ctx ended.
func (r *room) await(ctx context.Context) bool {
	tick := time.NewTicker(probeEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-tick.C:
		}
		if r.probe(ctx) {
			return true
		}
	}
}

// probe writes as much as could not be written, and takes it away again: the
// room stays in the file. There must be room for the reserve, too; then everything
// is written again.
func (r *room) probe(ctx context.Context) bool {
	err := r.db.write(ctx, &job{run: func(t *tx) error {
		t.bucket(bucketMeta).Put([]byte(metaProbe), make([]byte, r.size.Load()))
		return nil
	}})
	if errors.Is(err, core.ErrFull) {
		return false
	}
	if err == nil {
		err = r.db.write(ctx, &job{run: func(t *tx) error {
			t.bucket(bucketMeta).Delete([]byte(metaProbe))
			return nil
		}})
	}
	if err == nil {
		err = r.keep()
	}
	select { // what failed before was reported
	case <-r.scarce:
	default:
	}
	if err == nil {
		r.size.Store(0)
		r.full.Store(false)
	}
	return err == nil
}
