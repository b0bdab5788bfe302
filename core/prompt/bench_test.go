package prompt

import (
	"encoding/json"
	"fmt"
	"testing"

	"synthbot/core/llm"
)

// busy returns a place with 100 entries of history, 20 participants and 50 actions.
func busy(t testing.TB) Parts {
	p := hello()
	for seq := uint64(1); seq <= 100; seq++ {
		e := said("telegram/-100/7", seq, fmt.Sprintf("Person %d", seq%20), "What a day it was; we went up the hill and saw the sea from there, all of it, and then it rained.")
		if seq%3 == 0 {
			e.Self, e.Message.Author.Name = true, "Aria"
		}
		p.History = append(p.History, e)
	}
	for i := range 20 {
		p.Participants = append(p.Participants, json.RawMessage(fmt.Sprintf(`{"username":"Person %d","bio":"Lives in Trieste, likes long walks and short films, has a cat."}`, i)))
	}
	for i := range 10 {
		p.Memories = append(p.Memories, json.RawMessage(fmt.Sprintf(`{"text":"Person %d is allergic to nuts.","at":"2026-10-01"}`, i)))
	}
	list := catalogue(t)
	for i := range 50 {
		a := list[i%len(list)]
		a.Name = fmt.Sprintf("%s_%d", a.Name, i)
		p.Actions = append(p.Actions, a)
	}
	return p
}

func BenchmarkBuild(b *testing.B) {
	p := busy(b)
	for _, tc := range []struct {
		name string
		l    llm.Limits
	}{{"whole", llm.Limits{}}, {"reduced", llm.Limits{Chars: 24000}}, {"tools", llm.Limits{Dialect: llm.DialectTools}}} {
		b.Run(tc.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				out, err := Build(&p, tc.l)
				if err != nil {
					b.Fatal(err)
				}
				out.Request()
			}
		})
	}
}
