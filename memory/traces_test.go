package memory

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"synthbot/core"
	"synthbot/core/epochs"
	"synthbot/memory/bolt"
)

// TestTidy: after users were forgotten, the file is compacted at night and when it is closed, but
// never right after the request.
func TestTidy(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, _ string, db *DB) {
		file := func() os.FileInfo {
			info, err := os.Stat(db.engine.name)
			if err != nil {
				t.Fatal(err)
			}
			return info
		}
		before := file()
		anew := func(what string, yes bool) {
			t.Helper()
			synctest.Wait()
			now := file()
			want(t, "anew "+what, !os.SameFile(before, now), yes)
			want(t, "traces "+what, hasTraces(db), false)
			before = now
		}
		forget := func() {
			if err := db.Forget(t.Context(), jay); err != nil {
				t.Fatal(err)
			}
			want(t, "traces", hasTraces(db), true)
		}
		time.Sleep(48 * time.Hour)
		anew("when nobody was forgotten", false)
		forget()
		forget()
		night := time.Date(2000, 1, 3, traceHour, 30, 0, 0, time.Local)
		time.Sleep(time.Until(night.Add(-time.Hour)))
		want(t, "traces before the night", hasTraces(db), true)
		want(t, "the file before the night", os.SameFile(before, file()), true)
		time.Sleep(time.Hour)
		anew("in the night", true)
		forget()
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		want(t, "anew at the end", !os.SameFile(before, file()), true)
	})
}

// slowReader is a writer that blocks.
type slowReader struct {
	begun, on chan struct{}
	got       bytes.Buffer
}

func (s *slowReader) Write(p []byte) (int, error) {
	select {
	case <-s.begun:
	default:
		close(s.begun)
		<-s.on
	}
	return s.got.Write(p)
}

// TestSlowExportBlocksNobody: a slow export delays neither writers nor compaction.
func TestSlowExportBlocksNobody(t *testing.T) {
	for name, read := range map[string]func(*DB, io.Writer) error{
		"export": func(db *DB, w io.Writer) error { return db.Export(t.Context(), w, core.Path{}) },
		"backup": func(db *DB, w io.Writer) error { _, err := db.WriteTo(w); return err },
	} {
		t.Run(name, func(t *testing.T) {
			db := open(t, t.TempDir())
			populated(t, db)
			s := &slowReader{begun: make(chan struct{}), on: make(chan struct{})}
			done := make(chan error, 1)
			go func() { done <- read(db, s) }()
			<-s.begun
			if _, _, err := db.Compact(t.Context()); err != nil { // waits for all views
				t.Fatal(err)
			}
			add(t, db, message(group, "later", "TOO LATE FOR IT"))
			close(s.on)
			if err := <-done; err != nil || s.got.Len() == 0 || bytes.Contains(s.got.Bytes(), []byte("TOO LATE")) {
				t.Errorf("unexpected: %d bytes, %v", s.got.Len(), err)
			}
			left, err := filepath.Glob(filepath.Join(filepath.Dir(db.engine.name), ".spool*"))
			if err != nil || len(left) > 0 {
				t.Errorf("files are left: %v, %v", left, err)
			}
		})
	}
}

// TestOldUseIsPruned: old usage records are pruned, newer ones stay.
func TestOldUseIsPruned(t *testing.T) {
	now := time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC)
	db := openWith(t, t.TempDir(), Options{Clock: func() time.Time { return now }})
	old, young := now.AddDate(0, 0, -401).Format(time.DateOnly), now.AddDate(0, 0, -399).Format(time.DateOnly)
	if err := <-db.AddUse(Use{Day: old, Person: jay, Engine: "e", Calls: 1}, Use{Day: young, Person: jay, Engine: "e", Calls: 1}); err != nil {
		t.Fatal(err)
	}
	if err := db.Prune(t.Context(), Config{}); err != nil {
		t.Fatal(err)
	}
	uses, err := db.Uses(t.Context(), "0000-00-00", "9999-99-99")
	if err != nil || len(uses) != 1 || uses[0].Day != young {
		t.Errorf("unexpected usage %+v, %v", uses, err)
	}
}

// TestBeginningWhileForgetting: a turn that begins while a user is being forgotten can store
// nothing about them, then or later, because it may have read what was still there.
func TestBeginningWhileForgetting(t *testing.T) {
	db := open(t, t.TempDir())
	populated(t, db)
	put := func(ctx context.Context, path core.Path) error {
		_, err := db.Items("bio").Put(ctx, core.Item{Path: path, Key: "new", Version: core.AnyVersion, Value: json.RawMessage(`"x"`)})
		return err
	}
	f := newForgetting(t.Context(), db, jay)
	if err := errors.Join(f.find(), f.begin()); err != nil {
		t.Fatal(err)
	}
	meanwhile := epochs.With(t.Context(), db.Epoch())
	for what, err := range map[string]error{
		"an item of the user":            put(meanwhile, jay),
		"an item of the private chat":    put(meanwhile, alone),
		"an item below the private chat": put(meanwhile, core.MustPath(alone.String()+"/1")),
		"a fact about the user": func() error {
			_, err := db.SaveFact(meanwhile, core.Fact{Text: "x", About: []core.Path{jay}})
			return err
		}(),
		"a fact from the private chat": func() error {
			_, err := db.SaveFact(meanwhile, core.Fact{Text: "x", Origin: alone})
			return err
		}(),
	} {
		if !errors.Is(err, core.ErrForgotten) {
			t.Errorf("%s during Forget: got %v, want ErrForgotten", what, err)
		}
	}
	if err := put(meanwhile, group); err != nil || db.Forgotten(meanwhile, ann, group) {
		t.Errorf("an item of others: unexpected error %v", err)
	}
	f.end()
	if !db.Forgotten(meanwhile, jay) || !errors.Is(put(meanwhile, alone), core.ErrForgotten) {
		t.Error("a turn that began during Forget can store something of the user afterwards")
	}
	now := epochs.With(t.Context(), db.Epoch())
	if db.Forgotten(now, jay, alone) || put(now, jay) != nil {
		t.Error("a turn that began after Forget cannot store anything of the user")
	}
}

// directWriter is a writer that does not block, so that it is written to while the database is
// read.
type directWriter struct {
	db   *DB
	held bool
}

func (*directWriter) NonBlocking() {}

func (q *directWriter) Write(p []byte) (int, error) {
	q.held = q.held || boltOf(q.db).Stats().OpenTxN > 0
	return len(p), nil
}

// TestExportAtOnce: an export to a writer that does not block needs no temporary file.
func TestExportAtOnce(t *testing.T) {
	db := open(t, t.TempDir())
	populated(t, db)
	add(t, db, message(group, "long", strings.Repeat("x", 10000))) // more than the buffer holds
	q := &directWriter{db: db}
	if err := db.Export(t.Context(), q, core.Path{}); err != nil || !q.held {
		t.Errorf("got error %v; written during the view: %t, want true", err, q.held)
	}
}

// TestTracesThatStay: a file that cannot be compacted is logged, unless the database is being
// closed.
func TestTracesThatStay(t *testing.T) {
	dir := t.TempDir()
	var log strings.Builder
	db := openWith(t, dir, Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
	add(t, db, asks("j", "1000"))
	if err := db.Forget(t.Context(), jay); err != nil {
		t.Fatal(err)
	}
	inTheWay := filepath.Join(dir, FileName+bolt.CompactSuffix)
	if err := os.MkdirAll(filepath.Join(inTheWay, "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	db.removeTraces(ctx)
	want(t, "told when it was given up", strings.Count(log.String(), "traces of"), 0)
	db.removeTraces(t.Context())
	want(t, "told when it failed", strings.Count(log.String(), "traces of"), 1)
	if err := os.RemoveAll(inTheWay); err != nil {
		t.Fatal(err)
	}
	db.removeTraces(t.Context())
	want(t, "told when it worked", strings.Count(log.String(), "traces of"), 1)
	want(t, "traces", hasTraces(db), false)
}
