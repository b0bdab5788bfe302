package display

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"synthbot/core/schema"
	"synthbot/core/sorting"
	"synthbot/core/txt"
)

// Limits of content.
const (
	maxContent = 256 << 10 // bytes
	maxDepth   = 24
	maxNodes   = 20_000
)

// value is a JSON value. Members keep their order, which is that of columns and lines. The zero value is null.
type value struct {
	kind kind
	key  string  // of a member of an object
	text string  // of a scalar
	list []value // elements or members
}

type kind int

const (
	null kind = iota
	text
	number
	truth
	array
	object
)

var errContent = errors.New("not JSON, too large or nested too deeply")

func read(raw json.RawMessage) (value, error) {
	left := maxNodes
	raw = bytes.TrimSpace(raw)
	if len(raw) > maxContent || schema.Nesting(raw) > maxDepth || !json.Valid(raw) {
		return value{}, errContent
	}
	v := parse(raw, &left)
	if left < 0 {
		return v, errContent
	}
	return v, nil
}

// parse reads one valid value. left is how many more there may be.
func parse(raw json.RawMessage, left *int) (v value) {
	*left--
	switch {
	case *left < 0:
	case raw[0] == '{':
		v.kind = object
		members, _ := schema.DecodeObject(raw)
		for _, m := range members {
			e := parse(m.Value, left)
			e.key = m.Key
			v.list = append(v.list, e)
		}
	case raw[0] == '[':
		v.kind = array
		var list []json.RawMessage
		_ = json.Unmarshal(raw, &list)
		for _, e := range list {
			v.list = append(v.list, parse(e, left))
		}
	case raw[0] == '"':
		v.kind = text
		_ = json.Unmarshal(raw, &v.text)
	case raw[0] == 't':
		v = value{kind: truth, text: "yes"}
	case raw[0] == 'f':
		v = value{kind: truth, text: "no"}
	case raw[0] != 'n':
		v = value{kind: number, text: string(raw)}
	}
	return v
}

// sortMembers moves the members with these keys to the front of all objects, in this order.
func (v value) sortMembers(fields []string) {
	if v.kind == object {
		place := func(e value) uint { return uint(slices.Index(fields, e.key)) } // -1 becomes the largest
		sorting.SortStable(v.list, func(a, b value) int { return cmp.Compare(place(a), place(b)) })
	}
	for _, e := range v.list {
		e.sortMembers(fields)
	}
}

func (v value) scalar() bool { return v.kind <= truth }

// get returns the first member that has one of the names, in their order.
func (v value) get(names ...string) value {
	for _, name := range names {
		i := slices.IndexFunc(v.list, func(e value) bool { return v.kind == object && e.key == name })
		if i >= 0 {
			return v.list[i]
		}
	}
	return value{}
}

// all reports whether the value is an array of at least one element, for each of which is returns true.
func (v value) all(is func(value) bool) bool {
	return v.kind == array && len(v.list) > 0 && !slices.ContainsFunc(v.list, func(e value) bool { return !is(e) })
}

func isObject(v value) bool { return v.kind == object }
func isArray(v value) bool  { return v.kind == array }
func isNumber(v value) bool { _, ok := v.number(); return ok }

const maxNumber = 1e15 // the largest number in charts

// number returns a number for a chart. It returns false for other values and too large numbers.
func (v value) number() (float64, bool) {
	if v.kind != number {
		return 0, false
	}
	f, err := json.Number(v.text).Float64()
	return f, err == nil && math.Abs(f) <= maxNumber
}

// Limits of rendered content, in characters.
const (
	maxLabel    = 60
	maxCell     = 80
	maxLine     = 400 // of a card or a list
	maxText     = 3500
	maxMarkdown = 12_000
)

// escape escapes Markdown in a text, and puts it on one line.
func escape(s string) string {
	s = strings.Join(strings.Fields(strings.ToValidUTF8(s, "\uFFFD")), " ")
	var b strings.Builder
	before := ' '
	for i, r := range s {
		rest := s[i+utf8.RuneLen(r):]
		special := strings.ContainsRune("\\`*[]<>|~&", r)
		if r == '_' { // within a word it does not need an escape
			after, _ := utf8.DecodeRuneInString(rest)
			special = !isWordRune(before) || !isWordRune(after)
		}
		if special || startsBlock(r, s[:i], rest) {
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

// startsBlock reports whether a character, at the beginning of a line or after a number there,
// makes the line a list item, a heading or a rule.
func startsBlock(r rune, before, rest string) bool {
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

func isWordRune(r rune) bool {
	return r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r))
}

// label returns a key for users: "From account" for "fromAccount".
func label(key string) string {
	var b strings.Builder
	before := rune(0)
	for i, r := range txt.Clip(strings.Join(strings.Fields(key), " "), maxLabel) {
		switch {
		case (r == '_' || r == '-') && isWordRune(before):
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

// heading returns a title as a line, "" if there is none.
func heading(title string) string {
	title = escape(txt.Clip(strings.TrimSpace(title), maxLabel))
	if title == "" {
		return ""
	}
	return "**" + title + "**\n"
}

// headingAbove returns a heading followed by an empty line.
func headingAbove(title string) string {
	return strings.Replace(heading(title), "\n", "\n\n", 1)
}

func (v value) line(most int) string { return escape(txt.Clip(v.plain(), most)) }

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
			break // the rest would be cut anyway
		}
	}
	return cmp.Or(strings.Join(parts, between), "–")
}

// textOf returns the first member that has one of the names and is a text, else "".
func (v value) textOf(names ...string) string {
	for _, name := range names {
		t := v.get(name)
		if t.kind == text {
			return t.text
		}
	}
	return ""
}

func (v value) title() string { return v.textOf("title", "heading") }
