package engine

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"synthbot/core"
	"synthbot/core/llm"
)

// link is one engine of a chain, with its queue and its health.
type link struct {
	name    string
	model   llm.Model
	queue   *queue
	log     *slog.Logger
	options Options

	mu      sync.Mutex
	until   time.Time // the server asked for a pause until then
	breaker breaker
	guess   int       // the longest prompt in estimated tokens, if the server's errors did not help; 0: none
	guessed time.Time // the guess expires after learnedTime
}

func newLink(name string, model llm.Model, parallel int, o Options) *link {
	return &link{name: name, model: model, queue: newQueue(parallel), log: o.Log.With("engine", name), options: o}
}

// ask asks the engine, unless it is paused: it builds the prompt, waits until a call may run, makes the call
// and updates the engine's health. If the prompt is too long, it tries again with a shorter one.
func (l *link) ask(ctx context.Context, q core.Question) (answer llm.Answer, failed *llm.Error) {
	// The guess is the limit of the prompt that the engine accepted in the end, or else that of the first
	// shorter prompt. So a single question cannot make all later prompts much shorter.
	release, limits, guess := func() {}, l.limits(), 0
	defer func() {
		release()
		if guess > 0 {
			l.note(func(now time.Time) { l.guess, l.guessed = max(guess, minPromptTokens), now })
		}
	}()
	defer catchPanic(l.options.Log, l.name, &answer, &failed)
	for try := 1; ; try++ {
		_, failed = l.admit(q.People, false)
		if failed != nil {
			return answer, failed
		}
		request, err := q.Build(limits)
		if err != nil {
			return answer, asModelError(l.name, err)
		}
		release, err = l.queue.acquire(ctx, q.People, q.Behind)
		if err != nil {
			return answer, &llm.Error{Kind: llm.ErrorRetryLater, Engine: l.name, Err: err}
		}
		trial, failed := l.admit(q.People, true)
		if failed != nil {
			return answer, failed
		}
		answer, err = l.model.Generate(ctx, request)
		if err == nil {
			l.noteSuccess()
			if guess > 0 {
				guess = limits.Tokens
			}
			return answer, nil
		}
		failed = asModelError(l.name, err)
		l.noteFailure(ctx, q.People, trial, failed)
		if failed.Kind != llm.ErrorTooLong || try == maxTooLong {
			return llm.Answer{}, failed
		}
		release()
		known := l.limits()
		limits = shorter(limits, known, textTokens(request), try)
		if guess == 0 && limits.Tokens != known.Tokens {
			guess = limits.Tokens
		}
	}
}

// limits returns those of the model, with the guess if that is smaller.
func (l *link) limits() llm.Limits {
	limits := l.model.Limits()
	l.mu.Lock()
	defer l.mu.Unlock()
	tokens := minLimit(limits.Tokens, l.guess)
	if tokens != limits.Tokens && l.options.Clock().Sub(l.guessed) < learnedTime {
		limits.Tokens, limits.Learned = tokens, true
	}
	return limits
}

// maxTooLong is how often an engine is asked in total if the prompt is too long.
const maxTooLong = 5

// shorter returns the limits for the next try after a prompt of size estimated tokens, built for the limits before, was
// too long. now are the model's present limits, which may have been learned from the error.
func shorter(before, now llm.Limits, size, try int) llm.Limits {
	if try > 1 || now.Tokens <= 0 || now.Tokens >= size {
		tokens := minLimit(minLimit(before.Tokens, now.Tokens), size)
		now.Tokens, now.Learned = max(1, int(float64(tokens)*shrinkFactor)), true
	}
	return now
}

func (l *link) noteFailure(ctx context.Context, people []core.Path, trial bool, failed *llm.Error) {
	if ctx.Err() != nil { // canceled by the caller: no sign of the engine's health
		if trial {
			l.note(func(now time.Time) { l.breaker.until = now })
		}
		return
	}
	l.log.Warn("engine failed",
		"kind", failed.Kind, "status", failed.Status, "retry_in", failed.After, "err", failed.Err)
	if l.options.Failed != nil {
		l.options.Failed(l.name, failed)
	}
	if failed.Kind == llm.ErrorRefused || failed.Kind == llm.ErrorTooLong { // the engine works
		l.noteSuccess()
		return
	}
	l.note(func(now time.Time) {
		if failed.After > 0 {
			l.until = now.Add(failed.After)
		}
		l.breaker.fail(people, now)
		l.breaker.why = fmt.Sprintf("%s: %v", failed.Kind, failed.Err)
	})
}

// admit returns an error if the engine is paused for these people. If begins, a call begins now, and trial reports that
// it is the first one after a pause: until it ends, the pause goes on for other calls.
func (l *link) admit(people []core.Path, begins bool) (trial bool, failed *llm.Error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.options.Clock()
	wait := l.until.Sub(now)
	if wait > 0 {
		return false, &llm.Error{Kind: llm.ErrorRetryLater, Engine: l.name, After: wait, Err: errPaused}
	}
	failing := l.breaker.countsAgainst(people)
	if failing && now.Before(l.breaker.until) {
		wait = l.breaker.until.Sub(now)
		return false, &llm.Error{Kind: llm.ErrorRetryLater, Engine: l.name, After: wait,
			Err: fmt.Errorf("%w, last with %s", errTripped, l.breaker.why)}
	}
	trial = begins && failing
	if trial {
		l.breaker.until = now.Add(tripFor)
	}
	return trial, nil
}

func (l *link) noteSuccess() { l.note(func(time.Time) { l.breaker = breaker{} }) }

// note changes the engine's state, and reports its health if that changes.
func (l *link) note(change func(now time.Time)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	before := l.breaker.health()
	change(l.options.Clock())
	now := l.breaker.health()
	if now == before {
		return
	}
	l.log.Warn("engine's health changed", "healthy", now == HealthGood, "everywhere", now == HealthBad)
	if l.options.Health != nil {
		l.options.Health(l.name, now)
	}
}

const (
	tripAfter = 4                // failures in a row after which an engine is paused
	tripFor   = 30 * time.Second // the length of the pause
)

// Health is the state of an engine after its last calls.
type Health int

const (
	HealthGood Health = iota
	HealthSome        // calls of the same people failed in a row: the engine is paused for them
	HealthBad         // calls of different people failed in a row: the engine is paused for everybody
)

// breaker is a circuit breaker: it counts the calls of an engine that failed in a row, and pauses the engine. If the
// same people caused all of these calls, their requests may be the reason, so the engine is paused for them only.
type breaker struct {
	failed   int
	suspects []core.Path // the people who caused each of these calls
	until    time.Time
	why      string // the last error
}

// countsAgainst reports whether the failures pause the engine for these people.
func (b *breaker) countsAgainst(people []core.Path) bool {
	innocent := func(p core.Path) bool { return !slices.Contains(b.suspects, p) }
	return b.failed >= tripAfter && (len(b.suspects) == 0 || len(people) > 0 && !slices.ContainsFunc(people, innocent))
}

func (b *breaker) health() Health {
	switch {
	case b.failed < tripAfter:
		return HealthGood
	case len(b.suspects) > 0:
		return HealthSome
	}
	return HealthBad
}

func (b *breaker) fail(people []core.Path, now time.Time) {
	if b.failed == 0 {
		b.suspects = slices.Clone(people)
	}
	b.suspects = slices.DeleteFunc(b.suspects, func(p core.Path) bool { return !slices.Contains(people, p) })
	b.failed++
	b.until = now.Add(tripFor)
}
