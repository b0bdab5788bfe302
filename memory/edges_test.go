package memory

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"synthbot/core"
	"synthbot/core/epochs"
)

// moves returns a batch that moves a place.
func moves(from, to core.Path) *core.Batch {
	return &core.Batch{Change: []core.Event{{Kind: core.KindMigration, Message: core.Message{Path: from}, To: to}}}
}

func commit(t testing.TB, db *DB, b *core.Batch) {
	t.Helper()
	if err := db.Commit(context.Background(), b); err != nil {
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

// TestReactionsOfOnePerson: a removed reaction can be added again, removing the last one leaves
// nothing, long ones are refused, and one that was not counted can be removed.
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
	uncounted := &storedEntry{reactors: map[string][]string{"1000": {"a"}}} // imported by an older version
	want(t, "changed without a count", react(uncounted, "1000", ""), true)
}

// TestKeysOfOtherKinds: a key that only resembles one of a place or a number is refused.
func TestKeysOfOtherKinds(t *testing.T) {
	if _, err := parseOrigin([]byte("\x00group\x00")); err == nil {
		t.Error("a key that begins with a terminator was taken for the root's")
	}
	if seq, ok := parseSeq([]byte("chat\x01group\x00short"), placeKey(group)); ok {
		t.Errorf("a malformed number was decoded as %d", seq)
	}
}

// TestHeadIsRebuilt: a broken head is rebuilt from the log. Every entry that does not wait counts
// as answered.
func TestHeadIsRebuilt(t *testing.T) {
	for _, waits := range []bool{false, true} {
		db := openWith(t, t.TempDir(), Options{Log: slog.New(slog.DiscardHandler)})
		e := message(group, "2", "b")
		e.Due, e.Message.Time = waits, day
		add(t, db, message(group, "1", "a"), e)
		before := headOf(t, db, group)
		err := db.update(t.Context(), func(t *tx) { t.bucket(bucketPlaces).Put(placeKey(group), []byte{1}) })
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

// TestJobsOfRetention: the jobs of retention have names, by which an admin can identify one that
// hangs.
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

// TestChangeOfAnUnreadableEntry: changing an unreadable entry leaves it as it is.
func TestChangeOfAnUnreadableEntry(t *testing.T) {
	db, err := Open(t.TempDir(), Options{NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	add(t, db, message(group, "1", "a"))
	key, broken := seqKey(placeKey(group), 1), []byte{4, 0xff} // a truncated text
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

// TestAnEmptyPlaceMoves: moving an empty place does not change the time of the other place.
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

// TestForgetByAFormerPath: a place can be forgotten by its path from before a move.
func TestForgetByAFormerPath(t *testing.T) {
	db := open(t, t.TempDir())
	add(t, db, message(group, "1", "FORGOTTEN"))
	commit(t, db, moves(group, core.MustPath("chat/super")))
	if err := db.Forget(t.Context(), group); err != nil {
		t.Fatal(err)
	}
	want(t, "places", len(everything(t, db)), 0)
	checkNoTraces(t, db, "FORGOTTEN", "chat\x01super")
}

// TestJournalMoves: when a place with a running turn moves, only the turn's opening record stores
// by how much the numbers shifted.
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

// TestTopicsWithoutHistoryDoNotShift: the numbers of an empty topic start at one after its group
// moved into another one.
func TestTopicsWithoutHistoryDoNotShift(t *testing.T) {
	db := open(t, t.TempDir())
	super := core.MustPath("chat/super")
	for _, at := range []core.Path{super, group} {
		commit(t, db, &core.Batch{Append: []core.Entry{message(at, "1", "words")}})
	}
	commit(t, db, moves(group, super))
	commit(t, db, &core.Batch{Append: []core.Entry{message(topic, "1", "words")}})
	err := db.view(t.Context(), func(v *view) error {
		entries, err := v.After(topic, 0, 10, nil)
		want(t, "entries", len(entries), 1)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestMarksEndTurnsOfTheirPlace: a mark ends the turns of its own place only.
func TestMarksEndTurnsOfTheirPlace(t *testing.T) {
	here, there := core.TurnID{Path: group, Seq: 1}, core.TurnID{Path: kitchen, Seq: 1}
	e := &epochState{muted: map[core.TurnID]muted{here: {}, there: {}}}
	want(t, "ended", e.mutedUpTo(core.TurnID{Path: group, Seq: 1}), []core.TurnID{here})
	want(t, "ended by an older mark", e.mutedUpTo(core.TurnID{Path: group}), nil)
}

// TestUnreadableKeysAreLogged: lists of places and turns skip unreadable keys and log them.
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
			t.Error("an unreadable key was listed as a turn")
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
			t.Errorf("the log lacks %q: %s", words, &log)
		}
	}
}

// TestCompactionWhileForgetting: compacting during Forget keeps the mark for traces, because the
// copy may hold what is deleted later.
func TestCompactionWhileForgetting(t *testing.T) {
	db := open(t, t.TempDir())
	populated(t, db)
	s := newForgetting(t.Context(), db, jay)
	if err := errors.Join(s.find(), s.begin(), compacted(t.Context(), db)); err != nil {
		t.Fatal(err)
	}
	want(t, "traces while forgetting", hasTraces(db), true)
	err := s.deleteAll()
	s.end()
	if err != nil {
		t.Fatal(err)
	}
	checkNoTraces(t, db, "JAYSECRET")
	want(t, "traces afterwards", hasTraces(db), false)
}

// TestPrivateWhileForgettingBegins: a place that becomes the user's own after the search for their
// places is forgotten too.
func TestPrivateWhileForgettingBegins(t *testing.T) {
	db := open(t, t.TempDir())
	s := newForgetting(t.Context(), db, jay)
	if err := s.find(); err != nil {
		t.Fatal(err)
	}
	e := message(alone, "1", "JAYSECRET")
	e.Message.Author.ID, e.Message.Private = "1000", true
	add(t, db, e)
	if err := errors.Join(s.begin(), s.deleteAll()); err != nil {
		t.Fatal(err)
	}
	s.end()
	began := epochs.With(t.Context(), 0)
	want(t, "the place is forgotten", db.Forgotten(began, alone), true)
	want(t, "what is left", remains(t, db, alone), nil)
	checkNoTraces(t, db, "JAYSECRET")
}

// TestTagsOfMergedFacts: a merged fact has the tags of both facts, each once.
func TestTagsOfMergedFacts(t *testing.T) {
	f := mergeFacts(&core.Fact{Tags: []string{"a", "b"}}, core.Fact{Tags: []string{"b", "c"}})
	want(t, "tags", f.Tags, []string{"b", "c", "a"})
}

// TestEdits: an edit of the text keeps the recognised words of a voice message, and an edit without
// a change is ignored.
func TestEdits(t *testing.T) {
	photo := []core.Attachment{{Name: "photo"}}
	quote := func(text string, voice bool) core.Foreign { return core.Foreign{Text: text, Voice: voice, Time: day} }
	later := quote("said", false)
	later.Time = day.Add(time.Hour)
	known := quote("said", false)
	known.Path, known.ID, known.Time = group, "1", day.In(time.FixedZone("", 3600))
	written := core.Message{Text: "old", Attachments: photo, Foreign: []core.Foreign{quote("said", false)}}
	heard := core.Message{Text: "old heard", Written: 3, Heard: 5, Foreign: []core.Foreign{
		quote("read heard", true), quote("as it was", false)}}
	for name, tc := range map[string]struct {
		before, now core.Message
		want        bool
		foreign     []string
	}{
		"nothing":                    {written, core.Message{Text: "old", Foreign: written.Foreign}, false, []string{"said"}},
		"the same photo":             {written, core.Message{Text: "old", Attachments: photo, Foreign: written.Foreign}, false, []string{"said"}},
		"a quote of a known message": {written, core.Message{Text: "old", Foreign: []core.Foreign{known}}, false, []string{"said"}},
		"no photo":                   {written, core.Message{Text: "old", Attachments: []core.Attachment{}, Foreign: written.Foreign}, true, []string{"said"}},
		"another time":               {written, core.Message{Text: "old", Foreign: []core.Foreign{later}}, true, []string{"said"}},
		"another quote":              {written, core.Message{Text: "old", Foreign: []core.Foreign{quote("other", false)}}, true, []string{"other"}},
		"a heard quote stays":        {heard, core.Message{Text: "new", Foreign: []core.Foreign{quote("read", true)}}, true, []string{"read heard"}},
		"another heard quote":        {heard, core.Message{Text: "new", Foreign: []core.Foreign{quote("else", true)}}, true, []string{"else"}},
		"an unheard quote": {heard, core.Message{Text: "new", Foreign: []core.Foreign{quote("read", false), quote("as", false)}}, true,
			[]string{"read", "as"}},
		"more quotes": {heard, core.Message{Text: "new", Foreign: []core.Foreign{quote("read", true), quote("x", false), quote("y", true)}},
			true, []string{"read heard", "x", "y"}},
		"heard again": {heard, core.Message{Text: "old again", Heard: 7, Foreign: []core.Foreign{quote("read", true)}}, true, []string{"read"}},
	} {
		l := storedEntry{Entry: core.Entry{Event: core.Event{Message: tc.before}}}
		want(t, name, edit(&l, &tc.now), tc.want)
		var foreign []string
		for _, o := range l.Message.Foreign {
			foreign = append(foreign, o.Text)
		}
		want(t, name+": quotes", foreign, tc.foreign)
		if revised := tc.want && tc.now.Heard == 0; l.Rev != map[bool]int{true: 1}[revised] {
			t.Errorf("%s: unexpected revision %d", name, l.Rev)
		}
	}
}

// TestActiveAndEmpty: a place without entries does not count as active.
func TestActiveAndEmpty(t *testing.T) {
	db := open(t, t.TempDir())
	newer := message(kitchen, "2", "newer")
	newer.Message.Time = day.AddDate(1, 0, 0)
	add(t, db, message(group, "1", "older"), newer)
	if err := db.update(t.Context(), func(t *tx) { t.remove(placeKey(kitchen), 1) }); err != nil {
		t.Fatal(err)
	}
	err := db.view(t.Context(), func(v *view) error {
		want(t, "active places", v.active(core.Path{}, 1, nil), []core.Path{group})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestWorkThatCannotBegin: long operations on a closed database return ErrClosed.
func TestWorkThatCannotBegin(t *testing.T) {
	db := open(t, t.TempDir())
	file := filepath.Join(t.TempDir(), "backup.db")
	if err := errors.Join(db.Backup(file), db.Close()); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	all := func([]byte, []byte) bool { return true }
	_, use := db.Uses(t.Context(), "2026-11-20", "2026-11-21")
	_, _, facts := db.ListFacts(t.Context(), core.FactPage{N: 1})
	_, item := db.Items("quiz").List(t.Context(), core.Path{})
	for what, err := range map[string]error{
		"backup": db.Backup(file), "deleting": deleteWhere(t.Context(), db, bucketLog, nil, nil, all),
		"export": db.Export(t.Context(), io.Discard, group), "retention": db.Prune(t.Context(), Config{Messages: 1}),
		"forgetting": db.Forget(t.Context(), jay), "usage": use, "memories": facts, "items": item,
		"times": correctHeadTimes(t.Context(), db, slices.Values([]core.Path{group})),
	} {
		if !errors.Is(err, core.ErrClosed) {
			t.Errorf("%s: got %v, want core.ErrClosed", what, err)
		}
	}
	if after, err := os.ReadFile(file); err != nil || !bytes.Equal(after, before) {
		t.Errorf("the older backup was replaced (%v)", err)
	}
}

// TestNothingWritten: opening and closing without a write leaves the file unchanged.
func TestNothingWritten(t *testing.T) {
	dir := t.TempDir()
	db := open(t, dir)
	add(t, db, message(group, "1", "x"))
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	db = open(t, dir)
	before := transactions(t, db)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	want(t, "transactions", transactions(t, open(t, dir)), before)
}

// TestJobOfAPlugin: the name of a job that stores a plugin's item holds the plugin and the place.
func TestJobOfAPlugin(t *testing.T) {
	var jobs []string
	db := openWith(t, t.TempDir(), Options{BeforeJob: func(job string) { jobs = append(jobs, job) }})
	item := core.Item{Path: kitchen, Key: "k", Version: core.AnyVersion, Value: []byte("1")}
	if _, err := db.Items("quiz").Put(t.Context(), item); err != nil {
		t.Fatal(err)
	}
	want(t, "jobs", jobs, []string{"an item of plugin quiz under " + kitchen.String()})
	item.Value = fmt.Appendf(nil, "%q", strings.Repeat("x", maxEntryBytes))
	if _, err := db.Items("quiz").Put(t.Context(), item); !errors.Is(err, ErrBatch) {
		t.Errorf("an item that is too large: unexpected error %v", err)
	}
}

// TestAReserveThatIsTooSmall: a reserve that is too small is enlarged at the next start.
func TestAReserveThatIsTooSmall(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, _ string, db *DB) {
		synctest.Wait()
		if err := os.Truncate(db.space.reserve(), 100); err != nil {
			t.Fatal(err)
		}
		err := db.space.makeReserve()
		info, err2 := os.Stat(db.space.reserve())
		if err := errors.Join(err, err2); err != nil || info.Size() != reserveSize {
			t.Errorf("unexpected reserve %v, %v", info, err)
		}
	})
}

// TestBrokenFields: truncated numbers and times are errors.
func TestBrokenFields(t *testing.T) {
	for name, value := range map[string][]byte{
		"a number and more": {1, 2, 1, 1}, "no number": {1, 1, 0x80}, "no seconds": {4, 0},
		"no nanoseconds": {4, 1, 2}, "a time and more": {4, 3, 2, 2, 2},
		"a second of nanoseconds": append([]byte{4, 6, 2}, binary.AppendUvarint(nil, 1e9)...),
		"a length and no more":    {1, 9, 1},
	} {
		if h, err := decodeHead(value); !errors.Is(err, errFields) {
			t.Errorf("%s: %+v, %v", name, h, err)
		}
	}
}
