package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v5"

	"synthbot/core"
	"synthbot/core/engine/offline"
	"synthbot/core/llm"
	"synthbot/core/txt"
)

// Options are what a Chain needs besides its tables. The zero value is usable.
type Options struct {
	Log   *slog.Logger     // nil: nothing is logged
	Clock func() time.Time // nil: time.Now
	Zone  *time.Location   // nil: time.Local
	// Prefer names the engine that is tried first in a place, or "" for the order of the configuration. Optional.
	Prefer func(place core.Path) string
	// Patience is how long a question waits at most for engines that failed or asked
	// for a pause, before the offline engine answers. 0: 8 seconds; below 0: no wait.
	Patience time.Duration
	// Health is called when an engine is paused after repeated failures, for the people who caused them or for
	// everybody, and when it answers again. It must not block. Optional.
	Health func(engine string, h Health)
	// Failed is called for each failed call, even if another engine then answers. It must not block. Optional.
	Failed func(engine string, failed *llm.Error)
}

func (o Options) withDefaults() Options {
	o.Log, o.Zone = cmp.Or(o.Log, slog.New(slog.DiscardHandler)), cmp.Or(o.Zone, time.Local)
	o.Patience = cmp.Or(o.Patience, 8*time.Second)
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.Prefer == nil {
		o.Prefer = func(core.Path) string { return "" }
	}
	return o
}

// Chain asks its engines in order. Safe for concurrent use.
type Chain struct {
	links     []*link   // all engines but the offline one
	last      llm.Model // the offline engine as a fallback; nil: disabled
	lastAlone llm.Model // the offline engine where it is preferred, so that it replaces no other
	options   Options
	pool      *transport
	budget    *Budget                            // nil: no limits
	show      func(place core.Path, text string) // nil: answers are shown only when complete
}

// New builds a chain from the tables, which have different names. The offline engine comes last, unless the last
// offline table is disabled. The faults of all tables are joined, each with the table's name.
// The caller closes the chain after the last question.
func New(tables []Config, o Options) (*Chain, error) {
	o = o.withDefaults()
	c := &Chain{options: o, pool: newTransport(o.Clock)}
	last := &offline.Options{Name: providerOffline, Clock: o.Clock, Zone: o.Zone}
	var faults []error
	for _, cfg := range tables {
		cfg = cfg.withDefaults()
		switch {
		case cfg.Provider == providerOffline && cfg.Disabled:
			last = nil
		case cfg.Provider == providerOffline:
			last = &offline.Options{Name: cfg.Name, Chars: cfg.MaxPromptChars, Clock: o.Clock, Zone: o.Zone}
		case !cfg.Disabled:
			model, err := newRemote(cfg, c.pool)
			if err != nil {
				faults = append(faults, fmt.Errorf("engine %s: %w", cfg.Name, err))
				continue
			}
			c.links = append(c.links, newLink(cfg.Name, model, cfg.Parallel, o))
		}
	}
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	if last != nil {
		c.lastAlone = offline.New(*last)
		last.Standby = len(c.links) > 0
		c.last = offline.New(*last)
	}
	if len(c.links) == 0 && c.last == nil {
		return nil, errors.New("no engine is enabled: enable one, or keep the offline engine")
	}
	return c, nil
}

// Close closes idle connections. The chain must not be used afterwards.
func (c *Chain) Close() { c.pool.close() }

// Names lists the engines in the order in which they are tried.
func (c *Chain) Names() []string {
	var names []string
	for _, l := range c.links {
		names = append(names, l.name)
	}
	if c.last != nil {
		names = append(names, c.last.Limits().Engine)
	}
	return names
}

// Within returns a chain of the same engines that keeps to a budget and shows messages while they are written.
// Each may be nil. show is called with the whole text so far; an empty text retracts what was shown. If an engine
// fails, the text of the next one replaces its text. show must not block.
func (c *Chain) Within(budget *Budget, show func(place core.Path, text string)) *Chain {
	within := *c
	within.budget, within.show = budget, show
	return &within
}

// Limits returns those of the engine that is asked first in a place; the command that prints prompts uses them.
func (c *Chain) Limits(place core.Path) llm.Limits {
	links, last := c.order(place)
	if len(links) == 0 {
		return last.Limits()
	}
	return links[0].limits()
}

// order returns the links with the preferred one first, and the offline engine. If that one is
// preferred, there are no links.
func (c *Chain) order(place core.Path) ([]*link, llm.Model) {
	name := c.options.Prefer(place)
	if c.last != nil && name == c.last.Limits().Engine {
		return nil, c.lastAlone
	}
	i := slices.IndexFunc(c.links, func(l *link) bool { return l.name == name })
	if i <= 0 {
		return c.links, c.last
	}
	return slices.Concat(c.links[i:i+1], c.links[:i], c.links[i+1:]), c.last
}

// Ask implements core.Asker. It tries the engines in order, then once more those that may have recovered, then
// the offline engine, unless the others refuse to answer this. Each call has its own request from q.Build, so that
// the stream of a failed call is not mixed with the next one's. The error is a *llm.Error that wraps the errors of all
// engines.
func (c *Chain) Ask(ctx context.Context, q core.Question) (llm.Answer, error) {
	hide := c.showWhileWritten(&q)
	held, err := c.budget.reserve(ctx, &q)
	if err != nil {
		return llm.Answer{}, err
	}
	defer held.release()
	links, last := c.order(q.Path)
	var failed []*llm.Error
	const rounds = 2 // in the second one, those that may have recovered are asked
	for round := range rounds {
		if round > 0 {
			links = c.recovered(ctx, links, failed)
		}
		for _, l := range links {
			answer, err := l.ask(ctx, q)
			if err == nil {
				answer.Failed = texts(failed)
				return answer, nil
			}
			failed = append(failed, err)
			if ctx.Err() != nil {
				break
			}
		}
	}
	if last != nil && ctx.Err() == nil && held.spent == nil && !isRefused(failed) {
		answer, err := c.ask(ctx, last, q)
		if err == nil {
			answer.Failed = texts(failed)
			return answer, nil
		}
		failed = append(failed, err)
	}
	hide()
	switch {
	case held.spent != nil:
		return llm.Answer{}, held.spent
	case ctx.Err() != nil:
		return llm.Answer{}, &llm.Error{Kind: llm.ErrorRetryLater, Err: context.Cause(ctx)}
	}
	return llm.Answer{}, joinErrors(failed)
}

// isRefused reports whether the engines refuse to answer. The offline engine would take that for an outage, and ask
// the user to try again.
func isRefused(failed []*llm.Error) bool {
	byModel := func(e *llm.Error) bool { return e.Kind == llm.ErrorRefused && !errors.Is(e, errSpent) }
	return slices.ContainsFunc(failed, byModel) && joinErrors(failed).Kind == llm.ErrorRefused
}

// recovered returns the links that may recover from their errors, after waiting until the first of them may have.
// It returns none if that would take longer than Options.Patience.
func (c *Chain) recovered(ctx context.Context, links []*link, failed []*llm.Error) (recovering []*link) {
	wait := time.Duration(math.MaxInt64)
	usual := backoff.NewExponentialBackOff().NextBackOff()
	for i, err := range failed {
		isDone := errors.Is(err, errTimeout) || errors.Is(err, errTripped) // asking again would not help
		if err.Kind == llm.ErrorRetryLater && !isDone {
			recovering = append(recovering, links[i])
			wait = min(wait, cmp.Or(err.After, usual))
		}
	}
	if len(recovering) == 0 || wait > c.options.Patience {
		return nil
	}
	select {
	case <-ctx.Done():
		return nil
	case <-time.After(wait):
		return recovering
	}
}

// texts returns the errors as admins read them.
func texts(failed []*llm.Error) (list []string) {
	for _, e := range failed {
		list = append(list, txt.Clip(txt.Line(e.Error()), 300))
	}
	return list
}

func (c *Chain) ask(ctx context.Context, m llm.Model, q core.Question) (answer llm.Answer, failed *llm.Error) {
	limits := m.Limits()
	defer catchPanic(c.options.Log, limits.Engine, &answer, &failed)
	request, err := q.Build(limits)
	if err == nil {
		if answer, err = m.Generate(ctx, request); err == nil {
			return answer, nil
		}
	}
	return llm.Answer{}, asModelError(limits.Engine, err)
}

// catchPanic turns a panic while asking an engine into an error. It must be deferred directly.
func catchPanic(log *slog.Logger, engine string, answer *llm.Answer, failed **llm.Error) {
	p := recover()
	if p != nil {
		log.Error("panic while asking", "engine", engine, "panic", p)
		*answer, *failed = llm.Answer{}, &llm.Error{Kind: llm.ErrorFatal, Engine: engine, Err: errPanic}
	}
}

// asModelError returns the *llm.Error in err, or wraps err in a fatal one.
func asModelError(engine string, err error) *llm.Error {
	if failed, ok := errors.AsType[*llm.Error](err); ok {
		return failed
	}
	return &llm.Error{Kind: llm.ErrorFatal, Engine: engine, Err: err}
}

// joinErrors makes one error of all, of which there is at least one. Its kind and After are those of the error that is
// most likely to go away, because the caller decides by them whether to try again.
func joinErrors(failed []*llm.Error) *llm.Error {
	hopes := []llm.ErrorKind{llm.ErrorFatal, llm.ErrorRefused, llm.ErrorTooLong, llm.ErrorRetryLater} // most last
	lead := *failed[0]
	all := make([]error, len(failed))
	for i, e := range failed {
		all[i] = e
		hope, best := slices.Index(hopes, e.Kind), slices.Index(hopes, lead.Kind)
		if hope > best || hope == best && e.After < lead.After {
			lead = *e
		}
	}
	if len(all) > 1 {
		lead.Err = errors.Join(all...)
	}
	return &lead
}

// Probe is the result of asking an engine for one token.
type Probe struct {
	Engine string
	Err    error // nil: it answers
}

// Probe asks every engine but the offline one for one token. Lists of models would not do: not every
// server has one, and they differ in what they list.
func (c *Chain) Probe(ctx context.Context) []Probe {
	const limit = 30 * time.Second // some have to load their model first
	var probes []Probe
	for _, l := range c.links {
		r, ok := l.model.(*remote)
		if !ok {
			continue
		}
		cfg := r.cfg
		cfg.MaxTokens, cfg.Timeout = 1, min(cfg.Timeout, limit)
		short, err := newRemote(cfg, r.transport)
		if err == nil {
			hello := []llm.Utterance{{Role: llm.RoleUser, Text: "Hello"}}
			_, err = short.Generate(ctx, llm.Request{Messages: hello})
		}
		failed, isFailed := errors.AsType[*llm.Error](err)
		isBadRequest := isFailed && failed.Status == http.StatusBadRequest
		isLimited := isBadRequest && strings.Contains(err.Error(), "output limit was reached")
		if isLimited || errors.Is(err, errEmptyAnswer) {
			err = nil // a single token may have no visible text
		}
		probes = append(probes, Probe{l.name, err})
	}
	return probes
}

// showWhileWritten makes q stream its answer to c.show, unless the answer must not be shown. hide retracts
// what was shown.
func (c *Chain) showWhileWritten(q *core.Question) (hide func()) {
	if c.show == nil || q.Unshown {
		return func() {}
	}
	place, build, shown := q.Path, q.Build, ""
	update := func(text string) {
		if text != shown {
			shown = text
			c.show(place, text)
		}
	}
	q.Build = func(l llm.Limits) (llm.Request, error) {
		update("")
		r, err := build(l)
		if err != nil || r.Stream != nil {
			return r, err
		}
		reveal := NewReveal(place, core.MessagePrefix+place.Interface())
		r.Stream = func(piece string) {
			reveal.Write(piece)
			update(reveal.Text())
		}
		return r, nil
	}
	return func() { update("") }
}
