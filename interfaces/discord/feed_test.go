package discord

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"synthbot/core"
	"synthbot/interfaces/discord/discordtest"
	"synthbot/interfaces/discord/gateway"
	"synthbot/interfaces/discord/progress"
)

// TestEventWithoutRoom: an event counts as received when it is queued. One for which the queue has
// no room until the end does not, so that the next session receives it again.
func TestEventWithoutRoom(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server) {
		now := noon(0)
		d := s.bot(t, func(o *Options) {
			o.Clock = func() time.Time { return now }
			o.Dial = func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("no way") }
		})
		ctx, cancel := context.WithCancel(t.Context())
		event := func(kind, data string) bool {
			return d.feed.Event(ctx, gateway.Event{Type: kind, Data: json.RawMessage(data)})
		}
		check := func(what string, taken, want bool, at time.Time, waiting int) {
			t.Helper()
			if taken != want || d.feed.progress.ReceivedUntil(1) != at || len(d.feed.waiting) != waiting {
				t.Errorf("%s: queued %v, want %v; received until %v, want %v; %d wait, want %d",
					what, taken, want, d.feed.progress.ReceivedUntil(1), at, len(d.feed.waiting), waiting)
			}
		}
		d.feed.progress.Touch(0, noon(-5))
		check("a message", event("MESSAGE_CREATE", `{"id":"1"}`), true, noon(0), 1)
		now = noon(2)
		if !d.feed.room.TryAcquire(maxQueuedBytes - int64(len(`{"id":"1"}`))) {
			t.Fatal("the first event takes more room than it has")
		}
		cancel()
		press := fmt.Sprintf(`{"id":"5","token":"t","type":%d,"user":{"id":"%s"}}`, interactCommand, annID)
		for range 2 {
			check("without room", event("MESSAGE_CREATE", `{"id":"3"}`), false, noon(0), 1)
			check("a command without room", event("INTERACTION_CREATE", press), false, noon(0), 1)
		}
		if known, _ := d.replies.arrived.Get("5"); known != nil {
			t.Error("a command for which there was no room counts as known, and would be ignored when it arrives again")
		}
		d.tasks.Close()
	})
}

// TestReadyWithItsEvent: a shard becomes ready with READY or RESUMED and no other event, and stays
// ready for a moment after it is disconnected.
func TestReadyWithItsEvent(t *testing.T) {
	s := newServer(t)
	for kind, want := range map[string]bool{"READY": true, "RESUMED": true, "GUILD_CREATE": false, "MESSAGE_CREATE": false} {
		d := s.bot(t)
		d.feed.begin(1, []int{0})
		d.feed.Event(t.Context(), gateway.Event{Type: kind, Data: json.RawMessage(`{}`)})
		if ready := d.Ready() == nil; ready != want {
			t.Errorf("after %s: ready %v, want %v", kind, ready, want)
		}
		d.feed.Disconnected(0)
		if ready := d.Ready() == nil; ready != want {
			t.Errorf("after %s, just disconnected: ready %v, want %v", kind, ready, want)
		}
	}
}

// TestResumeAddress: a session is resumed at the address that READY named.
func TestResumeAddress(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	visits := make(chan string, 100)
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		visits <- r.URL.Path
		s.ServeHTTP(w, r)
	}))
	t.Cleanup(other.Close)
	s.Gateway(func(g *discordtest.Settings) { g.ResumeURL = "ws" + strings.TrimPrefix(other.URL, "http") + "/gateway" })
	_, in := s.up(t)
	for n := range 3 {
		s.Drop()
		s.Say(hallID, annID, "missed")
		in.wait(t, core.KindMessage, n+1)
	}
	if _, resumes, _ := s.Counts(); resumes != 3 || len(visits) != 3 || len(s.Identifies()) != 1 {
		t.Errorf("resumed %d times, %d of them at the address, want 3; identified %d times, want 1", resumes, len(visits), len(s.Identifies()))
	}
	s.Drop()
}

// TestAliveByHeartbeats: while no events arrive, acknowledged heartbeats show that none was missed.
func TestAliveByHeartbeats(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server) {
		state := newState()
		d := s.bot(t, func(o *Options) { o.State = state })
		s.listen(t, d, newInbox())
		within(t, time.Minute, "connected", func() bool { return d.cache.known(guildID) })
		time.Sleep(time.Hour)
		raw, _ := state.Get(t.Context(), progress.TimeKey)
		if at, err := time.Parse(time.RFC3339, string(raw)); err != nil || time.Since(at) > 3*time.Minute {
			t.Errorf("after an hour of silence, received until %s, want at most 3 minutes ago", raw)
		}
		if opened, _, _ := s.Counts(); opened != 1 {
			t.Errorf("got %d connections in an hour of silence, want 1", opened)
		}
	})
}

// TestFirstSessionIsStored checks that the very first session is stored although the driver is already stopping, as
// when another worker takes its shard over: a direct message that comes in between cannot be fetched.
func TestFirstSessionIsStored(t *testing.T) {
	in := offlineIntake(t)
	in.d.feed.begin(1, []int{0})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	in.d.feed.Event(ctx, readyEvent("first"))
	raw, err := in.d.opt.State.Get(t.Context(), progress.SessionsKey)
	if err != nil || !strings.Contains(string(raw), `"first"`) {
		t.Errorf("got the sessions %s, %v; want the first one", raw, err)
	}
	if raw, err = in.d.opt.State.Get(t.Context(), progress.TimeKey); err != nil || len(raw) == 0 {
		t.Errorf("got the time %s, %v; want that of the first session", raw, err)
	}
}

// TestStoppedAtReady checks that a driver that stops before it has queued the start of a session leaves the stored
// time as it was: the next driver fetches messages since then.
func TestStoppedAtReady(t *testing.T) {
	in := offlineIntake(t)
	feed, state := in.d.feed, in.d.opt.State
	was := in.d.opt.Clock().Add(-time.Hour).UTC().Format(time.RFC3339)
	if err := state.Put(t.Context(), progress.TimeKey, []byte(was)); err != nil {
		t.Fatal(err)
	}
	if err := feed.progress.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	feed.begin(1, []int{0})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if !feed.room.TryAcquire(maxQueuedBytes) || feed.Event(ctx, readyEvent("next")) {
		t.Fatal("an event was queued after the end")
	}
	feed.store(t.Context(), true)
	if raw, err := state.Get(t.Context(), progress.TimeKey); string(raw) != was || err != nil {
		t.Errorf("got the time %s, %v; want %s", raw, err, was)
	}
}

func readyEvent(session string) gateway.Event {
	return gateway.Event{
		Type: "READY", Data: []byte(`{"user":{"id":"1"}}`), Session: gateway.Session{ID: session, Seq: 1},
	}
}
