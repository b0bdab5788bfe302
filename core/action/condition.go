package action

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"synthbot/core"
)

// Operators of conditions.
const (
	opEqual     = "eq"
	opNotEqual  = "neq"
	opGreater   = "gt"
	opAtLeast   = "gte"
	opLess      = "lt"
	opAtMost    = "lte"
	opContains  = "contains"
	opExists    = "exists"
	rootResults = "results"
)

// Roots of a condition's field. What begins with none of them is an entity or a
// slot.
func roots() []string {
	return []string{"context", "conversation_state", "state", "message", "author", rootResults}
}

// conditions checks that a step's conditions can be evaluated.
func (c *checker) conditions(field string, step *core.Step) bool {
	before := len(c.faults)
	for i := range step.Conditions {
		k := &step.Conditions[i]
		at := field + ".conditions[" + strconv.Itoa(i) + "]"
		if why := c.lintField(k.Field); why != "" {
			c.fault(at+".field", step.Type, "%s", why)
		}
		switch k.Operator {
		case opEqual, opNotEqual, opGreater, opAtLeast, opLess, opAtMost, opContains, opExists:
		default:
			c.fault(at+".operator", step.Type, "unknown operator %q", k.Operator)
		}
		if len(k.Value) > 0 && !json.Valid(k.Value) {
			c.fault(at+".value", step.Type, "must be JSON")
		}
	}
	return len(c.faults) == before
}

func (c *checker) lintField(field string) string {
	parts := splitField(field)
	switch {
	case slices.Contains(parts, ""):
		return "must be a dotted path"
	case !slices.Contains(roots(), parts[0]):
		if _, ok := mentioned(parts, c.context, c.who.State); ok {
			return ""
		}
		return "must begin with one of " + strings.Join(roots(), ", ") + ", or be an entity or a slot that is known"
	}
	if d, _ := c.leading(parts[1:]); parts[0] == rootResults && d == nil {
		return "must name an action whose result is meant"
	}
	return ""
}

// leading returns the action whose name a path begins with, and the rest of the path;
// nil if there is none. Names of actions may have dots in them: the longest one counts.
func (s *Snapshot) leading(path []string) (d *Definition, rest []string) {
	for n := range slices.Backward(path) {
		if d, ok := s.Resolve(strings.Join(path[:n+1], ".")); ok {
			return d, path[n+1:]
		}
	}
	return nil, nil
}

// conditions says which of a step's conditions does not hold; nil: all do.
func (e *execution) conditions(t task) error {
	for _, c := range t.step.Conditions {
		if !holds(c, e.look) {
			return core.Errorf(core.Invalid, "the condition on %s does not hold", c.Field)
		}
	}
	return nil
}

// look finds the value of a field; ok is false where there is none.
func (e *execution) look(field string) (v any, ok bool) {
	parts := splitField(field)
	root, parts := parts[0], parts[1:]
	switch root {
	case "context":
		return descend(plainOf(e.Plan.Context), parts)
	case "state", "conversation_state":
		return descend(plainOf(e.State), parts)
	case "message":
		return descend(e.message(), parts)
	case "author":
		return descend(e.author(), parts)
	case rootResults:
		return e.result(parts)
	}
	return mentioned(append([]string{root}, parts...), e.Plan.Context, e.State)
}

// mentioned finds what is called so among the entities and slots of the conversation:
// what was said last counts.
func mentioned(parts []string, states ...core.State) (any, bool) {
	for _, s := range states {
		for _, values := range []map[string]json.RawMessage{s.Entities, s.SlotsFilled} {
			if v, ok := descend(plainOf(values), parts); ok {
				return v, true
			}
		}
	}
	return nil, false
}

func splitField(field string) []string { return strings.Split(field, ".") }

// plainOf turns a value of ours into decoded JSON.
func plainOf(v any) any {
	plain, err := decode(encode(v))
	if err != nil {
		return nil
	}
	return plain
}

func (e *execution) message() any {
	m := &e.Message
	return map[string]any{
		"id": m.ID, "text": m.Text, "time": m.Time.Format(time.RFC3339), "voice": m.Voice, "locale": m.Locale,
		"addressed": string(m.Addressed), "private": e.Who.Private, "path": e.Who.Path.String(),
		"attachments": json.Number(strconv.Itoa(len(m.Attachments))),
	}
}

func (e *execution) author() any {
	a, ok := e.Who.person()
	if !ok {
		return nil
	}
	ranks := [...]string{core.RankMember: "member", core.RankModerator: "moderator", core.RankAdmin: "admin", core.RankBot: "bot"}
	rank := ""
	if int(a.Rank) < len(ranks) {
		rank = ranks[a.Rank]
	}
	return map[string]any{"id": a.ID, "name": a.Name, "tag": a.Tag, "bot": a.Bot, "rank": rank}
}

// result finds a field of an earlier step's output.
func (e *execution) result(parts []string) (any, bool) {
	d, rest := e.Snapshot.leading(parts)
	if d == nil {
		return nil, false
	}
	return descend(e.results[d.Name], rest)
}

// descend follows keys of objects and indexes of arrays. null is nothing.
func descend(v any, parts []string) (any, bool) {
	for _, p := range parts {
		switch at := v.(type) {
		case map[string]any:
			v = at[p]
		case []any:
			i, err := strconv.Atoi(p)
			if err != nil || i < 0 || i >= len(at) {
				return nil, false
			}
			v = at[i]
		default:
			return nil, false
		}
	}
	return v, v != nil
}

// holds evaluates one condition; the package doc says how.
func holds(c core.Condition, look func(string) (any, bool)) bool {
	field, there := look(c.Field)
	value, _ := decode(c.Value)
	switch c.Operator {
	case opExists:
		return there == (value != false)
	case opEqual:
		return same(field, value)
	case opNotEqual:
		return !same(field, value)
	case opContains:
		return contains(field, value)
	}
	order, ok := compare(field, value)
	switch {
	case !ok:
		return false
	case c.Operator == opGreater:
		return order > 0
	case c.Operator == opAtLeast:
		return order >= 0
	case c.Operator == opLess:
		return order < 0
	case c.Operator == opAtMost:
		return order <= 0
	}
	return false
}

// same is equality of JSON values: numbers by value, objects whatever the order
// of their keys, and nothing equals a value of another type.
func same(a, b any) bool {
	switch a := a.(type) {
	case json.Number:
		b, ok := b.(json.Number)
		if !ok {
			return false
		}
		x, okX := rational(a)
		y, okY := rational(b)
		if !okX || !okY {
			return a == b
		}
		return x.Cmp(y) == 0
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for k, v := range a {
			if w, ok := b[k]; !ok || !same(v, w) {
				return false
			}
		}
		return true
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, same)
	}
	switch b.(type) {
	case json.Number, map[string]any, []any:
		return false
	}
	return a == b
}

// compare orders two numbers, two times or two strings; ok is false for
// anything else.
func compare(a, b any) (order int, ok bool) {
	switch a := a.(type) {
	case json.Number:
		b, ok := b.(json.Number)
		if !ok {
			return 0, false
		}
		x, okX := rational(a)
		y, okY := rational(b)
		if !okX || !okY {
			return 0, false
		}
		return x.Cmp(y), true
	case string:
		b, ok := b.(string)
		if !ok {
			return 0, false
		}
		x, errX := time.Parse(time.RFC3339, a)
		y, errY := time.Parse(time.RFC3339, b)
		if errX == nil && errY == nil {
			return x.Compare(y), true
		}
		return strings.Compare(a, b), true
	}
	return 0, false
}

// contains: a string a string, an array an equal element, an object a key.
func contains(field, value any) bool {
	switch f := field.(type) {
	case string:
		s, ok := value.(string)
		return ok && strings.Contains(f, s)
	case []any:
		return slices.ContainsFunc(f, func(e any) bool { return same(e, value) })
	case map[string]any:
		key, ok := value.(string)
		_, has := f[key]
		return ok && has
	}
	return false
}
