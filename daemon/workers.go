package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"synthbot/core"
	"synthbot/core/txt"
)

// workers are the interfaces and plugins that run, each known by a key. Safe for
// concurrent use.
type workers struct {
	log    *slog.Logger
	alerts *alerts

	mu      sync.Mutex
	running []*worker // in the order in which they were started

	intake, tools context.Context // for how long interfaces, and plugins, run; set before any starts
}

type worker struct {
	name   string
	key    any
	cancel context.CancelFunc
	done   chan struct{}
	err    error // valid when done is closed
}

// start runs something until ctx ends or stop is called with its key. A failure is
// reported to the admins, and so is its recovery.
func (w *workers) start(ctx context.Context, name string, key any, run func(context.Context) error) {
	ctx, cancel := context.WithCancel(ctx)
	one := &worker{name: name, key: key, cancel: cancel, done: make(chan struct{})}
	w.mu.Lock()
	w.running = append(w.running, one)
	w.mu.Unlock()
	go func() {
		defer close(one.done)
		recovery := time.AfterFunc(steady, func() { w.alerts.set(name, true, name+" runs again.") })
		err := run(ctx)
		recovery.Stop()
		if err != nil && ctx.Err() == nil {
			one.err = fmt.Errorf("%s: %w", name, err)
			w.log.Error("ended", "worker", name, "err", err)
			w.alerts.set(name, false, name+" has stopped: "+txt.Line(err.Error()))
		}
	}()
}

func (w *worker) ended() bool {
	select {
	case <-w.done:
		return true
	default:
		return false
	}
}

func (w *workers) find(key any) *worker {
	w.mu.Lock()
	defer w.mu.Unlock()
	i := slices.IndexFunc(w.running, func(one *worker) bool { return one.key == key })
	if i < 0 {
		return nil
	}
	return w.running[i]
}

// failed reports whether the worker with the key has ended with an error: a reload
// replaces it.
func (w *workers) failed(key any) bool {
	one := w.find(key)
	return one != nil && one.ended() && one.err != nil
}

func (w *workers) stop(key any) {
	one := w.find(key)
	if one == nil {
		return
	}
	one.cancel()
	<-one.done
	w.mu.Lock()
	defer w.mu.Unlock()
	w.running = slices.DeleteFunc(w.running, func(other *worker) bool { return other == one })
}

// stopAll ends the workers that match, the last one first, and returns their errors.
func (w *workers) stopAll(match func(*worker) bool) error {
	w.mu.Lock()
	running := slices.Clone(w.running)
	w.mu.Unlock()
	var errs []error
	for _, one := range slices.Backward(running) {
		if match(one) {
			w.stop(one.key)
			errs = append(errs, one.err)
		}
	}
	return errors.Join(errs...)
}

// runner is a part that works in the background.
type runner struct {
	name string
	core.Runner
}

// runners are the parts that work in the background, besides interfaces.
func (p *parts) runners() (all []runner) {
	for _, l := range p.plugins {
		if r, ok := l.Plugin.(core.Runner); ok {
			all = append(all, runner{"plugin " + l.Name(), r})
		}
	}
	if p.small != nil {
		all = append(all, runner{"recon", p.small})
	}
	if p.speaker != nil {
		all = append(all, runner{"speech synthesis", p.speaker})
	}
	if p.listener != nil {
		all = append(all, runner{"speech", p.listener})
	}
	return all
}

// startPlugins starts what works in the background and did not run before.
func (b *Bot) startPlugins(old, next *parts) {
	for _, r := range next.runners() {
		if !slices.Contains(old.runners(), r) {
			b.workers.start(b.workers.tools, r.name, r.Runner, r.Run)
		}
	}
}

// startInterfaces starts the interfaces that did not run before.
func (b *Bot) startInterfaces(old, next *parts) {
	for _, i := range next.Interfaces {
		if !slices.Contains(old.Interfaces, i) {
			b.workers.start(b.workers.intake, "interface "+i.Name(), i, func(ctx context.Context) error {
				return i.Listen(ctx, announcing{b.Turns, b.alerts})
			})
		}
	}
}
