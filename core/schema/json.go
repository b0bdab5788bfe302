package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"synthbot/core"
)

// Decode decodes one JSON value. Numbers stay exact, as json.Number.
func Decode(raw json.RawMessage) (any, error) {
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

// Object is a JSON object whose members keep their order.
type Object []Member

// Member is a key of an object and its value.
type Member struct {
	Key   string
	Value json.RawMessage
}

// DecodeObject reads a JSON object. ok is false if raw is anything else.
func DecodeObject(raw json.RawMessage) (o Object, ok bool) {
	d := jsontext.NewDecoder(bytes.NewBuffer(raw), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	t, err := d.ReadToken()
	if err != nil || t.Kind() != '{' {
		return nil, false
	}
	for d.PeekKind() == '"' {
		key, _ := d.ReadToken()
		m := Member{Key: key.String()}
		value, err := d.ReadValue()
		if err != nil {
			return nil, false
		}
		m.Value = bytes.Clone(value)
		o = append(o, m)
	}
	return o, d.PeekKind() == '}'
}

// MarshalJSON implements json.Marshaler.
func (o Object) MarshalJSON() ([]byte, error) {
	b := []byte("{")
	for i, m := range o {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(b, encode(m.Key)...), ':')
		b = append(b, encode(m.Value)...)
	}
	return append(b, '}'), nil
}

// encode is core.JSON without encoding again what is already JSON.
func encode(value any) json.RawMessage {
	switch v := value.(type) {
	case json.RawMessage:
		if v != nil {
			return v
		}
	case Object:
		data, _ := v.MarshalJSON()
		return data
	case string:
		special := func(r rune) bool { return r < ' ' || r > '~' || r == '"' || r == '\\' }
		if !strings.ContainsFunc(v, special) {
			return json.RawMessage(`"` + v + `"`)
		}
	}
	return core.JSON(value)
}

// With sets the value of a key, in its place or at the end, and returns the object.
func (o Object) With(key string, value any) Object {
	m := Member{key, encode(value)}
	i := slices.IndexFunc(o, func(m Member) bool { return m.Key == key })
	if i < 0 {
		return append(o, m)
	}
	o[i] = m
	return o
}

// Find returns the value of a key; nil if there is none.
func (o Object) Find(key string) json.RawMessage {
	for _, m := range o {
		if m.Key == key {
			return m.Value
		}
	}
	return nil
}

// MapLeaves returns a deep copy of a decoded JSON value. leaf copies each value that is neither an object nor an array.
func MapLeaves(v any, leaf func(any) any) any {
	switch v := v.(type) {
	case map[string]any:
		c := make(map[string]any, len(v))
		for k, e := range v {
			c[k] = MapLeaves(e, leaf)
		}
		return c
	case []any:
		c := make([]any, len(v))
		for i, e := range v {
			c[i] = MapLeaves(e, leaf)
		}
		return c
	}
	return leaf(v)
}

// Rational returns the exact value of a number. ok is false if it is too large.
func Rational(n json.Number) (r *big.Rat, ok bool) {
	s := string(n)
	_, exponent, _ := strings.Cut(strings.ToLower(s), "e")
	if len(s) > 400 || len(strings.TrimLeft(exponent, "+-0")) > 3 {
		return nil, false
	}
	return new(big.Rat).SetString(s)
}

// Integer removes the fraction or exponent of an integer: 5.0 and 5e0 become 5. It returns other values unchanged.
func Integer(v any) any {
	n, _ := v.(json.Number)
	if strings.ContainsAny(string(n), ".eE") {
		r, ok := Rational(n)
		if ok && r.IsInt() && r.Num().BitLen() <= 64 {
			return json.Number(r.Num().String())
		}
	}
	return v
}

// Descend follows keys of objects and indexes of arrays. ok is false if one does not exist.
func Descend(v any, parts []string) (at any, ok bool) {
	for _, p := range parts {
		ok := false
		switch at := v.(type) {
		case map[string]any:
			v, ok = at[p]
		case []any:
			i, err := strconv.Atoi(p)
			ok = err == nil && i >= 0 && i < len(at)
			if ok {
				v = at[i]
			}
		}
		if !ok {
			return nil, false
		}
	}
	return v, true
}
