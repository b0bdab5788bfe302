package moderation

import (
	"cmp"
	"context"
	"encoding/hex"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"synthbot/core"
	"synthbot/core/command"
	"synthbot/core/txt"
	"synthbot/core/users"
	"synthbot/core/values"
)

const (
	blocked    = "block"
	muted      = "mute"
	quietPlace = "quiet" // a muted place, where nobody is answered
)

const commandsDaily = 5 // how often a day a blocked user may call the commands that still work

// hold is the block or the mute of a user, or the mute of a place.
type hold struct {
	digest string // of the user, see records.digest; or the path of the muted place
	kind   string
	scope  core.Path // where it applies; zero: everywhere
	until  time.Time // zero: until it is lifted
	number uint64    // the actor's: distinguishes it from earlier and later holds with the same key
	// Zero for a muted place, and if the user was forgotten.
	user core.Path
	name string
	tag  string

	// Use of the commands that still work, since the first call.
	firstCommand time.Time
	commands     int
}

func quietIn(place core.Path, until time.Time, number uint64) hold {
	return hold{digest: place.String(), kind: quietPlace, scope: place, until: until, number: number}
}

// item returns the item that stores the hold without naming the user. A nil value removes it.
func (h *hold) item(value any) core.Item {
	if h.kind == quietPlace {
		return values.New(h.scope, muteKey, value)
	}
	return values.New(core.Path{}, h.key(), value)
}

// allowsCommand counts a call of one of the commands that still work, and reports whether the user may make it.
func (h *hold) allowsCommand(now time.Time) bool {
	since := now.Sub(h.firstCommand)
	if since < 0 || since >= day {
		h.firstCommand, h.commands = now, 0
	}
	h.commands++
	return h.commands <= commandsDaily
}

func (h *hold) label() string {
	if h.name == "" && !h.user.IsZero() {
		return userID(h.user)
	}
	return displayName(h.name)
}

// mark identifies a user who was forgotten.
func (h *hold) mark() string { return "#" + h.digest[:8] }

// shortLabel returns a word by which commands find the user.
func (h *hold) shortLabel() string {
	if h.tag == "" && !h.user.IsZero() {
		return userID(h.user)
	}
	return cmp.Or(txt.ClipLine(h.tag, maxName), h.mark())
}

func isActive(until, now time.Time) bool { return until.IsZero() || now.Before(until) }

func (h *hold) forgetUser() { h.user, h.name, h.tag = core.Path{}, "", "" }

// participle returns the word for users under a hold of that kind, and for muted places.
func participle(kind string) string {
	if kind == blocked {
		return wasBlocked
	}
	return wasMuted
}

// detailKey is the key of the detail under the user's path.
func (h *hold) detailKey() string { return holdKey + h.kind + " " + h.scope.String() }

// key is the key of the item without a path.
func (h *hold) key() string { return holdKey + h.digest + " " + h.kind + " " + h.scope.String() }

func parseHoldKey(key string) (h hold, ok bool) {
	parts := strings.SplitN(strings.TrimPrefix(key, holdKey), " ", 3) // digest, kind and scope
	if len(parts) < 3 || parts[1] != blocked && parts[1] != muted {
		return h, false
	}
	h.digest, h.kind = parts[0], parts[1]
	raw, badDigest := hex.DecodeString(h.digest)
	badScope := h.scope.UnmarshalText([]byte(parts[2]))
	return h, badDigest == nil && badScope == nil && len(raw) == digestSize
}

// holds contains all holds, by digest.
type holds map[string][]hold

// set adds a hold, or replaces one of the same kind and scope.
func (all holds) set(h hold) {
	all.remove(&h)
	all[h.digest] = append(all[h.digest], h)
}

func (all holds) remove(h *hold) {
	left := slices.DeleteFunc(all[h.digest], func(old hold) bool { return old.key() == h.key() })
	all[h.digest] = left
	if len(left) == 0 {
		delete(all, h.digest)
	}
}

// strictest returns the strictest active hold that applies to a user's message, or nil.
func (all holds) strictest(digest string, m *core.Message, now time.Time) (strictest *hold) {
	for i := range all[digest] {
		h := &all[digest][i]
		if m.Path.Within(h.scope) && isActive(h.until, now) && (strictest == nil || h.kind == blocked) {
			strictest = h
		}
	}
	return strictest
}

// actor is a call by a moderator or admin.
type actor struct {
	command.Call
	number uint64 // random; of an action's call: the same if the call is repeated after a crash
}

// newActor returns an error unless the author is a single moderator or admin. Calls on behalf of
// several users, and of the bot itself, are refused.
func newActor(c command.Call) (a *actor, err error) {
	c.Person, err = c.Path.Person(c.Author.ID)
	if err != nil || c.Author.Rank < core.RankModerator || c.Author.Rank > core.RankAdmin {
		return nil, core.Errorf(core.Forbidden, "Only a moderator or an admin may do that, and must ask for it alone.")
	}
	return &actor{c, rand.Uint64()}, nil
}

// named returns the name that the actor gave, else the id of the writer, or "".
func (a *actor) named(ctx context.Context, r core.Reader) (string, error) {
	if a.Args["person"] != "" {
		return a.Args["person"], nil
	}
	return users.Writer(ctx, r, a.Path, a.Target, a.Writer)
}

func (a *actor) isAdmin() bool { return a.Author.Rank == core.RankAdmin }

func (a *actor) scope(onlyHere bool) (core.Path, error) {
	switch {
	case a.isAdmin() && !onlyHere:
		return core.Path{}, nil
	case a.Private:
		return core.Path{}, core.Errorf(core.Invalid, "This is not a group; block them in their group.")
	}
	return a.Path.Group(), nil
}

// mayLift reports whether the actor may see and lift a hold.
func (a *actor) mayLift(h *hold) bool {
	return a.isAdmin() || !a.Private && h.scope.Within(a.Path.Group()) || a.Private && h.scope == a.Path
}

func (a *actor) event(what string, about core.Path) event {
	e := event{What: what, about: about, by: a.Person, byName: displayName(a.Author.Name)}
	if !a.Private {
		e.Place = a.Path.Group()
	}
	return e
}

// checkRank returns an error if the actor's rank is too low for what they do to a user.
func (p *Plugin) checkRank(a *actor, u user) error {
	switch {
	case p.host.Messenger.IsAdmin(u.path):
		return core.Errorf(core.Forbidden, "%s is one of my admins: nobody can do that to them.", displayName(u.Name))
	case a.isAdmin():
		return nil
	}
	r := p.records
	r.mu.Lock()
	defer r.mu.Unlock()
	if u.Rank >= core.RankModerator || r.moderators[seenModerator{u.path, a.Path.Group()}] {
		return core.Errorf(core.Forbidden, "%s is a moderator here: only an admin can do that to them.",
			displayName(u.Name))
	}
	return nil
}

type holdRequest struct {
	name     string
	span     time.Duration // 0: until it is lifted
	reason   string
	onlyHere bool
	remark   string // on how a command was understood, for the actor
}

const maxReason = 300

// start begins a hold, and logs it. It also returns the hold that this replaced, if any.
func (r *records) start(ctx context.Context, a *actor, h hold, reason string) (_ hold, was *detail, err error) {
	ctx, err = r.begin(ctx)
	if err != nil {
		return h, nil, err
	}
	defer r.change.Unlock()
	if !h.user.IsZero() {
		if err := r.ensureKey(ctx); err != nil {
			return h, nil, err
		}
		h.digest = r.digest(h.user)
	}
	reason = txt.ClipLine(reason, maxReason)
	now, ok := r.current(&h)
	if ok && now.number == a.number { // a crash interrupted the call after this
		return now, nil, r.logOnce(ctx, a.holdEvent(&now, reason))
	}
	if ok {
		before, _, err := values.Get[detail](ctx, r.host.Items, h.user, h.detailKey())
		if err != nil {
			return h, nil, err
		}
		before.Until, was = now.until, &before
	}
	h.number = a.number
	if err := r.startHold(ctx, h, detail{h.name, h.tag, reason, r.host.Clock(), h.until}); err != nil {
		return h, nil, err
	}
	return h, was, r.logNow(ctx, a.holdEvent(&h, reason))
}

func (a *actor) holdEvent(h *hold, reason string) event {
	e := a.event(participle(h.kind), cmp.Or(h.user, h.scope))
	e.Name, e.Reason, e.Until, e.All = h.name, reason, h.until, h.scope.IsZero()
	return e
}

// heldBefore tells how to undo a hold, or its lifting.
type heldBefore struct {
	Person string    `json:"person,omitempty"` // "" for a mute of the place
	Before *detail   `json:"before,omitempty"` // the hold that was replaced or lifted
	Here   bool      `json:"here,omitempty"`   // in this group and not everywhere
	Scope  core.Path `json:"scope,omitzero"`   // of the hold that was lifted
	Number uint64    `json:"number,omitzero"`  // of the hold that is undone
}

// restore puts the former hold in force again, or lifts the present one if there was none. It does nothing if the
// holds have changed since: hold b.Number must be in force if held, and otherwise none.
func (b *heldBefore) restore(ctx context.Context, p *Plugin, a *actor, kind string, held bool) (err error) {
	was, again := cmp.Or(b.Before, new(detail)), b.Before != nil && isActive(b.Before.Until, p.host.Clock())
	h := hold{kind: kind, scope: b.Scope, until: was.Until, name: was.Name, tag: was.Tag}
	if b.Person == "" {
		h, was.At = quietIn(b.Scope, was.Until, 0), p.host.Clock()
	} else if h.user, err = core.ParsePath(b.Person); err != nil {
		return err
	}
	if again && b.Person != "" {
		if err := p.checkRank(a, user{core.Author{Name: h.name}, h.user}); err != nil {
			return err
		}
	}
	r := p.records
	ctx, err = r.begin(ctx)
	if err != nil {
		return err
	}
	defer r.change.Unlock()
	if b.Person != "" {
		h.digest = r.digest(h.user)
	}
	now, ok := r.current(&h)
	if ok != held || held && now.number != b.Number || !held && !again || !a.mayLift(&h) {
		return nil
	}
	if again {
		h.number = rand.Uint64()
		if err := r.startHold(ctx, h, *was); err != nil {
			return err
		}
		return r.logNow(ctx, a.holdEvent(&h, was.Reason))
	}
	if err := r.liftHold(ctx, &now); err != nil {
		return err
	}
	return p.recordRelease(ctx, a, &now)
}

// release lifts the blocks, or the mutes, of a user that the actor may lift. It returns one of
// them, and how to restore them.
func (p *Plugin) release(ctx context.Context, a *actor, kind, name string) (lifted *hold, was []heldBefore, err error) {
	ctx, err = p.records.begin(ctx)
	if err != nil {
		return nil, nil, err
	}
	defer p.records.change.Unlock()
	digest, err := p.findHeld(ctx, a, kind, name)
	if err != nil {
		return nil, nil, err
	}
	everywhere := false // one applies everywhere, so only admins can lift it; those of other groups stay secret
	for _, h := range p.records.active(kind, func(h *hold) bool { return h.digest == digest }) {
		if !a.mayLift(&h) {
			everywhere = everywhere || h.scope.IsZero()
			continue
		}
		d, _, err := values.Get[detail](ctx, p.host.Items, h.user, h.detailKey())
		if err == nil {
			err = p.records.liftHold(ctx, &h)
		}
		if err != nil {
			return lifted, was, err
		}
		d.Until = h.until
		if !h.user.IsZero() {
			was = append(was, heldBefore{Person: h.user.String(), Before: &d, Scope: h.scope})
		}
		lifted = cmp.Or(lifted, &h)
	}
	switch {
	case lifted != nil:
		return lifted, was, p.recordRelease(ctx, a, lifted)
	case everywhere:
		return nil, nil, core.Errorf(core.Forbidden, "That applies beyond this group: only an admin can lift it.")
	}
	shown := txt.ClipLine(trimName(name), maxName)
	return nil, nil, core.Errorf(core.Invalid, "%s is not %s here.", shown, participle(kind))
}

// recordRelease logs that a user, or a place, is no longer blocked or muted. If no hold on the user is
// left, it closes their appeals. The caller holds change.
func (p *Plugin) recordRelease(ctx context.Context, a *actor, h *hold) error {
	if h.user.IsZero() && h.kind != quietPlace {
		return nil
	}
	r, e := p.records, a.event("un"+participle(h.kind), cmp.Or(h.user, h.scope))
	e.Name, e.All = h.name, h.scope.IsZero()
	if err := r.logNow(ctx, e); err != nil || h.user.IsZero() || len(r.holdsOf(h.user)) > 0 {
		return err
	}
	r.mu.Lock()
	closed := r.log.remove(func(e *event) bool { return e.isAppeal() && e.about == h.user })
	r.mu.Unlock()
	if len(closed) > 0 {
		r.notify("Your appeal was heard: you may talk to me again.", h.user)
	}
	var items []core.Item
	for _, e := range closed {
		items = append(items, e.items()...)
	}
	return r.put(ctx, removals(items)...)
}

// unmutePlace lifts the mutes of the actor's place, and of those above, and returns how to restore them.
func (p *Plugin) unmutePlace(ctx context.Context, a *actor) (was []heldBefore, err error) {
	ctx, err = p.records.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer p.records.change.Unlock()
	for mute, ok := p.records.mutedAt(a.Path); ok; mute, ok = p.records.mutedAt(a.Path) {
		if err := p.records.liftHold(ctx, &mute); err != nil {
			return was, err
		}
		was = append(was, heldBefore{Scope: mute.scope, Before: &detail{Until: mute.until}})
	}
	if was == nil {
		return nil, core.Errorf(core.Invalid, "I am not muted here.")
	}
	return was, p.records.logNow(ctx, a.event(wasUnmuted, a.Path))
}
