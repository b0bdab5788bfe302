package action

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"synthbot/core"
	"synthbot/core/plan"
	"synthbot/core/schema"
)

// Bounds of the schema of replies.
const (
	maxReplySchema   = 128 << 10 // bytes; in a larger schema, payloads are any objects
	maxStrictNesting = 7         // levels of one payload: of ten, three are the plan's
	maxReplySchemas  = 64        // in the cache
)

// ReplySchema returns the JSON Schema of a plan that uses the actions of these names: one branch
// for each, with the schema of its payload. keys are further keys of plans. It only has keywords
// that engines can enforce; Check validates the rest.
//
// strict limits it to the subset that OpenAI guarantees: every property is required, optional
// ones may be null, and objects of unknown keys are strings that hold JSON.
func (s *Snapshot) ReplySchema(names, keys []string, strict bool) json.RawMessage {
	key := strconv.FormatBool(strict) + " " + strings.Join(names, " ") + " + " + strings.Join(keys, " ")
	raw, ok := s.replies.Get(key)
	if ok {
		return raw
	}
	w := replyWriter{strict: strict}
	branches := []any{w.object(schema.Object{}.With("type", among(controls...)), "type")}
	definitions := schema.Object{}
	for _, name := range names {
		d, ok := s.Resolve(name)
		if !ok {
			continue
		}
		definitions = definitions.With(d.Name, w.payload(d))
		branches = append(branches, w.branches(d.Name)...)
	}
	definitions = definitions.With(anyAction, schema.Object{}.With("anyOf", branches)).With(anyCondition, w.condition())
	root := w.object(w.plan(keys), "response", "actions").With("$defs", definitions)
	raw = core.JSON(root)
	if len(raw) > maxReplySchema {
		for _, name := range names {
			definitions = definitions.With(name, w.anything())
		}
		raw = core.JSON(root.With("$defs", definitions))
	}
	s.replies.Put(key, raw)
	return raw
}

// Definitions of the schema. No action has these names, because they have capitals.
const (
	anyAction    = "Action"
	anyCondition = "Condition"
)

type replyWriter struct{ strict bool }

func among(words ...string) schema.Object { return schema.OfType("string").With("enum", words) }
func listOf(item any) schema.Object       { return schema.OfType("array").With("items", item) }
func refTo(name string) schema.Object     { return schema.Object{}.With("$ref", "#/$defs/"+name) }

func (w replyWriter) object(properties schema.Object, required ...string) schema.Object {
	return schema.ClosedObject(properties, w.strict, required...)
}

// anything returns the schema of an object of unknown keys.
func (w replyWriter) anything() schema.Object {
	if w.strict {
		return schema.OfType("string")
	}
	return schema.OfType("object")
}

func (w replyWriter) plan(keys []string) schema.Object {
	text := schema.OfType("string")
	confidence := schema.OfType("number")
	if !w.strict {
		confidence = confidence.With("minimum", 0).With("maximum", 1)
	}
	context := schema.Object{}.With("topic", text).With("entities", w.anything()).With("slotsFilled", w.anything()).
		With("slotsRequired", listOf(text))
	p := schema.Object{}.With("response", text).With("actions", listOf(refTo(anyAction))).
		With("intent", among(plan.Intents...)).With("confidence", confidence).With("context", w.object(context)).
		With("suggestions", listOf(text))
	if !w.strict {
		p = p.With("metadata", w.anything())
		for _, key := range keys {
			p = p.With(key, schema.Object{})
		}
	}
	return p
}

// branches returns the schemas of a step of the action. The strict subset has a short form besides
// the whole one, because there every property must be written.
func (w replyWriter) branches(name string) []any {
	short := schema.Object{}.With("type", among(name)).With("payload", refTo(name))
	priority := schema.OfType("integer")
	if !w.strict {
		priority = priority.With("minimum", 0).With("maximum", 10)
	}
	whole := slices.Clone(short).With("priority", priority).With("requiresConfirmation", schema.OfType("boolean")).
		With("confirmationMessage", schema.OfType("string")).With("fallbackAction", refTo(anyAction)).
		With("conditions", listOf(refTo(anyCondition))).With("unit", schema.OfType("string"))
	if !w.strict {
		return []any{w.object(whole, "type", "payload")}
	}
	return []any{w.object(short, "type", "payload"), w.object(whole, "type", "payload")}
}

func (w replyWriter) condition() schema.Object {
	value := schema.Object{}.With("type", []string{"string", "number", "boolean", "null"})
	return w.object(schema.Object{}.With("field", schema.OfType("string")).With("operator", among(plan.Operators...)).
		With("value", value), "field", "operator", "value")
}

// payload returns the schema of an action's payload: a string that holds JSON if the strict subset cannot express it.
func (w replyWriter) payload(d *Definition) any {
	if w.strict {
		o, ok := schema.Strict(d.PromptSchema())
		if !ok || schema.Nesting(core.JSON(o)) > maxStrictNesting*2 {
			return w.anything()
		}
		return d.withNulls(o)
	}
	o, _ := schema.DecodeObject(schema.Loose(d.PromptSchema(), "#/$defs/"+d.Name))
	if o.Find("type") == nil {
		o = o.With("type", "object")
	}
	return d.withNulls(o)
}

// withNulls lets properties be null that a user can be asked for.
func (d *Definition) withNulls(o schema.Object) schema.Object {
	properties, ok := schema.DecodeObject(o.Find("properties"))
	if !ok {
		return o
	}
	for i, p := range properties {
		if slices.Contains(d.askable, p.Key) {
			properties[i].Value = core.JSON(schema.Object{}.With("anyOf", []any{p.Value, schema.OfType("null")}))
		}
	}
	return o.With("properties", properties)
}
