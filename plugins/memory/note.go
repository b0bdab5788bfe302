package memory

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"unicode/utf8"

	"synthbot/core/llm"
	"synthbot/core/txt"
)

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
		names = append(names, x.words.content(s.name)...)
	}
	everybody := x.said(lines, func(int) bool { return true })
	for _, raw := range raws {
		n, ok := readNote(raw, len(c.people))
		if len(notes) == x.config.ExtractFacts || !ok {
			refused++
			continue
		}
		words := slices.DeleteFunc(x.words.content(n.Text), func(w string) bool { return slices.Contains(names, w) })
		if len(words) == 0 || 2*shared(words, everybody) < len(words) { // invented, or in another language
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
	count := func(who int) int { return shared(words, x.said(lines, func(from int) bool { return from == who })) }
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

// said are the words of some people in the lines that the model was shown.
func (x *extractor) said(lines []spoken, by func(from int) bool) (words []string) {
	known := make(map[string]bool)
	for i := range lines {
		if lines[i].From == 0 || !by(lines[i].From) {
			continue
		}
		for _, w := range x.words.content(lines[i].Text) {
			if !known[w] {
				known[w] = true
				words = append(words, w)
			}
		}
	}
	return words
}
