package memory

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"synthbot/core"
)

// TestPruningByItself: pruning runs soon after the start and then at the configured interval, with
// the latest configuration.
func TestPruningByItself(t *testing.T) {
	o := Options{Config: Config{Every: time.Hour, Keep: []Retention{{Messages: 5}}}}
	bubble(t, o, func(t *testing.T, _ string, db *DB) {
		id := 0
		fill := func() {
			b := &core.Batch{}
			for range 20 {
				id++
				e := message(kitchen, fmt.Sprint(id), "x")
				e.Message.Time = time.Now()
				b.Append = append(b.Append, e)
			}
			if err := db.Commit(t.Context(), b); err != nil {
				t.Fatal(err)
			}
		}
		left := func(what string, n int) {
			t.Helper()
			synctest.Wait()
			want(t, what, len(everything(t, db)[kitchen]), n)
		}
		fill()
		left("at once", 20)
		time.Sleep(startPause + firstPrunePause)
		left("soon after the start", 5)
		fill()
		time.Sleep(30 * time.Minute)
		left("after half an hour", 25)
		time.Sleep(31 * time.Minute)
		left("after an hour", 5)
		fill()
		db.SetConfig(Config{Every: time.Hour, Keep: []Retention{{Messages: 15}}})
		time.Sleep(firstPrunePause)
		left("after a reload", 15)
		db.SetConfig(Config{})
		fill()
		time.Sleep(100 * time.Hour)
		left("when nothing is to be pruned", 35)
		db.SetConfig(Config{Every: time.Hour, Keep: []Retention{{Age: 50 * time.Hour}}})
		time.Sleep(firstPrunePause)
		left("when all is too old", 0)
	})
}

// TestPruningOfShortRuns: a bot that runs for some seconds a day prunes at the start, but not if it pruned within the
// interval.
func TestPruningOfShortRuns(t *testing.T) {
	dir := t.TempDir()
	open(t, dir).Close()
	synctest.Test(t, func(t *testing.T) {
		run := func(what string, n int) {
			t.Helper()
			o := Options{Log: complaining(t), NoSync: true, Config: Config{Every: time.Hour, Messages: 5}}
			db, err := Open(dir, o)
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			time.Sleep(startPause)
			synctest.Wait()
			want(t, what, len(everything(t, db)[kitchen]), n)
			for range 10 {
				add(t, db, message(kitchen, "", "x"))
			}
		}
		run("at the start", 0)
		time.Sleep(24 * time.Hour)
		run("after a day", 5)
		time.Sleep(30 * time.Minute)
		run("after half an hour", 15)
		time.Sleep(31 * time.Minute)
		run("after an hour", 5)
	})
}

// TestRetentionOfAllPlaces: messages are kept for the default time unless a table says otherwise;
// memories are kept for ever.
func TestRetentionOfAllPlaces(t *testing.T) {
	db := open(t, t.TempDir())
	for i := range 20 {
		for _, place := range []core.Path{kitchen, group} {
			e := message(place, fmt.Sprint(i), "x")
			e.Message.Time = time.Now()
			add(t, db, e)
		}
	}
	old := message(alone, "old", "x")
	old.Message.Time = time.Now().Add(-25 * time.Hour)
	add(t, db, old)
	save(t, db, core.Fact{Text: "ann likes tea", Origin: alone, Time: old.Message.Time})
	c := Config{Messages: 5, Age: 24 * time.Hour, Keep: []Retention{{Path: group, Messages: 15}}}
	if err := db.Prune(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	left := everything(t, db)
	for place, n := range map[core.Path]int{kitchen: 5, group: 15, alone: 0} {
		want(t, place.String(), len(left[place]), n)
	}
	want(t, "memories", recall(t, db, core.FactQuery{See: []core.Path{alone}}), []string{"ann likes tea"})
}

// TestTurnsArePrunedWhole: a turn is pruned as a whole or not at all.
func TestTurnsArePrunedWhole(t *testing.T) {
	db := open(t, t.TempDir())
	now := day
	db.clock = func() time.Time { return now }
	record := func(seq uint64, step uint16, p core.Progress, age time.Duration) core.Record {
		return core.Record{Key: core.Key{Turn: core.TurnID{Path: kitchen, Seq: seq}, Round: 1, Step: step},
			Progress: p, Time: day.Add(-age)}
	}
	week := 7 * 24 * time.Hour
	b := &core.Batch{
		Journal: []core.Record{
			record(1, 0, core.ProgressAccepted, 2*week), record(1, 1, core.ProgressDone, 2*week),
			record(2, 0, core.ProgressAccepted, 2*week), record(2, 1, core.ProgressDone, week/2),
			record(3, 0, core.ProgressAccepted, 2*week), record(3, 1, core.ProgressPending, 2*week), record(3,
				2, core.ProgressDone, 2*week),
		},
	}
	for seq := range uint64(1000) {
		b.Append = append(b.Append, message(kitchen, "", "x"))
		if seq >= 10 {
			b.Journal = append(b.Journal, record(seq, 0, core.ProgressDone, 2*week))
		}
	}
	mark := &core.Batch{Answered: []core.TurnID{{Path: kitchen, Seq: 1000}}}
	if err := errors.Join(db.Commit(t.Context(), b), db.Commit(t.Context(), mark)); err != nil {
		t.Fatal(err)
	}
	prune := func(counts map[uint64]int) {
		t.Helper()
		if err := db.Prune(t.Context(), Config{Journal: week}); err != nil {
			t.Fatal(err)
		}
		db.view(t.Context(), func(v *view) error {
			for seq, n := range counts {
				records, err := v.Journal(core.TurnID{Path: kitchen, Seq: seq})
				want(t, fmt.Sprint("turn ", seq, " ", err), len(records), n)
			}
			return nil
		})
	}
	prune(map[uint64]int{1: 0, 2: 2, 3: 3, 10: 0, 600: 0, 999: 0})
	now = now.Add(week)
	prune(map[uint64]int{2: 0, 3: 3})
	now = now.Add(pendingAge)
	prune(map[uint64]int{3: 0})
}

// TestHashesOfTheForgottenAreNotKeptForEver: hashes of forgotten ids are dropped after a time in
// which no platform delivers again.
func TestHashesOfTheForgottenAreNotKeptForEver(t *testing.T) {
	db := open(t, t.TempDir())
	now := day
	db.clock = func() time.Time { return now }
	add(t, db, message(kitchen, "1", "x"))
	if err := db.Forget(t.Context(), kitchen); err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{1, 0} {
		if err := db.Prune(t.Context(), Config{}); err != nil {
			t.Fatal(err)
		}
		want(t, "hashes", size(t, db, bucketGone), n)
		now = now.Add(2 * idAge)
	}
}

func TestConfigCheck(t *testing.T) {
	c := Config{Keep: []Retention{{Path: group}, {}, {Path: topic}, {Path: group, Messages: 5}}}
	var faults []string
	c.Check(func(text string, at ...any) { faults = append(faults, fmt.Sprint(text, at)) })
	want(t, "faults", faults, []string{"is the second one for this path; write one table for each[keep 3 path]"})
	want(t, "policy", c.policy(core.MustPath("chat/group/7/1")).Path, topic)
}

// TestAgeOfIDs: ids and hashes are kept for exactly their time.
func TestAgeOfIDs(t *testing.T) {
	db := open(t, t.TempDir())
	now := day
	db.clock = func() time.Time { return now }
	add(t, db, message(group, "1", "x"), message(kitchen, "2", "x"))
	if err := db.Forget(t.Context(), kitchen); err != nil {
		t.Fatal(err)
	}
	now = now.Add(time.Hour)
	add(t, db, message(group, "later", "x"), message(group, "left", "x"))
	now = now.Add(-time.Hour)
	err := db.write(t.Context(), &job{run: func(t *tx) error {
		for seq := range uint64(2) {
			t.remove(placeKey(group), seq+1)
		}
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	for _, left := range [][]int{{3, 1}, {2, 0}, {1, 0}} {
		now = now.Add(idAge)
		if err := db.Prune(t.Context(), Config{}); err != nil {
			t.Fatal(err)
		}
		want(t, "ids and hashes", []int{len(idsOf(t, db, group)), size(t, db, bucketGone)}, left)
		now = now.Add(-idAge + time.Hour)
	}
}

// TestPruningFails: pruning returns the error of the disk or of its context.
func TestPruningFails(t *testing.T) {
	db := open(t, t.TempDir())
	for _, place := range []core.Path{group, kitchen} {
		add(t, db, message(place, "1", "x"), message(place, "2", "x"))
	}
	if err := <-db.AddUse(Use{Day: "2020-01-01", Engine: "e", Calls: 1}); err != nil {
		t.Fatal(err)
	}
	d := interceptWrites(t, db)
	d.onWrite(func([]byte, int64) (int, error) { return 0, syscall.EIO })
	if err := db.Prune(t.Context(), Config{Messages: 1}); !strings.Contains(fmt.Sprint(err), syscall.EIO.Error()) {
		t.Errorf("got %v, want EIO", err)
	}
	if err := db.Prune(t.Context(), Config{}); !strings.Contains(fmt.Sprint(err), syscall.EIO.Error()) {
		t.Errorf("old use: got %v, want EIO", err)
	}
	d.onWrite(nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := db.Prune(ctx, Config{Messages: 1}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
	if err := db.Prune(t.Context(), Config{Messages: 1}); err != nil {
		t.Fatal(err)
	}
	left := everything(t, db)
	want(t, "left", []int{len(left[group]), len(left[kitchen])}, []int{1, 1})
}
