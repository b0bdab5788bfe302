package engine

import (
	"synthbot/core"
	"synthbot/core/llm"
)

// showing lets the answer to a question be shown while it is written, unless nobody is to see it. hide
// takes back what was shown.
func (c *Chain) showing(q *core.Question) (hide func()) {
	if c.show == nil || q.Unshown {
		return func() {}
	}
	place, build, shown := q.Path, q.Build, ""
	tell := func(text string) {
		if text != shown {
			shown = text
			c.show(place, text)
		}
	}
	q.Build = func(l llm.Limits) (llm.Request, error) {
		tell("")
		r, err := build(l)
		if err != nil || r.Stream != nil {
			return r, err
		}
		reveal := NewReveal(place, core.MessagePrefix+place.Interface())
		r.Stream = func(piece string) {
			reveal.Write(piece)
			tell(reveal.Text())
		}
		return r, nil
	}
	return func() { tell("") }
}
