package memory

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"synthbot/core"
)

// moves is the batch that moves a place.
func moves(from, to core.Path) *core.Batch {
	return &core.Batch{Change: []core.Event{{Kind: core.KindMigration, Message: core.Message{Path: from}, To: to}}}
}

func commit(t *testing.T, db *DB, b *core.Batch) {
	t.Helper()
	if err := db.Commit(t.Context(), b); err != nil {
		t.Fatal(err)
	}
}

func headOf(t *testing.T, db *DB, path core.Path) (h core.Head) {
	t.Helper()
	err := db.view(t.Context(), func(v *view) (err error) {
		h, err = v.Head(path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// TestReactionsOfOnePerson: one that is removed can be added again, and the last leaves
// nothing. Long ones are refused.
func TestReactionsOfOnePerson(t *testing.T) {
	l := &storedEntry{}
	long := strings.Repeat("x", maxEmoji)
	for _, step := range []struct {
		emoji   string
		changed bool
		left    map[string]int
	}{
		{long + "x", false, nil},
		{long, true, map[string]int{long: 1}},
		{"a", true, map[string]int{long: 1, "a": 1}},
		{core.TakenAway + "a", true, map[string]int{long: 1}},
		{"a", true, map[string]int{long: 1, "a": 1}},
		{"", true, nil},
	} {
		changed := react(l, "1000", step.emoji)
		want(t, "changed by "+step.emoji, changed, step.changed)
		want(t, "left after "+step.emoji, l.Reactions, step.left)
	}
}

// TestKeysOfOtherKinds: what only resembles a key of a place or a number is not one.
func TestKeysOfOtherKinds(t *testing.T) {
	if _, err := originOf([]byte("\x00group\x00")); err == nil {
		t.Error("a key that begins with an ending is taken for the root's")
	}
	for _, key := range []string{"chat\x01group\x00short", "chat\x01other\x0012345678"} {
		if seq, ok := numberOf([]byte(key), placeKey(group)); ok {
			t.Errorf("%q: number %d", key, seq)
		}
	}
}

// TestHeadIsRebuilt from the log: everything counts as answered unless it waits. Its entries
// can be deleted.
func TestHeadIsRebuilt(t *testing.T) {
	for _, waits := range []bool{false, true} {
		db := openWith(t, t.TempDir(), Options{Log: slog.New(slog.DiscardHandler)})
		e := message(group, "2", "b")
		e.Due, e.Message.Time = waits, day
		add(t, db, message(group, "1", "a"), e)
		before := headOf(t, db, group)
		err := db.update(t.Context(), func(t *tx) { t.bucket(bucketPlaces).Put(placeKey(group), []byte{tagLast}) })
		if err != nil {
			t.Fatal(err)
		}
		after := headOf(t, db, group)
		before.Answered = map[bool]uint64{false: 2, true: 1}[waits]
		want(t, fmt.Sprint("head, waiting ", waits), after, before)
		if err := db.Forget(t.Context(), group); err != nil {
			t.Fatal(err)
		}
	}
}

// TestJobsOfRetention have names by which a hanging one is found.
func TestJobsOfRetention(t *testing.T) {
	var names []string
	now := time.Now()
	db := openWith(t, t.TempDir(), Options{Clock: func() time.Time { return now }, BeforeJob: func(name string) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}})
	add(t, db, message(group, "1", "a"))
	<-db.AddUse(Use{Day: "2020-01-01", Person: jay, Engine: "e"})
	now = now.AddDate(2, 0, 0)
	if err := db.Prune(t.Context(), Config{Age: time.Hour}); err != nil {
		t.Fatal(err)
	}
	want(t, "jobs", names[len(names)-2:], []string{"retention in chat/group", "retention of ids and use"})
}

// TestChangeOfAnUnreadableEntry leaves it as it is.
func TestChangeOfAnUnreadableEntry(t *testing.T) {
	db, err := Open(t.TempDir(), Options{NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	add(t, db, message(group, "1", "a"))
	key, broken := seqKey(placeKey(group), 1), []byte{tagText, 0xff}
	if err := db.update(t.Context(), func(t *tx) { t.bucket(bucketLog).Put(key, broken) }); err != nil {
		t.Fatal(err)
	}
	deletion := core.Event{Kind: core.KindDeletion, Message: core.Message{Path: group}, Target: "1"}
	commit(t, db, &core.Batch{Change: []core.Event{deletion}})
	err = db.view(t.Context(), func(v *view) error {
		want(t, "the entry", v.bucket(bucketLog).Get(key), broken)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestAnEmptyPlaceMoves: the other place keeps its time.
func TestAnEmptyPlaceMoves(t *testing.T) {
	db, super := open(t, t.TempDir()), core.MustPath("chat/super")
	old, newer := message(group, "1", "a"), message(super, "1", "b")
	old.Message.Time, newer.Message.Time = day, day.Add(time.Hour)
	add(t, db, old, newer)
	if err := db.Prune(t.Context(), Config{Keep: []Retention{{Path: group, Age: time.Hour}}}); err != nil {
		t.Fatal(err)
	}
	commit(t, db, moves(group, super))
	want(t, "time", headOf(t, db, super).Time.Equal(newer.Message.Time), true)
}

// TestForgetByAFormerPath: a place is forgotten by the path that it had before it moved.
func TestForgetByAFormerPath(t *testing.T) {
	db := open(t, t.TempDir())
	add(t, db, message(group, "1", "FORGOTTEN"))
	commit(t, db, moves(group, core.MustPath("chat/super")))
	if err := db.Forget(t.Context(), group); err != nil {
		t.Fatal(err)
	}
	want(t, "places", len(everything(t, db)), 0)
	traces(t, db, "FORGOTTEN", "chat\x01super")
}

// TestJournalMoves: of a turn that is not over, only the opening record says how far the
// numbers moved.
func TestJournalMoves(t *testing.T) {
	db, super := open(t, t.TempDir()), core.MustPath("chat/super")
	add(t, db, message(super, "s", "there"), message(group, "1", "here"))
	plan := core.Record{Key: core.Key{Turn: core.TurnID{Path: group, Seq: 1}, Round: 1}, Data: json.RawMessage(`{}`)}
	commit(t, db, &core.Batch{Journal: []core.Record{opens(group, 1), plan}})
	commit(t, db, moves(group, super))
	var shifts []uint64
	err := db.view(t.Context(), func(v *view) error {
		for _, r := range v.records(core.TurnID{Path: super, Seq: 2}) {
			w, err := decodeRecord(r.value)
			if err != nil {
				return err
			}
			shifts = append(shifts, w.Shift)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	want(t, "shifts", shifts, []uint64{1, 0})
}

// TestMarksEndTurnsOfTheirPlace and of no other.
func TestMarksEndTurnsOfTheirPlace(t *testing.T) {
	here, there := core.TurnID{Path: group, Seq: 1}, core.TurnID{Path: kitchen, Seq: 1}
	e := &epochs{muted: map[core.TurnID]muted{here: {}, there: {}}}
	want(t, "ended", e.ends(core.TurnID{Path: group, Seq: 1}), []core.TurnID{here})
	want(t, "ended by an older mark", e.ends(core.TurnID{Path: group}), nil)
}

// TestUnreadableKeysAreLogged where places and turns are listed.
func TestUnreadableKeysAreLogged(t *testing.T) {
	var log strings.Builder
	db, err := Open(t.TempDir(), Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	err = db.update(t.Context(), func(t *tx) {
		t.bucket(bucketPlaces).Put([]byte("no place"), encodeHead(head{last: 1}))
		t.bucket(bucketJournal).Put(append(placeKey(group), "short"...), []byte("{}"))
	})
	if err != nil {
		t.Fatal(err)
	}
	err = db.view(t.Context(), func(v *view) error {
		for range v.turns(nil, nil) {
			t.Error("a turn")
		}
		heads, err := v.Places(core.Path{})
		want(t, "places", len(heads), 0)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, words := range []string{"places: key", "journal key of chat/group"} {
		if !strings.Contains(log.String(), words) {
			t.Errorf("%q is not logged: %s", words, &log)
		}
	}
}

// TestCompactionWhileForgetting leaves the mark that the file has traces: the copy may have
// some of what is deleted later.
func TestCompactionWhileForgetting(t *testing.T) {
	db := open(t, t.TempDir())
	populated(t, db)
	s := newSubject(t.Context(), db, jay)
	if err := errors.Join(s.find(), s.begin(), compacted(t.Context(), db)); err != nil {
		t.Fatal(err)
	}
	want(t, "traces while forgetting", hasTraces(db), true)
	err := s.erase()
	s.end()
	if err != nil {
		t.Fatal(err)
	}
	traces(t, db, "JAYSECRET")
	want(t, "traces afterwards", hasTraces(db), false)
}

// TestPrivateWhileForgettingBegins: a place that became the person's own after it was searched
// is forgotten, too, and so is what others began before.
func TestPrivateWhileForgettingBegins(t *testing.T) {
	db := open(t, t.TempDir())
	s := newSubject(t.Context(), db, jay)
	if err := s.find(); err != nil {
		t.Fatal(err)
	}
	e := message(alone, "1", "JAYSECRET")
	e.Message.Author.ID, e.Message.Private = "1000", true
	add(t, db, e)
	if err := errors.Join(s.begin(), s.erase()); err != nil {
		t.Fatal(err)
	}
	s.end()
	began := core.WithEpoch(t.Context(), 0)
	want(t, "the place is forgotten", db.Forgotten(began, alone), true)
	want(t, "what is left", remains(t, db, alone), nil)
	traces(t, db, "JAYSECRET")
}

// TestTagsOfMergedFacts are all there, each once.
func TestTagsOfMergedFacts(t *testing.T) {
	f := mergeFacts(&core.Fact{Tags: []string{"a", "b"}}, core.Fact{Tags: []string{"b", "c"}})
	want(t, "tags", f.Tags, []string{"b", "c", "a"})
}
