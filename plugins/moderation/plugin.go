// Package moderation lets moderators block and mute users, takes appeals, and keeps a log.
//
// It does not ban users from a platform: the interfaces have actions for that. A refused
// message never reaches a model. Further gates, such as limits and filters, see only messages
// of users who are neither blocked nor muted, and share the log.
//
// # Who may do what
//
// Only moderators and admins may block and mute. Their rank comes with the call: neither a text nor a model can claim
// one. Moderators block within their group (the guild, or the chat with all its topics), admins everywhere. Admins
// cannot be blocked, and moderators only by admins. The model's block_user and unblock_user are confirmed with a button
// first, so that a text that a moderator only quotes does nothing.
//
// # What happens to a message
//
// Messages from blocked users are not stored (gate.Discard). In private the commands /appeal, /mydata and /forgetme
// still work, five times a day. Messages from muted users, and in muted places, are stored and not answered
// (gate.Quiet); commands work, and moderators who speak to the bot in a muted place are answered. A mute ends by
// itself, unlike /sleep. Both are checked again before a message is answered, and when it is edited.
//
// # Storage
//
// A block or mute of a user is an item without a path: "hold " + a keyed hash of the user + " block " or " mute " +
// where. Its value says since when and until when. It names nobody, so it survives /forgetme, although its random key
// is in the same store ("key"). Items that name somebody are under that user's path, are shown to them and are erased
// with them: name and reason ("hold block WHERE"), what happened to them ("log ID"), their appeals ("appeal ID"), what
// they did as a moderator ("did ID"), and where they were seen as a moderator ("moderator GROUP"). After that,
// moderators see "somebody who was forgotten", and lift the block by the beginning of the hash, or by the id once the
// user writes again. A muted place has "mute" and its log under its own path.
//
// Messages of users are not stored here, except appeals.
package moderation

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"synthbot/core"
	"synthbot/core/command"
	"synthbot/core/gate"
	"synthbot/core/loop"
	"synthbot/core/spoken"
	"synthbot/core/txt"
)

// Config is a part of the table [plugins.moderation].
type Config struct {
	MuteFor time.Duration `toml:"mute_for" default:"1h" min:"1m" max:"744h" doc:"How long a mute lasts by default."`
	Keep    time.Duration `toml:"keep" default:"2160h" min:"24h" max:"87600h" doc:"How long the moderation log and appeals are kept."`
}

// Gate is asked about messages of users who are neither blocked nor muted.
type Gate interface {
	gate.Gate
	// Forget removes all that the gate remembers about a user.
	Forget(user core.Path)
}

// Plugin is the moderation of all places. It is safe for concurrent use.
type Plugin struct {
	host    core.Host
	config  Config
	records *records
	spans   *spoken.Reader // parses durations
	gates   []Gate
}

const day = 24 * time.Hour

func New(h core.Host, c Config) (*Plugin, error) {
	r := &records{host: h, wake: make(chan struct{}, 1), stale: make(chan struct{}, 1)}
	r.clear()
	return &Plugin{host: h, config: c, records: r, spans: spoken.New(h.Language, nil)}, nil
}

// Refresh implements core.Refresher.
func (p *Plugin) Refresh() { loop.Notify(p.records.stale) }

// AddGates adds gates that are asked, in their order, until one refuses a message. It must
// not be called after the plugin is in use.
func (p *Plugin) AddGates(gates ...Gate) { p.gates = append(p.gates, gates...) }

func (p *Plugin) Name() string { return p.host.Name }

// Run implements core.Runner: it writes the log, sends notices, and removes expired holds and events.
func (p *Plugin) Run(ctx context.Context) error { return p.records.run(ctx, p.config.Keep) }

// Judge implements gate.Gate.
func (p *Plugin) Judge(m *core.Message, again bool) (v gate.Verdict) {
	user, _ := m.Path.Person(m.Author.ID) // zero for events without an author
	admission, err := p.records.admission(user, m, again)
	if err != nil {
		p.host.Log.Error("nobody is answered because the list of blocks cannot be read", "err", err)
	}
	mayUnmute := m.Author.Rank >= core.RankModerator && m.Addressed != ""
	_, quiet := p.records.mutedAt(m.Path)
	if admission == gate.Admit && quiet && !mayUnmute {
		admission = gate.Quiet
	}
	v.Admission = admission
	for i := 0; i < len(p.gates) && v.Admission == gate.Admit; i++ {
		v = p.gates[i].Judge(m, again)
	}
	return v
}

// Announce implements gate.Counter.
func (p *Plugin) Announce(f func(by core.Path, what string)) {
	eachCounter(p.gates, func(c gate.Counter) { c.Announce(f) })
}

// Used implements gate.Counter.
func (p *Plugin) Used(by core.Path, what string) {
	eachCounter(p.gates, func(c gate.Counter) { c.Used(by, what) })
}

func eachCounter(gates []Gate, do func(gate.Counter)) {
	for _, g := range gates {
		if c, ok := g.(gate.Counter); ok {
			do(c)
		}
	}
}

// allowedWhileBlocked reports whether a text calls a command that blocked users may call: to
// appeal, and to see and erase their data.
func allowedWhileBlocked(text string) bool {
	return slices.Contains([]string{"appeal", "mydata", "forgetme"}, command.Called(text))
}

// LogAuthor logs an event about the author of a message. It does not block.
func (p *Plugin) LogAuthor(m *core.Message, what, detail string, until time.Time) {
	user, err := m.Path.Person(m.Author.ID)
	if err != nil {
		return
	}
	e := event{What: what, Detail: detail, Until: until, Place: m.Path, Name: displayName(m.Author.Name), about: user}
	if !m.Private {
		e.Place = m.Path.Group()
	}
	p.records.logLater(e)
}

// LogPlace logs an event about a place of a group. It does not block.
func (p *Plugin) LogPlace(place core.Path, what string, until time.Time) {
	p.records.logLater(event{What: what, Until: until, Place: place.Group(), about: place})
}

// NotifyAbout sends a notice about a message to places, or to all admins if there are none. It does not block.
func (p *Plugin) NotifyAbout(m *core.Message, text string, to ...core.Path) {
	user, _ := m.Path.Person(m.Author.ID)
	p.records.notify(fmt.Sprintf("%s (%s) in %s: %s", displayName(m.Author.Name), user, m.Path, text), to...)
}

// ReachedLimits calls use for each reached limit in the log that is still in force.
func (p *Plugin) ReachedLimits(use func(about core.Path, detail string, until time.Time)) {
	now := p.host.Clock()
	for _, e := range p.records.events(func(e *event) bool { return e.What == wasLimited && e.Until.After(now) }) {
		use(e.about, e.Detail, e.Until)
	}
}

// Kept implements core.DataKeeper. It returns the blocks and mutes of the user, whose items have no path.
func (p *Plugin) Kept(ctx context.Context, user core.Path) ([]json.RawMessage, error) {
	if !user.IsPerson() {
		return nil, nil
	}
	if _, err := p.records.begin(ctx); err != nil {
		return nil, err
	}
	defer p.records.change.Unlock()
	var kept []json.RawMessage
	for _, h := range p.records.holdsOf(user) {
		kept = append(kept, core.JSON(keptHold{h.kind, where(h.scope), h.until}))
	}
	return kept, nil
}

// keptHold is a block or mute as the user sees it.
type keptHold struct {
	Kind  string    `json:"kind"`
	Where string    `json:"where"`
	Until time.Time `json:"until,omitzero"`
}

// Erase implements core.DataKeeper. Blocks stay in force, without the user's name.
func (p *Plugin) Erase(ctx context.Context, user core.Path) error {
	if !user.IsPerson() {
		return nil
	}
	for _, g := range p.gates {
		g.Forget(user)
	}
	return p.records.forget(ctx, user)
}

const maxName = 60 // how many characters of a name are stored and shown

func displayName(name string) string {
	return cmp.Or(txt.ClipLine(name, maxName), "Somebody")
}

func userID(user core.Path) string {
	elements := user.Elements()
	return elements[len(elements)-1]
}

func where(scope core.Path) string {
	if scope.IsZero() {
		return "everywhere"
	}
	return "in " + scope.String()
}

// ending describes the end of a hold; the zero Time means until it is lifted.
func ending(t, now time.Time) string {
	if t.IsZero() {
		return "until it is lifted"
	}
	return "until " + txt.Moment(t, now)
}

// trimName removes quotes, punctuation and mention marks around a name or an id.
func trimName(name string) string {
	name = strings.Trim(strings.TrimRight(strings.TrimSpace(name), ",:;"), "`")
	if id, ok := strings.CutPrefix(name, "<@"); ok {
		name = strings.TrimPrefix(strings.TrimSuffix(id, ">"), "!")
	}
	return name
}
