package memory

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"slices"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"synthbot/core"
)

// View implements core.Store. Within f, no other View may begin and nothing may be
// committed: both could wait for this one to end. A panic of f becomes an error.
func (db *DB) View(ctx context.Context, f func(core.View) error) error {
	if db.queue.isClosed() {
		return core.ErrClosed
	}
	return db.view(ctx, func(v *view) (err error) {
		defer func() {
			p := recover()
			if p != nil {
				db.log.Error("a view panicked", "file", db.file.name, "panic", p, "stack", string(debug.Stack()))
				err = fmt.Errorf("view: panic: %v", p)
			}
		}()
		return f(v)
	})
}

// view is View for this package. After a panic, or if the disk cannot read a page, the error
// wraps core.ErrDamaged.
func (db *DB) view(ctx context.Context, f func(*view) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	for {
		bolt, handle := db.file.current()
		err := db.file.guard(func() error {
			return bolt.View(func(b *bbolt.Tx) error {
				v := &view{tx: tx{Tx: b, db: db, now: db.clock()}, file: handle}
				defer func() { v.ended = true }()
				return f(v)
			})
		})
		if !errors.Is(err, berrors.ErrDatabaseNotOpen) {
			return err
		}
		now, _ := db.file.current()
		if now == bolt {
			return core.ErrClosed
		}
	}
}

// view is a core.View.
type view struct {
	tx
	file  *os.File
	ended bool
}

var errEnded = errors.New("this view has ended")

// read calls f for the place to which a path leads. If a broken page makes bbolt panic, the
// file is damaged, and the caller is not at fault.
func (v *view) read(path core.Path, f func(place)) error {
	if v.ended {
		return errEnded
	}
	err := v.db.file.guard(func() error {
		f(v.resolve(path))
		return nil
	})
	if err != nil {
		return fmt.Errorf("%s: %w", v.db.file.name, err)
	}
	return nil
}

func (v *view) Head(path core.Path) (h core.Head, err error) {
	err = v.read(path, func(p place) {
		stored, _ := v.readHead(p.key)
		h = stored.of(p.path)
	})
	return h, err
}

func (h head) of(path core.Path) core.Head {
	return core.Head{Path: path, Last: h.last, Count: h.count, Answered: h.answered, Time: h.time, Private: h.private}
}

func (v *view) Places(root core.Path) (heads []core.Head, err error) {
	err = v.read(root, func(p place) {
		for path, value := range v.places(p.path) {
			heads = append(heads, v.headOf(placeKey(path), value).of(path))
		}
	})
	return heads, err
}

func (v *view) Waiting() (places []core.Path, err error) {
	err = v.read(core.Path{}, func(place) {
		places = v.placesIn(bucketDue)
	})
	return places, err
}

func (v *view) Due(path core.Path, max int) (entries []core.Entry, err error) {
	err = v.read(path, func(p place) {
		for seq := range v.numbers(bucketDue, p.key, 0) {
			if len(entries) == max {
				break
			}
			l, ok, _ := v.entry(p, seq)
			if ok {
				entries = append(entries, l.Entry)
			} else {
				v.db.dropDue(p, seq)
			}
		}
	})
	return entries, err
}

func (v *view) Entry(path core.Path, id string) (e core.Entry, ok bool, err error) {
	if id == "" {
		return core.Entry{}, false, nil
	}
	err = v.read(path, func(p place) {
		seq, known := v.findID(p, id)
		if !known {
			return
		}
		l, there, err := v.entry(p, seq)
		if err != nil {
			v.db.logUnreadable(err)
		}
		e, ok = l.Entry, there
	})
	return e, ok, err
}

func (v *view) After(path core.Path, seq uint64, max int) (entries []core.Entry, err error) {
	err = v.read(path, func(p place) {
		seq += p.shift
		if seq+1 == 0 {
			return
		}
		for next, value := range v.numbers(bucketLog, p.key, seq+1) {
			if len(entries) == max {
				break
			}
			if l, ok := v.readEntry(p.path, next, value); ok {
				entries = append(entries, l.Entry)
			}
		}
	})
	return entries, err
}

func (v *view) Last(path core.Path, n int) (entries []core.Entry, err error) {
	err = v.read(path, func(p place) {
		t := v.tail(p.path, p.key)
		for len(entries) < n && t.step() {
			entries = append(entries, t.at.Entry)
		}
		slices.Reverse(entries)
	})
	return entries, err
}

func (v *view) Journal(turn core.TurnID) (records []core.Record, err error) {
	err = v.read(turn.Path, func(p place) {
		for _, r := range v.records(core.TurnID{Path: p.path, Seq: turn.Seq + p.shift}) {
			if w, ok := v.readRecord(r.key, r.value); ok {
				records = append(records, core.Record{Key: r.key, Progress: w.Progress, Time: w.Time, Data: w.Data})
			}
		}
	})
	return records, err
}
