package memory

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"

	"synthbot/core"
)

// migrate lets a place, and all below it, go on elsewhere: what is stored moves,
// and the old path leads to the new one from now on. A place that was moved
// before, or that would be moved into itself, stays.
//
// All of it moves in this transaction, and writers wait: some 3 ms for each 1,000
// entries, of which a place keeps 5,000 unless the configuration says otherwise. A group
// moves once in its life. To move it in steps, everybody who reads or numbers entries
// would have to look in two places until the last step.
func (t *tx) migrate(from, to core.Path) error {
	if to.IsZero() {
		return nil
	}
	source, target := t.resolve(from), t.resolve(to)
	if source.path.Within(target.path) || target.path.Within(source.path) {
		return nil
	}
	for _, old := range t.placesBelow(source.path) {
		path, err := rebase(old, source.path, target.path)
		if err != nil {
			return fmt.Errorf("%w: migration of %s: %w", ErrBatch, old, err)
		}
		t.move(old, path)
	}
	t.lead(source.path, alias{To: target.path, Shift: t.shiftOf(source.path)})
	return t.moveKnowledge(source.path, target.path)
}

// moveKnowledge moves what is known of a place and of all below it. What the new
// place knows already stays.
func (t *tx) moveKnowledge(from, to core.Path) error {
	start, end := subtree(from)
	err := t.rebaseKeys(bucketStates, nil, start, end, from, to)
	for _, plugin := range t.plugins() {
		err = errors.Join(err, t.rebaseKeys(bucketPlugins, plugin, start, end, from, to))
	}
	return errors.Join(err, t.moveFacts(from, to))
}

// rebaseKeys moves the pairs of a range to below another path. prefix is
// before the place in the keys.
func (t *tx) rebaseKeys(bucket string, prefix, start, end []byte, from, to core.Path) error {
	b := t.bucket(bucket)
	var pairs [][2][]byte
	c := b.Cursor()
	k, v := c.Seek(append(bytes.Clone(prefix), start...))
	for ; bytes.HasPrefix(k, prefix) && below(k[len(prefix):], end); k, v = c.Next() {
		pairs = append(pairs, [2][]byte{bytes.Clone(k), bytes.Clone(v)})
	}
	for _, pair := range pairs {
		b.Delete(pair[0])
		old, rest, err := cutPath(pair[0][len(prefix):])
		if err != nil {
			return err
		}
		path, err := rebase(old, from, to)
		if err != nil {
			return fmt.Errorf("%w: migration of %s: %w", ErrBatch, old, err)
		}
		key := append(append(bytes.Clone(prefix), placeKey(path)...), rest...)
		if b.Get(key) == nil {
			b.Put(key, pair[1])
		}
	}
	return nil
}

// plugins lists the names, with what follows them in keys, of those that keep
// something.
func (t *tx) plugins() (names [][]byte) {
	c := t.bucket(bucketPlugins).Cursor()
	for k, _ := c.First(); k != nil; {
		end := bytes.IndexByte(k, ending) + 1
		if end == 0 {
			k, _ = c.Next()
			continue
		}
		names = append(names, bytes.Clone(k[:end]))
		k, _ = c.Seek(after(k[:end]))
	}
	return names
}

// moveFacts gives what was said in a place its new origin.
func (t *tx) moveFacts(from, to core.Path) error {
	for _, f := range t.factsBelow(from) {
		moved, err := f, error(nil)
		if moved.Origin, err = rebase(f.Origin, from, to); err != nil {
			return fmt.Errorf("%w: migration of a memory: %w", ErrBatch, err)
		}
		t.replaceFact(f, moved)
	}
	return nil
}

// factsBelow reads the facts that were said at or below a path.
func (t *tx) factsBelow(root core.Path) (facts []core.Fact) {
	from, to := subtree(root)
	c := t.bucket(bucketWords).Cursor()
	for k, _ := c.Seek(from); below(k, to); k, _ = c.Next() {
		place := k[:bytes.IndexByte(k, ending)+1]
		term := k[len(place):]
		if !bytes.HasPrefix(term, []byte(termAll)) || len(term) != len(termAll)+1+8 {
			continue
		}
		f, ok, err := t.fact(factID(binary.BigEndian.Uint64(term[len(termAll)+1:])))
		if err != nil {
			t.db.odd(err)
		}
		if ok {
			facts = append(facts, f)
		}
	}
	return facts
}

// shiftOf is how far the numbers of a place were moved within this transaction
// or before.
func (t *tx) shiftOf(path core.Path) uint64 {
	a, _ := t.hop(path)
	return a.Shift
}

func (t *tx) lead(from core.Path, a alias) {
	value, err := json.Marshal(a)
	t.fail(bucketAliases, err)
	t.filled(bucketAliases)
	t.bucket(bucketAliases).Put(placeKey(from), value)
}

// placesBelow lists the places at or below root, also those of this very
// transaction.
func (t *tx) placesBelow(root core.Path) (places []core.Path) {
	t.finish()
	for path := range t.places(root) {
		places = append(places, path)
	}
	return places
}

// move puts one place's log behind that of another one. Its numbers rise by as
// many as the other has.
func (t *tx) move(from, to core.Path) {
	source, target := placeKey(from), placeKey(to)
	old, h := t.head(source), t.head(target)
	shift := h.last
	waits := len(t.waiting(target, h.last)) > 0
	t.moveEntries(place{path: from, key: source}, place{path: to, key: target, shift: shift}, old.answered, waits)
	t.moveJournal(source, target, shift)
	if !waits {
		h.answered = shift + old.answered
	}
	if old.count > 0 {
		h.time = old.time
	}
	h.last, h.count, h.private = shift+old.last, h.count+old.count, h.private || old.private
	*old = head{}
	t.lead(from, alias{To: to, Shift: shift})
}

// moveEntries moves log and due entries. The ids stay where they are: a platform
// may begin anew with them at the new place, and what was said under an old id
// is another message. rewrite: the mark of the target stays below, so what was
// answered must not look due.
func (t *tx) moveEntries(from, to place, answered uint64, rewrite bool) {
	t.rekey(bucketLog, from.key, to.key, to.shift, func(seq uint64, _, value []byte) []byte {
		if rewrite && seq <= answered {
			if l, err := decodeLine(value, from.path, seq); err != nil {
				t.db.odd(err)
			} else {
				l.Due = false
				value = encodeLine(&l)
			}
		}
		return value
	})
	t.rekey(bucketDue, from.key, to.key, to.shift, func(_ uint64, _, value []byte) []byte { return value })
}

func (t *tx) moveJournal(from, to []byte, shift uint64) {
	t.rekey(bucketJournal, from, to, shift, func(_ uint64, rest, value []byte) []byte {
		if shift > 0 && bytes.Equal(rest, make([]byte, 6)) {
			return shiftRecord(value, shift)
		}
		return value
	})
}

// rekey moves all pairs of one place to another. alter returns the new value of a
// pair, given the number in its key and what follows that.
func (t *tx) rekey(bucket string, from, to []byte, shift uint64, alter func(seq uint64, rest, value []byte) []byte) {
	b := t.bucket(bucket)
	var pairs [][2][]byte
	c := b.Cursor()
	for k, v := c.Seek(from); bytes.HasPrefix(k, from); k, v = c.Next() {
		if len(k) >= len(from)+8 {
			pairs = append(pairs, [2][]byte{bytes.Clone(k), bytes.Clone(v)})
		}
	}
	for _, pair := range pairs {
		number, rest := pair[0][len(from):len(from)+8], pair[0][len(from)+8:]
		seq := binary.BigEndian.Uint64(number)
		b.Delete(pair[0])
		b.Put(append(seqKey(to, seq+shift), rest...), alter(seq, rest, pair[1]))
	}
}
