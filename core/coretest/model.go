package coretest

import (
	"context"
	"slices"
	"sync"

	"synthbot/core"
	"synthbot/core/llm"
)

// Asker is a scripted core.Asker: each question gets the next answer, and after the last
// one, that one again. Safe for concurrent use.
type Asker struct {
	Limits llm.Limits
	// Hold, if set, blocks each answer until a value can be received from it.
	Hold chan struct{}

	begun  chan struct{}
	mu     sync.Mutex
	script []any // string, llm.Answer or error
	asked  []llm.Request
	people [][]core.Path
	behind []func() []core.Path
}

// NewAsker returns an Asker with answers, each a string, an llm.Answer or an error.
func NewAsker(script ...any) *Asker {
	return &Asker{Limits: llm.Limits{Engine: "script"}, script: script, begun: make(chan struct{}, 1<<16)}
}

// Ask implements core.Asker.
func (a *Asker) Ask(ctx context.Context, q core.Question) (llm.Answer, error) {
	r, err := q.Build(a.Limits)
	if err != nil {
		return llm.Answer{}, err
	}
	next := a.next(r, q)
	a.begun <- struct{}{}
	if a.Hold != nil {
		select {
		case <-a.Hold:
		case <-ctx.Done():
		}
	}
	if ctx.Err() != nil {
		return llm.Answer{}, ctx.Err()
	}
	switch next := next.(type) {
	case error:
		return llm.Answer{}, next
	case llm.Answer:
		return next, nil
	}
	return llm.Answer{Engine: a.Limits.Engine, Text: next.(string)}, nil
}

func (a *Asker) next(r llm.Request, q core.Question) any {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asked = append(a.asked, r)
	a.people, a.behind = append(a.people, q.People), append(a.behind, q.Behind)
	next := a.script[0]
	if len(a.script) > 1 {
		a.script = a.script[1:]
	}
	return next
}

// People returns who caused each of the questions.
func (a *Asker) People() [][]core.Path {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.people)
}

// Behind returns what the latest question's Behind returns now.
func (a *Asker) Behind() []core.Path {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.behind[len(a.behind)-1]()
}

// Begun returns a channel with a token for every question that was asked.
func (a *Asker) Begun() <-chan struct{} { return a.begun }

// Asked returns the requests so far.
func (a *Asker) Asked() []llm.Request {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]llm.Request(nil), a.asked...)
}
