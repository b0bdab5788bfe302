// Package offline is the built-in engine: a llm.Model that needs no language model, no key and no network. It reads the
// same request as other models and also answers with a plan: small talk in the persona's voice, the time and the date
// anywhere, sums and units, dice and coins, and notes and reminders if there are actions for them. If it does not
// understand a message, it says so in one line. It never claims to have done something that it did not do.
//
// A request becomes an answer in these steps. A scene is what the engine uses of the request (scene.go). A speaker
// answers it in one language (speaker.go), beginning with plan (answer.go). It first understands the message as
// phrases of that language (match.go): a phrase has a topic, and slots for the words that it leaves open. Then it
// decides what that means after what the bot said before (context.go). The table in kinds.go says for each topic what
// the slots must hold and how it is answered. A plan does one thing at a time: the next round puts the outputs of
// actions into words (plan.go), after understanding the message again. The engine has no state.
//
// The phrases of users and of answers are in phrases/words, one file for each language; en.txt describes the format. A
// message is understood if phrases of one language cover it, which also finds its language.
//
// The package has more than 2,500 lines because each kind of request has its own rules for what is certain enough to
// act on.
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

// Options of a Model. The zero value is usable.
type Options struct {
	Name  string           // the engine's name; "": "offline"
	Chars int              // the longest prompt; 0: 24000
	Clock func() time.Time // nil: time.Now
	Zone  *time.Location   // nil: time.Local
	Seed  uint64           // for tests: fixes the wordings and random numbers; 0: random
	// Standby says that the engine answers in place of a configured model. Answers mention that.
	Standby bool
}

// Model implements llm.Model. Safe for concurrent use.
type Model struct {
	Options
	// Read on first use, to keep the start of the bot fast.
	books  func() []*phrases.Book
	kinds  func() map[string]kind
	reader *spoken.Reader
}

// New makes a Model.
func New(o Options) *Model {
	o.Name, o.Chars, o.Zone = cmp.Or(o.Name, "offline"), cmp.Or(max(o.Chars, 0), 24000), cmp.Or(o.Zone, time.Local)
	if o.Clock == nil {
		o.Clock = time.Now
	}
	return &Model{
		Options: o, books: sync.OnceValue(phrases.ReadBooks), kinds: sync.OnceValue(kinds),
		reader: spoken.New("en", nil),
	}
}

// Limits implements llm.Model.
func (m *Model) Limits() llm.Limits {
	return llm.Limits{Engine: m.Name, Chars: m.Chars, Dialect: llm.DialectJSON}
}

// Generate implements llm.Model.
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
