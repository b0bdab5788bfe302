package memory

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"synthbot/core"
)

const (
	probeEvery = 5 * time.Second
	probeLeast = 64 << 10 // bytes for which there must be room before writing is said to work again
	metaProbe  = "probe"
)

// room watches whether there is room on the disk. A write that finds none says
// so at once; from then on, since nobody may write any more, it tries by itself.
type room struct {
	db     *DB
	tell   func(bool)
	scarce chan struct{} // a token when a write found no room
	size   atomic.Int64  // of the largest of them
}

// failed takes note of a write that failed alone. The writer calls it.
func (r *room) failed(err error, size int) {
	if !errors.Is(err, core.ErrFull) {
		return
	}
	r.size.Store(max(int64(size), r.size.Load(), probeLeast)) // nobody but the writer raises it
	select {
	case r.scarce <- struct{}{}:
	default:
	}
}

// begin starts to watch.
func (r *room) begin(ctx context.Context) {
	r.db.work.Go(func() {
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
			r.size.Store(0)
			r.say(false)
		}
	})
}

func (r *room) say(full bool) {
	if full {
		r.db.log.Error("the disk is full; nothing new is taken until there is room", "file", r.db.file)
	} else {
		r.db.log.Info("there is room on the disk again", "file", r.db.file)
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
// room stays in the file.
func (r *room) probe(ctx context.Context) bool {
	err := r.db.write(ctx, &job{run: func(t *tx) error {
		return t.bucket(bucketMeta).Put([]byte(metaProbe), make([]byte, r.size.Load()))
	}})
	if errors.Is(err, core.ErrFull) {
		return false
	}
	if err == nil {
		err = r.db.write(ctx, &job{run: func(t *tx) error { return t.bucket(bucketMeta).Delete([]byte(metaProbe)) }})
	}
	select { // what failed before has been told
	case <-r.scarce:
	default:
	}
	return err == nil
}
