package commands

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"sync"
	"syscall"
	"time"

	"synthbot/interfaces/console"
)

const (
	lastWords = 2 * time.Second // to say why the process ends
	maxStacks = 16 << 20        // bytes
)

// ending ends the process when what runs does not end by itself.
type ending struct {
	rest time.Duration // after the grace of turns, for all else to end

	mu    sync.Mutex
	timer *time.Timer // runs from the moment the program begins to end
}

// after calls abandon after the grace and rest, unless over is called before. Only the first call counts.
func (e *ending) after(grace time.Duration, abandon func(why string)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.timer == nil {
		limit := grace + e.rest
		e.timer = time.AfterFunc(limit, func() { abandon(fmt.Sprintf("not everything ended within %s", limit)) })
	}
}

func (e *ending) over() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.timer != nil {
		e.timer.Stop()
	}
}

// untilSignal returns a context that ends with SIGINT, SIGTERM or one of the others.
// From then on the program has the grace, and a while more, to end; then, or with a
// second signal, it is abandoned. stop is called when all is over.
func (p *program) untilSignal(
	ctx context.Context, grace time.Duration, others ...os.Signal,
) (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	p.terminal = console.Keep(p.In)
	signals, over := make(chan os.Signal, 2), make(chan struct{})
	signal.Notify(signals, append(others, syscall.SIGINT, syscall.SIGTERM)...)
	go func() {
		for second := false; ; second = true {
			select {
			case <-over:
				return
			case s := <-signals:
				if second {
					p.abandon(fmt.Sprintf("ended at once by signal: %s", s))
				}
				cancel()
				p.ending.after(grace, p.abandon)
			}
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		close(over)
		p.ending.over()
		cancel()
	}
}

// abandon ends the process at once, whatever runs. It says why on standard error,
// with the stacks of all goroutines.
func (p *program) abandon(why string) {
	said := make(chan struct{})
	go func() { // standard error may be a pipe that nobody reads
		defer close(said)
		fmt.Fprintf(p.Err, "%ssynthbot: %s\n%s\n", p.ErrorPrefix(), why, stacks())
	}()
	select {
	case <-said:
	case <-time.After(lastWords):
	}
	if p.terminal != nil {
		p.terminal()
	}
	os.Exit(statusFailed)
}

func stacks() []byte {
	for size := 64 << 10; ; size *= 2 {
		buf := make([]byte, size)
		n := runtime.Stack(buf, true)
		if n < size || size >= maxStacks {
			return buf[:n]
		}
	}
}
