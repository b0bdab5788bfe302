package prompt

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"

	"synthbot/core/txt"
)

// maxDepth bounds the nesting of JSON from plugins and models: decoders have such limits, too.
const maxDepth = 64

func (w *writer) quote(s string) {
	w.WriteByte('"')
	txt.WriteJSON(w, s)
	w.WriteByte('"')
}

// textSize returns the number of characters of s as a JSON string, without the quotes.
func textSize(s string) int {
	n := 0
	for _, r := range s {
		n += txt.WidthJSON(r)
	}
	return n
}

// isValue reports whether raw is valid JSON that is not nested too deep.
func isValue(raw []byte) bool {
	depth := 0
	for i := 0; i < len(raw) && depth <= maxDepth; i++ {
		switch raw[i] {
		case '"':
			i += txt.StringEnd(raw[i:]) - 1
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		}
	}
	return depth <= maxDepth && json.Valid(raw)
}

// supplied writes a value from a plugin or model, compacted and as valid UTF-8.
func (w *writer) supplied(raw []byte) {
	if !utf8.Valid(raw) {
		raw = bytes.ToValidUTF8(raw, []byte("\uFFFD"))
	}
	for i := 0; i < len(raw); {
		n := 1
		switch raw[i] {
		case ' ', '\n', '\r', '\t':
		case '"':
			n = txt.StringEnd(raw[i:])
			w.suppliedText(raw[i : i+n])
		default:
			w.WriteByte(raw[i])
		}
		i += n
	}
}

// compact returns the value as supplied writes it; ok is false if it is not valid.
func compact(raw []byte) (value string, ok bool) {
	if !isValue(raw) {
		return "", false
	}
	w := new(writer)
	w.supplied(raw)
	return w.String(), true
}

// escapes matches the escapes of a JSON string; those of a surrogate pair together.
var escapes = txt.Pattern(`\\(?:u[dD][89abAB]..\\u[dD][c-fC-F]..|u[dD][89a-fA-F]..|.)`)

// suppliedText writes a JSON string and replaces escaped surrogates that lack their other half.
func (w *writer) suppliedText(quoted []byte) {
	if bytes.Contains(quoted, []byte(`\u`)) {
		quoted = escapes().ReplaceAllFunc(quoted, func(escape []byte) []byte {
			if len(escape) == len(`\ufffd`) {
				return []byte(`\ufffd`)
			}
			return escape
		})
	}
	w.Write(quoted)
}

func size(raw string) int { return utf8.RuneCountInString(raw) }
