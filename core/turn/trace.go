package turn

import (
	"context"
	"time"

	"synthbot/core"
)

// traced notes what came of one question to the engines.
func (c *conversation) traced(took time.Duration, a core.Answer, sections []core.Section, err error) {
	ask := core.Ask{Round: int(c.round), Engine: a.Engine, Took: took, Usage: a.Usage, Sections: sections}
	if err != nil {
		ask.Err = err.Error()
	} else {
		for _, f := range c.faults {
			ask.Faults = append(ask.Faults, f.String())
		}
	}
	c.trace.Thought += took
	c.trace.Asks = append(c.trace.Asks, ask)
}

// move tells those who watch how far the turn is.
func (t *turn) move(stage core.Stage) {
	if len(t.with.Watchers) == 0 {
		return
	}
	s := core.TurnStage{Turn: t.id, Stage: stage, Began: t.trace.Began, Person: t.person(), Private: t.who.Private}
	for _, w := range t.with.Watchers {
		guard(t.with.Log, "watcher", func() { w.Watch(s) })
	}
}

// finish tells everybody that the turn is over.
func (t *turn) finish(end core.TurnEnd) {
	t.trace.Took = time.Since(t.trace.Began)
	if t.with.epoch() == t.epoch { // else it may be one of who was forgotten since
		t.trace.Memories = t.parts.Recon.Memories
	}
	for _, d := range t.finished {
		t.trace.Steps = append(t.trace.Steps, d.Outcome)
	}
	trace := t.trace // who keeps it keeps no turn with it
	end.Turn, end.Messages, end.Person, end.Private, end.Trace = t.id, t.ids(), t.person(), t.who.Private, &trace
	end.Command = t.commands
	end.Stale = t.told()
	t.with.observe(end)
}

// told returns what reports whether somebody was forgotten whose words the turn
// was told.
func (t *turn) told() func() bool {
	store, concerned := t.with.Store, []core.Path{t.path}
	began := core.WithEpoch(context.Background(), t.epoch)
	for _, a := range t.people() {
		concerned = t.with.person(concerned, t.path, a.ID)
	}
	return func() bool { return forgotten(began, store, concerned...) }
}

// spoke lets the place's ear know that the bot answered.
func (t *turn) spoke() {
	if t.who.Private || len(t.sent) == 0 {
		return
	}
	to := ""
	if len(t.who.Authors) == 1 {
		to = t.who.Authors[0].ID
	}
	t.turns.ears.spoke(t.path, to, t.clock())
}
