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
	made := make(map[string]bool)
	kept := make([]llm.Utterance, 0, len(from))
	for i, u := range from {
		if u.CallID != "" {
			if made[u.CallID] {
				kept = append(kept, u)
				delete(made, u.CallID)
			}
			continue
		}
		u.Calls = completeCalls(u.Calls, made, func(id string) bool { return answered[id] > i })
		kept = append(kept, u)
	}
	return kept
}

func completeCalls(from []llm.ToolCall, made map[string]bool, answered func(id string) bool) []llm.ToolCall {
	var kept []llm.ToolCall
	for _, c := range from {
		if c.ID != "" && c.Name != "" && isObject(c.Arguments) && answered(c.ID) && !made[c.ID] {
			made[c.ID] = true
			kept = append(kept, c)
		}
	}
	return kept
}
