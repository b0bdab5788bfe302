package engine

import (
	"context"

	"synthbot/core"
	"synthbot/core/llm"
)

// Showing returns an Asker that calls show with the whole text so far of the message
// that next's engines are writing. An empty text takes back what was shown before. Where
// an engine fails, the text of the next one begins anew. show returns at once.
func Showing(next core.Asker, show func(place core.Path, text string)) core.Asker {
	return showing{next, show}
}

type showing struct {
	next core.Asker
	show func(place core.Path, text string)
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
