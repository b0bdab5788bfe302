package memory

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"synthbot/core"
)

// Fact is something that the bot was told or found out.
type Fact struct {
	ID         string      `json:"id,omitempty"` // given by Save
	Text       string      `json:"text"`
	Tags       []string    `json:"tags,omitempty"`
	About      []core.Path `json:"about,omitempty"` // people and places
	Topic      string      `json:"topic,omitempty"` // one fact of a topic about the same replaces another
	Origin     core.Path   `json:"origin,omitzero"` // where it was said: it is seen there and below, nowhere else
	Importance int         `json:"importance,omitempty"`
	Language   string      `json:"language,omitempty"` // BCP 47, of Text
	Time       time.Time   `json:"time,omitzero"`
	By         core.Path   `json:"by,omitzero"` // who said it; zero: the bot itself
	// Former holds what it said before, newest first.
	Former []Former `json:"former,omitempty"`
}

// Former is what a fact said before it was changed.
type Former struct {
	Text string    `json:"text"`
	Time time.Time `json:"time,omitzero"`
	By   core.Path `json:"by,omitzero"`
}

// Limits of a fact.
const (
	maxFactText = 16 << 10
	maxTags     = 32
	maxFormer   = 20
)

// ErrUnknown is what changing a fact that is not there, or not to be seen from
// where one stands, fails with.
var ErrUnknown = errors.New("no such memory")

func (f *Fact) check() error {
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

// SaveFact keeps a fact and returns it as it stands then. With an ID it replaces
// that one. Without, it replaces one of the same origin, about the same, that
// says the same or has the same Topic: the newest wins, what it said before
// stays as Former. epoch is the one under which the caller read what he made
// the fact of (see DB.Epoch); a fact about or by somebody who was forgotten
// since is not kept, and ErrForgotten returned.
func (db *DB) SaveFact(ctx context.Context, f Fact, epoch uint64) (Fact, error) {
	if err := f.check(); err != nil {
		return Fact{}, err
	}
	var saved Fact
	err := db.write(ctx, &job{size: len(f.Text) * 4, run: func(t *tx) (err error) {
		if db.forgot(epoch, append([]core.Path{f.By}, f.About...)...) {
			return fmt.Errorf("memory: %w: %w", ErrBatch, ErrForgotten)
		}
		saved, err = t.saveFact(f)
		return err
	}})
	if err != nil {
		return Fact{}, err
	}
	return saved, nil
}

func (t *tx) saveFact(f Fact) (Fact, error) {
	if f.Time.IsZero() {
		f.Time = t.now
	}
	old, err := t.replacedBy(f)
	if err != nil {
		return Fact{}, err
	}
	if old == nil {
		n, err := t.bucket(bucketFacts).NextSequence()
		if err != nil {
			return Fact{}, fmt.Errorf("memory: %w", err)
		}
		f.ID = strconv.FormatUint(n, 36)
		return f, t.putFact(f)
	}
	if err := t.dropFact(*old); err != nil {
		return Fact{}, err
	}
	f = old.merge(f)
	return f, t.putFact(f)
}

// merge lets a newer fact replace f.
func (f *Fact) merge(newer Fact) Fact {
	newer.ID, newer.Origin, newer.Former = f.ID, f.Origin, f.Former
	if newer.Text != f.Text {
		newer.Former = slices.Insert(slices.Clone(f.Former), 0, Former{f.Text, f.Time, f.By})
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

// replacedBy finds the fact whose place f takes; nil where there is none.
func (t *tx) replacedBy(f Fact) (*Fact, error) {
	if f.ID != "" {
		old, ok, err := t.fact(f.ID)
		if err == nil && !ok {
			err = fmt.Errorf("%w: %w", ErrBatch, ErrUnknown)
		}
		return &old, err
	}
	keys := []string{sameTerm(f)}
	if f.Topic != "" {
		keys = append(keys, topicTerm(f))
	}
	for _, term := range keys {
		var found string
		t.postings(f.Origin, term, 1, func(id uint64) { found = strconv.FormatUint(id, 36) })
		if found == "" {
			continue
		}
		old, ok, err := t.fact(found)
		if err != nil || ok {
			return &old, err
		}
	}
	return nil, nil
}

func factKey(id string) ([]byte, error) {
	n, err := strconv.ParseUint(id, 36, 64)
	if err != nil {
		return nil, fmt.Errorf("%w: %w: %q", ErrBatch, ErrUnknown, id)
	}
	return binary.BigEndian.AppendUint64(nil, n), nil
}

func (t *tx) fact(id string) (Fact, bool, error) {
	key, err := factKey(id)
	if err != nil {
		return Fact{}, false, err
	}
	value := t.bucket(bucketFacts).Get(key)
	if value == nil {
		return Fact{}, false, nil
	}
	f, err := decodeFact(value)
	return f, err == nil, err
}

func decodeFact(value []byte) (f Fact, err error) {
	if err := json.Unmarshal(value, &f); err != nil {
		return Fact{}, fmt.Errorf("memory: %w", err)
	}
	return f, nil
}

// putFact writes a fact and the postings that lead to it.
func (t *tx) putFact(f Fact) error {
	key, err := factKey(f.ID)
	if err != nil {
		return err
	}
	value, err := json.Marshal(f)
	if err != nil {
		return fmt.Errorf("memory: %w: %w", ErrBatch, err)
	}
	if err := t.bucket(bucketFacts).Put(key, value); err != nil {
		return fmt.Errorf("memory: %w", err)
	}
	words := t.bucket(bucketWords)
	rank := f.rank()
	for _, term := range f.terms() {
		if err := words.Put(postingKey(f.Origin, term, key), rank); err != nil {
			return fmt.Errorf("word: %w", err)
		}
	}
	return nil
}

// rank is kept with each posting, so that a fact need not be read to be ranked:
// its time (4 bytes, hours), importance (1), and how many words it has (2).
func (f *Fact) rank() []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(max(f.Time.Unix()/3600, 0)))
	b = append(b, byte(min(max(f.Importance, 0), 10)))
	return binary.BigEndian.AppendUint16(b, uint16(min(len(f.Text)/6, math.MaxUint16)))
}

// dropFact takes a fact and all that leads to it away.
func (t *tx) dropFact(f Fact) error {
	key, err := factKey(f.ID)
	if err != nil {
		return err
	}
	if err := t.bucket(bucketFacts).Delete(key); err != nil {
		return fmt.Errorf("memory: %w", err)
	}
	words := t.bucket(bucketWords)
	for _, term := range f.terms() {
		if err := words.Delete(postingKey(f.Origin, term, key)); err != nil {
			return fmt.Errorf("word: %w", err)
		}
	}
	return nil
}

// DropFact forgets a fact that can be seen from one of these places; else the
// error wraps ErrUnknown.
func (db *DB) DropFact(ctx context.Context, id string, see ...core.Path) error {
	return db.write(ctx, &job{run: func(t *tx) error {
		f, ok, err := t.fact(id)
		if err == nil && (!ok || !f.seenFrom(see)) {
			err = fmt.Errorf("%w: %w: %q", ErrBatch, ErrUnknown, id)
		}
		if err != nil {
			return err
		}
		return t.dropFact(f)
	}})
}

func (f *Fact) seenFrom(places []core.Path) bool {
	return slices.ContainsFunc(places, func(p core.Path) bool { return p.Within(f.Origin) })
}
