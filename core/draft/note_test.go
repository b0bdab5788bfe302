package draft

import (
	"context"
	"log/slog"
	"slices"
	"testing"
)

// shelf is a State.
type shelf struct{ data []byte }

func (s *shelf) Get(ctx context.Context, _ string) ([]byte, error) { return s.data, ctx.Err() }

func (s *shelf) Put(ctx context.Context, _ string, data []byte) error {
	s.data = data
	return ctx.Err()
}

// What is left is what others left, or this process itself, and is still noted so.
func TestLeft(t *testing.T) {
	state, ctx := &shelf{}, t.Context()
	make := func() *Drafts { return New(Options{State: state, Log: slog.New(slog.DiscardHandler)}) }
	old := make()
	old.saveNote(ctx, note{Place: "1", ID: "1"})
	old.saveNote(ctx, note{Place: "2", ID: "2", Key: "k"})
	d := make()
	left := func(what, place string, want ...string) {
		t.Helper()
		var got []string
		for _, n := range d.leftoversIn(ctx, place) {
			got = append(got, n.ID)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q is left, want %q", what, got, want)
		}
	}
	d.saveNote(ctx, note{Place: "6", ID: "6"})
	left("its own from the beginning", "6")
	d.addLeftover(note{Place: "3", ID: "3"})
	left("not noted", "3")
	d.saveNote(ctx, note{Place: "3", ID: "3"})
	left("its own, in use", "3")
	d.addLeftover(note{Place: "3", ID: "3"})
	left("in all", "", "1", "2", "3")
	left("in one", "1", "1")
	left("in another", "4")
	old.saveNote(ctx, note{Place: "2", ID: "2", Key: "l"})
	left("for another part", "2")
	old.saveNote(ctx, note{Place: "2", ID: "2", Key: "k"})
	left("and not any more", "2")
	old.removeNote(ctx, note{Place: "1", ID: "1"})
	left("finished by others", "", "3")
	unknown := note{Place: "5"}
	d.saveNote(ctx, unknown)
	d.addLeftover(unknown)
	d.removeNote(ctx, unknown)
	d.saveNote(ctx, unknown)
	left("requested again", "5")
	for key, noted := range map[string]string{"": "", "k": "", "l": "k"} {
		d.saveNote(ctx, note{Place: "3", ID: "3", Key: noted})
		edit := func(context.Context, string) error { t.Error("edited"); return nil }
		if id, done, err := d.Resume(ctx, "3", Answer{Key: key, Edit: edit}); done || err != nil {
			t.Errorf("the part %q goes on with the draft of %q: %s, %v", key, noted, id, err)
		}
	}
	make().addLeftover(note{Place: "1", ID: "1"}) // before anything was read
}

// A note with an id replaces the one of its request. Only the message that is
// finished is taken out.
func TestNotes(t *testing.T) {
	state := &shelf{data: []byte(`{"31":{"id":"1"}}`)}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	d := New(Options{State: state, Log: slog.New(slog.DiscardHandler)})
	check := func(what string, want ...string) {
		t.Helper()
		var got []string
		all, err := d.read(t.Context())
		for key := range all {
			got = append(got, key)
		}
		slices.Sort(got)
		if !slices.Equal(got, want) || err != nil {
			t.Errorf("%s: noted %q, want %q; %v", what, got, want, err)
		}
	}
	check("at first", "31 1")
	requested := note{Place: "32", Nonce: "a"}
	d.saveNote(ended, requested)
	check("requested", "31 1", "32 ?a")
	d.saveNote(ended, note{Place: "32", ID: "2"}, requested)
	check("known", "31 1", "32 2")
	d.removeNote(ended, note{Place: "33", ID: "3"})
	d.removeNote(ended, note{Place: "32", ID: "1"})
	d.removeNote(ended, note{Place: "32", ID: "2"})
	check("over", "31 1")
	state.data = []byte(`{"31":`)
	check("half a note")
}
