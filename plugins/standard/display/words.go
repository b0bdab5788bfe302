package display

import (
	"cmp"
	"strings"
	"unicode"
	"unicode/utf8"

	"synthbot/core/txt"
)

// Bounds of what is shown, in characters, but for those that say so.
const (
	maxLabel    = 60
	maxCell     = 80
	maxLine     = 400 // of a card or a list
	maxText     = 3500
	maxMarkdown = 12_000
)

// escape removes the meaning of markup from a text. It is one line afterwards.
func escape(s string) string {
	s = strings.Join(strings.Fields(strings.ToValidUTF8(s, "\uFFFD")), " ")
	var b strings.Builder
	before := ' '
	for i, r := range s {
		rest := s[i+utf8.RuneLen(r):]
		special := strings.ContainsRune("\\`*[]<>|~&", r)
		if r == '_' { // within a word it is plain
			after, _ := utf8.DecodeRuneInString(rest)
			special = !wordy(before) || !wordy(after)
		}
		if special || opens(r, s[:i], rest) {
			b.WriteByte('\\')
		}
		if unicode.IsControl(r) {
			r = utf8.RuneError
		}
		b.WriteRune(r)
		before = r
	}
	return b.String()
}

// opens reports whether a character makes a list, a heading or a rule of a line that begins
// with it, maybe after a number.
func opens(r rune, before, rest string) bool {
	alone := rest == "" || rest[0] == ' '
	switch {
	case (r == '.' || r == ')') && before != "":
		return alone && strings.Trim(before, "0123456789") == ""
	case before != "":
		return false
	case r == '-' || r == '+' || r == '#':
		return alone || rest[0] == byte(r)
	}
	return r == '='
}

func wordy(r rune) bool { return r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r)) }

// label is a key as people read it: "fromAccount" is "From account".
func label(key string) string {
	var b strings.Builder
	before := rune(0)
	for i, r := range txt.Clip(strings.Join(strings.Fields(key), " "), maxLabel) {
		switch {
		case (r == '_' || r == '-') && wordy(before):
			r = ' '
		case unicode.IsUpper(r) && unicode.IsLower(before):
			b.WriteByte(' ')
			r = unicode.ToLower(r)
		case i == 0:
			r = unicode.ToUpper(r)
		}
		b.WriteRune(r)
		before = r
	}
	return escape(b.String())
}

// heading is a title's line; "" where there is none.
func heading(title string) string {
	title = escape(txt.Clip(strings.TrimSpace(title), maxLabel))
	if title == "" {
		return ""
	}
	return "**" + title + "**\n"
}

// apart is a heading with an empty line behind it.
func apart(title string) string {
	return strings.Replace(heading(title), "\n", "\n\n", 1)
}

// line is a value on one line, escaped.
func (v value) line(most int) string { return escape(txt.Clip(v.plain(), most)) }

// plain is a value in words.
func (v value) plain() string {
	between := ", "
	switch v.kind {
	case text, number, truth:
		return v.text
	case object:
		between = "; "
	}
	var parts []string
	size := 0
	for _, e := range v.list {
		part := e.plain()
		if v.kind == object {
			part = e.key + ": " + part
		}
		parts = append(parts, part)
		size += len(part)
		if size > 2*maxLine {
			break // what follows would be cut anyway
		}
	}
	return cmp.Or(strings.Join(parts, between), "–")
}

// says returns the first member that has one of the names and is a text; "" if none is.
func (v value) says(names ...string) string {
	for _, name := range names {
		t := v.get(name)
		if t.kind == text {
			return t.text
		}
	}
	return ""
}

// title is what an object calls itself; "" where it does not.
func (v value) title() string { return v.says("title", "heading") }
