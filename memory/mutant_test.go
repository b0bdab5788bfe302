package memory

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"synthbot/core"
)

// TestAnUnsyncedBackupFails: what could not be synced does not take the place of an
// older backup.
func TestAnUnsyncedBackupFails(t *testing.T) {
	file := filepath.Join(t.TempDir(), "backup.db")
	if err := os.WriteFile(file, []byte("an older one"), 0o600); err != nil {
		t.Fatal(err)
	}
	err := replace(file, func(f *os.File) error {
		null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0) // cannot be synced
		if err != nil {
			return err
		}
		return errors.Join(syscall.Dup3(int(null.Fd()), int(f.Fd()), 0), null.Close())
	})
	if err == nil {
		t.Error("no error")
	}
	if kept, _ := os.ReadFile(file); string(kept) != "an older one" {
		t.Errorf("the older backup is %q now", kept)
	}
	if left, _ := os.ReadDir(filepath.Dir(file)); len(left) != 1 {
		t.Errorf("left in the directory: %v", left)
	}
}

// TestReplacedWhileItIsOpened: another process compacts the file and ends, while this
// one waits for the lock of the file that it opened before.
func TestReplacedWhileItIsOpened(t *testing.T) {
	dir := t.TempDir()
	db := furnished(t, dir)
	opened := make(chan error)
	go func() {
		second, err := Open(dir, Options{})
		if err == nil {
			err = errors.Join(errors.New("opened the file that is none any more"), second.Close())
		}
		opened <- err
	}()
	for holders(t, db.file) < 2 {
	}
	if _, _, err := db.Compact(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-opened; !errors.Is(err, core.ErrLocked) {
		t.Errorf("%v, want core.ErrLocked", err)
	}
}

// holders counts the open descriptors of a file.
func holders(t *testing.T, file string) (n int) {
	t.Helper()
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip(err)
	}
	for _, fd := range open {
		if name, _ := os.Readlink("/proc/self/fd/" + fd.Name()); strings.HasPrefix(name, file) && !strings.Contains(name, ".db.") {
			n++
		}
	}
	return n
}

// TestAPlaceThatAppearsWhileForgetting: a private talk that begins in the transaction in
// which the forgetting begins goes as a whole.
func TestAPlaceThatAppearsWhileForgetting(t *testing.T) {
	db := open(t, t.TempDir())
	add(t, db, asks("g", "1000"))
	said := message(alone, "p1", "said alone")
	said.Message.Author.ID, said.Message.Private = "1000", true
	reply := message(alone, "p2", "answered alone")
	reply.Self, reply.Message.Private = true, true
	letGo := hold(db)
	done := make(chan error, 2)
	go func() { done <- db.Commit(t.Context(), &core.Batch{Append: []core.Entry{said, reply}}) }()
	for db.queue.length() < 1 {
	}
	go func() { done <- db.Forget(t.Context(), jay) }()
	for db.queue.length() < 2 {
	}
	letGo()
	if err := errors.Join(<-done, <-done); err != nil {
		t.Fatal(err)
	}
	want(t, "said alone", len(everything(t, db)[alone]), 0)
}

// TestATurnOfTheSameEpoch: a turn that began while somebody was being forgotten may
// have read what was still there.
func TestATurnOfTheSameEpoch(t *testing.T) {
	db := open(t, t.TempDir())
	add(t, db, asks("j", "1000"))
	if err := db.Commit(t.Context(), &core.Batch{Journal: []core.Record{opens(group, 1)}}); err != nil {
		t.Fatal(err)
	}
	f := &forgetting{db: db, ctx: t.Context(), path: jay}
	if err := f.begin(); err != nil {
		t.Fatal(err)
	}
	err := db.Commit(core.WithEpoch(t.Context(), db.Epoch()), lastBatch(1, "what was read meanwhile"))
	db.epochs.end(f.going)
	if err != nil {
		t.Fatal(err)
	}
	if got := texts(t, db, group); got[len(got)-1] != "" {
		t.Errorf("%q", got)
	}
}

// TestALateQuote: what somebody else sends late is kept, without its quote of the
// forgotten.
func TestALateQuote(t *testing.T) {
	db := open(t, t.TempDir())
	add(t, db, asks("j", "1000"))
	epoch := db.Epoch()
	forgetHim(t, db, "1000")
	late := message(group, "late", "I agree")
	late.Message.Author.ID, late.Message.Time = "2000", day
	late.Message.ReplyTo = &core.Quote{ID: "x", From: core.Author{ID: "1000"}, Text: "QUOTED words", Time: day.AddDate(50, 0, 0)}
	if err := db.Commit(core.WithEpoch(t.Context(), epoch), &core.Batch{Append: []core.Entry{late}}); err != nil {
		t.Fatal(err)
	}
	entries := everything(t, db)[group]
	want(t, "the entry", entries[len(entries)-1].Message.Text, "I agree")
	want(t, "its quote", entries[len(entries)-1].Message.ReplyTo, &core.Quote{ID: "x"})
}
