package draft

import (
	"context"
	"log/slog"
	"slices"
	"testing"
)

// memoryState is a State in memory.
type memoryState struct{ data []byte }

func (s *memoryState) Get(ctx context.Context, _ string) ([]byte, error) { return s.data, ctx.Err() }

func (s *memoryState) Put(ctx context.Context, _ string, data []byte) error {
	s.data = data
	return ctx.Err()
}

// TestLeft: leftover drafts are those of former processes, and those that this process gave up, while
// their notes exist.
func TestLeft(t *testing.T) {
	state, ctx := &memoryState{}, t.Context()
	newDrafts := func() *Drafts { return New(Options{State: state, Log: slog.New(slog.DiscardHandler)}) }
	old := newDrafts()
	old.saveNote(ctx, note{Place: "1", ID: "1"})
	old.saveNote(ctx, note{Place: "2", ID: "2", Key: "k"})
	d := newDrafts()
	left := func(what, place string, want ...string) {
		t.Helper()
		var got []string
		for _, n := range d.leftoversIn(ctx, place) {
			got = append(got, n.ID)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: got leftovers %q, want %q", what, got, want)
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
		edit := func(context.Context, string) error { t.Error("the draft was edited"); return nil }
		if id, done, err := d.Resume(ctx, "3", Answer{Key: key, Edit: edit}); done || err != nil {
			t.Errorf("part %q took over the draft of part %q: %s, %v", key, noted, id, err)
		}
	}
	newDrafts().addLeftover(note{Place: "1", ID: "1"}) // before the notes were read
}

// TestNotes: the note with a message id replaces the note of its request. removeNote removes only the
// note of that message.
func TestNotes(t *testing.T) {
	state := &memoryState{data: []byte(`{"31":{"id":"1"}}`)}
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
			t.Errorf("%s: got notes %q, want %q; %v", what, got, want, err)
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
	check("incomplete JSON")
}
