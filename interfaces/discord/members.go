package discord

import (
	"context"
	"slices"
	"sync"
	"time"

	"synthbot/interfaces/discord/rest"
)

// Bounds of asking who somebody is.
const (
	maxAsked   = 200 // people in one session of the gateway
	maxMembers = 2000
	memberAge  = 10 * time.Minute
	askingTime = 20 * time.Second // for one channel: what is said there waits for it
)

// members remember what people are in guilds, as REST told it: what is fetched
// of the past comes without. Safe for concurrent use.
type members struct {
	mu    sync.Mutex
	known map[[2]string]known
	left  int // that may still be asked for in this session
}

// known is what somebody is in a guild; no member where he left it.
type known struct {
	member *member
	at     time.Time
}

func newMembers() *members { return &members{known: make(map[[2]string]known), left: maxAsked} }

// fill allows as many questions as a session may have.
func (m *members) fill() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.left = maxAsked
}

// find returns what is known of somebody; ask tells to ask for the rest.
func (m *members) find(guild, id string) (found *member, ok, ask bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	k, ok := m.known[[2]string{guild, id}]
	if ok && time.Since(k.at) < memberAge {
		return k.member, true, false
	}
	if m.left <= 0 {
		return nil, false, false
	}
	m.left--
	return nil, false, true
}

func (m *members) set(guild, id string, found *member) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.known) >= maxMembers {
		clear(m.known)
	}
	m.known[[2]string{guild, id}] = known{found, time.Now()}
}

// introduce finds out what the authors of fetched messages are in the guild, so
// that names and ranks are those of live messages: the latest first, each asked
// for once. Who is not asked for any more is a member under his user name.
func (h *history) introduce(ctx context.Context, guild string, list []message) {
	if guild == "" {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, askingTime)
	defer cancel()
	for i := range slices.Backward(list) {
		m := &list[i]
		if m.Author == nil || m.Author.Bot || m.Webhook != "" || m.Member != nil {
			continue
		}
		var err error
		if m.Member, err = h.memberOf(ctx, guild, m.Author.ID); err != nil {
			h.log.Warn("who wrote the missed messages is not known to the end", "guild", guild, "err", err)
			return
		}
	}
}

// memberOf asks what somebody is in a guild; nil for nobody, or where it is not
// asked any more.
func (h *history) memberOf(ctx context.Context, guild, id string) (*member, error) {
	found, ok, ask := h.members.find(guild, id)
	if ok || !ask {
		return found, nil
	}
	var got member
	err := h.rest.Do(ctx, rest.Request{Method: "GET", Route: "/guilds/{}/members/{}", IDs: []string{guild, id}, Out: &got})
	switch {
	case rest.NotFound(err):
		h.members.set(guild, id, nil)
		return nil, nil
	case err != nil:
		return nil, err
	}
	h.members.set(guild, id, &got)
	return &got, nil
}
