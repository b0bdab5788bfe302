package core

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// JSON encodes a value; one that cannot be encoded becomes null.
func JSON(v any) json.RawMessage {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return json.RawMessage("null")
	}
	return bytes.TrimSpace(b.Bytes())
}

// Decode decodes the value of an item into v. It leaves v as it is if there is none.
func (i *Item) Decode(v any) error {
	if i.Value == nil {
		return nil
	}
	if err := json.Unmarshal(i.Value, v); err != nil {
		return fmt.Errorf("item %q of %q: %w", i.Key, i.Path, err)
	}
	return nil
}
