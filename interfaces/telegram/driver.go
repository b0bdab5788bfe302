package telegram

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strconv"
	"sync/atomic"

	"synthbot/core/driver"

	"synthbot/core"
	"synthbot/core/watch"
	"synthbot/interfaces/telegram/botapi"
)

// Driver is the interface to one bot account. Its actions work from New on,
// whether or not Listen runs. Safe for concurrent use; Listen is called once at
// a time.
type Driver struct {
	opt     Options
	log     *slog.Logger
	api     *botapi.Client
	places  *places
	ranks   *ranks
	presses *presses
	send    *delivery
	marks   *marks
	refused atomic.Bool // the server does not know the token any more
	running atomic.Pointer[running]
}

// running is what exists while Listen runs.
type running struct {
	inbox core.Inbox
	tasks *driver.Tasks
	life  context.Context
	abort context.CancelCauseFunc
}

var (
	_ core.Interface          = (*Driver)(nil)
	_ core.TypingIndicator    = (*Driver)(nil)
	_ core.RecordingIndicator = (*Driver)(nil)
	_ watch.Observer          = (*Driver)(nil)
	_ core.Reachable          = (*Driver)(nil)
	_ core.Readier            = (*Driver)(nil)
)

// New makes a driver. It makes no calls yet: a wrong token is an error of Listen.
func New(o Options) (*Driver, error) {
	if !regexp.MustCompile(`^[a-z0-9_.-]{1,40}$`).MatchString(o.Name) { // actions are named after it
		return nil, fmt.Errorf("interface name %q: only a-z, 0-9, _, . and - are possible, at most 40", o.Name)
	}
	token := o.Config.Token.Reveal()
	wrong := o.Config.Wrong()
	if wrong != "" || token == "" {
		return nil, fmt.Errorf("%s: token: %s", o.Name, cmp.Or(wrong, "there is none; @BotFather gives one"))
	}
	if err := o.Config.Webhook.Validate(); err != nil {
		return nil, fmt.Errorf("%s: webhook: %w", o.Name, err)
	}
	d := &Driver{opt: o, log: o.Log.With("interface", o.Name), places: newPlaces()}
	d.send = &delivery{opt: &d.opt, log: d.log, places: d.places, keys: newSigner(token), receive: d.receive}
	api, err := botapi.New(botapi.Options{
		Name: o.Name, URL: o.Config.APIURL, Token: token, Pace: o.Config.Pace != "off", Timeout: o.Config.Timeout,
		Log: d.log, Clock: o.Clock, State: o.State, Dial: o.Dial,
		Hooks: botapi.Hooks{
			Chat: d.places.now, Migrated: d.migrated, Sign: d.send.keys.moved, Revoked: d.unauthorised, Admin: o.Admin,
		},
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", o.Name, err)
	}
	d.api, d.send.api = api, api
	d.presses = &presses{api: api, log: d.log, waiting: map[string]chan struct{}{}, used: map[[2]int64]string{}}
	d.marks = &marks{next: map[core.Path]candidate{}, all: map[markKey]chan struct{}{}}
	d.ranks = newRanks(&d.opt, d.log, api, d.later)
	accounts, _, _ := d.accounts(context.Background())
	d.places.account = int64(slices.Index(accounts, d.account()))
	d.loadPlaces(context.Background())
	d.send.drafts = newDrafts(d.send, d.later)
	return d, nil
}

// Name is the interface's name.
func (d *Driver) Name() string { return d.opt.Name }

// Type is the kind of interface, whatever its table is called.
func (d *Driver) Type() string { return "telegram" }

// Listen takes updates in until ctx ends or the platform refuses the token in any call.
func (d *Driver) Listen(ctx context.Context, in core.Inbox) error {
	life, abort := context.WithCancelCause(ctx)
	tasks := &driver.Tasks{Most: 256} // nothing in the background is worth blocking for
	d.running.Store(&running{in, tasks, life, abort})
	defer func() {
		abort(nil)
		tasks.Close()
		d.running.Store(nil)
		d.savePlaces(context.WithoutCancel(ctx))
		d.api.Close()
	}()
	err := d.listen(life, in)
	cause := context.Cause(life)
	switch {
	case ctx.Err() != nil:
		return nil
	case botapi.IsCode(cause, 401, 404):
		err = cause
	}
	if !botapi.IsCode(err, 401, 404) {
		return fmt.Errorf("%s: %w", d.opt.Name, err)
	}
	d.refused.Store(true)
	return fmt.Errorf("%s: the platform does not know this bot (%w): "+
		"check the token, and that @BotFather has not replaced it", d.opt.Name, err)
}

// Reaches reports whether anything can be sent: nothing can once the platform refused
// the token. Messages wait for their answers until then.
func (d *Driver) Reaches(core.Path) bool { return !d.refused.Load() }

// unauthorised ends Listen, because the platform does not know the token any more.
func (d *Driver) unauthorised(err error) {
	d.refused.Store(true)
	r := d.running.Load()
	if r != nil {
		r.abort(err)
	}
}

func (d *Driver) listen(ctx context.Context, in core.Inbox) error {
	var self user
	err := d.api.Retry(ctx, "the platform cannot be reached", func() error {
		err := d.api.Get(ctx, "getMe", nil, &self)
		if err == nil && self.ID == 0 {
			err = errors.New("getMe: no bot in the answer")
		}
		return err
	}, 401, 404)
	if err != nil {
		return err
	}
	d.refused.Store(false)
	d.saveAccount(ctx)
	d.log.Info("connected", "name", self.UserName)
	d.later((&commandMenus{&d.opt, d.log, d.api, d.account()}).update)
	d.later(d.send.drafts.ClearLater)
	c := &converter{
		name: d.opt.Name, self: self, commands: d.opt.Commands, places: d.places, keys: d.send.keys,
		presses: d.presses, now: d.opt.Clock, ahead: d.api.ClockAhead,
	}
	i := &intake{
		d: d, in: in, convert: c, done: map[int64]bool{}, pending: map[int64]bool{}, damaged: map[int64]int{},
	}
	if d.opt.Config.Webhook.URL != "" {
		return d.api.Serve(ctx, d.opt.Config.Webhook, i, wantedUpdates)
	}
	return d.api.Poll(ctx, i, wantedUpdates)
}

// receive hands in what the bot itself changed on the platform, while Listen runs.
func (d *Driver) receive(ctx context.Context, e core.Event) {
	r := d.running.Load()
	if r == nil {
		return
	}
	if err := r.inbox.Receive(ctx, e); err != nil && ctx.Err() == nil {
		d.log.Warn("change not taken in", "path", e.Message.Path, "err", err)
	}
}

// migrated notes that a group became a supergroup.
func (d *Driver) migrated(ctx context.Context, from, to int64) {
	d.places.moved(from, to)
	c := converter{name: d.opt.Name, now: d.opt.Clock}
	d.receive(ctx, c.migrationEvent(from, to))
}

// Ready implements core.Readier.
func (d *Driver) Ready() error { return d.api.Ready() }

// later runs f in the background while Listen runs. It returns false if f will not run.
func (d *Driver) later(f func(context.Context)) bool {
	r := d.running.Load()
	return r != nil && r.tasks.Go(func() { f(r.life) })
}

// id writes a number of the platform.
func id(n int64) string { return strconv.FormatInt(n, 10) }
