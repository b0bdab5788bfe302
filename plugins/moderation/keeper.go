package moderation

import (
	"context"
	"encoding/json"

	"synthbot/core"
)

// Kept implements core.Keeper: that a block holds is kept under no path. What else
// is kept of him lies under his own.
func (p *Plugin) Kept(ctx context.Context, person core.Path) ([]json.RawMessage, error) {
	if !person.IsPerson() {
		return nil, nil
	}
	p.mu.Lock()
	err := p.open(ctx)
	p.mu.Unlock()
	if err != nil {
		return nil, err
	}
	var kept []json.RawMessage
	for _, h := range p.any(person) {
		kept = append(kept, encode(keptHold{h.kind, where(h.scope), h.end()}))
	}
	return kept, nil
}

// Erase implements core.Keeper: what is in memory, and on its way to the disk,
// goes. A block stays, and says no longer whose it is.
func (p *Plugin) Erase(ctx context.Context, person core.Path) error {
	if !person.IsPerson() {
		return nil
	}
	ctx, err := p.begin(ctx)
	if err != nil {
		return err
	}
	defer p.change.Unlock()
	w := whoIs(person)
	p.mu.Lock()
	if p.seal.mac != nil {
		p.holds.anonymise(p.seal.of(w))
	}
	p.forgetRanks(w)
	p.people.drop(w)
	gone := p.log.forget(person)
	p.queue.forget(person)
	p.mu.Unlock()
	for _, e := range gone { // what he suffered is no deed of anybody any more
		if e.by.IsZero() {
			continue
		}
		if err := p.drop(ctx, e.by, didKey+e.id); err != nil {
			return err
		}
	}
	return nil
}

// forgetRanks forgets where somebody is a moderator. p.mu is held.
func (p *Plugin) forgetRanks(w who) {
	for c := range p.chiefs {
		if c.who == w {
			delete(p.chiefs, c)
		}
	}
}

// forget takes out what would be written or told about a person.
func (q *queue) forget(person core.Path) {
	items := q.items[:0]
	for _, item := range q.items {
		if item.Path != person {
			items = append(items, item)
		}
	}
	clear(q.items[len(items):])
	q.items = items
	notices := q.notices[:0]
	for _, n := range q.notices {
		if n.to != person {
			notices = append(notices, n)
		}
	}
	q.notices = notices
}
