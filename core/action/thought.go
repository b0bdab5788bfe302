package action

import "strings"

// Thought is in the name of what a model thinks for itself: nobody is shown it, or
// asked about it.
const Thought = "private_thought"

// Thoughtless takes thoughts out of a decoded JSON value, however deep they lie. The
// value is changed.
func Thoughtless(value any) any {
	switch x := value.(type) {
	case map[string]any:
		for key, inner := range x {
			if strings.Contains(strings.ToLower(key), Thought) {
				delete(x, key)
				continue
			}
			x[key] = Thoughtless(inner)
		}
	case []any:
		for i := range x {
			x[i] = Thoughtless(x[i])
		}
	}
	return value
}
