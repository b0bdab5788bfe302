package action

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"synthbot/core"
)

func TestLegacy(t *testing.T) {
	tests := []struct{ name, old, schema, brief string }{
		{"lists", `{"description":"Do something with a value. And more.","required_fields":["value"],"optional_fields":["option"],"instructions":"be careful"}`,
			`{"type":"object","properties":{"value":{},"option":{}},"required":["value"]}`, "Do something with a value"},
		{"types read off examples", `{"description":"D","required_fields":["s","n","f","b","l","o","mixed"],"optional_fields":[],"examples":[
			{"scenario":"x","payload":{"s":"a","n":1,"f":1,"b":true,"l":[],"o":{},"mixed":1}},{"s":"b","n":2,"f":1.5,"b":false,"l":[1],"o":{"k":1},"mixed":"x"}]}`,
			`{"type":"object","properties":{"s":{"type":"string"},"n":{"type":"integer"},"f":{"type":"number"},"b":{"type":"boolean"},"l":{"type":"array"},"o":{"type":"object"},"mixed":{}},"required":["s","n","f","b","l","o","mixed"]}`, "D"},
		{"types told", `{"description":"D","required_fields":{"a":"int","b":"what it is"},"optional_fields":{"c":{"type":"str","description":"C","enum":["x","y"]}}}`,
			`{"type":"object","properties":{"a":{"type":"integer"},"b":{"description":"what it is"},"c":{"description":"C","enum":["x","y"],"type":"string"}},"required":["a","b"]}`, "D"},
		{"types in the instructions", `{"description":"D","required_fields":["a"],"optional_fields":[{"name":"b","type":"bool"}],
			"instructions":{"description":"More","when_to_use":"now","payload":{"a":{"type":"string","example":"x","description":"A"}}}}`,
			`{"type":"object","properties":{"a":{"description":"A","type":"string"},"b":{"type":"boolean"}},"required":["a"]}`, "D"},
		{"long brief", `{"description":"This action allows you to send messages through the interface by providing message content and optionally a priority","required_fields":[]}`,
			`{"type":"object","properties":{}}`, "This action allows you to send messages through the interface by providing message content and…"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			a, err := fromLegacy(core.Action{Name: "my_action", Schema: json.RawMessage(test.old)})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.schema, string(a.Schema)); diff != "" {
				t.Errorf("schema (-want +got)\n%s", diff)
			}
			if a.Brief != test.brief {
				t.Errorf("brief %q, want %q", a.Brief, test.brief)
			}
			a.Do = func(context.Context, core.Call) (core.Result, error) { return core.Result{}, nil }
			if _, err := Build(plug{"old", []core.Action{a}}); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestLegacyIsConvertedWhenRegistered(t *testing.T) {
	var w world
	a := w.act("old_one")
	a.Brief, a.Schema = "", json.RawMessage(`{"description":"Greet somebody","required_fields":["name"],"instructions":{"when_to_use":"always","common_pitfalls":["none"]},"examples":[{"scenario":"x","payload":{"name":"Ann"}}]}`)
	s, err := Build(plug{"old", []core.Action{a}})
	if err != nil {
		t.Fatal(err)
	}
	d, _ := s.Resolve("old_one")
	if d.Brief != "Greet somebody" || d.Examples.Instructions.WhenToUse != "always" || len(d.Examples.Examples) != 1 {
		t.Errorf("converted to %+v", d.Action)
	}
	if _, faults := s.Check(core.Plan{Steps: []core.Step{step("old_one", `{"name":[5]}`)}}, by(core.Member)); len(faults) != 1 {
		t.Errorf("faults %v", faults)
	}
}

type Common struct {
	Note string `json:"note,omitempty" doc:"a remark" max:"40"`
}

type booking struct {
	Common
	Seats int             `json:"seats" min:"1" max:"9" doc:"how many"`
	Class string          `json:"class" oneof:"a|b" default:"b" title:"Class"`
	When  time.Time       `json:"when"`
	Place core.Path       `json:"place,omitzero"`
	Names []string        `json:"names,omitempty" max:"3"`
	Price *float64        `json:"price,omitempty"`
	Level int8            `json:"level,omitempty"`
	Tags  map[string]bool `json:"tags,omitempty"`
	Raw   json.RawMessage `json:"raw,omitempty"`
	Inner struct {
		On bool `json:"on"`
	} `json:"inner,omitzero"`
	hidden string
	Secret string `json:"-"`
}

func TestTyped(t *testing.T) {
	var got booking
	a := Typed(core.Action{Name: "book", Brief: "Book seats"}, func(_ context.Context, _ core.Call, b booking) (core.Result, error) {
		got = b
		return core.Result{}, nil
	})
	const want = `{"type":"object","properties":{` +
		`"note":{"type":"string","description":"a remark","maxLength":40},` +
		`"seats":{"type":"integer","description":"how many","minimum":1,"maximum":9},` +
		`"class":{"type":"string","title":"Class","enum":["a","b"],"default":"b"},` +
		`"when":{"type":"string","format":"date-time"},"place":{"type":"string"},` +
		`"names":{"type":"array","items":{"type":"string"},"maxItems":3},"price":{"type":"number"},` +
		`"level":{"type":"integer","minimum":-128,"maximum":127},` +
		`"tags":{"type":"object","additionalProperties":{"type":"boolean"}},"raw":{},` +
		`"inner":{"type":"object","properties":{"on":{"type":"boolean"}},"required":["on"],"additionalProperties":false}},` +
		`"required":["seats","when"],"additionalProperties":false}`
	if diff := cmp.Diff(want, string(a.Schema)); diff != "" {
		t.Errorf("schema (-want +got)\n%s", diff)
	}
	s, err := Build(plug{"tools", []core.Action{a}})
	if err != nil {
		t.Fatal(err)
	}
	plan, faults := s.Check(core.Plan{Steps: []core.Step{step("book", `{"seats":3.0,"when":"2026-11-20T12:00:00Z","price":2,"inner":{"on":true}}`)}}, by(core.Member))
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	run(t, NewRuntime(Options{}), newJournal().job(s, by(core.Member), plan.Steps...))
	if got.Seats != 3 || got.Class != "b" || !got.When.Equal(noon) || *got.Price != 2 || !got.Inner.On || got.hidden != "" {
		t.Errorf("decoded %+v", got)
	}
}

func TestTypedRefusesWhatItCannotTell(t *testing.T) {
	type loop struct {
		Next *loop `json:"next,omitempty"`
	}
	for name, f := range map[string]func(){
		"loop":     func() { Typed[loop](core.Action{}, nil) },
		"channel":  func() { Typed[struct{ C chan int }](core.Action{}, nil) },
		"duration": func() { Typed[struct{ D time.Duration }](core.Action{}, nil) },
		"map":      func() { Typed[struct{ M map[int]int }](core.Action{}, nil) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			f()
		}()
	}
}
