package engine

import "synthbot/core/llm"

// completeTurns keeps of native turns what an API takes: a call only with arguments
// that are an object and with its result, and a result only with its call.
// Servers answer anything else with an error, and so would every later turn.
func completeTurns(from []llm.Utterance) []llm.Utterance {
	answered := make(map[string]int) // the index of its result
	for i, u := range from {
		if u.CallID != "" {
			answered[u.CallID] = i
		}
	}
	open := make(map[string]bool) // calls whose result has not come yet
	kept := make([]llm.Utterance, 0, len(from))
	for i, u := range from {
		if u.CallID != "" {
			if open[u.CallID] {
				kept = append(kept, u)
				delete(open, u.CallID)
			}
			continue
		}
		calls := u.Calls
		u.Calls = nil
		for _, c := range calls {
			if c.ID != "" && c.Name != "" && isObject(c.Arguments) && answered[c.ID] > i && !open[c.ID] {
				open[c.ID] = true
				u.Calls = append(u.Calls, c)
			}
		}
		kept = append(kept, u)
	}
	return kept
}
