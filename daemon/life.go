package daemon

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"synthbot/core"
	"synthbot/core/txt"
)

// replace puts other parts in force: turns that run keep theirs to the end,
// interfaces and plugins that are new are started, and those that are gone stop.
func (b *Bot) replace(life *lives, next *parts) error {
	b.mu.Lock()
	old := b.parts
	b.parts = next
	b.mu.Unlock()
	for _, i := range old.Interfaces {
		if !slices.Contains(next.Interfaces, i) {
			b.stop(i)
		}
	}
	for _, r := range next.runners() {
		if !slices.Contains(old.runners(), r) {
			b.start(life.tools, r.name, r.key, r.run)
		}
	}
	b.embed(next)
	b.conditions.renewed()
	drained := b.Turns.Reconfigure(b.options(next))
	for _, i := range next.Interfaces {
		if !slices.Contains(old.Interfaces, i) {
			b.listen(life.intake, i)
		}
	}
	b.others.Go(func() { // their turns may still need them
		drained()
		for _, r := range old.runners() {
			if !slices.Contains(next.runners(), r) {
				b.stop(r.key)
			}
		}
	})
	return old.Engines.Close()
}

// renew builds the catalogue anew, after a plugin's actions have changed.
func (b *Bot) renew() {
	b.exchange.Lock()
	defer b.exchange.Unlock()
	b.rebuild()
}

// rebuild is renew for who holds exchange.
func (b *Bot) rebuild() {
	b.mu.Lock()
	next := *b.parts
	b.mu.Unlock()
	if err := next.catalogue(next.policy()); err != nil {
		b.log.Error("actions have changed, and cannot be taken together; the former ones stay", "err", err)
		return
	}
	b.mu.Lock()
	b.parts = &next
	b.mu.Unlock()
	b.Turns.Reconfigure(b.options(&next))
	b.log.Info("actions have changed", "actions", len(next.Snapshot.All()))
}

// runner is a plugin at work in the background.
type runner struct {
	name string
	key  any
	run  core.Runner
}

// runners are the parts that work in the background.
func (p *parts) runners() (all []runner) {
	for _, l := range p.plugins {
		if r, ok := l.Plugin.(core.Runner); ok {
			all = append(all, runner{"plugin " + l.Name(), l.Plugin, r})
		}
	}
	if p.small != nil {
		all = append(all, runner{"recon", p.small, p.small})
	}
	return all
}

// lives are the times for which things may go on: intake ends first, then turns
// finish, and tools end last.
type lives struct{ intake, tools context.Context }

// live runs the bot: plugins and turns first, then interfaces. It lasts as long
// as control does, which may change things meanwhile; when it returns, everything
// that live started is over.
// Turns that still run then have that much time to finish; what is cut short
// goes on in the next life.
func (b *Bot) live(ctx context.Context, patience time.Duration, control func(life *lives)) error {
	intake, end := context.WithCancel(ctx)
	defer end()
	turns, rest := context.WithCancel(context.WithoutCancel(ctx))
	defer rest()
	work, abort := context.WithCancel(context.WithoutCancel(ctx))
	defer abort()
	tools, putAway := context.WithCancel(context.WithoutCancel(ctx))
	defer putAway()
	life := &lives{intake, tools}
	b.life = life
	for _, r := range b.parts.runners() {
		b.start(tools, r.name, r.key, r.run)
	}
	over := make(chan error, 1)
	go func() {
		err := b.Turns.Run(turns, work)
		if err != nil {
			end() // nobody would answer
		}
		over <- err
	}()
	var renewing sync.WaitGroup
	renewing.Go(func() { b.renewals(intake) })
	for _, i := range b.parts.Interfaces {
		b.listen(intake, i)
	}
	context.AfterFunc(intake, func() {
		if b.env.Stopping != nil {
			b.env.Stopping(patience)
		}
	})
	control(life)
	err := b.stopAll(func(w *worker) bool { _, ok := w.key.(core.Interface); return ok })
	end()
	renewing.Wait()
	rest()
	late := time.AfterFunc(patience, abort)
	defer late.Stop()
	err = errors.Join(<-over, err)
	putAway()
	return errors.Join(err, b.stopAll(func(*worker) bool { return true }))
}

// renewals waits for changes of plugins' actions.
func (b *Bot) renewals(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-b.changed:
			b.renew()
		}
	}
}

// Close ends what assemble began.
func (b *Bot) Close() error {
	b.conditions.end()
	b.runtime.Wait()
	b.others.Wait()
	if l, ok := b.ledger.(*ledger); ok {
		l.wait()
	}
	return errors.Join(b.Store.Close(), b.parts.Engines.Close())
}

// worker is an interface or a plugin at work.
type worker struct {
	name string
	key  any
	end  context.CancelFunc
	over chan struct{}
	err  error // once it is over
}

// listen starts an interface.
func (b *Bot) listen(life context.Context, i core.Interface) {
	b.start(life, "interface "+i.Name(), i, listening{i, doorbell{b.Turns, b}})
}

// listening is an interface's Listen as a core.Runner.
type listening struct {
	core.Interface
	inbox core.Inbox
}

func (l listening) Run(ctx context.Context) error { return l.Listen(ctx, l.inbox) }

// start lets something run until life ends or stop is called with its key. What
// ends by itself is told to the admins, and that it runs again.
func (b *Bot) start(life context.Context, name string, key any, r core.Runner) {
	ctx, end := context.WithCancel(life)
	w := &worker{name: name, key: key, end: end, over: make(chan struct{})}
	b.mu.Lock()
	b.running = append(b.running, w)
	b.mu.Unlock()
	go func() {
		defer close(w.over)
		back := time.AfterFunc(steady, func() { b.conditions.set(name, true, name+" runs again.") })
		err := r.Run(ctx)
		if back.Stop(); err != nil && ctx.Err() == nil {
			w.err = fmt.Errorf("%s: %w", name, err)
			b.log.Error("ended", "what", name, "err", err)
			b.conditions.set(name, false, name+" has stopped: "+txt.Line(err.Error()))
		}
	}()
}

// broken reports whether what was started under the key has failed: a reload makes
// it anew.
func (b *Bot) broken(key any) bool {
	w := b.find(key)
	return w != nil && w.ended() && w.err != nil
}

// ended reports whether it is over.
func (w *worker) ended() bool {
	select {
	case <-w.over:
		return true
	default:
		return false
	}
}

// find returns the worker of that key.
func (b *Bot) find(key any) *worker {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, w := range b.running {
		if w.key == key {
			return w
		}
	}
	return nil
}

// stop ends one worker and waits for it.
func (b *Bot) stop(key any) {
	w := b.find(key)
	if w == nil {
		return
	}
	w.end()
	<-w.over
	b.mu.Lock()
	defer b.mu.Unlock()
	b.running = slices.DeleteFunc(b.running, func(other *worker) bool { return other == w })
}

// stopAll ends the workers that are meant, the last one first, and returns their
// errors.
func (b *Bot) stopAll(meant func(*worker) bool) error {
	b.mu.Lock()
	running := slices.Clone(b.running)
	b.mu.Unlock()
	var errs []error
	for _, w := range slices.Backward(running) {
		if meant(w) {
			b.stop(w.key)
			errs = append(errs, w.err)
		}
	}
	return errors.Join(errs...)
}

// ServeOne runs the bot until ctx ends or the interface does.
func (b *Bot) ServeOne(ctx context.Context, patience time.Duration, i core.Interface) error {
	return b.live(ctx, patience, func(life *lives) {
		select {
		case <-b.find(i).over:
		case <-life.intake.Done():
		}
	})
}
