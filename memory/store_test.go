package memory

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"synthbot/core"
	"synthbot/core/coretest"
	"synthbot/memory/bolt"
)

// TestMain makes garbage collection rarer, which saves a fifth of the time.
func TestMain(m *testing.M) {
	debug.SetGCPercent(coretest.Sample(100, 400))
	m.Run()
}

// open opens a database. When the test ends, it is closed and checked.
func open(t testing.TB, dir string) *DB {
	t.Helper()
	return openWith(t, dir, Options{})
}

func openWith(t testing.TB, dir string, o Options) *DB {
	t.Helper()
	o.Log, o.NoSync = cmp.Or(o.Log, complaining(t)), true
	db, err := Open(dir, engineOf(t, dir, o))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
		sound(t, dir)
	})
	return db
}

func complaining(t testing.TB) *slog.Logger { return slog.New(complaints{slog.DiscardHandler, t}) }

// complaints is a log handler that fails the test for each logged error.
type complaints struct {
	slog.Handler
	t testing.TB
}

func (complaints) Enabled(context.Context, slog.Level) bool { return true }

func (c complaints) Handle(_ context.Context, r slog.Record) error {
	provoked := slices.ContainsFunc([]string{"disk is full", "it blocked the database"}, func(words string) bool {
		return strings.Contains(r.Message, words)
	})
	if r.Level >= slog.LevelError && !provoked {
		var attrs []any
		r.Attrs(func(a slog.Attr) bool { attrs = append(attrs, a); return true })
		c.t.Errorf("unexpected log: %s %v", r.Message, attrs)
	}
	return nil
}

// sound checks all rules of the closed file in dir.
func sound(t testing.TB, dir string) {
	t.Helper()
	o := engineOf(t, dir, Options{NoSync: true})
	db, err := Open(dir, o)
	if errors.Is(err, core.ErrLocked) {
		return // still open; its own cleanup checks it
	}
	if err != nil {
		t.Error(err)
		return
	}
	db.starting.Wait()
	if err := db.Check(context.Background()); err != nil {
		t.Error(err)
	}
	if !db.engine.remote {
		if err := boltCheck(db); err != nil {
			t.Error(err)
		}
		defer func() {
			if err := bolt.CheckPages(db.engine.name); err != nil {
				t.Error(err)
			}
		}()
	}
	if err := db.Close(); err != nil {
		t.Error(err)
	}
}

// boltCheck runs bbolt's own check. Nothing may be written meanwhile.
func boltCheck(db *DB) error {
	return db.view(context.Background(), func(v *view) error {
		var faults []error
		for err := range boltTx(&v.tx).Check() {
			faults = append(faults, err)
		}
		return errors.Join(faults...)
	})
}

func TestStore(t *testing.T) {
	coretest.TestStore(t, func(t *testing.T, dir string) coretest.Store { return open(t, dir) })
}
