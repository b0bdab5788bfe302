package turn

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"synthbot/core"
	"synthbot/core/prompt"
	"synthbot/core/recent"
	"synthbot/core/watch"
)

// Turns receives events and answers them.
type Turns struct {
	store     core.Store
	setup     atomic.Pointer[setup] // for all that begins now
	suspect   chan struct{}         // holds a token while a turn runs that may have crashed the process
	attention attention
	limiter   limiter
	undo      *recent.Shared[undoKey, undoable] // the lasting steps of each user's latest turn in a place that had any
	health    health
	windows   sync.Pool // of *[]core.Entry: large buffers for the history, which turns reuse

	mu      sync.Mutex
	awake   map[queue]*worker
	moved   moved
	life    context.Context // nil until Run; ends when no further turn may begin
	work    context.Context // ends when running turns are cut short
	workers sync.WaitGroup  // running workers
	retry   chan struct{}   // closed to end the pauses between attempts
}

// New makes Turns. Run starts them.
func New(o Options) *Turns {
	t := &Turns{
		store: o.Store, suspect: make(chan struct{}, 1), retry: make(chan struct{}),
		awake:     make(map[queue]*worker),
		moved:     moved{make(map[queue]*worker), make(map[core.Path]core.Path)},
		attention: attention{places: recent.NewCache[core.Path, *placeAttention](maxPlaces / 2)},
		limiter:   limiter{people: recent.NewCache[core.Path, *userLimit](maxLimited / 2)},
		undo:      recent.NewShared[undoKey, undoable](maxUndoable / 2),
		windows:   sync.Pool{New: func() any { return new([]core.Entry) }},
	}
	t.setup.Store(new(setup)) // which no turn uses
	t.Reconfigure(o)
	return t
}

// setup is one version of the options. A turn, or the receipt of events, uses the same one to its end.
type setup struct {
	Options
	running sync.WaitGroup                  // turns that use this version or an earlier one
	cache   *recent.PerEpoch[*prompt.Cache] // the parts that prompts share
}

// Reconfigure replaces the options, except the store, for all that begins from now on. After Places.Settle, it answers
// what waits in places that became reachable. drained blocks until the turns that use earlier options are over.
func (t *Turns) Reconfigure(o Options) (drained func()) {
	o.Store = t.store
	o.setDefaults()
	s := &setup{Options: o, cache: recent.NewPerEpoch(prompt.NewCache)}
	t.mu.Lock()
	drained = t.setup.Swap(s).running.Wait
	s.running.Go(drained)
	if t.life != nil && t.life.Err() == nil { // else Run wakes what waits
		life := t.life
		t.workers.Go(func() {
			wait(life, s.Places.Settle)
			t.Sweep()
		})
	}
	t.mu.Unlock()
	return drained
}

// Sweep wakes all places where entries wait: some may have become reachable, or another process stored the entries.
func (t *Turns) Sweep() {
	t.mu.Lock()
	life := t.life
	t.mu.Unlock()
	if life == nil {
		return // Run wakes them
	}
	places, err := core.Read(life, t.store, core.View.Waiting)
	if err != nil && life.Err() == nil {
		t.setup.Load().Log.Error("waiting places not read; each continues with its next message", "err", err)
	}
	for _, path := range places {
		t.Wake(path)
	}
}

// TakeOver is Sweep for places that another process served until now, after Places.Settle. It also lets their
// questions expire.
func (t *Turns) TakeOver(ctx context.Context) error {
	err := t.store.View(ctx, t.restoreExpiries)
	wait(ctx, t.setup.Load().Places.Settle)
	t.Sweep()
	return err
}

// Leave blocks until no turn runs in places that no interface of this process reaches any more: another
// process continues there. Turns that last longer than the grace are cut short.
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

// Run answers what is received and, after Places.Settle, what waits from before. When life ends, no further
// turn begins. When work ends, running turns are cut short, and the next Run continues them.
// Run returns when all of them are over.
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
	var received []core.Path // before Run
	for q := range t.awake {
		received = append(received, q.path)
	}
	clear(t.awake)
	t.mu.Unlock()
	for _, path := range received {
		t.Wake(path)
	}
	wait(life, t.setup.Load().Places.Settle)
	for _, path := range waiting {
		t.Wake(path)
	}
	<-life.Done()
	t.retried() // takes the lock: each worker that wake started is in workers by now
	t.workers.Wait()
	return nil
}

// Wake answers what waits in a place. It is called when an interface can send there again.
func (t *Turns) Wake(place core.Path) {
	t.wake(queue{place, false}, 0, core.Path{})
	t.wake(queue{place, true}, 0, core.Path{})
}

// Retry tries failed turns again now, without the rest of their pauses. It is called when the
// cause may be over, such as a full disk.
func (t *Turns) Retry() {
	t.mu.Lock()
	defer t.mu.Unlock()
	close(t.retry)
	t.retry = make(chan struct{})
}

// retried returns the channel that the next Retry closes.
func (t *Turns) retried() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.retry
}

// wake ensures that a worker looks at the queue. begun is the number of the turn whose first
// attempt was counted with its message; 0: none. by is the author of the message; zero: nobody.
func (t *Turns) wake(q queue, begun uint64, by core.Path) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if p, ok := t.awake[q]; ok {
		p.again, p.begun = true, max(p.begun, begun)
		p.addBehind(by)
		return
	}
	if t.life != nil && t.life.Err() != nil {
		return // the next Run finds it in the log
	}
	p := &worker{turns: t, queue: q, over: make(chan struct{}), begun: begun}
	t.awake[q] = p
	if t.life != nil {
		t.workers.Add(1)
		work, cut := context.WithCancel(t.work)
		p.cut = cut
		go p.run(work)
	}
}

// endDeleted ends model calls about messages that were deleted.
func (t *Turns) endDeleted(changes []core.Event) {
	for i := range changes {
		e := &changes[i]
		if e.Kind != core.KindDeletion {
			continue
		}
		t.mu.Lock()
		p := t.awake[queue{e.Message.Path, false}]
		if p != nil && p.gone != nil {
			p.gone[e.Target] = true
			isAsking := func(asked core.Entry) bool { return asked.Message.ID == e.Target }
			if slices.ContainsFunc(p.asking, isAsking) {
				p.cancel(errWithdrawn)
			}
		}
		t.mu.Unlock()
	}
}

// reaches reports whether an interface can send to the place now.
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

// guard calls code of a plugin and logs its panic.
func guard(log *slog.Logger, what string, call func()) {
	defer func() {
		r := recover()
		if r != nil {
			log.Error("plugin panicked", "caller", what, "panic", r, "stack", string(debug.Stack()))
		}
	}()
	call()
}
