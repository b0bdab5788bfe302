package core

import "strings"

// Thought is in the name of what a model thinks for itself: nobody is shown it, or
// asked about it.
const Thought = "private_thought"

// Thoughtless takes thoughts out of a decoded JSON value, which it changes, however
// deep they lie. text, where it is not nil, says what a text becomes, which may
// quote one.
func Thoughtless(value any, text func(string) string) any {
	switch x := value.(type) {
	case map[string]any:
		for key, inner := range x {
			if strings.Contains(strings.ToLower(key), Thought) {
				delete(x, key)
				continue
			}
			x[key] = Thoughtless(inner, text)
		}
	case []any:
		for i := range x {
			x[i] = Thoughtless(x[i], text)
		}
	case string:
		if text != nil {
			return text(x)
		}
	}
	return value
}
