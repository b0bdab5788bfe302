package moderation

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"synthbot/core"
)

// heldPerson finds whom an actor names among those who are held, and then among
// those seen here: whoever was forgotten is found by his id alone, or by what
// /blocked calls him. p.change is held.
func (p *Plugin) heldPerson(ctx context.Context, a *actor, kind, name string) (digest, error) {
	name = bare(name)
	found := p.heldAs(a, kind, name)
	switch len(found) {
	case 0:
	case 1:
		return found[0].digest, nil
	default:
		people := make([]core.Author, len(found))
		for i, f := range found {
			if people[i].ID = f.mark(); !f.person.IsZero() {
				people[i] = core.Author{ID: whoIs(f.person).id, Tag: f.tag}
			}
		}
		return digest{}, several(name, people)
	}
	p.mu.Lock()
	sealed := p.seal.mac != nil
	p.mu.Unlock()
	if !sealed {
		return digest{}, core.Errorf(core.Invalid, "Nobody is.")
	}
	t, err := p.person(ctx, a, name)
	if err != nil {
		if path, ok := a.pathOf(name); ok {
			return p.digestOf(path), nil
		}
		return digest{}, err
	}
	return p.digestOf(t.path), nil
}

// pathOf reads an id as that of a person of the actor's interface.
func (a *actor) pathOf(name string) (core.Path, bool) {
	path, err := a.place.Person(name)
	return path, err == nil && !strings.ContainsAny(name, " /")
}

// held is one person's hold.
type held struct {
	digest
	hold
}

// mark is what one is called who cannot be named.
func (h *held) mark() string { return "#" + h.digest.String()[:8] }

// heldAs are those of whom an actor may know, one hold each, who are called so.
func (p *Plugin) heldAs(a *actor, kind, name string) (found []held) {
	all := p.listed(kind, func(h *hold) bool { return a.reaches(h) })
	plain := strings.TrimPrefix(name, "@")
	for _, same := range []func(h *held) bool{
		func(h *held) bool {
			return h.mark() == name || !h.person.IsZero() && (h.person.String() == name || whoIs(h.person).id == plain)
		},
		func(h *held) bool { return sameTag(h.tag, name) },
		func(h *held) bool { return h.name != "" && strings.EqualFold(h.name, plain) },
	} {
		for i := range all {
			known := slices.ContainsFunc(found, func(f held) bool { return f.digest == all[i].digest })
			if !known && same(&all[i]) {
				found = append(found, all[i])
			}
		}
		if len(found) > 0 {
			return found
		}
	}
	return nil
}

// listed are the holds of a kind that stand and are wanted, by name.
func (p *Plugin) listed(kind string, wanted func(*hold) bool) (list []held) {
	now := p.host.Clock()
	p.mu.Lock()
	for d, his := range p.holds {
		for i := range his {
			if h := &his[i]; h.kind == kind && stands(h.until, now) && wanted(h) {
				list = append(list, held{d, *h})
			}
		}
	}
	p.mu.Unlock()
	slices.SortFunc(list, func(a, b held) int {
		return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.digest.String(), b.digest.String()), cmp.Compare(a.scope.String(), b.scope.String()))
	})
	return list
}

// any reports whether something holds a person now.
func (p *Plugin) any(person core.Path) (list []hold) {
	now := p.host.Clock()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.seal.mac == nil {
		return nil
	}
	for _, h := range p.holds[p.seal.of(whoIs(person))] {
		if stands(h.until, now) {
			list = append(list, h)
		}
	}
	return list
}

// where words a scope.
func where(scope core.Path) string {
	if scope.IsZero() {
		return "everywhere"
	}
	return "in " + scope.String()
}

// keptHold is what a person is shown of a hold.
type keptHold struct {
	Kind  string    `json:"kind"`
	Where string    `json:"where"`
	Until time.Time `json:"until,omitzero"`
}
