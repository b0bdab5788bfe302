package memory

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"synthbot/core"
)

// TestCheckNamesWhatIsBroken: for each rule of the file, Check reports a violation with its place
// or record.
func TestCheckNamesWhatIsBroken(t *testing.T) {
	db := openWith(t, t.TempDir(), Options{Log: slog.New(slog.DiscardHandler)})
	populated(t, db)
	n := 0
	newCloud(8).put(t, db, 0, 3, func() string { n++; return fmt.Sprint("a memory with a vector ", n) })
	if err := db.Commit(t.Context(), &core.Batch{Answered: []core.TurnID{{Path: alone, Seq: 2}}}); err != nil {
		t.Fatal(err)
	}
	g := placeKey(group)
	at := func(seq uint64) []byte { return seqKey(g, seq) }
	spoilt := []byte{4, 0xff} // a truncated text
	number := func(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }
	vectors := func(n uint64) []byte { return append([]byte("chat\x01group\x00"), number(n)...) }
	for says, spoil := range map[string]func(t *tx){
		"":                     func(*tx) {},
		`log: key "x"`:         func(t *tx) { t.bucket(bucketLog).Put([]byte("x"), nil) },
		"chat/group#2: broken": func(t *tx) { t.bucket(bucketLog).Put(at(2), spoilt) },
		"the entry is private": func(t *tx) {
			t.head(placeKey(alone)).private = false
			l, _ := t.entry(place{path: alone, key: placeKey(alone)}, 1)
			l.Message.Private = false
			t.rewrite(&l)
		},
		"it should wait: true":                     func(t *tx) { t.bucket(bucketDue).Delete(at(4)) },
		"it should wait: false":                    func(t *tx) { t.bucket(bucketDue).Put(at(2), nil) },
		"waits but does not exist":                 func(t *tx) { t.bucket(bucketDue).Put(at(99), nil) },
		`runs: key "x"`:                            func(t *tx) { t.bucket(bucketIDs).Put([]byte("x"), nil) },
		"run \"chat\\x01group\\x00\\xff\": broken": func(t *tx) { t.bucket(bucketIDs).Put(newestKey(g), []byte{0, 0x80}) },
		`id "g3" does not belong to the run`:       func(t *tx) { t.bucket(bucketIDs).Put(slices.Concat(g, shortID("g0")), runFrom(99, "g3")) },
		`id "g1" does not belong to the run`:       func(t *tx) { t.bucket(bucketIDs).Put(newestKey(g), runFrom(98, "g2", "g1")) },
		`with the id "g3"`:                         func(t *tx) { setID(t, g, knownID{shortID("g1"), 3, 1}) },
		"1 entries are not found":                  func(t *tx) { setID(t, g, knownID{id: shortID("g1")}) },
		`places: key "x"`:                          func(t *tx) { t.bucket(bucketPlaces).Put([]byte("x"), nil) },
		"chat/group: head":                         func(t *tx) { t.bucket(bucketPlaces).Put(g, spoilt) },
		"head counts 6 entries":                    func(t *tx) { t.head(g).count++ },
		"the last number is 4":                     func(t *tx) { t.head(g).last-- },
		"the mark 6 is above":                      func(t *tx) { h := t.head(g); h.answered = 6; t.deleteBelow(bucketDue, g) },
		"2 have entries, 1 have a head": func(t *tx) {
			t.bucket(bucketPlaces).Delete(g)
			t.deleteBelow(bucketDue, g)
			for _, seq := range []uint64{4, 5} {
				l, _ := t.entry(place{path: group, key: g}, seq)
				l.Due = false
				t.rewrite(&l)
			}
		},
		"facts: memory":                       func(t *tx) { t.bucket(bucketFacts).Put([]byte("x"), []byte("{}")) },
		"memory 0000000000000001: unexpected": func(t *tx) { t.bucket(bucketFacts).Put(number(1), []byte("{")) },
		"memory 1 is not found by": func(t *tx) {
			f, _ := t.facts().fact(1)
			t.bucket(bucketWords).Delete(postingKey(f.Origin, termAll, factKey(&f)))
		},
		"lead to a memory":           func(t *tx) { t.bucket(bucketWords).Put([]byte("x"), nil) },
		"vectors: \"short\": broken": func(t *tx) { t.bucket(bucketVectors).Put([]byte("short"), nil) },
		`vectors: key "x`:            func(t *tx) { t.bucket(bucketVectors).Put(append([]byte("x"), number(1)...), nil) },
		"vector of 3 bytes":          func(t *tx) { t.bucket(bucketVectors).Put(vectors(5), []byte("abc")) },
		"memory 1 has a vector": func(t *tx) {
			t.bucket(bucketVectors).Put(append([]byte{0}, number(1)...), t.bucket(bucketVectors).Get(vectors(5)))
		},
		"memory 9 has a vector":       func(t *tx) { t.bucket(bucketVectors).Put(vectors(9), t.bucket(bucketVectors).Get(vectors(5))) },
		"memory 6 has a wrong sketch": func(t *tx) { t.facts().setSketch(group, 6, nil) },
		`sketches: "empty": 0`:        func(t *tx) { t.bucket(bucketSketches).Put([]byte("empty"), nil) },
		`sketches: "odd": 7`:          func(t *tx) { t.bucket(bucketSketches).Put([]byte("odd"), []byte("7 bytes")) },
		`memory d has a vector under ""`: func(t *tx) {
			t.bucket(bucketVectors).Put(append([]byte{0}, number(13)...), t.bucket(bucketVectors).Get(vectors(5)))
		},
		"4 are there of 3 vectors": func(t *tx) { t.facts().setSketch(topic, 7, make([]byte, sketchBytes)) },
		"journal":                  func(t *tx) { t.bucket(bucketJournal).Put(at(1), nil) },
		"journal: record":          func(t *tx) { t.bucket(bucketJournal).Put(append(at(1), 0, 0, 0, 0, 0, 0), spoilt) },
		"plugins: item":            func(t *tx) { t.bucket(bucketPlugins).Put([]byte("bio\x00\x00k"), spoilt) },
		"states":                   func(t *tx) { t.bucket(bucketStates).Put(g, spoilt) },
		"usage: key":               func(t *tx) { t.bucket(bucketUsage).Put([]byte("2026-11-20\x00\x01\x00e"), nil) },
		"plugins: key":             func(t *tx) { t.bucket(bucketPlugins).Put([]byte("bio\x00\x01\x00k"), []byte(`{"n":1}`)) },
		"usage: use":               func(t *tx) { t.bucket(bucketUsage).Put([]byte("x"), nil) },
		"aliases":                  func(t *tx) { t.bucket(bucketAliases).Put(placeKey(topic), spoilt) },
	} {
		var faults []error
		err := db.write(t.Context(), &job{run: func(t *tx) error {
			spoil(t)
			t.finish()
			c := &checker{view: &view{tx: *t}, ctx: context.Background()}
			c.checkRecords()
			faults = c.faults
			return errUndone
		}})
		if !errors.Is(err, errUndone) || (says == "") != (len(faults) == 0) || len(faults) > 1 || !strings.Contains(fmt.Sprint(faults), says) {
			t.Errorf("got errors %v and %v, want only %q", err, faults, says)
		}
	}
	want(t, "faults in the end", db.Check(t.Context()), nil)
}

// errUndone takes what a job did back.
var errUndone = errors.New("undone")

// TestCheckIsBounded: Check ends with its context and lists only some of many faults.
func TestCheckIsBounded(t *testing.T) {
	db, err := Open(t.TempDir(), Options{NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	populated(t, db)
	err = db.write(t.Context(), &job{run: func(t *tx) error {
		for i := range 3 * maxFaults {
			t.bucket(bucketStates).Put(fmt.Append(nil, "no place ", i), nil)
		}
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	err = db.Check(t.Context())
	want(t, "faults", strings.Count(fmt.Sprint(err), "no place "), maxFaults)
	ctx, cancel := context.WithCancel(t.Context())
	db.clock = func() time.Time { cancel(); return day } // called when the check begins
	if err := db.Check(ctx); !errors.Is(err, context.Canceled) || errors.Is(err, core.ErrDamaged) {
		t.Errorf("got %v, want context.Canceled", err)
	}
	db.Close()
	if err := db.Check(t.Context()); !errors.Is(err, core.ErrClosed) || errors.Is(err, core.ErrDamaged) {
		t.Errorf("got %v, want core.ErrClosed", err)
	}
}

// TestCheckReadsThePages: Check finds broken pages even of a database in use.
func TestCheckReadsThePages(t *testing.T) {
	_, file := filledFile(t)
	db, err := Open(filepath.Dir(file), Options{NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	page := make([]byte, 4096)
	for at := int64(2 * 4096); ; at += 4096 {
		if _, err := handleOf(db).ReadAt(page, at); err != nil {
			t.Fatal(err)
		}
		if binary.LittleEndian.Uint64(page) == uint64(at/4096) && swap(page, []byte("house\x01kitchen\x00\x00\x00\x00\x00\x00\x00\x00\x02")) {
			if _, err := handleOf(db).WriteAt(page, at); err != nil {
				t.Fatal(err)
			}
			break
		}
	}
	if err := db.Check(t.Context()); !errors.Is(err, core.ErrDamaged) || !strings.Contains(err.Error(), "does not follow") {
		t.Errorf("unexpected error %v", err)
	}
}

// swap overwrites a key of a page with the next one.
func swap(page, key []byte) bool {
	at := bytes.Index(page, key)
	if at < 0 {
		return false
	}
	page[at+len(key)-1]++
	return true
}
