package action

import (
	"context"
	"encoding/json"
	"slices"
	"testing"

	"synthbot/core"
)

// fields is a schema with a property of each kind.
const fields = `{"type":"object","required":["text","size","on","list","user","kind","ref","dated"],"properties":{
 "text":{"type":"string","minLength":2},"size":{"type":"integer","maximum":9},"on":{"type":"boolean"},
 "list":{"type":"array"},"user":{"type":"string"},"kind":{"enum":[10,2,1]},
 "ref":{"$ref":"#/$defs/color"},"dated":{"type":"string","default":"today"}},
 "$defs":{"color":{"type":"string","enum":["Red","Light blue"]}}}`

func fieldsOf(t *testing.T, change ...func(*core.Action)) (*Snapshot, *Definition) {
	t.Helper()
	var w world
	shape := func(a *core.Action) { a.Schema = json.RawMessage(fields) }
	s := w.catalogue(t, w.act("fill", append(change, shape)...))
	d, _ := s.Resolve("fill")
	return s, d
}

// TestMissing: what a plan leaves open is asked for where one user can write it in a line, and
// is a fault everywhere else.
func TestMissing(t *testing.T) {
	const rest = `"list":[],"user":"7","kind":2,"ref":"Red"}`
	one := by(core.RankMember)
	for name, test := range map[string]struct {
		payload string
		who     Requester
		slots   []string
		unit    string
		missing []string
		fault   bool
	}{
		"nothing": {payload: `{"text":"abc","size":1,"on":true,` + rest, who: one, slots: []string{"size"}},
		"null": {
			payload: `{"text":null,"size":1,"on":null,"list":[],"user":"7","kind":null,"ref":null}`, who: one,
			missing: []string{"text", "on", "kind", "ref"},
		},
		"by name": {
			payload: `{"size":1,"on":true,"list":[],"user":"7","kind":2,"ref":""}`, who: one,
			slots: []string{"Text", "ref", "dated"}, missing: []string{"text", "ref"},
		},
		"not named":        {payload: `{"size":1,"on":true,` + rest, who: one, fault: true},
		"empty, not named": {payload: `{"text":"","size":1,"on":true,` + rest, who: one, fault: true},
		"a list": {
			payload: `{"text":"abc","size":1,"on":true,"list":null,"user":"7","kind":2,"ref":"Red"}`, who: one, fault: true,
		},
		"the person": {
			payload: `{"text":"abc","size":1,"on":true,"list":[],"user":null,"kind":2,"ref":"Red"}`,
			who:     by(core.RankAdmin), fault: true,
		},
		"another is wrong": {payload: `{"text":null,"size":70,"on":true,` + rest, who: one, fault: true},
		"several people": {
			payload: `{"text":null,"size":1,"on":true,` + rest, who: by(core.RankMember, core.RankMember), fault: true,
		},
		"nobody":             {payload: `{"text":null,"size":1,"on":true,` + rest, who: Requester{Path: here}, fault: true},
		"inside of a unit":   {payload: `{"text":null,"size":1,"on":true,` + rest, who: one, unit: "u", fault: true},
		"whole, in any unit": {payload: `{"text":"abc","size":1,"on":true,` + rest, who: one, unit: "u"},
	} {
		s, _ := fieldsOf(t, func(a *core.Action) { a.Concerns = "user" })
		one := step("fill", test.payload)
		one.Unit = test.unit
		about := core.State{SlotsRequired: test.slots}
		p, faults := s.Check(core.Plan{Steps: []core.Step{one}, Context: about}, test.who)
		if (len(faults) > 0) != test.fault {
			t.Errorf("%s: faults %q", name, faults)
		}
		if !test.fault && (len(p.Steps) != 1 || !slices.Equal(p.Steps[0].Missing, test.missing)) {
			t.Errorf("%s: %+v, want %q", name, p.Steps, test.missing)
		}
	}
}

// TestFormValues: which answers are read as which values.
func TestFormValues(t *testing.T) {
	_, d := fieldsOf(t)
	for _, test := range []struct{ name, answer, want string }{
		{"text", "12", `"12"`}, {"size", "12", `12`}, {"size", "many", `"many"`}, {"size", "1e1", `10`},
		{"on", "Yes", `true`}, {"on", "no", `false`}, {"on", "2", `false`}, {"on", "perhaps", `"perhaps"`},
		{"kind", "10", `10`}, {"kind", "2", `2`}, {"kind", "3", `1`}, {"kind", "4", `"4"`},
		{"ref", "light BLUE", `"Light blue"`}, {"ref", "1", `"Red"`}, {"ref", "0", `"0"`},
	} {
		if got := string(core.JSON(d.value(test.name, test.answer))); got != test.want {
			t.Errorf("%s %q is %s, want %s", test.name, test.answer, got, test.want)
		}
	}
}

// TestFormInAUnit: what follows in a unit is not asked for, since all of it happens at once.
func TestFormInAUnit(t *testing.T) {
	var w world
	s := w.catalogue(t,
		w.act("begin", func(a *core.Action) {
			a.Do = func(context.Context, core.Call) (core.Result, error) {
				return core.Result{Unit: true, Next: []core.Step{step("fill", `{"n":null}`)}}, nil
			}
		}),
		w.act("fill", func(a *core.Action) {
			a.Schema = json.RawMessage(`{"type":"object","required":["n"],"properties":{"n":{"type":"integer"}}}`)
		}))
	j := newJournal()
	done := run(t, NewRuntime(Options{}), j.job(s, by(core.RankMember), step("begin", `{}`)))
	same2(t, "unit", told(done), []string{"1 begin done", "2 fill skipped for 1: fill needs n, and nobody can be asked for it"})
}
