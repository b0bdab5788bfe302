package discord

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"synthbot/core/driver"
	"synthbot/core/recent"
	"synthbot/interfaces/discord/rest"
)

// account is what the parts of a driver share: the configuration, the way to the
// platform, and what is known of it. Each part embeds it.
type account struct {
	name    string
	set     settings
	timings timings
	log     *slog.Logger
	clock   func() time.Time
	state   driver.State
	notices *notices
	rest    *rest.Client

	cache     *cache
	cursors   *cursors
	closed    *closedChannels
	sendQueue driver.Queue[string] // one action at a time sends to a channel
	replies   *replies             // commands that wait for their answer, or for more of it
	tasks     driver.Tasks         // which Listen waits for at its end
}

func newAccount(o Options, set settings, t timings) *account {
	a := &account{
		name: o.Name, set: set, timings: t, log: o.Log.With("interface", o.Name), clock: o.Clock, state: o.State,
		cache: newCache(o.Name), closed: &closedChannels{all: make(map[string]mark)},
	}
	a.notices = &notices{name: a.name, log: a.log, tell: o.Admin, sent: make(map[string]bool)}
	a.cursors = newCursors(a.state)
	a.replies = &replies{state: a.state, log: a.log, taken: recent.NewShared[string, <-chan struct{}](maxArrivals)}
	return a
}

// whoAmI is the bot's own id, also before the gateway said it. It is empty if that
// cannot be asked.
func (a *account) whoAmI(ctx context.Context) string {
	self, _ := a.cache.me()
	if self.ID != "" {
		return self.ID
	}
	var me user
	if a.rest.Get(ctx, &me, "/users/@me") == nil {
		a.cache.setMe(me, "")
	}
	return me.ID
}

// placeOf is what is known of a channel, from the gateway or from an earlier process.
func (a *account) placeOf(channel string) (place, bool) {
	p, known := a.cache.place(channel)
	if known {
		return p, true
	}
	cur, known := a.cursors.get(channel)
	return cur.place, known
}

// notices inform the admins. Safe for concurrent use.
type notices struct {
	name string
	log  *slog.Logger
	tell func(string) // nil: only the log is informed

	mu   sync.Mutex
	sent map[string]bool
}

// notify informs the admins, and the log.
func (n *notices) notify(text string) {
	text = n.name + ": " + text
	n.log.Warn(text)
	if n.tell != nil {
		n.tell(text)
	}
}

// once informs the admins the first time that it is called with a key.
func (n *notices) once(key, text string) {
	n.mu.Lock()
	sent := n.sent[key]
	n.sent[key] = true
	n.mu.Unlock()
	if !sent {
		n.notify(text)
	}
}
