// Package memory lets the bot remember facts: what users ask it to remember, what the model saves during a turn, and
// what a model finds in conversations that are over. The store keeps and searches facts. This package decides who may
// save, change and forget which facts, which facts a prompt shows, and when a conversation is read again.
//
// # Who sees what
//
// The origin of a fact is always the place where it was said, and searches never see more than the turn does. A user's
// list of memories goes further only in their private chat, and there only to what they said themselves and to what was
// said about them in groups where they talk.
//
// # Who changes what
//
// Users change and forget facts that they stated or that are about them. Moderators may also
// forget what was said in their place, admins all facts that they can see. The bot's own turns
// change only facts that nobody stated. The rank comes with the call, never from the payload. A
// fact is changed only where it was said, so that the new text reaches no other readers.
//
// # What a prompt shows
//
// The most important facts about the author, always; further facts only if they share enough
// words with the message. Words without a meaning of their own, such as greetings, find nothing.
//
// # Reading conversations again
//
// When the bot took part in a conversation and nobody wrote for a while, a model reads the new part of the log and
// returns facts. A fact is refused unless most of its words occur in that part. A part is read once: it is marked as
// read before the model is asked, so that a crash does not repeat it. Private chats are read only if the user agreed;
// users who refuse are left out everywhere.
package memory

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"synthbot/core"
	"synthbot/core/lexicon"
	"synthbot/core/txt"
	"synthbot/core/users"
	"synthbot/core/watch"
)

// Plugin keeps, finds and forgets facts. Safe for concurrent use.
type Plugin struct {
	host      core.Host
	config    Config
	words     lexicon.Lexicon
	actions   []core.Action
	extractor *extractor
}

// New makes the plugin.
func New(h core.Host, c Config) (*Plugin, error) {
	p := &Plugin{host: h, config: c, words: lexicon.New()}
	p.extractor = &extractor{Plugin: p, due: make(map[core.Path]time.Time), wake: make(chan struct{}, 1)}
	p.actions = []core.Action{p.saveAction(), p.updateAction(), p.forgetAction(), p.searchAction()}
	return p, nil
}

func (p *Plugin) Name() string { return "memory" }

func (p *Plugin) Actions() []core.Action { return p.actions }

// Observe implements watch.Observer. It schedules the reading of a place for when it has been silent long enough.
func (p *Plugin) Observe(end watch.TurnEnd) {
	if p.config.Extract && end.Turn.Seq != 0 {
		p.extractor.schedule(end.Turn.Path, p.host.Clock().Add(p.config.ExtractAfter))
	}
}

// Run implements core.Runner.
func (p *Plugin) Run(ctx context.Context) error { return p.extractor.run(ctx) }

// about finds the users that a payload names. It returns the names that match nobody here as strangers.
func (p *Plugin) about(ctx context.Context, c *core.Call, names []string) (people []core.Path, strangers []string,
	err error) {
	if len(names) == 0 {
		return nil, nil, nil
	}
	here, err := users.Recent(ctx, p.host.Reader, c.Path, c.Author)
	if err != nil {
		return nil, nil, err
	}
	for _, name := range names {
		person, ok, err := here.Find(name)
		switch {
		case err != nil:
			return nil, nil, err
		case !ok:
			name = txt.ClipLine(name, nameMax)
			if name != "" {
				strangers = append(strangers, name)
			}
		case !slices.Contains(people, person):
			people = append(people, person)
		}
	}
	return people, strangers, nil
}

const findMax = 1000

// fact returns the fact with an id, if it is visible in the places see.
func (p *Plugin) fact(ctx context.Context, id string, see []core.Path, person core.Path) (core.Fact, error) {
	queries := []core.FactQuery{{See: see, N: findMax}}
	if !person.IsZero() {
		queries = append([]core.FactQuery{{See: see, About: []core.Path{person}, N: findMax}}, queries...)
	}
	for _, q := range queries {
		found, err := p.host.Facts.Recall(ctx, q)
		if err != nil {
			return core.Fact{}, fmt.Errorf("recall: %w", err)
		}
		i := slices.IndexFunc(found, func(f core.Fact) bool { return f.ID == id })
		if i >= 0 {
			return found[i], nil
		}
	}
	return core.Fact{}, unknown(id)
}

func unknown(id string) error {
	e := core.Errorf(core.Invalid, "there is no memory %q here; memory_search lists the ids", txt.ClipLine(id, idMax))
	return fmt.Errorf("%w (%w)", e, core.ErrUnknown)
}

func concerns(f *core.Fact, person core.Path) bool {
	return !person.IsZero() && (f.By == person || slices.Contains(f.About, person))
}

// mayChange reports whether a user of that rank may change or remove a fact in a place.
func mayChange(f *core.Fact, place, person core.Path, rank core.Rank) bool {
	switch {
	case rank == core.RankBot:
		return f.By.IsZero()
	case rank == core.RankAdmin, concerns(f, person):
		return true
	}
	return rank == core.RankModerator && place.Within(f.Origin)
}

var errNotTheirs = core.Errorf(core.Forbidden,
	"that memory was saved by somebody else, about somebody else: only they, moderators and admins may change it")

// forUsers replaces the store's error for an unknown id by one that users understand.
func forUsers(id string, err error) error {
	if errors.Is(err, core.ErrUnknown) {
		return unknown(id)
	}
	return err
}

const (
	textMax = 1000 // characters of a fact
	nameMax = 64   // characters of a name, tag or topic
	idMax   = 16
)

func label(text string) string { return strings.ToLower(txt.ClipLine(text, nameMax)) }

// Config is the plugin's table.
type Config struct {
	Hints        int           `toml:"hints" default:"5" min:"0" max:"8" doc:"How many memories a prompt contains at most."`
	HintChars    int           `toml:"hint_chars" default:"500" min:"100" max:"8000" doc:"The maximum length of these memories together, in characters."`
	Extract      bool          `toml:"extract" default:"true" doc:"Whether finished conversations are read again for memories, if an engine is configured. Private chats are excluded unless the user sent /extract on."`
	ExtractAfter time.Duration `toml:"extract_after" default:"15m" min:"1m" max:"24h" doc:"How long a conversation must have been silent before it is read again."`
	ExtractMin   int           `toml:"extract_min" default:"6" min:"1" max:"200" doc:"How many messages of users it must have."`
	ExtractDaily int           `toml:"extract_daily" default:"4" min:"1" max:"100" doc:"How often per day one place may be read again."`
	ExtractFacts int           `toml:"extract_facts" default:"5" min:"1" max:"20" doc:"How many memories one reading may add."`
}
