package turn_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"synthbot/core"
	"synthbot/core/command"
	"synthbot/core/coretest"
	"synthbot/core/turn"
	"synthbot/memory"
)

// TestUndo: a turn can be undone by the user who caused it, once, from the last step to the first.
// Steps that fail or cannot be undone are reported and do not stop the rest. After a user is
// forgotten, their turns cannot be undone.
func TestUndo(t *testing.T) {
	const plan = `{"response":"So be it.","actions":[{"type":"first","payload":{}},{"type":"second","payload":{}},` +
		`{"type":"third","payload":{}},{"type":"look","payload":{}}]}`
	none := `There is nothing to undo`
	for name, forget := range map[string]bool{"known": false, "forgotten": true, "dropped": true} {
		t.Run(name, func(t *testing.T) {
			db := open(t, t.TempDir()).(*memory.DB)
			t.Cleanup(func() { db.Close() })
			var undone []string
			make := func(name string, effects core.Effect, err error) core.Action {
				return core.Action{
					Name: name, Brief: "Do the " + name, Effects: effects, Permission: core.PermissionEveryone,
					Do: func(context.Context, core.Call) (core.Result, error) {
						return core.Result{Undo: json.RawMessage(`"` + name + `"`)}, nil
					},
					Undo: func(_ context.Context, c core.Call, r core.Result) error {
						undone = append(undone, string(r.Undo)+" of "+c.Author.ID)
						return err
					},
				}
			}
			third, look := make("third", core.EffectChanges, nil), make("look", core.EffectNone, nil)
			third.Undo, look.Undo = nil, nil
			room := coretest.NewRoom("room")
			b := start(t, db, room, coretest.NewAsker(plan), func(o *turn.Options) {
				o.Catalogue = catalogueOf(t, room, coretest.NewPlugin("steps", make("first", core.EffectWrites, nil),
					make("second", core.EffectWrites, errors.New("secret")), third, look))
			})
			b.receive(talk("1", "jay", "Aria, do it all"))
			b.ended(1)
			switch name {
			case "dropped":
				b.Forget()
			case "forgotten":
				if err := db.Forget(t.Context(), jay); err != nil {
					t.Fatal(err)
				}
			}
			undo := func(who string) string {
				m := talk("2", who, "/undo").Message
				person, err := m.Path.Person(who)
				if err != nil {
					t.Fatal(err)
				}
				text, err := b.Undo(t.Context(), command.Call{Path: m.Path, Author: m.Author, Person: person})
				if err != nil {
					t.Error(err)
				}
				return text
			}
			if text := undo("ann"); !strings.HasPrefix(text, none) {
				t.Errorf("unexpected reply to Ann: %q", text)
			}
			text, want, did := undo("jay"), "Not undone: Do the third – it cannot be undone\n"+
				"Not undone: Do the second – it did not work\nUndone: Do the first", `"second" of jay, "first" of jay`
			if forget {
				text, want, did = strings.SplitN(text, ":", 2)[0], none, ""
			}
			if text != want || strings.Join(undone, ", ") != did {
				t.Errorf("unexpected: reply %q after undoing %q", text, undone)
			}
			if text := undo("jay"); !strings.HasPrefix(text, none) {
				t.Errorf("unexpected reply to the second undo: %q", text)
			}
		})
	}
}
