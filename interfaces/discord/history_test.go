package discord

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"synthbot/core"
	"synthbot/interfaces/discord/discordtest"
	"synthbot/interfaces/discord/gateway"
)

// A missed message with a field of a kind that nobody knows keeps no other from being found.
func TestMissedMessageOfANewForm(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	state := newState()
	first, in := s.bot(t, func(o *Options) { o.State = state }), newInbox()
	stop := s.listen(t, first, in)
	until(t, "connected", func() bool { return first.cache.known(guildID) })
	s.Say(hallID, annID, "live")
	in.wait(t, core.KindMessage, 1)
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	s.Forget()
	s.Say(hallID, annID, "odd", discordtest.Saying{Extra: map[string]any{"embeds": "none", "components": []any{1}}})
	s.Say(hallID, annID, "plain")
	_, in = s.up(t, func(o *Options) { o.State = state })
	in.wait(t, core.KindMessage, 2)
	if got := strings.Join(in.texts(), " "); got != "odd plain" {
		t.Errorf("found: %s", got)
	}
}

func TestRestartFindsWhatWasMissed(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	state := newState()
	first, in := s.bot(t, func(o *Options) { o.State = state }), newInbox()
	stop := s.listen(t, first, in)
	until(t, "connected", func() bool { return first.cache.known(guildID) })
	s.Say(hallID, annID, hello())
	s.Say(topicID, annID, hello())
	s.Say(dmID, annID, "private")
	in.wait(t, core.KindMessage, 3)
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	s.Forget()
	for i := range 120 {
		s.Say(hallID, annID, fmt.Sprintf("missed %d", i))
	}
	s.Say(topicID, annID, "missed in the topic")
	s.Say(dmID, annID, "missed in private")
	_, in = s.up(t, func(o *Options) { o.State = state })
	s.Say(hallID, annID, "live")
	in.wait(t, core.KindMessage, 123)
	var hall []string
	for _, e := range in.all() {
		switch e.Message.Path.String() {
		case "discord/" + guildID + "/" + hallID:
			hall = append(hall, e.Message.Text)
		case "discord/" + guildID + "/" + hallID + "/" + topicID:
			if e.Message.Text != "missed in the topic" {
				t.Errorf("in the topic: %q", e.Message.Text)
			}
		case "discord/@me/" + dmID:
			if !e.Message.Private || e.Message.Addressed != core.AddressedDirect {
				t.Errorf("in private: %+v", e.Message)
			}
		default:
			t.Errorf("elsewhere: %v", e.Message.Path)
		}
	}
	if len(hall) != 121 || hall[0] != "missed 0" || hall[119] != "missed 119" || hall[120] != "live" {
		t.Errorf("in the hall: %d, %q", len(hall), hall)
	}
	if n := len(s.Calls("GET /channels/" + dmID)); n != 2 {
		t.Errorf("the direct messages were asked for %d times: once what they are, once what was missed", n)
	}
}

func TestNothingMissedIsNotAskedFor(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	state := newState()
	d, in := s.bot(t, func(o *Options) { o.State = state }), newInbox()
	stop := s.listen(t, d, in)
	until(t, "connected", func() bool { return d.cache.known(guildID) })
	s.Say(hallID, annID, hello())
	in.wait(t, core.KindMessage, 1)
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	_, in = s.up(t, func(o *Options) { o.State = state })
	s.Say(roomID, annID, "elsewhere")
	in.wait(t, core.KindMessage, 1)
	if got := s.Calls("GET /channels/" + hallID + "/messages"); len(got) != 0 {
		t.Errorf("asked %d times", len(got))
	}
}

// A channel that was deleted meanwhile is asked for once.
func TestMissedInAChannelThatIsGone(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	d := s.bot(t)
	now := time.Now()
	d.cursors.recordStored("812", place{Guild: guildID}, idAt(now.Add(-time.Minute)), now, true)
	s.listen(t, d, newInbox())
	until(t, "it is forgotten", func() bool { _, known := d.cursors.get("812"); return !known })
	if n := len(s.Calls("GET /channels/812/messages")); n != 1 {
		t.Errorf("asked %d times", n)
	}
}

func TestBackfillIsBounded(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	d, in := s.up(t, func(o *Options) { o.Config.BackfillCount = 30 })
	s.Say(hallID, annID, "first")
	in.wait(t, core.KindMessage, 1)
	s.Forget()
	for i := range 80 {
		s.Say(hallID, annID, fmt.Sprint(i))
	}
	s.Drop()
	until(t, "a new session", func() bool { return s.Live() == 1 })
	s.Say(hallID, annID, "last")
	in.wait(t, core.KindMessage, 32)
	until(t, "noted", func() bool { cur, _ := d.cursors.get(hallID); return cur.Seen.After(time.Time{}) })
	if got := in.texts(); got[len(got)-1] != "last" || len(got) != 32 {
		t.Errorf("%d: %q", len(got), got)
	}
}

func TestUnknownThreadIsLookedUp(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	_, in := s.up(t)
	for i := range 5 {
		s.Say(topicID, annID, fmt.Sprint(i))
	}
	for i, e := range in.wait(t, core.KindMessage, 5) {
		if e.Message.Path.String() != "discord/"+guildID+"/"+hallID+"/"+topicID || e.Message.Text != fmt.Sprint(i) {
			t.Errorf("%d: %s in %s", i, e.Message.Text, e.Message.Path)
		}
	}
	if n := len(s.Calls("GET /channels/" + topicID)); n != 1 {
		t.Errorf("looked up %d times", n)
	}
}

func TestGroupMessagesAreNotPrivate(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	_, in := s.up(t)
	s.Say(groupID, annID, "hello all")
	m := in.wait(t, core.KindMessage, 1)[0].Message
	if m.Private || m.Addressed != "" || m.Path.String() != "discord/@me/"+groupID {
		t.Errorf("%+v", m)
	}
}

// A session is lost while a channel's messages are being fetched: what came
// before is taken, what comes behind the gap is fetched anew.
func TestGapBehindAGap(t *testing.T) {
	in := offlineIntake(t)
	box := newInbox()
	in.in = box
	said := func(id, text string) gatewayEvent {
		return gatewayEvent{Event: gateway.Event{Type: "MESSAGE_CREATE", Data: []byte(`{"id":"` + id + `","channel_id":"` + hallID + `","guild_id":"` + guildID +
			`","content":"` + text + `","author":{"id":"` + annID + `","username":"ann"}}`)}}
	}
	h := &backlog{started: true, guild: guildID}
	in.backlogs[hallID] = h
	ctx, cancel := context.WithCancel(t.Context())
	in.hold(ctx, hallID, h, said("1300000000000000001", "before"))
	in.event(ctx, gatewayEvent{Event: gateway.Event{Type: "READY", Data: []byte(`{"user":{"id":"` + botID + `"},"session_id":"new"}`)}})
	in.hold(ctx, hallID, h, said("1300000000000000009", "behind"))
	in.hold(ctx, hallID, h, gatewayEvent{Event: gateway.Event{Type: "MESSAGE_DELETE", Data: []byte(`{}`)}})
	p, _ := in.d.cache.place(hallID)
	in.finish(ctx, fetched{channel: hallID, place: p})
	cancel()
	in.jobs.Wait()
	if got := strings.Join(box.texts(), ","); got != "before" {
		t.Errorf("taken: %s", got)
	}
	again := in.backlogs[hallID]
	if cur, _ := in.d.cursors.get(hallID); again == nil || !again.started || len(again.events) != 2 || cur.Last != "1300000000000000001" {
		t.Errorf("then %+v from %+v", again, cur)
	}
}

// A session is lost while a thread that nobody knows is looked up, and nothing may
// be fetched: what came afterwards is taken all the same.
func TestGapWhereNothingIsFetched(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server) {
		_, in := s.up(t, func(o *Options) { o.Config.BackfillCount = 0 })
		looking, release := make(chan struct{}, 1), make(chan struct{})
		s.Delay(func(c discordtest.Call) time.Duration {
			if c.Is("GET /channels/" + topicID) {
				signal(looking)
				select {
				case <-release:
				case <-t.Context().Done():
				}
			}
			return 0
		})
		s.Say(topicID, annID, "one")
		<-looking
		s.Forget()
		s.Drop()
		until(t, "a new session", func() bool { return s.Live() == 1 && len(s.Identifies()) == 2 })
		s.Say(topicID, annID, "two")
		s.Say(hallID, annID, "elsewhere")
		in.wait(t, core.KindMessage, 1)
		close(release)
		in.wait(t, core.KindMessage, 3)
		if got := strings.Join(in.texts(), " "); got != "elsewhere one two" {
			t.Errorf("came in: %s", got)
		}
	})
}

// More than may wait: what is beyond is fetched.
func TestMoreThanMayWait(t *testing.T) {
	in := offlineIntake(t)
	h := &backlog{started: true, guild: guildID}
	for range maxHeld + 5 {
		in.hold(t.Context(), hallID, h, gatewayEvent{Event: gateway.Event{Type: "MESSAGE_CREATE"}})
	}
	if len(h.events) != maxHeld || !h.gap || h.intact != maxHeld {
		t.Errorf("%d wait, a gap: %v behind %d", len(h.events), h.gap, h.intact)
	}
}

// When room is wanted, direct messages stay: of those the platform tells nobody.
func TestDirectMessagesAreRememberedLongest(t *testing.T) {
	for name, c := range map[string]struct{ direct, others, keptDirect, keptOthers int }{
		"few":  {100, 400, 100, 350},
		"many": {450, 50, 400, 50},
	} {
		all := newCursors(newState())
		at := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
		for i := range c.direct {
			all.recordStored(fmt.Sprint("d", i), place{Kind: channelDirect}, "1", at.Add(time.Duration(i)*time.Second), true)
		}
		for i := range c.others {
			all.recordStored(fmt.Sprint("o", i), place{Guild: guildID}, "1", at.Add(time.Hour), true)
		}
		all.recordStored("one more", place{Guild: guildID}, "1", at, true)
		direct, others := 0, 0
		for _, id := range all.list() {
			if strings.HasPrefix(id, "d") {
				direct++
			} else if id != "one more" {
				others++
			}
		}
		if direct != c.keptDirect || others != c.keptOthers {
			t.Errorf("%s: %d and %d are kept", name, direct, others)
		}
		if _, ok := all.get(fmt.Sprint("d", c.direct-1)); !ok {
			t.Errorf("%s: the latest is forgotten", name)
		}
	}
}
