package prompt

import (
	"cmp"
	"slices"
	"unicode/utf8"

	"synthbot/core/hint"
	"synthbot/core/sorting"
	"synthbot/core/txt"
)

// What hints may take of a prompt.
const (
	toneMax    = 60   // characters of a tone
	memoryMax  = 500  // characters of a memory
	hintMax    = 2000 // characters of a snippet or an instruction
	hintsMax   = 4000 // characters of each kind together
	hintsCount = 24   // of each kind
)

// Merge makes one Recon of what several contributed. A language is, in this order, the override for the place, the
// strongest hint, the fallback; none where the strongest hint is hint.Undetermined. A tone is the strongest hint. Of
// snippets, instructions and memories the strongest few stay, none twice. The order in which hints arrive does not
// matter.
func Merge(hints []hint.Hint, override, fallback string) Recon {
	sorted := sorting.Sorted(slices.Values(hints), func(a, b hint.Hint) int {
		return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Text, b.Text))
	})
	r := Recon{Language: languageTag(override)}
	for _, h := range sorted {
		switch h.Kind {
		case hint.Language:
			r.Language = cmp.Or(r.Language, languageTag(h.Text))
		case hint.MessageTone:
			r.MessageTone = cmp.Or(r.MessageTone, toneWord(h.Text))
		case hint.ConversationTone:
			r.ConversationTone = cmp.Or(r.ConversationTone, toneWord(h.Text))
		case hint.Snippet:
			r.Snippets = once(r.Snippets, h.Text, hintMax)
		case hint.Instruction:
			r.Instructions = once(r.Instructions, h.Text, hintMax)
		case hint.Memory:
			r.Memories = once(r.Memories, h.Text, memoryMax)
		}
	}
	r.Language = cmp.Or(r.Language, languageTag(fallback))
	if r.Language == hint.Undetermined {
		r.Language = ""
	}
	return r
}

// toneWord is a tone that is short enough to be one.
func toneWord(s string) string {
	s = txt.Line(s)
	if utf8.RuneCountInString(s) > toneMax {
		return ""
	}
	return s
}

// once adds a text that is new, while there is room.
func once(list []string, text string, most int) []string {
	text = cut(txt.Line(text), most)
	size := utf8.RuneCountInString(text)
	for _, other := range list {
		size += utf8.RuneCountInString(other)
	}
	if text == "" || len(list) == hintsCount || size > hintsMax || slices.Contains(list, text) {
		return list
	}
	return append(list, text)
}
