package blueprint

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"synthbot/core"
	"synthbot/core/schema"
)

// Rollback says how a call of a tool is undone: by a call of another tool of the file. A text
// "$input.NAME" or "$output.NAME" in Input stands for that value of the call; NAME may lead
// deeper, by dots.
type Rollback struct {
	Tool  string          `json:"tool"`
	Input json.RawMessage `json:"input,omitempty"`
}

// undoPart tells the key of the second call from that of the first.
const undoPart = 1

// decodeAny reads a JSON value that may be missing.
func decodeAny(raw json.RawMessage) (any, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	return schema.Decode(raw)
}

// rollback returns the tool that undoes calls of t. fault says why none can; both are zero if
// the file names none.
func (b *Blueprint) rollback(t *Tool) (undo *Tool, fault string) {
	if t.Rollback == nil {
		return nil, ""
	}
	i := slices.IndexFunc(b.Tools, func(o Tool) bool { return o.Name == t.Rollback.Tool })
	fields, err := decodeAny(t.Rollback.Input)
	_, isObject := fields.(map[string]any)
	switch {
	case i < 0:
		return nil, fmt.Sprintf("rollback: the file has no usable tool %q: calls cannot be undone", t.Rollback.Tool)
	case err != nil || fields != nil && !isObject:
		return nil, "rollback: input is not an object: calls cannot be undone"
	case stricter(t.made.Permission, b.Tools[i].made.Permission) != t.made.Permission:
		return nil, fmt.Sprintf("rollback: %s is for fewer users: calls cannot be undone", t.Rollback.Tool)
	}
	return &b.Tools[i], ""
}

// undo calls the tool other, which undoes a call of the tool t.
func (a *agent) undo(ctx context.Context, t, other *Tool, c core.Call, done core.Result) error {
	input, err := t.Rollback.payload(c.Payload, done.Output)
	if err != nil {
		return err
	}
	compiled, err := schema.Compile(other.made.Schema)
	if err != nil {
		return fmt.Errorf("rollback of %s: %w", t.Name, err)
	}
	v, err := schema.Decode(input)
	if err != nil {
		return fmt.Errorf("rollback of %s: %w", t.Name, err)
	}
	compiled.FillDefaults(v)
	violations := compiled.Validate(v)
	if len(violations) > 0 {
		const text = "it cannot be undone: for %s, the value%s %s"
		return core.Errorf(core.Invalid, text, other.Name, violations[0].Field(), violations[0].Text)
	}
	c.Payload = core.JSON(v)
	c.Key.Part = undoPart
	_, err = a.call(ctx, other, c)
	return err
}

// payload returns the input of the call that undoes another one.
func (r *Rollback) payload(input, output json.RawMessage) (json.RawMessage, error) {
	known := make(map[string]any)
	var err error
	if known["$input"], err = decodeAny(input); err != nil {
		return nil, fmt.Errorf("rollback: input: %w", err)
	}
	if known["$output"], err = decodeAny(output); err != nil {
		return nil, fmt.Errorf("rollback: output: %w", err)
	}
	v, err := decodeAny(r.Input)
	if err != nil {
		return nil, fmt.Errorf("rollback: %w", err)
	}
	if v == nil {
		v = map[string]any{}
	}
	missing := ""
	v = schema.MapLeaves(v, func(leaf any) any {
		text, _ := leaf.(string)
		root, path, _ := strings.Cut(text, ".")
		if from, ok := known[root]; ok && path != "" {
			if leaf, ok = schema.Descend(from, strings.Split(path, ".")); !ok {
				missing = text
			}
		}
		return leaf
	})
	if missing != "" {
		return nil, core.Errorf(core.Invalid, "it cannot be undone: the call has no %s", missing)
	}
	return core.JSON(v), nil
}
