package memory

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"

	"synthbot/core"
)

// Limits of a fact.
const (
	maxFactText = 16 << 10
	maxTags     = 32
	maxFormer   = 20
)

func checkFact(f *core.Fact) error {
	switch {
	case f.Text == "" || len(f.Text) > maxFactText:
		return fmt.Errorf("memory: %w: a text of %d bytes", ErrBatch, len(f.Text))
	case len(f.Tags) > maxTags || len(f.About) > maxTags:
		return fmt.Errorf("memory: %w: %d tags, about %d", ErrBatch, len(f.Tags), len(f.About))
	}
	for _, tag := range append(f.Tags, f.Topic) {
		if len(tag) > core.MaxName {
			return fmt.Errorf("memory: %w: a tag of %d bytes", ErrBatch, len(tag))
		}
	}
	return nil
}

// SaveFact keeps a fact and returns it as it is stored. With an ID it replaces
// that one, which must be seen from Origin, where that is given; else the error
// wraps core.ErrUnknown. Without an ID, it replaces those of the same origin, about
// the same, that say the same or have the same Topic, as far as Fact.MayReplace
// allows: the newest wins, what was said before stays as Former. A fact of a
// turn that answers somebody who was forgotten since its epoch began, or one by or
// about such people, or of such a place, is not stored; the error wraps
// core.ErrForgotten.
func (db *DB) SaveFact(ctx context.Context, f core.Fact) (core.Fact, error) {
	if err := checkFact(&f); err != nil {
		return core.Fact{}, err
	}
	var saved core.Fact
	err := db.write(ctx, &job{size: len(f.Text) * 4, run: func(t *tx) (err error) {
		b := db.begun(ctx)
		if b.stale() || b.forgot(append([]core.Path{f.By, f.Origin}, f.About...)...) {
			return fmt.Errorf("memory: %w: %w", ErrBatch, core.ErrForgotten)
		}
		saved, err = t.saveFact(f)
		return err
	}})
	if err != nil {
		return core.Fact{}, err
	}
	return saved, nil
}

func (t *tx) saveFact(f core.Fact) (core.Fact, error) {
	if f.Time.IsZero() {
		f.Time = t.now
	}
	f.Origin = t.resolve(f.Origin).path
	olds, err := t.replacedBy(f)
	if err != nil {
		return core.Fact{}, err
	}
	if len(olds) == 0 {
		n, err := t.bucket(bucketFacts).NextSequence()
		t.fail(bucketFacts, err)
		f.ID = factID(n)
		t.putFact(f)
		return f, nil
	}
	for _, older := range olds[1:] {
		f.Former = slices.Concat(f.Former, []core.Former{{Text: older.Text, Time: older.Time, By: older.By}}, older.Former)
		t.dropFact(older)
	}
	f = mergeFacts(&olds[0], f)
	t.replaceFact(olds[0], f)
	return f, nil
}

// replaceFact puts a fact into the place of another. What says the same means
// the same.
func (t *tx) replaceFact(old, f core.Fact) {
	number := binary.BigEndian.Uint64(factKey(&old))
	v, known := t.vectorOf(old.Origin, number)
	v.digits = bytes.Clone(v.digits)
	t.dropFact(old)
	t.putFact(f)
	if known && old.Text == f.Text {
		t.putVector(f.Origin, number, &v)
	}
}

// merge lets a newer fact replace f.
func mergeFacts(f *core.Fact, newer core.Fact) core.Fact {
	newer.ID, newer.Origin, newer.Former = f.ID, f.Origin, slices.Concat(f.Former, newer.Former)
	if newer.Text != f.Text {
		newer.Former = slices.Insert(newer.Former, 0, core.Former{Text: f.Text, Time: f.Time, By: f.By})
	}
	if len(newer.Former) > maxFormer {
		newer.Former = newer.Former[:maxFormer]
	}
	newer.Importance = max(newer.Importance, f.Importance)
	for _, tag := range f.Tags {
		if !slices.Contains(newer.Tags, tag) && len(newer.Tags) < maxTags {
			newer.Tags = append(newer.Tags, tag)
		}
	}
	if newer.Topic == "" {
		newer.Topic = f.Topic
	}
	if newer.About == nil {
		newer.About = f.About
	}
	return newer
}

// replacedBy finds the facts whose place f takes, newest first.
func (t *tx) replacedBy(f core.Fact) (olds []core.Fact, err error) {
	if f.ID != "" {
		old, ok, err := t.fact(f.ID)
		if err == nil && (!ok || !f.Origin.IsZero() && !f.Origin.Within(old.Origin)) {
			err = fmt.Errorf("%w: %w", ErrBatch, core.ErrUnknown)
		}
		return []core.Fact{old}, err
	}
	ids := t.having(f.Origin, sameTerm(f))
	if f.Topic != "" {
		ids = append(ids, t.having(f.Origin, topicTerm(f))...)
	}
	slices.Sort(ids)
	for _, id := range slices.Backward(slices.Compact(ids)) {
		old, ok, err := t.fact(factID(id))
		if err != nil {
			t.db.odd(err)
		}
		if ok && f.MayReplace(&old) {
			olds = append(olds, old)
		}
	}
	return olds, nil
}

// factNumber reads a fact's number as people see it.
func factNumber(id string) (uint64, error) {
	n, err := strconv.ParseUint(id, 36, 64)
	if err != nil {
		return 0, fmt.Errorf("%w: %w: %q", ErrBatch, core.ErrUnknown, id)
	}
	return n, nil
}

// factID is a fact's number as people see it.
func factID(number uint64) string { return strconv.FormatUint(number, 36) }

// factKey is the key of a fact that has its ID.
func factKey(f *core.Fact) []byte {
	n, _ := factNumber(f.ID)
	return binary.BigEndian.AppendUint64(nil, n)
}

// fact reads a fact; ok is false where there is none.
func (t *tx) fact(id string) (f core.Fact, ok bool, err error) {
	if _, err := factNumber(id); err != nil {
		return core.Fact{}, false, err
	}
	key := factKey(&core.Fact{ID: id})
	value := t.bucket(bucketFacts).Get(key)
	if value == nil {
		return core.Fact{}, false, nil
	}
	f, err = decodeFact(key, value)
	return f, err == nil, err
}

// decodeFact reads a fact; the key holds its number.
func decodeFact(key, value []byte) (f core.Fact, err error) {
	if err = json.Unmarshal(value, &f); err == nil && len(key) != 8 {
		err = errFields
	}
	if err != nil {
		return core.Fact{}, fmt.Errorf("memory %x: %w", key, err)
	}
	f.ID = factID(binary.BigEndian.Uint64(key))
	return f, nil
}

// putFact writes a fact and the postings that lead to it.
func (t *tx) putFact(f core.Fact) {
	key := factKey(&f)
	value, err := json.Marshal(f)
	t.fail(bucketFacts, err)
	t.bucket(bucketFacts).Put(key, value)
	t.saved = append(t.saved, binary.BigEndian.Uint64(key))
	t.putPostings(&f)
}

// putPostings lets a fact be found.
func (t *tx) putPostings(f *core.Fact) {
	words, key, rank := t.bucket(bucketWords), factKey(f), rankFact(f)
	for _, term := range factTerms(f) {
		words.Put(postingKey(f.Origin, term, key), rank)
	}
}

// rank is kept with each posting, so that a fact need not be read to be ranked:
// its time (4 bytes, hours), importance (1), and how many words it has (2).
func rankFact(f *core.Fact) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(max(f.Time.Unix()/3600, 0)))
	b = append(b, byte(min(max(f.Importance, 0), 10)))
	return binary.BigEndian.AppendUint16(b, uint16(min(len(f.Text)/6, math.MaxUint16)))
}

// dropFact takes a fact and all that leads to it away.
func (t *tx) dropFact(f core.Fact) {
	key := factKey(&f)
	t.bucket(bucketFacts).Delete(key)
	words := t.bucket(bucketWords)
	for _, term := range factTerms(&f) {
		words.Delete(postingKey(f.Origin, term, key))
	}
	t.dropVector(f.Origin, binary.BigEndian.Uint64(key))
}

// DropFact forgets a fact that can be seen from one of these places; else the
// error wraps core.ErrUnknown.
func (db *DB) DropFact(ctx context.Context, id string, see ...core.Path) error {
	return db.write(ctx, &job{run: func(t *tx) error {
		f, ok, err := t.fact(id)
		if err == nil && (!ok || !t.seenFrom(&f, see)) {
			err = fmt.Errorf("%w: %w: %q", ErrBatch, core.ErrUnknown, id)
		}
		if err == nil {
			t.dropFact(f)
		}
		return err
	}})
}

// seenFrom reports whether a fact can be seen from one of these places, where
// they are now.
func (t *tx) seenFrom(f *core.Fact, places []core.Path) bool {
	return slices.ContainsFunc(places, func(path core.Path) bool {
		return t.resolve(path).path.Within(f.Origin)
	})
}

// Listing asks for a page of facts.
type Listing struct {
	Below  core.Path // where they were said: there and below; the zero Path: anywhere
	About  core.Path // whom; the zero Path: anybody
	Before string    // the ID of the last one of the page before; "": the first page
	N      int       // how many at most
}

// ListFacts returns a page of facts with what they said before, for the admin: the
// newest first. next is to be given as Before for the page after it;
// "": there is none.
func (db *DB) ListFacts(ctx context.Context, l Listing) (facts []core.Fact, next string, err error) {
	before := uint64(math.MaxUint64)
	if l.Before != "" {
		if before, err = factNumber(l.Before); err != nil {
			return nil, "", err
		}
	}
	err = db.view(ctx, func(v *view) error {
		return db.file.guard(func() error {
			facts, next = v.list(l, before)
			return nil
		})
	})
	return facts, next, err
}

func (v *view) list(l Listing, before uint64) (facts []core.Fact, next string) {
	below := v.resolve(l.Below)
	c := v.bucket(bucketFacts).Cursor()
	k, value := c.Seek(binary.BigEndian.AppendUint64(nil, before))
	if k == nil {
		k, value = c.Last()
	}
	for ; k != nil; k, value = c.Prev() {
		isBefore := bytes.Compare(k, binary.BigEndian.AppendUint64(nil, before)) < 0
		if !isBefore || !mentions(value, below.path) || !mentions(value, l.About) {
			continue
		}
		f, err := decodeFact(k, value)
		if err != nil {
			v.db.odd(err)
			continue
		}
		if !f.Origin.Within(below.path) || !l.About.IsZero() && !slices.Contains(f.About, l.About) {
			continue
		}
		if len(facts) >= l.N {
			return facts, next
		}
		facts, next = append(facts, f), f.ID
	}
	return facts, ""
}

// mentions reports whether a path, or the beginning of one, may be in a value;
// it spares the decoding of those where it does not.
func mentions(value []byte, p core.Path) bool {
	begun := quoted(p.String())
	return bytes.Contains(value, begun[:len(begun)-1])
}
