package action

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	"synthbot/core"
	"synthbot/core/llm"
	"synthbot/core/txt"
)

// Bounds of a question, in bytes.
const (
	MaxQuestion = 700       // of one that is shown as a message
	maxAttached = 256 << 10 // of one that is attached as a file
	maxReason   = 200       // of the model's own words
)

// question is the plain text that a person is asked to confirm. It shows all that
// will be done: the action and each value of its payload, whole, a line each. A
// value that would not show all of itself is quoted, with escapes. why is our reason
// for asking; the model's comes last, and is nothing but words. whole is false where
// the payload holds thoughts, which nobody is shown, and which do not stay with the
// bot.
func question(d *Definition, step *core.Step, why string) (text string, whole bool) {
	var b strings.Builder
	if why != "" {
		b.WriteString(why + "\n")
	}
	b.WriteString(shown(d.Title()))
	v, _ := decode(step.Payload)
	payload, _ := v.(map[string]any)
	if d.Effects == core.EffectNone && d.has(llm.ThoughtKey) {
		delete(payload, llm.ThoughtKey)
	}
	all := encode(payload)
	whole = bytes.Equal(all, encode(llm.Thoughtless(v, nil)))
	for _, key := range slices.Sorted(maps.Keys(payload)) {
		b.WriteString("\n" + shown(d.label(key)) + ": ")
		if text, ok := payload[key].(string); ok {
			b.WriteString(shown(text))
		} else {
			b.WriteString(escaped(string(encode(payload[key]))))
		}
	}
	if words := strings.Join(strings.Fields(step.ConfirmText), " "); words != "" {
		b.WriteString("\nReason given: " + shown(txt.Clip(words, maxReason)))
	}
	return b.String(), whole
}

// shown is a text as it is if a person sees all of it on one line, else quoted.
func shown(text string) string {
	if text != "" && escaped(text) == text && strings.TrimSpace(text) == text && text[0] != '"' {
		return text
	}
	return `"` + escaped(strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text)) + `"`
}

// OutcomeText is the outcome of a step as it stands beside its question, at most 250 bytes.
func OutcomeText(outcome string) string {
	return escaped(txt.Clip(strings.Join(strings.Fields(outcome), " "), 245))
}

// escaped writes what a person would not see, or what would move other text about,
// as escapes.
func escaped(text string) string {
	var b strings.Builder
	for _, r := range text {
		switch {
		case apparent(r):
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r > 0xffff:
			fmt.Fprintf(&b, `\U%08x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

// emojiStyle follows a character that is shown as a picture, and is nothing itself.
const emojiStyle = '\ufe0f'

// apparent reports whether a person sees the character: it is no control, no mark
// of direction, and none of those that take no room.
func apparent(r rune) bool {
	const brailleBlank = '\u2800'
	return unicode.IsPrint(r) && r != brailleBlank && r != unicode.ReplacementChar &&
		!unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r) &&
		(r == emojiStyle || !unicode.Is(unicode.Variation_Selector, r))
}

// label is what people call a property.
func (d *Definition) label(property string) string {
	root, _ := d.input.root.(map[string]any)
	properties, _ := root["properties"].(map[string]any)
	p, _ := properties[property].(map[string]any)
	if title, _ := p["title"].(string); title != "" {
		return title
	}
	return property
}
