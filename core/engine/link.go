package engine

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/sony/gobreaker/v2"

	"synthbot/core"
)

// link is one engine of a chain, with what is known of its health.
type link struct {
	name    string
	model   core.Model
	log     *slog.Logger
	clock   func() time.Time
	breaker *gobreaker.TwoStepCircuitBreaker[struct{}]

	mu    sync.Mutex
	until time.Time // the server asked to be left alone until then
}

const (
	tripAfter = 4                // failures in a row after which an engine is left alone
	tripFor   = 30 * time.Second // for so long
)

func newLink(name string, model core.Model, log *slog.Logger, clock func() time.Time, health func(string, bool)) *link {
	l := &link{name: name, model: model, log: log.With("engine", name), clock: clock}
	l.breaker = gobreaker.NewTwoStepCircuitBreaker[struct{}](gobreaker.Settings{
		Name:        name,
		Timeout:     tripFor,
		ReadyToTrip: func(c gobreaker.Counts) bool { return c.ConsecutiveFailures >= tripAfter },
		OnStateChange: func(_ string, from, to gobreaker.State) {
			l.log.Warn("engine's breaker changed", "from", from.String(), "to", to.String())
			switch {
			case health == nil:
			case to == gobreaker.StateOpen && from == gobreaker.StateClosed:
				health(name, false)
			case to == gobreaker.StateClosed:
				health(name, true)
			}
		},
		IsSuccessful: healthy,
		IsExcluded:   func(err error) bool { return errors.Is(err, context.Canceled) },
	})
	return l
}

// healthy reports whether a call says nothing against the engine: a prompt that
// it refuses, or that is too long, is no fault of its own.
func healthy(err error) bool {
	failed, ok := errors.AsType[*core.ModelError](err)
	return err == nil || ok && (failed.Kind == core.Refused || failed.Kind == core.TooLong)
}

// pause is how long the engine still wants to be left alone.
func (l *link) pause() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return max(0, l.until.Sub(l.clock()))
}

// ask asks the engine, unless it is to be left alone.
func (l *link) ask(ctx context.Context, q core.Question) (core.Answer, *core.ModelError) {
	if wait := l.pause(); wait > 0 {
		return core.Answer{}, &core.ModelError{Kind: core.RetryLater, Engine: l.name, After: wait, Err: errPaused}
	}
	done, err := l.breaker.Allow()
	if err != nil {
		return core.Answer{}, &core.ModelError{Kind: core.RetryLater, Engine: l.name, After: tripFor, Err: errTripped}
	}
	answer, failed := l.guarded(ctx, q)
	if failed == nil {
		done(nil)
		return answer, nil
	}
	done(failed)
	l.note(failed)
	return core.Answer{}, failed
}

// guarded turns a panic of q.Build into an error, for the breaker must be told
// of every call.
func (l *link) guarded(ctx context.Context, q core.Question) (answer core.Answer, failed *core.ModelError) {
	defer func() {
		if p := recover(); p != nil {
			l.log.Error("panic while asking", "panic", p)
			failed = &core.ModelError{Kind: core.Fatal, Engine: l.name, Err: errPanic}
		}
	}()
	return ask(ctx, l.model, q)
}

// note logs a failure and keeps the pause that the server asked for.
func (l *link) note(failed *core.ModelError) {
	if failed.After > 0 {
		l.mu.Lock()
		l.until = l.clock().Add(failed.After)
		l.mu.Unlock()
	}
	l.log.Warn("engine failed", "kind", failed.Kind, "status", failed.Status, "after", failed.After, "error", failed.Err)
}

// askLinks tries the engines in order, and once more those that may have
// recovered, if that takes no longer than the chain's patience.
func (c *Chain) askLinks(ctx context.Context, q core.Question) (core.Answer, []*core.ModelError) {
	answer, failed, again := askEach(ctx, c.order(q.Path), q)
	if len(again) == 0 || ctx.Err() != nil {
		return answer, failed
	}
	delay := shortest(failed, backoff.NewExponentialBackOff().NextBackOff())
	if delay > c.wait || !sleep(ctx, delay) {
		return answer, failed
	}
	answer, further, _ := askEach(ctx, again, q)
	if len(further) == 0 {
		return answer, nil
	}
	return answer, append(failed, further...)
}

// askEach asks one engine after the other until one answers. When none does, it
// returns every failure, and the engines that are worth a second try.
func askEach(ctx context.Context, links []*link, q core.Question) (answer core.Answer, failed []*core.ModelError, again []*link) {
	for _, l := range links {
		answer, err := l.ask(ctx, q)
		if err == nil {
			return answer, nil, nil
		}
		failed = append(failed, err)
		if ctx.Err() != nil {
			return core.Answer{}, failed, nil
		}
		if mayRecover(err) {
			again = append(again, l)
		}
	}
	return core.Answer{}, failed, again
}

// mayRecover reports whether the engine may answer this very question a moment
// later. One that was silent for its whole timeout has had its chance.
func mayRecover(e *core.ModelError) bool {
	return e.Kind == core.RetryLater && !errors.Is(e, errTimeout) && !errors.Is(e, errTripped)
}

// shortest is the shortest time after which an engine may have recovered: what
// it asked for, else delay.
func shortest(failed []*core.ModelError, delay time.Duration) time.Duration {
	least := time.Duration(-1)
	for _, e := range failed {
		wait := e.After
		if wait == 0 {
			wait = delay
		}
		if mayRecover(e) && (least < 0 || wait < least) {
			least = wait
		}
	}
	return max(0, least)
}

// sleep waits and reports whether ctx still lives.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
