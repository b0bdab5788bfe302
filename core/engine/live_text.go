package engine

import (
	"synthbot/core"
	"synthbot/core/llm"
)

// showWhileWritten makes q stream its answer to c.show, unless the answer must not be shown. hide retracts
// what was shown.
func (c *Chain) showWhileWritten(q *core.Question) (hide func()) {
	if c.show == nil || q.Unshown {
		return func() {}
	}
	place, build, shown := q.Path, q.Build, ""
	update := func(text string) {
		if text != shown {
			shown = text
			c.show(place, text)
		}
	}
	q.Build = func(l llm.Limits) (llm.Request, error) {
		update("")
		r, err := build(l)
		if err != nil || r.Stream != nil {
			return r, err
		}
		reveal := NewReveal(place, core.MessagePrefix+place.Interface())
		r.Stream = func(piece string) {
			reveal.Write(piece)
			update(reveal.Text())
		}
		return r, nil
	}
	return func() { update("") }
}
