package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"time"

	"github.com/cenkalti/backoff/v5"

	"synthbot/core"
	"synthbot/core/engine/offline"
	"synthbot/core/llm"
	"synthbot/core/txt"
)

// Options are what a Chain needs besides its tables. The zero value will do.
type Options struct {
	Log   *slog.Logger     // nil: nothing is logged
	Clock func() time.Time // nil: time.Now
	Zone  *time.Location   // nil: time.Local
	// Prefer names the engine to be tried first in a place; "" for the order of
	// the configuration. Optional.
	Prefer func(place core.Path) string
	// Patience is the longest that a question waits for an engine that failed or
	// asked for a pause, before the last link answers; 0: 8 seconds, below 0: no
	// wait at all.
	Patience time.Duration
	// Health is called when an engine is left alone after failures in a row, by the
	// people who caused them or by everybody, and when it answers again. It returns
	// at once. Optional.
	Health func(engine string, h Health)
	// Failed is called for each call that failed, also when another engine answers
	// then. It returns at once. Optional.
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
	links   []*link // those that need a network
	last    llm.Model
	quiet   llm.Model // last, where it is chosen and replaces nobody
	options Options
	pool    *transport
	budget  *Budget                            // nil: nothing limits what is asked
	show    func(place core.Path, text string) // nil: answers are not shown before they are whole
}

// New builds the chain of the tables. The offline engine is its last link,
// unless a disabled offline table says otherwise. Faults of all tables come
// joined, each with the table's name. Close the chain when nobody asks any more.
func New(tables []Config, o Options) (*Chain, error) {
	o = o.withDefaults()
	c := &Chain{options: o, pool: newTransport(o.Clock)}
	last, faults := c.fill(tables)
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	if last != nil {
		last.Clock, last.Zone = o.Clock, o.Zone
		c.quiet = offline.New(*last)
		last.Standby = len(c.links) > 0
		c.last = offline.New(*last)
	}
	if len(c.links) == 0 && c.last == nil {
		return nil, errors.New("no engine is left: enable one, or leave the offline engine in")
	}
	return c, nil
}

// fill makes the links; it returns the options of the last one, nil where it is
// configured out.
func (c *Chain) fill(tables []Config) (last *offline.Options, faults []error) {
	last = &offline.Options{Name: providerOffline}
	names := make(map[string]bool)
	for i, cfg := range tables {
		cfg = cfg.withDefaults()
		if names[cfg.Name] {
			const text = "engine %d: name: %q is taken; give each engine a name of its own"
			faults = append(faults, fmt.Errorf(text, i+1, cfg.Name))
		}
		names[cfg.Name] = true
		switch {
		case cfg.Provider == providerOffline && cfg.Disabled:
			last = nil
		case cfg.Provider == providerOffline && last != nil:
			last.Name, last.Chars = cfg.Name, cfg.MaxPromptChars
		case !cfg.Disabled:
			model, err := newRemote(cfg, c.pool)
			if err != nil {
				faults = append(faults, fmt.Errorf("engine %s: %w", cfg.Name, err))
				continue
			}
			c.links = append(c.links, newLink(cfg.Name, model, cfg.Parallel, c.options))
		}
	}
	return last, faults
}

// Close gives the connections back. The chain must not be asked after it.
func (c *Chain) Close() error {
	c.pool.close()
	return nil
}

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

// Within returns a chain of the same engines that asks within a budget, and calls show with the whole text so far
// of the message that an engine is writing; each may be nil. An empty text takes back what was shown before. Where
// an engine fails, the text of the next one begins anew. show returns at once.
func (c *Chain) Within(budget *Budget, show func(place core.Path, text string)) *Chain {
	within := *c
	within.budget, within.show = budget, show
	return &within
}

// Limits are those of the engine that a question in place would go to first;
// the command that prints prompts uses them.
func (c *Chain) Limits(place core.Path) llm.Limits {
	links, last := c.order(place)
	if len(links) == 0 {
		return last.Limits()
	}
	return links[0].limits()
}

// order is the links with the preferred one in front, and the last one, which serves the place
// alone where it is preferred.
func (c *Chain) order(place core.Path) ([]*link, llm.Model) {
	name := c.options.Prefer(place)
	if c.last != nil && name == c.last.Limits().Engine {
		return nil, c.quiet
	}
	i := slices.IndexFunc(c.links, func(l *link) bool { return l.name == name })
	if i <= 0 {
		return c.links, c.last
	}
	return slices.Concat(c.links[i:i+1], c.links[:i], c.links[i+1:]), c.last
}

// Ask implements core.Asker. It tries the engines in order, once more those that may have recovered, and
// then the last link. Each of them gets a request of its own from q.Build, so that what was streamed of a
// failed one is not mixed with the next. Its error is a *llm.Error that wraps what every engine said.
func (c *Chain) Ask(ctx context.Context, q core.Question) (llm.Answer, error) {
	hide := c.showing(&q)
	held, err := c.budget.reserve(ctx, &q)
	if err != nil {
		return llm.Answer{}, err
	}
	defer held.release()
	links, last := c.order(q.Path)
	var failed []*llm.Error
	for round := range maxRounds {
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
	if last != nil && ctx.Err() == nil && held.spent == nil {
		answer, err := ask(ctx, last, q)
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
	return llm.Answer{}, mostHopeful(failed)
}

// maxRounds is how often an engine is asked that may have recovered.
const maxRounds = 2

// recovered waits until the first of the links may have recovered from how each of them failed, and returns those
// that may. It returns none if that takes longer than the chain's patience.
func (c *Chain) recovered(ctx context.Context, links []*link, failed []*llm.Error) (recovering []*link) {
	wait := time.Duration(math.MaxInt64)
	usual := backoff.NewExponentialBackOff().NextBackOff()
	for i, err := range failed {
		isDone := errors.Is(err, errTimeout) || errors.Is(err, errTripped) // one that was silent has had its chance
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

// texts are failures as admins read them.
func texts(failed []*llm.Error) (list []string) {
	for _, e := range failed {
		list = append(list, txt.Clip(txt.Line(e.Error()), 300))
	}
	return list
}

// ask builds the request for one model and asks it.
func ask(ctx context.Context, m llm.Model, q core.Question) (llm.Answer, *llm.Error) {
	limits := m.Limits()
	request, err := q.Build(limits)
	if err == nil {
		var answer llm.Answer
		if answer, err = m.Generate(ctx, request); err == nil {
			return answer, nil
		}
	}
	return llm.Answer{}, typed(limits.Engine, err)
}

// typed makes a *llm.Error of any error.
func typed(engine string, err error) *llm.Error {
	if failed, ok := errors.AsType[*llm.Error](err); ok {
		return failed
	}
	return &llm.Error{Kind: llm.ErrorFatal, Engine: engine, Err: err}
}

// mostHopeful makes one error of all: the one that gives most hope leads, for the
// caller decides by it whether to try again.
func mostHopeful(failed []*llm.Error) *llm.Error {
	if len(failed) == 0 {
		return &llm.Error{Kind: llm.ErrorFatal, Err: errors.New("no engine")}
	}
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

// Probe is what an engine said when it was asked for a word.
type Probe struct {
	Engine string
	Err    error // nil: it answers
}

// probeTime is how long an engine may take for one token. Some have to load their
// model first.
const probeTime = 30 * time.Second

// Probe asks every engine for one token: servers differ in what they list as their
// models, and whether they do. The offline engine needs no asking.
func (c *Chain) Probe(ctx context.Context) []Probe {
	var probes []Probe
	for _, l := range c.links {
		r, ok := l.model.(*remote)
		if !ok {
			continue
		}
		cfg := r.cfg
		cfg.MaxTokens, cfg.Timeout = 1, min(cfg.Timeout, probeTime)
		short, err := newRemote(cfg, r.transport)
		if err == nil {
			hello := []llm.Utterance{{Role: llm.RoleUser, Text: "Hello"}}
			_, err = short.Generate(ctx, llm.Request{Messages: hello})
		}
		if errors.Is(err, errEmptyAnswer) || errors.Is(err, errOutputLimit) {
			err = nil // one token may hold no word yet
		}
		probes = append(probes, Probe{l.name, err})
	}
	return probes
}
