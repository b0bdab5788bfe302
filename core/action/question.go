package action

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"

	"synthbot/core"
	"synthbot/core/llm"
	"synthbot/core/schema"
	"synthbot/core/txt"
)

// Bounds of a question, in bytes.
const (
	MaxQuestion = 700       // of one that is shown as a message
	maxAttached = 256 << 10 // of one that is attached as a file
	maxReason   = 200       // of the model's own words
)

// question returns the plain text that a user is asked to confirm. It shows all that will be
// done: the action and each value of its payload, one to a line, and the fallbacks. A value with
// invisible characters is quoted, with escapes. why is the bot's reason for asking; the model's comes
// last. whole is false if the text does not show everything, such as thoughts in the payload.
func (s *Snapshot) question(d *Definition, step *core.Step, why string) (text string, whole bool) {
	var b strings.Builder
	if why != "" {
		b.WriteString(why + "\n")
	}
	whole = s.describe(&b, d, step)
	for next := step.Fallback; next != nil; next = next.Fallback {
		b.WriteString("\nIf that fails: ")
		other, ok := s.Resolve(next.Type)
		whole = ok && s.describe(&b, other, next) && whole
	}
	words := strings.Join(strings.Fields(step.ConfirmText), " ")
	if words != "" {
		b.WriteString("\nReason given: " + shown(txt.Clip(words, maxReason)))
	}
	return b.String(), whole
}

// describe writes what a step will do, and the steps of its Then.
func (s *Snapshot) describe(b *strings.Builder, d *Definition, step *core.Step) (whole bool) {
	b.WriteString(shown(d.Title()))
	payload := decodePayload(step.Payload)
	if !d.Has(^(core.EffectNone | core.EffectWrites)) && d.properties[llm.ThoughtKey] != nil {
		delete(payload, llm.ThoughtKey)
	}
	all := core.JSON(payload)
	whole = bytes.Equal(all, core.JSON(llm.Thoughtless(payload, nil)))
	var then []core.Step
	if d.Then != nil {
		then = d.Then(step.Payload)
		delete(payload, thenKey)
	}
	for _, key := range slices.Sorted(maps.Keys(payload)) {
		value := escaped(string(core.JSON(payload[key])))
		if text, ok := payload[key].(string); ok {
			value = shown(text)
		}
		b.WriteString("\n" + shown(d.label(key)) + ": " + value)
	}
	for _, next := range then {
		b.WriteString("\n→ ")
		other, ok := s.Resolve(next.Type)
		whole = ok && s.describe(b, other, &next) && whole
		if ok && next.Target != "" && other.properties[targetKey] != nil {
			b.WriteString("\n" + shown(other.label(targetKey)) + ": " + shown(next.Target))
		}
	}
	return whole
}

// summary returns what a step did on one line, without values that equal their defaults.
func (s *Snapshot) summary(d *Definition, step *core.Step, now time.Time) string {
	parts := []string{shown(d.Title())}
	payload := decodePayload(step.Payload)
	if d.properties[llm.ThoughtKey] != nil {
		delete(payload, llm.ThoughtKey)
	}
	var then []core.Step
	if d.Then != nil {
		then = d.Then(step.Payload)
		delete(payload, thenKey)
	}
	for _, key := range slices.Sorted(maps.Keys(payload)) {
		value := payload[key]
		isUsual := bytes.Equal(core.JSON(value), core.JSON(d.properties[key]["default"]))
		text := readable(value, now)
		if !isUsual && text != "" {
			parts = append(parts, shown(d.label(key))+": "+text)
		}
	}
	for _, next := range then {
		other, ok := s.Resolve(next.Type)
		if ok {
			parts = append(parts, "→ "+s.summary(other, &next, now))
		}
	}
	return strings.Join(parts, "; ")
}

// wallClock is the format in which models write a time of the user's own clock.
const wallClock = "2006-01-02T15:04"

// readable returns a JSON value as users read it: times in words, and lists with commas.
func readable(v any, now time.Time) string {
	var parts []string
	switch v := v.(type) {
	case nil, map[string]any, []any:
	case string:
		at, err := time.Parse(time.RFC3339, v)
		if err == nil {
			return txt.Moment(at, now)
		}
		if at, err = time.Parse(wallClock, v); err == nil {
			return at.Format("2 Jan 2006 15:04")
		}
		return shown(v)
	default:
		return escaped(fmt.Sprint(v))
	}
	list, _ := v.([]any)
	for _, item := range list {
		parts = append(parts, readable(item, now))
	}
	table, _ := v.(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(table)) {
		parts = append(parts, escaped(strings.ReplaceAll(name, "_", " "))+": "+readable(table[name], now))
	}
	return strings.Join(slices.DeleteFunc(parts, func(part string) bool { return part == "" }), ", ")
}

// shown returns a text as it is if users see all its characters on one line, else quoted.
func shown(text string) string {
	if text != "" && escaped(text) == text && strings.TrimSpace(text) == text && text[0] != '"' {
		return text
	}
	return `"` + escaped(strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text)) + `"`
}

// OutcomeText returns an outcome as users see it below the question, with at most 250 bytes.
func OutcomeText(outcome string) string {
	return escaped(txt.Clip(strings.Join(strings.Fields(outcome), " "), 245))
}

// escaped replaces characters that are invisible, or that move other text, by escapes.
func escaped(text string) string {
	var b strings.Builder
	var before rune
	for i, r := range text {
		styles := unicode.Is(unicode.So, before) || strings.HasPrefix(text[i:], keycap)
		seen := isVisible(r) && (r != emojiStyle || styles)
		before = r
		switch {
		case seen:
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

// emojiStyle is invisible: it follows a character that is shown as a picture.
const emojiStyle = '\ufe0f'

// keycap makes a picture of the digit before it.
const keycap = "\ufe0f\u20e3"

// overlays are the marks that strike through, underline or enclose the character before them.
var overlays = &unicode.RangeTable{R16: []unicode.Range16{
	{Lo: 0x0332, Hi: 0x0338, Stride: 1}, {Lo: 0x0488, Hi: 0x0489, Stride: 1}, {Lo: 0x1abe, Hi: 0x1abe, Stride: 1},
	{Lo: 0x20d0, Hi: 0x20e2, Stride: 1}, {Lo: 0x20e4, Hi: 0x20ff, Stride: 1}, // not the one of keycap emoji
}}

// isVisible reports whether users see the character: it is not a control character, a mark of
// direction, one without width, or one that covers another.
func isVisible(r rune) bool {
	return unicode.IsPrint(r) && !strings.ContainsRune(txt.Blanks, r) && r != unicode.ReplacementChar &&
		!unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, overlays) &&
		(r == emojiStyle || !unicode.Is(unicode.Variation_Selector, r))
}

// label names a property for users.
func (d *Definition) label(property string) string {
	title, _ := d.properties[property]["title"].(string)
	return cmp.Or(title, property)
}

// Words returns the output as people read it, without the punctuation of JSON and without
// thoughts; "" if there is none.
func (r *StepResult) Words() string {
	v, err := schema.Decode(r.Output)
	if err != nil {
		return ""
	}
	return plainWords(llm.Thoughtless(v, nil), 0)
}

// plainWords writes a JSON value. The outermost values are on lines of their own.
func plainWords(v any, depth int) string {
	var parts []string
	switch v := v.(type) {
	case nil:
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			text := plainWords(v[name], depth+1)
			if text != "" {
				parts = append(parts, strings.ReplaceAll(name, "_", " ")+": "+text)
			}
		}
	case []any:
		for _, item := range v {
			parts = append(parts, plainWords(item, depth+1))
		}
	default:
		return strings.TrimSpace(fmt.Sprint(v))
	}
	separators := []string{"\n", "; ", ", "}
	return strings.Join(parts, separators[min(depth, len(separators)-1)])
}
