package discord

import (
	"context"
	"slices"
	"time"

	"synthbot/interfaces/discord/rest"
)

// Limits of asking for members: fetched messages come without them.
const (
	maxRequested = 200 // members in one session of the gateway
	maxMembers   = 1000
	memberAge    = 10 * time.Minute
	askingTime   = 20 * time.Second // for one channel: its events wait for it
)

// known is a user's member object; nil if the user has left the guild.
type known struct {
	member *member
	at     time.Time
}

// refill allows as many requests as a session may have.
func (h *history) refill() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.left = maxRequested
}

// addMembers adds the authors' members to fetched messages, the latest first, so that names
// and ranks are those of live messages. Without one, an author counts as a plain member.
func (h *history) addMembers(ctx context.Context, guild string, list []message) {
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
	key := [2]string{guild, id}
	h.mu.Lock()
	found, ok := h.members.Get(key)
	ok = ok && time.Since(found.at) < memberAge
	if ok || h.left <= 0 {
		h.mu.Unlock()
		if !ok {
			return nil, nil
		}
		return found.member, nil
	}
	h.left--
	h.mu.Unlock()
	got := &member{}
	err := h.rest.Get(ctx, got, "/guilds/{}/members/{}", guild, id)
	if rest.NotFound(err) {
		got, err = nil, nil
	}
	if err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.members.Put(key, known{got, time.Now()})
	return got, nil
}
