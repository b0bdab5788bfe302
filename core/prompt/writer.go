package prompt

import (
	"encoding/json"
	"strconv"
	"time"
)

// writer builds compact JSON and remembers the texts that may be shortened.
type writer struct {
	raw   []byte
	slots []slot
	zone  *time.Location
	marks Marks
}

// comma separates from what comes before, if anything does.
func (w *writer) comma() {
	n := len(w.raw)
	if n > 0 && w.raw[n-1] != '{' && w.raw[n-1] != '[' && w.raw[n-1] != ':' {
		w.raw = append(w.raw, ',')
	}
}

func (w *writer) key(name string) {
	w.comma()
	w.raw = appendText(w.raw, name)
	w.raw = append(w.raw, ':')
}

// open begins an object or a list, close ends it.
func (w *writer) open(bracket byte) {
	w.comma()
	w.raw = append(w.raw, bracket)
}

func (w *writer) close(bracket byte) { w.raw = append(w.raw, bracket) }

// object begins the object that is the key's value.
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
	w.raw = appendText(w.raw, value)
}

// some writes the text unless it is empty.
func (w *writer) some(name, value string) {
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

// item writes a text as an element of a list.
func (w *writer) item(value string) {
	w.comma()
	w.raw = appendText(w.raw, value)
}

func (w *writer) truth(name string) {
	w.key(name)
	w.raw = append(w.raw, "true"...)
}

func (w *writer) number(name string, n int64) {
	if n > 0 {
		w.key(name)
		w.raw = strconv.AppendInt(w.raw, n, 10)
	}
}

func (w *writer) time(name string, t time.Time) {
	if !t.IsZero() {
		w.key(name)
		if w.zone != nil {
			t = t.In(w.zone)
		}
		w.raw = append(t.AppendFormat(append(w.raw, '"'), time.RFC3339), '"')
	}
}

// slot writes a text that may be shortened later.
func (w *writer) slot(name, value string, bulk bool) {
	w.key(name)
	from := len(w.raw)
	w.raw = appendText(w.raw, value)
	w.slots = append(w.slots, slot{from: from, to: len(w.raw), full: value, size: size(w.raw[from:]) - 2, bulk: bulk})
}

// value writes JSON that somebody else supplies; nothing where it is none.
func (w *writer) value(name string, raw json.RawMessage) {
	before := len(w.raw)
	w.key(name)
	var ok bool
	if w.raw, ok = appendValue(w.raw, raw); !ok {
		w.raw = w.raw[:before]
	}
}

// sound writes JSON of our own.
func (w *writer) sound(name string, raw json.RawMessage) {
	w.key(name)
	w.raw = append(w.raw, raw...)
}

// output writes JSON that may be shortened later, and then becomes a text.
func (w *writer) output(name string, raw json.RawMessage) {
	before := len(w.raw)
	w.key(name)
	from := len(w.raw)
	var ok bool
	if w.raw, ok = appendValue(w.raw, raw); !ok {
		w.raw = w.raw[:before]
		return
	}
	s := slot{from: from, to: len(w.raw), full: string(w.raw[from:]), bulk: true, plain: true}
	s.size = size(w.raw[from:])
	w.slots = append(w.slots, s)
}

// done hands over what was written.
func (w *writer) done() part {
	return part{raw: w.raw, size: size(w.raw), slots: w.slots}
}
