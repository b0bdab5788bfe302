package turn

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"synthbot/core"
	"synthbot/core/action"
	"synthbot/core/command"
)

// Config is the part of the configuration that turns are governed by.
type Config struct {
	History int `toml:"history" default:"20" min:"1" max:"500" doc:"Messages of a place that a prompt holds at least; at most twice as many."`
	Recent  int `toml:"recent" default:"10" min:"0" max:"200" doc:"Messages of other places that a prompt holds, where scope and share allow any."`
	// What follows has tables of its own.
	Attempts int           // of the corrector
	Backlog  time.Duration // what waited longer is acknowledged together; 0: nothing is
}

// Share lists subtrees whose places may see each other's talk.
type Share struct {
	Paths []core.Path `toml:"paths" doc:"Places, with all below them, that may see each other's history and facts."`
}

// Activations: which messages of a group are answered. What is private always is.
const (
	OnMention = "mention" // the bot is mentioned, replied to, or called by name
	OnKeyword = "keyword" // as on mention, or one of the keywords is said
	Ambient   = "ambient" // as on mention; now and then the model may say something by itself
	Always    = "always"
	Never     = "never"
)

// Settings are what may differ from place to place.
type Settings struct {
	Activation string
	Keywords   []string
	// With Ambient: after how many messages, or how long after it was last asked,
	// the model may say something; 0: never for that reason.
	AmbientMessages int
	AmbientEvery    time.Duration
	// Attention is how long after an answer the same person may go on without
	// addressing the bot again; 0: not at all.
	Attention time.Duration
	Blind     bool   // what is not answered is not kept either
	Bots      bool   // other bots are answered, for a few rounds
	Language  string // to answer in, whatever recon finds; "": what it finds
	Scope     string // of history_recent; "": Options.Scope
}

// Options is what turns need. Those above the blank line are required.
type Options struct {
	Store     core.Store
	Catalogue *action.Catalogue
	Runtime   *action.Runtime
	Asker     core.Asker
	Clock     func() time.Time
	Log       *slog.Logger
	Config    Config
	Settings  func(place core.Path) Settings
	Prompt    Prompt

	Access  Access
	Admins  []core.Path
	Names   []string // the bot's name and aliases: a word of a group message that wakes it
	Places  Places
	Plugins Plugins
	Epoch   func() uint64 // see core.Facts; nil: 0
}

// Prompt is what prompts are made of. Persona is required.
type Prompt struct {
	Persona  func(place core.Path, user string) core.Persona
	Language string // where recon finds none
	Scope    string // chat, interface or unified, where Settings name none
	Lite     bool
	Shares   []Share
	Keys     []string // further top-level keys of plans that plugins registered
	// Open reads what users attached, within limits of its own: texts of
	// documents, pictures and sounds, each by Attachment.Ref. Nil: nothing is read.
	Open func(ctx context.Context, place core.Path, files []core.Attachment) Opened
}

// Places is what can be done in places. Each may be nil.
type Places struct {
	Chooser func(place core.Path) core.Chooser // the interface's ability, or nil
	Carrier func(place core.Path) core.Carrier // likewise
	Asleep  func(place core.Path) bool         // what is said there is context, whoever says it
	// Reaches reports whether an interface can speak in a place now; elsewhere what
	// was said waits. Nil: everywhere.
	Reaches func(place core.Path) bool
}

// Plugins are the abilities of plugins besides their actions.
type Plugins struct {
	Commands  *command.Registry // nil: there are none
	Gates     []core.Gate
	Recons    []core.Recon
	Injectors map[string]core.Injector // by the key of the context
	Bios      []core.Biographer
	Observers []core.Observer
	Watchers  []core.Watcher
}

// Add adds what a plugin is able to do. Commands and watchers are not among it.
func (a *Plugins) Add(p core.Plugin) {
	if x, ok := p.(core.Gate); ok {
		a.Gates = append(a.Gates, x)
	}
	if x, ok := p.(core.Recon); ok {
		a.Recons = append(a.Recons, x)
	}
	if x, ok := p.(core.Injector); ok {
		if a.Injectors == nil {
			a.Injectors = make(map[string]core.Injector)
		}
		a.Injectors[p.Name()] = x
	}
	if x, ok := p.(core.Biographer); ok {
		a.Bios = append(a.Bios, x)
	}
	if x, ok := p.(core.Observer); ok {
		a.Observers = append(a.Observers, x)
	}
}

// Opened is what stands in attached files.
type Opened struct {
	Texts    map[string]string
	Pictures map[string]core.Picture
	Sounds   map[string]core.Sound
}

// Turns takes events in and answers them. It implements core.Inbox.
type Turns struct {
	store core.Store
	setup atomic.Pointer[setup]

	swap       sync.RWMutex  // against a change of setup between its reading and its use
	old        []*setup      // that turns may still run on; guarded by swap
	alone      chan struct{} // holds a token while a suspect is tried
	attention  attention
	limiter    limiter
	injections injectionCache

	testing sync.Mutex // guards tested
	tested  *pulse     // nil: none yet

	mu     sync.Mutex
	awake  map[queue]*worker
	former map[queue]*worker // those that were awake when they moved to these paths
	life   context.Context   // nil until Run; ends when no further turn may begin
	work   context.Context
	places sync.WaitGroup
	retry  chan struct{} // closed when pauses between two tries end
}

// New makes Turns; Run brings them to life.
func New(o Options) *Turns {
	t := &Turns{store: o.Store, awake: make(map[queue]*worker), former: make(map[queue]*worker), alone: make(chan struct{}, 1), retry: make(chan struct{})}
	t.Reconfigure(o)
	return t
}

// setup is what a turn, or the receipt of an event, works with from its
// beginning to its end.
type setup struct {
	Options
	names *names
	users sync.WaitGroup // turns that run on it
	over  chan struct{}  // closed when it was exchanged and they are over
}

// Reconfigure puts other options in force, for all that begins from now on. The
// store stays the one that New was given. drained blocks until the turns that
// run on the former options are over.
func (t *Turns) Reconfigure(o Options) (drained func()) {
	drained = t.exchange(o)
	t.mu.Lock()
	life := t.life
	t.mu.Unlock()
	if life == nil {
		return drained
	}
	places, err := t.waiting(life, func(core.View) error { return nil })
	if err != nil && life.Err() == nil {
		o.Log.Error("what waits is looked for with the next message of each place", "err", err)
	}
	for _, path := range places { // one may be within reach that was not
		t.Wake(path)
	}
	return drained
}

// exchange puts the options in force.
func (t *Turns) exchange(o Options) (drained func()) {
	o.Store = t.store
	t.swap.Lock()
	defer t.swap.Unlock()
	old := t.setup.Swap(&setup{Options: o, names: newNames(o.Names), over: make(chan struct{})})
	if old == nil {
		return func() {}
	}
	t.old = slices.DeleteFunc(t.old, func(s *setup) bool {
		select {
		case <-s.over:
			return true
		default:
			return false
		}
	})
	t.old = append(t.old, old)
	go func() {
		old.users.Wait()
		close(old.over)
	}()
	waited := slices.Clone(t.old)
	return func() {
		for _, s := range waited {
			<-s.over
		}
	}
}

// enter returns the options that a turn runs on; it leaves them when it is over.
func (t *Turns) enter() *setup {
	t.swap.RLock()
	defer t.swap.RUnlock()
	s := t.setup.Load()
	s.users.Add(1)
	return s
}

// Run takes up what a former life left unanswered and then answers what is
// received. When life ends no further turn begins; when work ends those that
// run are cut short, to be taken up by the next life. Run returns when all of
// them are over.
func (t *Turns) Run(life, work context.Context) error {
	waiting, err := t.waiting(life, t.restoreExpiries)
	if err != nil && life.Err() == nil {
		return err
	}
	t.mu.Lock()
	t.life, t.work = life, work
	for q := range t.awake { // received before Run
		waiting = append(waiting, q.path)
	}
	clear(t.awake)
	t.mu.Unlock()
	for _, path := range waiting {
		t.Wake(path)
	}
	<-life.Done()
	t.count() // whoever still saw life alive has added his place by now
	t.places.Wait()
	return nil
}

// waiting lists the places where something waits, and reads what else is to be
// read with them.
func (t *Turns) waiting(ctx context.Context, also func(core.View) error) (places []core.Path, err error) {
	err = t.store.View(ctx, func(v core.View) (err error) {
		if places, err = v.Waiting(); err != nil {
			return err
		}
		return also(v)
	})
	if err != nil {
		return nil, fmt.Errorf("waiting places: %w", err)
	}
	return places, nil
}

// Wake is called when a place has come within reach: what waits there is taken up.
func (t *Turns) Wake(place core.Path) {
	t.wake(queue{place, false})
	t.wake(queue{place, true})
}

// Retry is called when what made turns fail may be over, as when there is room on the
// disk again: those that wait to be tried again are tried now.
func (t *Turns) Retry() {
	t.mu.Lock()
	defer t.mu.Unlock()
	close(t.retry)
	t.retry = make(chan struct{})
}

// retried returns what the next Retry closes.
func (t *Turns) retried() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.retry
}

// wake makes sure that somebody looks at what waits in the queue.
func (t *Turns) wake(q queue) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if p, ok := t.awake[q]; ok {
		p.again = true
		return
	}
	if t.life != nil && t.life.Err() != nil {
		return // the next life finds it in the log
	}
	p := &worker{turns: t, queue: q, over: make(chan struct{})}
	t.awake[q] = p
	if t.life != nil {
		t.places.Add(1)
		go p.run()
	}
}

// migrate lets a place that is awake end what it does before it goes on under its
// new path.
func (t *Turns) migrate(ctx context.Context, e *core.Event) {
	if e.Kind != core.KindMigration {
		return
	}
	from := e.Message.Path
	to := from
	err := t.store.View(ctx, func(v core.View) error {
		h, err := v.Head(from)
		to = h.Path
		return err
	})
	if err != nil || to == from {
		return // it stays, or nothing of it is seen before the next message
	}
	t.mu.Lock()
	for _, commands := range []bool{false, true} {
		if p, ok := t.awake[queue{from, commands}]; ok && t.life != nil {
			t.former[queue{to, commands}] = p
		}
	}
	t.mu.Unlock()
	t.Wake(to)
}

// count tells how many queues are awake.
func (t *Turns) count() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.awake)
}

// withdraw cuts short the turn that is thinking about a message that is gone.
func (t *Turns) withdraw(e *core.Event) {
	if e.Kind != core.KindDeletion {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if p, ok := t.awake[queue{e.Message.Path, false}]; ok {
		p.deleted(e.Target)
	}
}

// reportSkipped tells those who wait for it that a private message or a command has no turn:
// its author is shut out, or it was received before.
func (s *setup) reportSkipped(e *core.Event) {
	if m := &e.Message; m.Private || e.Kind == core.KindCommand {
		s.observe(core.TurnEnd{Turn: core.TurnID{Path: m.Path}, Messages: []string{m.ID}})
	}
}

// reaches reports whether an interface can speak in the place now.
func (s *setup) reaches(place core.Path) bool {
	reached := true
	if s.Places.Reaches != nil {
		guard(s.Log, "interface", func() { reached = s.Places.Reaches(place) })
	}
	return reached
}

// observe tells everybody who wants to know that a turn is over.
func (s *setup) observe(end core.TurnEnd) {
	for _, o := range s.Plugins.Observers {
		guard(s.Log, "observer", func() { o.Observe(end) })
	}
}

// pulser is the ability of a store to test whether a write commits. Pulse returns
// nil if one does, and also if the store does work that may take longer than ctx.
type pulser interface {
	Pulse(ctx context.Context) error
}

// pulseTime is how long Pulse waits; pulseAge is how old a result may be.
const (
	pulseTime = 10 * time.Second
	pulseAge  = time.Second
)

// pulse is one test of the store, for all who ask while it runs and shortly after.
type pulse struct {
	began time.Time
	over  chan struct{} // closed when err is known
	err   error
}

// Pulse returns nil when events can be received and turns can run: the store can be
// read and written, and no lock is stuck. However many ask, one test runs at a time.
func (t *Turns) Pulse(ctx context.Context) error {
	p := t.lastPulse()
	select {
	case <-p.over:
		return p.err
	case <-ctx.Done():
		return fmt.Errorf("pulse: %w", ctx.Err())
	case <-time.After(pulseTime + time.Second):
		return fmt.Errorf("pulse: %w", context.DeadlineExceeded)
	}
}

// lastPulse returns the test that runs, or ended just now, or begins with this call.
func (t *Turns) lastPulse() *pulse {
	t.testing.Lock()
	defer t.testing.Unlock()
	if p := t.tested; p != nil {
		select {
		case <-p.over:
			if time.Since(p.began) < pulseAge {
				return p
			}
		default:
			return p
		}
	}
	p := &pulse{began: time.Now(), over: make(chan struct{})}
	t.tested = p
	go func() {
		defer close(p.over)
		ctx, cancel := context.WithTimeout(context.Background(), pulseTime)
		defer cancel()
		p.err = t.pulse(ctx)
	}()
	return p
}

func (t *Turns) pulse(ctx context.Context) error {
	t.count()
	err := t.store.View(ctx, func(v core.View) error {
		_, err := v.Waiting()
		return err
	})
	if p, ok := t.store.(pulser); ok && err == nil {
		err = p.Pulse(ctx)
	}
	return err
}
