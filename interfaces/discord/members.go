package discord

import (
	"context"
	"slices"
	"time"

	"synthbot/core/recent"
	"synthbot/interfaces/discord/rest"
)

// Limits of asking for members: fetched messages come without them.
const (
	maxRequested = 200 // members in one session of the gateway
	maxMembers   = 1000
	askingTime   = 20 * time.Second // for one channel: its events wait for it
)

// refill forgets members, and allows as many requests as a session may have.
func (h *history) refill() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.members, h.left = recent.NewCache[[2]string, *member](maxMembers), maxRequested
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
	if ok || h.left <= 0 {
		h.mu.Unlock()
		return found, nil
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
	h.members.Put(key, got)
	return got, nil
}
