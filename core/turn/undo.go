package turn

import (
	"context"
	"strings"
	"time"

	"synthbot/core"
	"synthbot/core/action"
	"synthbot/core/command"
	"synthbot/core/epochs"
	"synthbot/core/txt"
)

const (
	undoTime    = 10 * time.Minute // how long the steps of a turn can be undone
	maxUndoable = 1000             // turns that can be undone
)

type undoKey struct{ place, person core.Path }

// undoable holds the lasting steps of one turn. Its epoch tells whether a user was forgotten since.
type undoable struct {
	steps []action.StepResult
	epoch uint64
	until time.Time
}

// Forget drops what memory holds of earlier turns: it may concern a user who was forgotten.
func (t *Turns) Forget() {
	t.undo.Clear()
	s := t.setup.Load()
	s.Runtime.Forget()
	s.cache.In(s.Store.Epoch())
}

// UndoSpec is the chat command that calls Undo.
func UndoSpec() command.Spec {
	return command.Spec{
		Name: "undo", Brief: "Undo what I did for you last, within ten minutes",
		Briefs: map[string]string{
			"it": "Annulla l'ultima cosa che ho fatto per te", "de": "Macht rückgängig, was ich zuletzt für dich tat",
			"fr": "Annule ce que j'ai fait pour toi en dernier", "es": "Deshace lo último que hice por ti",
			"pt": "Desfaz o que fiz por ti por último",
		},
	}
}

// Undo undoes the lasting steps of the caller's latest turn in their place, the last step first, if
// it was not long ago. It returns which were undone and which were not.
func (t *Turns) Undo(ctx context.Context, c command.Call) (string, error) {
	s := t.setup.Load()
	u, ok := t.undo.Take(undoKey{c.Path, c.Person})
	ctx = epochs.With(ctx, u.epoch)
	if !ok || !s.Clock().Before(u.until) || t.store.Forgotten(ctx, c.Person, c.Path) {
		return "There is nothing to undo: I can take back only the latest thing that I did for you here, within " +
			"ten minutes and until I restart. What a command changed, another one changes back: see its answer, " +
			"or /help.", nil
	}
	who := action.Requester{Path: c.Path, Private: c.Private, Authors: []core.Author{c.Author}, Sees: c.Sees}
	var lines []string
	for _, r := range s.Runtime.Undo(ctx, s.Catalogue, who, u.steps) {
		line := "Undone: " + txt.Literal(r.Title)
		if r.Err != nil {
			_, why := action.UserText(r.Err)
			line = "Not undone: " + txt.Literal(r.Title+" – "+why)
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n"), ctx.Err()
}
