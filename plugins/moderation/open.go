package moderation

import (
	"context"
	"fmt"
	"strings"
	"time"

	"synthbot/core"
)

// openTime is how long it may take to read what former lives left.
const openTime = 20 * time.Second

// open reads what former lives left, once. p.mu is held.
func (p *Plugin) open(ctx context.Context) error {
	if p.opened {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, openTime)
	defer cancel()
	items, err := p.host.Items.List(ctx, core.Path{})
	if err != nil {
		return fmt.Errorf("what is kept: %w", err)
	}
	for _, item := range items { // without it no digest says anything
		if item.Path.IsZero() && item.Key == sealKey {
			err = p.readSeal(item)
		}
	}
	if err != nil {
		return err
	}
	var deeds []core.Item
	for i := range items {
		if strings.HasPrefix(items[i].Key, didKey) {
			deeds = append(deeds, items[i])
			continue
		}
		if err := p.read(&items[i]); err != nil {
			p.host.Log.Warn("what is kept cannot be read", "path", items[i].Path, "key", items[i].Key, "err", err)
		}
	}
	orphans, err := p.log.attach(deeds)
	if err != nil {
		p.host.Log.Warn("who did what cannot be read", "err", err)
	}
	p.opened = true
	p.later(removal(orphans)...)
	p.resume(p.host.Clock())
	return nil
}

// read takes an item over. p.mu is held.
func (p *Plugin) read(item *core.Item) error {
	name, rest, _ := strings.Cut(item.Key, " ")
	switch name + " " {
	case holdKey:
		if item.Path.IsZero() {
			return p.readHold(item)
		}
		return p.readDetail(item, rest)
	case logKey, appealKey:
		return p.log.read(*item)
	case chiefKey:
		group, err := core.ParsePath(rest)
		if err == nil && item.Path.IsPerson() && len(p.chiefs) < maxChiefs {
			p.chiefs[chief{whoIs(item.Path), group}] = true
		}
		return err
	}
	if item.Key == muteKey {
		return p.readMute(item)
	}
	return nil
}

func (p *Plugin) readSeal(item core.Item) error {
	key, err := parseSeal(item)
	if err == nil {
		p.seal.set(key)
	}
	return err
}

func (p *Plugin) readHold(item *core.Item) error {
	d, h, ok := parseHoldKey(item.Key)
	if !ok {
		return fmt.Errorf("%w: %q is no hold", core.ErrPath, item.Key)
	}
	v, err := decode[holdValue](item)
	if err != nil {
		return err
	}
	h.until = unixOf(v.Until)
	p.holds.set(d, h)
	return nil
}

// readDetail tells of whom a hold is. Items come in the order of their paths, the
// zero one first; a detail without its hold is one that was lifted.
func (p *Plugin) readDetail(item *core.Item, rest string) error {
	kind, scope, _ := strings.Cut(rest, " ")
	h, ok := newHold(kind, scope)
	if !ok || !item.Path.IsPerson() {
		return fmt.Errorf("%w: %q is no hold", core.ErrPath, item.Key)
	}
	v, err := decode[detail](item)
	if err != nil || p.seal.mac == nil {
		return err
	}
	d := p.seal.of(whoIs(item.Path))
	for i := range p.holds[d] {
		if old := &p.holds[d][i]; old.same(&h) {
			old.person, old.name, old.tag = item.Path, v.Name, v.Tag
		}
	}
	return nil
}

func (p *Plugin) readMute(item *core.Item) error {
	v, err := decode[holdValue](item)
	if err == nil {
		p.mutes[item.Path] = unixOf(v.Until)
	}
	return err
}

// resume lets limits that were reached hold on. p.mu is held.
func (p *Plugin) resume(now time.Time) {
	for _, e := range p.log.events {
		if e.What != wasLimited || !e.Until.After(now) {
			continue
		}
		if !e.about.IsPerson() {
			w := new(window)
			w.fill(p.config.Place, e.Until)
			p.places.keep(e.about, w)
			continue
		}
		for kind, name := range limitNames {
			if name == e.Detail {
				p.active(whoIs(e.about)).asked[kind].fill(p.limit(kind), e.Until)
			}
		}
	}
}

// active is what somebody did not long ago. p.mu is held.
func (p *Plugin) active(w who) *activity {
	a := p.people.find(w)
	if a == nil {
		a = new(activity)
		p.people.keep(w.own(), a)
	}
	return a
}
