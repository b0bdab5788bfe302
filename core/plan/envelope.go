package plan

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"synthbot/core"
	"synthbot/core/txt"
)

// Bounds of the keys besides actions.
const (
	maxSuggestions = 8
	maxSuggestion  = 120 // bytes
	maxMetadata    = 16 << 10
	maxConditions  = 16
	maxField       = 256 // bytes of a condition's field
)

// Intents are the values of a plan's intent.
var Intents = []string{
	"query", "action", "navigation", "confirmation", "clarification", "greeting", "farewell", "help",
	"cancel", "error", "conversation", "social",
}

// Operators are the values of a condition's operator.
var Operators = []string{"eq", "neq", "gt", "gte", "lt", "lte", "contains", "exists"}

// Other words that models use.
var (
	otherIntents = map[string][]string{
		"query":         strings.Fields("question ask search lookup information info informational inform answer"),
		"action":        strings.Fields("request command task order instruction"),
		"navigation":    strings.Fields("navigate"),
		"confirmation":  strings.Fields("confirm affirmation agreement acknowledge acknowledgement yes"),
		"clarification": strings.Fields("clarify"),
		"greeting":      strings.Fields("hello greet welcome"),
		"farewell":      strings.Fields("goodbye bye"),
		"help":          strings.Fields("support assistance"),
		"cancel":        strings.Fields("stop cancellation abort deny"),
		"error":         strings.Fields("failure"),
		"conversation":  strings.Fields("chat chitchat smalltalk talk casual discussion story roleplay statement"),
		"social":        strings.Fields("thanks thank gratitude compliment joke humor emotion empathy apology"),
	}
	otherOperators = map[string]string{
		"=": "eq", "==": "eq", "===": "eq", "equals": "eq", "equal": "eq", "is": "eq", "!=": "neq", "<>": "neq",
		"ne": "neq", "not_equals": "neq", ">": "gt", ">=": "gte", "ge": "gte", "<": "lt", "<=": "lte", "le": "lte",
		"includes": "contains", "exist": "exists",
	}
	levels = map[string]float64{
		"certain": 1, "veryhigh": 0.95, "high": 0.9, "medium": 0.6, "moderate": 0.6, "low": 0.3, "verylow": 0.1,
		"none": 0,
	}
)

// envelope reads the keys of a plan besides response and actions. No error in them is a fault, because they do not
// cause anything: what cannot be read goes into the metadata or is left out. TestNeverCorrected lists the cases.
func (r *reader) envelope(v value) {
	metadata := v.get("metadata")
	switch {
	case !present(metadata.raw) || len(metadata.raw) > maxMetadata:
	case metadata.fields != nil:
		r.plan.Metadata = slices.Clone(metadata.raw)
	default:
		r.addMetadata("metadata", metadata.raw)
	}
	if v.has("intent") {
		r.intent(v.get("intent"))
	}
	if v.has("confidence") {
		r.plan.Confidence = confidence(v.get("confidence").raw)
	}
	if v.has("context") {
		r.plan.Context = state(v.get("context"))
	}
	for _, s := range texts(v.get("suggestions")) {
		s = strings.TrimSpace(s)
		isGood := s != "" && len(s) <= maxSuggestion && utf8.ValidString(s)
		if isGood && len(r.plan.Suggestions) < maxSuggestions {
			r.plan.Suggestions = append(r.plan.Suggestions, s)
		}
	}
}

// intent reads an intent in any case, or a usual synonym. An unknown word goes into the metadata.
func (r *reader) intent(v value) {
	said := strings.ToLower(strings.TrimSpace(v.text()))
	// One word of "ask_question" or "social/thanks" may be known.
	words := strings.FieldsFunc(said, func(c rune) bool { return !('a' <= c && c <= 'z') })
	for _, word := range append([]string{said, strings.Join(words, "")}, words...) {
		for _, intent := range Intents {
			if word == intent || slices.Contains(otherIntents[intent], word) {
				r.plan.Intent = intent
				return
			}
		}
	}
	if len(v.raw) <= maxField {
		r.addMetadata("intent", v.raw)
	}
}

// confidence reads 0.9, "0.9", 90, "90%" and "high"; nil: it is none of these.
func confidence(raw json.RawMessage) *float64 {
	text := strings.Trim(string(raw), "\"% ")
	n, ok := number(json.RawMessage(text))
	isPercent := ok && (n >= 2 || strings.Contains(string(raw), "%")) // 1.2 is neither
	if isPercent {
		n /= 100
	}
	if !ok {
		n, ok = levels[normalKey(strings.ReplaceAll(text, " ", ""))]
	}
	if !ok || math.IsNaN(n) || n < 0 || n > 1 {
		return nil
	}
	return &n
}

// state reads a plan's context. A string is its topic; a value of a wrong type is left out.
func state(v value) core.State {
	return core.State{
		Topic:    cmp.Or(v.text(), v.get("topic").text()),
		Entities: values(v.get("entities")), SlotsFilled: values(v.get("slotsfilled")),
		SlotsRequired: texts(v.get("slotsrequired")),
	}
}

func values(v value) (m map[string]json.RawMessage) {
	raw, _ := payloadOf(v)
	_ = json.Unmarshal(raw, &m)
	return m
}

// texts reads a list of strings or of objects that textOf reads, or a single one; nil if the value is missing.
func texts(v value) []string {
	if !present(v.raw) {
		return nil
	}
	list := []value{v}
	if v.kind() == '[' {
		list = v.items
	}
	all := make([]string, 0, len(list))
	for _, e := range list {
		if s, ok := textOf(e); ok {
			all = append(all, s)
		}
	}
	return all
}

// textOf reads a string, or an object that has a text under one of the usual names.
func textOf(v value) (s string, ok bool) {
	if v.kind() == '"' {
		return v.text(), true
	}
	for _, key := range []string{"text", "message", "content", "title", "label", "name"} {
		if v.get(key).kind() == '"' {
			return v.get(key).text(), true
		}
	}
	return "", false
}

// conditions reads a step's conditions. If one cannot be read, the step must not run.
func (r *reader) conditions(field string, v value) ([]core.Condition, bool) {
	list := v.items
	if v.fields != nil {
		list = []value{v}
	}
	if list == nil && v.kind() != '[' || len(list) > maxConditions {
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

func (r *reader) condition(field string, v value) (core.Condition, bool) {
	if v.fields == nil {
		r.fault(field, "must be an object with field, operator and value")
		return core.Condition{}, false
	}
	c := core.Condition{
		Field:    strings.TrimSpace(v.get("field").text()),
		Operator: strings.ToLower(strings.TrimSpace(v.get("operator").text())),
		Value:    slices.Clone(v.get("value").raw),
	}
	if other, ok := otherOperators[c.Operator]; ok {
		c.Operator = other
	}
	before := len(r.faults)
	if c.Field == "" || len(c.Field) > maxField {
		r.fault(field+".field", "must be a dotted path")
	}
	if !slices.Contains(Operators, c.Operator) {
		r.fault(field+".operator", "must be one of %s", strings.Join(Operators, ", "))
	} else if len(c.Value) == 0 && c.Operator != "exists" {
		r.fault(field+".value", "is missing")
	}
	return c, len(r.faults) == before
}

// Bounds of a conversation's state.
const (
	maxState = 32   // entries of each part
	maxValue = 1024 // bytes of one value
	maxTopic = 200  // bytes
)

// Merge returns a conversation's state with the changes that a plan's context says. since is the time of the old
// state, which is dropped if it is older than age (0: no limit). A value of null removes an entry. When the topic
// changes, the slots of the old one are removed. A slot that is filled is no longer required. If there are too many
// entries, those of the plan stay.
func Merge(old core.State, since, now time.Time, age time.Duration, said core.State) core.State {
	if age > 0 && now.Sub(since) > age {
		old = core.State{}
	}
	if said.Topic != "" && old.Topic != "" && said.Topic != old.Topic {
		old.SlotsFilled, old.SlotsRequired = nil, nil
	}
	merged := core.State{
		Topic:       txt.Clip(cmp.Or(said.Topic, old.Topic), maxTopic),
		Entities:    merge(old.Entities, said.Entities),
		SlotsFilled: merge(old.SlotsFilled, said.SlotsFilled),
		Status:      old.Status,
	}
	required := old.SlotsRequired
	if said.SlotsRequired != nil {
		required = said.SlotsRequired
	}
	for _, slot := range required {
		_, filled := merged.SlotsFilled[slot]
		isNew := !filled && !slices.Contains(merged.SlotsRequired, slot)
		if isNew && len(slot) <= maxName && len(merged.SlotsRequired) < maxState {
			merged.SlotsRequired = append(merged.SlotsRequired, slot)
		}
	}
	return merged
}

func merge(old, said map[string]json.RawMessage) (merged map[string]json.RawMessage) {
	for _, from := range []map[string]json.RawMessage{said, old} {
		for _, k := range slices.Sorted(maps.Keys(from)) {
			v := from[k]
			_, spoken := said[k]
			_, known := merged[k]
			switch {
			case known || !present(v) || spoken && !present(said[k]):
			case len(k) > maxName || len(v) > maxValue || len(merged) >= maxState:
			case merged == nil:
				merged = map[string]json.RawMessage{k: v}
			default:
				merged[k] = v
			}
		}
	}
	return merged
}
