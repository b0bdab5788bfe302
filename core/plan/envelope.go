package plan

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"synthbot/core"
)

// Bounds of what surrounds the actions.
const (
	maxSuggestions = 8
	maxSuggestion  = 120 // bytes
	maxMetadata    = 16 << 10
	maxConditions  = 16
	maxField       = 256 // bytes of a condition's field
)

// What a plan's intent and a condition's operator may be.
var (
	intents = []string{
		"query", "action", "navigation", "confirmation", "clarification", "greeting", "farewell", "help",
		"cancel", "error",
	}
	operators = []string{"eq", "neq", "gt", "gte", "lt", "lte", "contains", "exists"}
)

// envelope reads the keys of a plan besides response and actions.
func (r *reader) envelope(f fields) {
	r.intent(f)
	r.confidence(f.values["confidence"])
	r.context(f.values["context"])
	r.suggestions(f.values["suggestions"])
	m := f.values["metadata"]
	if present(m) {
		if m[0] != '{' || len(m) > maxMetadata {
			r.fault("metadata", "must be an object of at most %d bytes", maxMetadata)
		} else {
			r.plan.Metadata = slices.Clone(m)
		}
	}
}

func (r *reader) intent(f fields) {
	if !f.has("intent") {
		return
	}
	intent := strings.ToLower(strings.TrimSpace(f.text("intent")))
	if !slices.Contains(intents, intent) {
		r.fault("intent", "must be one of %s", strings.Join(intents, ", "))
		return
	}
	r.plan.Intent = intent
}

func (r *reader) confidence(raw json.RawMessage) {
	if !present(raw) {
		return
	}
	n, ok := number(raw)
	if !ok || n < 0 || n > 1 {
		r.fault("confidence", "must be a number from 0 to 1")
		return
	}
	r.plan.Confidence = &n
}

func (r *reader) context(raw json.RawMessage) {
	if !present(raw) {
		return
	}
	f, err := object(raw)
	if err != nil {
		r.fault("context", "must be an object")
		return
	}
	into := func(key, name, what string, to any) {
		if f.has(key) && json.Unmarshal(f.values[key], to) != nil {
			r.fault("context."+name, "must be %s", what)
		}
	}
	c := &r.plan.Context
	into("topic", "topic", "a string", &c.Topic)
	into("entities", "entities", "an object", &c.Entities)
	into("slotsfilled", "slotsFilled", "an object", &c.SlotsFilled)
	into("slotsrequired", "slotsRequired", "an array of strings", &c.SlotsRequired)
}

func (r *reader) suggestions(raw json.RawMessage) {
	if !present(raw) {
		return
	}
	var list []string
	if json.Unmarshal(raw, &list) != nil {
		r.fault("suggestions", "must be an array of strings")
		return
	}
	for _, s := range list {
		s = strings.TrimSpace(s)
		isGood := s != "" && len(s) <= maxSuggestion && utf8.ValidString(s)
		if isGood && len(r.plan.Suggestions) < maxSuggestions {
			r.plan.Suggestions = append(r.plan.Suggestions, s)
		}
	}
}

// conditions reads a step's conditions. If one cannot be read, the step must not run.
func (r *reader) conditions(field string, raw json.RawMessage) ([]core.Condition, bool) {
	if !present(raw) {
		return nil, true
	}
	if raw[0] == '{' {
		raw = json.RawMessage("[" + string(raw) + "]")
	}
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil || len(list) > maxConditions {
		r.fault(field, "must be an array of at most %d objects", maxConditions)
		return nil, false
	}
	conditions, ok := make([]core.Condition, 0, len(list)), true
	for i, e := range list {
		c, readable := r.condition(fmt.Sprintf("%s[%d]", field, i), e)
		conditions = append(conditions, c)
		ok = ok && readable
	}
	return conditions, ok
}

func (r *reader) condition(field string, raw json.RawMessage) (core.Condition, bool) {
	f, err := object(raw)
	if err != nil {
		r.fault(field, "must be an object with field, operator and value")
		return core.Condition{}, false
	}
	c := core.Condition{
		Field: strings.TrimSpace(f.text("field")), Operator: strings.ToLower(f.text("operator")),
		Value: slices.Clone(f.values["value"]),
	}
	before := len(r.faults)
	if c.Field == "" || len(c.Field) > maxField {
		r.fault(field+".field", "must be a dotted path")
	}
	if !slices.Contains(operators, c.Operator) {
		r.fault(field+".operator", "must be one of %s", strings.Join(operators, ", "))
	} else if len(c.Value) == 0 && c.Operator != "exists" {
		r.fault(field+".value", "is missing")
	}
	return c, len(r.faults) == before
}
