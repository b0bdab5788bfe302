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

// An event counts as heard once it waits to be taken in. One for which there is no room
// until the end is heard again in the next session.
func TestEventThatFindsNoRoom(t *testing.T) {
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
		heard := func(what string, taken, want bool, at time.Time, waiting int) {
			t.Helper()
			if taken != want || d.feed.progress.ReceivedUntil(1) != at || len(d.feed.waiting) != waiting {
				t.Errorf("%s: %v, heard until %v, %d wait", what, taken, d.feed.progress.ReceivedUntil(1), len(d.feed.waiting))
			}
		}
		d.feed.progress.Touch(0, noon(-5))
		heard("a message", event("MESSAGE_CREATE", `{"id":"1"}`), true, noon(0), 1)
		now = noon(2)
		if !d.feed.room.TryAcquire(maxQueuedBytes - int64(len(`{"id":"1"}`))) {
			t.Fatal("the first event takes more room than it has")
		}
		cancel()
		press := fmt.Sprintf(`{"id":"5","token":"t","type":%d,"user":{"id":"%s"}}`, interactCommand, annID)
		for range 2 {
			heard("without room", event("MESSAGE_CREATE", `{"id":"3"}`), false, noon(0), 1)
			heard("a command without room", event("INTERACTION_CREATE", press), false, noon(0), 1)
		}
		if !d.responder.isNew("5") {
			t.Error("a command for which there was no room is known, and is lost when it comes again")
		}
		d.tasks.Close()
	})
}

// A shard is ready with the event that says so, and with no other, until it is
// disconnected.
func TestReadyWithItsEvent(t *testing.T) {
	s := newServer(t)
	for kind, want := range map[string]bool{"READY": true, "RESUMED": true, "GUILD_CREATE": false, "MESSAGE_CREATE": false} {
		d := s.bot(t)
		d.feed.begin(1, []int{0})
		d.feed.Event(t.Context(), gateway.Event{Type: kind, Data: json.RawMessage(`{}`)})
		if ready := d.Ready() == nil; ready != want {
			t.Errorf("with %s the shard is ready: %v", kind, ready)
		}
		d.feed.Disconnected(0)
		if ready := d.Ready() == nil; ready != want {
			t.Errorf("just after it was disconnected the shard with %s is ready: %v", kind, ready)
		}
	}
}

// The address to resume at is where a session is gone on with.
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
		t.Errorf("resumed %d times, %d times where it was wanted; identified %d times", resumes, len(visits), len(s.Identifies()))
	}
	s.Drop()
}

// While nothing happens, acknowledged heartbeats tell that nothing was missed.
func TestAliveByHeartbeats(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server) {
		state := newState()
		d := s.bot(t, func(o *Options) { o.State = state })
		s.listen(t, d, newInbox())
		within(t, time.Minute, "connected", func() bool { return d.cache.known(guildID) })
		time.Sleep(time.Hour)
		raw, _ := state.Get(t.Context(), progress.TimeKey)
		if at, err := time.Parse(time.RFC3339, string(raw)); err != nil || time.Since(at) > 3*time.Minute {
			t.Errorf("after an hour of silence everything is told until %s", raw)
		}
		if opened, _, _ := s.Counts(); opened != 1 {
			t.Errorf("%d connections were needed for an hour of silence", opened)
		}
	})
}
