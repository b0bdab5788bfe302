package memory

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"synthbot/core"
	"synthbot/core/coretest"
)

var huge = flag.Bool("huge", false, "also run the benchmarks with 10,000,000 messages")

const benchPlaces = 20

func sizes() []int {
	if *huge {
		return []int{1e3, 1e5, 1e6, 1e7}
	}
	return []int{1e3, 1e5, 1e6}
}

func benchPlace(i int) core.Path {
	return core.MustPath(fmt.Sprintf("discord/81384788765712384/%d", 1e17+i%benchPlaces))
}

// chat returns a message of usual size.
func chat(i int) core.Entry {
	e := message(benchPlace(i), fmt.Sprint(uint64(1200000000000000000+i)),
		"Well, I would say that the quick brown fox is rather lazy today, don't you think so? Let us meet at ten.")
	e.Message.Author = core.Author{ID: fmt.Sprint(100000000000000000 + i%997), Name: "Jay Miller", Tag: "@jay"}
	e.Message.Time = time.Unix(1790000000+int64(i), 0)
	return e
}

// stock returns a database that was filled with n messages in bulk.
func stock(b testing.TB, n int) *DB {
	b.Helper()
	dir := b.TempDir()
	db, err := Open(dir, Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { db.Close() })
	boltOf(db).NoSync, boltOf(db).NoGrowSync = true, true
	const group = 2000
	for i := 0; i < n; i += group {
		batch := &core.Batch{}
		for k := i; k < min(i+group, n); k++ {
			batch.Append = append(batch.Append, chat(k))
		}
		if err := db.Commit(context.Background(), batch); err != nil {
			b.Fatal(err)
		}
	}
	boltOf(db).NoSync, boltOf(db).NoGrowSync = false, false
	if err := boltOf(db).Sync(); err != nil {
		b.Fatal(err)
	}
	return db
}

// BenchmarkHistory appends messages in commits of their own and reads the last 50 of a place and of
// all places, in files of several sizes.
func BenchmarkHistory(b *testing.B) {
	for _, n := range sizes() {
		b.Run(fmt.Sprintf("messages=%d", n), func(b *testing.B) {
			db := stock(b, n)
			size := func() int64 { info, _ := os.Stat(db.engine.name); return info.Size() }
			next := n
			b.Run("append", func(b *testing.B) {
				before, first := size(), next
				for b.Loop() {
					add(b, db, chat(next))
					next++
				}
				if grown := size() - before; grown > 0 { // the file grows in steps
					b.ReportMetric(float64(grown)/float64(next-first)*1000/1024, "KiB/1000")
				}
			})
			before := size()
			took := timed(func() {
				if _, _, err := db.Compact(b.Context()); err != nil {
					b.Fatal(err)
				}
			})
			b.Run("last50", func(b *testing.B) {
				benchRead(b, db, func(v *view, i int) (int, error) {
					got, err := v.Last(benchPlace(i), 50)
					return len(got), err
				})
				b.ReportMetric(took.Seconds(), "s-to-compact")
				b.ReportMetric(float64(before)/(1<<20), "MiB-before")
				b.ReportMetric(float64(size())/(1<<20), "MiB-after")
				b.ReportMetric(float64(before)/float64(next)*1000/1024, "KiB/1000-in-all")
			})
			b.Run("recent50", func(b *testing.B) {
				benchRead(b, db, func(v *view, i int) (int, error) {
					got, err := v.Recent(core.MustPath("discord"), 50, nil)
					return len(got), err
				})
			})
		})
	}
}

// BenchmarkAppendGrowth appends alternately to a file with 1,000 messages and one with 1,000,000,
// and reports the ratio of the times.
func BenchmarkAppendGrowth(b *testing.B) {
	small, large := stock(b, 1e3), stock(b, 1e6)
	next := int(1e6)
	append20 := func(db *DB) float64 {
		return timed(func() {
			for range 20 {
				add(b, db, chat(next))
				next++
			}
		}).Seconds()
	}
	var ratio, short, long []float64
	for b.Loop() {
		short, long = append(short, append20(small)), append(long, append20(large))
		ratio = append(ratio, long[len(long)-1]/short[len(short)-1])
	}
	b.ReportMetric(median(short)/20*1e6, "µs/append-to-1e3")
	b.ReportMetric(median(long)/20*1e6, "µs/append-to-1e6")
	b.ReportMetric(median(ratio), "times")
}

func benchRead(b *testing.B, db *DB, read func(*view, int) (int, error)) {
	i, got := 0, 0
	for b.Loop() {
		err := db.view(context.Background(), func(v *view) error {
			n, err := read(v, i)
			got += n
			return err
		})
		if err != nil {
			b.Fatal(err)
		}
		i++
	}
	b.ReportMetric(float64(got)/float64(i), "entries")
}

// BenchmarkReceive measures how many messages a second from several places become durable, compared
// with plain bbolt commits of the same size. It alternates between both in short rounds with new
// files, because the position of a file on the disk matters. Rounds in which a virtual machine lost
// the processor are left out.
func BenchmarkReceive(b *testing.B) {
	for _, places := range []int{1, 10, 100} {
		b.Run(fmt.Sprintf("places=%d", places), func(b *testing.B) {
			const rounds, stocked = 100, 1000
			var ours, ideal []float64
			groups, n := 0, 0
			for b.Loop() {
				db := stock(b, stocked)
				raw, leave := rawStore(b)
				raw(stocked)
				groups -= transactions(b, db)
				before := coretest.Stolen()
				us := receiveInParallel(b, db, places, rounds, stocked)
				it := timed(func() {
					for range rounds {
						raw(places)
					}
				})
				if n++; coretest.Stolen() == before {
					ours, ideal = append(ours, us.Seconds()), append(ideal, it.Seconds())
				}
				groups += transactions(b, db)
				db.Close()
				leave()
			}
			if len(ours) < 5 {
				b.Skip("fewer than five rounds were quiet: run it longer")
			}
			each := float64(places * rounds)
			b.ReportMetric(each/median(ours), "msg/s")
			b.ReportMetric(each/median(ideal), "ideal-msg/s")
			b.ReportMetric(each*float64(n)/float64(groups), "msg/commit")
			b.ReportMetric(100*median(ideal)/median(ours), "%ideal")
			b.ReportMetric(float64(len(ours))/float64(n), "quiet")
		})
	}
}

// receiveInParallel lets several places receive messages, each one after another.
func receiveInParallel(b *testing.B, db *DB, places, rounds, first int) time.Duration {
	return timed(func() {
		var all sync.WaitGroup
		for p := range places {
			all.Go(func() {
				for r := range rounds {
					if err := db.Commit(b.Context(),
						&core.Batch{Append: []core.Entry{chat(first + r*places + p)}}); err != nil {
						b.Error(err)
					}
				}
			})
		}
		all.Wait()
	})
}

func timed(f func()) time.Duration {
	start := time.Now()
	f()
	return time.Since(start)
}

func median(all []float64) float64 {
	all = slices.Sorted(slices.Values(all))
	return all[len(all)/2]
}

// rawStore returns a function that commits n values of the same size with plain bbolt and the
// options of package bolt.
func rawStore(b testing.TB) (commit func(n int), leave func()) {
	db, err := bbolt.Open(filepath.Join(b.TempDir(), "raw.db"), 0o600, &bbolt.Options{FreelistType: bbolt.FreelistMapType, InitialMmapSize: 1 << 30})
	if err != nil {
		b.Fatal(err)
	}
	db.AllocSize = 1 << 20
	next := 0
	commit = func(n int) {
		err := db.Update(func(t *bbolt.Tx) error {
			for range n {
				next++
				e := chat(next)
				place := placeKey(e.Message.Path)
				for name, pair := range map[string][2][]byte{
					bucketLog:    {seqKey(place, uint64(next)), encodeEntry(&storedEntry{Entry: e})},
					bucketIDs:    {newestKey(place), make([]byte, maxRun/2)},
					bucketPlaces: {place, encodeHead(head{last: 1, time: e.Message.Time})},
				} {
					bucket, err := t.CreateBucketIfNotExists([]byte(name))
					if err != nil {
						return err
					}
					bucket.FillPercent = 0.95
					if err := bucket.Put(pair[0], pair[1]); err != nil {
						return err
					}
				}
			}
			return nil
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	return commit, func() { db.Close() }
}

// BenchmarkOpen opens and closes files of several sizes.
func BenchmarkOpen(b *testing.B) {
	for _, n := range sizes() {
		b.Run(fmt.Sprintf("messages=%d", n), func(b *testing.B) {
			db := stock(b, n)
			dir := filepath.Dir(db.engine.name)
			db.Close()
			for b.Loop() {
				db, err := Open(dir, Options{})
				if err != nil {
					b.Fatal(err)
				}
				db.Close()
			}
		})
	}
}

// BenchmarkTurn measures the store's part of a turn: receiving a message, reading for the prompt,
// recording plan and step, and closing with the answer.
func BenchmarkTurn(b *testing.B) {
	const receive, read, record, finish = 0, 1, 2, 3
	for part, name := range []string{"receive", "read", "record", "finish"} {
		b.Run(name, func(b *testing.B) {
			db := stock(b, 1000)
			boltOf(db).NoSync = true
			b.ReportAllocs()
			for i := 1000; b.Loop(); i++ {
				b.StopTimer()
				timed := func(one int, work func()) {
					if one == part {
						b.StartTimer()
						defer b.StopTimer()
					}
					work()
				}
				asked := chat(i)
				asked.Due, asked.Message.Addressed = true, core.AddressedMention
				receipt := &core.Batch{Append: []core.Entry{asked}, Begin: true}
				timed(receive, func() { commit(b, db, receipt) })
				turn := core.TurnID{Path: asked.Message.Path, Seq: receipt.Append[0].Message.Seq}
				timed(read, func() { readTurn(b, db, turn) })
				timed(record, func() {
					for _, r := range turnRecords(turn) {
						commit(b, db, &core.Batch{Journal: []core.Record{r}})
					}
				})
				said := chat(i)
				said.Self, said.Message.ID = true, asked.Message.ID+"1"
				timed(finish, func() {
					commit(b, db, &core.Batch{
						Append: []core.Entry{said}, Answered: []core.TurnID{turn}, Closed: []core.TurnID{turn},
						States: map[core.Path]core.State{turn.Path: {Topic: "tea"}}, Finishing: true,
					})
				})
				b.StartTimer()
			}
		})
	}
}

// readTurn reads what a turn needs for its prompt.
func readTurn(b *testing.B, db *DB, turn core.TurnID) {
	err := db.View(b.Context(), func(v core.View) error {
		_, err := v.Due(turn.Path, 20)
		_, err2 := v.Head(turn.Path)
		_, err3 := v.Journal(turn)
		past, err4 := v.After(turn.Path, turn.Seq-40, 60, nil)
		_, err5 := v.State(turn.Path)
		if len(past) != 40 {
			b.Fatalf("%d entries", len(past))
		}
		return errors.Join(err, err2, err3, err4, err5)
	})
	if err != nil {
		b.Fatal(err)
	}
}

// turnRecords returns the records of a turn with one step that sends a message.
func turnRecords(turn core.TurnID) (records []core.Record) {
	now := time.Unix(1790000000, 0)
	plan := `{"messages":[{"text":"Well, I would say that it is rather lazy today. Let us meet at ten."}],"steps":[]}`
	for part, progress := range []core.Progress{core.ProgressAccepted, core.ProgressStarted, core.ProgressDone} {
		key := core.Key{Turn: turn, Round: 1, Step: uint16(min(part, 1))}
		records = append(records, core.Record{Key: key, Progress: progress, Time: now, Data: json.RawMessage(plan)})
	}
	return records
}
