package turn

import (
	"context"
	"fmt"
	"slices"
	"time"

	"synthbot/core/epochs"
	"synthbot/core/llm"
	"synthbot/core/watch"
)

// notify tells watchers how far the turn is.
func (t *turn) notify(stage watch.Stage) {
	if len(t.setup.Plugins.Watchers) == 0 {
		return
	}
	s := watch.TurnStage{
		Turn: t.journal.id, Stage: stage, Began: t.trace.Began, Person: t.person(), Private: t.who.Private,
	}
	for _, w := range t.setup.Plugins.Watchers {
		guard(t.setup.Log, "watcher", func() { w.ObserveStage(s) })
	}
}

// finish completes the trace and tells observers how the turn ended.
func (t *turn) finish() {
	t.trace.Took = time.Since(t.trace.Began)
	if t.setup.Store.Epoch() == t.journal.epoch { // else they may concern a user who was forgotten
		t.trace.Memories = t.input.parts.Recon.Memories
	}
	for _, d := range t.results.all {
		t.trace.Steps = append(t.trace.Steps, watch.Step{Outcome: d.Outcome, Progress: d.Progress})
	}
	end := t.results.end
	end.Turn, end.Messages, end.Trace = t.journal.id, t.ids(), t.trace
	end.Person, end.Private = t.person(), t.who.Private
	end.Command = t.worker.queue.commands
	store, concerned := t.setup.Store, slices.Clone(t.journal.people)
	for _, a := range t.input.people() { // whose messages the turn has read
		concerned = addPerson(concerned, t.path, a.ID)
	}
	began := epochs.With(context.Background(), t.journal.epoch)
	end.Stale = func() bool { return store.Forgotten(began, concerned...) }
	t.setup.observe(end)
}

// promptParts returns a request as texts.
func promptParts(r *llm.Request) (parts []watch.PromptPart) {
	for i, text := range r.System {
		parts = append(parts, watch.PromptPart{Name: fmt.Sprintf("system %d", i+1), Text: text, Stable: true})
	}
	for _, tool := range r.Tools {
		text := tool.Brief + "\n" + string(tool.Schema)
		parts = append(parts, watch.PromptPart{Name: "tool " + tool.Name, Text: text, Stable: true})
	}
	for _, u := range r.Messages {
		text := u.Text
		for range len(u.Pictures) + len(u.Sounds) {
			text += "\n(with a file)"
		}
		parts = append(parts, watch.PromptPart{Name: string(u.Role), Text: text})
	}
	return parts
}
