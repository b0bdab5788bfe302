package discord

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"synthbot/core"
	"synthbot/core/command"
	"synthbot/core/draft"
	"synthbot/interfaces/discord/gateway"
	"synthbot/interfaces/discord/rest"
)

// State keeps what must outlive the process: small values by key.
type State interface {
	// Get returns nil where there is none.
	Get(ctx context.Context, key string) ([]byte, error)
	// Put is durable when it returns.
	Put(ctx context.Context, key string, value []byte) error
}

// Options are what a Driver is made of. Config.Token is required.
type Options struct {
	Name     string // the interface's; empty: "discord"
	Config   Config
	Log      *slog.Logger      // nil: nothing is logged
	Clock    func() time.Time  // nil: time.Now
	State    State             // nil: forgotten with the process
	Commands []command.Spec    // what is offered as chat commands
	Remember string            // the command behind "Remember this"; empty: "remember"
	Admin    func(text string) // tells the admins; nil: nobody is told
	Admins   []core.Path       // people who may press what is for others
	// Dial connects to the platform; nil: over the network.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// Driver is one bot account on Discord. Safe for concurrent use; Listen is
// called once. Its actions work before Listen began and after it ended.
type Driver struct {
	name   string
	set    settings
	log    *slog.Logger
	clock  func() time.Time
	state  State
	tell   func(string)
	admins []core.Path
	tempo  tempo
	dial   rest.Dial

	specs    []command.Spec
	remember string

	rest     *rest.Client
	gateway  *gateway.Gateway
	book     *book
	queue    *queue
	lanes    *lanes
	targets  *targets
	cursors  *cursors
	replies  *replies // commands without an answer
	presses  *replies // presses that may get a whisper
	drafts   *draft.Drafts
	arrivals arrivals
	alive    *alive
	members  *members
	ready    readiness
	count    int // shards, once Listen knows

	mu      sync.Mutex
	inbox   core.Inbox        // nil: Listen was not called yet
	direct  map[string]string // channels of direct messages, by person
	asked   map[string]place  // channels that were asked for, before something was written there
	told    map[string]bool   // what admins were told
	token   chan struct{}     // closed when the token is refused
	refused bool
	synced  bool // the commands were told, or are being told
	busy    crew // what answers interactions
}

var (
	_ core.Interface = (*Driver)(nil)
	_ core.Thinker   = (*Driver)(nil)
	_ core.Reacher   = (*Driver)(nil)
	_ core.Scoper    = (*Driver)(nil)
	_ core.Observer  = (*Driver)(nil)
	_ core.Fetcher   = (*Driver)(nil)
)

// New makes a driver; it connects to nothing yet.
func New(o Options) (*Driver, error) { return newDriver(o, usual) }

func newDriver(o Options, t tempo) (*Driver, error) {
	if o.Name == "" {
		o.Name = "discord"
	}
	set, err := o.Config.check()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", o.Name, err)
	}
	if _, err := core.MakePath(o.Name, me, "1"); err != nil {
		return nil, fmt.Errorf("name: %w", err)
	}
	d := &Driver{
		name: o.Name, set: set, log: o.Log, clock: o.Clock, state: o.State, tell: o.Admin, admins: o.Admins, tempo: t,
		specs: o.Commands, remember: o.Remember,
		book: newBook(o.Name), queue: newQueue(),
		lanes: newLanes(), targets: newTargets(), presses: newReplies(nil, nil),
		arrivals: arrivals{when: make(map[string]time.Time)}, alive: &alive{shards: make(map[int]time.Time)}, members: newMembers(),
		told: make(map[string]bool), direct: make(map[string]string), asked: make(map[string]place), token: make(chan struct{}),
	}
	if d.log == nil {
		d.log = slog.New(slog.DiscardHandler)
	}
	d.log = d.log.With("interface", d.name)
	if d.clock == nil {
		d.clock = time.Now
	}
	if d.state == nil {
		d.state = &brief{values: make(map[string][]byte)}
	}
	if d.remember == "" {
		d.remember = "remember"
	}
	if d.dial = o.Dial; d.dial == nil {
		d.dial = (&net.Dialer{Timeout: t.gateway.Patience, KeepAlive: 15 * time.Second}).DialContext
	}
	d.cursors, d.replies, d.drafts = newCursors(d.state), newReplies(d.state, d.log), newDrafts(d)
	d.rest = rest.New(rest.Options{
		API: set.api, Token: set.Token, Pace: set.Pace == "platform", Retry: t.retry, Dial: d.dial, Clock: d.clock, Refused: d.refuse,
	})
	d.gateway = gateway.New(gateway.Options{
		Token: set.Token, REST: d.rest, Shards: set.shards, Content: set.MessageContent, Handler: listener{d}, Dial: d.dial,
		Timings: t.gateway, Log: d.log, Notify: func(text string) { d.admin(d.name + ": " + text) },
	})
	return d, nil
}

// Name is the interface's name.
func (d *Driver) Name() string { return d.name }

// Type is the kind of interface, whatever its table is called.
func (d *Driver) Type() string { return "discord" }

// Find returns the place that people call name, as seen from another place.
func (d *Driver) Find(from core.Path, name string) (core.Path, error) {
	if p, ok := d.book.find(from, name); ok {
		return p, nil
	}
	return core.Path{}, core.Errorf(core.Invalid, "there is no channel %q here", name)
}

// Scopes implements core.Scoper: the category of a channel, as far as it is known,
// also before Listen began where the channel was heard of in a former life.
func (d *Driver) Scopes(at core.Path) []core.Path {
	e := at.Elements()
	if len(e) < 3 || len(e) > 4 || e[0] != d.name || e[1] == me {
		return nil
	}
	p, known := d.book.place(e[2])
	if !known {
		p = d.cursors.remembered(e[2])
	}
	if p.Parent == "" || p.thread() {
		return nil
	}
	scope, err := core.MakePath(d.name, e[1], p.Parent)
	if err != nil {
		return nil
	}
	return []core.Path{scope}
}

// Listen connects and takes events in until ctx ends, which is no error, or the
// platform refuses the bot.
func (d *Driver) Listen(ctx context.Context, in core.Inbox) error {
	if err := errors.Join(d.cursors.load(ctx), d.alive.load(ctx, d.state)); err != nil {
		return fmt.Errorf("%s: state: %w", d.name, err)
	}
	d.mu.Lock()
	d.inbox = in
	d.mu.Unlock()
	err := d.listen(ctx, in)
	for before := 0; d.set.shards == 0 && errors.Is(err, gateway.ErrShards) && d.count > before && rest.Sleep(ctx, d.tempo.gateway.Backoff); {
		before = d.count
		d.log.Warn("there are too few shards by now; asking how many are wanted")
		err = d.listen(ctx, in)
	}
	// What was taken in is noted, also when the time is over.
	final, done := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer done()
	d.note(final, true)
	d.busy.close()
	d.rest.Close()
	if err != nil && !errors.Is(err, context.Canceled) {
		return fmt.Errorf("%s: %w", d.name, err)
	}
	return nil
}

// receive hands in what the bot itself changed on the platform, if anyone takes it.
func (d *Driver) receive(ctx context.Context, e core.Event) {
	d.mu.Lock()
	in := d.inbox
	d.mu.Unlock()
	if in == nil {
		return
	}
	if err := in.Receive(ctx, e); err != nil && ctx.Err() == nil {
		d.log.Warn("a change is not taken in", "path", e.Message.Path, "err", err)
	}
}

// listen connects with as many shards as the platform recommends now.
func (d *Driver) listen(ctx context.Context, in core.Inbox) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	at, err := d.gateway.Find(ctx)
	if err != nil {
		return err
	}
	d.count = at.Shards
	d.ready.begin(at.Shards)
	var wait sync.WaitGroup
	ends := make(chan error, 4)
	begin := func(run func(context.Context) error) {
		wait.Go(func() {
			if err := run(ctx); err != nil {
				ends <- err
				cancel()
			}
		})
	}
	begin(newIntake(d, in).run)
	begin(d.watchToken)
	begin(func(ctx context.Context) error { d.drafts.ClearLater(ctx); return nil })
	begin(func(ctx context.Context) error { return d.gateway.Run(ctx, at) })
	wait.Wait()
	select {
	case err := <-ends:
		return err
	default:
		return nil
	}
}

// note writes down what was taken in, and until when everything was. It is called
// by the intake, or when that is over: everything before is on disk.
func (d *Driver) note(ctx context.Context, now bool) {
	at := d.alive.all(d.count)
	d.noteCursors(ctx)
	if !d.queue.empty() || at.IsZero() {
		return
	}
	if err := d.alive.note(ctx, d.state, at, now); err != nil {
		d.log.Error("until when the gateway was heard is not noted", "err", err)
	}
}

func (d *Driver) noteCursors(ctx context.Context) {
	if err := d.cursors.flush(ctx); err != nil {
		d.log.Error("what was seen is not noted", "err", err)
	}
}

// watchToken ends the interface when a request finds the token refused.
func (d *Driver) watchToken(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-d.token:
		return gateway.ErrToken
	}
}

// Reaches implements core.Reacher: nothing can be said once the token was refused,
// in whatever request. What waits for an answer goes on waiting then.
func (d *Driver) Reaches(core.Path) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return !d.refused
}

func (d *Driver) refuse() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.refused {
		d.refused = true
		close(d.token)
	}
}

// admin tells the admins, and the log.
func (d *Driver) admin(text string) {
	d.log.Warn(text)
	if d.tell != nil {
		d.tell(text)
	}
}

// once tells the admins something one time.
func (d *Driver) once(key, text string) {
	d.mu.Lock()
	told := d.told[key]
	d.told[key] = true
	d.mu.Unlock()
	if !told {
		d.admin(text)
	}
}

func (d *Driver) missingContent() {
	d.once("content", d.name+": the message content intent is off for this bot: it sees what mentions it, what replies to it and "+
		"direct messages, and nothing else. Switch the intent on in the developer portal, under Bot, and restart.")
}

// brief is a State without a disk.
type brief struct {
	mu     sync.Mutex
	values map[string][]byte
}

func (b *brief) Get(_ context.Context, key string) ([]byte, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.values[key], nil
}

func (b *brief) Put(_ context.Context, key string, value []byte) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.values[key] = value
	return nil
}
