package plan

import (
	"testing"

	"synthbot/core/llm"
)

// TestUnit: the unit of a step is next to its payload, or in it if the step has no payload key.
func TestUnit(t *testing.T) {
	p, faults := Read(llm.Answer{Text: `{"actions":[{"type":"a","payload":{},"unit":"trip"},{"type":"b","unit":"celsius"}]}`})
	if len(faults) > 0 || len(p.Steps) != 2 {
		t.Fatalf("unexpected plan %+v, faults %v", p, faults)
	}
	if p.Steps[0].Unit != "trip" || string(p.Steps[0].Payload) != `{}` {
		t.Errorf("unexpected first step %+v", p.Steps[0])
	}
	if p.Steps[1].Unit != "" || string(p.Steps[1].Payload) != `{"unit":"celsius"}` {
		t.Errorf("unexpected second step %+v", p.Steps[1])
	}
}
