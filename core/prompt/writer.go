package prompt

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"synthbot/core/txt"
)

// writer writes compact JSON. It never copies or changes what was written, so that parts can be substrings of it.
type writer struct {
	strings.Builder
	zone  *time.Location
	marks Marks

	start int    // of the current part
	slots []slot // the texts of the current part that may be shortened
}

func (w *writer) begin() {
	w.comma()
	w.start, w.slots = w.Len(), w.slots[len(w.slots):]
}

func (w *writer) done() part {
	raw := w.String()[w.start:]
	return part{raw: raw, size: size(raw), slots: w.slots}
}

// comma writes a comma if a value is before it.
func (w *writer) comma() {
	n := w.Len()
	if n > 0 && strings.IndexByte("{[:,", w.String()[n-1]) < 0 {
		w.WriteByte(',')
	}
}

func (w *writer) key(name string) {
	w.comma()
	w.quote(name)
	w.WriteByte(':')
}

func (w *writer) open(bracket byte) {
	w.comma()
	w.WriteByte(bracket)
}

func (w *writer) close(bracket byte) { w.WriteByte(bracket) }

// object writes a key and begins an object as its value.
func (w *writer) object(name string) {
	w.key(name)
	w.open('{')
}

func (w *writer) list(name string) {
	w.key(name)
	w.open('[')
}

func (w *writer) text(name, value string) {
	w.key(name)
	w.quote(value)
}

// optional writes the text unless it is empty.
func (w *writer) optional(name, value string) {
	if value != "" {
		w.text(name, value)
	}
}

// texts writes a list of texts unless it is empty.
func (w *writer) texts(name string, list []string) {
	if len(list) > 0 {
		w.key(name)
		w.items(list)
	}
}

func (w *writer) items(list []string) {
	w.open('[')
	for _, s := range list {
		w.item(s)
	}
	w.close(']')
}

func (w *writer) item(value string) {
	w.comma()
	w.quote(value)
}

func (w *writer) number(name string, n int64) {
	if n > 0 {
		w.key(name)
		w.WriteString(strconv.FormatInt(n, 10))
	}
}

func (w *writer) time(name string, t time.Time) {
	if t.IsZero() {
		return
	}
	w.key(name)
	if w.zone != nil {
		t = t.In(w.zone)
	}
	var form [len(time.RFC3339) + len(`""`)]byte
	w.Write(append(t.AppendFormat(append(form[:0], '"'), time.RFC3339), '"'))
}

// slot writes a text that may be shortened later.
func (w *writer) slot(name, value string, bulk bool) {
	w.key(name)
	from := w.Len()
	w.quote(value)
	w.addSlot(from, slot{full: value, size: int32(size(w.String()[from:]) - len(`""`)), bulk: bulk})
}

func (w *writer) addSlot(from int, s slot) {
	s.from, s.to = int32(from-w.start), int32(w.Len()-w.start)
	w.slots = append(w.slots, s)
}

// value writes a key with JSON from a plugin or model; nothing if it is invalid.
func (w *writer) value(name string, raw json.RawMessage) {
	if isValue(raw) {
		w.key(name)
		w.supplied(raw)
	}
}

// raw writes a key with JSON that is known to be valid.
func (w *writer) raw(name, raw string) {
	w.key(name)
	w.WriteString(raw)
}

// output writes an action's output, which becomes a string if it is shortened later.
func (w *writer) output(name string, raw json.RawMessage) {
	if !isValue(raw) {
		return
	}
	w.key(name)
	from := w.Len()
	w.supplied(raw)
	full := w.String()[from:]
	w.addSlot(from, slot{full: full, size: int32(size(full)), bulk: true, plain: true})
}

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
