package moderation

import (
	"context"
	"time"

	"synthbot/core"
	"synthbot/core/txt"
)

// actor is who does something, as the call says it: no payload does.
type actor struct {
	place   core.Path
	private bool
	rank    core.Rank
	person  core.Path
	name    string
}

// newActor refuses whoever is not one moderator or admin: several people, who have
// no id, and the bot's own turns are not.
func newActor(place core.Path, private bool, who core.Author) (*actor, error) {
	person, err := place.Person(who.ID)
	if err != nil || who.Rank < core.Moderator || who.Rank > core.Admin {
		return nil, core.Errorf(core.Forbidden, "Only a moderator or an admin may do that, and must ask for it alone.")
	}
	return &actor{place, private, who.Rank, person, called(who.Name)}, nil
}

// admin reports whether the actor is one of the bot's admins, and not of a group.
func (a *actor) admin() bool { return a.rank == core.Admin }

// scope is where a block of the actor's holds.
func (a *actor) scope(onlyHere bool) (core.Path, error) {
	switch {
	case a.admin() && !onlyHere:
		return core.Path{}, nil
	case a.private:
		return core.Path{}, core.Errorf(core.Invalid, "In private there is no group to block anybody in; do it there.")
	}
	return root(a.place), nil
}

// group is what an event's Place says.
func (a *actor) group() core.Path {
	if a.private {
		return core.Path{}
	}
	return root(a.place)
}

// may refuses what an actor may do to nobody of that standing.
func (p *Plugin) may(a *actor, t *target) error {
	if p.host.Desk.Admin(t.path) {
		return core.Errorf(core.Forbidden, "%s is one of my admins: nobody can do that to them.", called(t.Name))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !a.admin() && (t.Rank >= core.Moderator || p.chiefs[chief{whoIs(t.path), root(a.place)}]) {
		return core.Errorf(core.Forbidden, "%s is a moderator here: only an admin can do that to them.", called(t.Name))
	}
	return nil
}

// begin makes sure that all is read, and returns with p.change held. The context that
// it returns is of no turn: what a moderator decides holds even if they are forgotten
// meanwhile. What names them is refused all the same.
func (p *Plugin) begin(ctx context.Context) (context.Context, error) {
	p.mu.Lock()
	err := p.open(ctx)
	p.mu.Unlock()
	if err == nil {
		p.change.Lock()
	}
	if epoch, _, ok := core.EpochOf(ctx); ok {
		ctx = core.WithEpoch(ctx, epoch)
	}
	return ctx, err
}

// wish is what an actor wants to be done to somebody.
type wish struct {
	who    string
	span   time.Duration // 0: until it is lifted
	reason string
	here   bool // an admin's, too
}

// maxReason is how long a reason may be, in characters.
const maxReason = 300

// hold blocks or mutes a person, and returns how.
func (p *Plugin) hold(ctx context.Context, a *actor, kind string, w wish) (h hold, err error) {
	t, err := p.person(ctx, a, w.who)
	if err != nil {
		return h, err
	}
	if err := p.may(a, &t); err != nil {
		return h, err
	}
	h = hold{kind: kind, scope: a.place, person: t.path, name: txt.Clip(txt.Line(t.Name), maxName), tag: txt.Clip(txt.Line(t.Tag), maxName)}
	if kind == blocked {
		if h.scope, err = a.scope(w.here); err != nil {
			return h, err
		}
	}
	if w.span > 0 {
		h.until = p.host.Clock().Add(w.span).Unix()
	}
	if ctx, err = p.begin(ctx); err != nil {
		return h, err
	}
	defer p.change.Unlock()
	reason := txt.Clip(txt.Line(w.reason), maxReason)
	if err := p.holdFor(ctx, h, reason); err != nil {
		return h, err
	}
	return h, p.record(ctx, a, event{
		What: participle(h.kind), Place: a.group(), Name: h.name, Reason: reason, Until: h.end(), All: h.scope.IsZero(),
		about: h.person,
	})
}

// release lifts what a person is held by, as far as the actor may, and returns
// those holds.
func (p *Plugin) release(ctx context.Context, a *actor, kind, name string) (lifted []hold, err error) {
	if ctx, err = p.begin(ctx); err != nil {
		return nil, err
	}
	defer p.change.Unlock()
	d, err := p.heldPerson(ctx, a, kind, name)
	if err != nil {
		return nil, err
	}
	beyond := false
	for _, h := range p.holdsOf(d) {
		switch {
		case h.kind != kind || !stands(h.until, p.host.Clock()):
		case !a.reaches(&h):
			beyond = beyond || h.scope.IsZero() // of other groups nothing is said
		default:
			if err := p.lift(ctx, d, &h); err != nil {
				return lifted, err
			}
			lifted = append(lifted, h)
		}
	}
	switch {
	case len(lifted) == 0 && beyond:
		return nil, core.Errorf(core.Forbidden, "That holds beyond this group: only an admin can lift it.")
	case len(lifted) == 0:
		return nil, core.Errorf(core.Invalid, "%s is not %s here.", txt.Clip(txt.Line(bare(name)), maxName), participle(kind))
	}
	return lifted, p.recordRelease(ctx, a, d, &lifted[0])
}

// participle is what is done to whom is held.
func participle(kind string) string {
	if kind == blocked {
		return wasBlocked
	}
	return wasMuted
}

// reaches reports whether the actor may see and lift a hold.
func (a *actor) reaches(h *hold) bool {
	return a.admin() || !a.private && h.scope.Within(root(a.place)) || a.private && h.scope == a.place
}

// holdsOf are a person's, as they are now.
func (p *Plugin) holdsOf(d digest) []hold {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]hold(nil), p.holds[d]...)
}

// recordRelease logs that a person is held no longer; with the last block, his
// appeals are heard. p.change is held.
func (p *Plugin) recordRelease(ctx context.Context, a *actor, d digest, h *hold) error {
	if h.person.IsZero() {
		return nil // it is not known whom it would be about
	}
	e := event{What: "un" + participle(h.kind), Place: a.group(), Name: h.name, All: h.scope.IsZero(), about: h.person}
	if err := p.record(ctx, a, e); err != nil || len(p.holdsOf(d)) > 0 {
		return err
	}
	p.mu.Lock()
	heard := p.log.settled(h.person)
	if len(heard) > 0 {
		p.tell("Your appeal was heard: you may talk to me again.", h.person)
	}
	p.mu.Unlock()
	for _, x := range heard {
		if err := p.drop(ctx, x.person, appealKey+x.id); err != nil {
			return err
		}
	}
	return nil
}

// hush makes the bot quiet in the actor's place.
func (p *Plugin) hush(ctx context.Context, a *actor, span time.Duration, reason string) (until time.Time, err error) {
	if ctx, err = p.begin(ctx); err != nil {
		return until, err
	}
	defer p.change.Unlock()
	now := p.host.Clock()
	until = now.Add(span)
	if _, err := p.put(ctx, a.place, muteKey, holdValue{now, until}, core.AnyVersion); err != nil {
		return until, err
	}
	p.mu.Lock()
	p.mutes[a.place] = until.Unix()
	p.mu.Unlock()
	return until, p.record(ctx, a, event{What: wasMuted, Place: a.group(), Reason: txt.Clip(txt.Line(reason), maxReason), Until: until, about: a.place})
}

// unhush lets the bot talk again in the actor's place.
func (p *Plugin) unhush(ctx context.Context, a *actor) error {
	ctx, err := p.begin(ctx)
	if err != nil {
		return err
	}
	defer p.change.Unlock()
	lifted := false
	for {
		p.mu.Lock()
		at, ok := p.mutedAt(a.place, p.host.Clock())
		p.mu.Unlock()
		if !ok {
			break
		}
		if err := p.unmute(ctx, at); err != nil {
			return err
		}
		lifted = true
	}
	if !lifted {
		return core.Errorf(core.Invalid, "I am not muted here.")
	}
	return p.record(ctx, a, event{What: wasUnmuted, Place: a.group(), about: a.place})
}

// unmute ends the mute of a place. p.change is held.
func (p *Plugin) unmute(ctx context.Context, place core.Path) error {
	if err := p.drop(ctx, place, muteKey); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.mutes, place)
	return nil
}
