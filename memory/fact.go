package memory

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
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

// factTx is a transaction's access to facts and their postings and vectors.
type factTx struct{ *tx }

func (t *tx) facts() factTx { return factTx{t} }

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

// SaveFact stores a fact and returns it as stored.
//
// With an ID, it replaces that fact, and keeps the Former that is stored. If Origin is set, the fact must be
// visible from there, or the error wraps core.ErrUnknown. Without an ID, it replaces facts of the same origin
// about the same people that say the same or have the same Topic, if Fact.MayReplace allows it: the newest text
// wins, and older ones become Former.
//
// It stores no fact by or about people, or of a place, that were forgotten since the context's epoch began, and
// none of a turn that answers them: the error wraps core.ErrForgotten.
func (db *DB) SaveFact(ctx context.Context, f core.Fact) (core.Fact, error) {
	if err := checkFact(&f); err != nil {
		return core.Fact{}, err
	}
	var saved core.Fact
	err := db.write(ctx, &job{size: len(f.Text) * 4, run: func(t *tx) (err error) {
		b := db.epochOf(ctx)
		if b.isMuted(b.turn) || b.forgot(append([]core.Path{f.By, f.Origin}, f.About...)...) {
			return fmt.Errorf("memory: %w: %w", ErrBatch, core.ErrForgotten)
		}
		saved, err = t.facts().saveFact(f)
		return err
	}})
	return saved, err
}

func (t factTx) saveFact(f core.Fact) (core.Fact, error) {
	if f.Time.IsZero() {
		f.Time = t.now
	}
	if f.ID != "" {
		f.Former = nil // the stored one stays
	}
	f.Origin = t.resolve(f.Origin).path
	olds, err := t.replacedBy(f)
	if err != nil {
		return core.Fact{}, err
	}
	if len(olds) == 0 {
		n, _ := t.bucket(bucketFacts).NextSequence() // it fails in views only
		f.ID = factID(n)
		t.putFact(f)
		return f, nil
	}
	for _, older := range olds[1:] {
		said := core.Former{Text: older.Text, Time: older.Time, By: older.By}
		f.Former = append(append(slices.Clone(f.Former), said), older.Former...)
		t.dropFact(older)
	}
	f = mergeFacts(&olds[0], f)
	t.replaceFact(olds[0], f)
	f.Known = f.Text == olds[0].Text
	return f, nil
}

// replaceFact replaces a fact. Its vector stays if the text does.
func (t factTx) replaceFact(old, f core.Fact) {
	number := numberOfFact(&old)
	v, known := t.vectorOf(old.Origin, number)
	kept := vector{v.model, v.scale, bytes.Clone(v.components)}
	t.dropFact(old)
	t.putFact(f)
	if known && old.Text == f.Text {
		t.putVector(f.Origin, number, &kept)
	}
}

// mergeFacts returns the newer fact, with what it takes over from the old one.
func mergeFacts(old *core.Fact, newer core.Fact) core.Fact {
	newer.ID, newer.Origin, newer.Former = old.ID, old.Origin, slices.Concat(old.Former, newer.Former)
	if newer.Text != old.Text {
		newer.Former = slices.Insert(newer.Former, 0, core.Former{Text: old.Text, Time: old.Time, By: old.By})
	}
	newer.Former = newer.Former[:min(len(newer.Former), maxFormer)]
	newer.Importance = max(newer.Importance, old.Importance)
	for _, tag := range old.Tags {
		if !slices.Contains(newer.Tags, tag) && len(newer.Tags) < maxTags {
			newer.Tags = append(newer.Tags, tag)
		}
	}
	newer.Topic = cmp.Or(newer.Topic, old.Topic)
	if newer.About == nil {
		newer.About = old.About
	}
	return newer
}

// replacedBy lists the facts that f replaces, newest first.
func (t factTx) replacedBy(f core.Fact) (olds []core.Fact, err error) {
	if f.ID != "" {
		old, err := t.factByID(f.ID)
		if err == nil && !f.Origin.IsZero() && !f.Origin.Within(old.Origin) {
			err = unknownFact(f.ID)
		}
		return []core.Fact{old}, err
	}
	ids := t.factsWith(f.Origin, sameTerm(f))
	if f.Topic != "" {
		ids = append(ids, t.factsWith(f.Origin, topicTerm(f))...)
	}
	slices.Sort(ids)
	for _, id := range slices.Backward(slices.Compact(ids)) {
		if old, ok := t.fact(id); ok && f.MayReplace(&old) {
			olds = append(olds, old)
		}
	}
	return olds, nil
}

func factNumber(id string) (uint64, error) {
	n, err := strconv.ParseUint(id, 36, 64)
	if err != nil {
		return 0, unknownFact(id)
	}
	return n, nil
}

func factID(number uint64) string { return strconv.FormatUint(number, 36) }

// numberOfFact returns the number of a fact, which must have an ID.
func numberOfFact(f *core.Fact) uint64 {
	n, _ := factNumber(f.ID)
	return n
}

func factKey(f *core.Fact) []byte { return numberKey(numberOfFact(f)) }

// fact reads a fact; ok is false if there is none, or if it cannot be read, which is logged.
func (t factTx) fact(number uint64) (f core.Fact, ok bool) {
	f, err := t.readFact(number)
	if err != nil && !errors.Is(err, core.ErrUnknown) {
		t.db.logUnreadable(err)
	}
	return f, err == nil
}

// readFact reads a fact; if there is none, the error wraps core.ErrUnknown.
func (t factTx) readFact(number uint64) (core.Fact, error) {
	key := numberKey(number)
	value := t.bucket(bucketFacts).Get(key)
	if value == nil {
		return core.Fact{}, unknownFact(factID(number))
	}
	return decodeFact(key, value)
}

func (t factTx) factByID(id string) (core.Fact, error) {
	number, err := factNumber(id)
	if err != nil {
		return core.Fact{}, err
	}
	return t.readFact(number)
}

func unknownFact(id string) error { return fmt.Errorf("%w: %w: %q", ErrBatch, core.ErrUnknown, id) }

func decodeFact(key, value []byte) (f core.Fact, err error) {
	err = json.Unmarshal(value, &f)
	if len(key) != 8 {
		err = errFields
	}
	if err != nil {
		return core.Fact{}, fmt.Errorf("memory %x: %w", key, err)
	}
	f.ID = factID(binary.BigEndian.Uint64(key))
	return f, nil
}

func (t factTx) putFact(f core.Fact) {
	value, err := json.Marshal(f)
	t.fail(bucketFacts, err)
	t.bucket(bucketFacts).Put(factKey(&f), value)
	t.saved = append(t.saved, numberOfFact(&f))
	t.putPostings(&f)
}

func (t factTx) putPostings(f *core.Fact) {
	words, key, rank := t.bucket(bucketWords), factKey(f), rankFact(f)
	for _, term := range factTerms(f) {
		words.Put(postingKey(f.Origin, term, key), rank)
	}
}

// rankFact returns what each posting stores to rank a fact without reading it: its time (4 bytes, hours),
// importance (1), and number of words (2).
func rankFact(f *core.Fact) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(max(f.Time.Unix()/3600, 0)))
	b = append(b, byte(min(max(f.Importance, 0), 10)))
	return binary.BigEndian.AppendUint16(b, uint16(min(len(f.Text)/6, math.MaxUint16)))
}

func (t factTx) dropFact(f core.Fact) {
	key := factKey(&f)
	t.bucket(bucketFacts).Delete(key)
	for _, term := range factTerms(&f) {
		t.bucket(bucketWords).Delete(postingKey(f.Origin, term, key))
	}
	t.dropVector(f.Origin, numberOfFact(&f))
}

// DropFact deletes a fact that is visible from one of these places. If there is none, the error wraps core.ErrUnknown.
func (db *DB) DropFact(ctx context.Context, id string, see ...core.Path) error {
	return db.write(ctx, &job{run: func(t *tx) error {
		f, err := t.facts().factByID(id)
		if err != nil {
			return err
		}
		seen := func(path core.Path) bool { return t.resolve(path).path.Within(f.Origin) }
		if !slices.ContainsFunc(see, seen) {
			return unknownFact(id)
		}
		t.facts().dropFact(f)
		return nil
	}})
}

// ListFacts returns a page of facts with their former texts, for admins: the newest first.
// next is the Before of the page after it; "" if there is none.
func (db *DB) ListFacts(ctx context.Context, l core.FactPage) (facts []core.Fact, next string, err error) {
	before := uint64(math.MaxUint64)
	if l.Before != "" {
		if before, err = factNumber(l.Before); err != nil {
			return nil, "", err
		}
	}
	err = db.view(ctx, func(v *view) error {
		below := v.resolve(l.Below).path
		for k, value := range v.backward(bucketFacts, nil, numberKey(before)) {
			f, err := decodeFact(k, value)
			switch {
			case err != nil:
				v.db.logUnreadable(err)
			case !f.Origin.Within(below) || !l.About.IsZero() && !slices.Contains(f.About, l.About):
			case len(facts) >= l.N:
				return nil
			default:
				facts, next = append(facts, f), f.ID
			}
		}
		next = ""
		return nil
	})
	return facts, next, err
}
