package action

import (
	"bytes"
	"encoding/json"
	"errors"
	"math/big"
	"slices"
	"strings"

	"synthbot/core"
)

// decode reads one JSON value. Numbers stay exact.
func decode(raw json.RawMessage) (any, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	if d.More() {
		return nil, errors.New("more than one JSON value")
	}
	return v, nil
}

// object is a JSON object whose members keep their order.
type object []member

type member struct {
	key   string
	value json.RawMessage
}

// decodeObject reads a JSON object. ok is false if raw is anything else.
func decodeObject(raw json.RawMessage) (o object, ok bool) {
	d := json.NewDecoder(bytes.NewReader(raw))
	t, _ := d.Token()
	if t != json.Delim('{') {
		return nil, false
	}
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return nil, false
		}
		m := member{key: t.(string)}
		if d.Decode(&m.value) != nil {
			return nil, false
		}
		o = append(o, m)
	}
	return o, true
}

// MarshalJSON implements json.Marshaler.
func (o object) MarshalJSON() ([]byte, error) {
	b := []byte("{")
	for i, m := range o {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(b, core.JSON(m.key)...), ':')
		b = append(b, core.JSON(m.value)...)
	}
	return append(b, '}'), nil
}

// with returns the object with another value under the key, in its place or at the end.
func (o object) with(key string, value any) object {
	m := member{key, core.JSON(value)}
	i := slices.IndexFunc(o, func(m member) bool { return m.key == key })
	if i < 0 {
		return append(o, m)
	}
	o[i] = m
	return o
}

// find returns the value under the key; nil if there is none.
func (o object) find(key string) json.RawMessage {
	for _, m := range o {
		if m.key == key {
			return m.value
		}
	}
	return nil
}

func (o object) keys() []string {
	keys := make([]string, len(o))
	for i, m := range o {
		keys[i] = m.key
	}
	return keys
}

// mapLeaves returns a deep copy of a decoded JSON value. leaf returns the copy of each
// value that is neither an object nor an array.
func mapLeaves(v any, leaf func(any) any) any {
	switch v := v.(type) {
	case map[string]any:
		c := make(map[string]any, len(v))
		for k, e := range v {
			c[k] = mapLeaves(e, leaf)
		}
		return c
	case []any:
		c := make([]any, len(v))
		for i, e := range v {
			c[i] = mapLeaves(e, leaf)
		}
		return c
	}
	return leaf(v)
}

// rational returns a number exactly. ok is false if the number is too large to work with.
func rational(n json.Number) (r *big.Rat, ok bool) {
	s := string(n)
	_, exponent, _ := strings.Cut(strings.ToLower(s), "e")
	if len(s) > 400 || len(strings.TrimLeft(exponent, "+-0")) > 3 {
		return nil, false
	}
	return new(big.Rat).SetString(s)
}

// integer returns an integer that was written as a fraction or with an exponent in the
// form of integers, and any other value as it is.
func integer(v any) any {
	n, _ := v.(json.Number)
	if strings.ContainsAny(string(n), ".eE") {
		r, ok := rational(n)
		if ok && r.IsInt() && r.Num().BitLen() <= 64 {
			return json.Number(r.Num().String())
		}
	}
	return v
}
