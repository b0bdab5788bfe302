package engine

import (
	"context"

	"synthbot/core"
	"synthbot/core/llm"
)

// Shower is told of a message that is being written: the whole text so far. An
// empty text takes back what was shown before. It returns at once and keeps to
// the platform's limits by leaving texts out; a place has one message in the
// making at a time.
type Shower func(place core.Path, text string)

// Showing is an Asker that tells show what next's engines are writing. Where an
// engine fails and the next one begins anew, so does the text.
func Showing(next core.Asker, show Shower) core.Asker { return showing{next, show} }

type showing struct {
	next core.Asker
	show Shower
}

// Ask implements core.Asker.
func (s showing) Ask(ctx context.Context, q core.Question) (llm.Answer, error) {
	if q.Unshown {
		return s.next.Ask(ctx, q)
	}
	build, shown := q.Build, ""
	tell := func(text string) {
		if text != shown {
			shown = text
			s.show(q.Path, text)
		}
	}
	q.Build = func(l llm.Limits) (llm.Request, error) {
		tell("")
		r, err := build(l)
		if err != nil || r.Stream != nil {
			return r, err
		}
		reveal := NewReveal(q.Path, core.MessagePrefix+q.Path.Interface())
		r.Stream = func(piece string) {
			reveal.Write(piece)
			tell(reveal.Text())
		}
		return r, nil
	}
	answer, err := s.next.Ask(ctx, q)
	if err != nil {
		tell("")
	}
	return answer, err
}
