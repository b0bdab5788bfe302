package action

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"synthbot/core"
	"synthbot/core/llm"
	"synthbot/core/plan"
	"synthbot/core/recent"
	"synthbot/core/schema"
)

// replyCatalogue has actions with payloads of every type.
func replyCatalogue(t testing.TB) (*Snapshot, []string) {
	var w world
	form := func(s string) func(*core.Action) {
		return func(a *core.Action) { a.Schema = json.RawMessage(s) }
	}
	s := w.catalogue(t,
		w.act("invoices.list", form(`{"type":"object","properties":{"status":{"type":"string","enum":["pending","paid"]},"limit":{"type":"number","minimum":1,"maximum":100}},"required":["status"]}`)),
		w.act("tree", form(`{"type":"object","properties":{"root":{"$ref":"#/$defs/node"}},"required":["root"],"$defs":{"node":{"type":"object","properties":{"name":{"type":"string"},"children":{"type":"array","items":{"$ref":"#/$defs/node"}}},"required":["name"]}}}`)),
		w.act("anything", form(`{"type":"object"}`)),
		w.act("open", form(`{"type":"object","properties":{"a":{"type":"integer"}},"additionalProperties":true}`)),
		w.act("choice", form(`{"type":"object","properties":{"at":{"oneOf":[{"type":"string","enum":["now","later"]},{"type":"integer","minimum":0,"maximum":9}]}},"required":["at"]}`)),
		w.act("nested", form(`{"type":"object","properties":{"who":{"type":"object","properties":{"name":{"type":"string","minLength":1,"maxLength":9,"pattern":"^[a-z]+$"},"tags":{"type":"array","items":{"type":"string"},"maxItems":1000}},"required":["name"]},"note":{"type":["string","null"]}}}`)),
		w.act("flags", form(`{"type":"object","properties":{"n":{"type":"integer"},"day":{"type":"string","format":"date"},"on":{"type":"boolean"},"kind":{"enum":["a","b",3]}},"required":["n","on"]}`)),
	)
	var names []string
	for _, d := range s.Offer(by(core.RankAdmin)) {
		names = append(names, d.Name)
	}
	return s, names
}

// TestReplySchema: replies that follow the schema have no faults of syntax: every plan can be read
// and has only existing actions with valid payloads.
func TestReplySchema(t *testing.T) {
	s, names := replyCatalogue(t)
	for _, strict := range []bool{false, true} {
		raw := s.ReplySchema(names, []string{"mood"}, strict)
		var root map[string]any
		if err := json.Unmarshal(raw, &root); err != nil {
			t.Fatal(err)
		}
		g := generator{root: root, random: rand.New(rand.NewPCG(1, 2))}
		used := make(map[string]bool)
		for range 1000 {
			text := core.JSON(g.value(root, 0))
			for _, f := range syntaxFaults(s, string(text), strict) {
				t.Fatalf("strict %t: %s\nof %s", strict, f, text)
			}
			for _, name := range names {
				used[name] = used[name] || strings.Contains(string(text), `"type":"`+name+`"`)
			}
		}
		if len(used) != len(names) || slices.Contains([]bool{used["tree"], used["nested"], used["open"]}, false) {
			t.Errorf("strict %t: only the actions %v were used", strict, used)
		}
		before := s.ReplySchema(names, []string{"mood"}, strict)
		if &before[0] != &raw[0] {
			t.Error("the schema is not cached")
		}
	}
	if a, b := s.ReplySchema(names[:2], nil, false), s.ReplySchema(names[:3], nil, false); string(a) == string(b) {
		t.Error("a requester with fewer rights gets the same schema")
	}
}

// syntaxFaults returns the faults that a grammar can prevent. It ignores values, and payloads with
// unknown keys, which the strict subset leaves to a string.
func syntaxFaults(s *Snapshot, text string, strict bool) (faults []core.Fault) {
	p, read := plan.Read(llm.Answer{Text: text})
	for i := range p.Steps {
		p.Steps[i].Unit = "" // a unit would not ask for null values
	}
	_, checked := s.Check(p, by(core.RankAdmin))
	for _, f := range append(read, checked...) {
		isSyntax := slices.ContainsFunc([]string{
			"JSON", "prose", "must be an object", "must be an array", "must be a string", "must be the name", "must be one of",
			"unknown key", "is missing", "there is no action", "but should be", "allowed values", "is not allowed",
		}, func(s string) bool { return strings.Contains(f.String(), s) })
		isText := strict && slices.Contains([]string{"anything", "choice", "open", "tree"}, f.Action)
		if isSyntax && !isText && f.Field != "mood" {
			faults = append(faults, f)
		}
	}
	return faults
}

// generator makes random values of a schema.
type generator struct {
	root   map[string]any
	random *rand.Rand
}

func (g *generator) value(node any, depth int) any {
	n, _ := node.(map[string]any)
	if ref, ok := n["$ref"].(string); ok {
		return g.value(schema.Resolve(g.root, ref), depth+1)
	}
	if list, ok := n["enum"].([]any); ok {
		return list[g.random.IntN(len(list))]
	}
	if list, ok := n["anyOf"].([]any); ok {
		last := list[len(list)-1]
		if depth > 12 && fmt.Sprint(last) == "map[type:null]" {
			return nil
		}
		if depth > 12 {
			return g.value(list[0], depth+1)
		}
		return g.value(list[g.random.IntN(len(list))], depth+1)
	}
	kind, _ := n["type"].(string)
	if list, ok := n["type"].([]any); ok {
		kind = list[g.random.IntN(len(list))].(string)
	}
	switch kind {
	case "string":
		if n["format"] == "date" {
			return "2026-11-23"
		}
		return []string{"", "a", "two words", "{\"a\":1}", "\"", "é\n", "telegram/-100/7"}[g.random.IntN(7)]
	case "integer":
		return g.within(n, 1)
	case "number":
		return g.within(n, 10)
	case "boolean":
		return g.random.IntN(2) == 0
	case "array":
		list := []any{}
		for range g.random.IntN(3) {
			if depth > 12 {
				break
			}
			list = append(list, g.value(n["items"], depth+1))
		}
		return list
	case "object":
		return g.object(n, depth)
	}
	return nil
}

func (g *generator) within(n map[string]any, parts int) float64 {
	low, high := -3.0, 12.0
	if v, ok := n["minimum"].(float64); ok {
		low = v
	}
	if v, ok := n["maximum"].(float64); ok {
		high = v
	}
	return low + float64(g.random.IntN(int(high-low)*parts+1))/float64(parts)
}

func (g *generator) object(n map[string]any, depth int) any {
	o := make(map[string]any)
	properties, _ := n["properties"].(map[string]any)
	required, _ := n["required"].([]any)
	for name, p := range properties {
		if slices.Contains(required, any(name)) || depth < 12 && g.random.IntN(2) == 0 {
			o[name] = g.value(p, depth+1)
		}
	}
	return o
}

// TestStrictSubset: the strict form stays within the subset that OpenAI accepts: closed objects
// with all properties required, only basic keywords, at most ten levels and valid references.
func TestStrictSubset(t *testing.T) {
	s, names := replyCatalogue(t)
	raw := s.ReplySchema(names, nil, true)
	var root map[string]any
	if err := json.Unmarshal(raw, &root); err != nil {
		t.Fatal(err)
	}
	var walk func(at string, node any, levels int)
	walk = func(at string, node any, levels int) {
		n, ok := node.(map[string]any)
		if !ok || levels > 10 {
			t.Errorf("%s: %v is %d levels deep, want at most 10", at, node, levels)
			return
		}
		for key := range n {
			if !slices.Contains([]string{"type", "enum", "anyOf", "properties", "required", "additionalProperties", "items", "$ref", "$defs"}, key) {
				t.Errorf("%s: %s is not in the subset", at, key)
			}
		}
		if ref, ok := n["$ref"].(string); ok && schema.Resolve(root, ref) == nil {
			t.Errorf("%s: the reference %s is invalid", at, ref)
		}
		properties, _ := n["properties"].(map[string]any)
		required, _ := n["required"].([]any)
		if n["type"] == "object" && (len(properties) != len(required) || n["additionalProperties"] != false || len(properties) == 0) {
			t.Errorf("%s: the object %v is open or has optional properties", at, n)
		}
		for name, p := range properties {
			walk(at+"."+name, p, levels+1)
		}
		definitions, _ := n["$defs"].(map[string]any)
		for name, d := range definitions {
			walk("$defs."+name, d, 3) // payloads are on the third level
		}
		alternatives, _ := n["anyOf"].([]any)
		for i, a := range alternatives {
			walk(fmt.Sprintf("%s.anyOf[%d]", at, i), a, levels)
		}
		if n["items"] != nil {
			walk(at+".items", n["items"], levels+1)
		}
	}
	walk("", root, 1)
}

// TestReplySchemaOfAnyName: an action's name may equal a name within the schema.
func TestReplySchemaOfAnyName(t *testing.T) {
	var w world
	names := []string{"action", "condition"}
	s := w.catalogue(t, w.act(names[0]), w.act(names[1]))
	var root map[string]any
	if err := json.Unmarshal(s.ReplySchema(names, nil, false), &root); err != nil {
		t.Fatal(err)
	}
	definitions, _ := root["$defs"].(map[string]any)
	for _, name := range names {
		payload, _ := definitions[name].(map[string]any)
		if properties, _ := payload["properties"].(map[string]any); properties["n"] == nil || properties["field"] != nil {
			t.Errorf("unexpected payload schema of %s: %v", name, payload)
		}
	}
}

// TestReplySchemaIsBounded: a catalogue with huge schemas still has a reply schema, a smaller one.
func TestReplySchemaIsBounded(t *testing.T) {
	var w world
	var names []string
	var actions []core.Action
	for i := range 10 {
		name := fmt.Sprintf("big%d", i)
		properties := make(map[string]any)
		for j := range 500 {
			properties[fmt.Sprintf("property_number_%d", j)] = map[string]any{"type": "string"}
		}
		names = append(names, name)
		actions = append(actions, w.act(name, func(a *core.Action) {
			a.Schema = core.JSON(map[string]any{"type": "object", "properties": properties})
		}))
	}
	s := w.catalogue(t, actions...)
	raw := s.ReplySchema(names, nil, false)
	if len(raw) > maxReplySchema || !json.Valid(raw) || !strings.Contains(string(raw), `"enum":["big9"]`) {
		t.Errorf("unexpected size: %d bytes", len(raw))
	}
}

// BenchmarkReplySchema makes a catalogue's schema without the cache.
func BenchmarkReplySchema(b *testing.B) {
	s, names := replyCatalogue(b)
	for b.Loop() {
		s.replies = recent.NewShared[string, json.RawMessage](1)
		s.ReplySchema(names, nil, false)
	}
}
