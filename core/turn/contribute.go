package turn

import (
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"sync"
	"time"

	"synthbot/core"
	"synthbot/core/prompt"
)

// Bounds of what plugins add to a prompt.
const (
	contributionTime = 300 * time.Millisecond // of each
	openTime         = 20 * time.Second       // for reading what people attached
	maxInjection     = 2000                   // bytes of one injection
	maxBio           = 400                    // bytes of one
	maxInjections    = 1024                   // injections that are kept for a while
)

// contribute asks everybody who has something to add, all at once; who is late,
// fails or says too much is left out.
func (in *input) contribute(ctx context.Context, s core.Scene) {
	c := contributions{log: in.turn.log, injections: make(map[string]json.RawMessage), bios: make(map[string]json.RawMessage)}
	people := in.people()
	for _, r := range in.turn.setup.Plugins.Recons {
		c.ask(ctx, "recon", contributionTime, func(ctx context.Context) (func(), error) { return c.hints(r.Recon(ctx, s)) })
	}
	for name, i := range in.turn.setup.Plugins.Injectors {
		c.ask(ctx, name, contributionTime, func(ctx context.Context) (func(), error) {
			return c.injection(name)(in.turn.turns.injections.inject(ctx, i, s))
		})
	}
	for _, b := range in.turn.setup.Plugins.Bios {
		c.ask(ctx, "bios", contributionTime, func(ctx context.Context) (func(), error) { return c.biographies(b.Bios(ctx, s, people)) })
	}
	if files := in.attachments(); len(files) > 0 && in.turn.setup.Prompt.Open != nil {
		c.ask(ctx, "attachments", openTime, func(ctx context.Context) (func(), error) {
			o := in.turn.setup.Prompt.Open(ctx, in.turn.path, files)
			return func() { in.parts.Texts, in.parts.Pictures, in.parts.Sounds = o.Texts, o.Pictures, o.Sounds }, nil
		})
	}
	c.all.Wait()
	in.parts.Injections = c.injections
	in.parts.Participants = in.participants(people, c.bios)
	in.parts.Recon = prompt.Merge(c.found, in.settings.Language, in.turn.setup.Prompt.Language)
}

// attachments lists the files of what the turn answers.
func (in *input) attachments() []core.Attachment {
	var files []core.Attachment
	for i := range in.turn.messages {
		files = append(files, in.turn.messages[i].Message.Attachments...)
	}
	return files
}

// contributions collects what others say; what comes late is dropped.
type contributions struct {
	log *slog.Logger
	all sync.WaitGroup

	mu         sync.Mutex
	found      []core.Hint
	injections map[string]json.RawMessage
	bios       map[string]json.RawMessage
}

// ask lets one of them speak for at most that long. What it returns is taken in
// while the time is not over.
func (c *contributions) ask(ctx context.Context, name string, limit time.Duration, speak func(context.Context) (func(), error)) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	said := make(chan func(), 1)
	go func() { said <- c.safely(ctx, name, speak) }()
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

// safely speaks; an error or a panic is nothing said.
func (c *contributions) safely(ctx context.Context, name string, speak func(context.Context) (func(), error)) (take func()) {
	take = func() {}
	defer func() {
		if r := recover(); r != nil {
			c.log.Error("contribution panicked", "plugin", name, "panic", r)
		}
	}()
	t, err := speak(ctx)
	if err != nil {
		c.log.Warn("contribution left out", "plugin", name, "err", err)
		return take
	}
	return t
}

func (c *contributions) hints(hints []core.Hint, err error) (func(), error) {
	return func() { c.found = append(c.found, hints...) }, err
}

func (c *contributions) injection(name string) func(json.RawMessage, error) (func(), error) {
	return func(value json.RawMessage, err error) (func(), error) {
		if len(value) > maxInjection || len(value) > 0 && !json.Valid(value) {
			c.log.Warn("injection left out", "plugin", name, "bytes", len(value), "limit", maxInjection)
			return func() {}, err
		}
		return func() {
			if len(value) > 0 {
				c.injections[name] = value
			}
		}, err
	}
}

func (c *contributions) biographies(bios map[string]json.RawMessage, err error) (func(), error) {
	maps.DeleteFunc(bios, func(id string, bio json.RawMessage) bool {
		wrong := len(bio) > maxBio || !json.Valid(bio)
		if wrong {
			c.log.Warn("bio left out", "bytes", len(bio), "limit", maxBio)
		}
		return wrong
	})
	return func() { maps.Copy(c.bios, bios) }, err
}

// injected keeps the values of injectors that say how long they hold. Safe for
// concurrent use.
type injectionCache struct {
	mu     sync.Mutex
	values map[injectedKey]injectedValue
}

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

// inject asks the injector, unless what it said before still holds: nobody was
// forgotten since, of whom it may tell.
func (j *injectionCache) inject(ctx context.Context, i core.Injector, s core.Scene) (json.RawMessage, error) {
	lasting, ok := i.(core.Lasting)
	if !ok {
		return i.Inject(ctx, s)
	}
	epoch, _, _ := core.EpochOf(ctx)
	key := injectedKey{i, s.Path, s.Author.ID}
	j.mu.Lock()
	v := j.values[key]
	j.mu.Unlock()
	if v.epoch == epoch && s.Now.Before(v.until) {
		return v.value, nil
	}
	value, err := i.Inject(ctx, s)
	if err != nil {
		return nil, err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.values == nil || len(j.values) >= maxInjections {
		j.values = make(map[injectedKey]injectedValue)
	}
	j.values[key] = injectedValue{value, s.Now.Add(lasting.Lasts()), epoch}
	return value, nil
}
