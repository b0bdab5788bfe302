package persona

import (
	"regexp"
	"strings"
	"unicode"
)

// lines removes control characters, invisible direction characters and the white space
// around a text. Line breaks stay. What is not UTF-8 is U+FFFD.
func lines(s string) string {
	s = strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\r\n", "\n")
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case r == '\r' || r == '\u2028' || r == '\u2029':
			return '\n'
		case unicode.IsControl(r) || direction(r):
			return -1
		}
		return r
	}, s))
}

// start begins each example in the dialogues of cards.
var start = regexp.MustCompile(`(?i)\s*<START>\s*`)

// examples separates examples of dialogue by empty lines.
func examples(s string) string { return strings.TrimSpace(start.ReplaceAllString(s, "\n\n")) }

// direction reports whether r changes the direction of the following text, which can
// disguise it.
func direction(r rune) bool {
	return r >= '\u202a' && r <= '\u202e' || r >= '\u2066' && r <= '\u2069' || r == '\ufeff'
}

// oneLine returns a text on one line.
func oneLine(s string) string { return strings.Join(strings.Fields(lines(s)), " ") }

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
		case "original": // a default prompt, of which there is none
		default:
			size = 1
			b.WriteByte(s[0])
		}
		s = s[size:]
	}
	return b.String() + s
}

// maxPlaceholder is the size limit of a placeholder in bytes.
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
