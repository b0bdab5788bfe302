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

// link is one engine of a chain, with what is known of its health.
type link struct {
	name    string
	model   llm.Model
	queue   *queue
	log     *slog.Logger
	options Options

	mu      sync.Mutex
	until   time.Time // the server asked to be left alone until then
	breaker breaker
	guess   int       // the longest prompt in estimated tokens, where the server named no size that helps
	guessed time.Time // the guess is forgotten after lessonTime
}

func newLink(name string, model llm.Model, parallel int, o Options) *link {
	return &link{name: name, model: model, queue: newQueue(parallel), log: o.Log.With("engine", name), options: o}
}

// ask asks the engine, unless it is to be left alone: it builds the prompt, waits until a call may run, makes it,
// and notes what it says about the engine. A prompt that was too long is built again, shorter.
func (l *link) ask(ctx context.Context, q core.Question) (answer llm.Answer, failed *llm.Error) {
	// One question alone never makes all later prompts much shorter: the guess is the limit of the prompt
	// that was taken in the end, or of the first shorter one where none was.
	leave, limits, guess := func() {}, l.limits(), 0
	defer func() {
		p := recover() // of q.Build
		if p != nil {
			l.log.Error("panic while asking", "panic", p)
			answer, failed = llm.Answer{}, &llm.Error{Kind: llm.ErrorFatal, Engine: l.name, Err: errPanic}
		}
		leave()
		if guess > 0 {
			l.note(func(now time.Time) { l.guess, l.guessed = max(guess, minPromptTokens), now })
		}
	}()
	for try := 1; ; try++ {
		_, failed = l.admit(q.People, false)
		if failed != nil {
			return answer, failed
		}
		request, err := q.Build(limits)
		if err != nil {
			return answer, typed(l.name, err)
		}
		leave, err = l.queue.enter(ctx, q.People, q.Behind)
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
		failed = typed(l.name, err)
		l.noteFailure(ctx, q.People, trial, failed)
		if failed.Kind != llm.ErrorTooLong || try == maxTooLong {
			return llm.Answer{}, failed
		}
		leave()
		known := l.limits()
		limits = shorter(limits, known, textTokens(request), try)
		if guess == 0 && limits.Tokens != known.Tokens {
			guess = limits.Tokens
		}
	}
}

// limits are those of the model, or the guess where it is smaller.
func (l *link) limits() llm.Limits {
	limits := l.model.Limits()
	l.mu.Lock()
	defer l.mu.Unlock()
	tokens := minLimit(limits.Tokens, l.guess)
	if tokens != limits.Tokens && l.options.Clock().Sub(l.guessed) < lessonTime {
		limits.Tokens, limits.Learned = tokens, true
	}
	return limits
}

// maxTooLong is how often an engine is asked that finds the prompt too long.
const maxTooLong = 5

// shorter are limits to which a prompt is built again that was too long under the
// limits before, with so many estimated tokens. now are those of the model, which
// may have learnt by it.
func shorter(before, now llm.Limits, size, try int) llm.Limits {
	if try > 1 || now.Tokens <= 0 || now.Tokens >= size {
		tokens := minLimit(minLimit(before.Tokens, now.Tokens), size)
		now.Tokens, now.Learned = max(1, int(float64(tokens)*shorterParts)), true
	}
	return now
}

// noteFailure reports a call that failed, and notes what that says about the engine.
func (l *link) noteFailure(ctx context.Context, people []core.Path, trial bool, failed *llm.Error) {
	if ctx.Err() != nil { // the caller went away, which says nothing about the engine: the next one tries it
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
	if failed.Kind == llm.ErrorRefused || failed.Kind == llm.ErrorTooLong { // it is the prompt's fault
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

// admit says why the engine is not asked by these people now; nil: it is. If a call
// begins, trial says that it tries an engine that was left alone. While one call tries,
// the others go on leaving it alone.
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

// note changes what is known of the engine, and reports its health if that changes.
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
	tripAfter = 4                // failures in a row after which an engine is left alone
	tripFor   = 30 * time.Second // for so long
)

// Health is what the last calls say about an engine.
type Health int

const (
	HealthGood Health = iota
	HealthSome        // what the same people asked failed, call after call: it is left alone for them
	HealthBad         // calls of different people failed in a row: it is left alone
)

// breaker counts the calls of an engine that failed in a row, and says when the
// engine is left alone. As long as the same people caused all of these calls,
// their requests may be the reason, so the engine is left alone for them only.
type breaker struct {
	failed   int
	suspects []core.Path // the people who caused every one of these calls
	until    time.Time
	why      string // the last of them failed
}

// countsAgainst reports whether the failures count against what these people ask.
func (b *breaker) countsAgainst(people []core.Path) bool {
	innocent := func(p core.Path) bool { return !slices.Contains(b.suspects, p) }
	return b.failed >= tripAfter && (len(b.suspects) == 0 || len(people) > 0 && !slices.ContainsFunc(people, innocent))
}

// health says which users the engine does not serve for now.
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
