package discord

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"synthbot/core/driver"
	"synthbot/interfaces/discord/discordtest"
)

// TestReady: the driver is ready while every shard has a session and events are stored. A short
// interruption does not count.
func TestReady(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server) {
		d, in := s.bot(t), newInbox()
		in.patience = time.Hour
		ready := func(pause time.Duration, want bool) {
			t.Helper()
			time.Sleep(pause)
			if err := d.Ready(); (err == nil) != want {
				t.Errorf("after %s: got %v, want ready: %v", pause, err, want)
			}
		}
		ready(0, false)
		s.listen(t, d, in)
		within(t, time.Minute, "ready", func() bool { return d.Ready() == nil })
		ready(10*time.Minute, true)
		s.Gateway(func(g *discordtest.Settings) { g.Closed = true })
		s.Drop()
		ready(25*time.Second, true)
		ready(5*time.Minute, false)
		s.Gateway(func(g *discordtest.Settings) { g.Closed = false })
		within(t, 5*time.Minute, "ready again", func() bool { return d.Ready() == nil })
		in.mu.Lock()
		in.fail = 20
		in.mu.Unlock()
		s.Say(hallID, annID, "hello")
		ready(2*time.Minute, false)
		within(t, 10*time.Minute, "ready again", func() bool { return d.Ready() == nil })
	})
}

// unreadState is a State whose next reads fail.
type unreadState struct {
	driver.State
	left atomic.Int32
}

func (u *unreadState) Get(ctx context.Context, key string) ([]byte, error) {
	if u.left.Add(-1) >= 0 {
		return nil, errors.New("connection refused")
	}
	return u.State.Get(ctx, key)
}

// TestListenWhileTheStoreIsAway checks that Listen waits for a store that cannot be read, and then connects.
func TestListenWhileTheStoreIsAway(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server) {
		state := &unreadState{State: newState()}
		state.left.Store(10)
		_, in := s.up(t, func(o *Options) { o.State = state })
		s.Say(hallID, annID, "hello")
		within(t, time.Minute, "received", func() bool { return len(in.all()) > 0 })
	})
}
