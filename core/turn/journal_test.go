package turn_test

import (
	"strings"
	"testing"

	"synthbot/core"
	"synthbot/core/coretest"
	"synthbot/core/turn"
)

// TestOldJournal: turns that an earlier version left unfinished resume where they stopped. The keys
// are those of its databases.
func TestOldJournal(t *testing.T) {
	b, bank := shop(t, true, pays, says)
	b.receive(said("1", "jay", "pay Ann"))
	b.ended(1)
	b.stop()
	journal := func(seq uint64) map[core.Key]core.Record {
		all := make(map[core.Key]core.Record)
		err := b.store.View(t.Context(), func(v core.View) error {
			records, err := v.Journal(core.TurnID{Path: place, Seq: seq})
			for _, r := range records {
				all[r.Key] = r
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	asked := journal(1)
	key := func(seq uint64, round, step, part uint16) core.Key {
		return core.Key{Turn: core.TurnID{Path: place, Seq: seq}, Round: round, Step: step, Part: part}
	}
	if r := asked[key(1, 1, 2, 10_001)]; r.Progress != core.ProgressDone {
		t.Errorf("the question does not have its old key: %v", asked)
	}
	press := b.press("p1", "jay", "Confirm")
	entry := core.Entry{Event: press, Due: true}
	seq := uint64(4) // after the message, the answer and the question
	// The process died when the step was done but the turn of the press was not.
	paid := asked[key(1, 1, 2, 0)]
	paid.Progress = core.ProgressDone
	err := b.store.Commit(t.Context(), &core.Batch{Append: []core.Entry{entry}, Journal: []core.Record{
		{Key: key(seq, 0, 0, 0), Progress: core.ProgressStarted, Time: paid.Time, Data: []byte(`{"last":4,"attempts":1}`)},
		{Key: key(seq, 5, 0, 0), Progress: core.ProgressAccepted, Time: paid.Time, Data: []byte(`"` + press.Data[:len(press.Data)-2] + `"`)},
		paid,
	}})
	if err != nil {
		t.Fatal(err)
	}
	b = start(t, b.store, b.room, coretest.NewAsker(says), func(o *turn.Options) { *o = b.o })
	b.quiet()
	if n := len(bank.Calls()); n != 0 {
		t.Errorf("paid again %d times, want 0", n)
	}
	if texts := b.room.Texts(); len(texts) != 2 || !strings.Contains(texts[1], "✓ Done.") || len(b.room.Whispers()) != 0 {
		t.Errorf("the room holds %q with whispers %q, want the outcome and none", texts, b.room.Whispers())
	}
}
