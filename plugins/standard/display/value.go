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

// Bounds of content that is shown.
const (
	maxContent = 256 << 10 // bytes
	maxDepth   = 24
	maxNodes   = 20_000
)

// value is a JSON value whose members keep their order: it is the order of
// columns and lines. The zero value is null.
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

var errContent = errors.New("no JSON, too large or too deep to be shown")

func read(raw json.RawMessage) (value, error) {
	left := maxNodes
	raw = bytes.TrimSpace(raw)
	if len(raw) > maxContent || schema.Nesting(raw) > maxDepth || !json.Valid(raw) {
		return value{}, errContent
	}
	v := next(raw, &left)
	if left < 0 {
		return v, errContent
	}
	return v, nil
}

// next reads one valid value. left is how many more there may be.
func next(raw json.RawMessage, left *int) (v value) {
	*left--
	switch {
	case *left < 0:
	case raw[0] == '{':
		v.kind = object
		members, _ := schema.DecodeObject(raw)
		for _, m := range members {
			e := next(m.Value, left)
			e.key = m.Key
			v.list = append(v.list, e)
		}
	case raw[0] == '[':
		v.kind = array
		var list []json.RawMessage
		_ = json.Unmarshal(raw, &list)
		for _, e := range list {
			v.list = append(v.list, next(e, left))
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

// arrange puts the members of all objects into an order.
func (v value) arrange(fields []string) {
	if v.kind == object {
		place := func(e value) uint { return uint(slices.Index(fields, e.key)) } // -1 is the last one
		sorting.SortStable(v.list, func(a, b value) int { return cmp.Compare(place(a), place(b)) })
	}
	for _, e := range v.list {
		e.arrange(fields)
	}
}

// scalar reports whether the value fits on a line by itself.
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

// all reports whether it is an array of at least one element, each of that kind.
func (v value) all(is func(value) bool) bool {
	return v.kind == array && len(v.list) > 0 && !slices.ContainsFunc(v.list, func(e value) bool { return !is(e) })
}

func isObject(v value) bool { return v.kind == object }
func isArray(v value) bool  { return v.kind == array }
func isNumber(v value) bool { _, ok := v.number(); return ok }

// mostNumber is beyond what a chart can draw to scale.
const mostNumber = 1e15

// number is the value of a number that can be drawn.
func (v value) number() (float64, bool) {
	if v.kind != number {
		return 0, false
	}
	f, err := json.Number(v.text).Float64()
	return f, err == nil && math.Abs(f) <= mostNumber
}

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
