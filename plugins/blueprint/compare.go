package blueprint

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"synthbot/core"
	"synthbot/core/schema"
	"synthbot/core/txt"
)

// Compare returns the changes of a blueprint: first the breaking ones, by which calls that were valid may fail now,
// and then the others as warnings. Changes that it cannot judge count as breaking. If something breaks and the major
// version is the same, that is a further change.
func Compare(before, after []byte) ([]Fault, error) {
	old, err := Read(before)
	if err != nil {
		return nil, fmt.Errorf("before: %w", err)
	}
	b, err := Read(after)
	if err != nil {
		return nil, fmt.Errorf("after: %w", err)
	}
	var d diff
	d.tools(old, b)
	d.envelope(old, b)
	harmless := slices.Clone(d.changes)
	harmless = slices.DeleteFunc(harmless, func(f Fault) bool { return !f.Warning })
	breaking := slices.DeleteFunc(d.changes, func(f Fault) bool { return f.Warning })
	return append(breaking, harmless...), nil
}

type diff struct {
	changes []Fault
	tool    string
}

func (d *diff) add(breaking bool, format string, args ...any) {
	d.changes = append(d.changes, Fault{Tool: d.tool, Text: fmt.Sprintf(format, args...), Warning: !breaking})
}

func (d *diff) tools(old, b *Blueprint) {
	before, after := byName(old), byName(b)
	for _, name := range slices.Sorted(maps.Keys(before)) {
		d.tool = name
		if after[name] == nil {
			d.add(true, "the tool is gone")
		} else {
			d.compareTool(before[name], after[name])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(after)) {
		d.tool = name
		if before[name] == nil {
			d.add(false, "the tool is new")
		}
	}
	d.tool = ""
}

func byName(b *Blueprint) map[string]*Tool {
	m := make(map[string]*Tool, len(b.Tools))
	for i := range b.Tools {
		m[b.Tools[i].Name] = &b.Tools[i]
	}
	return m
}

func (d *diff) compareTool(before, after *Tool) {
	d.schemas("input", before.Input, after.Input, false)
	switch {
	case before.Output == nil && after.Output != nil:
		d.add(false, "the output has a schema now")
	case before.Output != nil && after.Output == nil:
		d.add(true, "the output has no schema any more")
	default: // readers of the output rely on the former schema
		d.schemas("output", before.Output, after.Output, true)
	}
	if before.Annotations.ReadOnly != after.Annotations.ReadOnly {
		d.add(before.Annotations.ReadOnly, "readOnlyHint is %t now", after.Annotations.ReadOnly)
	}
	if before.Security != after.Security {
		d.add(stricter(before.permission(), after.permission()) != before.permission(),
			"who may use it, or whether it asks, has changed")
	}
	if before.Endpoint != after.Endpoint {
		d.add(false, "it has another endpoint")
	}
	if before.Description != after.Description || before.Title != after.Title {
		d.add(false, "its description has changed")
	}
}

func (d *diff) schemas(what string, before, after json.RawMessage, output bool) {
	var a, b map[string]any
	if json.Unmarshal(before, &a) != nil || json.Unmarshal(after, &b) != nil {
		if string(before) != string(after) {
			d.add(true, "the %s has changed in a way that cannot be judged", what)
		}
		return
	}
	c := comparison{diff: d, output: output, before: a, after: b, left: maxNodes, seen: make(map[[2]string]bool)}
	c.nodes(what, a, b, 0)
}

func (d *diff) envelope(old, b *Blueprint) {
	broken := slices.ContainsFunc(d.changes, func(f Fault) bool { return !f.Warning })
	was, is := txt.Clip(cmp.Or(old.Version, "none"), 40), txt.Clip(cmp.Or(b.Version, "none"), 40)
	switch {
	case broken && major(b.Version) == major(old.Version):
		d.add(true, "the version is still %s: a breaking change needs a new major version", is)
	case b.Version != old.Version:
		d.add(false, "version %s has become %s", was, is)
	}
	if old.Endpoint != b.Endpoint || old.invoke != b.invoke {
		d.add(false, "the agent has another endpoint")
	}
	if !sameJSON(old.Compliance, b.Compliance) {
		d.add(false, "the compliance section has changed")
	}
	if !sameJSON(old.Security, b.Security) {
		d.add(false, "the security section has changed")
	}
}

func major(v string) string {
	m := semantic().FindStringSubmatch(v)
	if m == nil {
		return v
	}
	return m[1]
}

func sameJSON(a, b json.RawMessage) bool {
	var x, y any
	if json.Unmarshal(a, &x) != nil || json.Unmarshal(b, &y) != nil {
		return string(a) == string(b)
	}
	return reflect.DeepEqual(x, y)
}

const (
	maxNodes = 5000
	maxLevel = 24
	maxHops  = 16 // of references
)

// comparison compares two schemas. Accepting fewer values (narrower) breaks an input; allowing
// more values (wider) breaks an output.
type comparison struct {
	*diff
	output        bool
	before, after map[string]any     // the roots
	left          int                // nodes that may still be compared
	seen          map[[2]string]bool // references that were followed
}

// narrower adds a change by which fewer values are valid.
func (c *comparison) narrower(format string, args ...any) { c.add(!c.output, format, args...) }

// wider adds a change by which more values are valid.
func (c *comparison) wider(format string, args ...any) { c.add(c.output, format, args...) }

func (c *comparison) nodes(at string, x, y any, depth int) {
	same := reflect.DeepEqual(x, y)
	if same && !strings.Contains(string(core.JSON(x)), `"$ref"`) || c.seenBefore(x, y) {
		return
	}
	c.left--
	a, okA := resolve(c.before, x)
	b, okB := resolve(c.after, y)
	if c.left < 0 || depth > maxLevel || !okA || !okB {
		if !same {
			c.add(true, "%s has changed in a way that cannot be judged", at)
		}
		return
	}
	c.types(at, a, b)
	c.bounds(at, a, b)
	c.enums(at, a, b)
	c.properties(at, a, b, depth)
	if a["items"] != nil && b["items"] != nil {
		c.nodes(at+"[]", a["items"], b["items"], depth+1)
	}
	c.otherKeywords(at, a, b)
}

// seenBefore returns whether both are references that were compared already, and records them.
func (c *comparison) seenBefore(x, y any) bool {
	a, _ := x.(map[string]any)
	b, _ := y.(map[string]any)
	before, okA := a["$ref"].(string)
	after, okB := b["$ref"].(string)
	if !okA || !okB {
		return false
	}
	pair := [2]string{before, after}
	seen := c.seen[pair]
	c.seen[pair] = true
	return seen
}

// resolve follows references. ok is false if they lead to no object.
func resolve(root map[string]any, node any) (n map[string]any, ok bool) {
	for range maxHops {
		n, ok = node.(map[string]any)
		if !ok {
			return nil, node == true
		}
		ref, refers := n["$ref"].(string)
		if !refers {
			return n, true
		}
		node = schema.Resolve(root, ref)
	}
	return nil, false
}

func (c *comparison) types(at string, a, b map[string]any) {
	before, after := typesOf(a), typesOf(b)
	gone, more := without(before, after), without(after, before)
	if len(gone) > 0 {
		c.narrower("%s is no %s any more", at, strings.Join(gone, " or "))
	}
	if len(more) > 0 {
		c.wider("%s can be %s now", at, strings.Join(more, " or "))
	}
}

func typesOf(n map[string]any) []string {
	switch t := n["type"].(type) {
	case string:
		return []string{t}
	case []any:
		var list []string
		for _, e := range t {
			list = append(list, fmt.Sprint(e))
		}
		return list
	}
	return []string{"array", "boolean", "null", "number", "object", "string"}
}

// without returns the types of a that b does not cover. A number covers integers.
func without(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(a), func(t string) bool {
		return slices.Contains(b, t) || t == "integer" && slices.Contains(b, "number")
	})
}

// Keywords that set limits. A higher minimum and a lower maximum are narrower.
var (
	minKeywords = []string{"minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties"}
	maxKeywords = []string{"maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties"}
)

func (c *comparison) bounds(at string, a, b map[string]any) {
	for _, key := range slices.Concat(minKeywords, maxKeywords) {
		before, had := a[key].(float64)
		after, has := b[key].(float64)
		switch {
		case had == has && before == after:
		case has && (!had || (after > before) == slices.Contains(minKeywords, key)):
			c.narrower("%s: %s is %v now", at, key, after)
		case has:
			c.wider("%s: %s is %v now", at, key, after)
		default:
			c.wider("%s: %s is no longer a limit", at, key)
		}
	}
}

func (c *comparison) enums(at string, a, b map[string]any) {
	before, had := a["enum"].([]any)
	after, has := b["enum"].([]any)
	switch {
	case had && !has:
		c.wider("%s is not one of a few values any more", at)
	case has && !had:
		c.narrower("%s must be one of a few values now", at)
	default:
		for _, v := range missing(before, after) {
			c.narrower("%s cannot be %s any more", at, txt.Clip(string(core.JSON(v)), 60))
		}
		for _, v := range missing(after, before) {
			c.wider("%s can be %s now", at, txt.Clip(string(core.JSON(v)), 60))
		}
	}
}

func missing(a, b []any) []any {
	return slices.DeleteFunc(slices.Clone(a), func(v any) bool {
		return slices.ContainsFunc(b, func(e any) bool { return reflect.DeepEqual(e, v) })
	})
}

// properties compares the properties of an object. A removed one always breaks: callers may have
// sent it, or readers may have used it.
func (c *comparison) properties(at string, a, b map[string]any, depth int) {
	needed, _ := a["required"].([]any)
	needs, _ := b["required"].([]any)
	for _, name := range missing(needs, needed) {
		c.narrower("%s.%v is required now", at, name)
	}
	for _, name := range missing(needed, needs) {
		c.wider("%s.%v is not required any more", at, name)
	}
	before, _ := a["properties"].(map[string]any)
	after, _ := b["properties"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if p, ok := after[name]; ok {
			c.nodes(at+"."+name, before[name], p, depth+1)
		} else {
			c.add(true, "%s.%s is gone", at, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(after)) {
		if _, ok := before[name]; !ok {
			c.add(false, "%s.%s is new", at, name)
		}
	}
	x, y := a["additionalProperties"], b["additionalProperties"]
	anyX, anyY := x == nil || x == true, y == nil || y == true
	switch {
	case anyX && anyY || reflect.DeepEqual(x, y):
	case y == false:
		c.narrower("%s takes no other properties any more", at)
	case x == false && anyY:
		c.wider("%s takes other properties now", at)
	default:
		c.add(true, "%s: other properties have changed in a way that cannot be judged", at)
	}
}

// How otherKeywords compares keywords. A change of a keyword in none of the lists is breaking.
var (
	comparedKeywords = slices.Concat(minKeywords, maxKeywords, []string{"type", "enum", "required", "properties",
		"additionalProperties", "items", "$defs", "definitions", "$ref"}) // compared by the other functions
	ruleKeywords = []string{"pattern", "format", "const", "multipleOf", "uniqueItems"}
	textKeywords = []string{"title", "description", "examples", "$comment", "$schema", "$id", "deprecated", "readOnly",
		"writeOnly"}
)

func (c *comparison) otherKeywords(at string, a, b map[string]any) {
	keys := slices.AppendSeq(slices.Collect(maps.Keys(a)), maps.Keys(b))
	slices.Sort(keys)
	for _, key := range slices.Compact(keys) {
		x, y := a[key], b[key]
		rule := slices.Contains(ruleKeywords, key)
		switch {
		case reflect.DeepEqual(x, y), slices.Contains(comparedKeywords, key):
		case rule && y == nil:
			c.wider("%s: there is no %s any more", at, key)
		case rule && x == nil:
			c.narrower("%s: there is a %s now", at, key)
		case rule:
			c.add(true, "%s: %s has changed", at, key)
		case key == "default":
			c.add(false, "%s: the default has changed", at)
		case slices.Contains(textKeywords, key), strings.HasPrefix(key, "x-"):
			c.add(false, "%s: %s has changed", at, key)
		default:
			c.add(true, "%s: %s has changed in a way that cannot be judged", at, key)
		}
	}
}
