package recon

import (
	_ "embed"
	"strings"
	"unicode"

	"synthbot/core"
)

// toneList has a line for each tone, the strongest first: its name, traces that may be anywhere
// in a text (laughter, emoji), and words in the languages of the detector.
//
//go:embed tones.txt
var toneList string

type tones struct {
	names  []string
	traces [][]string
	words  map[string]int // the index of the tone
}

func newTones() *tones {
	t := &tones{words: make(map[string]int, 256)}
	for line := range strings.Lines(toneList) {
		fields := strings.Split(line, "|")
		for word := range strings.FieldsSeq(fields[2]) {
			if _, ok := t.words[word]; !ok {
				t.words[word] = len(t.names)
			}
		}
		t.names, t.traces = append(t.names, fields[0]), append(t.traces, strings.Fields(fields[1]))
	}
	t.names = append(t.names, "agitated") // the weakest
	return t
}

// of returns the tone of a text; "" is neutral.
func (t *tones) of(text string) string {
	text = text[:min(len(text), textMax)]
	none := len(t.names) // weaker than every tone
	found := none
	for word := range strings.FieldsFuncSeq(text, func(r rune) bool { return !unicode.IsLetter(r) }) {
		if i, ok := t.words[strings.ToLower(word)]; ok {
			found = min(found, i)
		}
	}
	lower := strings.ToLower(text)
	for i, traces := range t.traces {
		for _, trace := range traces {
			if i < found && (strings.Contains(lower, trace) || strings.Contains(text, trace)) {
				found = i
			}
		}
	}
	switch {
	case found != none:
		return t.names[found]
	case shouting(text):
		return "agitated"
	case strings.ContainsAny(text, "?？¿؟"):
		return "curious"
	}
	return ""
}

// shouting reports whether a text has at least 12 capitals, and few small letters.
func shouting(text string) bool {
	upper, lower := 0, 0
	for _, r := range text {
		switch {
		case unicode.IsUpper(r):
			upper++
		case unicode.IsLower(r):
			lower++
		}
	}
	return upper >= 12 && upper > 4*lower
}

// Conditions for a conversation's tone.
const (
	toneSpan  = 10 // how many of the latest messages of users count
	toneShare = 3  // a third of them must have the tone
	toneMin   = 2
)

// conversation returns the strongest tone that enough of the latest messages of users have.
func (t *tones) conversation(s core.Scene, of func(text string) string) string {
	counts := map[string]int{of(s.Text): 1}
	heard := 1
	for i := len(s.Recent) - 1; i >= 0 && heard < toneSpan; i-- {
		e := &s.Recent[i]
		if e.Spoken() && !e.Self {
			counts[of(e.Message.Text)]++
			heard++
		}
	}
	delete(counts, "")
	delete(counts, "curious") // a question concerns only its message
	for _, name := range t.names {
		n := counts[name]
		if n >= toneMin && n*toneShare >= heard {
			return name
		}
	}
	return ""
}
