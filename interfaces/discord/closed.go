package discord

import (
	"fmt"
	"maps"
	"sync"
	"time"

	"synthbot/core"
	"synthbot/interfaces/discord/rest"
)

// refusalAge is how long nothing is sent to a channel that refused the bot, unless an event indicates that its
// permissions have changed.
const refusalAge = time.Hour

// closedChannels are the channels to which the bot cannot send. Safe for concurrent use.
type closedChannels struct {
	mu  sync.Mutex
	all map[string]refusal
}

type refusal struct {
	err   error
	since time.Time
}

func (t *closedChannels) refused(channel string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	m, ok := t.all[channel]
	if !ok || time.Since(m.since) > refusalAge {
		delete(t.all, channel)
		return nil
	}
	kind := core.Broken
	if rest.Refusal(m.err).Status == 403 {
		kind = core.Forbidden
	}
	return &core.Error{Kind: kind, Text: "the bot cannot send messages there: Discord refuses it", Err: m.err}
}

func (t *closedChannels) set(channel string, why error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.all[channel] = refusal{why, time.Now()}
}

func (t *closedChannels) clearWhere(match func(channel string) bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	maps.DeleteFunc(t.all, func(channel string, _ refusal) bool { return match(channel) })
}

// closedTo reports whether an error of sending means that the channel itself is closed to the bot, and not, for
// example, that a message or an emoji is unknown.
func closedTo(err error) bool {
	api := rest.Refusal(err)
	if api.Status != 403 && api.Status != 404 {
		return false
	}
	switch api.Code {
	case 10008, 10014, 10015, 10062, 40060, replyWithoutHistory, // message, emoji, webhook, interaction
		20009, 20016, 200000, 200001, 240000: // explicit content, slow mode, automatic moderation
		return false
	}
	return true
}

// Codes of errors.
const (
	missingPermission   = 50013
	replyWithoutHistory = 160002 // the bot may not read the channel's history, but may send other messages there
)

func lacksPermission(err error) bool { return rest.Refusal(err).Code == missingPermission }

// markClosed marks a channel if err means that it is closed, and informs the admins once. If only files or polls
// are not allowed, it does nothing.
func (a *account) markClosed(channel string, place core.Path, m *outgoing, err error) {
	if !closedTo(err) || lacksPermission(err) && (len(m.files) > 0 || m.Poll != nil) {
		return
	}
	a.closed.set(channel, err)
	a.notifyOnce("target "+channel, fmt.Sprintf("%s refuses the bot; nothing is sent there for now: %v", place, err))
}
