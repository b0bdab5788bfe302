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

// FuzzLegacy: a legacy schema is converted to one that compiles, or refused with an error.
func FuzzLegacy(f *testing.F) {
	f.Add(`{"description":"D. E","required_fields":["a"],"optional_fields":{"b":"int"},"examples":[{"a":1}]}`)
	f.Add(`{"required_fields":[{"name":"a","type":"list","default":[1]}],"instructions":{"payload":{"a":{"type":"str","example":"x"}}}}`)
	f.Fuzz(func(t *testing.T, raw string) {
		a, err := fromLegacy(core.Action{Name: "old", Schema: json.RawMessage(raw)})
		if err != nil {
			return
		}
		if !json.Valid(a.Schema) {
			t.Fatalf("unexpected schema %s", a.Schema)
		}
		a.Do = func(context.Context, core.Call) (core.Result, error) { return core.Result{}, nil }
		if a.Brief == "" {
			a.Brief = "Do it"
		}
		d := &Definition{Action: a, Owner: "old"}
		if err := d.complete(true); (err == nil) == (d.input == nil) {
			t.Fatalf("got error %v and schema %v, want one of them", err, d.input)
		}
	})
}

// FuzzCheck: whatever a model replies, the steps that may run are permitted, valid and go to
// allowed places. A second check changes nothing.
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
				checkSafe(t, s, who, checked.Repaired, st)
			}
		}
		again, more := s.Check(checked, who)
		if len(more) > 0 || len(again.Steps) != len(checked.Steps) {
			t.Fatalf("the second check found %v, the first %v", more, faults)
		}
	})
}

// checkSafe checks that a step may run.
func checkSafe(t *testing.T, s *Snapshot, who Requester, repaired bool, st *core.Step) {
	if _, ok := Control(st.Type); ok {
		return
	}
	d, ok := s.Resolve(st.Type)
	if !ok || d.Name != st.Type {
		t.Fatalf("a step of the unknown action %q may run", st.Type)
	}
	v, err := schema.Decode(st.Payload)
	payload, ok := v.(map[string]any)
	if err != nil || !ok || len(d.input.Validate(payload)) > 0 {
		t.Fatalf("%s may run with the invalid payload %s", st.Type, st.Payload)
	}
	if why := s.refusal(d, who, payload); why != "" {
		t.Fatalf("%s may run although it is refused: %s", st.Type, why)
	}
	if repaired && !d.IsMessage() {
		t.Fatalf("%s of a repaired plan may run", st.Type)
	}
	if to, ok := payload[pathKey].(string); ok && d.properties[pathKey] != nil {
		if p, err := core.ParsePath(to); err != nil || !p.Within(who.Path) {
			t.Fatalf("%s may go to %s", st.Type, to)
		}
	}
}
