// Package offline is the engine that is always there: a llm.Model that needs no language model, no key and no
// network. It reads the same request as any other model and answers with a plan, too: small talk in the persona's
// voice, the time and the date anywhere, sums and units, dice and coins, and notes and reminders where there are
// actions for them. What it does not understand it says so, in one line, and it claims nothing that it did not do.
//
// What people say and what is answered is in phrases/words, one file for each language; en.txt describes their form. A
// message is understood if phrases of one language cover it, so that its language is found along with its meaning. A
// plan asks for one thing at a time: what an action puts out is worded in the next round, for which the message is
// understood anew. What was asked back, such as a reminder's time, is read off the history; there is no other state.
//
// The package has more lines than most, as each kind of request has its own rules of what is certain enough to act on.
package offline

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"synthbot/core"
	"synthbot/core/engine/offline/phrases"
	"synthbot/core/llm"
	"synthbot/core/spoken"
)

// Options of a Model. The zero value will do.
type Options struct {
	Name  string           // the engine's name; "": "offline"
	Chars int              // the longest prompt that it takes; 0: 24000
	Clock func() time.Time // nil: time.Now
	Zone  *time.Location   // nil: time.Local
	Seed  uint64           // of wordings and of what is left to chance, for tests; 0: they differ each time
	// Standby is set if a model is configured that does not answer. Answers mention it.
	Standby bool
}

// Model implements llm.Model. Safe for concurrent use.
type Model struct {
	Options
	// What follows is read when it is first needed, to keep the start of the bot fast.
	books  func() []*phrases.Book
	reader *spoken.Reader
}

// New makes a Model.
func New(o Options) *Model {
	o.Name, o.Chars, o.Zone = cmp.Or(o.Name, "offline"), cmp.Or(max(o.Chars, 0), 24000), cmp.Or(o.Zone, time.Local)
	if o.Clock == nil {
		o.Clock = time.Now
	}
	return &Model{Options: o, books: sync.OnceValue(phrases.ReadBooks), reader: spoken.New("en", wallClock)}
}

// wallClock is the moment at which clocks show that time.
func wallClock(year int, month time.Month, day, hour, minute, second int, zone *time.Location) time.Time {
	return time.Date(year, month, day, hour, minute, second, 0, zone)
}

// Limits implements llm.Model.
func (m *Model) Limits() llm.Limits {
	return llm.Limits{Engine: m.Name, Chars: m.Chars, Dialect: llm.DialectJSON}
}

// Generate implements llm.Model. It answers at once.
func (m *Model) Generate(ctx context.Context, r llm.Request) (llm.Answer, error) {
	if ctx.Err() != nil {
		return llm.Answer{}, &llm.Error{Kind: llm.ErrorRetryLater, Engine: m.Name, Err: context.Cause(ctx)}
	}
	s, ok := readScene(r)
	if !ok {
		err := errors.New("the offline engine answers conversations only")
		return llm.Answer{}, &llm.Error{Kind: llm.ErrorRefused, Engine: m.Name, Err: err}
	}
	p := m.speaker(s).plan()
	p.Actions = append([]step{}, p.Actions...) // never null
	text := string(core.JSON(p))
	if r.Stream != nil {
		r.Stream(text)
	}
	return llm.Answer{Text: text, Engine: m.Name}, nil
}
