package discord

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"synthbot/core"
	"synthbot/core/draft"
	"synthbot/core/driver"
	"synthbot/interfaces/discord/gateway"
	"synthbot/interfaces/discord/rest"
)

// timings are the driver's pauses and time limits. Tests use shorter ones.
type timings struct {
	gateway     gateway.Timings
	retry       time.Duration // the pause before the first retry of a request
	guilds      time.Duration // how long to wait for the GUILD_CREATE of a guild that READY listed
	flush       time.Duration // between two times that cursors and progress are stored
	typing      time.Duration // between two typing requests
	acknowledge time.Duration // how long an interaction waits to be on disk before it is acknowledged
	respond     time.Duration // the time limit for responding to an interaction
	draft       time.Duration // between two edits of a draft
	leftover    time.Duration // after this, a draft of an earlier process is deleted
}

var defaultTimings = timings{
	gateway: gateway.Timings{
		Patience: 20 * time.Second, Identify: 5250 * time.Millisecond, Invalid: time.Second,
		Backoff: time.Second, Longest: 2 * time.Minute,
	},
	retry: 300 * time.Millisecond, guilds: 20 * time.Second, flush: 2 * time.Second, typing: 8 * time.Second,
	acknowledge: 1500 * time.Millisecond, respond: 3 * time.Second, draft: 1500 * time.Millisecond,
	leftover: 5 * time.Minute,
}

// account holds what the parts of a driver share: the configuration, the REST client, and
// what is known about guilds, channels and messages. Each part embeds it.
type account struct {
	opt     Options
	set     settings
	timings timings
	log     *slog.Logger
	rest    *rest.Client

	notified sync.Map // keys of notifyOnce

	cache     *cache
	cursors   *cursors
	closed    *closedChannels
	drafts    *draft.Drafts
	sendQueue driver.Queue[string] // by channel; only one action sends to a channel at a time
	replies   *replies             // commands that wait for an answer, or for further ones
	tasks     driver.Tasks         // Listen waits for them before it returns
}

// selfID returns the bot's own user id. It asks Discord if the gateway has not sent it yet, and
// returns "" if that fails.
func (a *account) selfID(ctx context.Context) string {
	self, _ := a.cache.bot()
	if self.ID != "" {
		return self.ID
	}
	var me user
	if a.rest.Get(ctx, &me, "/users/@me") == nil {
		a.cache.setMe(me, "")
	}
	return me.ID
}

// placeOf returns what is known of a channel: from the gateway, from an earlier process, or from a previous lookup.
func (a *account) placeOf(channel string) (place, bool) {
	if p, ok := a.cache.place(channel); ok {
		return p, true
	}
	if cur, ok := a.cursors.get(channel); ok {
		return cur.place, true
	}
	return a.cache.lookedUp.Get(channel)
}

func (a *account) channelOf(path core.Path) (string, error) {
	e := path.Elements()
	if len(e) < 3 || len(e) > 4 || e[0] != a.opt.Name || path.IsPerson() {
		return "", core.Errorf(core.Invalid,
			"%s is not a place of %[2]s: write %[2]s/<guild>/<channel>, or leave interface_path out", path, a.opt.Name)
	}
	return e[len(e)-1], nil
}

// checkedChannel is channelOf, but returns an error unless the channel is where the path says.
// Otherwise, users who may write below one place could reach any channel by its id.
func (a *account) checkedChannel(ctx context.Context, path core.Path) (string, error) {
	id, err := a.channelOf(path)
	if err != nil {
		return "", err
	}
	p, known := a.cache.place(id)
	if !known {
		if err := a.closed.refused(id); err != nil {
			return "", err
		}
		if p, err = a.locate(ctx, id, rest.MaxTries); err != nil {
			a.markClosed(id, path, &outgoing{}, err)
			return "", rest.Failure("writing to "+path.String(), err)
		}
	}
	where, _, _ := a.cache.path(id, p)
	if where != path {
		return "", core.Errorf(core.Invalid, "there is no place %s", path)
	}
	return id, nil
}

// locate returns the place of a channel. It asks Discord if the channel is unknown.
func (a *account) locate(ctx context.Context, id string, tries int) (place, error) {
	p, known := a.placeOf(id)
	if known {
		return p, nil
	}
	var c channel
	q := rest.Request{Method: "GET", Route: "/channels/{}", IDs: []string{id}, Out: &c, Tries: tries}
	if err := a.rest.Do(ctx, q); err != nil {
		return p, err
	}
	if a.cache.known(c.Guild) {
		a.cache.setChannel(c)
	} else {
		a.cache.lookedUp.Put(id, c.place())
	}
	return c.place(), nil
}

// channelFor returns the channel of a place or, for a user, of the direct messages with them. It opens
// that channel if there is none.
func (a *account) channelFor(ctx context.Context, to core.Path) (string, error) {
	if to.Interface() != a.opt.Name || !to.IsPerson() {
		return a.checkedChannel(ctx, to)
	}
	person := to.Elements()[2]
	if channel, ok := a.cache.direct.Get(person); ok {
		return channel, nil
	}
	channel, err := a.requestID(ctx, rest.Request{
		Method: "POST", Route: "/users/@me/channels", Body: map[string]string{"recipient_id": person},
	})
	if err != nil || channel == "" {
		return "", rest.Failure("writing to that person", err)
	}
	a.cache.direct.Put(person, channel)
	return channel, nil
}

func (a *account) notify(text string) {
	text = a.opt.Name + ": " + text
	a.log.Warn(text)
	if a.opt.Admin != nil {
		a.opt.Admin(text)
	}
}

// notifyOnce informs the admins, but only the first time that it is called with a key.
func (a *account) notifyOnce(key, text string) {
	_, known := a.notified.LoadOrStore(key, true)
	if !known {
		a.notify(text)
	}
}
