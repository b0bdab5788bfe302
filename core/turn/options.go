package turn

import (
	"context"
	"log/slog"
	"time"

	"synthbot/core"
	"synthbot/core/action"
	"synthbot/core/command"
	"synthbot/core/gate"
	"synthbot/core/hint"
	"synthbot/core/llm"
	"synthbot/core/watch"
)

// Config is what the configuration says about all turns.
type Config struct {
	History int `toml:"history" default:"20" min:"1" max:"500" doc:"How many messages of a place a prompt contains at least; it contains at most twice as many."`
	Recent  int `toml:"recent" default:"10" min:"0" max:"200" doc:"How many messages of other places a prompt contains at most, if scope and [[share]] allow any."`
	// The rest is read from other tables.
	Attempts int           // how often the model may correct a plan
	Backlog  time.Duration // messages that waited longer are acknowledged together; 0: never
}

// Share lists subtrees whose places may see each other's talk.
type Share struct {
	Paths []core.Path `toml:"paths" kind:"place" doc:"Places, with all places below them, that may see each other's history and memories."`
}

// Activations say which messages of a group are answered. Private messages always are.
const (
	ActivationMention = "mention" // the bot is mentioned, replied to, or called by name
	ActivationKeyword = "keyword" // as mention, or the message contains a keyword
	ActivationAmbient = "ambient" // as mention; now and then the model may also join in
	ActivationAlways  = "always"
	ActivationNever   = "never"
)

// Settings are what may differ from place to place.
type Settings struct {
	Activation string
	Keywords   []string
	// With ActivationAmbient, the model may join in after so many messages, or so long
	// after it was last asked; 0: never for that reason.
	AmbientMessages int
	AmbientEvery    time.Duration
	// Attention is how long after an answer the same user need not address the bot again; 0: not at all.
	Attention time.Duration
	Blind     bool   // messages that are not answered are not stored
	Bots      bool   // other bots are answered, for a few rounds
	Language  string // to answer in; "": the one that recon detects
	Scope     string // of history_recent: chat, interface or unified
}

// Options is what turns need. The fields above the blank line are required.
type Options struct {
	Store     core.Store
	Catalogue *action.Snapshot
	Runtime   *action.Runtime
	Asker     core.Asker
	Clock     func() time.Time
	Log       *slog.Logger
	Config    Config
	Settings  func(place core.Path) Settings
	Prompt    Prompt

	Access  Access
	Admins  []core.Path
	Names   func(place core.Path) []string // the bot's names there: a message that contains one addresses it
	Places  Places
	Plugins Plugins
}

// Prompt is what prompts are made of. Persona is required.
type Prompt struct {
	Persona  func(place core.Path, user string) core.Persona
	Language string // if recon detects none
	Lite     bool
	Shares   []Share
	// Open reads attachments, within its own limits: texts of documents, pictures
	// and sounds, each by Attachment.Ref. Nil: none are read.
	Open   func(ctx context.Context, place core.Path, files []core.Attachment) llm.Contents
	Speech Speech
}

// Places says what is possible in each place. Every function may be nil.
type Places struct {
	Chooser func(place core.Path) core.Chooser    // the interface's ability, or nil
	Carrier func(place core.Path) core.FileSender // likewise
	Typing  func(place core.Path) core.TypingIndicator
	Asleep  func(place core.Path) bool // messages there are stored as context only
	// Reaches reports whether an interface of this process can send to a place now;
	// elsewhere messages wait. Nil: everywhere.
	Reaches func(place core.Path) bool
	// Settle is how long the messages that waited at the start, or for an interface, wait for interfaces to receive
	// how they were edited or deleted meanwhile. What is received in a place ends that there.
	Settle time.Duration
	// Elsewhere reports whether another process that uses the store serves a place. Nil: none does.
	Elsewhere func(place core.Path) bool
	// Configured reports whether the configuration names a place. Of a place that has just moved, it names the
	// former path until it is read again. Nil: it names none.
	Configured func(place core.Path) bool
	// Received is called with each batch of events after its commit.
	Received func(ctx context.Context, events []core.Event)
	// Asked is called when users cause a turn with a model, with how many they may cause in a minute, so
	// that other processes count it, too; see Turns.Asked. It returns at once.
	Asked func(people []core.Path, perMinute int)
}

// Plugins are the abilities of plugins besides their actions.
type Plugins struct {
	Commands    *command.Registry // nil: there are none
	Gates       []gate.Gate
	Recons      []hint.Source
	Injectors   map[string]core.Injector // by the key of the context
	Bios        []core.BioSource
	Reviewers   []action.Reviewer
	Editors     []action.Editor
	Withholders []withholder
	Followers   map[string]core.Follower // by the name of the plugin
	Keys        []string                 // further top-level keys of plans; their values join the plan's metadata
	Observers   []watch.Observer
	Watchers    []watch.StageObserver
}

// Add adds the abilities of a plugin, except commands and watchers.
func (a *Plugins) Add(p core.Plugin) {
	addIfAble(&a.Gates, p)
	addIfAble(&a.Recons, p)
	addIfAble(&a.Bios, p)
	addIfAble(&a.Reviewers, p)
	addIfAble(&a.Editors, p)
	addIfAble(&a.Withholders, p)
	addIfAble(&a.Observers, p)
	addNamedIfAble(&a.Injectors, p)
	addNamedIfAble(&a.Followers, p)
	if x, ok := p.(interface{ PlanKeys() []string }); ok {
		a.Keys = append(a.Keys, x.PlanKeys()...)
	}
}

// addIfAble appends the plugin to the list if it has the list's ability.
func addIfAble[T any](list *[]T, p core.Plugin) {
	if x, ok := p.(T); ok {
		*list = append(*list, x)
	}
}

// addNamedIfAble is addIfAble for a map by the names of the plugins.
func addNamedIfAble[T any](all *map[string]T, p core.Plugin) {
	if x, ok := p.(T); ok {
		if *all == nil {
			*all = make(map[string]T)
		}
		(*all)[p.Name()] = x
	}
}

func (o *Options) setDefaults() {
	p := &o.Places
	setDefault(&p.Chooser, nil)
	setDefault(&p.Carrier, nil)
	setDefault(&p.Typing, nil)
	setDefault(&p.Asleep, false)
	setDefault(&p.Configured, false)
	setDefault(&p.Elsewhere, false)
	setDefault(&p.Reaches, true)
	if o.Plugins.Commands == nil {
		o.Plugins.Commands = new(command.Registry)
	}
}

// setDefault makes a function that is nil return the value for every place.
func setDefault[T any](f *func(core.Path) T, value T) {
	if *f == nil {
		*f = func(core.Path) T { return value }
	}
}
