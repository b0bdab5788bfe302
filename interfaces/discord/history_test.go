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

// TestMissedMessageOfANewForm: a missed message with a field of an unknown form does not prevent others
// from being found.
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
		t.Errorf("got %s, want odd and plain", got)
	}
}

// TestRestartFindsWhatWasMissed: after a restart, missed messages of channels, threads and direct
// messages are received in order.
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
				t.Errorf("thread: got %q", e.Message.Text)
			}
		case "discord/@me/" + dmID:
			if !e.Message.Private || e.Message.Addressed != core.AddressedDirect {
				t.Errorf("direct message: got %+v, want it private", e.Message)
			}
		default:
			t.Errorf("got a message in %v", e.Message.Path)
		}
	}
	if len(hall) != 121 || hall[0] != "missed 0" || hall[119] != "missed 119" || hall[120] != "live" {
		t.Errorf("#hall: got %d messages, want missed 0 to 119 and live: %q", len(hall), hall)
	}
	if n := len(s.Calls("GET /channels/" + dmID)); n != 2 {
		t.Errorf("direct messages: got %d requests, want one for the channel and one for the messages", n)
	}
}

// TestNothingMissedIsNotAskedFor: no messages of a channel are requested if it has no new one.
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
		t.Errorf("got %d requests, want 0", len(got))
	}
}

// TestAnnouncedGuildIsAwaited: the known channels of a guild that READY lists are not fetched before the guild arrives,
// even if no time of an earlier session is known.
func TestAnnouncedGuildIsAwaited(t *testing.T) {
	in := offlineIntake(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // requests are not made
	in.d.set.BackfillCount = 10
	now := time.Now()
	in.d.cursors.recordStored(hallID, place{Guild: guildID}, idAt(now), now, true)
	in.event(ctx, gatewayEvent{Event: gateway.Event{Type: "READY", Data: []byte(`{"guilds":[{"id":"` + guildID + `"}]}`)}})
	in.startOverdue(ctx)
	if b := in.backlogs[hallID]; b == nil || b.started {
		t.Errorf("got %+v, want a backlog that waits", b)
	}
	in.awaited[guildID] = now.Add(-in.d.timings.guilds)
	in.startOverdue(ctx)
	in.jobs.Wait()
	if b := in.backlogs[hallID]; b == nil || !b.started {
		t.Errorf("got %+v, want a backlog that is fetched, because the guild is overdue", b)
	}
}

// TestMissedInAChannelThatIsGone: the messages of a deleted channel are requested once.
func TestMissedInAChannelThatIsGone(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	d := s.bot(t)
	now := time.Now()
	d.cursors.recordStored("812", place{Guild: guildID}, idAt(now.Add(-time.Minute)), now, true)
	s.listen(t, d, newInbox())
	until(t, "it is forgotten", func() bool { _, known := d.cursors.get("812"); return !known })
	if n := len(s.Calls("GET /channels/812/messages")); n != 1 {
		t.Errorf("got %d requests, want 1", n)
	}
}

// TestBackfillIsBounded: at most BackfillCount missed messages of a channel are fetched.
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
		t.Errorf("got %d messages, want first, 30 missed ones and last: %q", len(got), got)
	}
}

// TestUnknownThreadIsLookedUp: the place of a thread that the gateway did not announce is requested once.
func TestUnknownThreadIsLookedUp(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	_, in := s.up(t)
	for i := range 5 {
		s.Say(topicID, annID, fmt.Sprint(i))
	}
	for i, e := range in.wait(t, core.KindMessage, 5) {
		if e.Message.Path.String() != "discord/"+guildID+"/"+hallID+"/"+topicID || e.Message.Text != fmt.Sprint(i) {
			t.Errorf("message %d: got %s in %s", i, e.Message.Text, e.Message.Path)
		}
	}
	if n := len(s.Calls("GET /channels/" + topicID)); n != 1 {
		t.Errorf("got %d requests, want 1", n)
	}
}

// TestGroupMessagesAreNotPrivate: messages of a group chat are neither private nor addressed to the bot.
func TestGroupMessagesAreNotPrivate(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	_, in := s.up(t)
	s.Say(groupID, annID, "hello all")
	m := in.wait(t, core.KindMessage, 1)[0].Message
	if m.Private || m.Addressed != "" || m.Path.String() != "discord/@me/"+groupID {
		t.Errorf("got %+v, want a message that is neither private nor addressed", m)
	}
}

// TestGapBehindAGap: if a session is lost while missed messages of a channel are fetched, events before
// the new gap are stored, and messages after it are fetched again.
func TestGapBehindAGap(t *testing.T) {
	in := offlineIntake(t)
	box := newInbox()
	in.in.Inbox = box
	said := func(id, text string) gatewayEvent {
		return gatewayEvent{Event: gateway.Event{Type: "MESSAGE_CREATE", Data: []byte(`{"id":"` + id + `","channel_id":"` + hallID + `","guild_id":"` + guildID +
			`","content":"` + text + `","author":{"id":"` + annID + `","username":"ann"}}`)}}
	}
	h := &backlog{channel: hallID, guild: guildID, started: true}
	in.backlogs[hallID] = h
	ctx, cancel := context.WithCancel(t.Context())
	in.hold(ctx, h, said("1300000000000000001", "before"))
	in.event(ctx, gatewayEvent{Event: gateway.Event{Type: "READY", Data: []byte(`{"user":{"id":"` + botID + `"},"session_id":"new"}`)}})
	in.hold(ctx, h, said("1300000000000000009", "behind"))
	in.hold(ctx, h, gatewayEvent{Event: gateway.Event{Type: "MESSAGE_DELETE", Data: []byte(`{}`)}})
	h.place, _ = in.d.cache.place(hallID)
	in.finish(ctx, h)
	cancel()
	in.jobs.Wait()
	if got := strings.Join(box.texts(), ","); got != "before" {
		t.Errorf("stored %s, want before", got)
	}
	again := in.backlogs[hallID]
	if cur, _ := in.d.cursors.get(hallID); again == nil || !again.started || len(again.events) != 2 || cur.Last != "1300000000000000001" {
		t.Errorf("got backlog %+v and cursor %+v, want a second fetch after the first message", again, cur)
	}
}

// TestGapWhereNothingIsFetched: if a session is lost while an unknown thread is looked up, and nothing
// may be fetched, later messages are still received.
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
			t.Errorf("got %s, want elsewhere, one and two", got)
		}
	})
}

// TestMoreThanMayWait: at most maxHeld events of a channel wait. The rest is a gap, which is fetched.
func TestMoreThanMayWait(t *testing.T) {
	in := offlineIntake(t)
	h := &backlog{channel: hallID, guild: guildID, started: true}
	for range maxHeld + 5 {
		in.hold(t.Context(), h, gatewayEvent{Event: gateway.Event{Type: "MESSAGE_CREATE"}})
	}
	if len(h.events) != maxHeld || !h.gap || h.intact != maxHeld {
		t.Errorf("%d events wait, gap %v after %d; want %d and a gap", len(h.events), h.gap, h.intact, maxHeld)
	}
}

// TestMissedAfterALongOutage: missed messages that cannot be fetched for half an hour are fetched afterwards, also by
// the next process. Meanwhile, later messages of the channel are received.
func TestMissedAfterALongOutage(t *testing.T) {
	for name, restart := range map[string]bool{"same process": false, "next process": true} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, s *server) {
				state, route := newState(), "GET /channels/"+hallID+"/messages"
				start := func() (*inbox, func() error) {
					d, in := s.bot(t, func(o *Options) { o.State = state }), newInbox()
					in.patience = time.Hour
					stop := s.listen(t, d, in)
					within(t, time.Minute, "connected", func() bool { return d.cache.known(guildID) })
					return in, stop
				}
				in, stop := start()
				s.Say(hallID, annID, hello())
				in.wait(t, core.KindMessage, 1)
				_ = stop()
				time.Sleep(time.Hour)
				s.Forget()
				s.Say(hallID, annID, "missed 1")
				s.Say(hallID, annID, "missed 2")
				s.Fail(func(c discordtest.Call) (f discordtest.Fault) {
					if c.Is(route) {
						f.Kind = discordtest.Broken
					}
					return f
				})
				in, stop = start()
				time.Sleep(30 * time.Minute)
				s.Say(hallID, annID, "live")
				in.wait(t, core.KindMessage, 1)
				want := "live, missed 1, missed 2"
				if restart {
					_ = stop()
					in, _ = start()
					want = "missed 1, missed 2, live" // the inbox of this test does not know of the live one
				}
				if n := len(s.Calls(route)); n > 100 {
					t.Errorf("%d requests in half an hour", n)
				}
				s.Fail(nil)
				in.wait(t, core.KindMessage, strings.Count(want, ",")+1)
				if got := strings.Join(in.texts(), ", "); got != want {
					t.Errorf("got %s, want %s", got, want)
				}
				asked := len(s.Calls(route))
				time.Sleep(time.Hour)
				if n := len(s.Calls(route)); n != asked {
					t.Errorf("%d requests after the messages were fetched", n-asked)
				}
			})
		})
	}
}
