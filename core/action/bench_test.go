package action

import (
	"encoding/json"
	"fmt"
	"testing"

	"synthbot/core"
	"synthbot/core/llm"
	"synthbot/core/plan"
	"synthbot/core/schema"
)

// A schema of usual size and a payload for it.
const (
	typicalSchema  = `{"type":"object","properties":{"text":{"type":"string","minLength":1,"maxLength":4000},"interface_path":{"type":"string"},"priority":{"type":"string","enum":["low","normal","high"],"default":"normal"},"count":{"type":"integer","minimum":1,"maximum":100},"when":{"type":"string","format":"date-time"}},"required":["text"],"additionalProperties":false}`
	typicalPayload = `{"text":"Remember to drink some water, it is hot today","interface_path":"telegram/-100/7","count":3,"when":"2026-11-20T11:32:46+01:00"}`
)

func sized(b *testing.B, n int) *Snapshot {
	b.Helper()
	var w world
	actions := make([]core.Action, n)
	for i := range actions {
		actions[i] = w.act(fmt.Sprintf("action_%d", i), func(a *core.Action) { a.Schema = json.RawMessage(typicalSchema) })
	}
	return w.catalogue(b, actions...)
}

func BenchmarkValidatePayload(b *testing.B) {
	d, _ := sized(b, 1).Resolve("action_0")
	raw := json.RawMessage(typicalPayload)
	b.ReportAllocs()
	for b.Loop() {
		v, err := schema.Decode(raw)
		if err != nil || len(d.input.Accept(v)) > 0 {
			b.Fatal("refused")
		}
	}
}

func BenchmarkCheck(b *testing.B) {
	for _, n := range []int{10, 100, 1000} {
		s, who := sized(b, n), by(core.RankMember)
		p := core.Plan{Steps: []core.Step{step("ACTION-5", typicalPayload)}}
		b.Run(fmt.Sprintf("%d actions", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, faults := s.Check(p, who); len(faults) > 0 {
					b.Fatal(faults)
				}
			}
		})
	}
}

func BenchmarkResolve(b *testing.B) {
	s := sized(b, 100)
	b.ReportAllocs()
	for b.Loop() {
		if _, ok := s.Resolve("Action 77"); !ok {
			b.Fatal("not found")
		}
	}
}

func BenchmarkOffer(b *testing.B) {
	s, who := sized(b, 100), by(core.RankMember)
	b.ReportAllocs()
	for b.Loop() {
		s.Offer(who)
	}
}

func BenchmarkBuild(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		sized(b, 100)
	}
}

func BenchmarkAnswer(b *testing.B) {
	s, who := sized(b, 100), by(core.RankMember)
	for name, text := range map[string]string{
		"whole":    `{"response":"Hi there","intent":"greeting","actions":[{"type":"action_5","payload":` + typicalPayload + `}]}`,
		"message":  `{"actions":[{"type":"message_telegram","payload":{"text":"Hi there","interface_path":"telegram/-100/7"}}]}`,
		"repaired": `{'response': 'Hi there', 'actions': [{'type': 'message', 'payload': {'text': 'Hello', }}]`,
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				p, _ := plan.Read(llm.Answer{Text: text})
				s.Check(p, who)
			}
		})
	}
}

// TestCheckDoesNotGrowWithTheCatalogue: checking a plan takes no more allocations with 500 actions than with 10.
func TestCheckDoesNotGrowWithTheCatalogue(t *testing.T) {
	allocations := func(n int) float64 {
		var w world
		actions := make([]core.Action, n)
		for i := range actions {
			actions[i] = w.act(fmt.Sprintf("action_%d", i))
		}
		s, who := w.catalogue(t, actions...), by(core.RankMember)
		p := core.Plan{Steps: []core.Step{step("ACTION-5", `{"n":1}`)}}
		return testing.AllocsPerRun(100, func() { s.Check(p, who) })
	}
	if small, large := allocations(10), allocations(500); large > small+2 {
		t.Errorf("%v allocations with 10 actions, %v with 500, want no more", small, large)
	}
}
