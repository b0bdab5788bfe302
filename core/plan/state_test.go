package plan

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"synthbot/core"
)

func TestMerge(t *testing.T) {
	values := func(pairs ...string) map[string]json.RawMessage {
		m := make(map[string]json.RawMessage)
		for i := 0; i < len(pairs); i += 2 {
			m[pairs[i]] = json.RawMessage(pairs[i+1])
		}
		return m
	}
	transfer := core.State{Topic: "transfer", Entities: values("from", `"a"`), SlotsFilled: values("from", `"a"`), SlotsRequired: []string{"amount", "to"}}
	tests := []struct {
		name    string
		elapsed time.Duration
		said    core.State
		want    core.State
	}{
		{"nothing new", time.Minute, core.State{}, transfer},
		{"a slot is filled", time.Minute, core.State{SlotsFilled: values("amount", `5`)},
			core.State{Topic: "transfer", Entities: transfer.Entities, SlotsFilled: values("from", `"a"`, "amount", `5`), SlotsRequired: []string{"to"}}},
		{"a value is taken away", time.Minute, core.State{Entities: values("from", `null`)},
			core.State{Topic: "transfer", SlotsFilled: transfer.SlotsFilled, SlotsRequired: transfer.SlotsRequired}},
		{"a new topic", time.Minute, core.State{Topic: "weather", SlotsRequired: []string{"town"}},
			core.State{Topic: "weather", Entities: transfer.Entities, SlotsRequired: []string{"town"}}},
		{"too old", 2 * time.Hour, core.State{Topic: "weather"}, core.State{Topic: "weather"}},
		{"a value too long", time.Minute, core.State{Entities: values("x", `"`+string(make([]byte, 2000))+`"`)}, transfer},
	}
	since := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	for _, test := range tests {
		got := Merge(transfer, since, since.Add(test.elapsed), time.Hour, test.said)
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", test.name, diff)
		}
	}
}

func TestMergeHasBounds(t *testing.T) {
	var s core.State
	for i := range 100 {
		s = Merge(s, time.Time{}, time.Time{}, 0, core.State{Entities: map[string]json.RawMessage{fmt.Sprintf("k%d", i): json.RawMessage("1")}})
	}
	if _, ok := s.Entities["k99"]; len(s.Entities) != maxState || !ok {
		t.Errorf("unexpected: %d entities, the newest kept: %v", len(s.Entities), ok)
	}
}
