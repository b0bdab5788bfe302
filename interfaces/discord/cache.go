package discord

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	"synthbot/core"
	"synthbot/core/recent"
)

// Kinds of channel.
const (
	channelDirect   = 1
	channelVoice    = 2
	channelGroup    = 3
	channelCategory = 4
	channelNews     = 5
	threadNews      = 10
	threadPublic    = 11
	threadPrivate   = 12
)

// A member with one of permsModerator is a moderator: administrator, kick members, ban members, manage
// channels, guild, messages or threads, time out members.
const (
	permAdministrator = 1 << 3
	permsModerator    = permAdministrator | 1<<1 | 1<<2 | 1<<4 | 1<<5 | 1<<13 | 1<<34 | 1<<40
)

// permsRead are the permissions to see a channel and to read its history.
const permsRead = 1<<10 | 1<<16

// me replaces the guild in the paths of direct messages.
const me = "@me"

// place is what is known of a channel.
type place struct {
	Guild      string `json:"guild,omitempty"`
	Parent     string `json:"parent,omitempty"` // of a thread: its channel; of a channel: its category
	Kind       uint8  `json:"kind,omitempty"`
	name       string
	overwrites []overwrite // only those that concern permsModerator or permsRead
}

func (p place) thread() bool {
	return p.Kind == threadNews || p.Kind == threadPublic || p.Kind == threadPrivate
}

func (p place) private() bool { return p.Guild == "" && p.Kind != channelGroup }

// place returns the place of the channel, without permission overwrites.
func (c *channel) place() place {
	return place{Guild: c.Guild, Parent: c.Parent, Kind: uint8(min(max(c.Type, 0), 255)), name: short(c.Name, 100)}
}

type role struct {
	name        string
	permissions number
}

type guild struct {
	owner    string
	roles    map[string]role
	botRoles []string // the bot's own roles
	channels []string
}

// cache holds what the gateway sent about guilds and channels. It holds no members and no
// messages. Safe for concurrent use.
type cache struct {
	name    string                         // of the interface
	locales *recent.Shared[string, string] // by user; only interactions contain them

	mu     sync.RWMutex
	self   user
	app    string
	guilds map[string]*guild
	places map[string]place
	latest place // the place that was set last

	direct   *recent.Shared[string, string] // channels of direct messages, by user
	lookedUp *recent.Shared[string, place]  // channels that the gateway did not send, by id
}

// maxRecent is the size of the caches of locales, of direct messages and of channels that were looked up.
const maxRecent = 1000

func newCache(name string) *cache {
	return &cache{
		name: name, guilds: make(map[string]*guild), places: make(map[string]place),
		locales: recent.NewShared[string, string](maxRecent), lookedUp: recent.NewShared[string, place](maxRecent),
		direct: recent.NewShared[string, string](maxRecent),
	}
}

func (c *cache) bot() (self user, app string) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.self, c.app
}

func (c *cache) setMe(self user, app string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.self, c.app = self, strings.Clone(cmp.Or(app, self.ID))
}

func (c *cache) place(id string) (place, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	p, ok := c.places[id]
	return p, ok
}

// guild returns a guild; an empty one if it is unknown. c.mu is held.
func (c *cache) guild(id string) *guild { return cmp.Or(c.guilds[id], &guild{}) }

func (c *cache) known(guild string) bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.guilds[guild] != nil
}

// newGuild converts a guild, without its channels. c.mu is held.
func (c *cache) newGuild(g *guildPayload) *guild {
	n := &guild{owner: g.Owner, roles: make(map[string]role, len(g.Roles))}
	for _, r := range g.Roles {
		n.roles[r.ID] = role{r.Name, r.Permissions}
		if r.Tags.Bot != "" && r.Tags.Bot == c.self.ID {
			n.botRoles = append(n.botRoles, r.ID)
		}
	}
	for _, m := range g.Members {
		if m.User != nil && m.User.ID == c.self.ID {
			n.botRoles = append(n.botRoles, m.Roles...)
		}
	}
	return n
}

func (c *cache) setGuild(g guildPayload) {
	c.mu.Lock()
	defer c.mu.Unlock()
	old, n := c.guilds[g.ID], c.newGuild(&g)
	switch {
	case old == nil:
	case g.Channels == nil: // an update has no channels
		n.channels, n.botRoles = old.channels, old.botRoles
	default: // g has all channels, but only active threads
		for _, id := range old.channels {
			if c.places[id].thread() {
				n.channels = append(n.channels, id)
			} else {
				delete(c.places, id)
			}
		}
	}
	c.guilds[g.ID] = n
	for _, ch := range g.all() {
		ch.Guild = g.ID
		c.setLocked(ch)
	}
}

func (c *cache) setChannel(ch channel) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.setLocked(ch)
}

func (c *cache) setLocked(ch channel) {
	if ch.ID == "" {
		return
	}
	p := ch.place()
	for _, o := range ch.Overwrites {
		if (o.Allow|o.Deny)&(permsModerator|permsRead) != 0 {
			p.overwrites = append(p.overwrites, o)
		}
	}
	g := c.guilds[ch.Guild]
	_, known := c.places[ch.ID]
	if g != nil && !known {
		g.channels = append(g.channels, ch.ID)
	}
	// Successive channels often have the same parent and overwrites. They share the memory for these.
	if p.Parent == c.latest.Parent {
		p.Parent = c.latest.Parent
	}
	if slices.Equal(p.overwrites, c.latest.overwrites) {
		p.overwrites = c.latest.overwrites
	}
	c.latest, c.places[ch.ID] = p, p
}

func (c *cache) dropGuild(id string) {
	c.change(id, func(g *guild) {
		for _, channel := range g.channels {
			delete(c.places, channel)
		}
		delete(c.guilds, id)
	})
}

func (c *cache) dropChannel(guildID, id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.places, id)
	g := c.guild(guildID)
	g.channels = slices.DeleteFunc(g.channels, func(other string) bool { return other == id })
}

func (c *cache) change(id string, f func(g *guild)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	g := c.guilds[id]
	if g != nil {
		f(g)
	}
}

// hasBotRole reports whether one of the roles is the bot's; @everyone does not count.
func (c *cache) hasBotRole(guild string, roles []string) bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	g := c.guild(guild)
	return slices.ContainsFunc(roles, func(r string) bool { return r != guild && slices.Contains(g.botRoles, r) })
}

func (c *cache) roleName(guild, id string) string {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.guild(guild).roles[id].name
}

func (c *cache) rank(p place, id string, m *member) core.Rank {
	if m == nil || p.Guild == "" {
		return core.RankMember
	}
	c.mu.RLock()
	defer c.mu.RUnlock()
	power := c.permissions(p, id, m.Roles)
	if m.Permissions != nil {
		power = *m.Permissions
	}
	if power&permsModerator != 0 {
		return core.RankModerator
	}
	return core.RankMember
}

// reads reports whether the bot may read the history of a guild's channel, according to the cache.
func (c *cache) reads(id string) bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	p := c.places[id]
	return c.permissions(p, c.self.ID, c.guild(p.Guild).botRoles)&permsRead == permsRead
}

// permissions computes a member's permissions in a channel as Discord does: those of all
// roles, changed by the channel's overwrites. c.mu is held.
func (c *cache) permissions(p place, id string, roles []string) number {
	g := c.guild(p.Guild)
	power := g.roles[p.Guild].permissions // of everyone
	for _, r := range roles {
		power |= g.roles[r].permissions
	}
	if g.owner != "" && g.owner == id || power&permAdministrator != 0 {
		return ^number(0)
	}
	over := p.overwrites
	if p.thread() {
		over = c.places[p.Parent].overwrites
	}
	var allow, deny number
	for _, o := range over {
		switch {
		case o.ID == p.Guild:
			power = power&^o.Deny | o.Allow
		case slices.Contains(roles, o.ID):
			allow, deny = allow|o.Allow, deny|o.Deny
		}
	}
	power = power&^deny | allow
	for _, o := range over {
		if o.ID == id {
			power = power&^o.Deny | o.Allow
		}
	}
	return power
}

// path returns the path of a channel, and that of its category, if any.
func (c *cache) path(id string, p place) (core.Path, []core.Path, error) {
	elements := []string{c.name, p.Guild, id}
	category := p.Parent
	switch {
	case p.Guild == "":
		elements, category = []string{c.name, me, id}, ""
	case p.thread() && p.Parent != "":
		elements = []string{c.name, p.Guild, p.Parent, id}
		parent, _ := c.place(p.Parent)
		category = parent.Parent
	case p.thread():
		category = ""
	}
	path, err := core.MakePath(elements...)
	if err != nil || category == "" {
		return path, nil, err
	}
	scope, err := core.MakePath(c.name, p.Guild, category)
	return path, []core.Path{scope}, err
}

func (c *cache) pathOf(id string) (core.Path, error) {
	p, _ := c.place(id)
	path, _, err := c.path(id, p)
	return path, err
}

// Find returns the channel or thread with a name such as "#general", or with an id, in the guild of another place. Of
// several with the name, a channel of text comes before one of voice, and that before a thread. The error is of kind
// core.Invalid if there is none, or if there are several.
func (d *Driver) Find(from core.Path, name string) (core.Path, error) {
	plain := strings.ToLower(strings.TrimPrefix(strings.TrimSpace(name), "#"))
	e, c := from.Elements(), d.cache
	var channels []string
	if len(e) >= 3 && e[0] == c.name && plain != "" {
		c.change(e[1], func(g *guild) { channels = slices.Clone(g.channels) })
	}
	var texts, voices, threads []string
	for _, id := range channels {
		p, _ := c.place(id)
		switch {
		case p.Kind == channelCategory:
		case id == plain:
			return c.pathOf(id)
		case strings.ToLower(p.name) != plain:
		case p.thread():
			threads = append(threads, id)
		case p.Kind == channelVoice:
			voices = append(voices, id)
		default:
			texts = append(texts, id)
		}
	}
	for _, found := range [][]string{texts, voices, threads} {
		if len(found) > 1 {
			return core.Path{}, core.Errorf(core.Invalid, "several channels are named %q: give interface_path", name)
		}
		if len(found) == 1 {
			return c.pathOf(found[0])
		}
	}
	return core.Path{}, core.Errorf(core.Invalid, "there is no channel %q here", name)
}
