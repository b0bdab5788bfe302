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

const (
	overdueDelay  = 10 * time.Second // between two conversations that were overdue at the start
	retryDelay    = time.Hour        // after an engine failed
	markTimeout   = 5 * time.Second  // for storing the mark after a reading, also when the bot stops
	maxUnreadTime = 48 * time.Hour   // since the last message of a place that was never read
)

// extractor reads finished conversations, and saves the facts that a model finds in them.
type extractor struct {
	*Plugin

	mu   sync.Mutex
	due  map[core.Path]time.Time // when to check a place next
	wake chan struct{}           // one token
}

func (x *extractor) schedule(place core.Path, due time.Time) {
	x.mu.Lock()
	x.due[place] = due
	x.mu.Unlock()
	loop.Notify(x.wake)
}

// next removes and returns a place that is due. If ok is false, none is due for the time wait, or
// none is scheduled if wait is negative.
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

// run reads the conversations that are due, one at a time, until ctx ends.
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
			x.schedule(place, next)
		}
		return 0
	})
	return nil
}

// resume schedules the places with messages that were not read before the bot stopped: those that
// were read before or have a recent message.
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
		if h.Last <= m.reached() || !read && at.Sub(h.Time) > maxUnreadTime {
			continue
		}
		due := h.Time.Add(x.config.ExtractAfter)
		if due.Before(at) || due.Sub(at) > x.config.ExtractAfter { // overdue, or the platform's clock is ahead
			due, at = at, at.Add(overdueDelay)
		}
		x.schedule(h.Path, due)
	}
	return nil
}

const markKey = "read"

// mark records how far a place was read.
type mark struct {
	Seq   uint64 `json:"seq"`             // everything up to here was read
	Begun uint64 `json:"begun,omitempty"` // a reading up to here was begun
	Day   string `json:"day,omitempty"`
	Runs  int    `json:"runs,omitempty"` // readings on that day

	version uint64
}

// reached returns the last entry that was read. An interrupted reading counts, so that nothing is read twice.
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

// reread reads the new part of a place if that conversation is over, and saves the facts in it.
// next is when to check the place again; zero: after the next turn there.
func (x *extractor) reread(ctx context.Context, place core.Path) (next time.Time, err error) {
	ctx, now := epochs.With(ctx, x.host.Facts.Epoch()), x.host.Clock()
	m, err := x.mark(ctx, place)
	if err != nil {
		return next, err
	}
	part, err := x.part(ctx, place, m.Seq)
	if err != nil || part.byBot == 0 {
		return next, err
	}
	over := part.last.Add(x.config.ExtractAfter)
	if over.After(now) && !part.full {
		return over, nil
	}
	if part.byUsers < x.config.ExtractMin {
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
		err = x.save(ctx, part, notes)
	}
	next = x.finish(ctx, &m, err)
	if errors.Is(err, core.ErrNoEngine) {
		err = nil
	}
	late, cancel := context.WithTimeout(context.WithoutCancel(ctx), markTimeout) // the bot may be about to stop
	defer cancel()
	return next, errors.Join(err, x.put(late, place, &m))
}

// finish updates the mark after a reading that ended with err. If no engine answered, the part is read again, at next
// or after the next turn. It is not read again after an invalid answer or if only some facts were saved.
func (x *extractor) finish(ctx context.Context, m *mark, err error) (next time.Time) {
	failed := errors.Is(err, errUnanswered)
	switch {
	case errors.Is(err, core.ErrNoEngine), failed && ctx.Err() != nil:
		m.Runs-- // no engine was asked, or the bot is stopping
	case failed:
		next = x.host.Clock().Add(retryDelay)
	default:
		m.Seq = m.Begun
	}
	m.Begun = 0
	return next
}

var errUnanswered = errors.New("no answer")

// save saves notes as facts, except those about users who were forgotten meanwhile.
func (x *extractor) save(ctx context.Context, part *part, notes []note) error {
	kept := 0
	for _, n := range notes {
		f := core.Fact{
			Text: n.Text, Tags: n.Tags, Topic: n.Topic, Importance: n.Importance,
			Language: languageOr(x.host.Language, n.Language),
			Origin:   part.place,
		}
		if n.stated { // else the fact is the bot's own conclusion
			f.By = part.people[n.By-1].path
		}
		for _, about := range n.About {
			f.About = append(f.About, part.people[about-1].path)
		}
		if _, err := x.host.Facts.SaveFact(ctx, f); errors.Is(err, core.ErrForgotten) {
			continue
		} else if err != nil {
			return fmt.Errorf("save: %w", err)
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

// note is a fact as the model writes it. By and About are numbers of speakers.
type note struct {
	Text       string   `json:"text"`
	By         int      `json:"by"`
	About      []int    `json:"about"`
	Topic      string   `json:"topic"`
	Tags       []string `json:"tags"`
	Importance int      `json:"importance"`
	Language   string   `json:"language"`

	stated bool // By said at least half of its words, and nobody else said more
}

var errNoNotes = errors.New("no notes in it")

// notes parses an answer. It returns the notes that are valid, name only speakers of the
// conversation and consist mostly of words from it. refused counts the others.
func (x *extractor) notes(text string, c *part, lines []spoken) (notes []note, refused int, err error) {
	raws, err := rawNotes(text)
	if err != nil {
		return nil, 0, err
	}
	var names []string // of speakers; they do not count as words of a note
	for _, s := range c.people {
		names = append(names, x.words.Content(s.Name)...)
	}
	everybody := x.wordsOf(lines, 0)
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
		n.stated = x.isStatedBy(n.By, words, lines, len(c.people))
		notes = append(notes, n)
	}
	return notes, refused, nil
}

// isStatedBy reports whether a user said half of the words, and nobody else more of them.
// So a note is never ascribed to someone who only used one of its words.
func (x *extractor) isStatedBy(by int, words []string, lines []spoken, people int) bool {
	count := func(who int) int { return lexicon.Shared(words, x.wordsOf(lines, who)) }
	own := count(by)
	for who := 1; who <= people; who++ {
		if count(who) > own {
			return false
		}
	}
	return 2*own >= len(words)
}

// rawNotes returns the list of notes in a text: that of the last JSON object with one.
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

// readNote parses one note. ok is false if it has unknown keys or values that the prompt does not allow.
func readNote(raw json.RawMessage, people int) (n note, ok bool) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if d.Decode(&n) != nil {
		return n, false
	}
	n.Topic = label(n.Topic)
	n.Tags = txt.Labels(n.Tags, nameMax)
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

// wordsOf returns the words of a speaker (0: of all) in the lines that the model was shown.
func (x *extractor) wordsOf(lines []spoken, by int) (words []string) {
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
