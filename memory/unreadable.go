package memory

import (
	"fmt"
	"sync"

	"synthbot/core"
)

// maxOdd bounds how many different records are logged in one life.
const maxOdd = 1000

// oddities remembers which unreadable records were logged already.
type oddities struct {
	mu     sync.Mutex
	logged map[string]bool
}

// odd logs, once, that a record cannot be read. Its reader leaves it out and goes on:
// it must not block a place.
func (db *DB) odd(err error) {
	o := &db.oddities
	o.mu.Lock()
	defer o.mu.Unlock()
	text := err.Error()
	if !o.logged[text] && len(o.logged) < maxOdd {
		if o.logged == nil {
			o.logged = make(map[string]bool)
		}
		o.logged[text] = true
		db.log.Error("a record cannot be read and is left out", "file", db.file.name, "err", err)
	}
}

// setAside sees to it, in a transaction of its own, that an entry which cannot be
// read does not wait for an answer any more. It stays where it is, for a check to
// find. setAside does not wait.
func (db *DB) setAside(p place, seq uint64) {
	j := &job{done: make(chan error, 1), run: func(t *tx) error {
		key := seqKey(p.key, seq)
		value := t.bucket(bucketLog).Get(key)
		if _, err := decodeLine(value, p.path, seq); value != nil && err == nil {
			return nil
		}
		t.bucket(bucketDue).Delete(key)
		return nil
	}}
	if db.queue.add(j) == nil {
		db.log.Error("what waited for an answer cannot be read; it is set aside", "path", p.path, "entry", seq)
	}
}

// readLine reads an entry; ok is false if it cannot be read, which is logged.
func (t *tx) readLine(path core.Path, seq uint64, value []byte) (l line, ok bool) {
	l, err := decodeLine(value, path, seq)
	if err != nil {
		t.db.odd(fmt.Errorf("log: %w", err))
	}
	return l, err == nil
}

// readRecord reads a record of the journal. Of a step or a part that cannot be
// read it is not known whether it happened; a plan or a turn's own record that
// cannot be read is left out, and written anew.
func (t *tx) readRecord(key core.Key, value []byte) (w written, ok bool) {
	w, err := decodeRecord(value)
	if err == nil {
		return w, true
	}
	t.db.odd(fmt.Errorf("journal: %s, round %d, step %d, part %d: %w", key.Turn, key.Round, key.Step, key.Part, err))
	return written{Progress: core.ProgressUnknown}, key.Step > 0
}

// isPrivate reports whether an entry's value says that it was said in private, as
// far as it can be read.
func isPrivate(value []byte) (private bool) {
	_ = each(string(value), func(f field) error {
		private = private || f.tag == tagPrivate
		return nil
	})
	return private
}

// mendHead rebuilds a place's head from its log.
func (t *tx) mendHead(place []byte) head {
	var h head
	var newest []byte
	for seq, value := range t.numbers(bucketLog, place, 0) {
		h.last, newest = seq, value
		h.count++
		h.private = h.private || isPrivate(value)
	}
	if l, ok := t.readLine(core.Path{}, h.last, newest); ok {
		h.time = l.Message.Time
	}
	h.answered = h.last
	waiting := t.waiting(place, h.last)
	if len(waiting) > 0 {
		h.answered = waiting[0] - 1
	}
	return h
}
