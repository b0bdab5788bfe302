package moderation

import (
	"context"
	"errors"
	"fmt"
	"time"

	"synthbot/core"
	"synthbot/core/txt"
)

// actor is the moderator or admin who does something.
type actor struct {
	place   core.Path
	private bool
	rank    core.Rank
	user    core.Path
	name    string
}

// newActor returns an error unless the author is one moderator or admin: several users have
// no id, and the bot has another rank.
func newActor(place core.Path, private bool, author core.Author) (*actor, error) {
	user, err := place.Person(author.ID)
	if err != nil || author.Rank < core.RankModerator || author.Rank > core.RankAdmin {
		return nil, core.Errorf(core.Forbidden, "Only a moderator or an admin may do that, and must ask for it alone.")
	}
	return &actor{place, private, author.Rank, user, displayName(author.Name)}, nil
}

// isAdmin reports whether the actor is one of the bot's admins.
func (a *actor) isAdmin() bool { return a.rank == core.RankAdmin }

// scope returns where a block by the actor holds.
func (a *actor) scope(onlyHere bool) (core.Path, error) {
	switch {
	case a.isAdmin() && !onlyHere:
		return core.Path{}, nil
	case a.private:
		return core.Path{}, core.Errorf(core.Invalid, "In private there is no group to block anybody in; do it there.")
	}
	return groupOf(a.place), nil
}

// reaches reports whether the actor may see and lift a hold.
func (a *actor) reaches(h *hold) bool {
	return a.isAdmin() || !a.private && h.scope.Within(groupOf(a.place)) || a.private && h.scope == a.place
}

// event returns an event that the actor causes.
func (a *actor) event(what string, about core.Path) event {
	e := event{What: what, about: about, by: a.user, byName: a.name}
	if !a.private {
		e.Place = groupOf(a.place)
	}
	return e
}

// checkRank returns an error if the actor's rank is too low for what they do to a user.
func (p *Plugin) checkRank(a *actor, c *candidate) error {
	switch {
	case p.host.Messenger.IsAdmin(c.user):
		return core.Errorf(core.Forbidden, "%s is one of my admins: nobody can do that to them.", displayName(c.name))
	case a.isAdmin():
		return nil
	case c.rank >= core.RankModerator || p.records.isModerator(c.user, groupOf(a.place)):
		return core.Errorf(core.Forbidden, "%s is a moderator here: only an admin can do that to them.",
			displayName(c.name))
	}
	return nil
}

// holdRequest is what an actor wants to be done to a user.
type holdRequest struct {
	name     string
	span     time.Duration // 0: until it is lifted
	reason   string
	onlyHere bool
}

// maxReason is how many characters of a reason are kept.
const maxReason = 300

// hold blocks or mutes a user.
func (p *Plugin) hold(ctx context.Context, a *actor, kind string, r holdRequest) (h hold, err error) {
	c, err := p.findUser(ctx, a, r.name)
	if err != nil {
		return h, err
	}
	if err := p.checkRank(a, &c); err != nil {
		return h, err
	}
	h = hold{
		kind: kind, scope: a.place, user: c.user,
		name: txt.ClipLine(c.name, maxName), tag: txt.ClipLine(c.tag, maxName),
	}
	if kind == blocked {
		h.scope, err = a.scope(r.onlyHere)
	}
	if err != nil {
		return h, err
	}
	if r.span > 0 {
		h.until = p.host.Clock().Add(r.span).Unix()
	}
	ctx, err = p.records.begin(ctx)
	if err != nil {
		return h, err
	}
	defer p.records.change.Unlock()
	reason := txt.ClipLine(r.reason, maxReason)
	if err := p.records.startHold(ctx, h, reason); err != nil {
		return h, err
	}
	e := a.event(participle(h.kind), h.user)
	e.Name, e.Reason, e.Until, e.All = h.name, reason, h.end(), h.scope.IsZero()
	return h, p.records.logNow(ctx, e)
}

// release ends the blocks, or the mutes, of a user as far as the actor may, and returns
// them.
func (p *Plugin) release(ctx context.Context, a *actor, kind, name string) (lifted []hold, err error) {
	ctx, err = p.records.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer p.records.change.Unlock()
	d, err := p.findHeld(ctx, a, kind, name)
	if err != nil {
		return nil, err
	}
	everywhere := false // there is one that only admins can lift; those of other groups stay secret
	for _, h := range p.records.active(kind, func(*hold) bool { return true }) {
		switch {
		case h.digest != d:
		case !a.reaches(&h.hold):
			everywhere = everywhere || h.scope.IsZero()
		default:
			if err := p.records.liftHold(ctx, d, &h.hold); err != nil {
				return lifted, err
			}
			lifted = append(lifted, h.hold)
		}
	}
	switch {
	case len(lifted) > 0:
		return lifted, p.recordRelease(ctx, a, &lifted[0])
	case everywhere:
		return nil, core.Errorf(core.Forbidden, "That holds beyond this group: only an admin can lift it.")
	}
	shown := txt.ClipLine(bare(name), maxName)
	return nil, notHeld("%s is not %s here.", shown, participle(kind))
}

// recordRelease logs that a user is no longer blocked or muted. With the last of it, the
// user's appeals are settled. The caller holds change.
func (p *Plugin) recordRelease(ctx context.Context, a *actor, h *hold) error {
	if h.user.IsZero() {
		return nil
	}
	e := a.event("un"+participle(h.kind), h.user)
	e.Name, e.All = h.name, h.scope.IsZero()
	r := p.records
	if err := r.logNow(ctx, e); err != nil || len(r.holdsOf(h.user)) > 0 {
		return err
	}
	r.mu.Lock()
	settled := r.log.takeAppeals(h.user)
	r.mu.Unlock()
	if len(settled) > 0 {
		r.notify("Your appeal was heard: you may talk to me again.", h.user)
	}
	for i := range settled {
		if err := r.remove(ctx, h.user, appealKey+settled[i].id); err != nil {
			return err
		}
	}
	return nil
}

// mutePlace makes the bot quiet in the actor's place.
func (p *Plugin) mutePlace(ctx context.Context, a *actor, span time.Duration, reason string) (time.Time, error) {
	until := p.host.Clock().Add(span)
	ctx, err := p.records.begin(ctx)
	if err != nil {
		return until, err
	}
	defer p.records.change.Unlock()
	if err := p.records.mutePlace(ctx, a.place, until); err != nil {
		return until, err
	}
	e := a.event(wasMuted, a.place)
	e.Reason, e.Until = txt.ClipLine(reason, maxReason), until
	return until, p.records.logNow(ctx, e)
}

var errNotHeld = errors.New("there is nothing to lift")

// notHeld is the error of lifting what is not there.
func notHeld(format string, args ...any) error {
	return fmt.Errorf("%w (%w)", core.Errorf(core.Invalid, format, args...), errNotHeld)
}

// unmutePlace ends the mutes of the actor's place, and of those above.
func (p *Plugin) unmutePlace(ctx context.Context, a *actor) error {
	ctx, err := p.records.begin(ctx)
	if err != nil {
		return err
	}
	defer p.records.change.Unlock()
	place, _, ok := p.records.mutedAt(a.place)
	if !ok {
		return notHeld("I am not muted here.")
	}
	for ok {
		if err := p.records.unmutePlace(ctx, place); err != nil {
			return err
		}
		place, _, ok = p.records.mutedAt(a.place)
	}
	return p.records.logNow(ctx, a.event(wasUnmuted, a.place))
}
