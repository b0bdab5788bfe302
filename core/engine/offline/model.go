package offline

import (
	"context"
	"errors"
	"sync"
	"time"

	"synthbot/core/llm"
)

// Options of a Model. The zero value will do.
type Options struct {
	Name  string           // the engine's name; "": "offline"
	Chars int              // the longest prompt that it takes; 0: 24000
	Clock func() time.Time // nil: time.Now
	Zone  *time.Location   // nil: time.Local
	// Standby says that it stands in for a model that is configured but does
	// not answer; it then says so.
	Standby bool
}

// Model implements llm.Model. Safe for concurrent use.
type Model struct {
	name    string
	chars   int
	clock   func() time.Time
	zone    *time.Location
	standby bool
	// lexicon is read when first asked, to keep the start of the bot fast.
	lexicon func() *lexicon
}

// errNoChat is the answer to a request that is no prompt of a conversation.
var errNoChat = errors.New("the offline engine answers conversations only")

// New makes a Model.
func New(o Options) *Model {
	m := &Model{name: o.Name, chars: o.Chars, clock: o.Clock, zone: o.Zone, standby: o.Standby, lexicon: sync.OnceValue(readLexicon)}
	if m.name == "" {
		m.name = "offline"
	}
	if m.chars <= 0 {
		m.chars = 24000
	}
	if m.clock == nil {
		m.clock = time.Now
	}
	if m.zone == nil {
		m.zone = time.Local
	}
	return m
}

// Limits implements llm.Model.
func (m *Model) Limits() llm.Limits {
	return llm.Limits{Engine: m.name, Chars: m.chars, Dialect: llm.DialectJSON}
}

// Generate implements llm.Model. It answers at once.
func (m *Model) Generate(ctx context.Context, r llm.Request) (llm.Answer, error) {
	if ctx.Err() != nil {
		return llm.Answer{}, &llm.Error{Kind: llm.ErrorRetryLater, Engine: m.name, Err: context.Cause(ctx)}
	}
	s, ok := readScene(r, m.lexicon())
	if !ok {
		return llm.Answer{}, &llm.Error{Kind: llm.ErrorRefused, Engine: m.name, Err: errNoChat}
	}
	text := m.speaker(s).plan().encode()
	if r.Stream != nil {
		r.Stream(text)
	}
	return llm.Answer{Text: text, Engine: m.name}, nil
}
