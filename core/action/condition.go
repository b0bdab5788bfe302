package action

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"synthbot/core"
	"synthbot/core/plan"
	"synthbot/core/schema"
)

const resultsRoot = "results"

// roots are the possible first elements of a condition's field, besides names of entities and slots.
var roots = []string{"context", "conversation_state", "state", "message", "author", resultsRoot}

func (c *checker) conditions(field string, step *core.Step) {
	for i, k := range step.Conditions {
		at := field + ".conditions[" + strconv.Itoa(i) + "]"
		why := c.lintField(k)
		if why != "" {
			c.fault(at+".field", step.Type, "%s", why)
		}
		if !slices.Contains(plan.Operators, k.Operator) {
			c.fault(at+".operator", step.Type, "unknown operator %q", k.Operator)
		}
		if len(k.Value) > 0 && !json.Valid(k.Value) {
			c.fault(at+".value", step.Type, "must be JSON")
		}
	}
}

// lintField says what is wrong with the field of a condition; "" if nothing.
func (c *checker) lintField(k core.Condition) string {
	parts := strings.Split(k.Field, ".")
	isUnknown := !slices.Contains(roots, parts[0]) && entityOrSlot(parts, c.context, c.who.State) == nil
	switch {
	case slices.Contains(parts, ""):
		return "must be a dotted path"
	case isUnknown && k.Operator != "exists":
		return "must begin with one of " + strings.Join(roots, ", ") + ", or be an entity or a slot that is known"
	case parts[0] == resultsRoot:
		d, rest := c.leadingAction(parts[1:])
		if d == nil {
			return "must name an action whose result is meant"
		}
		keys := d.outputKeys()
		if len(rest) > 0 && keys != nil && !slices.Contains(keys, rest[0]) {
			return fmt.Sprintf("the output of %s has no %q, only %s", d.Name, rest[0], strings.Join(keys, ", "))
		}
	}
	return ""
}

// outputKeys returns the properties that the action's output can have; nil if its schema does not say.
func (d *Definition) outputKeys() []string {
	if d.output == nil {
		return nil
	}
	root, _ := d.output.Root.(map[string]any)
	ref, _ := root["$ref"].(string)
	if ref != "" {
		root, _ = schema.Resolve(root, ref).(map[string]any)
	}
	isOpen := func(keyword string) bool { return root[keyword] != nil && root[keyword] != false }
	open := []string{"$ref", "allOf", "anyOf", "oneOf", "if", "patternProperties", "additionalProperties"}
	if slices.ContainsFunc(open, isOpen) {
		return nil
	}
	properties, _ := root["properties"].(map[string]any)
	return slices.Sorted(maps.Keys(properties))
}

// leadingAction returns the action whose name a path begins with, and the rest of the path;
// nil if there is none. As names may have dots in them, the longest one counts.
func (s *Snapshot) leadingAction(path []string) (d *Definition, rest []string) {
	for n := range slices.Backward(path) {
		if d, ok := s.Resolve(strings.Join(path[:n+1], ".")); ok {
			return d, path[n+1:]
		}
	}
	return nil, nil
}

// unmetCondition returns an error that names the first of a step's conditions that does not hold.
func (e *execution) unmetCondition(t task) error {
	for _, c := range t.step.Conditions {
		if !holds(c, e.find(c.Field)) {
			return core.Errorf(core.Invalid, "the condition on %s does not hold", c.Field)
		}
	}
	return nil
}

// find returns the value of a field; nil if there is none.
func (e *execution) find(field string) any {
	parts := strings.Split(field, ".")
	var root any
	switch parts[0] {
	case "context":
		root = plainJSON(e.Plan.Context)
	case "state", "conversation_state":
		root = plainJSON(e.State)
	case "message":
		m := cmp.Or(e.Message, new(core.Message))
		root = map[string]any{
			"id": m.ID, "text": m.Text, "time": m.Time.Format(time.RFC3339), "voice": m.Voice, "locale": m.Locale,
			"addressed": string(m.Addressed), "private": e.Who.Private, "path": e.Who.Path.String(),
			"attachments": json.Number(strconv.Itoa(len(m.Attachments))),
		}
	case "author":
		root = e.author()
	case resultsRoot:
		d, rest := e.Snapshot.leadingAction(parts[1:])
		if d == nil {
			return nil
		}
		root, _ = schema.Decode(e.outputs[d.Name])
		parts = append(parts[:1], rest...)
	default:
		return entityOrSlot(parts, e.Plan.Context, e.State)
	}
	v, _ := schema.Descend(root, parts[1:])
	return v
}

// entityOrSlot returns an entity or a slot of the first of these states that has it.
func entityOrSlot(parts []string, states ...core.State) any {
	for _, s := range states {
		for _, values := range []map[string]json.RawMessage{s.Entities, s.SlotsFilled} {
			v, _ := schema.Descend(plainJSON(values), parts)
			if v != nil {
				return v
			}
		}
	}
	return nil
}

func plainJSON(v any) any {
	plain, _ := schema.Decode(core.JSON(v))
	return plain
}

// author describes the person who caused the turn; nil if nobody or several did.
func (j *Job) author() any {
	a, ok := j.Who.Author()
	if !ok {
		return nil
	}
	ranks := map[core.Rank]string{
		core.RankMember: "member", core.RankModerator: "moderator", core.RankAdmin: "admin", core.RankBot: "bot",
	}
	return map[string]any{"id": a.ID, "name": a.Name, "tag": a.Tag, "bot": a.Bot, "rank": ranks[a.Rank]}
}

// holds evaluates a condition on the value of its field; the package comment has the rules.
func holds(c core.Condition, field any) bool {
	value, _ := schema.Decode(c.Value)
	order, ordered := compare(field, value)
	switch c.Operator {
	case "exists":
		return (field != nil) == (value != false)
	case "eq":
		return equal(field, value)
	case "neq":
		return !equal(field, value)
	case "contains":
		return contains(field, value)
	case "gt":
		return ordered && order > 0
	case "gte":
		return ordered && order >= 0
	case "lt":
		return ordered && order < 0
	case "lte":
		return ordered && order <= 0
	}
	return false
}

// equal compares JSON values: numbers by value, and nothing equals a value of another type.
func equal(a, b any) bool {
	type exact string
	byValue := func(v any) any {
		n, _ := v.(json.Number)
		if r, ok := schema.Rational(n); ok {
			return exact(r.RatString())
		}
		return v
	}
	return reflect.DeepEqual(schema.MapLeaves(a, byValue), schema.MapLeaves(b, byValue))
}

// compare orders two numbers, two times or two strings. ok is false for anything else.
func compare(a, b any) (order int, ok bool) {
	switch a := a.(type) {
	case json.Number:
		b, _ := b.(json.Number)
		x, okX := schema.Rational(a)
		y, okY := schema.Rational(b)
		if okX && okY {
			return x.Cmp(y), true
		}
	case string:
		b, ok := b.(string)
		x, errX := time.Parse(time.RFC3339, a)
		y, errY := time.Parse(time.RFC3339, b)
		if errX == nil && errY == nil {
			return x.Compare(y), ok
		}
		return strings.Compare(a, b), ok
	}
	return 0, false
}

// contains reports whether a text contains a text or a number as written, an array an element, an object a key.
func contains(field, value any) bool {
	text, isText := value.(string)
	if n, ok := value.(json.Number); ok {
		text, isText = n.String(), true
	}
	switch f := field.(type) {
	case json.Number:
		return isText && strings.Contains(f.String(), text)
	case string:
		return isText && strings.Contains(f, text)
	case []any:
		return slices.ContainsFunc(f, func(e any) bool { return equal(e, value) })
	case map[string]any:
		_, has := f[text]
		return isText && has
	}
	return false
}
