package moderation

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"sync"
	"time"

	"synthbot/core"
)

// Bounds of what is remembered of people and places that are active.
const (
	maxPeople = 32_768
	maxPlaces = 8_192
	maxChiefs = 4_096
)

// Plugin is the moderation of all places. Safe for concurrent use.
type Plugin struct {
	host   core.Host
	config Config
	policy *policy
	texts  maphash.Seed
	wake   chan struct{} // the queue holds something

	// change is held while something is decided and written, and while somebody
	// is forgotten; it comes before mu.
	change sync.Mutex

	mu     sync.Mutex // guards what follows, and is held for no longer than a look
	opened bool
	seal   seal
	holds  holds
	mutes  map[core.Path]int64 // of places; Unix times
	chiefs map[chief]bool
	people recent[who, activity]
	places recent[core.Path, window]
	judged recent[delivery, judgment]
	log    journal
	queue  queue
}

// chief is somebody who was seen as a moderator of a group.
type chief struct {
	who
	group core.Path
}

// queue is what Judge leaves to Run.
type queue struct {
	items   []core.Item
	notices []notice
	lost    int // that found no room
}

// notice is something to be told; without a path to all admins.
type notice struct {
	to   core.Path
	text string
}

// New makes the plugin. Its error names what is wrong with the rules.
func New(h core.Host, c Config) (*Plugin, error) {
	rules, err := newPolicy(&c)
	if err != nil {
		return nil, fmt.Errorf("moderation: %w", err)
	}
	if c.MuteFor <= 0 {
		c.MuteFor = time.Hour
	}
	if c.Keep <= 0 {
		c.Keep = 90 * day
	}
	return &Plugin{
		host: h, config: c, policy: rules, texts: maphash.MakeSeed(), wake: make(chan struct{}, 1),
		holds: make(holds), mutes: make(map[core.Path]int64), chiefs: make(map[chief]bool),
		people: newRecent[who, activity](maxPeople), places: newRecent[core.Path, window](maxPlaces),
		judged: newRecent[delivery, judgment](maxJudged),
	}, nil
}

// Name implements core.Plugin.
func (p *Plugin) Name() string { return p.host.Name }

// note logs an event, and leaves the writing to Run. p.mu is held.
func (p *Plugin) note(e event) {
	e.At = p.host.Clock()
	e.id = p.log.number(e.At)
	for _, gone := range p.log.add(e) {
		p.later(removal(gone.items())...)
	}
	p.later(e.items()...)
}

// later leaves items to Run. p.mu is held.
func (p *Plugin) later(items ...core.Item) {
	if len(p.queue.items)+len(items) > maxQueue {
		p.queue.lost += len(items)
		return
	}
	p.queue.items = append(p.queue.items, items...)
	p.rouse()
}

// tell leaves a notice to Run. p.mu is held.
func (p *Plugin) tell(text string, to ...core.Path) {
	if len(to) == 0 {
		to = []core.Path{{}}
	}
	for _, path := range to {
		if len(p.queue.notices) < maxQueue {
			p.queue.notices = append(p.queue.notices, notice{path, text})
		}
	}
	p.rouse()
}

func (p *Plugin) rouse() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// record logs what an actor does. Nothing is logged about people who were forgotten
// meanwhile, and not who did it if they were. p.change is held, p.mu is not.
func (p *Plugin) record(ctx context.Context, a *actor, e event) error {
	e.by, e.byName = a.person, a.name
	p.mu.Lock()
	e.At = p.host.Clock()
	e.id = p.log.number(e.At)
	p.mu.Unlock()
	for _, item := range e.items() { // first what happened, then who did it
		_, err := p.host.Items.Put(ctx, item)
		switch {
		case errors.Is(err, core.ErrForgotten) && item.Path == e.about:
			return nil
		case errors.Is(err, core.ErrForgotten):
			e.by, e.byName = core.Path{}, ""
		case err != nil:
			return fmt.Errorf("keep: %w", err)
		}
	}
	p.mu.Lock()
	var items []core.Item
	for _, gone := range p.log.add(e) {
		items = append(items, removal(gone.items())...)
	}
	p.mu.Unlock()
	return p.write(ctx, items)
}

// write puts items on disk.
func (p *Plugin) write(ctx context.Context, items []core.Item) error {
	_, err := p.writeAll(ctx, items)
	return err
}

// writeAll puts items on disk, and returns those that it could not.
func (p *Plugin) writeAll(ctx context.Context, items []core.Item) (left []core.Item, err error) {
	for i, item := range items {
		_, err := p.host.Items.Put(ctx, item)
		if errors.Is(err, core.ErrForgotten) {
			continue // he was forgotten meanwhile, and so is what he did
		}
		if err != nil {
			return items[i:], fmt.Errorf("keep: %w", err)
		}
	}
	return nil, nil
}
