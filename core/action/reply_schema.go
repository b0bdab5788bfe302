package action

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"sync"

	"synthbot/core"
	"synthbot/core/plan"
	"synthbot/core/recent"
)

// Bounds of the schema of replies.
const (
	maxReplySchema   = 128 << 10 // bytes; above it payloads are any objects
	maxReplyItems    = 64        // a larger number of items makes grammars explode
	maxStrictNesting = 7         // levels of one payload: of ten, three are the plan's
	maxReplySchemas  = 64        // that are kept
)

// replySchemas keeps the schemas of replies, by what is offered.
type replySchemas struct {
	mu   sync.Mutex
	kept recent.Cache[string, json.RawMessage]
}

func newReplySchemas() *replySchemas {
	return &replySchemas{kept: recent.NewCache[string, json.RawMessage](maxReplySchemas)}
}

// ReplySchema is the JSON Schema of a plan that uses the actions of these names: one branch
// for each, with the schema of its payload. keys are further keys of plans. It says no more
// than engines can hold a model to; Check has the last word.
//
// strict makes a schema of the subset that OpenAI guarantees: every property is required, what
// may be left out may be null, and objects of unknown keys are strings that hold JSON.
func (s *Snapshot) ReplySchema(names, keys []string, strict bool) json.RawMessage {
	key := strconv.FormatBool(strict) + " " + strings.Join(names, " ") + " + " + strings.Join(keys, " ")
	s.replies.mu.Lock()
	defer s.replies.mu.Unlock()
	return s.replies.kept.Ensure(key, func() json.RawMessage { return s.replySchema(names, keys, strict) })
}

func (s *Snapshot) replySchema(names, keys []string, strict bool) json.RawMessage {
	w := replyWriter{strict: strict}
	branches := []any{w.control()}
	definitions := object{}
	for _, name := range names {
		d, ok := s.Resolve(name)
		if !ok {
			continue
		}
		definitions = definitions.with(d.Name, w.payload(d))
		branches = append(branches, w.branches(d.Name)...)
	}
	definitions = definitions.with("action", object{}.with("anyOf", branches)).with("condition", w.condition())
	root := w.object(w.plan(keys), "response", "actions").with("$defs", definitions)
	raw := core.JSON(root)
	if len(raw) > maxReplySchema {
		for _, name := range names {
			definitions = definitions.with(name, w.anything())
		}
		raw = core.JSON(root.with("$defs", definitions))
	}
	return raw
}

// replyWriter writes the schema of a reply.
type replyWriter struct{ strict bool }

func among(words ...string) object { return typed("string").with("enum", words) }
func listOf(item any) object       { return typed("array").with("items", item) }
func refTo(name string) object     { return object{}.with("$ref", "#/$defs/"+name) }

// object is the schema of an object that has no other properties. In the strict subset those
// that are not required may be null.
func (w replyWriter) object(properties object, required ...string) object {
	if w.strict {
		for i, p := range properties {
			if !slices.Contains(required, p.key) {
				properties[i].value = core.JSON(object{}.with("anyOf", []any{p.value, typed("null")}))
			}
		}
		required = properties.keys()
	}
	o := typed("object").with("properties", properties)
	if len(required) > 0 {
		o = o.with("required", required)
	}
	return o.with("additionalProperties", false)
}

// anything is an object of unknown keys.
func (w replyWriter) anything() object {
	if w.strict {
		return typed("string")
	}
	return typed("object")
}

func (w replyWriter) plan(keys []string) object {
	text := typed("string")
	confidence := typed("number")
	if !w.strict {
		confidence = confidence.with("minimum", 0).with("maximum", 1)
	}
	context := object{}.with("topic", text).with("entities", w.anything()).with("slotsFilled", w.anything()).
		with("slotsRequired", listOf(text))
	p := object{}.with("response", text).with("actions", listOf(refTo("action"))).
		with("intent", among(plan.Intents...)).with("confidence", confidence).with("context", w.object(context)).
		with("suggestions", listOf(text))
	if !w.strict {
		p = p.with("metadata", w.anything())
		for _, key := range keys {
			p = p.with(key, object{})
		}
	}
	return p
}

// control is a step of one of the built-in actions.
func (w replyWriter) control() object {
	return w.object(object{}.with("type", among(controls...)), "type")
}

// branches are what a step of the action looks like. The strict subset has the usual short form
// beside the whole one, in which every key has to be written.
func (w replyWriter) branches(name string) []any {
	short := object{}.with("type", among(name)).with("payload", refTo(name))
	priority := typed("integer")
	if !w.strict {
		priority = priority.with("minimum", 0).with("maximum", 10)
	}
	whole := slices.Clone(short).with("priority", priority).with("requiresConfirmation", typed("boolean")).
		with("confirmationMessage", typed("string")).with("fallbackAction", refTo("action")).
		with("conditions", listOf(refTo("condition")))
	if !w.strict {
		return []any{w.object(whole, "type", "payload")}
	}
	return []any{w.object(short, "type", "payload"), w.object(whole, "type", "payload")}
}

func (w replyWriter) condition() object {
	value := object{}.with("type", []string{"string", "number", "boolean", "null"})
	return w.object(object{}.with("field", typed("string")).with("operator", among(plan.Operators...)).
		with("value", value), "field", "operator", "value")
}

// payload is the schema of an action's payload. Where the strict subset cannot say it, the
// payload is a text that holds the object.
func (w replyWriter) payload(d *Definition) any {
	if w.strict {
		schema, ok := strictSchema(d.PromptSchema)
		if !ok || Nesting(core.JSON(schema)) > maxStrictNesting*2 {
			return w.anything()
		}
		return schema
	}
	o, _ := decodeObject(looseSchema(d.PromptSchema, "#/$defs/"+d.Name))
	if o.find("type") == nil {
		o = o.with("type", "object")
	}
	return o
}

// looseSchema keeps of a schema what engines make grammars of. base is where the result goes.
func looseSchema(raw json.RawMessage, base string) json.RawMessage {
	from, ok := decodeObject(raw)
	if !ok {
		return raw // true or false
	}
	hasProperties := from.find("properties") != nil
	to := object{}
	for _, m := range from {
		var items int
		switch m.key {
		case "type", "enum", "const", "required", "minimum", "maximum":
		case "minItems", "maxItems":
			if json.Unmarshal(m.value, &items) != nil || items > maxReplyItems {
				continue
			}
		case "format":
			if !slices.Contains([]string{`"date"`, `"time"`, `"date-time"`}, string(m.value)) {
				continue
			}
		case "items":
			m.value = looseSchema(m.value, base)
		case "properties", "$defs", "definitions":
			m.value = edit(m.value, func(p *member) bool {
				p.value = looseSchema(p.value, base)
				return true
			})
		case "$ref":
			var ref string
			_ = json.Unmarshal(m.value, &ref)
			m.value = core.JSON(base + strings.TrimPrefix(ref, "#"))
		case "anyOf", "oneOf":
			var list []json.RawMessage
			if hasProperties || json.Unmarshal(m.value, &list) != nil {
				continue // engines would look at the alternatives alone
			}
			for i := range list {
				list[i] = looseSchema(list[i], base)
			}
			m.key, m.value = "anyOf", core.JSON(list)
		default:
			continue
		}
		to = append(to, m)
	}
	if hasProperties {
		to = to.with("additionalProperties", string(from.find("additionalProperties")) == "true")
	}
	return core.JSON(to)
}

// strictSchema writes a schema in the strict subset. ok is false if that cannot say it.
func strictSchema(raw json.RawMessage) (to object, ok bool) {
	from, ok := decodeObject(raw)
	if !ok {
		return nil, false
	}
	enum := from.find("enum")
	if enum != nil {
		return object{}.with("enum", enum), true
	}
	var kinds []string
	if json.Unmarshal(from.find("type"), &kinds) == nil && kinds != nil {
		list := make([]any, len(kinds))
		for i, kind := range kinds {
			list[i], ok = strictSchema(core.JSON(slices.Clone(from).with("type", kind)))
			if !ok {
				return nil, false
			}
		}
		return object{}.with("anyOf", list), true
	}
	var kind string
	_ = json.Unmarshal(from.find("type"), &kind)
	properties, hasProperties := decodeObject(from.find("properties"))
	switch {
	case slices.Contains([]string{"string", "number", "integer", "boolean", "null"}, kind):
		return typed(kind), true
	case kind == "array":
		items, ok := strictSchema(from.find("items"))
		return listOf(items), ok
	case kind != "" && kind != "object", !hasProperties, string(from.find("additionalProperties")) == "true":
		return nil, false
	}
	strict := object{}
	for _, m := range properties {
		p, ok := strictSchema(m.value)
		if !ok {
			return nil, false
		}
		strict = strict.with(m.key, p)
	}
	var required []string
	_ = json.Unmarshal(from.find("required"), &required)
	return replyWriter{strict: true}.object(strict, required...), true
}
