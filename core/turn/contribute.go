package turn

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"synthbot/core"
	"synthbot/core/hint"
	"synthbot/core/prompt"
	"synthbot/core/recent"
)

// Bounds of what plugins add to a prompt.
const (
	contributionTime = 300 * time.Millisecond // of all plugins
	askPatience      = 3 * time.Millisecond   // for one, before the next is asked beside it
	openTime         = 20 * time.Second       // for reading what people attached
	maxInjection     = 2000                   // bytes of one injection
	maxBio           = 400                    // bytes of one
	maxInjections    = 1024                   // injections that are kept for a while
)

// contribution is what a plugin is asked. take adds what it said to the prompt.
type contribution struct {
	plugin string
	ask    func(context.Context) (take func(), err error)
}

// contribute asks all plugins that have something to add. What is late, fails or is too
// long is left out.
func (in *input) contribute(ctx context.Context, s core.Scene) {
	t := in.turn
	c := contributions{
		log: t.log, injections: make(map[string]json.RawMessage), bios: make(map[string]json.RawMessage),
	}
	people := in.people()
	var list []contribution
	for _, r := range t.setup.Plugins.Recons {
		name := "recon"
		if p, ok := r.(core.Plugin); ok {
			name = p.Name()
		}
		list = append(list, contribution{name, func(ctx context.Context) (func(), error) {
			hints, err := r.Recon(ctx, s)
			return func() { c.hints = append(c.hints, hints...) }, err
		}})
	}
	for name, i := range t.setup.Plugins.Injectors {
		list = append(list, contribution{name, func(ctx context.Context) (func(), error) {
			value, err := inject(ctx, t.turns.injections, i, s)
			return func() { c.addInjection(name, value) }, err
		}})
	}
	for _, b := range t.setup.Plugins.Bios {
		list = append(list, contribution{"bios", func(ctx context.Context) (func(), error) {
			bios, err := b.Bios(ctx, s, people)
			return func() { c.addBios(bios) }, err
		}})
	}
	c.collect(ctx, contributionTime, list)
	var files []core.Attachment
	for i := range t.messages {
		files = append(files, t.messages[i].Message.Attachments...)
	}
	if len(files) > 0 && t.setup.Prompt.Open != nil {
		open := func(ctx context.Context) (func(), error) {
			o := t.setup.Prompt.Open(ctx, t.path, files)
			return func() { in.parts.Texts, in.parts.Pictures, in.parts.Sounds = o.Texts, o.Pictures, o.Sounds }, nil
		}
		c.collect(ctx, openTime, []contribution{{"attachments", open}})
	}
	in.parts.Injections = c.injections
	in.parts.Participants = in.participants(people, c.bios)
	in.parts.Recon = prompt.Merge(c.hints, in.settings.Language, t.setup.Prompt.Language)
}

// contributions collects what plugins add.
type contributions struct {
	log        *slog.Logger
	hints      []hint.Hint
	injections map[string]json.RawMessage
	bios       map[string]json.RawMessage
}

// collect asks one after the other, since most answer within microseconds. The others do not
// wait for one that takes longer: each time that patience ends, a further goroutine asks on.
// What has not been said at the limit is dropped.
func (c *contributions) collect(ctx context.Context, limit time.Duration, list []contribution) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	type said struct {
		by   int
		take func()
	}
	var next atomic.Int32
	answers := make(chan said, len(list))
	asking := func() {
		for i := next.Add(1) - 1; int(i) < len(list) && ctx.Err() == nil; i = next.Add(1) - 1 {
			answers <- said{int(i), c.ask(ctx, list[i])}
		}
	}
	patience := time.NewTicker(askPatience)
	defer patience.Stop()
	late := make(map[int]bool, len(list))
	for i := range list {
		late[i] = true
	}
	go asking()
	for len(late) > 0 {
		select {
		case a := <-answers:
			delete(late, a.by)
			a.take()
		case <-patience.C:
			if int(next.Load()) < len(list) {
				go asking()
			}
		case <-ctx.Done():
			for i := range late {
				c.log.Warn("contribution left out: it is late", "plugin", list[i].plugin)
			}
			return
		}
	}
}

// ask returns what takes the contribution: nothing after an error or a panic.
func (c *contributions) ask(ctx context.Context, one contribution) (take func()) {
	take, err := func() {}, errors.New("it panicked")
	guard(c.log, one.plugin, func() { take, err = one.ask(ctx) })
	if err != nil {
		c.log.Warn("contribution left out", "plugin", one.plugin, "err", err)
		return func() {}
	}
	return take
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
