// Package spoken reads times as people say them in a chat: "in 10 minutes", "domani alle 9",
// "every monday at 18:30". It knows English, Italian, German, French, Spanish and Portuguese,
// each from a file of words. It is pure: the caller passes the time and the time zone.
//
// It returns an error rather than a wrong time. Two libraries were not suitable: one takes 230 ms of every start and 6
// MiB, the other knows only two of these languages, and both read "tomorrow at 9" as the present time tomorrow.
//
// A file of words has lines "meaning …: phrase, phrase". Meanings are in, later, at, on, the, next, every, and, half,
// quarter, past, to, before, half-to, clock, am, pm, workday, glue, until (before the end of a length or a rule), and
// with values number, unit, day (from today), part (of a day), hour, weekday (Sunday is 0), month, nth (of a month),
// next (1: not today) and lasting (1: after the length). A phrase may mean several words.
package spoken

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"synthbot/core/txt"
)

// Errors that the errors of a Reader wrap. ErrOften and ErrPartly wrap ErrUnclear, and ErrNever wraps ErrPast.
var (
	ErrUnclear = errors.New("no time that is understood")
	ErrOften   = fmt.Errorf("%w: at most once an hour", ErrUnclear)
	ErrPartly  = fmt.Errorf("%w: only a part of it is", ErrUnclear)
	ErrPast    = errors.New("that time is past")
	ErrNever   = fmt.Errorf("%w: there is no such day", ErrPast)
)

// isTelling reports whether an error says more than that no time was understood.
func isTelling(err error) bool {
	return errors.Is(err, ErrPast) || errors.Is(err, ErrOften) || errors.Is(err, ErrPartly)
}

// Limits of what is read.
const (
	maxWhole = 200  // bytes of a text that is only a time
	maxText  = 4000 // bytes of a text that contains a time
	maxEdge  = 16   // words at the start and at the end of such a text
)

// When is a time that was read.
type When struct {
	At     time.Time
	Repeat string // an RRULE; "" for once
	Wall   bool   // a time of day, rather than a time span from now
	Dated  bool   // the text names a day
}

// Clock returns the moment at which wall clocks in a zone show a time.
type Clock func(year int, month time.Month, day, hour, minute, second int, zone *time.Location) time.Time

// Reader reads times. It is immutable, and loads its files on first use.
type Reader struct {
	lexicons func() []*lexicon
	at       Clock
	waking   bool
}

// Waking returns a reader that prefers waking hours if an hour may be in the morning or in the afternoon: "at 3" is
// 15:00, "at 7" is 7:00, and "today at 9" is 21:00 if 9:00 is past.
func (r *Reader) Waking() *Reader {
	waking := *r
	waking.waking = true
	return &waking
}

// New makes a reader that tries a language first, given as a tag like "it" or "pt-BR". A nil clock means time.Date.
func New(language string, at Clock) *Reader {
	if at == nil {
		at = func(year int, month time.Month, day, hour, minute, second int, zone *time.Location) time.Time {
			return time.Date(year, month, day, hour, minute, second, 0, zone)
		}
	}
	tags := languages()
	first, _, _ := strings.Cut(strings.ToLower(language), "-")
	own := slices.Index(tags, first)
	if own > 0 {
		tags = slices.Insert(slices.Delete(tags, own, own+1), 0, first)
	}
	return &Reader{at: at, lexicons: sync.OnceValue(func() []*lexicon {
		list := make([]*lexicon, len(tags))
		for i, tag := range tags {
			list[i] = readLexicon(tag)
		}
		return list
	})}
}

// Read reads a text that is only a time, as of now and in now's zone. It also reads
// RFC 3339, in now's zone if there is no offset. The result is always after now.
func (r *Reader) Read(text string, now time.Time) (When, error) {
	text = strings.TrimSpace(text)
	if len(text) > maxWhole {
		return When{}, fmt.Errorf("%w: it is too long", ErrUnclear)
	}
	if w, ok := r.written(text, now); ok {
		return future(w, now)
	}
	words := split(text)
	worst := ErrUnclear
	for _, l := range r.lexicons() {
		p := parser{tokens: l.tokens(words), bare: true}
		p.skip(glue, the)
		p.parse()
		p.skip(glue)
		if p.said.isEmpty() || p.at < len(p.tokens) {
			continue
		}
		w, err := r.resolve(p.said, now)
		if err == nil {
			return w, nil
		}
		if isTelling(err) {
			worst = err
		}
	}
	return When{}, worst
}

// written reads RFC 3339 and its variants without seconds or offset.
func (r *Reader) written(text string, now time.Time) (When, bool) {
	const minutes = "2006-01-02T15:04"
	text = strings.Replace(text, " ", "T", 1)
	for _, layout := range []string{time.RFC3339Nano, minutes + "Z07:00", minutes + ":05", minutes} {
		t, err := time.Parse(layout, text)
		switch {
		case err != nil:
		case strings.HasSuffix(layout, "Z07:00"):
			return When{At: t.In(now.Location())}, true
		default:
			at := r.at(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), now.Location())
			return When{At: at, Wall: true}, true
		}
	}
	return When{}, false
}

func future(w When, now time.Time) (When, error) {
	if !w.At.After(now) {
		return When{}, ErrPast
	}
	return w, nil
}

// Find reads the time at the start or at the end of a text, or in parts at both. rest is the
// remaining text, even if the time is impossible.
func (r *Reader) Find(text string, now time.Time) (w When, rest string, err error) {
	if len(text) > maxText {
		return When{}, text, fmt.Errorf("%w: the text is too long", ErrUnclear)
	}
	words := split(text)
	best := 0
	rest, err = text, ErrUnclear
	for _, l := range r.lexicons() {
		f := l.find(words)
		if f.words() <= best && (err == nil || f.words() < best) {
			continue
		}
		got, wrong := r.resolve(f.said, now)
		if f.partly {
			wrong = ErrPartly
		}
		if wrong != nil && (!isTelling(wrong) || f.words() == best) {
			continue
		}
		best, w, rest, err = f.words(), got, f.rest(text), wrong
	}
	if err != nil {
		return When{}, rest, err
	}
	return w, rest, nil
}

// IsLikeUnit reports whether a word is a unit of time, or a longer one with one letter wrong.
func (r *Reader) IsLikeUnit(word string) bool {
	word = txt.Fold(word)
	for _, l := range r.lexicons() {
		for phrase, meanings := range l.phrases {
			isUnit := len(meanings) == 1 && meanings[0][0].kind == unit
			if isUnit && (phrase == word || len(phrase) > 3 && txt.Distance(phrase, word) <= 1) {
				return true
			}
		}
	}
	return false
}

// FindSpan reads the length of time at the start of a text, such as "2 hours", "1w2d" or "until Friday" as of now, or
// one with a word like "for" or "until" at the end. rest is the remaining text. length is 0 if there is none. The error
// says that the text begins with "until" and an unclear time, or that an end is past.
func (r *Reader) FindSpan(text string, now time.Time) (length time.Duration, rest string, err error) {
	if len(text) > maxText {
		return 0, text, nil
	}
	words := split(text)
	best := found{all: words, back: len(words)}
	for _, l := range r.lexicons() {
		f, lasts, wrong := r.findSpan(l, words, now)
		if f.words() > best.words() {
			best, length = f, lasts
		}
		if err == nil || isTelling(wrong) {
			err = wrong
		}
	}
	if best.words() == 0 {
		return 0, text, err
	}
	best.keep = best.front
	return length, best.rest(text), nil
}

// findSpan looks for a length of time at the start, then at the end.
func (r *Reader) findSpan(l *lexicon, words []word, now time.Time) (f found, length time.Duration, err error) {
	f = found{all: words, back: len(words)}
	p := parser{tokens: l.tokens(words[:min(len(words), maxEdge)])}
	length, _, err = r.lasts(&p, now)
	if length > time.Second { // "a second account" is not a length
		f.front = p.tokens[p.at-1].to
		return f, length, nil
	}
	from := max(0, len(words)-maxEdge)
	q := parser{tokens: l.tokens(words[from:])}
	for i := range q.tokens {
		q.at = i
		length, marked, wrong := r.lasts(&q, now)
		switch {
		case !marked || q.at < len(q.tokens):
		case length > time.Second:
			f.back = from + q.tokens[i].from
			return f, length, nil
		case isTelling(wrong): // otherwise it may be part of the text
			err = wrong
		}
	}
	return f, 0, err
}

// lasts reads a length of time, or its end after "until". length is 0 if there is none. marked reports whether a word
// like "for" or "until" was said. The error is about an end that is unclear or past.
func (r *Reader) lasts(p *parser, now time.Time) (length time.Duration, marked bool, err error) {
	if !p.accept(until) {
		s, marked, ok := p.readLength()
		if !ok {
			return 0, marked, nil
		}
		return s.length(), marked, nil
	}
	p.said, p.led = said{}, true
	p.skip(at)
	p.parse()
	w, err := r.resolve(p.said, now)
	if err == nil && w.Repeat != "" {
		err = ErrUnclear
	}
	if err != nil {
		return 0, true, err
	}
	return w.At.Sub(now), true, nil
}

// Begins reports whether a text begins with a time, or with a word like "every".
func (r *Reader) Begins(text string) bool {
	if len(text) > maxText {
		return false
	}
	words := split(text)
	return slices.ContainsFunc(r.lexicons(), func(l *lexicon) bool {
		tokens := l.tokens(words[:min(len(words), maxEdge)])
		p := parser{tokens: tokens}
		p.parse() // "at 8"
		if p.said.isEmpty() {
			p.skip(on, at, the)
			p.parse()
		}
		return !p.said.isEmpty() || len(tokens) > 0 && tokens[0].isEvery()
	})
}

type found struct {
	all         []word
	front, back int // the time is the words before front, and from back on
	keep        int // the first word of the remaining text
	said        said
	partly      bool // words next to the time belong to it, and are not understood
}

func (f *found) words() int { return f.front + len(f.all) - f.back }

// rest returns the remaining text, without words that only join it to the time.
func (f *found) rest(text string) string {
	if f.keep >= f.back {
		return ""
	}
	from, to := 0, len(text)
	if f.keep > 0 {
		from = f.all[f.keep-1].end
	}
	if f.back < len(f.all) {
		to = f.all[f.back].start
	}
	rest := strings.TrimLeft(text[from:to], ",;:.- \t\r\n")
	return strings.TrimRight(rest, ",;: \t\r\n")
}

// find looks for a time at both ends of a text.
func (l *lexicon) find(words []word) found {
	f := l.findEnds(words)
	p := parser{tokens: l.tokens(words[f.front:min(len(words), f.front+maxEdge)]), said: f.said}
	isPart := p.readUnclear
	if f.front == 0 {
		isPart = p.readUnclearRule
	}
	if isPart() {
		f.front, f.partly = f.front+p.tokens[p.at-1].to, true
	}
	if f.back > f.front && f.back < len(words) {
		q := parser{tokens: l.tokens(words[f.back-1 : f.back])}
		if q.accept(wrong) {
			f.back, f.partly = f.back-1, true
		}
	}
	return f
}

// readUnclear reads words after a time that seem to belong to it: "at 25", "until she calls".
func (p *parser) readUnclear() bool {
	if p.said.rule != nil && p.said.ends == nil && p.accept(until) {
		return true
	}
	p.skip(the, and)
	led := p.skip(at)
	if p.accept(wrong) {
		return true
	}
	_, counts := p.integer(number, 2, math.MaxInt32) // 1 may be an article
	return led && counts && p.said.time == nil && p.said.span == nil
}

// readUnclearRule reads the start of a rule that is not understood: "every 29 February", "every last Friday".
func (p *parser) readUnclearRule() bool {
	p.skip(glue, on)
	if !p.accept(every) {
		return false
	}
	return p.accept(number, nth, weekday, unit, month) ||
		p.try(func() bool { p.at++; return p.accept(weekday, unit, month) })
}

// findEnds looks for what find returns, without partly.
func (l *lexicon) findEnds(words []word) found {
	head := found{all: words, back: len(words)}
	tokens := l.tokens(words[:min(len(words), maxEdge)])
	p := parser{tokens: tokens}
	p.skip(glue)
	p.parse()
	if !p.said.isEmpty() {
		head.front, head.said = tokens[p.at-1].to, p.said
		p.skip(glue)
		head.keep = tokens[p.at-1].to
	}
	tail := l.tail(words, head)
	both := head.said.or(tail.said)
	isClear := both == tail.said.or(head.said) // neither says what the other one does
	if isClear && !head.said.isEmpty() && !tail.said.isEmpty() {
		return found{all: words, front: head.front, keep: head.keep, back: tail.back, said: both}
	}
	if tail.words() > head.words() {
		return tail
	}
	return head
}

// tail finds the longest time at the end, after the head.
func (l *lexicon) tail(words []word, head found) found {
	tail := found{all: words, back: len(words)}
	from := max(head.keep, len(words)-maxEdge)
	tokens := l.tokens(words[from:])
	for i := range tokens {
		p := parser{tokens: tokens, at: i}
		p.parse()
		if p.at == len(tokens) && !p.said.isEmpty() {
			if slices.ContainsFunc(tokens[max(0, i-2):i], token.isEvery) {
				break // "every last friday" is not this friday
			}
			tail.back, tail.said = from+tokens[i].from, p.said
			break
		}
	}
	q := parser{tokens: l.tokens(words[:min(len(words), maxEdge)])}
	if q.skip(glue) {
		tail.keep = min(q.tokens[q.at-1].to, tail.back)
	}
	return tail
}
