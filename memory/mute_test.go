package memory

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	"synthbot/core"
	"synthbot/core/epochs"
)

// opens returns the record that opens a turn for one entry.
func opens(place core.Path, seq uint64) core.Record {
	return core.Record{Key: core.Key{Turn: core.TurnID{Path: place, Seq: seq}}, Progress: core.ProgressStarted, Data: fmt.Appendf(nil, `{"last":%d,"attempts":1}`, seq)}
}

// asks returns a message in the group that waits for an answer.
func asks(id, who string) core.Entry {
	e := message(group, id, who+" asks")
	e.Due, e.Message.Author.ID = true, who
	return e
}

// lastBatch returns the last batch of a turn, with the bot's answer.
func lastBatch(seq uint64, text string) *core.Batch {
	said := message(group, fmt.Sprint("r", seq), text)
	said.Self = true
	return &core.Batch{Journal: []core.Record{opens(group, seq)}, Append: []core.Entry{said},
		Answered: []core.TurnID{{Path: group, Seq: seq}}}
}

// forgetUser forgets a user of the group.
func forgetUser(t *testing.T, db *DB, id string) {
	t.Helper()
	person, err := group.Person(id)
	if err == nil {
		err = db.Forget(t.Context(), person)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestAnswerBesideTheForgotten: after the user of an attempted turn was forgotten, the answer to
// the next user in the place is stored, whether the turn is retried or a new one.
func TestAnswerBesideTheForgotten(t *testing.T) {
	for _, next := range []uint64{1, 2} { // a retry of the same turn, which now answers Ann, or the next turn
		db := open(t, t.TempDir())
		first, second := asks("j", "1000"), asks("a", "ann")
		if next == 1 {
			first, second = second, first
		}
		add(t, db, first, second)
		open := opens(group, 1)
		open.Data = []byte(`{"last":2,"attempts":1}`)
		if err := db.Commit(t.Context(), &core.Batch{Journal: []core.Record{open}}); err != nil {
			t.Fatal(err)
		}
		forgetUser(t, db, "1000")
		if err := db.Commit(epochs.With(t.Context(), db.Epoch()), lastBatch(next, "for Ann")); err != nil {
			t.Fatal(err)
		}
		if got := texts(t, db, group); got[len(got)-1] != "for Ann" {
			t.Errorf("turn %d: got texts %q, want Ann's answer last", next, got)
		}
		if err := db.Commit(t.Context(), &core.Batch{Answered: []core.TurnID{{Path: group,
			Seq: 3}}}); err != nil || len(db.epochs.muted) != 0 {
			t.Errorf("got error %v and muted turns %v, want none", err, db.epochs.muted)
		}
	}
}

// TestForgottenInOneTransaction: a turn that ends in the transaction in which Forget begins leaves
// nothing.
func TestForgottenInOneTransaction(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, _ string, db *DB) {
		add(t, db, asks("j", "1000"))
		if err := db.Commit(t.Context(), &core.Batch{Journal: []core.Record{opens(group, 1)}}); err != nil {
			t.Fatal(err)
		}
		letGo := hold(db)
		ended, gone := make(chan error), make(chan error)
		go func() { ended <- db.Commit(epochs.With(t.Context(), 0), lastBatch(1, "for Jay alone")) }()
		synctest.Wait()
		person, err := group.Person("1000")
		if err != nil {
			t.Fatal(err)
		}
		go func() { gone <- db.Forget(t.Context(), person) }()
		synctest.Wait()
		letGo()
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		if err := <-gone; err != nil {
			t.Fatal(err)
		}
		for _, text := range texts(t, db, group) {
			if text != "" {
				t.Errorf("the text %q was not deleted", text)
			}
		}
		if len(db.epochs.muted) != 0 {
			t.Errorf("turns are still muted: %v", db.epochs.muted)
		}
	})
}

// TestTracesAreRemovedAfterRestart: a file with traces of forgotten users is compacted after a
// restart.
func TestTracesAreRemovedAfterRestart(t *testing.T) {
	dir := t.TempDir()
	db := open(t, dir)
	add(t, db, asks("j", "1000"))
	forgetUser(t, db, "1000")
	if !hasTraces(db) {
		t.Error("forgetting did not mark the file")
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	db = open(t, dir)
	if err := db.Close(); err != nil { // compacts if that has not happened yet
		t.Fatal(err)
	}
	if db = open(t, dir); hasTraces(db) {
		t.Error("the mark was not removed")
	}
}

// texts returns the texts of a place.
func texts(t *testing.T, db *DB, place core.Path) (all []string) {
	t.Helper()
	err := db.view(t.Context(), func(v *view) error {
		got, err := v.Last(place, 20)
		for _, e := range got {
			all = append(all, e.Message.Text)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestForgottenWhileThePlaceMoves: a turn that began before its place moved drops its result if the
// user or the place is forgotten, before or after the move.
func TestForgottenWhileThePlaceMoves(t *testing.T) {
	super := core.MustPath("chat/super")
	for _, tc := range []struct {
		name         string
		before       bool // the place moves before it is forgotten
		whom         core.Path
		left, muteds int
	}{
		{"moved, then the person", true, jay, 1, 2},
		{"the person, then moved", false, jay, 1, 1},
		{"moved, then the place", true, super, 0, 2},
		{"moved, then everything", true, core.Path{}, 0, 2},
	} {
		t.Run(tc.name, func(t *testing.T) {
			db := open(t, t.TempDir())
			add(t, db, message(super, "s", "said at the new place before"), asks("j", "1000"))
			if err := db.Commit(t.Context(), &core.Batch{Journal: []core.Record{opens(group, 1)}}); err != nil {
				t.Fatal(err)
			}
			epoch := db.Epoch()
			move := func() {
				err := db.Commit(t.Context(), &core.Batch{Change: []core.Event{{Kind: core.KindMigration,
					Message: core.Message{Path: group}, To: super}}})
				if err != nil {
					t.Fatal(err)
				}
			}
			if tc.before {
				move()
			}
			if err := db.Forget(t.Context(), tc.whom); err != nil {
				t.Fatal(err)
			}
			if !tc.before {
				move()
			}
			want(t, "muted names", len(db.epochs.muted), tc.muteds)
			item := core.Item{Path: core.MustPath("chat/other"), Key: "k", Version: core.AnyVersion, Value: json.RawMessage(`"FORGOTTEN"`)}
			_, err := db.Items("notes").Put(epochs.WithTurn(t.Context(), core.TurnID{Path: group, Seq: 1}, epoch), item)
			if !errors.Is(err, core.ErrForgotten) {
				t.Errorf("an item of the turn: got %v, want %v", err, core.ErrForgotten)
			}
			last := lastBatch(1, "FORGOTTEN words")
			last.States = map[core.Path]core.State{group: {Topic: "FORGOTTEN topic"}}
			if err := db.Commit(epochs.With(t.Context(), epoch), last); err != nil {
				t.Fatal(err)
			}
			want(t, "muted afterwards", len(db.epochs.muted), 0)
			checkNoTraces(t, db, "FORGOTTEN")
			var said []string
			for _, entries := range everything(t, db) {
				for _, e := range entries {
					if e.Message.Text != "" {
						said = append(said, e.Message.Text)
					}
				}
			}
			want(t, "what is left", len(said), tc.left)
		})
	}
}

// TestOneOfManyAnswered: an answer to a hundred users is deleted with any of them.
func TestOneOfManyAnswered(t *testing.T) {
	db := open(t, t.TempDir())
	for i := range 100 {
		add(t, db, asks(fmt.Sprint("m", i), fmt.Sprint(1000+i)))
	}
	last := lastBatch(1, "for all of you")
	last.Answered[0].Seq = 100
	if err := db.Commit(t.Context(), last); err != nil {
		t.Fatal(err)
	}
	forgetUser(t, db, "1099")
	if got := texts(t, db, group); slices.Contains(got, "for all of you") {
		t.Error("the answer was not deleted")
	}
}
