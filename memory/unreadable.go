package memory

import (
	"fmt"
	"sync"

	"synthbot/core"
)

// maxUnreadable bounds how many unreadable records are logged.
const maxUnreadable = 1000

// unreadable holds the unreadable records that were logged.
type unreadable struct {
	mu     sync.Mutex
	logged map[string]bool
}

// logUnreadable logs a record that cannot be read, once. Readers skip it: it must not block
// a place.
func (db *DB) logUnreadable(err error) {
	o := &db.unreadable
	o.mu.Lock()
	defer o.mu.Unlock()
	text := err.Error()
	if !o.logged[text] && len(o.logged) < maxUnreadable {
		o.logged[text] = true
		db.log.Error("a record cannot be read and is left out", "file", db.file.name, "err", err)
	}
}

// dropDue lets an entry that cannot be read no longer wait for an answer, in a transaction
// for which it does not wait. The entry stays, for a check to find.
func (db *DB) dropDue(p place, seq uint64) {
	j := &job{done: make(chan error, 1), run: func(t *tx) error {
		key := seqKey(p.key, seq)
		value := t.bucket(bucketLog).Get(key)
		if _, err := decodeEntry(value, p.path, seq); value != nil && err == nil {
			return nil
		}
		t.bucket(bucketDue).Delete(key)
		return nil
	}}
	if db.queue.add(j) == nil {
		db.log.Error("an entry that waited for an answer cannot be read and is skipped", "path", p.path, "entry", seq)
	}
}

// readEntry decodes an entry; ok is false if it cannot be read, which is logged.
func (t *tx) readEntry(path core.Path, seq uint64, value []byte) (l storedEntry, ok bool) {
	l, err := decodeEntry(value, path, seq)
	if err != nil {
		t.db.logUnreadable(fmt.Errorf("log: %w", err))
	}
	return l, err == nil
}

// readRecord decodes a record of the journal. For a step or a part that cannot be read, the
// outcome is unknown; other records that cannot be read are skipped, and written again.
func (t *tx) readRecord(key core.Key, value []byte) (w storedRecord, ok bool) {
	w, err := decodeRecord(value)
	if err == nil {
		return w, true
	}
	t.db.logUnreadable(fmt.Errorf("journal: %s, round %d, step %d, part %d: %w", key.Turn, key.Round, key.Step,
		key.Part, err))
	return storedRecord{Progress: core.ProgressUnknown}, key.Step > 0
}

// isPrivate reports whether an entry is private, as far as it can be read.
func isPrivate(value []byte) bool {
	var l storedEntry
	_ = readFields(value, l.fields)
	return l.Message.Private
}

// rebuiltHead computes a place's head from its log.
func (t *tx) rebuiltHead(place []byte) head {
	var h head
	var newest []byte
	for seq, value := range t.numbers(bucketLog, place, 0) {
		h.last, newest = seq, value
		h.count++
		h.private = h.private || isPrivate(value)
	}
	if l, ok := t.readEntry(core.Path{}, h.last, newest); ok {
		h.time = l.Message.Time
	}
	h.answered = h.last
	waiting := t.waiting(place, h.last)
	if len(waiting) > 0 {
		h.answered = waiting[0] - 1
	}
	return h
}
