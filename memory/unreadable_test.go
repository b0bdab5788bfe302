package memory

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"synthbot/core"
)

// spoil overwrites a value with unreadable bytes.
func spoil(t *testing.T, db *DB, bucket string, key []byte) {
	t.Helper()
	err := db.write(t.Context(), &job{run: func(t *tx) error {
		if t.bucket(bucket).Get(key) == nil {
			return fmt.Errorf("there is no value at %q", key)
		}
		t.bucket(bucket).Put(key, []byte{4, 0xff, 0xff})
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
}

// TestUnreadableRecordIsSkipped: an unreadable record is skipped and logged once. It stays, and
// Check reports it.
func TestUnreadableRecordIsSkipped(t *testing.T) {
	var log strings.Builder
	logged := slog.New(slog.NewTextHandler(&log, nil))
	db, err := Open(t.TempDir(), Options{Log: logged}) // Open instead of open, which would check the damaged file
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
		return core.Record{Key: core.Key{Turn: turn, Round: round, Step: step}, Progress: core.ProgressDone, Data: json.RawMessage(`{}`)}
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
	broken := append(runFrom(1, "id1", "id2"), 0xff)
	if err := db.update(t.Context(), func(t *tx) { t.bucket(bucketIDs).Put(newestKey(p.key), broken) }); err != nil {
		t.Fatal(err)
	}
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
			want(t, "after", words(v.After(kitchen, 1, 9, nil)), []string{"3", "4"})
			want(t, "recent", words(v.Recent(core.Path{}, 9, nil)), []string{"1", "3", "4"})
			h, err := v.Head(kitchen)
			if h.Last != 4 || h.Answered != 1 && h.Answered != 2 || err != nil { // 2: already set aside
				t.Errorf("unexpected head %+v, %v", h, err)
			}
			if _, ok, err := v.Entry(kitchen, "id2"); ok || err != nil {
				t.Errorf("the unreadable entry was found: %t, %v", ok, err)
			}
			if s, err := v.State(kitchen); !s.IsZero() || err != nil {
				t.Errorf("unexpected state %+v, %v", s, err)
			}
			records, err := v.Journal(turn)
			var progress []core.Progress
			for _, r := range records {
				progress = append(progress, r.Progress)
			}
			want(t, "journal", progress, []core.Progress{core.ProgressDone, core.ProgressUnknown, core.ProgressDone})
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
		t.Errorf("unexpected: %d log lines:\n%s", n, &log)
	}
	checkError(t, fmt.Errorf("%s", strings.ReplaceAll(fmt.Sprint(db.Check(t.Context())), "\n", " ")), "damaged", "broken fields")
}

// TestUnreadableWaitingEntryIsSetAside: a place whose only waiting entry is unreadable stops
// waiting.
func TestUnreadableWaitingEntryIsSetAside(t *testing.T) {
	db, err := Open(t.TempDir(), Options{NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	e := message(kitchen, "1", "x")
	e.Due = true
	add(t, db, e)
	spoil(t, db, bucketLog, seqKey(placeKey(kitchen), 1))
	want(t, "due", len(dueIn(t, db, kitchen)), 0)
	add(t, db, message(kitchen, "2", "y")) // this write also sets the entry aside
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

// TestUnreadableKeyIsSkipped: everything that reads a bucket skips keys and values of invalid form
// or length.
func TestUnreadableKeyIsSkipped(t *testing.T) {
	db, err := Open(t.TempDir(), Options{Clock: func() time.Time { return day.AddDate(2, 0, 0) }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	super := core.MustPath("chat/super")
	populated(t, db)
	err = db.Commit(t.Context(), &core.Batch{Change: []core.Event{{Kind: core.KindMigration,
		Message: core.Message{Path: kitchen}, To: super}}})
	if err != nil {
		t.Fatal(err)
	}
	err = db.write(t.Context(), &job{run: func(t *tx) error {
		for _, bucket := range buckets() {
			for _, key := range []string{"\x00", "\x01", "nothing", "chat\x01group\x00\xff", "chat\x01\x01\x00\x00\x00\x00\x00\x00\x00\x01\xff", "\xff"} {
				if bucket != bucketMeta && !(bucket == bucketIDs && strings.HasPrefix(key, "chat\x01group")) {
					t.bucket(bucket).Put([]byte(key), []byte{4, 0xff})
				}
			}
		}
		t.bucket(bucketAliases).Put(placeKey(topic), []byte("no JSON"))
		t.bucket(bucketStates).Put([]byte("nobody"), []byte("{}"))
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	err = db.View(t.Context(), func(v core.View) error {
		places, err := v.Places(core.Path{})
		want(t, "places", len(places), 2)
		waiting, err2 := v.Waiting()
		want(t, "waiting", waiting, []core.Path{group})
		due, err3 := v.Due(group, 9)
		want(t, "due", len(due), 2)
		last, err4 := v.Last(group, 99)
		after, err5 := v.After(group, 0, 99, nil)
		recent, err6 := v.Recent(core.Path{}, 99, nil)
		want(t, "entries", []int{len(last), len(after), len(recent)}, []int{5, 5, 7})
		journal, err7 := v.Journal(core.TurnID{Path: group, Seq: 5})
		want(t, "journal", len(journal), 1)
		return errors.Join(err, err2, err3, err4, err5, err6, err7)
	})
	if err != nil {
		t.Error(err)
	}
	add(t, db, message(topic, "t", "below what cannot be read"))
	want(t, "the topic", texts(t, db, topic), []string{"below what cannot be read"})
	facts, _, err := db.ListFacts(t.Context(), core.FactPage{N: 99})
	want(t, "memories", len(facts), 4)
	uses, err2 := db.Uses(t.Context(), "2026-11-20", "2026-11-20")
	want(t, "uses", len(uses), 2)
	items, err3 := db.Items("bio").List(t.Context(), core.Path{})
	want(t, "items", len(items), 4)
	var all bytes.Buffer
	err4 := db.Export(t.Context(), &all, core.Path{})
	want(t, "lines of the export", strings.Count(all.String(), "\n"), 21)
	err5 := db.Export(t.Context(), &all, jay)
	move := core.Event{Kind: core.KindMigration, Message: core.Message{Path: group}, To: super}
	err6 := db.Commit(t.Context(), &core.Batch{Change: []core.Event{move}})
	want(t, "after the move", len(texts(t, db, super)), 5)
	err7 := db.Forget(t.Context(), jay)
	want(t, "after forgetting", len(texts(t, db, super)), 3)
	err8 := db.Prune(t.Context(), Config{Journal: 1, Messages: 1})
	want(t, "after pruning", len(texts(t, db, super)), 1)
	if err := errors.Join(err, err2, err3, err4, err5, err6, err7, err8); err != nil {
		t.Error(err)
	}
}

// TestUnwritableJobFailsAlone: a job that cannot be written fails without the others in its
// transaction, and nothing of it is stored.
func TestUnwritableJobFailsAlone(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, _ string, db *DB) {
		letGo := hold(db)
		done := make(chan error, 2)
		go func() {
			done <- db.write(t.Context(), &job{run: func(t *tx) error {
				t.bucket(bucketMeta).Put([]byte("half"), []byte("x"))
				t.bucket(bucketStates).Put(make([]byte, 1<<16), nil)
				t.bucket(bucketMeta).Put([]byte("whole"), []byte("x"))
				return nil
			}})
		}()
		synctest.Wait()
		others := make(chan error)
		go func() { others <- commitN(db, 1) }()
		synctest.Wait()
		letGo()
		checkError(t, <-done, db.engine.name, bucketStates, "key too large")
		if err := <-others; err != nil {
			t.Error(err)
		}
		holds(t, db, []int{1})
		db.view(t.Context(), func(v *view) error {
			if meta := v.bucket(bucketMeta); meta.Get([]byte("half")) != nil || meta.Get([]byte("whole")) != nil {
				t.Error("a part of the failed job was stored")
			}
			return nil
		})
	})
}

// TestOtherUnreadableRecords: an id without its number is known, an unreadable memory gets no
// vector, one with a vector of another length is found by words, and ids without a time stay
// forgotten.
func TestOtherUnreadableRecords(t *testing.T) {
	l := &lexicon{}
	bubble(t, Options{Log: slog.New(slog.DiscardHandler)}, func(t *testing.T, _ string, db *DB) {
		add(t, db, message(group, "1", "x"), message(group, "2", "y"))
		save(t, db, core.Fact{Text: "jay has a dog", Origin: group})
		db.SetEmbedder(l.as("m"))
		synctest.Wait()
		before := make(map[string][]byte)
		put := func(bucket string, key, value []byte) {
			err := db.update(t.Context(), func(t *tx) {
				before[bucket] = bytes.Clone(t.bucket(bucket).Get(key))
				t.bucket(bucket).Put(key, value)
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		ids, gone := newestKey(placeKey(group)), []byte("gone")
		first := binary.BigEndian.AppendUint64(nil, 1)
		put(bucketIDs, ids, append(runFrom(1, "1"), 0x80))
		put(bucketGone, gone, []byte{0x80})
		vectors := append(placeKey(group), first...)
		err := db.view(t.Context(), func(v *view) error {
			before[bucketVectors] = bytes.Clone(v.bucket(bucketVectors).Get(vectors))
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		whole := before[bucketVectors]
		put(bucketVectors, vectors, whole[:len(whole)-1])
		b := &core.Batch{Append: []core.Entry{message(group, "1", "again")}}
		if commit(t, db, b); !b.Known[0] {
			t.Error("an id before an unreadable one is not known")
		}
		want(t, "found", recall(t, db, core.FactQuery{Text: "dog", See: []core.Path{group}}), []string{"jay has a dog"})
		put(bucketVectors, vectors, whole)
		if err := db.Prune(t.Context(), Config{}); err != nil {
			t.Fatal(err)
		}
		want(t, "hashes of what was forgotten", size(t, db, bucketGone), 1)
		put(bucketFacts, first, nil)
		save(t, db, core.Fact{Text: "ann has a cat", Origin: group})
		synctest.Wait()
		l.asked()
		db.SetEmbedder(l.as("n"))
		synctest.Wait()
		want(t, "texts", l.asked(), []string{"ann has a cat"})
		put(bucketFacts, first, before[bucketFacts])
		repair := func(t *tx) {
			t.bucket(bucketGone).Delete(gone)
			t.bucket(bucketIDs).Put(ids, before[bucketIDs])
		}
		if err := db.update(t.Context(), repair); err != nil {
			t.Fatal(err)
		}
	})
}
