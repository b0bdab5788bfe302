package memory

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"synthbot/core"
)

// idsOf lists the ids of a place in order.
func idsOf(t testing.TB, db *DB, path core.Path) (ids []string) {
	t.Helper()
	err := db.view(t.Context(), func(v *view) error {
		for _, value := range v.bucket(bucketIDs).prefixed(placeKey(path)) {
			run := idRun{bytes: value}
			for run.next() {
				ids = append(ids, string(run.last.id[1:]))
			}
			if run.err != nil {
				return run.err
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	return ids
}

// runFrom returns a run of ids with numbers from seq on.
func runFrom(seq uint64, ids ...string) []byte {
	var run idRun
	for i, id := range ids {
		run.add(knownID{shortID(id), seq + uint64(i), 1})
	}
	return run.bytes
}

// TestRunsOfIDs: ids that were stored and deleted in random order are found with their numbers, and
// no others. The key of each run but the newest is its last id, so that no deleted id stays in a
// key.
func TestRunsOfIDs(t *testing.T) {
	db := open(t, t.TempDir())
	number := 0
	rapid.Check(t, func(r *rapid.T) {
		number++
		path := core.MustPath(fmt.Sprint("ids/", number))
		p := place{from: path, path: path, key: placeKey(path), ids: placeKey(path)}
		stored := make(map[string]uint64)
		set := func(seq func(i int) uint64, ids ...string) {
			err := db.update(t.Context(), func(t *tx) {
				for i, id := range ids {
					setID(t, p.ids, knownID{shortID(id), seq(i), seq(i) % 7})
				}
			})
			if err != nil {
				r.Fatal(err)
			}
			for i, id := range ids {
				if stored[id] = seq(i); seq(i) == 0 {
					delete(stored, id)
				}
			}
		}
		anID := rapid.OneOf(rapid.StringN(1, 9, maxID-1), rapid.StringMatching(`[1-9][0-9]{0,3}`),
			rapid.StringMatching(`12[0-9]{17}`), rapid.StringMatching(`x{150,199}`))
		change := func(r *rapid.T) {
			seq := rapid.Uint64Range(0, 1<<40).Draw(r, "number")
			set(func(int) uint64 { return seq }, anID.Draw(r, "id"))
		}
		r.Repeat(map[string]func(*rapid.T){
			"one": change,
			"many": func(r *rapid.T) {
				from, step := rapid.IntRange(1, 9999).Draw(r, "from"), rapid.SampledFrom([]int{-1, 1, 37}).Draw(r, "step")
				var ids []string
				for i := range 200 {
					ids = append(ids, fmt.Sprint(max(1, from+i*step)))
				}
				set(func(i int) uint64 { return uint64(i + 1) }, ids...)
			},
			"delete": func(r *rapid.T) {
				if len(stored) > 0 {
					set(func(int) uint64 { return 0 }, rapid.SampledFrom(slices.Sorted(maps.Keys(stored))).Draw(r, "id"))
				}
			},
			"": func(r *rapid.T) { checkRuns(r, db, p, stored) },
		})
		err := db.view(t.Context(), func(v *view) error {
			for id, want := range stored {
				if seq, known := v.findID(p, id); !known || seq != want {
					r.Fatalf("%q: got known %t with number %d, want %d", id, known, seq, want)
				}
			}
			return nil
		})
		if err != nil {
			r.Fatal(err)
		}
	})
	err := db.update(t.Context(), func(t *tx) { t.deleteBelow(bucketIDs, []byte("ids\x01")) })
	if err != nil {
		t.Fatal(err)
	}
}

func checkRuns(r *rapid.T, db *DB, p place, stored map[string]uint64) {
	found := make(map[string]uint64, len(stored))
	err := db.view(r.Context(), func(v *view) error {
		for k, value := range v.bucket(bucketIDs).prefixed(p.ids) {
			run := idRun{bytes: value}
			for run.next() {
				found[string(run.last.id[1:])] = run.last.seq
			}
			if !bytes.Equal(k, newestKey(p.ids)) && !bytes.Equal(k, slices.Concat(p.ids, run.last.id)) {
				r.Fatalf("the run %q ends with %q", k, run.last.id)
			}
			if len(value) > 2*maxRun || run.err != nil {
				r.Fatalf("the run %q has %d bytes; %v", k, len(value), run.err)
			}
		}
		return nil
	})
	if err != nil || !maps.Equal(found, stored) {
		r.Fatalf("the runs hold %d ids, want %d; %v", len(found), len(stored), err)
	}
}

// TestBrokenRuns: reading any run ends, and the ids that were read can be stored again.
func TestBrokenRuns(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		run, again := idRun{bytes: rapid.SliceOf(rapid.Byte()).Draw(t, "run")}, idRun{}
		var read []knownID
		for run.next() {
			read = append(read, knownID{bytes.Clone(run.last.id), run.last.seq, run.last.hour})
			again.add(run.last)
		}
		for again.last = (knownID{}); again.next(); read = read[1:] {
			if len(read) == 0 || !bytes.Equal(again.last.id, read[0].id) || again.last.seq != read[0].seq {
				t.Fatalf("read %v back, want %v", again.last, read)
			}
		}
		if len(read) > 0 || again.err != nil {
			t.Fatalf("%v could not be read back: %v", read, again.err)
		}
	})
}

// TestRunsAreFull: rising or falling ids need few runs.
func TestRunsAreFull(t *testing.T) {
	db := open(t, t.TempDir())
	runs := func(path core.Path, id func(i int) string) (n int) {
		var said []core.Entry
		for i := range 5000 {
			said = append(said, message(path, id(i), "x"))
		}
		add(t, db, said...)
		err := db.view(t.Context(), func(v *view) error {
			for range v.bucket(bucketIDs).prefixed(placeKey(path)) {
				n++
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
		return n
	}
	for name, id := range map[string]func(int) string{
		"numbers":    func(i int) string { return fmt.Sprint(90_000 + 3*i) },
		"falling":    func(i int) string { return fmt.Sprint(90_000 - 3*i) },
		"snowflakes": func(i int) string { return fmt.Sprint(1_200_000_000_000_000_000 + 123_456_789_012*i) },
	} {
		if n := runs(core.MustPath("chat/"+name), id); n > 5000/25 {
			t.Errorf("%s are in %d runs", name, n)
		}
	}
}

// TestUpgradeOfIDs opens a file of an older format, in which each id is a pair, after an
// interrupted upgrade.
func TestUpgradeOfIDs(t *testing.T) {
	var log strings.Builder
	dir, o := t.TempDir(), Options{Log: slog.New(slog.NewTextHandler(&log, nil))}
	db := openWith(t, dir, o)
	populated(t, db)
	var said []core.Entry
	for i := range 500 {
		said = append(said, message(kitchen, fmt.Sprint(i), "x"))
	}
	long := strings.Repeat("x", maxID)
	add(t, db, append(said, message(kitchen, long, "x"))...)
	before, known := everything(t, db), idsOf(t, db, kitchen)
	err := db.update(t.Context(), storeFormerIDs)
	cut := db.write(t.Context(), &job{run: func(t *tx) error { return errors.Join(upgrade(t), errUndone) }})
	if err := errors.Join(err, db.Close()); err != nil || !errors.Is(cut, errUndone) {
		t.Fatal(err, cut)
	}
	db = openWith(t, dir, o)
	if diff := equal(before, everything(t, db)); diff != "" {
		t.Error(diff)
	}
	want(t, "ids", idsOf(t, db, kitchen), known)
	err = db.read(t.Context(), func(v *view) {
		if v.Bucket(bucketFormerIDs) != nil {
			t.Error("the bucket of the old ids is still there")
		}
	})
	if err != nil {
		t.Error(err)
	}
	b := &core.Batch{Append: []core.Entry{message(kitchen, "77", "again"), message(kitchen, long, "again")}}
	commit(t, db, b)
	want(t, "known", b.Known, []bool{true, true})
	if !strings.Contains(log.String(), "of chat/group: broken fields") {
		t.Errorf("unexpected log %q", &log)
	}
}

// TestSalvageOfFormerIDs: salvaging a file of version 5 keeps its ids, also those of deleted
// messages.
func TestSalvageOfFormerIDs(t *testing.T) {
	db, err := Open(t.TempDir(), Options{NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	add(t, db, message(kitchen, "1", "x"), message(kitchen, "2", "x"), message(kitchen, "3", "x"))
	err = db.update(t.Context(), func(t *tx) {
		t.remove(placeKey(kitchen), 1)
		storeFormerIDs(t)
	})
	file := filepath.Join(crash(t, db), FileName)
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if report, err := Salvage(dir, file); err != nil || report.Dropped != 1 {
		t.Errorf("%+v, %v, want one pair dropped", report, err)
	}
	want(t, "ids", idsOf(t, open(t, dir), kitchen), []string{"1", "2", "3"})
}

// TestSalvageAfterUpgradeOfIDs: old ids that were not deleted yet are ignored.
func TestSalvageAfterUpgradeOfIDs(t *testing.T) {
	db, err := Open(t.TempDir(), Options{NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	add(t, db, message(kitchen, "1", "x"), message(kitchen, "2", "x"), message(kitchen, "3", "x"))
	p := place{path: kitchen, ids: placeKey(kitchen)}
	err = db.update(t.Context(), func(t *tx) {
		storeFormerIDs(t)
		upgradeIDs(t)
		t.putID(p, "4", 4) // of a deleted message
		setID(t, p.ids, knownID{id: shortID("2")})
		t.remove(p.ids, 2)
	})
	file := filepath.Join(crash(t, db), FileName)
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if _, err := Salvage(dir, file); err != nil {
		t.Error(err)
	}
	want(t, "ids", idsOf(t, open(t, dir), kitchen), []string{"1", "3", "4"})
}

// storeFormerIDs stores ids in the format of version 5, one of them broken.
func storeFormerIDs(t *tx) {
	t.fail(bucketFormerIDs, t.MakeBucket(bucketFormerIDs))
	b, pairs := t.bucket(bucketFormerIDs), make(map[string][]byte)
	for k, v := range t.bucket(bucketIDs).pairs(nil, nil) {
		place := k[:bytes.IndexByte(k, terminator)+1]
		for run := (idRun{bytes: v}); run.next(); {
			value := binary.AppendUvarint(nil, run.last.seq)
			pairs[string(place)+string(run.last.id[1:])] = binary.AppendUvarint(value, run.last.hour)
		}
	}
	t.deleteBelow(bucketIDs, nil)
	for k, v := range pairs {
		b.Put([]byte(k), v)
	}
	b.Put(append(placeKey(group), "broken"...), []byte{0x80})
	t.bucket(bucketMeta).Put([]byte(metaSchema), []byte("5"))
}
