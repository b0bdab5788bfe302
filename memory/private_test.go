package memory

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"synthbot/core"
)

// privacy returns for each place whether it is private.
func privacy(t *testing.T, db *DB) map[core.Path]bool {
	t.Helper()
	places := make(map[core.Path]bool)
	err := db.View(t.Context(), func(v core.View) error {
		heads, err := v.Places(core.Path{})
		for _, h := range heads {
			places[h.Path] = h.Private
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return places
}

// TestAPrivatePlaceStaysPrivate: a place stays private although later messages are not marked and
// the marked ones are deleted.
func TestAPrivatePlaceStaysPrivate(t *testing.T) {
	secret := message(alone, "1", "between us")
	secret.Message.Private, secret.Message.Time = true, time.Unix(1_000_000, 0)
	db := open(t, t.TempDir())
	add(t, db, secret, message(group, "1", "hi all"))
	for i := range 60 {
		add(t, db, message(alone, fmt.Sprint("reminder-", i), "tea"))
	}
	wanted := map[core.Path]bool{alone: true, group: false}
	want(t, "after much", privacy(t, db), wanted)
	if err := db.Prune(t.Context(), Config{Keep: []Retention{{Messages: 10}}}); err != nil {
		t.Fatal(err)
	}
	want(t, "entries left", len(everything(t, db)[alone]), 10)
	want(t, "after pruning", privacy(t, db), wanted)

	var b bytes.Buffer
	if err := db.Export(t.Context(), &b, core.Path{}); err != nil {
		t.Fatal(err)
	}
	other := open(t, t.TempDir())
	if _, _, err := other.Import(t.Context(), &b, nil); err != nil {
		t.Fatal(err)
	}
	want(t, "after import", privacy(t, other), wanted)

	moved := core.MustPath("telegram/4711")
	err := db.Commit(t.Context(), &core.Batch{Change: []core.Event{{Kind: core.KindMigration,
		Message: core.Message{Path: alone}, To: moved}}})
	if err != nil {
		t.Fatal(err)
	}
	want(t, "after it moved", privacy(t, db), map[core.Path]bool{moved: true, group: false})
}

// TestPrivateDuringAnExport: a place that becomes private while it is exported is private after an import.
func TestPrivateDuringAnExport(t *testing.T) {
	db, other := open(t, t.TempDir()), open(t, t.TempDir())
	add(t, db, message(alone, "1", "hi"))
	var b bytes.Buffer
	e := exporter{of: newSubject(t.Context(), db, core.Path{}), out: json.NewEncoder(&b)}
	if err := e.of.find(); err != nil {
		t.Fatal(err)
	}
	secret := message(alone, "2", "between us")
	secret.Message.Private = true
	add(t, db, secret)
	err := db.read(t.Context(), func(v *view) {
		e.view = v
		e.writeEntries()
	})
	if err != nil {
		t.Fatal(err)
	}
	lines, _, err := other.Import(t.Context(), &b, nil)
	if err != nil {
		t.Fatal(err)
	}
	want(t, "entries", lines, 1)
	want(t, "private places", privacy(t, other), map[core.Path]bool{alone: true})
}

// TestUnreadableHeadStaysPrivate: privacy is rebuilt from the log.
func TestUnreadableHeadStaysPrivate(t *testing.T) {
	db := openWith(t, t.TempDir(), Options{Log: slog.New(slog.DiscardHandler)})
	secret := message(alone, "1", "between us")
	secret.Message.Private = true
	add(t, db, secret, message(alone, "2", "more"))
	err := db.write(t.Context(), &job{run: func(t *tx) error {
		t.bucket(bucketPlaces).Put(placeKey(alone),
			[]byte{1, 200})
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	want(t, "private", privacy(t, db), map[core.Path]bool{alone: true})
	add(t, db, message(alone, "3", "and more")) // a write repairs it
	want(t, "private after it was mended", privacy(t, db), map[core.Path]bool{alone: true})
}
