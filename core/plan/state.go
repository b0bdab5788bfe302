package plan

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"synthbot/core"
	"synthbot/core/txt"
)

// Bounds of a conversation's state.
const (
	maxState = 32   // entries of each part
	maxValue = 1024 // bytes of one value
	maxTopic = 200  // bytes
)

// Merge adds what a plan's context says to a conversation's state, as it was at since, unless
// that is older than age (0: no limit). A value of null removes an entry. When the topic
// changes, the slots of the old one are removed. A slot that is filled is no longer required.
// If there is too much, the plan's own entries stay.
func Merge(old core.State, since, now time.Time, age time.Duration, said core.State) core.State {
	if age > 0 && now.Sub(since) > age {
		old = core.State{}
	}
	if said.Topic != "" && old.Topic != "" && said.Topic != old.Topic {
		old.SlotsFilled, old.SlotsRequired = nil, nil
	}
	merged := core.State{
		Topic:       txt.Clip(cmp.Or(said.Topic, old.Topic), maxTopic),
		Entities:    merge(old.Entities, said.Entities),
		SlotsFilled: merge(old.SlotsFilled, said.SlotsFilled),
		Status:      old.Status,
	}
	required := old.SlotsRequired
	if said.SlotsRequired != nil {
		required = said.SlotsRequired
	}
	for _, slot := range required {
		_, filled := merged.SlotsFilled[slot]
		isNew := !filled && !slices.Contains(merged.SlotsRequired, slot)
		if isNew && len(slot) <= maxName && len(merged.SlotsRequired) < maxState {
			merged.SlotsRequired = append(merged.SlotsRequired, slot)
		}
	}
	return merged
}

func merge(old, said map[string]json.RawMessage) map[string]json.RawMessage {
	merged := make(map[string]json.RawMessage)
	for _, from := range []map[string]json.RawMessage{said, old} {
		for _, k := range slices.Sorted(maps.Keys(from)) {
			v := from[k]
			_, spoken := said[k]
			_, known := merged[k]
			switch {
			case known || !present(v) || spoken && !present(said[k]):
			case len(k) > maxName || len(v) > maxValue || len(merged) >= maxState:
			default:
				merged[k] = v
			}
		}
	}
	if len(merged) == 0 {
		return nil
	}
	return merged
}
