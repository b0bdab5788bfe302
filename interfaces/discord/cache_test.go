package discord

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"synthbot/core"
	"synthbot/core/secret"
	"synthbot/interfaces/discord/gateway"
)

func TestRank(t *testing.T) {
	in := offlineIntake(t)
	b := in.d.cache
	const keeper = "830000000000000005"
	b.change(guildID, func(g *guild) {
		g.roles[keeper], g.roles["830000000000000006"] = role{permissions: 1 << 13}, role{permissions: permAdministrator}
	})
	room := channel{ID: roomID, Guild: guildID, Overwrites: []overwrite{
		{ID: guildID, Deny: 1 << 13}, {ID: modRole, Allow: 1 << 13}, {ID: "5", Allow: 1 << 13}, {ID: "6", Deny: 1 << 13},
	}}
	b.setChannel(room)
	b.setChannel(channel{ID: topicID, Guild: guildID, Parent: roomID, Type: threadPublic})
	for name, c := range map[string]struct {
		channel, who string
		m            *member
		want         core.Rank
	}{
		"nobody":                  {hallID, annID, &member{}, core.RankMember},
		"unknown member":          {hallID, annID, nil, core.RankMember},
		"by role":                 {hallID, annID, &member{Roles: []string{keeper}}, core.RankModerator},
		"taken in this channel":   {roomID, annID, &member{Roles: []string{keeper}}, core.RankMember},
		"and in its threads":      {topicID, annID, &member{Roles: []string{keeper}}, core.RankMember},
		"given back to a role":    {roomID, annID, &member{Roles: []string{modRole}}, core.RankModerator},
		"given to a person":       {roomID, "5", &member{}, core.RankModerator},
		"taken from a person":     {roomID, "6", &member{Roles: []string{modRole}}, core.RankMember},
		"administrator":           {roomID, annID, &member{Roles: []string{"830000000000000006"}}, core.RankModerator},
		"owner":                   {roomID, "700000000000000009", &member{}, core.RankModerator},
		"as an interaction tells": {hallID, annID, &member{Permissions: new(number(8192))}, core.RankModerator},
		"which overrules":         {hallID, annID, &member{Permissions: new(number(0)), Roles: []string{keeper}}, core.RankMember},
	} {
		p, _ := b.place(c.channel)
		if got := b.rank(p, c.who, c.m); got != c.want {
			t.Errorf("%s: rank %d", name, got)
		}
	}
}

func TestNameOf(t *testing.T) {
	d := offlineIntake(t).d
	for place, want := range map[string]string{
		"discord/" + guildID + "/" + roomID: "#room", "discord/" + guildID + "/" + hallID + "/" + topicID: "#topic",
		"discord/" + guildID + "/404": "", "discord/" + guildID: "", "discord/@user/" + roomID: "", "other/" + guildID + "/" + roomID: "",
	} {
		if got := d.NameOf(core.MustPath(place)); got != want {
			t.Errorf("%s is called %q", place, got)
		}
	}
}

func TestFind(t *testing.T) {
	d := offlineIntake(t).d
	for name, want := range map[string]string{
		"#room": "discord/" + guildID + "/" + roomID, "Hall": "discord/" + guildID + "/" + hallID,
		"#topic": "discord/" + guildID + "/" + hallID + "/" + topicID, "Ground floor": "", "nowhere": "", "": "",
	} {
		if got, err := d.Find(hall(), name); got.String() != want || (err == nil) != (want != "") {
			t.Errorf("%q: %v, %v", name, got, err)
		}
	}
	if _, err := d.Find(core.MustPath("discord/@me/"+dmID), "#room"); err == nil {
		t.Error("found from a direct message")
	}
}

// A guild is received again with every session: what it has is found all the same, and
// what it has no more is not. Of its threads, only those in use are received.
func TestFindInAGuildToldAnew(t *testing.T) {
	b := newCache("discord")
	told := guildPayload{ID: guildID, Channels: []channel{{ID: hallID, Name: "hall"}, {ID: roomID, Name: "room"}}, Threads: []channel{
		{ID: topicID, Name: "topic", Type: threadPublic, Parent: hallID}, {ID: "5", Name: "rest", Type: threadPublic, Parent: hallID},
	}}
	b.setGuild(told)
	b.setGuild(guildPayload{ID: guildID}) // an update
	for range 3 {
		b.setGuild(guildPayload{ID: guildID, Channels: told.Channels[:1], Threads: told.Threads[:1]})
	}
	for name, want := range map[string]bool{"hall": true, "room": false, "topic": true, "rest": true} {
		if _, ok := b.find(hall(), name); ok != want {
			t.Errorf("%s is found: %v", name, ok)
		}
	}
	if n := len(b.guilds[guildID].channels); n != 3 {
		t.Errorf("%d channels are kept", n)
	}
	if b.dropGuild(guildID); len(b.places) > 0 {
		t.Errorf("left: %v", b.places)
	}
}

// A place's category is known without its message, also in the life after.
func TestScopes(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	state := newState()
	with := func(o *Options) { o.State = state }
	d, in := s.up(t, with)
	s.Say(hallID, annID, hello())
	in.wait(t, core.KindMessage, 1)
	until(t, "noted", func() bool { raw, _ := state.Get(t.Context(), cursorKey); return strings.Contains(string(raw), hallID) })
	next := s.bot(t, with)
	for name, d := range map[string]*Driver{"now": d, "then": next} {
		for place, want := range map[string]string{
			"discord/" + guildID + "/" + hallID:                 "[discord/" + guildID + "/" + catID + "]",
			"discord/" + guildID + "/" + hallID + "/" + topicID: "[discord/" + guildID + "/" + catID + "]",
			"discord/" + guildID + "/" + roomID:                 "[]",
			"discord/@me/" + dmID:                               "[]",
			"discord/" + guildID:                                "[]",
			"telegram/" + guildID + "/" + hallID:                "[]",
		} {
			if got := fmt.Sprint(d.Scopes(core.MustPath(place))); got != want {
				t.Errorf("%s: %s is in %s", name, place, got)
			}
		}
	}
}

func TestTwoAccounts(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	first, in := s.up(t)
	other, also := s.bot(t, func(o *Options) { o.Name = "second" }), newInbox()
	s.listen(t, other, also)
	until(t, "both", func() bool { return s.Live() == 2 && other.cache.known(guildID) })
	s.Say(hallID, annID, "to both")
	if got := in.wait(t, core.KindMessage, 1)[0].Message.Path; got != hall() {
		t.Errorf("first: %v", got)
	}
	if got := also.wait(t, core.KindMessage, 1)[0].Message.Path.String(); got != "second/"+guildID+"/"+hallID {
		t.Errorf("second: %v", got)
	}
	names := map[string]bool{}
	for _, a := range append(first.Actions(), other.Actions()...) {
		if names[a.Name] {
			t.Errorf("%s twice", a.Name)
		}
		names[a.Name] = true
	}
	if _, err := act(t, other, "message_second", map[string]any{"text": "x"}); kind(err) != core.Invalid {
		t.Errorf("another account's place: %v", err)
	}
}

func TestQueueHoldsTheGatewayBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newFeed(new(account), nil)
		big := gatewayEvent{Event: gateway.Event{Type: "x", Data: make([]byte, maxQueuedBytes*2/3)}}
		if !q.push(t.Context(), big) {
			t.Fatal("an empty queue is full")
		}
		pushed := make(chan bool, 2)
		go func() { pushed <- q.push(t.Context(), big) }()
		gone, cancel := context.WithCancel(t.Context())
		go func() { pushed <- q.push(gone, big) }()
		synctest.Wait()
		if len(pushed) != 0 {
			t.Fatal("more is taken than may wait")
		}
		cancel()
		if <-pushed {
			t.Error("pushed by whom nobody waits for")
		}
		for n := range 2 {
			if len(q.waiting) != 1 {
				t.Fatalf("%d events wait", len(q.waiting))
			}
			e := <-q.waiting
			q.room.Release(e.size())
			if n == 0 && !<-pushed {
				t.Error("not pushed although there is room")
			}
		}
		if len(q.waiting) > 0 {
			t.Error("more waits than was pushed")
		}
	})
}

func TestConfig(t *testing.T) {
	good := defaultConfig("x")
	if s, err := good.check(); err != nil || s.api.String() != "https://discord.com" || s.shards != 0 {
		t.Errorf("defaults: %+v, %v", s, err)
	}
	for want, change := range map[string]func(*Config){
		"token":   func(c *Config) { c.Token = secret.Secret{} },
		"api_url": func(c *Config) { c.APIURL = "discord.com" },
		"cdn_url": func(c *Config) { c.CDNURL = "ftp://x" },
		"shards":  func(c *Config) { c.Shards = "many" },
	} {
		c := good
		change(&c)
		if _, err := New(Options{Name: "discord", Config: c}); err == nil || !strings.HasPrefix(err.Error(), "discord: "+want+": ") {
			t.Errorf("%s: %v", want, err)
		}
	}
}
