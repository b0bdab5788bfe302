package discord

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"synthbot/core"
	"synthbot/core/command"
	"synthbot/core/driver"
	"synthbot/core/loop"
	"synthbot/core/recent"
	"synthbot/core/watch"
	"synthbot/interfaces/discord/gateway"
	"synthbot/interfaces/discord/rest"
)

// Options configure a Driver. Name, Config, Log, Clock and State are required.
type Options struct {
	Name   string // of the interface
	Config Config
	Log    *slog.Logger
	Clock  func() time.Time
	State  driver.State
	Admin  func(text string) // informs the admins, and must not block; nil: only the log is informed

	Commands func() []command.Spec // chat commands to register; nil: none
	Admins   func() []core.Path    // users who may press any button; nil: none

	shard  int             // from 1: connect only this shard; 0: all
	starts *gateway.Starts // shared by all shards of the account; nil: not shared
	// Dial connects to the platform; nil: over the network.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// Driver is one bot account on Discord, or a shard of one. Safe for concurrent use. Listen may be called
// again after it has returned. Actions also work while Listen does not run.
type Driver struct {
	*account
	responder *responder
	feed      *feed
	gateway   *gateway.Gateway

	inbox   atomic.Pointer[core.Inbox] // nil before Listen
	refused context.Context            // ends when Discord refuses the token
}

var (
	_ core.Interface       = (*Driver)(nil)
	_ core.Linker          = (*Driver)(nil)
	_ core.Chooser         = (*Driver)(nil)
	_ core.Drafter         = (*Driver)(nil)
	_ core.FileSender      = (*Driver)(nil)
	_ core.Prober          = (*Driver)(nil)
	_ core.Teller          = (*Driver)(nil)
	_ core.TypingIndicator = (*Driver)(nil)
	_ core.Reachable       = (*Driver)(nil)
	_ core.Scoper          = (*Driver)(nil)
	_ watch.Observer       = (*Driver)(nil)
	_ core.Fetcher         = (*Driver)(nil)
	_ core.Readier         = (*Driver)(nil)
)

// New returns a Driver, which does not connect yet. Its errors are about the configuration.
func New(o Options) (*Driver, error) { return newDriver(o, defaultTimings) }

func newDriver(o Options, t timings) (*Driver, error) {
	set, err := o.Config.check()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", o.Name, err)
	}
	if _, err := core.MakePath(o.Name, me, "1"); err != nil {
		return nil, fmt.Errorf("name: %w", err)
	}
	if o.Dial == nil {
		o.Dial = (&net.Dialer{Timeout: t.gateway.Patience, KeepAlive: 15 * time.Second}).DialContext
	}
	o.Commands, o.Admins = driver.OrNone(o.Commands), driver.OrNone(o.Admins)
	refused, refuse := context.WithCancel(context.Background())
	log := o.Log.With("interface", o.Name)
	a := &account{
		opt: o, set: set, timings: t, log: log, cache: newCache(o.Name), cursors: newCursors(o.State),
		closed:  &closedChannels{all: make(map[string]refusal)},
		replies: &replies{o.State, log, recent.NewShared[string, *arrival](maxArrivals)},
		rest: rest.New(rest.Options{
			API: set.api, Token: set.Token, Pace: set.Pace == "platform", Retry: t.retry, Dial: o.Dial, Clock: o.Clock,
			State: o.State, Refused: refuse,
		}),
	}
	a.drafts = newDrafts(a)
	_ = a.cursors.load(context.Background()) // for Scopes; Listen returns the error
	r := &responder{account: a, changed: make(chan struct{}, 1)}
	d := &Driver{account: a, responder: r, feed: newFeed(a, r), refused: refused}
	d.gateway = gateway.New(gateway.Options{
		Token: set.Token, REST: a.rest, Shards: set.shards, Only: o.shard, Content: set.MessageContent, Handler: d.feed,
		Dial: o.Dial, Timings: t.gateway, Log: log, Notify: a.notify, Starts: o.starts,
	})
	return d, nil
}

// Name returns the interface's name.
func (d *Driver) Name() string { return d.opt.Name }

// Type returns the type of the interface, "discord".
func (d *Driver) Type() string { return "discord" }

// Scopes implements core.Scoper: it returns the category of a channel, if it is known.
func (d *Driver) Scopes(at core.Path) []core.Path {
	e := at.Elements()
	if len(e) < 3 || e[0] != d.opt.Name {
		return nil
	}
	p, known := d.placeOf(e[2])
	if !known || p.thread() {
		return nil
	}
	_, scopes, _ := d.cache.path(e[2], p)
	return scopes
}

// NameOf implements core.Namer: it returns the name of a channel or thread, such as "#general".
func (d *Driver) NameOf(at core.Path) string {
	id, err := d.channelOf(at)
	p, _ := d.cache.place(id)
	if err != nil || p.name == "" {
		return ""
	}
	return "#" + p.name
}

// lastTime is how long progress may take to store when Listen ends.
const lastTime = 5 * time.Second

// Listen connects and receives events. It blocks until ctx ends, and then returns nil, or until Discord
// refuses the bot.
func (d *Driver) Listen(ctx context.Context, in core.Inbox) error {
	if !driver.AwaitState(ctx, d.log, d.cursors.load) || !driver.AwaitState(ctx, d.log, d.feed.progress.Load) {
		return nil
	}
	d.tasks.Open()
	d.drafts.Begin()
	d.inbox.Store(&in)
	err := d.listen(ctx, in)
	for shards := 0; d.set.shards == 0 && errors.Is(err, gateway.ErrShards) && d.feed.shards > shards; {
		shards = d.feed.shards
		d.log.Warn("the bot needs more shards; asking Discord how many it recommends")
		if loop.Sleep(ctx, d.timings.gateway.Backoff) {
			err = d.listen(ctx, in)
		}
	}
	// Progress is stored even though ctx has ended.
	final, done := context.WithTimeout(context.WithoutCancel(ctx), lastTime)
	defer done()
	d.feed.store(final, true)
	d.tasks.Close()
	d.rest.Close()
	if err != nil && !errors.Is(err, context.Canceled) {
		return fmt.Errorf("%s: %w", d.opt.Name, err)
	}
	return nil
}

// Ready implements core.Readier: each shard has a session, and the inbox accepts events.
func (d *Driver) Ready() error { return d.feed.health.Ready() }

// receive passes an event to the inbox about a change that the bot itself made, if Listen was called.
func (d *Driver) receive(ctx context.Context, e core.Event) {
	in := d.inbox.Load()
	if in == nil {
		return
	}
	if err := (*in).Receive(ctx, e); err != nil && ctx.Err() == nil {
		d.log.Warn("own change not stored", "path", e.Message.Path, "err", err)
	}
}

// listen connects with the number of shards that is configured or recommended.
func (d *Driver) listen(ctx context.Context, in core.Inbox) error {
	at, err := d.gateway.Find(ctx)
	if err != nil {
		return err
	}
	d.feed.begin(at.Shards, d.gateway.IDs(at.Shards))
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return newIntake(d, in).run(ctx) })
	group.Go(func() error {
		select {
		case <-ctx.Done():
			return nil
		case <-d.refused.Done():
			return gateway.ErrToken
		}
	})
	group.Go(func() error { d.drafts.ClearLater(ctx); return nil })
	group.Go(func() error { return d.gateway.Run(ctx, at, d.feed.progress.Sessions()) })
	return group.Wait()
}

// Reaches implements core.Reachable: nothing can be sent once Discord has refused the token.
func (d *Driver) Reaches(core.Path) bool { return d.refused.Err() == nil }

// contentFlags are the flags of an application whose message content intent is switched on.
const contentFlags = 1<<18 | 1<<19

// Probe implements core.Prober. It does not connect to the gateway, because that would disturb a running bot
// with the same token.
func (d *Driver) Probe(ctx context.Context) []core.Finding {
	var me user
	f := core.Finding{What: "identity", Found: "unknown", Fatal: true}
	err := d.rest.Get(ctx, &me, "/users/@me")
	switch {
	case rest.Refusal(err).Status == 401:
		f.Fix = "the token is refused; the developer portal gives a new one under Bot, for interfaces." +
			d.opt.Name + ".token"
	case err != nil:
		f.What, f.Found = "platform", "unavailable"
		f.Fix = rest.Failure("asking Discord", err).Text + "; check the network and api_url"
	case me.ID == "":
		f.Fix = "the server's answer is not that of Discord; check api_url"
	default:
		f = core.Finding{What: "identity", Found: "@" + line(me.Name, core.MaxName) + " (" + me.ID + ")"}
		return []core.Finding{f, d.probeContent(ctx), d.probeGateway(ctx), driver.ClockFinding(-d.rest.Ahead())}
	}
	return []core.Finding{f}
}

func (a *account) probeContent(ctx context.Context) core.Finding {
	f := core.Finding{What: "content", Found: "unknown"}
	var app struct {
		Flags int `json:"flags"`
	}
	err := a.rest.Get(ctx, &app, "/applications/@me")
	switch {
	case err != nil:
	case app.Flags&contentFlags != 0:
		f.Found = "receives all messages"
	case !a.set.MessageContent:
		f.Found = "receives only mentions, replies and direct messages, as configured"
	default:
		f.Found = "receives only mentions, replies and direct messages"
		f.Fix = "switch the message content intent on in the developer portal, under Bot"
	}
	return f
}

func (a *account) probeGateway(ctx context.Context) core.Finding {
	f := core.Finding{What: "gateway", Found: "unknown"}
	g, err := gateway.Ask(ctx, a.rest)
	if err != nil {
		f.Fix, f.Fatal = "the gateway's address is unknown: "+rest.Failure("asking", err).Text, true
		return f
	}
	f.Found = fmt.Sprintf("%d shards are recommended", g.Shards)
	if g.Shards == 1 {
		f.Found = "one connection is enough"
	}
	if g.Remaining == 0 {
		f.Fix = fmt.Sprintf("Discord allows no more sessions for %s: find out what keeps reconnecting with this token",
			g.Reset.Round(time.Second))
	}
	return f
}
