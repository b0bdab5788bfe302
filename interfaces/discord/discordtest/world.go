package discordtest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Ids of what every server begins with.
const (
	BotID   = "900000000000000001"
	AppID   = "900000000000000002"
	GuildID = "800000000000000001"

	HallID     = "810000000000000001" // a channel in the category
	RoomID     = "810000000000000002" // a channel in no category
	TopicID    = "810000000000000003" // a thread of the hall, which the gateway does not send
	ForumID    = "810000000000000004"
	VoiceID    = "810000000000000005"
	CategoryID = "810000000000000009"
	DirectID   = "820000000000000001" // Ann's direct messages
	GroupID    = "820000000000000002" // a group of Ann, Bob and the bot

	AnnID   = "700000000000000001"
	BobID   = "700000000000000002" // a moderator by role
	OwnerID = "700000000000000009" // the guild's

	KeeperRole = "830000000000000001" // may manage messages
	BotRole    = "830000000000000002"
)

// Types of channel.
const (
	Text         = 0
	Direct       = 1
	Voice        = 2
	Group        = 3
	Category     = 4
	News         = 5
	NewsThread   = 10
	PublicThread = 11
	Forum        = 15
)

// Person is a user.
type Person struct {
	ID    string
	Name  string // the username; default: one made from the id
	Shown string // the display name
	Bot   bool
	// Closed users accept no direct messages from the bot.
	Closed bool
	direct string // the channel of direct messages
}

func (p *Person) json() map[string]any {
	m := map[string]any{"id": p.ID, "username": p.Name, "discriminator": "0", "avatar": nil, "public_flags": 0}
	if p.Shown != "" {
		m["global_name"] = p.Shown
	}
	if p.Bot {
		m["bot"] = true
	}
	return m
}

// Role is a role of a guild.
type Role struct {
	ID, Name string
	Power    uint64
	Bot      string // the bot whose own role it is
}

// Member is a user's membership of a guild.
type Member struct {
	Nick  string
	Roles []string
}

// Guild is a guild. Its first role, with the guild's id, is that of @everyone.
type Guild struct {
	ID, Name, Owner string
	Roles           []Role
	Members         map[string]*Member
	Unavailable     bool // READY lists it, but GUILD_CREATE is not sent
	Joined          time.Time
}

// Overwrite changes the permissions of a role or user in one channel.
type Overwrite struct {
	ID          string
	Allow, Deny uint64
}

// Channel is a channel, a thread, or direct messages.
type Channel struct {
	ID, Guild, Parent, Name string
	Type                    int
	Over                    []Overwrite
	People                  []string // of direct messages and groups, without the bot
	Silent                  bool     // a thread that GUILD_CREATE does not list
	// Refuse, if not 0, is the error code with which every request about the channel is refused, with status 403.
	Refuse int

	messages []*Message
	nonces   map[string]*Message
	typing   int
}

// thread reports whether the channel is a thread.
func (c *Channel) thread() bool { return c.Type >= 10 && c.Type <= 12 }

func (c *Channel) json() map[string]any {
	m := map[string]any{"id": c.ID, "type": c.Type, "flags": 0, "last_message_id": nil}
	n := len(c.messages)
	if n > 0 {
		m["last_message_id"] = c.messages[n-1].ID
	}
	for key, value := range map[string]string{"guild_id": c.Guild, "name": c.Name, "parent_id": c.Parent} {
		if value != "" {
			m[key] = value
		}
	}
	if len(c.Over) > 0 {
		list := []any{}
		for _, o := range c.Over {
			list = append(list, map[string]any{"id": o.ID, "type": 0, "allow": strconv.FormatUint(o.Allow, 10), "deny": strconv.FormatUint(o.Deny, 10)})
		}
		m["permission_overwrites"] = list
	}
	return m
}

// begin adds the users, the guild and the channels that every server begins with.
func (s *Server) begin() {
	for _, p := range []Person{
		{ID: BotID, Name: "aria", Bot: true}, {ID: AnnID, Name: "ann", Shown: "Ann", direct: DirectID}, {ID: BobID, Name: "bob", Shown: "Bob"},
		{ID: OwnerID, Name: "olga", Shown: "Olga"},
	} {
		s.people[p.ID] = &p
	}
	s.guilds = []*Guild{house(GuildID)}
	for _, c := range []Channel{
		{ID: CategoryID, Guild: GuildID, Type: Category, Name: "Ground floor"},
		{ID: HallID, Guild: GuildID, Parent: CategoryID, Name: "hall"},
		{ID: RoomID, Guild: GuildID, Name: "room"},
		{ID: TopicID, Guild: GuildID, Parent: HallID, Type: PublicThread, Name: "topic", Silent: true},
		{ID: ForumID, Guild: GuildID, Type: Forum, Name: "forum"},
		{ID: VoiceID, Guild: GuildID, Type: Voice, Name: "voice"},
		{ID: DirectID, Type: Direct, People: []string{AnnID}},
		{ID: GroupID, Type: Group, People: []string{AnnID, BobID}},
	} {
		s.open(c)
	}
}

// house returns a guild like the first one.
func house(id string) *Guild {
	return &Guild{
		ID: id, Name: "House", Owner: OwnerID, Joined: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
		Roles: []Role{
			{ID: id, Name: "@everyone", Power: mayAll}, {ID: KeeperRole, Name: "Keepers", Power: MayManage}, {ID: BotRole, Name: "Aria", Bot: BotID},
		},
		Members: map[string]*Member{
			BotID: {Roles: []string{BotRole}}, BobID: {Roles: []string{KeeperRole}}, OwnerID: {},
		},
	}
}

// AddPerson adds a user.
func (s *Server) AddPerson(p Person) {
	s.mu.Lock()
	defer s.unlock()
	s.people[p.ID] = &p
}

// AddGuild adds a guild like the first one, without channels, and sends the event that the bot
// joined it. change, if not nil, changes the guild before that.
func (s *Server) AddGuild(id string, change func(*Guild)) {
	s.mu.Lock()
	defer s.unlock()
	g := house(id)
	g.Joined = time.Now().UTC()
	if change != nil {
		change(g)
	}
	s.guilds = append(s.guilds, g)
	s.dispatch(id, "", "GUILD_CREATE", s.guildJSON(g))
}

// RemoveGuild removes the bot from a guild.
func (s *Server) RemoveGuild(id string) {
	s.mu.Lock()
	defer s.unlock()
	s.guilds = slices.DeleteFunc(s.guilds, func(g *Guild) bool { return g.ID == id })
	s.dispatch(id, "", "GUILD_DELETE", map[string]any{"id": id})
}

// ChangeGuild changes a guild, without an event for the bot.
func (s *Server) ChangeGuild(id string, f func(*Guild)) {
	s.mu.Lock()
	defer s.unlock()
	f(s.guild(id))
}

// AddChannel adds a channel and returns its id, which is a new one if c has none. The bot gets
// an event, except for direct messages and Silent threads.
func (s *Server) AddChannel(c Channel) string {
	s.mu.Lock()
	defer s.unlock()
	if c.ID == "" {
		c.ID = s.id()
	}
	made := s.open(c)
	if c.Guild != "" && !c.Silent {
		kind := "CHANNEL_CREATE"
		if made.thread() {
			kind = "THREAD_CREATE"
		}
		s.dispatch(c.Guild, c.ID, kind, made.json())
	}
	return c.ID
}

// ChangeChannel changes a channel; the bot gets the event.
func (s *Server) ChangeChannel(id string, f func(*Channel)) {
	s.mu.Lock()
	defer s.unlock()
	c := s.channels[id]
	f(c)
	if c.Guild != "" {
		s.dispatch(c.Guild, id, "CHANNEL_UPDATE", c.json())
	}
}

// RefuseChannel makes every request about a channel fail with status 403 and an error code,
// without an event; 0 ends that.
func (s *Server) RefuseChannel(id string, code int) {
	s.mu.Lock()
	defer s.unlock()
	s.channels[id].Refuse = code
}

// open adds a channel; s.mu is held.
func (s *Server) open(c Channel) *Channel {
	c.nonces = map[string]*Message{}
	s.channels[c.ID] = &c
	return &c
}

// guild returns a guild; nil if there is none. s.mu is held.
func (s *Server) guild(id string) *Guild {
	for _, g := range s.guilds {
		if g.ID == id {
			return g
		}
	}
	return nil
}

// person returns a user, and adds unknown ones. s.mu is held.
func (s *Server) person(id string) *Person {
	p := s.people[id]
	if p == nil {
		p = &Person{ID: id}
		s.people[id] = p
	}
	if p.Name == "" {
		p.Name = "user" + id
	}
	return p
}

// member returns a user's membership of a guild, and adds unknown ones. s.mu is held.
func (s *Server) member(guild, id string) *Member {
	g := s.guild(guild)
	if g == nil {
		return &Member{}
	}
	if g.Members[id] == nil {
		g.Members[id] = &Member{}
	}
	return g.Members[id]
}

func (m *Member) json() map[string]any {
	roles := m.Roles
	if roles == nil {
		roles = []string{}
	}
	return map[string]any{"nick": m.Nick, "roles": roles, "joined_at": "2026-01-01T00:00:00+00:00", "deaf": false, "mute": false, "flags": 0}
}

// guildJSON returns the data of GUILD_CREATE: all channels, also those that the bot does
// not see, and the threads that it sees. s.mu is held.
func (s *Server) guildJSON(g *Guild) map[string]any {
	m := map[string]any{
		"id": g.ID, "name": g.Name, "owner_id": g.Owner, "joined_at": g.Joined.Format(time.RFC3339), "unavailable": false, "large": false,
		"member_count": len(g.Members), "emojis": []any{}, "features": []any{},
	}
	roles, channels, threads := []any{}, []any{}, []any{}
	for _, r := range g.Roles {
		role := map[string]any{"id": r.ID, "name": r.Name, "permissions": strconv.FormatUint(r.Power, 10)}
		if r.Bot != "" {
			role["tags"] = map[string]any{"bot_id": r.Bot}
		}
		roles = append(roles, role)
	}
	for _, id := range s.sorted() {
		c := s.channels[id]
		switch {
		case c.Guild != g.ID || c.Silent || c.thread() && !s.may(c, BotID, MayView):
		case c.thread():
			threads = append(threads, c.json())
		default:
			channels = append(channels, c.json())
		}
	}
	me := s.member(g.ID, BotID).json()
	me["user"] = s.people[BotID].json()
	m["roles"], m["channels"], m["threads"], m["members"] = roles, channels, threads, []any{me}
	return m
}

func (s *Server) sorted() []string {
	ids := make([]string, 0, len(s.channels))
	for id := range s.channels {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, func(a, b string) int {
		if newer(a, b) {
			return 1
		}
		return -1
	})
	return ids
}

// AddFile adds a file to the file server and returns its address, which is valid for a day.
func (s *Server) AddFile(name string, data []byte) string {
	s.mu.Lock()
	defer s.unlock()
	path := "/attachments/" + HallID + "/" + s.id() + "/" + name
	s.files[path] = data
	return s.signed(path, time.Now().Add(24*time.Hour))
}

// signed returns a file's address with its signature.
func (s *Server) signed(path string, until time.Time) string {
	return fmt.Sprintf("%s%s?ex=%x&is=%x&hm=%s&", s.URL, path, until.Unix(), time.Now().Unix(), mac(path, until.Unix()))
}

// mac returns a simple replacement for the platform's signature.
func mac(path string, until int64) string { return fmt.Sprintf("%x", len(path)*31+int(until%997)) }

// decode decodes JSON from the bot; missing values are zero.
func decode[T any](raw json.RawMessage) T {
	var v T
	_ = json.Unmarshal(raw, &v)
	return v
}

// list returns JSON of a list, never null.
func list(raw json.RawMessage) json.RawMessage {
	t := strings.TrimSpace(string(raw))
	if t == "" || t == "null" {
		return json.RawMessage("[]")
	}
	return raw
}
