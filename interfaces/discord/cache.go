package discord

import (
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"synthbot/core"
)

// Kinds of channel.
const (
	channelDirect   = 1
	channelGroup    = 3
	channelCategory = 4
	channelNews     = 5
	threadNews      = 10
	threadPublic    = 11
	threadPrivate   = 12
)

// Permissions of a moderator: administrator, kick, ban, manage guild, channels, messages
// or threads, time out.
const (
	powerAdmin     = 1 << 3
	powerModerator = powerAdmin | 1<<1 | 1<<2 | 1<<4 | 1<<5 | 1<<13 | 1<<34 | 1<<40
)

// powerRead are the permissions to see a channel and to read its history.
const powerRead = 1<<10 | 1<<16

// me stands for a guild in the paths of direct messages.
const me = "@me"

// place is what is known of a channel. The parent of a thread is its channel, that of a
// channel its category.
type place struct {
	Guild  string `json:"guild,omitempty"`
	Parent string `json:"parent,omitempty"`
	Kind   uint8  `json:"kind,omitempty"`
	name   string
	over   []overwrite // only those that concern powerModerator
}

func (p place) thread() bool {
	return p.Kind == threadNews || p.Kind == threadPublic || p.Kind == threadPrivate
}

// hasMessages reports whether the channel itself can have messages.
func (c *channel) hasMessages() bool {
	switch c.Type {
	case 0, 2, channelNews, 13, threadNews, threadPublic, threadPrivate: // text, voice, news, stage
		return true
	}
	return false
}

func (p place) private() bool { return p.Guild == "" && p.Kind != channelGroup }

type role struct {
	name  string
	power uint64
}

type guild struct {
	owner    string
	roles    map[string]role
	mine     []string // the bot's own roles
	channels []string
	joined   time.Time
}

// cache is what is known of guilds and channels. It holds no members and no
// messages. Safe for concurrent use.
type cache struct {
	name string // of the interface

	mu     sync.RWMutex
	self   user
	app    string
	guilds map[string]*guild
	places map[string]place
	latest place // that was set
}

func newCache(name string) *cache {
	return &cache{name: name, guilds: make(map[string]*guild), places: make(map[string]place)}
}

func (b *cache) me() (self user, app string) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.self, b.app
}

func (b *cache) setMe(self user, app string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.self, b.app = self, strings.Clone(app)
	if app == "" {
		b.app = self.ID
	}
}

// place returns what is known of a channel.
func (b *cache) place(id string) (place, bool) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	p, ok := b.places[id]
	return p, ok
}

// known reports whether the guild is known.
func (b *cache) known(guild string) bool {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.guilds[guild] != nil
}

// setGuild notes a guild and its channels.
func (b *cache) setGuild(g guildPayload) {
	b.mu.Lock()
	defer b.mu.Unlock()
	old := b.guilds[g.ID]
	n := &guild{owner: g.Owner, roles: make(map[string]role, len(g.Roles)), joined: g.Joined.Time}
	for _, r := range g.Roles {
		n.roles[r.ID] = role{r.Name, uint64(r.Power)}
		if r.Tags.Bot != "" && r.Tags.Bot == b.self.ID {
			n.mine = append(n.mine, r.ID)
		}
	}
	for _, m := range g.Members {
		if m.User != nil && m.User.ID == b.self.ID {
			n.mine = append(n.mine, m.Roles...)
		}
	}
	switch {
	case old == nil:
	case g.Channels == nil: // an update has no channels
		n.channels, n.joined, n.mine = old.channels, old.joined, old.mine
	default:
		n.channels = b.threads(old)
	}
	b.guilds[g.ID] = n
	for _, list := range [][]channel{g.Channels, g.Threads} {
		for _, c := range list {
			c.Guild = g.ID
			b.setLocked(c)
		}
	}
}

// threads forgets the channels of a guild that is received again, and returns its
// threads: archived ones are not received.
func (b *cache) threads(g *guild) (kept []string) {
	for _, id := range g.channels {
		if b.places[id].thread() {
			kept = append(kept, id)
		} else {
			delete(b.places, id)
		}
	}
	return kept
}

func (b *cache) setChannel(c channel) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.setLocked(c)
}

func (b *cache) setLocked(c channel) {
	if c.ID == "" {
		return
	}
	p := place{Guild: c.Guild, Parent: c.Parent, Kind: uint8(min(max(c.Type, 0), 255)), name: short(c.Name, 100)}
	for _, o := range c.Over {
		if (o.Allow|o.Deny)&powerModerator != 0 {
			p.over = append(p.over, o)
		}
	}
	g := b.guilds[c.Guild]
	if g != nil {
		_, known := b.places[c.ID]
		if !known {
			g.channels = append(g.channels, c.ID)
		}
	}
	b.share(&p)
	b.places[c.ID] = p
}

// share makes equal parts of a channel and the previous one use the same memory: most
// channels of a guild are alike.
func (b *cache) share(p *place) {
	if p.Parent == b.latest.Parent {
		p.Parent = b.latest.Parent
	}
	if slices.Equal(p.over, b.latest.over) {
		p.over = b.latest.over
	}
	b.latest = *p
}

// dropGuild forgets a guild.
func (b *cache) dropGuild(id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	g := b.guilds[id]
	if g != nil {
		for _, c := range g.channels {
			delete(b.places, c)
		}
		delete(b.guilds, id)
	}
}

func (b *cache) dropChannel(guild, id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.places, id)
	g := b.guilds[guild]
	if g != nil {
		i := slices.Index(g.channels, id)
		if i >= 0 {
			g.channels = slices.Delete(g.channels, i, i+1)
		}
	}
}

// change changes a guild, if it is known.
func (b *cache) change(id string, f func(g *guild)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	g := b.guilds[id]
	if g != nil {
		f(g)
	}
}

func (b *cache) setRole(id string, r guildRole) {
	b.change(id, func(g *guild) { g.roles[r.ID] = role{short(r.Name, 100), uint64(r.Power)} })
}

func (b *cache) dropRole(id, role string) {
	b.change(id, func(g *guild) { delete(g.roles, role) })
}

func (b *cache) setMine(id string, roles []string) {
	b.change(id, func(g *guild) { g.mine = slices.Clone(roles) })
}

// isMine reports whether one of the roles is the bot's.
func (b *cache) isMine(guild string, roles []string) bool {
	b.mu.RLock()
	defer b.mu.RUnlock()
	g := b.guilds[guild]
	mine := func(r string) bool { return r != guild && slices.Contains(g.mine, r) }
	return g != nil && slices.ContainsFunc(roles, mine)
}

func (b *cache) roleName(guild, id string) string {
	b.mu.RLock()
	defer b.mu.RUnlock()
	g := b.guilds[guild]
	if g != nil {
		return g.roles[id].name
	}
	return ""
}

func (b *cache) channelName(id string) string {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.places[id].name
}

// rank is a member's rank in a place, by Discord's permissions.
func (b *cache) rank(p place, id string, m *member) core.Rank {
	if m == nil || p.Guild == "" {
		return core.Member
	}
	power := bits(m.Permissions)
	if m.Permissions == "" {
		power = b.power(p, id, m.Roles)
	}
	if power&powerModerator != 0 {
		return core.Moderator
	}
	return core.Member
}

// power computes a member's permissions in a channel as Discord does: those of all
// roles, changed by the channel's overwrites.
func (b *cache) power(p place, id string, roles []string) uint64 {
	b.mu.RLock()
	defer b.mu.RUnlock()
	g := b.guilds[p.Guild]
	if g == nil {
		return 0
	}
	if g.owner != "" && g.owner == id {
		return powerModerator
	}
	power := g.roles[p.Guild].power
	for _, r := range roles {
		power |= g.roles[r].power
	}
	if power&powerAdmin != 0 {
		return powerModerator
	}
	over := p.over
	if p.thread() {
		over = b.places[p.Parent].over
	}
	return overwritten(power, over, p.Guild, id, roles)
}

// reads reports whether the bot may read the history of a guild's channel, as far as is
// known.
func (b *cache) reads(guild string, c channel) bool {
	b.mu.RLock()
	defer b.mu.RUnlock()
	g := b.guilds[guild]
	if g == nil {
		return false
	}
	power := g.roles[guild].power
	for _, r := range g.mine {
		power |= g.roles[r].power
	}
	p := place{Kind: uint8(min(max(c.Type, 0), 255))}
	if power&powerAdmin != 0 || p.thread() { // the bot receives only threads that it may read
		return true
	}
	return overwritten(power, c.Over, guild, b.self.ID, g.mine)&powerRead == powerRead
}

func overwritten(power uint64, over []overwrite, guild, id string, roles []string) uint64 {
	var allow, deny uint64
	for _, o := range over {
		switch {
		case o.ID == guild:
			power = power&^uint64(o.Deny) | uint64(o.Allow)
		case slices.Contains(roles, o.ID):
			allow, deny = allow|uint64(o.Allow), deny|uint64(o.Deny)
		}
	}
	power = power&^deny | allow
	for _, o := range over {
		if o.ID == id {
			power = power&^uint64(o.Deny) | uint64(o.Allow)
		}
	}
	return power
}

// path is the path of a channel, and of its category.
func (b *cache) path(id string, p place) (core.Path, []core.Path, error) {
	elements := []string{b.name, p.Guild, id}
	category := p.Parent
	switch {
	case p.Guild == "":
		elements, category = []string{b.name, me, id}, ""
	case p.thread() && p.Parent != "":
		elements = []string{b.name, p.Guild, p.Parent, id}
		parent, _ := b.place(p.Parent)
		category = parent.Parent
	case p.thread():
		category = ""
	}
	path, err := core.MakePath(elements...)
	if err != nil || category == "" {
		return path, nil, err
	}
	scope, err := core.MakePath(b.name, p.Guild, category)
	return path, []core.Path{scope}, err
}

// find returns the channel or thread of a name such as "#general", as seen from another
// place of the same guild.
func (b *cache) find(from core.Path, name string) (core.Path, bool) {
	name = strings.ToLower(strings.TrimPrefix(strings.TrimSpace(name), "#"))
	e := from.Elements()
	if len(e) < 3 || e[0] != b.name || name == "" {
		return core.Path{}, false
	}
	id, ok := b.findID(e[1], name)
	if !ok {
		return core.Path{}, false
	}
	p, _ := b.place(id)
	path, _, err := b.path(id, p)
	return path, err == nil
}

func (b *cache) findID(guild, name string) (string, bool) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	g := b.guilds[guild]
	if g == nil {
		return "", false
	}
	for _, id := range g.channels {
		p := b.places[id]
		if p.Kind != channelCategory && (strings.ToLower(p.name) == name || id == name) {
			return id, true
		}
	}
	return "", false
}

// bits reads a set of permissions.
func bits(text string) uint64 {
	n, _ := strconv.ParseUint(text, 10, 64)
	return n
}
