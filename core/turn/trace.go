package turn

import (
	"context"
	"time"

	"synthbot/core"
)

// traced notes what came of one question to the engines.
func (c *exchange) traced(took time.Duration, a core.Answer, sections []core.Section, err error) {
	ask := core.Ask{Round: int(c.round), Engine: a.Engine, Took: took, Usage: a.Usage, Sections: sections}
	if err != nil {
		ask.Err = err.Error()
	} else {
		for _, f := range c.faults {
			ask.Faults = append(ask.Faults, f.String())
		}
	}
	c.turn.trace.Thought += took
	c.turn.trace.Asks = append(c.turn.trace.Asks, ask)
}

// notify tells those who watch how far the turn is.
func (t *turn) notify(stage core.Stage) {
	if len(t.setup.Plugins.Watchers) == 0 {
		return
	}
	s := core.TurnStage{Turn: t.journal.id, Stage: stage, Began: t.trace.Began, Person: t.person(), Private: t.who.Private}
	for _, w := range t.setup.Plugins.Watchers {
		guard(t.setup.Log, "watcher", func() { w.Watch(s) })
	}
}

// finish tells everybody that the turn is over.
func (t *turn) finish(end core.TurnEnd) {
	t.trace.Took = time.Since(t.trace.Began)
	if t.setup.epoch() == t.journal.epoch { // else it may be one of who was forgotten since
		t.trace.Memories = t.input.parts.Recon.Memories
	}
	for _, d := range t.results.all {
		t.trace.Steps = append(t.trace.Steps, d.Outcome)
	}
	trace := t.trace // who keeps it keeps no turn with it
	end.Turn, end.Messages, end.Person, end.Private, end.Trace = t.journal.id, t.ids(), t.person(), t.who.Private, &trace
	end.Command = t.worker.queue.commands
	end.Stale = t.staleness()
	t.setup.observe(end)
}

// staleness returns what reports whether somebody was forgotten whose words the turn
// was told.
func (t *turn) staleness() func() bool {
	store, concerned := t.setup.Store, []core.Path{t.path}
	began := core.WithEpoch(context.Background(), t.journal.epoch)
	for _, a := range t.input.people() {
		concerned = t.setup.person(concerned, t.path, a.ID)
	}
	return func() bool { return forgotten(began, store, concerned...) }
}
