package action

import (
	"bytes"
	"encoding/json"
)

// object is a JSON object whose members keep their order.
type object []member

type member struct {
	key   string
	value json.RawMessage
}

// ordered reads a JSON object; ok is false where it is none.
func ordered(raw json.RawMessage) (o object, ok bool) {
	d := json.NewDecoder(bytes.NewReader(raw))
	if t, _ := d.Token(); t != json.Delim('{') {
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

func (o object) encode() json.RawMessage {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, m := range o {
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(encode(m.key))
		b.WriteByte(':')
		if json.Compact(&b, m.value) != nil {
			return json.RawMessage("{}") // what was decoded can be compacted
		}
	}
	b.WriteByte('}')
	return b.Bytes()
}
