package discord

import (
	"context"
	"slices"
	"sync"
	"time"

	"synthbot/core/recent"
	"synthbot/interfaces/discord/rest"
)

// Limits of asking for members.
const (
	maxRequested = 200 // members in one session of the gateway
	maxMembers   = 1000
	memberAge    = 10 * time.Minute
	askingTime   = 20 * time.Second // for one channel: its events wait for it
)

// members are the guild members that were asked for: fetched messages come without them.
// Safe for concurrent use.
type members struct {
	mu    sync.Mutex
	known recent.Cache[[2]string, known] // by guild and user
	left  int                            // that may still be asked for in this session
}

// known is a user's member object; nil if the user has left the guild.
type known struct {
	member *member
	at     time.Time
}

func newMembers() *members {
	return &members{known: recent.NewCache[[2]string, known](maxMembers), left: maxRequested}
}

// fill allows as many requests as a session may have.
func (m *members) fill() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.left = maxRequested
}

// find returns a member that is known; ask reports whether an unknown one may be
// requested.
func (m *members) find(guild, id string) (found *member, ok, ask bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	k, ok := m.known.Get([2]string{guild, id})
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
	m.known.Put([2]string{guild, id}, known{found, time.Now()})
}

// introduce adds the authors' members to fetched messages, the latest first, so that names
// and ranks are those of live messages. Without one, an author counts as a plain member.
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
			h.log.Warn("authors of missed messages not asked for", "guild", guild, "err", err)
			return
		}
	}
}

// memberOf asks for a user's member; nil if there is none, or too many were asked for.
func (h *history) memberOf(ctx context.Context, guild, id string) (*member, error) {
	found, ok, ask := h.members.find(guild, id)
	if ok || !ask {
		return found, nil
	}
	var got member
	err := h.rest.Get(ctx, &got, "/guilds/{}/members/{}", guild, id)
	switch {
	case err == nil:
		found = &got
	case !rest.NotFound(err):
		return nil, err
	}
	h.members.set(guild, id, found)
	return found, nil
}
