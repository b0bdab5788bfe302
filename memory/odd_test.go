package memory

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"synthbot/core"
)

// spoil overwrites a value with what nobody can read.
func spoil(t *testing.T, db *DB, bucket string, key []byte) {
	t.Helper()
	err := db.write(t.Context(), &job{run: func(t *tx) error {
		if t.bucket(bucket).Get(key) == nil {
			return fmt.Errorf("nothing stands at %q", key)
		}
		return t.bucket(bucket).Put(key, []byte{tagText, 0xff, 0xff})
	}})
	if err != nil {
		t.Fatal(err)
	}
}

// TestAnUnreadableRecordBlocksNothing: whatever a place's business meets that
// cannot be read, it goes on with the rest, and it is told once. What cannot be
// read stays, and a check finds it.
func TestAnUnreadableRecordBlocksNothing(t *testing.T) {
	var log strings.Builder
	logged := slog.New(slog.NewTextHandler(&log, nil))
	db, err := Open(t.TempDir(), Options{Log: logged}) // not to be checked: it is damaged
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	p := place{path: kitchen, key: placeKey(kitchen), ids: placeKey(kitchen)}
	for i := 1; i <= 4; i++ {
		e := message(kitchen, fmt.Sprint("id", i), fmt.Sprint(i))
		e.Due = i > 1
		add(t, db, e)
	}
	turn := core.TurnID{Path: kitchen, Seq: 3}
	record := func(round, step uint16) core.Record {
		return core.Record{Key: core.Key{Turn: turn, Round: round, Step: step}, Progress: core.Done, Data: json.RawMessage(`{}`)}
	}
	err = db.Commit(t.Context(), &core.Batch{
		Answered: []core.TurnID{{Path: kitchen, Seq: 1}},
		Journal:  []core.Record{record(0, 0), record(1, 0), record(1, 1), record(1, 2)},
		States:   map[core.Path]core.State{kitchen: {Topic: "tea"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	spoil(t, db, bucketLog, seqKey(p.key, 2))
	spoil(t, db, bucketPlaces, p.key)
	spoil(t, db, bucketIDs, idKey(p.key, "id1"))
	spoil(t, db, bucketStates, p.key)
	for _, r := range []core.Record{record(1, 0), record(1, 1)} {
		spoil(t, db, bucketJournal, journalKey(p.key, r.Key))
	}

	words := func(entries []core.Entry, err error) (all []string) {
		t.Helper()
		if err != nil {
			t.Error(err)
		}
		for _, e := range entries {
			all = append(all, e.Message.Text)
		}
		return all
	}
	for range 2 {
		err = db.View(t.Context(), func(v core.View) error {
			want(t, "due", words(v.Due(kitchen, 9)), []string{"3", "4"})
			want(t, "last", words(v.Last(kitchen, 9)), []string{"1", "3", "4"})
			want(t, "after", words(v.After(kitchen, 1, 9)), []string{"3", "4"})
			want(t, "recent", words(v.Recent(core.Path{}, 9, nil)), []string{"1", "3", "4"})
			h, err := v.Head(kitchen)
			if h.Last != 4 || h.Answered != 1 && h.Answered != 2 || err != nil { // 2, once that one is set aside
				t.Errorf("head %+v, %v", h, err)
			}
			if _, ok, err := v.Entry(kitchen, "id2"); ok || err != nil {
				t.Errorf("what cannot be read is there: %t, %v", ok, err)
			}
			if s, err := v.State(kitchen); !s.IsZero() || err != nil {
				t.Errorf("state %+v, %v", s, err)
			}
			records, err := v.Journal(turn)
			var progress []core.Progress
			for _, r := range records {
				progress = append(progress, r.Progress)
			}
			want(t, "journal", progress, []core.Progress{core.Done, core.Unknown, core.Done})
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	again := []core.Entry{message(kitchen, "id1", "1"), message(kitchen, "id2", "2"), message(kitchen, "id5", "5")}
	b := &core.Batch{
		Append:   again,
		Change:   []core.Event{{Kind: core.KindEdit, Message: core.Message{Path: kitchen, ID: "id2", Text: "edited"}}},
		Answered: []core.TurnID{{Path: kitchen, Seq: 4}},
	}
	if err := db.Commit(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	want(t, "known", b.Known, []bool{true, true, false})
	want(t, "the next number", b.Append[2].Message.Seq, 5)
	err = db.View(t.Context(), func(v core.View) error {
		waiting, err := v.Waiting()
		want(t, "waiting at the end", len(waiting), 0)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(log.String(), "is left out"); n < 5 || n > 12 {
		t.Errorf("%d lines of log:\n%s", n, &log)
	}
	saying(t, fmt.Errorf("%s", strings.ReplaceAll(fmt.Sprint(db.Check(t.Context())), "\n", " ")), "damaged", "broken fields")
}

// TestWhatWaitsAndCannotBeReadIsSetAside: a place whose only waiting entry is
// spoilt has nothing to wait for.
func TestWhatWaitsAndCannotBeReadIsSetAside(t *testing.T) {
	db, err := Open(t.TempDir(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	e := message(kitchen, "1", "x")
	e.Due = true
	add(t, db, e)
	spoil(t, db, bucketLog, seqKey(placeKey(kitchen), 1))
	want(t, "due", len(dueIn(t, db, kitchen)), 0)
	add(t, db, message(kitchen, "2", "y")) // the writer has set it aside by then
	err = db.View(t.Context(), func(v core.View) error {
		waiting, err := v.Waiting()
		want(t, "waiting", len(waiting), 0)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	fresh := message(kitchen, "3", "z")
	fresh.Due = true
	add(t, db, fresh)
	want(t, "due afterwards", len(dueIn(t, db, kitchen)), 1)
}
