package plugintest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"synthbot/core"
	"synthbot/core/llm"
)

// model is a core.Asker whose answers come from the script.
type model struct {
	stir func()

	mu     sync.Mutex
	waits  []*question
	asked  int
	latest *question
}

// question is a request to the model.
type question struct {
	request llm.Request
	answer  chan any // llm.Answer or error
}

// text returns the messages of the request.
func (q *question) text() string {
	var parts []string
	for _, m := range q.request.Messages {
		parts = append(parts, m.Text)
	}
	return strings.Join(parts, "\n")
}

// rules returns the system prompt, with the available actions.
func (q *question) rules() string { return strings.Join(q.request.System, "\n") }

// Ask implements core.Asker.
func (m *model) Ask(ctx context.Context, asked core.Question) (llm.Answer, error) {
	r, err := asked.Build(llm.Limits{Engine: "script"})
	if err != nil {
		return llm.Answer{}, err
	}
	q := &question{request: r, answer: make(chan any, 1)}
	m.mu.Lock()
	m.waits, m.latest = append(m.waits, q), q
	m.asked++
	m.mu.Unlock()
	m.stir()
	select {
	case a := <-q.answer:
		if err, ok := a.(error); ok {
			return llm.Answer{}, err
		}
		return a.(llm.Answer), nil
	case <-ctx.Done():
		m.mu.Lock()
		defer m.mu.Unlock()
		m.waits = slices.DeleteFunc(m.waits, func(other *question) bool { return other == q })
		return llm.Answer{}, ctx.Err()
	}
}

// pending returns how many questions wait.
func (m *model) pending() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.waits)
}

// current returns the question that waits longest, else the last one, nil if there was none.
func (m *model) current() *question {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.waits) > 0 {
		return m.waits[0]
	}
	return m.latest
}

// say answers the question that waits longest.
func (m *model) say(answer any) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.waits) == 0 {
		return false
	}
	q := m.waits[0]
	m.waits, m.latest = m.waits[1:], q
	q.answer <- answer
	return true
}

func (m *model) count() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.asked
}

// none is a core.Asker without an engine.
type none struct{}

func (none) Ask(context.Context, core.Question) (llm.Answer, error) {
	return llm.Answer{}, core.ErrNoEngine
}

// failure returns the engine's error with a name in scripts.
func failure(name string) error {
	if name == "none" {
		return core.ErrNoEngine
	}
	kind := llm.ErrorKind(name)
	switch kind {
	case llm.ErrorRetryLater, llm.ErrorFatal, llm.ErrorRefused, llm.ErrorTooLong:
		return &llm.Error{Kind: kind, Engine: "script", Err: errors.New("the script says so")}
	}
	return nil
}
