package persona

import (
	"strings"

	"synthbot/core/txt"
)

// lines returns a text of several lines without control characters and the white space
// around it.
func lines(s string) string { return strings.TrimSpace(txt.Lines(s)) }

// startPattern matches what begins each example in the dialogues of cards.
var startPattern = txt.Pattern(`(?i)\s*<START>\s*`)

// examples separates examples of dialogue by empty lines.
func examples(s string) string {
	if !strings.Contains(s, "<") {
		return s
	}
	return strings.TrimSpace(startPattern().ReplaceAllString(s, "\n\n"))
}

// unlabel removes the colon after words that are labels of the rendered text, so that a
// value cannot look like a label.
func unlabel(s string) string {
	if !strings.Contains(s, ":") {
		return s
	}
	for word := range strings.SplitSeq(labels, ",") {
		s = strings.ReplaceAll(s, word+":", word+" –")
	}
	return s
}

// labels lists the labels of a rendered text. "ikes" is the end of two of them.
const labels = "Profile,Personality,ikes,Interests,Speaking style,Guidance"

// replace replaces the placeholders in one pass: a name that looks like a placeholder stays
// as it is.
func replace(s, char, user string) string {
	if !strings.ContainsAny(s, "{<") {
		return s
	}
	var b strings.Builder
	b.Grow(len(s) + len(char) + len(user))
	for s != "" {
		i := strings.IndexAny(s, "{<")
		if i < 0 {
			break
		}
		b.WriteString(s[:i])
		s = s[i:]
		name, size := placeholder(s)
		switch name {
		case "char", "bot":
			b.WriteString(char)
		case "user":
			b.WriteString(user)
		case "original": // stands for a default prompt, which does not exist
		default:
			size = 1
			b.WriteByte(s[0])
		}
		s = s[size:]
	}
	return b.String() + s
}

const maxPlaceholder = 24

// placeholder reads "{{name}}" or "<NAME>" at the start of s.
func placeholder(s string) (name string, size int) {
	s = s[:min(len(s), maxPlaceholder)]
	opening, closing := "<", ">"
	if s[0] == '{' {
		opening, closing = "{{", "}}"
	}
	rest, ok := strings.CutPrefix(s, opening)
	inner, _, closed := strings.Cut(rest, closing)
	if !ok || !closed {
		return "", 0
	}
	name = strings.ToLower(strings.TrimSpace(inner))
	if opening == "<" && name == "original" || opening == "{{" && name == "bot" {
		return "", 0
	}
	return name, len(opening) + len(inner) + len(closing)
}
