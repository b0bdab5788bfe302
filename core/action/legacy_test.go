package action

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
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
		{"optional fields only", `{"brief":"Say it.","description":"D","optional_fields":["a","a",5,{"type":"int"},{"name":5}]}`,
			`{"type":"object","properties":{"a":{}}}`, "Say it"},
		{"types that disagree", `{"required_fields":["a","b","d"],"optional_fields":["c"],"examples":[{"a":1.5,"b":"x","d":1},{"a":1,"b":1,"c":"x","d":true},{"a":2,"b":"x","d":1.5}, "none", 5, {"scenario":"x","payload":[1]}],"description":"D"}`,
			`{"type":"object","properties":{"a":{"type":"number"},"b":{},"d":{},"c":{"type":"string"}},"required":["a","b","d"]}`, "D"},
		{"odd hints", `{"required_fields":{"a":"","b":"what <it> is","c":5,"d":{"type":"thing","default":1},"e":"LIST","f":{"example":true}},"description":"D"}`,
			`{"type":"object","properties":{"a":{},"b":{"description":"what <it> is"},"c":{},"d":{"default":1},"e":{"type":"array"},"f":{"type":"boolean"}},"required":["a","b","c","d","e","f"]}`, "D"},
		{"examples of the instructions", `{"required_fields":["a"],"instructions":{"examples":[{"a":1}]},"description":"\n First\tline \n\u0007of two. And more"}`,
			`{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]}`, "First line of two"},
		{"a brief that begins with a stop", `{"required_fields":[],"description":". What"}`, `{"type":"object","properties":{}}`, ". What"},
		{"a brief of 99", `{"required_fields":[],"description":"` + strings.Repeat("x", 99) + `"}`, `{"type":"object","properties":{}}`, strings.Repeat("x", 99)},
		{"a brief of 100", `{"required_fields":[],"description":"` + strings.Repeat("x", 100) + `"}`, `{"type":"object","properties":{}}`, strings.Repeat("x", 98) + "…"},
		{"a brief of one long word", `{"required_fields":[],"description":" ` + strings.Repeat("ä", 120) + ` x"}`, `{"type":"object","properties":{}}`, strings.Repeat("ä", 98) + "…"},
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
			if _, err := build(true, plug{"old", []core.Action{a}}); err != nil {
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
		t.Errorf("unexpected action %+v", d.Action)
	}
	if _, faults := s.Check(core.Plan{Steps: []core.Step{step("old_one", `{"name":[5]}`)}}, by(core.RankMember)); len(faults) != 1 {
		t.Errorf("got faults %v, want none", faults)
	}
}

// TestLegacyExamples: examples of the legacy form are kept.
func TestLegacyExamples(t *testing.T) {
	for name, tc := range map[string]struct {
		old  string
		own  core.Examples
		want string
	}{
		"text":    {`{"description":"D","instructions":"be careful","required_fields":[]}`, core.Examples{}, `{"description":"D","instructions":{"notes":["be careful"]}}`},
		"its own": {`{"description":"D","required_fields":[]}`, core.Examples{Description: "mine"}, `{"description":"mine"}`},
		"object": {`{"description":"D","instructions":{"description":"More","when_to_use":"now","notes":["one"],"examples":[{"a":1}]},"examples":[{"scenario":"x","payload":{"a":2}},{"a":3}]}`, core.Examples{},
			`{"description":"D","instructions":{"when_to_use":"now","notes":["one","More"]},"examples":[{"scenario":"","payload":{"a":1}},{"scenario":"x","payload":{"a":2}},{"scenario":"","payload":{"a":3}}]}`},
		"the same words": {`{"description":"D","instructions":{"description":"D"}}`, core.Examples{}, `{"description":"D"}`},
		"no words":       {`{"description":"D","instructions":{"description":""}}`, core.Examples{}, `{"description":"D"}`},
		"a list":         {`{"description":"D","instructions":["a",` + `"` + strings.Repeat("x", 1000) + `"]}`, core.Examples{}, `{"description":"D","instructions":{"notes":["[\"a\",\"` + strings.Repeat("x", 993) + `…"]}}`},
		"odd examples":   {`{"examples":[5,"x",null,[1],{"scenario":5,"payload":{"a":1}},{"scenario":"s","payload":"x"}]}`, core.Examples{}, `{"examples":[{"scenario":"","payload":{"scenario":5,"payload":{"a":1}}}]}`},
	} {
		a, err := fromLegacy(core.Action{Schema: json.RawMessage(tc.old), Examples: tc.own})
		if got := string(core.JSON(a.Examples)); err != nil || got != tc.want {
			t.Errorf("%s: got %s (%v), want %s", name, got, err, tc.want)
		}
	}
	if _, err := fromLegacy(core.Action{Schema: json.RawMessage(`{"description":5}`)}); err == nil {
		t.Error("an unreadable schema was converted")
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
	Level int8            `json:"level,omitempty" min:"1"`
	Big   int64           `json:"big,omitempty"`
	Small uint16          `json:"small,omitempty"`
	Any   any             `json:"any,omitempty"`
	Mode  *string         `json:"mode,omitempty" default:"5" max:"3"`
	Home  core.Path       `json:"home" default:"room/1"`
	Flag  *bool           `json:"flag" default:"true"`
	Plain string          `default:""`
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
		`"level":{"type":"integer","minimum":1,"maximum":127},"big":{"type":"integer"},"small":{"type":"integer","minimum":0,"maximum":65535},"any":{},` +
		`"mode":{"type":"string","default":"5","maxLength":3},"home":{"type":"string","default":"room/1"},"flag":{"type":"boolean","default":true},"Plain":{"type":"string","default":""},` +
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
	plan, faults := s.Check(core.Plan{Steps: []core.Step{step("book", `{"seats":3.0,"when":"2026-11-20T12:00:00Z","price":2,"inner":{"on":true}}`)}}, by(core.RankMember))
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	run(t, NewRuntime(Options{}), newJournal().job(s, by(core.RankMember), plan.Steps...))
	if _, err := a.Do(t.Context(), core.Call{Payload: json.RawMessage(`{"seats":"x"}`)}); !errors.As(err, new(*core.Error)) {
		t.Errorf("an unreadable payload: unexpected error %v", err)
	}
	if got.Seats != 3 || got.Class != "b" || !got.When.Equal(noon) || *got.Price != 2 || !got.Inner.On || got.hidden != "" {
		t.Errorf("unexpected payload %+v", got)
	}
}

func TestTypedRefusesUnsupportedTypes(t *testing.T) {
	type loop struct {
		Next *loop `json:"next,omitempty"`
	}
	for name, f := range map[string]func(){
		"loop":     func() { Typed[loop](core.Action{}, nil) },
		"channels": func() { Typed[struct{ C []chan int }](core.Action{}, nil) },
		"bound": func() {
			Typed[struct {
				N int `min:"few"`
			}](core.Action{}, nil)
		},
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
