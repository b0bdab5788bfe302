package engine

import (
	"synthbot/core"
	"synthbot/core/llm"
)

// showWhileWritten makes q stream its answer to c.show, unless the answer must not be shown. hide retracts
// what was shown.
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
