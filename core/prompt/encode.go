package prompt

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf8"

	"synthbot/core/txt"
)

// maxDepth bounds the nesting of JSON that others supply: decoders give up on
// what is nested deeper than they like.
const maxDepth = 64

// quote writes s as a JSON string.
func (w *writer) quote(s string) {
	w.WriteByte('"')
	txt.WriteJSON(w, s)
	w.WriteByte('"')
}

// textSize is the number of characters of s within its quotes.
func textSize(s string) int {
	n := 0
	for _, r := range s {
		n += txt.WidthJSON(r)
	}
	return n
}

// isValue reports whether raw is JSON that is not nested too deep.
func isValue(raw []byte) bool {
	depth := 0
	for i := 0; i < len(raw) && depth <= maxDepth; i++ {
		switch raw[i] {
		case '"':
			i += stringLen(raw[i:]) - 1
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		}
	}
	return depth <= maxDepth && json.Valid(raw)
}

// supplied writes a value of somebody else, compacted and cured of what is not UTF-8.
func (w *writer) supplied(raw []byte) {
	if !utf8.Valid(raw) {
		raw = bytes.ToValidUTF8(raw, []byte("\uFFFD"))
	}
	for i := 0; i < len(raw); {
		n := 1
		switch raw[i] {
		case ' ', '\n', '\r', '\t':
		case '"':
			n = stringLen(raw[i:])
			w.suppliedText(raw[i : i+n])
		default:
			w.WriteByte(raw[i])
		}
		i += n
	}
}

// compact is the value as supplied writes it; ok is false if it is none.
func compact(raw []byte) (value string, ok bool) {
	if !isValue(raw) {
		return "", false
	}
	w := new(writer)
	w.supplied(raw)
	return w.String(), true
}

// stringLen is the length of the JSON string that b begins with, in quotes.
func stringLen(b []byte) int {
	for i := 1; i < len(b); i++ {
		switch b[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(b)
}

// suppliedText writes a JSON string and replaces escaped surrogates that lack
// their other half.
func (w *writer) suppliedText(quoted []byte) {
	from := 0 // of what is not written yet
	for i := 0; i < len(quoted); i++ {
		if quoted[i] != '\\' {
			continue
		}
		i++
		if quoted[i] != 'u' {
			continue
		}
		rest := quoted[i+5:]
		pair := len(rest) > 5 && rest[0] == '\\' && rest[1] == 'u' && surrogate(rest[2:], "cdef")
		switch {
		case pair && surrogate(quoted[i+1:], "89ab"):
			i += 10
		case surrogate(quoted[i+1:], "89abcdef"):
			w.Write(quoted[from : i+1])
			w.WriteString("fffd")
			from = i + 5
		}
	}
	w.Write(quoted[from:])
}

// surrogate reports whether the four hex digits name a surrogate whose second
// digit is one of these.
func surrogate(digits []byte, second string) bool {
	return digits[0]|0x20 == 'd' && strings.IndexByte(second, digits[1]|0x20) >= 0
}

// size counts characters.
func size(raw string) int { return utf8.RuneCountInString(raw) }
