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
	source, err := t.resolve(from)
	if err != nil {
		return err
	}
	target, err := t.resolve(to)
	if err != nil {
		return err
	}
	if source.path.Within(target.path) || target.path.Within(source.path) {
		return nil
	}
	places, err := t.placesBelow(source.path)
	if err != nil {
		return err
	}
	for _, old := range places {
		path, err := rebase(old, source.path, target.path)
		if err != nil {
			return fmt.Errorf("%w: migration of %s: %w", ErrBatch, old, err)
		}
		if err := t.move(old, path); err != nil {
			return err
		}
	}
	if err := t.moveKnowledge(source.path, target.path); err != nil {
		return err
	}
	return t.lead(source.path, alias{To: target.path, Shift: t.shiftOf(source.path)})
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

// rebaseKeys moves the pairs of a range to below another path. prefix stands
// before the place in the keys.
func (t *tx) rebaseKeys(bucket string, prefix, start, end []byte, from, to core.Path) error {
	b := t.bucket(bucket)
	var pairs [][2][]byte
	c := b.Cursor()
	for k, v := c.Seek(append(bytes.Clone(prefix), start...)); bytes.HasPrefix(k, prefix) && below(k[len(prefix):], end); k, v = c.Next() {
		pairs = append(pairs, [2][]byte{bytes.Clone(k), bytes.Clone(v)})
	}
	for _, pair := range pairs {
		if err := b.Delete(pair[0]); err != nil {
			return fmt.Errorf("%s: %w", bucket, err)
		}
		place, rest, err := cutPlace(pair[0][len(prefix):])
		if err != nil {
			return err
		}
		old, err := placeOf(place)
		if err != nil {
			return err
		}
		path, err := rebase(old, from, to)
		if err != nil {
			return fmt.Errorf("%w: migration of %s: %w", ErrBatch, old, err)
		}
		key := append(append(bytes.Clone(prefix), placeKey(path)...), rest...)
		if b.Get(key) != nil {
			continue
		}
		if err := b.Put(key, pair[1]); err != nil {
			return fmt.Errorf("%s: %w", bucket, err)
		}
	}
	return nil
}

// plugins lists the names, with what follows them in keys, of those that keep
// something.
func (t *tx) plugins() (names [][]byte) {
	c := t.bucket(bucketPlugins).Cursor()
	for k, _ := c.First(); k != nil; {
		name := bytes.Clone(k[:bytes.IndexByte(k, ending)+1])
		names = append(names, name)
		k, _ = c.Seek(after(name))
	}
	return names
}

// moveFacts gives what was said in a place its new origin.
func (t *tx) moveFacts(from, to core.Path) error {
	facts, err := t.factsBelow(from)
	if err != nil {
		return err
	}
	for _, f := range facts {
		moved := f
		if moved.Origin, err = rebase(f.Origin, from, to); err != nil {
			return fmt.Errorf("%w: migration of a memory: %w", ErrBatch, err)
		}
		if err := t.replaceFact(f, moved); err != nil {
			return err
		}
	}
	return nil
}

// factsBelow reads the facts that were said at or below a path.
func (t *tx) factsBelow(root core.Path) ([]Fact, error) {
	var facts []Fact
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
			return nil, err
		}
		if ok {
			facts = append(facts, f)
		}
	}
	return facts, nil
}

// shiftOf is how far the numbers of a place were moved within this transaction
// or before.
func (t *tx) shiftOf(path core.Path) uint64 {
	if a, ok, err := t.hop(path); err == nil && ok {
		return a.Shift
	}
	return 0
}

func (t *tx) lead(from core.Path, a alias) error {
	value, err := json.Marshal(a)
	if err != nil {
		return fmt.Errorf("alias: %w", err)
	}
	t.filled(bucketAliases)
	return t.bucket(bucketAliases).Put(placeKey(from), value)
}

// placesBelow lists the places at or below root, also those of this very
// transaction.
func (t *tx) placesBelow(root core.Path) ([]core.Path, error) {
	if err := t.finish(); err != nil {
		return nil, err
	}
	var places []core.Path
	from, to := subtree(root)
	c := t.bucket(bucketPlaces).Cursor()
	for k, _ := c.Seek(from); below(k, to); k, _ = c.Next() {
		path, err := placeOf(k)
		if err != nil {
			return nil, err
		}
		places = append(places, path)
	}
	return places, nil
}

// move puts one place's log behind that of another one. Its numbers rise by as
// many as the other has.
func (t *tx) move(from, to core.Path) error {
	source, target := placeKey(from), placeKey(to)
	old, h := t.head(source), t.head(target)
	shift := h.last
	waits := len(t.waiting(target, h.last)) > 0
	if err := t.moveEntries(place{path: from, key: source}, place{path: to, key: target, shift: shift}, old.answered, waits); err != nil {
		return err
	}
	if err := t.moveJournal(source, target, shift); err != nil {
		return err
	}
	if !waits {
		h.answered = shift + old.answered
	}
	if old.count > 0 {
		h.time = old.time
	}
	h.last, h.count, h.private = shift+old.last, h.count+old.count, h.private || old.private
	*old = head{}
	return t.lead(from, alias{To: to, Shift: shift})
}

// moveEntries moves log and due entries. The ids stay where they are: a platform
// may begin anew with them at the new place, and what was said under an old id
// is another message. rewrite: the mark of the target stays below, so what was
// answered must not look due.
func (t *tx) moveEntries(from, to place, answered uint64, rewrite bool) error {
	err := t.rekey(bucketLog, from.key, func(rest, value []byte) ([]byte, []byte, error) {
		seq := binary.BigEndian.Uint64(rest)
		if rewrite && seq <= answered {
			if l, err := decodeLine(value, from.path, seq); err != nil {
				t.db.odd(err)
			} else {
				l.Due = false
				value = encodeLine(&l)
			}
		}
		return seqKey(to.key, seq+to.shift), value, nil
	})
	if err != nil {
		return err
	}
	return t.rekey(bucketDue, from.key, func(rest, value []byte) ([]byte, []byte, error) {
		return seqKey(to.key, binary.BigEndian.Uint64(rest)+to.shift), nil, nil
	})
}

func (t *tx) moveJournal(from, to []byte, shift uint64) error {
	return t.rekey(bucketJournal, from, func(rest, value []byte) ([]byte, []byte, error) {
		if len(rest) != 14 {
			return nil, nil, fmt.Errorf("journal key %q: %w", rest, errFields)
		}
		key := append(seqKey(to, binary.BigEndian.Uint64(rest)+shift), rest[8:]...)
		if shift > 0 && bytes.Equal(rest[8:], make([]byte, 6)) {
			if shifted, err := shiftRecord(value, shift); err == nil { // else nobody can read it anyway
				value = shifted
			}
		}
		return key, value, nil
	})
}

// rekey moves all pairs whose key begins with a place's to where next says; a
// nil key drops the pair.
func (t *tx) rekey(bucket string, from []byte, next func(rest, value []byte) (k, v []byte, err error)) error {
	b := t.bucket(bucket)
	var pairs [][2][]byte
	c := b.Cursor()
	for k, v := c.Seek(from); bytes.HasPrefix(k, from); k, v = c.Next() {
		pairs = append(pairs, [2][]byte{bytes.Clone(k), bytes.Clone(v)})
	}
	for _, pair := range pairs {
		if err := moveOne(b, pair[0], pair[1], len(from), next); err != nil {
			return fmt.Errorf("%s: %w", bucket, err)
		}
	}
	return nil
}

func moveOne(b bucket, k, v []byte, cut int, next func(rest, value []byte) (k, v []byte, err error)) error {
	key, value, err := next(k[cut:], v)
	if err != nil {
		return err
	}
	if err := b.Delete(k); err != nil || key == nil {
		return err
	}
	return b.Put(key, value)
}
