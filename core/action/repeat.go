package action

import (
	"bytes"
	"slices"
	"strings"

	"synthbot/core"
	"synthbot/core/txt"
)

// once leaves out messages that the plan holds twice, to the letter.
func (c *checker) once(steps []core.Step) []core.Step {
	kept := steps[:0]
	for i := range steps {
		text, _ := c.message(&steps[i])
		again := func(s core.Step) bool {
			return s.Type == steps[i].Type && bytes.Equal(s.Payload, steps[i].Payload) &&
				len(s.Conditions)+len(steps[i].Conditions) == 0
		}
		if text == "" || !slices.ContainsFunc(kept, again) {
			kept = append(kept, steps[i])
		}
	}
	return kept
}

// said reports whether a message of the plan holds the words; here: one that is
// surely sent to the place itself.
func (c *checker) said(words string, steps []core.Step, here bool) bool {
	words = squeeze(words)
	for i := range steps {
		text, to := c.message(&steps[i])
		if here && (to != c.who.Path || len(steps[i].Conditions) > 0) {
			continue
		}
		for range txt.Words(squeeze(text), words) {
			return true
		}
	}
	return false
}

// squeeze is what texts are compared by.
func squeeze(text string) string { return strings.ToLower(strings.Join(strings.Fields(text), " ")) }
