package discord

import (
	"context"
	"slices"
	"strconv"
	"time"

	"synthbot/core"
	"synthbot/core/driver"
	"synthbot/interfaces/discord/progress"
)

// takeGuildEvent handles events about guilds, channels and roles. It returns false for other events.
func (t *intake) takeGuildEvent(ctx context.Context, f gatewayEvent) bool {
	b := t.d.cache
	switch f.Type {
	case "READY":
		t.ready(ctx, f)
	case "GUILD_CREATE":
		t.guild(ctx, f)
	case "GUILD_UPDATE":
		g := decode[guildPayload](f.Data)
		if g.ID != "" {
			g.Channels, g.Threads = nil, nil
			b.setGuild(g)
			t.reopen(g.ID, "")
		}
	case "GUILD_DELETE":
		t.guildGone(f)
	case "CHANNEL_CREATE", "CHANNEL_UPDATE", "THREAD_CREATE", "THREAD_UPDATE":
		c := decode[channel](f.Data)
		b.setChannel(c)
		t.reopen(c.Guild, c.ID)
	case "CHANNEL_DELETE", "THREAD_DELETE":
		c := decode[channel](f.Data)
		b.dropChannel(c.Guild, c.ID)
		t.d.cursors.drop(func(id string, _ *cursor) bool { return id == c.ID })
	case "THREAD_LIST_SYNC":
		for _, c := range decode[guildPayload](f.Data).Threads {
			b.setChannel(c)
		}
	case "GUILD_ROLE_CREATE", "GUILD_ROLE_UPDATE", "GUILD_ROLE_DELETE":
		t.role(f)
	case "GUILD_MEMBER_UPDATE":
		t.member(f)
	default:
		return false
	}
	return true
}

// reopen allows sending again to channels of a guild that refused the bot: to all channels if channel is "", else
// to one channel, or a category with its channels.
func (t *intake) reopen(guild, channel string) {
	t.d.closed.clearWhere(func(id string) bool {
		p, ok := t.d.cache.place(id)
		return id == channel || ok && p.Guild == guild && (channel == "" || p.Parent == channel)
	})
}

func (t *intake) role(f gatewayEvent) {
	r := decode[struct {
		Guild string    `json:"guild_id"`
		ID    string    `json:"role_id"`
		Role  guildRole `json:"role"`
	}](f.Data)
	t.d.cache.change(r.Guild, func(g *guild) {
		delete(g.roles, r.ID)
		if f.Type != "GUILD_ROLE_DELETE" {
			g.roles[r.Role.ID] = role{short(r.Role.Name, 100), r.Role.Permissions}
		}
	})
	t.reopen(r.Guild, "")
}

// member updates the bot's own roles.
func (t *intake) member(f gatewayEvent) {
	m := decode[struct {
		Guild string `json:"guild_id"`
		member
	}](f.Data)
	self, _ := t.d.cache.bot()
	if m.User != nil && m.User.ID == self.ID {
		t.d.cache.change(m.Guild, func(g *guild) { g.botRoles = m.Roles })
		t.reopen(m.Guild, "")
	}
}

// ready handles the start of a new session. Missed messages of a guild are fetched when its GUILD_CREATE
// arrives, others now.
func (t *intake) ready(ctx context.Context, f gatewayEvent) {
	r := decode[ready](f.Data)
	t.d.cache.setMe(r.User, r.App.ID)
	named := make(map[string]bool, len(r.Guilds))
	for _, g := range r.Guilds {
		named[g.ID] = true
		if !f.since.IsZero() && t.d.set.BackfillCount > 0 {
			t.awaited[g.ID] = time.Now()
		}
	}
	if f.Shard == 0 && t.listed[0] == nil {
		t.jobs.Go(func() { t.d.responder.keepSynced(ctx) })
	}
	t.listed[f.Shard] = named
	t.since[f.Shard], t.unseen = f.since, maxUnseen
	t.session = newMembers()
	for _, b := range t.backlogs {
		if b.started && !b.gap && shardOf(b.guild, t.d.feed.shards) == f.Shard {
			b.gap, b.intact = true, len(b.events) // what is being fetched may have been fetched too early
		}
	}
	for id, cur := range t.d.cursors.each {
		served := shardOf(cur.Guild, t.d.feed.shards) == f.Shard
		if t.d.set.BackfillCount == 0 || !served || t.backlogs[id] != nil {
			continue
		}
		t.backlogs[id] = &backlog{channel: id, guild: cur.Guild}
		if named[cur.Guild] {
			t.awaited[cur.Guild] = time.Now() // even if no time of an earlier session is known
		} else {
			t.startFetch(ctx, t.backlogs[id])
		}
	}
}

// guild handles a guild that arrived. If it is unknown and READY did not list it, the bot was just added to it.
func (t *intake) guild(ctx context.Context, f gatewayEvent) {
	g := decode[guildPayload](f.Data)
	if g.ID == "" || g.Unavailable {
		return
	}
	fresh := !t.d.cache.known(g.ID) && !t.listed[f.Shard][g.ID]
	t.d.cache.setGuild(g)
	t.reopen(g.ID, "")
	if fresh {
		t.membership(g.ID, "added", g.Joined.Time)
	}
	t.fetchMissed(ctx, g)
	if !fresh {
		t.fetchUnknown(ctx, f.Shard, g)
	}
	delete(t.awaited, g.ID)
}

// fetchMissed fetches missed messages in the known channels of a guild that has arrived.
func (t *intake) fetchMissed(ctx context.Context, g guildPayload) {
	channels := g.all()
	for id, cur := range t.d.cursors.each {
		b := t.backlogs[id]
		if b == nil || b.started || b.guild != g.ID {
			continue
		}
		i := slices.IndexFunc(channels, func(c channel) bool { return c.ID == id })
		if i >= 0 && len(b.events) == 0 && !newer(channels[i].Last, cur.Last) {
			delete(t.backlogs, id) // there are no newer messages
			continue
		}
		t.startFetch(ctx, b)
	}
}

// maxUnseen is how many unknown channels are fetched in one session of the gateway.
const maxUnseen = 200

// fetchUnknown fetches messages since the previous session in unknown channels of a guild, because users may
// have addressed the bot there.
func (t *intake) fetchUnknown(ctx context.Context, shard int, g guildPayload) {
	since := t.since[shard]
	if since.IsZero() || t.d.set.BackfillCount == 0 {
		return
	}
	from := idAt(driver.Later(since, g.Joined.Time).Add(t.d.rest.Ahead() - progress.Slack))
	readable := []int{0, 2, channelNews, 13, threadNews, threadPublic, threadPrivate} // text, voice, news, stage
	for _, c := range g.all() {
		_, known := t.d.cursors.get(c.ID)
		if known || t.backlogs[c.ID] != nil || t.unseen <= 0 {
			continue
		}
		if !slices.Contains(readable, c.Type) || !newer(c.Last, from) || !t.d.cache.reads(c.ID) {
			continue
		}
		t.unseen--
		t.startFetch(ctx, &backlog{channel: c.ID, guild: g.ID, from: from})
	}
}

func (t *intake) guildGone(f gatewayEvent) {
	g := decode[guildPayload](f.Data)
	if g.ID == "" || g.Unavailable {
		return // an outage; the guild arrives again afterwards
	}
	if t.d.cache.known(g.ID) {
		t.membership(g.ID, "removed", time.Time{})
	}
	delete(t.listed[f.Shard], g.ID)
	t.d.cache.dropGuild(g.ID)
	t.d.cursors.drop(func(_ string, cur *cursor) bool { return cur.Guild == g.ID })
}

func (t *intake) membership(guild, what string, at time.Time) {
	path, err := core.MakePath(t.d.opt.Name, guild)
	if err != nil {
		return
	}
	if at.IsZero() { // in any time zone
		at = t.d.opt.Clock()
	}
	t.batch = append(t.batch, core.Event{Kind: core.KindMembership, Data: what, Message: core.Message{
		Path: path, ID: what + "-" + strconv.FormatInt(at.Unix(), 10), Time: at,
	}})
}
