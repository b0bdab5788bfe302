package memory

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"synthbot/core"
	"synthbot/core/coretest"
)

// talk fills a database with a conversation between one user and the bot in one place.
func talk(t testing.TB, db *DB, name string, n int) {
	t.Helper()
	const step = 2000
	for i := 0; i < n; i += step {
		b := &core.Batch{}
		for k := i; k < min(i+step, n); k++ {
			e := message(alone, fmt.Sprint(name, k), fmt.Sprintf("ERASED line %d", k))
			e.Message.Author, e.Message.Time = core.Author{ID: "1000", Name: "ERASED name"}, day.Add(time.Duration(k)*time.Second)
			b.Append = append(b.Append, e)
		}
		if err := db.Commit(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
}

// TestErasingEnds: a user or place of any size can be forgotten, and leaves nothing in the file.
func TestErasingEnds(t *testing.T) {
	forget := func(path core.Path) func(context.Context, *DB) error {
		return func(ctx context.Context, db *DB) error { return db.Forget(ctx, path) }
	}
	prune := func(r Retention) func(context.Context, *DB) error {
		return func(ctx context.Context, db *DB) error { return db.Prune(ctx, Config{Keep: []Retention{r}}) }
	}
	sizes := []int{1, 10, 40, 400, coretest.Sample(20_000, 1_000)}
	if testing.Short() {
		sizes = sizes[:4]
	}
	for name, erase := range map[string]func(context.Context, *DB) error{
		"the place": forget(alone), "the person": forget(jay), "everything": forget(core.Path{}), "by age": prune(Retention{Age: time.Minute}),
	} {
		for _, n := range sizes {
			t.Run(fmt.Sprint(name, " of ", n), func(t *testing.T) {
				db := openWith(t, t.TempDir(), Options{Clock: func() time.Time { return day.Add(1000 * time.Hour) }})
				talk(t, db, "id", n)
				if err := within(t, func(ctx context.Context) error { return erase(ctx, db) }); err != nil {
					t.Fatal(err)
				}
				want(t, "entries", len(everything(t, db)[alone]), 0)
				checkNoTraces(t, db, "ERASED")
				add(t, db, message(alone, "new", "a new beginning"))
			})
		}
	}
}

// within calls f and panics if it does not end in time.
func within(t *testing.T, f func(context.Context) error) error {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- f(t.Context()) }()
	select {
	case err := <-done:
		return err
	case <-time.After(coretest.Patience):
		panic("the writer is stuck") // Close would wait for it
	}
}

// TestLookingAfterDeleting: reading a bucket in the transaction that emptied it finds nothing.
func TestLookingAfterDeleting(t *testing.T) {
	db := open(t, t.TempDir())
	for i := range 60 {
		save(t, db, core.Fact{Text: fmt.Sprintf("memory %d of a great many words about tea number %d", i, i*7), Origin: group, About: []core.Path{jay}})
	}
	b := &core.Batch{}
	for i := range 500 {
		b.Append = append(b.Append, message(group, fmt.Sprint(i), "many words to fill several pages of the file"))
		b.Journal = append(b.Journal, core.Record{Key: core.Key{Turn: core.TurnID{Path: group, Seq: uint64(i)}},
			Progress: core.ProgressDone})
	}
	if err := db.Commit(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	err := within(t, func(ctx context.Context) error {
		return db.write(ctx, &job{run: func(tx *tx) error {
			for i := range 60 {
				f, ok := tx.facts().fact(uint64(i + 1))
				if !ok {
					return fmt.Errorf("fact %d is missing", i+1)
				}
				tx.facts().dropFact(f)
			}
			if _, err := tx.facts().saveFact(core.Fact{Text: "memory of tea", Topic: "tea", Origin: group}); err != nil {
				return err
			}
			for seq := range uint64(501) {
				tx.remove(placeKey(group), seq)
			}
			h := tx.rebuiltHead(placeKey(group))
			if h.count != 0 || len(tx.waiting(placeKey(group), 1000)) != 0 {
				return fmt.Errorf("%d entries are left", h.count)
			}
			tx.deleteBelow(bucketJournal, placeKey(group))
			for range tx.bucket(bucketJournal).prefixed(placeKey(group)) {
				return errors.New("records are left")
			}
			tx.migrate(group, topic)
			return nil
		}})
	})
	if err != nil {
		t.Fatal(err)
	}
	want(t, "memories", recall(t, db, core.FactQuery{See: []core.Path{group}}), []string{"memory of tea"})
}

// TestTimeOfTheNewest: a place whose newest entries are forgotten gets the time of the newest that
// is left.
func TestTimeOfTheNewest(t *testing.T) {
	db := open(t, t.TempDir())
	for i, who := range []string{"2000", "2000", "1000", "1000"} {
		e := message(group, fmt.Sprint(i), "words")
		e.Message.Author.ID, e.Message.Time = who, day.Add(time.Duration(i)*time.Hour)
		add(t, db, e)
	}
	if err := db.Forget(t.Context(), jay); err != nil {
		t.Fatal(err)
	}
	want(t, "time", headOf(t, db, group).Time, day.Add(time.Hour))
	if err := db.Forget(t.Context(), ann); err != nil {
		t.Fatal(err)
	}
	want(t, "time where nothing is left", headOf(t, db, group).Time, day.Add(time.Hour))
}

// TestJournalsOfOneTransaction: all turns that answered a forgotten user lose their journals, even
// if the page with the journals changes meanwhile.
func TestJournalsOfOneTransaction(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, _ string, db *DB) {
		b := &core.Batch{}
		for seq := range uint64(300) {
			r := opens(group, seq+1)
			r.Data = fmt.Appendf(nil, `{"last":%d,"by":"1000"}`, seq+1)
			b.Journal = append(b.Journal, r)
		}
		if err := db.Commit(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		letGo := hold(db)
		done := make(chan error, 2)
		go func() { done <- db.Commit(t.Context(), &core.Batch{Journal: []core.Record{opens(group, 1000)}}) }()
		go func() { done <- db.Forget(t.Context(), jay) }()
		synctest.Wait()
		letGo()
		for range 2 {
			if err := <-done; err != nil {
				t.Fatal(err)
			}
		}
		if _, _, err := db.Compact(t.Context()); err != nil {
			t.Fatal(err)
		}
		content, err := os.ReadFile(db.engine.name)
		if err != nil || bytes.Contains(content, []byte(`"1000"`)) {
			t.Errorf("a journal that names the forgotten is left (%v)", err)
		}
	})
}

// TestForgottenOnTheWay: forgetting a place between two migrations does not cut the link from the
// old path to the final place.
func TestForgottenOnTheWay(t *testing.T) {
	db := open(t, t.TempDir())
	group, topic := core.MustPath("chat/group"), core.MustPath("chat/group/7")
	commit := func(b core.Batch) {
		if err := db.Commit(t.Context(), &b); err != nil {
			t.Fatal(err)
		}
	}
	move := func(from core.Path, to string) {
		commit(core.Batch{Change: []core.Event{{Kind: core.KindMigration, Message: core.Message{Path: from},
			To: core.MustPath(to)}}})
	}
	move(group, "chat/super")
	commit(core.Batch{Append: []core.Entry{message(topic, "1", "one"), message(topic, "2", "two")}})
	move(topic, "chat/other")
	if err := db.Forget(t.Context(), core.MustPath("chat/super")); err != nil {
		t.Fatal(err)
	}
	commit(core.Batch{Append: []core.Entry{message(topic, "2", "two"), message(topic, "3", "three")}})
	err := db.View(t.Context(), func(v core.View) error {
		entries, err := v.Last(core.MustPath("chat/other"), 10)
		if len(entries) != 3 {
			t.Errorf("%d entries, want 3", len(entries))
		}
		return err
	})
	if err := errors.Join(err, db.Check(t.Context())); err != nil {
		t.Error(err)
	}
}
