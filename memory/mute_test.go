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

// opens is the record that opens a turn which answers one entry.
func opens(place core.Path, seq uint64) core.Record {
	return core.Record{Key: core.Key{Turn: core.TurnID{Path: place, Seq: seq}}, Progress: core.ProgressStarted, Data: fmt.Appendf(nil, `{"last":%d,"attempts":1}`, seq)}
}

// asks is a message in the group that waits for its answer.
func asks(id, who string) core.Entry {
	e := message(group, id, who+" asks")
	e.Due, e.Message.Author.ID = true, who
	return e
}

// lastBatch is the last batch of a turn, with what the bot said.
func lastBatch(seq uint64, text string) *core.Batch {
	said := message(group, fmt.Sprint("r", seq), text)
	said.Self = true
	return &core.Batch{Journal: []core.Record{opens(group, seq)}, Append: []core.Entry{said},
		Answered: []core.TurnID{{Path: group, Seq: seq}}}
}

func forgetHim(t *testing.T, db *DB, id string) {
	t.Helper()
	person, err := group.Person(id)
	if err == nil {
		err = db.Forget(t.Context(), person)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestAnswerBesideTheForgotten: a turn that was tried, and answered somebody who is
// forgotten, costs the next person in the place nothing; nor does another try.
func TestAnswerBesideTheForgotten(t *testing.T) {
	for _, next := range []uint64{1, 2} { // the same turn once more, which answers Ann; or the next
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
		forgetHim(t, db, "1000")
		if err := db.Commit(epochs.With(t.Context(), db.Epoch()), lastBatch(next, "for Ann")); err != nil {
			t.Fatal(err)
		}
		if got := texts(t, db, group); got[len(got)-1] != "for Ann" {
			t.Errorf("turn %d: %q", next, got)
		}
		if err := db.Commit(t.Context(), &core.Batch{Answered: []core.TurnID{{Path: group,
			Seq: 3}}}); err != nil || len(db.epochs.muted) != 0 {
			t.Errorf("%v; muted: %v", err, db.epochs.muted)
		}
	}
}

// TestForgottenInOneTransaction: a turn ends in the very transaction in which the
// forgetting begins.
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
				t.Errorf("%q is left", text)
			}
		}
		if len(db.epochs.muted) != 0 {
			t.Errorf("muted: %v", db.epochs.muted)
		}
	})
}

// TestTracesOfAFormerLife: killed before the file was written anew, it is written
// anew in the next life.
func TestTracesOfAFormerLife(t *testing.T) {
	dir := t.TempDir()
	db := open(t, dir)
	add(t, db, asks("j", "1000"))
	forgetHim(t, db, "1000")
	if !hasTraces(db) {
		t.Error("forgetting leaves no note")
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	db = open(t, dir)
	if err := db.Close(); err != nil { // tidies, if nothing did before
		t.Fatal(err)
	}
	if db = open(t, dir); hasTraces(db) {
		t.Error("the note is still there")
	}
}

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

// TestForgottenWhileThePlaceMoves: a turn that began before its place moved leaves out
// the forgotten, whichever came first, the move or the forgetting, and also where the
// place itself is forgotten.
func TestForgottenWhileThePlaceMoves(t *testing.T) {
	super := core.MustPath("chat/super")
	for _, tc := range []struct {
		name         string
		before       bool // the move comes before the forgetting
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
				t.Errorf("an item of the turn: %v, want %v", err, core.ErrForgotten)
			}
			last := lastBatch(1, "FORGOTTEN words")
			last.States = map[core.Path]core.State{group: {Topic: "FORGOTTEN topic"}}
			if err := db.Commit(epochs.With(t.Context(), epoch), last); err != nil {
				t.Fatal(err)
			}
			want(t, "muted afterwards", len(db.epochs.muted), 0)
			traces(t, db, "FORGOTTEN")
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

// TestOneOfManyAnswered: what the bot answered a hundred people goes with any of them.
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
	forgetHim(t, db, "1099")
	if got := texts(t, db, group); slices.Contains(got, "for all of you") {
		t.Error("the answer is left")
	}
}
