package turn

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"sync"
	"time"

	"synthbot/core"
	"synthbot/core/hint"
	"synthbot/core/prompt"
	"synthbot/core/recent"
)

// Bounds of what plugins add to a prompt.
const (
	contributionTime = 300 * time.Millisecond // of each
	openTime         = 20 * time.Second       // for reading what people attached
	maxInjection     = 2000                   // bytes of one injection
	maxBio           = 400                    // bytes of one
	maxInjections    = 1024                   // injections that are kept for a while
)

// contribution asks a plugin. take adds what it said to the prompt.
type contribution func(context.Context) (take func(), err error)

// contribute asks all plugins that have something to add, at the same time. What is late,
// fails or is too long is left out.
func (in *input) contribute(ctx context.Context, s core.Scene) {
	t := in.turn
	c := contributions{
		log: t.log, injections: make(map[string]json.RawMessage), bios: make(map[string]json.RawMessage),
	}
	people := in.people()
	for _, r := range t.setup.Plugins.Recons {
		name := "recon"
		if p, ok := r.(core.Plugin); ok {
			name = p.Name()
		}
		c.ask(ctx, name, contributionTime, func(ctx context.Context) (func(), error) {
			hints, err := r.Recon(ctx, s)
			return func() { c.hints = append(c.hints, hints...) }, err
		})
	}
	for name, i := range t.setup.Plugins.Injectors {
		c.ask(ctx, name, contributionTime, func(ctx context.Context) (func(), error) {
			value, err := inject(ctx, t.turns.injections, i, s)
			return func() { c.addInjection(name, value) }, err
		})
	}
	for _, b := range t.setup.Plugins.Bios {
		c.ask(ctx, "bios", contributionTime, func(ctx context.Context) (func(), error) {
			bios, err := b.Bios(ctx, s, people)
			return func() { c.addBios(bios) }, err
		})
	}
	var files []core.Attachment
	for i := range t.messages {
		files = append(files, t.messages[i].Message.Attachments...)
	}
	if len(files) > 0 && t.setup.Prompt.Open != nil {
		c.ask(ctx, "attachments", openTime, func(ctx context.Context) (func(), error) {
			o := t.setup.Prompt.Open(ctx, t.path, files)
			return func() { in.parts.Texts, in.parts.Pictures, in.parts.Sounds = o.Texts, o.Pictures, o.Sounds }, nil
		})
	}
	c.all.Wait()
	in.parts.Injections = c.injections
	in.parts.Participants = in.participants(people, c.bios)
	in.parts.Recon = prompt.Merge(c.hints, in.settings.Language, t.setup.Prompt.Language)
}

// contributions collects what plugins add. What comes late is dropped.
type contributions struct {
	log *slog.Logger
	all sync.WaitGroup

	mu         sync.Mutex
	hints      []hint.Hint
	injections map[string]json.RawMessage
	bios       map[string]json.RawMessage
}

// ask gives one of them so much time.
func (c *contributions) ask(ctx context.Context, name string, limit time.Duration, speak contribution) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	said := make(chan func(), 1)
	go func() { // after an error or a panic there is nothing to take
		take, err := func() {}, errors.New("it panicked")
		guard(c.log, name, func() { take, err = speak(ctx) })
		if err != nil {
			c.log.Warn("contribution left out", "plugin", name, "err", err)
			take = func() {}
		}
		said <- take
	}()
	c.all.Go(func() {
		defer cancel()
		select {
		case take := <-said:
			c.mu.Lock()
			defer c.mu.Unlock()
			take()
		case <-ctx.Done():
			c.log.Warn("contribution left out: it is late", "plugin", name)
		}
	})
}

func (c *contributions) addInjection(name string, value json.RawMessage) {
	if len(value) > maxInjection || len(value) > 0 && !json.Valid(value) {
		c.log.Warn("injection left out", "plugin", name, "bytes", len(value), "limit", maxInjection)
		return
	}
	if len(value) > 0 {
		c.injections[name] = value
	}
}

func (c *contributions) addBios(bios map[string]json.RawMessage) {
	for id, bio := range bios {
		if len(bio) > maxBio || !json.Valid(bio) {
			c.log.Warn("bio left out", "bytes", len(bio), "limit", maxBio)
			continue
		}
		c.bios[id] = bio
	}
}

// injectionCache keeps the values of injectors that say how long they hold. Safe for
// concurrent use.
type injectionCache = recent.Shared[injectedKey, injectedValue]

type injectedKey struct {
	injector core.Injector
	place    core.Path
	person   string
}

type injectedValue struct {
	value json.RawMessage
	until time.Time
	epoch uint64
}

// lasting is the ability of a core.Injector whose value holds for a while: it is not
// asked again in the same place for the same person before that time is over, or
// somebody was forgotten.
type lasting interface {
	Lasts() time.Duration
}

// inject asks the injector, unless what it said before still holds. When somebody is
// forgotten, nothing does.
func inject(ctx context.Context, kept *injectionCache, i core.Injector, s core.Scene) (json.RawMessage, error) {
	l, ok := i.(lasting)
	if !ok {
		return i.Inject(ctx, s)
	}
	epoch, _, _ := core.EpochOf(ctx)
	key := injectedKey{i, s.Path, s.Author.ID}
	v, _ := kept.Get(key)
	if v.epoch == epoch && s.Now.Before(v.until) {
		return v.value, nil
	}
	value, err := i.Inject(ctx, s)
	if err != nil {
		return nil, err
	}
	kept.Put(key, injectedValue{value, s.Now.Add(l.Lasts()), epoch})
	return value, nil
}
