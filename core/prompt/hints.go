package prompt

import (
	"cmp"
	"slices"
	"unicode/utf8"

	"synthbot/core/hint"
	"synthbot/core/sorting"
	"synthbot/core/txt"
)

// Bounds of hints in a prompt.
const (
	toneMax    = 60   // characters of a tone
	memoryMax  = 500  // characters of a memory
	hintMax    = 2000 // characters of a snippet or an instruction
	hintsMax   = 4000 // characters of each kind together
	hintsCount = 24   // of each kind
)

// Merge makes one Recon of the hints of several sources. The language is the override for the place, or else the hint
// of the highest priority, or else the fallback; none if that hint is hint.Undetermined. Each tone is the hint of the
// highest priority. A few snippets, instructions and memories of the highest priorities stay, each once. The order of
// the hints does not matter.
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
			r.Snippets = appendOnce(r.Snippets, h.Text, hintMax)
		case hint.Instruction:
			r.Instructions = appendOnce(r.Instructions, h.Text, hintMax)
		case hint.Memory:
			r.Memories = appendOnce(r.Memories, h.Text, memoryMax)
		}
	}
	r.Language = cmp.Or(r.Language, languageTag(fallback))
	if r.Language == hint.Undetermined {
		r.Language = ""
	}
	return r
}

// toneWord returns a tone on one line; "" if it is too long.
func toneWord(s string) string {
	s = txt.Line(s)
	if utf8.RuneCountInString(s) > toneMax {
		return ""
	}
	return s
}

// appendOnce appends a text unless the list has it or is full.
func appendOnce(list []string, text string, most int) []string {
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
