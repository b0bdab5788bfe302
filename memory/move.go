package memory

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"synthbot/core"
)

type migration struct {
	*tx
	from, to core.Path
}

// migrate moves what is stored of a place, and of all below it, to another path, to which the old one leads from
// then on. A place that has moved there already, or that would move into itself, stays. What the new place has is
// not replaced.
//
// All of it moves in this transaction, and writers wait: some 3 ms for each 1,000 entries, of which a place keeps
// 5,000 by default. A group moves once in its life. If it moved in steps, every reader and writer would have to
// look in two places until the last step.
func (t *tx) migrate(from, to core.Path) {
	if to.IsZero() {
		return
	}
	from, to = t.resolve(from).path, t.resolve(to).path
	if from.Within(to) || to.Within(from) {
		return
	}
	m := migration{t, from, to}
	m.writeHeads() // so that the places of this transaction are found
	for path := range m.headsBelow(m.from) {
		m.movePlace(path, m.rebased(path))
	}
	a, _ := m.followAlias(m.from)
	m.addAlias(m.from, alias{To: m.to, Shift: a.Shift})
	m.moveBelow(bucketStates, nil)
	for _, plugin := range m.bucket(bucketPlugins).prefixes(nil, nil) {
		m.moveBelow(bucketPlugins, plugin)
	}
	m.moveUsage()
	for _, origin := range m.placesIn(bucketWords, m.from) {
		for _, id := range m.facts().factsWith(origin, termAll) {
			if f, ok := m.facts().fact(id); ok {
				moved := f
				moved.Origin = m.rebased(origin)
				m.facts().replaceFact(f, moved)
			}
		}
	}
}

// rebased returns the new path of a place. If it is invalid, the transaction fails.
func (m migration) rebased(path core.Path) core.Path {
	moved, err := rebase(path, m.from, m.to)
	if err != nil {
		m.fail("migration", fmt.Errorf("%w: %s: %w", ErrBatch, path, err))
	}
	return moved
}

func (t *tx) addAlias(from core.Path, a alias) {
	moved := append(t.db.epochs.moved, from)
	t.db.epochs.moved = moved[max(0, len(moved)-maxMoved):]
	t.bucket(bucketAliases).Put(placeKey(from), core.JSON(a))
}

// movePlace appends one place's log to another one: its numbers rise by the other's last. Ids stay under the old path:
// the platform may use the same ids at the new place for other messages.
func (m migration) movePlace(from, to core.Path) {
	source, target := placeKey(from), placeKey(to)
	old, h := m.head(source), m.head(target)
	shift := h.last
	waits := len(m.waiting(target, h.last)) > 0
	m.moveNumbers(bucketLog, source, target, shift, func(seq uint64, _, value []byte) []byte {
		answered := waits && seq <= old.answered // the mark stays below this entry
		if answered || bytes.Contains(value, []byte(core.QuestionMark)) {
			if l, ok := m.readEntry(from, seq, value); ok {
				l.Due, l.Data = l.Due && !answered, core.Renumber(l.Data, shift)
				return encodeEntry(&l)
			}
		}
		return value
	})
	m.moveNumbers(bucketDue, source, target, shift, func(_ uint64, _, value []byte) []byte { return value })
	m.moveNumbers(bucketJournal, source, target, shift, func(_ uint64, rest, value []byte) []byte {
		if bytes.Equal(rest, make([]byte, 6)) {
			return shiftRecord(value, shift)
		}
		return value
	})
	if !waits {
		h.answered = shift + old.answered
	}
	if old.count > 0 {
		h.time = old.time
	}
	h.last, h.count, h.private = shift+old.last, h.count+old.count, h.private || old.private
	*old = head{}
	m.addAlias(from, alias{To: to, Shift: shift})
}

// moveNumbers moves the pairs of a place whose keys have numbers. alter returns the new
// value of a pair, given its number and what follows that in its key.
func (m migration) moveNumbers(bucket string, from, to []byte, shift uint64,
	alter func(seq uint64, rest, value []byte) []byte) {
	m.movePairs(bucket, from, prefixEnd(from), func(k, v []byte) (key, value []byte) {
		number := k[len(from):]
		if len(number) < 8 {
			return k, v
		}
		seq, rest := binary.BigEndian.Uint64(number), number[8:]
		return append(seqKey(to, seq+shift), rest...), alter(seq, rest, v)
	})
}

// moveBelow moves the pairs of the place and of all below it. prefix precedes the place in the keys.
func (m migration) moveBelow(bucket string, prefix []byte) {
	start, end := subtree(m.from)
	start, end = slices.Concat(prefix, start), slices.Concat(prefix, end)
	m.movePairs(bucket, start, end, func(k, v []byte) (key, value []byte) {
		old, rest, err := cutPath(k[len(prefix):])
		m.fail(bucket, err)
		return slices.Concat(prefix, placeKey(m.rebased(old)), rest), v
	})
}

// moveUsage adds the counters of the place, and of all below it, to those of the new paths. Those before yesterday
// stay: no budget depends on them.
func (m migration) moveUsage() {
	b, yesterday := m.bucket(bucketUsage), m.now.AddDate(0, 0, -1).Format(time.DateOnly)
	from, to := subtree(m.from)
	var uses []Use
	for _, day := range b.prefixes([]byte(yesterday), nil) {
		below := decoded(m.tx, bucketUsage, slices.Concat(day, from), slices.Concat(day, to), readUse)
		uses = slices.AppendSeq(uses, below)
	}
	for _, u := range uses {
		b.Delete(usageKey(u))
		u.Person = m.rebased(u.Person)
		m.addUse(u)
	}
}

// movePairs moves the pairs of a range, except to keys that exist already.
func (m migration) movePairs(bucket string, start, end []byte, move func(k, v []byte) (key, value []byte)) {
	b := m.bucket(bucket)
	var pairs [][2][]byte
	for k, v := range b.pairs(start, end) {
		pairs = append(pairs, [2][]byte{bytes.Clone(k), bytes.Clone(v)})
	}
	for _, pair := range pairs {
		b.Delete(pair[0])
		key, value := move(pair[0], pair[1])
		if !hasKey(b, key) {
			b.Put(key, value)
		}
	}
}

// alias is the place to which another one moved, and how far the numbers of its entries rose.
type alias struct {
	To    core.Path `json:"to"`
	Shift uint64    `json:"shift,omitempty"`
	from  core.Path // where it is stored
}

const (
	maxHops  = 16   // how often a place may have moved
	maxMoved = 1000 // paths that may have moved while a turn runs
)

// resolve follows the migrations of a path, or of one above it.
func (t *tx) resolve(path core.Path) place {
	prefetch(t, func(r *reads) { r.path(path) })
	if t.resolved.key != nil && t.resolved.from == path {
		return t.resolved
	}
	p := place{from: path, path: path, ids: placeKey(path)}
	p.key = p.ids
	for range maxHops {
		next, moved := t.followAlias(p.path)
		if !moved {
			break
		}
		p.path, p.key, p.shift = next.To, placeKey(next.To), p.shift+next.Shift
	}
	t.resolved = p
	return p
}

// followAlias follows one migration, unless it cannot be read or leads to an invalid path.
func (t *tx) followAlias(path core.Path) (next alias, moved bool) {
	b, key := t.bucket(bucketAliases), placeKey(path)
	for above := path; !above.IsZero(); above, key = above.Parent(), keyAbove(key) {
		value := b.Get(key)
		if value == nil {
			continue
		}
		a := alias{from: above}
		err := json.Unmarshal(value, &a)
		if err == nil {
			a.To, err = rebase(path, above, a.To)
		}
		if err != nil {
			t.db.logUnreadable(fmt.Errorf("alias of %s: %w", above, err))
		}
		if above != path {
			a.Shift = 0 // a place below that had entries has an alias of its own
		}
		return a, err == nil
	}
	return alias{}, false
}

func interfaceOf(p core.Path) core.Path {
	root, _ := core.MakePath(p.Interface())
	return root
}

func rebase(path, from, to core.Path) (core.Path, error) {
	return core.ParsePath(to.String() + strings.TrimPrefix(path.String(), from.String()))
}
