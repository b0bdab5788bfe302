package action

import (
	"context"
	"encoding/json"
	"testing"

	"synthbot/core"
	"synthbot/core/llm"
	"synthbot/core/plan"
	"synthbot/core/schema"
)

// FuzzLegacy: what is converted compiles, or is refused with an error.
func FuzzLegacy(f *testing.F) {
	f.Add(`{"description":"D. E","required_fields":["a"],"optional_fields":{"b":"int"},"examples":[{"a":1}]}`)
	f.Add(`{"required_fields":[{"name":"a","type":"list","default":[1]}],"instructions":{"payload":{"a":{"type":"str","example":"x"}}}}`)
	f.Fuzz(func(t *testing.T, raw string) {
		a, err := fromLegacy(core.Action{Name: "old", Schema: json.RawMessage(raw)})
		if err != nil {
			return
		}
		if !json.Valid(a.Schema) {
			t.Fatalf("schema %s", a.Schema)
		}
		a.Do = func(context.Context, core.Call) (core.Result, error) { return core.Result{}, nil }
		if a.Brief == "" {
			a.Brief = "Do it"
		}
		d := &Definition{Action: a, Owner: "old"}
		if err := d.complete(true); (err == nil) == (d.input == nil) {
			t.Fatalf("error %v, schema %v", err, d.input)
		}
	})
}

// FuzzCheck: whatever a model answers, what may run is permitted, valid, and
// stays where it belongs; checked again it stays as it is.
func FuzzCheck(f *testing.F) {
	f.Add(`{"response":"hi","actions":[{"type":"ban","payload":{"user":"1"}},{"type":"message","payload":{"text":"x","interface_path":"discord/1"}}]}`, uint8(0), true)
	f.Add(`[{"type":"forget"},{"type":"transfer","payload":{"n":"5"},"fallbackAction":{"type":"send_file"}}]`, uint8(1), false)
	s := corpusCatalogue(f)
	f.Fuzz(func(t *testing.T, text string, rank uint8, private bool) {
		who := by(core.Rank(rank % 4))
		who.Private = private
		p, _ := plan.Read(llm.Answer{Text: text})
		checked, faults := s.Check(p, who)
		for i := range checked.Steps {
			for st := &checked.Steps[i]; st != nil; st = st.Fallback {
				safe(t, s, who, checked.Repaired, st)
			}
		}
		again, more := s.Check(checked, who)
		if len(more) > 0 || len(again.Steps) != len(checked.Steps) {
			t.Fatalf("checked twice: %v (at first %v)", more, faults)
		}
	})
}

func safe(t *testing.T, s *Snapshot, who Requester, repaired bool, st *core.Step) {
	if _, ok := Control(st.Type); ok {
		return
	}
	d, ok := s.Resolve(st.Type)
	if !ok || d.Name != st.Type {
		t.Fatalf("unknown %q", st.Type)
	}
	v, err := schema.Decode(st.Payload)
	payload, ok := v.(map[string]any)
	if err != nil || !ok || len(d.input.Validate(payload)) > 0 {
		t.Fatalf("%s with the payload %s", st.Type, st.Payload)
	}
	if why := s.refusal(d, who, payload); why != "" {
		t.Fatalf("%s %s", st.Type, why)
	}
	if repaired && !d.IsMessage() {
		t.Fatalf("%s of a repaired plan", st.Type)
	}
	if to, ok := payload[pathKey].(string); ok && d.properties[pathKey] != nil {
		if p, err := core.ParsePath(to); err != nil || !p.Within(who.Path) {
			t.Fatalf("%s goes to %s", st.Type, to)
		}
	}
}
