package discord

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"synthbot/core"
	"synthbot/core/draft"
	"synthbot/core/driver"
	"synthbot/core/recent"
	"synthbot/interfaces/discord/gateway"
	"synthbot/interfaces/discord/rest"
)

// timings are the waits of the driver; tests have shorter ones.
type timings struct {
	gateway     gateway.Timings
	retry       time.Duration // before a request is repeated for the first time
	guilds      time.Duration // for a guild that was announced
	flush       time.Duration // between two times of storing what was seen
	typing      time.Duration // between two signs of typing
	acknowledge time.Duration // how long an interaction waits for the disk
	respond     time.Duration // how long the answer to an interaction may take
	draft       time.Duration // between two edits of a growing message
	leftover    time.Duration // before a draft of an earlier process is deleted
}

var defaultTimings = timings{
	gateway: gateway.Timings{
		Patience: 20 * time.Second, Identify: 5250 * time.Millisecond, Invalid: time.Second,
		Backoff: time.Second, Longest: 2 * time.Minute,
	},
	retry: 300 * time.Millisecond, guilds: 20 * time.Second, flush: 2 * time.Second, typing: 8 * time.Second,
	acknowledge: 1500 * time.Millisecond, respond: 3 * time.Second, draft: 1500 * time.Millisecond, leftover: 5 * time.Minute,
}

// account is what the parts of a driver share: the configuration, the way to the
// platform, and what is known of it. Each part embeds it.
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
	sendQueue driver.Queue[string] // one action at a time sends to a channel
	replies   *replies             // commands that wait for their answer, or for more of it
	tasks     driver.Tasks         // which Listen waits for at its end
}

func newAccount(o Options, set settings, t timings) *account {
	log := o.Log.With("interface", o.Name)
	return &account{
		opt: o, set: set, timings: t, log: log,
		cache: newCache(o.Name), cursors: newCursors(o.State), closed: &closedChannels{all: make(map[string]refusal)},
		replies: &replies{o.State, log, recent.NewShared[string, *arrival](maxArrivals)},
	}
}

// whoAmI is the bot's own id, also before the gateway said it. It is empty if that
// cannot be asked.
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

// maxDirect is how many channels are remembered by user, and by id. A forgotten one is
// requested again.
const maxDirect = 1000

// placeOf is what is known of a channel: from the gateway, from an earlier process, or
// because it was asked for.
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

// checkedChannel is channelOf, with an error if the channel is not where the path says.
// Without it, a user who may write to a place and below would reach every channel by its id.
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

// locate returns the place of a channel. It asks Discord if nothing is known of it.
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

// reach is the channel of a place, or of direct messages with a user, which is opened if
// there is none.
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

// notify informs the admins, and the log.
func (a *account) notify(text string) {
	text = a.opt.Name + ": " + text
	a.log.Warn(text)
	if a.opt.Admin != nil {
		a.opt.Admin(text)
	}
}

// notifyOnce informs the admins the first time that it is called with a key.
func (a *account) notifyOnce(key, text string) {
	_, known := a.notified.LoadOrStore(key, true)
	if !known {
		a.notify(text)
	}
}
