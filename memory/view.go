package memory

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"synthbot/core"
)

// View implements core.Store. Inside of f no other View may begin and nothing
// may be committed: both could wait for this one to end.
func (db *DB) View(ctx context.Context, f func(core.View) error) error {
	if db.queue.isClosed() {
		return core.ErrClosed
	}
	return db.view(ctx, func(v *view) error { return f(v) })
}

// view is View for this package. A panic becomes an error, and so does the
// fault of a page that the disk does not give.
func (db *DB) view(ctx context.Context, f func(*view) error) (err error) {
	if err := ctx.Err(); err != nil {
		return err
	}
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		p := recover()
		if p != nil {
			db.log.Error("a view panicked", "file", db.file.name, "panic", p, "stack", string(debug.Stack()))
			err = fmt.Errorf("view: panic: %v", p)
		}
	}()
	bolt, handle := db.file.hold()
	defer db.file.let(bolt)
	err = bolt.View(func(b *bbolt.Tx) error {
		v := &view{tx: tx{Tx: b, db: db, now: db.clock()}, file: handle}
		defer func() { v.over = true }()
		return f(v)
	})
	if errors.Is(err, berrors.ErrDatabaseNotOpen) {
		return core.ErrClosed
	}
	return err
}

// view is a core.View.
type view struct {
	tx
	file *os.File
	over bool
}

var errOver = errors.New("this view is over")

// read does one reading. A page that is not what it should be makes bbolt
// panic; that is damage and not the caller's fault.
func (v *view) read(path core.Path, f func(place) error) error {
	if v.over {
		return errOver
	}
	err := v.db.file.guard(func() error {
		return f(v.resolve(path))
	})
	if err != nil {
		return fmt.Errorf("%s: %w", v.db.file.name, err)
	}
	return nil
}

func (v *view) Head(path core.Path) (h core.Head, err error) {
	err = v.read(path, func(p place) error {
		stored, _ := v.readHead(p.key)
		h = stored.of(p.path)
		return nil
	})
	return h, err
}

func (h head) of(path core.Path) core.Head {
	return core.Head{Path: path, Last: h.last, Count: h.count, Answered: h.answered, Time: h.time, Private: h.private}
}

func (v *view) Places(root core.Path) (heads []core.Head, err error) {
	err = v.read(root, func(p place) error {
		for path, value := range v.places(p.path) {
			heads = append(heads, v.headOf(placeKey(path), value).of(path))
		}
		return nil
	})
	return heads, err
}

func (v *view) Waiting() (places []core.Path, err error) {
	err = v.read(core.Path{}, func(place) error {
		places = v.placesIn(bucketDue)
		return nil
	})
	return places, err
}

func (v *view) Due(path core.Path, max int) (entries []core.Entry, err error) {
	err = v.read(path, func(p place) error {
		for seq := range v.numbers(bucketDue, p.key, 0) {
			if len(entries) == max {
				break
			}
			l, ok, _ := v.line(p, seq)
			if ok {
				entries = append(entries, l.Entry)
			} else {
				v.db.setAside(p, seq)
			}
		}
		return nil
	})
	return entries, err
}

func (v *view) Entry(path core.Path, id string) (e core.Entry, ok bool, err error) {
	if id == "" {
		return core.Entry{}, false, nil
	}
	err = v.read(path, func(p place) error {
		seq, known := v.find(p, id)
		if !known {
			return nil
		}
		l, there, err := v.line(p, seq)
		if err != nil {
			v.db.odd(err)
		}
		e, ok = l.Entry, there
		return nil
	})
	return e, ok, err
}

func (v *view) After(path core.Path, seq uint64, max int) (entries []core.Entry, err error) {
	err = v.read(path, func(p place) error {
		seq += p.shift
		if seq+1 == 0 {
			return nil
		}
		for next, value := range v.numbers(bucketLog, p.key, seq+1) {
			if len(entries) == max {
				break
			}
			if l, ok := v.readLine(p.path, next, value); ok {
				entries = append(entries, l.Entry)
			}
		}
		return nil
	})
	return entries, err
}

// lineOf reads an entry with its key.
func lineOf(k, value []byte) (line, error) {
	path, seq, err := entryOf(k)
	if err != nil {
		return line{}, err
	}
	return decodeLine(value, path, seq)
}

func (v *view) Last(path core.Path, n int) (entries []core.Entry, err error) {
	err = v.read(path, func(p place) error {
		t := v.tail(p.path, p.key)
		for len(entries) < n && t.back() {
			if l, ok := t.line(); ok {
				entries = append(entries, l.Entry)
			}
		}
		reverse(entries)
		return nil
	})
	return entries, err
}

func (v *view) Journal(turn core.TurnID) (records []core.Record, err error) {
	err = v.read(turn.Path, func(p place) error {
		prefix := seqKey(p.key, turn.Seq+p.shift)
		c := v.bucket(bucketJournal).Cursor()
		for k, value := c.Seek(prefix); bytes.HasPrefix(k, prefix); k, value = c.Next() {
			key, err := journalKeyOf(k)
			if err != nil {
				v.db.odd(err)
				continue
			}
			if w, ok := v.readRecord(key, value); ok {
				records = append(records, core.Record{Key: key, Progress: w.Progress, Time: w.Time, Data: w.Data})
			}
		}
		return nil
	})
	return records, err
}
