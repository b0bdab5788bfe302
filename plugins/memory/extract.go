package memory

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
	"unicode/utf8"

	"synthbot/core"
	"synthbot/core/epochs"
	"synthbot/core/lexicon"
	"synthbot/core/llm"
	"synthbot/core/loop"
	"synthbot/core/txt"
)

// Times of the work in the background.
const (
	breath  = 10 * time.Second // between those that a former life left
	again   = time.Hour        // after a reading that no engine answered
	lastly  = 5 * time.Second  // for writing down what a reading came to when the bot stops
	freshly = 48 * time.Hour   // how old an unread conversation may be when the bot starts
)

// extractor reads conversations again, and saves the facts that a model finds in them.
type extractor struct {
	*Plugin

	mu   sync.Mutex
	due  map[core.Path]time.Time // when a place is looked at next
	wake chan struct{}           // one token
}

func (x *extractor) at(place core.Path, due time.Time) {
	x.mu.Lock()
	x.due[place] = due
	x.mu.Unlock()
	loop.Notify(x.wake)
}

// next takes out a place that is due. ok is false if there is none for a while; negative: until
// it is woken.
func (x *extractor) next() (place core.Path, wait time.Duration, ok bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	var first time.Time
	for p, t := range x.due {
		if first.IsZero() || t.Before(first) || t.Equal(first) && p.String() < place.String() {
			place, first = p, t
		}
	}
	wait = max(0, first.Sub(x.host.Clock()))
	switch {
	case first.IsZero():
		return place, -1, false
	case wait == 0:
		delete(x.due, place)
	}
	return place, wait, wait == 0
}

// run reads conversations again, one at a time, until ctx ends.
func (x *extractor) run(ctx context.Context) error {
	if !x.config.Extract {
		<-ctx.Done()
		return nil
	}
	if err := x.resume(ctx); err != nil && ctx.Err() == nil {
		x.host.Log.Warn("unread conversations not found", "err", err)
	}
	loop.Repeat(ctx, x.wake, func() time.Duration {
		place, wait, ok := x.next()
		if !ok {
			return wait
		}
		next, err := x.reread(ctx, place)
		if err != nil && ctx.Err() == nil {
			x.host.Log.Warn("conversation not read", "path", place, "err", err)
		}
		if !next.IsZero() {
			x.at(place, next)
		}
		return 0
	})
	return nil
}

// resume looks for what a former life left unread: where a place was read
// before, or was talked in lately.
func (x *extractor) resume(ctx context.Context) error {
	heads, err := core.Read(ctx, x.host.Reader, places)
	if err != nil {
		return fmt.Errorf("places: %w", err)
	}
	items, err := x.host.Items.List(ctx, core.Path{})
	if err != nil {
		return fmt.Errorf("marks: %w", err)
	}
	marks := make(map[core.Path]mark)
	for _, item := range items {
		var m mark
		if item.Key == markKey && item.Decode(&m) == nil {
			marks[item.Path] = m
		}
	}
	at := x.host.Clock()
	for _, h := range heads {
		m, read := marks[h.Path]
		if h.Last <= m.reached() || !read && at.Sub(h.Time) > freshly {
			continue
		}
		due := h.Time.Add(x.config.ExtractAfter)
		if due.Before(at) || due.Sub(at) > x.config.ExtractAfter { // the platform's clock is not ours
			due, at = at, at.Add(breath)
		}
		x.at(h.Path, due)
	}
	return nil
}

const markKey = "read"

type mark struct {
	Seq   uint64 `json:"seq"`             // everything up to here was read
	Begun uint64 `json:"begun,omitempty"` // a reading up to here was begun
	Day   string `json:"day,omitempty"`
	Runs  int    `json:"runs,omitempty"` // of that day

	version uint64
}

// reached is how far it was read, or was to be read by a life that ended in the
// middle: no part is read twice.
func (m *mark) reached() uint64 { return max(m.Seq, m.Begun) }

func (x *extractor) mark(ctx context.Context, place core.Path) (m mark, err error) {
	item, _, err := x.host.Items.Get(ctx, place, markKey)
	if err == nil {
		err = item.Decode(&m)
	}
	m.Seq, m.Begun, m.version = m.reached(), 0, item.Version
	return m, err
}

func (x *extractor) put(ctx context.Context, place core.Path, m *mark) (err error) {
	item := core.Item{Path: place, Key: markKey, Version: m.version, Value: core.JSON(m)}
	if m.version, err = x.host.Items.Put(ctx, item); err != nil {
		return fmt.Errorf("mark: %w", err)
	}
	return nil
}

// reread reads the new part of a place, if it is over, and keeps what it finds.
// next is when the place is to be looked at again; zero: when it is talked in.
func (x *extractor) reread(ctx context.Context, place core.Path) (next time.Time, err error) {
	ctx, now := epochs.With(ctx, x.host.Facts.Epoch()), x.host.Clock()
	m, err := x.mark(ctx, place)
	if err != nil {
		return next, err
	}
	part, err := x.part(ctx, place, m.Seq)
	if err != nil || part.mine == 0 {
		return next, err
	}
	over := part.last.Add(x.config.ExtractAfter)
	if over.After(now) && !part.full {
		return over, nil
	}
	if part.theirs < x.config.ExtractMin {
		return next, nil
	}
	today := now.Format(time.DateOnly)
	if m.Day != today {
		m.Day, m.Runs = today, 0
	}
	if m.Runs >= x.config.ExtractDaily {
		year, month, day := now.Date()
		return time.Date(year, month, day+1, 0, 0, 0, 0, now.Location()).Add(x.config.ExtractAfter), nil
	}
	m.Begun, m.Runs = part.to, m.Runs+1
	if err := x.put(ctx, place, &m); err != nil {
		return next, err
	}
	notes, err := x.ask(ctx, part)
	if err == nil {
		err = x.keep(ctx, part, notes)
	}
	next = x.settle(ctx, &m, err)
	if errors.Is(err, core.ErrNoEngine) {
		err = nil
	}
	late, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastly) // the bot may be about to stop
	defer cancel()
	return next, errors.Join(err, x.put(late, place, &m))
}

// settle notes in the mark what a reading came to. What an engine could not
// answer is tried again later; what it answered wrongly is not, nor what was
// kept in part.
func (x *extractor) settle(ctx context.Context, m *mark, err error) (next time.Time) {
	failed := errors.Is(err, errUnanswered)
	switch {
	case errors.Is(err, core.ErrNoEngine), failed && ctx.Err() != nil:
		m.Runs-- // nothing was asked, or the answer came to nobody
	case failed:
		next = x.host.Clock().Add(again)
	default:
		m.Seq = m.Begun
	}
	m.Begun = 0
	return next
}

var errUnanswered = errors.New("no answer")

// keep saves what was found. What concerns somebody who was forgotten meanwhile
// is left out.
func (x *extractor) keep(ctx context.Context, part *part, notes []note) error {
	kept := 0
	for _, n := range notes {
		f := core.Fact{
			Text: n.Text, Tags: n.Tags, Topic: n.Topic, Importance: n.Importance,
			Language: languageOr(x.host.Language, n.Language),
			Origin:   part.place,
		}
		if n.told { // else it is what the bot makes of the talk
			f.By = part.people[n.By-1].path
		}
		for _, about := range n.About {
			f.About = append(f.About, part.people[about-1].path)
		}
		if _, err := x.host.Facts.SaveFact(ctx, f); errors.Is(err, core.ErrForgotten) {
			continue
		} else if err != nil {
			return fmt.Errorf("keep: %w", err)
		}
		kept++
	}
	x.host.Log.Info("conversation read", "path", part.place, "messages", len(part.lines), "facts", kept)
	return nil
}

// Limits of an answer.
const (
	answerMax = 64 << 10 // bytes
	noteMin   = 3        // characters of a note
	noteMax   = 300
	noteTags  = 5
)

// note is a fact as a model names it. By and About are numbers of people.
type note struct {
	Text       string   `json:"text"`
	By         int      `json:"by"`
	About      []int    `json:"about"`
	Topic      string   `json:"topic"`
	Tags       []string `json:"tags"`
	Importance int      `json:"importance"`
	Language   string   `json:"language"`

	told bool // who is named by By said most of it, and nobody else said more
}

var errNoNotes = errors.New("no notes in it")

// notes reads an answer. Of what it names, that is taken which is whole, of
// people who took part, and made of words that were said; refused counts the
// rest.
func (x *extractor) notes(text string, c *part, lines []spoken) (notes []note, refused int, err error) {
	raws, err := rawNotes(text)
	if err != nil {
		return nil, 0, err
	}
	var names []string // of people, which claim nothing
	for _, s := range c.people {
		names = append(names, x.words.Content(s.Name)...)
	}
	everybody := x.said(lines, 0)
	for _, raw := range raws {
		n, ok := readNote(raw, len(c.people))
		if len(notes) == x.config.ExtractFacts || !ok {
			refused++
			continue
		}
		words := slices.DeleteFunc(x.words.Content(n.Text), func(w string) bool { return slices.Contains(names, w) })
		if len(words) == 0 || 2*lexicon.Shared(words, everybody) < len(words) { // invented, or in another language
			refused++
			continue
		}
		n.told = x.isStatedBy(n.By, words, lines, len(c.people))
		notes = append(notes, n)
	}
	return notes, refused, nil
}

// isStatedBy reports whether a user said half of the words, and nobody else more of them.
// So a note is never ascribed to someone who only used one of its words.
func (x *extractor) isStatedBy(by int, words []string, lines []spoken, people int) bool {
	count := func(who int) int { return lexicon.Shared(words, x.said(lines, who)) }
	own := count(by)
	for who := 1; who <= people; who++ {
		if count(who) > own {
			return false
		}
	}
	return 2*own >= len(words)
}

// rawNotes finds the list of notes: the last JSON object that has one.
func rawNotes(text string) (list []json.RawMessage, err error) {
	if len(text) > answerMax {
		return nil, errors.New("it is too long")
	}
	err = errNoNotes
	llm.FindObjects(text, func(object json.RawMessage) bool {
		var o struct {
			Facts []json.RawMessage `json:"facts"`
		}
		ok := json.Unmarshal(object, &o) == nil && o.Facts != nil
		if ok {
			list, err = o.Facts, nil
		}
		return ok
	})
	return list, err
}

// readNote reads one note. ok is false if it has keys that none has, or does not keep to what
// was asked.
func readNote(raw json.RawMessage, people int) (n note, ok bool) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if d.Decode(&n) != nil {
		return n, false
	}
	n.Topic = label(n.Topic)
	n.Tags = labels(n.Tags)
	if !languageTag().MatchString(n.Language) {
		n.Language = ""
	}
	length := utf8.RuneCountInString(n.Text)
	return n, length >= noteMin && length <= noteMax && n.Text == txt.ClipLine(n.Text, noteMax) &&
		n.By >= 1 && n.By <= people && len(n.About) <= people && len(n.Tags) <= noteTags &&
		!slices.ContainsFunc(n.About, func(a int) bool { return a < 1 || a > people }) &&
		len(slices.Compact(slices.Sorted(slices.Values(n.About)))) == len(n.About) &&
		n.Importance >= 0 && n.Importance <= 10
}

// said are the words of a person (0: of all) in the lines that the model was shown.
func (x *extractor) said(lines []spoken, by int) (words []string) {
	known := make(map[string]bool)
	for i := range lines {
		if lines[i].From == 0 || by != 0 && lines[i].From != by {
			continue
		}
		for _, w := range x.words.Content(lines[i].Text) {
			if !known[w] {
				known[w] = true
				words = append(words, w)
			}
		}
	}
	return words
}
