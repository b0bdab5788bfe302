package turn

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"synthbot/core"
	"synthbot/core/prompt"
	"synthbot/core/recent"
	"synthbot/core/watch"
)

// Turns takes events in and answers them.
type Turns struct {
	store     core.Store
	setup     atomic.Pointer[setup] // in force
	suspect   chan struct{}         // holds a token while a turn runs that may end the process
	attention attention
	limiter   limiter
	undo      *undoList
	health    health
	windows   sync.Pool // of *[]core.Entry: turns read the past, which is large, into one after the other

	mu     sync.Mutex
	awake  map[queue]*worker
	former map[queue]*worker // those that were awake when they moved to these paths
	life   context.Context   // nil until Run; ends when no further turn may begin
	work   context.Context
	places sync.WaitGroup
	retry  chan struct{} // closed when pauses between two tries end
}

// New makes Turns. Run starts them.
func New(o Options) *Turns {
	t := &Turns{
		store: o.Store, suspect: make(chan struct{}, 1), retry: make(chan struct{}),
		awake: make(map[queue]*worker), former: make(map[queue]*worker),
		attention: attention{places: recent.NewCache[core.Path, *placeAttention](maxPlaces / 2)},
		limiter:   limiter{people: recent.NewCache[core.Path, *userLimit](maxLimited / 2)},
		undo:      recent.NewShared[undoKey, undoable](maxUndoable / 2),
		windows:   sync.Pool{New: func() any { return new([]core.Entry) }},
	}
	t.Reconfigure(o)
	return t
}

// setup is what a turn, or the receipt of an event, works with from its beginning to its end.
type setup struct {
	Options
	users sync.WaitGroup // turns that run on it, or on a former one
	cache promptCache
}

// promptCache keeps what prompts have in common. Its texts may name users. Safe for concurrent use.
type promptCache struct {
	mu    sync.Mutex
	epoch uint64
	kept  *prompt.Cache
}

// at returns the cache for a turn of an epoch: when a user was forgotten, an empty one; a turn that began before
// gets one of its own.
func (c *promptCache) at(epoch uint64) *prompt.Cache {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.kept == nil || epoch > c.epoch:
		c.kept, c.epoch = prompt.NewCache(), epoch
	case epoch < c.epoch:
		return prompt.NewCache()
	}
	return c.kept
}

// Reconfigure puts other options in force, for all that begins from now on. The
// store stays the one that New was given. drained blocks until the turns that
// run on the former options are over.
func (t *Turns) Reconfigure(o Options) (drained func()) {
	o.Store = t.store
	o.setDefaults()
	s := &setup{Options: o}
	drained = func() {}
	t.mu.Lock()
	former := t.setup.Load()
	if former != nil {
		drained = former.users.Wait
		s.users.Go(drained)
	}
	t.setup.Store(s)
	t.mu.Unlock()
	t.Sweep() // a place may be within reach that was not
	return drained
}

// Sweep answers what waits in places that are within reach by now, or that another process put there.
func (t *Turns) Sweep() {
	t.mu.Lock()
	life := t.life
	t.mu.Unlock()
	if life == nil {
		return // Run does
	}
	places, err := core.Read(life, t.store, core.View.Waiting)
	if err != nil && life.Err() == nil {
		t.setup.Load().Log.Error("what waits is looked for with the next message of each place", "err", err)
	}
	for _, path := range places {
		t.Wake(path)
	}
}

// TakeOver is Sweep when another process served places until now: their questions may expire, too.
func (t *Turns) TakeOver(ctx context.Context) error {
	err := t.store.View(ctx, t.restoreExpiries)
	t.Sweep()
	return err
}

// Leave returns when no turn runs any more in places that no interface reaches: another process
// continues there. Turns that last longer than the grace are cut short.
func (t *Turns) Leave(grace time.Duration) {
	t.Retry() // pauses end
	reached := t.setup.Load().reaches
	var leaving []*worker
	t.mu.Lock()
	for q, p := range t.awake {
		if t.life != nil && !reached(q.path) {
			leaving = append(leaving, p)
		}
	}
	t.mu.Unlock()
	late := time.AfterFunc(grace, func() {
		for _, p := range leaving {
			p.cut()
		}
	})
	defer late.Stop()
	for _, p := range leaving {
		<-p.over
	}
}

// Run answers what was left unanswered before, and then what is received. When life ends
// no further turn begins. When work ends those that run are cut short, to be continued by
// the next Run. Run returns when all of them are over.
func (t *Turns) Run(life, work context.Context) error {
	waiting, err := core.Read(life, t.store, func(v core.View) ([]core.Path, error) {
		if err := t.restoreExpiries(v); err != nil {
			return nil, err
		}
		return v.Waiting()
	})
	if err != nil && life.Err() == nil {
		return fmt.Errorf("waiting places: %w", err)
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
	t.retried() // takes the lock: a worker that still saw life alive is counted by now
	t.places.Wait()
	return nil
}

// Wake is called when an interface can speak in a place again: what waits there is answered.
func (t *Turns) Wake(place core.Path) {
	t.wake(queue{place, false}, 0, core.Path{})
	t.wake(queue{place, true}, 0, core.Path{})
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

// wake makes sure that somebody looks at what waits in the queue. begun is the number of the
// turn whose first attempt is counted; 0: none. by is who wrote what waits, if somebody did.
func (t *Turns) wake(q queue, begun uint64, by core.Path) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if p, ok := t.awake[q]; ok {
		p.again, p.begun = true, max(p.begun, begun)
		p.waits(by)
		return
	}
	if t.life != nil && t.life.Err() != nil {
		return // the next life finds it in the log
	}
	p := &worker{turns: t, queue: q, over: make(chan struct{}), begun: begun}
	t.awake[q] = p
	if t.life != nil {
		t.places.Add(1)
		work, cut := context.WithCancel(t.work)
		p.cut = cut
		go p.run(work)
	}
}

// migrate lets a place that is awake end what it does before it goes on under its
// new path.
func (t *Turns) migrate(ctx context.Context, e *core.Event) {
	from := e.Message.Path
	head, err := core.Read(ctx, t.store, func(v core.View) (core.Head, error) { return v.Head(from) })
	to := head.Path
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

// changed ends the thinking about messages that were deleted, and lets places move.
func (t *Turns) changed(ctx context.Context, events []core.Event) {
	for i := range events {
		e := &events[i]
		switch e.Kind {
		case core.KindMigration:
			t.migrate(ctx, e)
		case core.KindDeletion:
			t.mu.Lock()
			p := t.awake[queue{e.Message.Path, false}]
			if p != nil && p.gone != nil {
				p.gone[e.Target] = true
			}
			if p != nil && p.asking[e.Target] {
				p.cancel(errWithdrawn)
			}
			t.mu.Unlock()
		}
	}
}

// reaches reports whether an interface can speak in the place now.
func (s *setup) reaches(place core.Path) bool {
	reached := true
	guard(s.Log, "interface", func() { reached = s.Places.Reaches(place) })
	return reached
}

func (s *setup) observe(end watch.TurnEnd) {
	for _, o := range s.Plugins.Observers {
		guard(s.Log, "observer", func() { o.Observe(end) })
	}
}

// guard calls a plugin where nothing else would stop its panic, which is logged.
func guard(log *slog.Logger, what string, call func()) {
	defer func() {
		r := recover()
		if r != nil {
			log.Error("plugin panicked", "caller", what, "panic", r, "stack", string(debug.Stack()))
		}
	}()
	call()
}
