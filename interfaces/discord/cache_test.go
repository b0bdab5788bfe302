package discord

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"synthbot/core"
	"synthbot/core/secret"
	"synthbot/interfaces/discord/gateway"
)

// TestRank: a user's rank follows from ownership, roles and the overwrites of the channel. The
// permissions in an interaction take precedence.
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
		"nobody":                {hallID, annID, &member{}, core.RankMember},
		"unknown member":        {hallID, annID, nil, core.RankMember},
		"by role":               {hallID, annID, &member{Roles: []string{keeper}}, core.RankModerator},
		"denied in the channel": {roomID, annID, &member{Roles: []string{keeper}}, core.RankMember},
		"and in its threads":    {topicID, annID, &member{Roles: []string{keeper}}, core.RankMember},
		"allowed for a role":    {roomID, annID, &member{Roles: []string{modRole}}, core.RankModerator},
		"allowed for a user":    {roomID, "5", &member{}, core.RankModerator},
		"denied for a user":     {roomID, "6", &member{Roles: []string{modRole}}, core.RankMember},
		"administrator":         {roomID, annID, &member{Roles: []string{"830000000000000006"}}, core.RankModerator},
		"owner":                 {roomID, "700000000000000009", &member{}, core.RankModerator},
		"by an interaction":     {hallID, annID, &member{Permissions: new(number(8192))}, core.RankModerator},
		"denied by interaction": {hallID, annID, &member{Permissions: new(number(0)), Roles: []string{keeper}}, core.RankMember},
	} {
		p, _ := b.place(c.channel)
		if got := b.rank(p, c.who, c.m); got != c.want {
			t.Errorf("%s: got rank %d, want %d", name, got, c.want)
		}
	}
}

// TestNameOf: known channels and threads have a name.
func TestNameOf(t *testing.T) {
	d := offlineIntake(t).d
	for place, want := range map[string]string{
		"discord/" + guildID + "/" + roomID: "#room", "discord/" + guildID + "/" + hallID + "/" + topicID: "#topic",
		"discord/" + guildID + "/404": "", "discord/" + guildID: "", "discord/@user/" + roomID: "", "other/" + guildID + "/" + roomID: "",
	} {
		if got := d.NameOf(core.MustPath(place)); got != want {
			t.Errorf("%s: got %q, want %q", place, got, want)
		}
	}
}

// TestFind: channels and threads of the guild are found by name, from within the guild only.
func TestFind(t *testing.T) {
	d := offlineIntake(t).d
	for name, want := range map[string]string{
		"#room": "discord/" + guildID + "/" + roomID, "Hall": "discord/" + guildID + "/" + hallID,
		"#topic": "discord/" + guildID + "/" + hallID + "/" + topicID, "Ground floor": "", "nowhere": "", "": "",
	} {
		if got, err := d.Find(hall(), name); got.String() != want || (err == nil) != (want != "") {
			t.Errorf("%q: got %v, %v, want %q", name, got, err, want)
		}
	}
	if _, err := d.Find(core.MustPath("discord/@me/"+dmID), "#room"); err == nil {
		t.Error("a channel was found from a direct message")
	}
}

// TestFindAmong: of channels with the same name, one of text is found before one of voice, and that before a thread. If
// there are two of text, only an id names one of them.
func TestFindAmong(t *testing.T) {
	d := offlineIntake(t).d
	here := "discord/" + guildID + "/"
	for _, tc := range []struct {
		add  channel
		want string // of "general"
	}{
		{channel{ID: "701", Type: threadPublic, Parent: hallID}, here + hallID + "/701"},
		{channel{ID: "702", Type: channelVoice}, here + "702"},
		{channel{ID: "703", Name: "General"}, here + "703"},
		{channel{ID: "704"}, ""},
	} {
		tc.add.Guild, tc.add.Name = guildID, cmp.Or(tc.add.Name, "general")
		d.cache.setChannel(tc.add)
		if got, err := d.Find(hall(), "#general"); got.String() != tc.want || (err == nil) != (tc.want != "") {
			t.Errorf("beside %s: got %v, %v, want %q", tc.add.ID, got, err, tc.want)
		}
		if got, err := d.Find(hall(), tc.add.ID); err != nil || !strings.HasSuffix(got.String(), "/"+tc.add.ID) {
			t.Errorf("got %v, %v, want the channel %s", got, err, tc.add.ID)
		}
	}
}

// TestFindInAGuildReceivedAgain: a guild is received again with every session. Channels that it no
// longer has are not found. Threads are, because only active ones are received.
func TestFindInAGuildReceivedAgain(t *testing.T) {
	b := newCache("discord")
	d := &Driver{account: &account{cache: b}}
	received := guildPayload{ID: guildID, Channels: []channel{{ID: hallID, Name: "hall"}, {ID: roomID, Name: "room"}}, Threads: []channel{
		{ID: topicID, Name: "topic", Type: threadPublic, Parent: hallID}, {ID: "5", Name: "rest", Type: threadPublic, Parent: hallID},
	}}
	b.setGuild(received)
	b.setGuild(guildPayload{ID: guildID}) // an update
	for range 3 {
		b.setGuild(guildPayload{ID: guildID, Channels: received.Channels[:1], Threads: received.Threads[:1]})
	}
	for name, want := range map[string]bool{"hall": true, "room": false, "topic": true, "rest": true} {
		if _, err := d.Find(hall(), name); (err == nil) != want {
			t.Errorf("%s: got %v, want it found: %v", name, err, want)
		}
	}
	if n := len(b.guilds[guildID].channels); n != 3 {
		t.Errorf("got %d channels, want 3", n)
	}
	if b.dropGuild(guildID); len(b.places) > 0 {
		t.Errorf("after the guild was dropped, got %v, want no places", b.places)
	}
}

// TestScopes: the category of a place is known, also after a restart, before its next message.
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
	for name, d := range map[string]*Driver{"first process": d, "next process": next} {
		for place, want := range map[string]string{
			"discord/" + guildID + "/" + hallID:                 "[discord/" + guildID + "/" + catID + "]",
			"discord/" + guildID + "/" + hallID + "/" + topicID: "[discord/" + guildID + "/" + catID + "]",
			"discord/" + guildID + "/" + roomID:                 "[]",
			"discord/@me/" + dmID:                               "[]",
			"discord/" + guildID:                                "[]",
			"telegram/" + guildID + "/" + hallID:                "[]",
		} {
			if got := fmt.Sprint(d.Scopes(core.MustPath(place))); got != want {
				t.Errorf("%s: %s: got %s, want %s", name, place, got, want)
			}
		}
	}
}

// TestTwoAccounts: two accounts have their own paths and actions, and neither sends to places of
// the other.
func TestTwoAccounts(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	first, in := s.up(t)
	other, also := s.bot(t, func(o *Options) { o.Name = "second" }), newInbox()
	s.listen(t, other, also)
	until(t, "both", func() bool { return s.Live() == 2 && other.cache.known(guildID) })
	s.Say(hallID, annID, "to both")
	if got := in.wait(t, core.KindMessage, 1)[0].Message.Path; got != hall() {
		t.Errorf("first account: got %v, want %v", got, hall())
	}
	if got := also.wait(t, core.KindMessage, 1)[0].Message.Path.String(); got != "second/"+guildID+"/"+hallID {
		t.Errorf("second account: got %v", got)
	}
	names := map[string]bool{}
	for _, a := range append(first.Actions(), other.Actions()...) {
		if names[a.Name] {
			t.Errorf("both accounts have an action %s", a.Name)
		}
		names[a.Name] = true
	}
	if _, err := act(t, other, "message_second", map[string]any{"text": "x"}); kind(err) != core.Invalid {
		t.Errorf("a place of the other account: got %v, want an invalid request", err)
	}
}

// TestQueueHoldsTheGatewayBack: an event for which the queue has no room waits until there is room
// or its context ends.
func TestQueueHoldsTheGatewayBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newFeed(new(account), nil)
		big := gatewayEvent{Event: gateway.Event{Type: "x", Data: make([]byte, maxQueuedBytes*2/3)}}
		if !q.push(t.Context(), big) {
			t.Fatal("an empty queue refused an event")
		}
		pushed := make(chan bool, 2)
		go func() { pushed <- q.push(t.Context(), big) }()
		gone, cancel := context.WithCancel(t.Context())
		go func() { pushed <- q.push(gone, big) }()
		synctest.Wait()
		if len(pushed) != 0 {
			t.Fatal("the queue took more than it has room for")
		}
		cancel()
		if <-pushed {
			t.Error("an event was pushed after its context ended")
		}
		for n := range 2 {
			if len(q.waiting) != 1 {
				t.Fatalf("%d events wait, want 1", len(q.waiting))
			}
			e := <-q.waiting
			q.room.Release(e.size())
			if n == 0 && !<-pushed {
				t.Error("the event was not pushed when there was room")
			}
		}
		if len(q.waiting) > 0 {
			t.Error("more events wait than were pushed")
		}
	})
}

// TestConfig: the defaults are valid, and an error names the bad key.
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
			t.Errorf("%s: got %v, want an error that names the key", want, err)
		}
	}
}
