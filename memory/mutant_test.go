package memory

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"testing/synctest"

	"synthbot/core"
	"synthbot/core/epochs"
	"synthbot/memory/bolt"
)

// TestAnUnsyncedBackupFails: a backup that could not be synced does not replace an older one.
func TestAnUnsyncedBackupFails(t *testing.T) {
	file := filepath.Join(t.TempDir(), "backup.db")
	if err := os.WriteFile(file, []byte("an older one"), 0o600); err != nil {
		t.Fatal(err)
	}
	err := bolt.Replace(file, func(f *os.File) error {
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
		t.Errorf("the older backup changed to %q", kept)
	}
	if left, _ := os.ReadDir(filepath.Dir(file)); len(left) != 1 {
		t.Errorf("unexpected files in the directory: %v", left)
	}
}

// TestABackupThatFails: a failed backup returns the error, leaves an older backup unchanged and no
// other file.
func TestABackupThatFails(t *testing.T) {
	dir := t.TempDir()
	file, taken := filepath.Join(dir, "backup.db"), filepath.Join(dir, "taken")
	if err := errors.Join(os.WriteFile(file, []byte("an older one"), 0o600), os.MkdirAll(filepath.Join(taken, "x"), 0o700)); err != nil {
		t.Fatal(err)
	}
	writes := func(*os.File) error { return nil }
	for name, tc := range map[string]struct {
		file  string
		write func(*os.File) error
		want  error
	}{
		"writing":       {file, func(*os.File) error { return syscall.EIO }, syscall.EIO},
		"a full disk":   {file, func(*os.File) error { return syscall.ENOSPC }, core.ErrFull},
		"renaming":      {taken, writes, syscall.EEXIST},
		"no directory":  {filepath.Join(dir, "none", "x"), writes, os.ErrNotExist},
		"without error": {filepath.Join(taken, "y"), writes, nil},
	} {
		if err := bolt.Replace(tc.file, tc.write); !errors.Is(err, tc.want) || errors.Is(err,
			core.ErrFull) != (tc.want == core.ErrFull) {
			t.Errorf("%s: got %v, want %v", name, err, tc.want)
		}
	}
	if kept, _ := os.ReadFile(file); string(kept) != "an older one" {
		t.Errorf("the older backup changed to %q", kept)
	}
	want(t, "left", files(t, dir), []string{"backup.db", "taken"})
}

// TestNamesAreMadeDurable: a backup or compaction fails if the directory cannot be synced, because
// the new name might not survive a power failure.
func TestNamesAreMadeDurable(t *testing.T) {
	if err := bolt.SyncDir("/proc/self"); err == nil { // cannot be synced
		t.Error("no error")
	}
	dir := t.TempDir()
	db := furnished(t, dir)
	// Other users may write there, but not read.
	if err := errors.Join(os.Chmod(filepath.Dir(dir), 0o755), os.Chmod(dir, 0o733)); err != nil {
		t.Fatal(err)
	}
	backup := filepath.Join(dir, "backup.db")
	unprivileged(t, func() {
		if err := bolt.Replace(backup, func(*os.File) error { return nil }); !errors.Is(err, os.ErrPermission) {
			t.Errorf("backup: unexpected error %v", err)
		}
	})
	if _, err := os.Stat(backup); err != nil {
		t.Skip("other users cannot reach the directory: ", err)
	}
	var err error
	unprivileged(t, func() { _, _, err = db.Compact(t.Context()) })
	if !errors.Is(err, os.ErrPermission) {
		t.Errorf("compacting: unexpected error %v", err)
	}
}

// TestReplacedWhileItIsOpened: Open fails if another process compacts the file, and so replaces it,
// while Open waits for the old file's lock.
func TestReplacedWhileItIsOpened(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		db := furnished(t, dir)
		opened := make(chan error)
		go func() {
			second, err := Open(dir, Options{NoSync: true})
			if err == nil {
				err = errors.Join(errors.New("opened the replaced file"), second.Close())
			}
			opened <- err
		}()
		synctest.Wait() // for Open to wait for the lock
		if _, _, err := db.Compact(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := <-opened; !errors.Is(err, core.ErrLocked) {
			t.Errorf("got %v, want core.ErrLocked", err)
		}
	})
}

// TestAPlaceThatAppearsWhileForgetting: a private place that begins in the transaction in which
// Forget begins is deleted as a whole.
func TestAPlaceThatAppearsWhileForgetting(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, _ string, db *DB) {
		add(t, db, asks("g", "1000"))
		said := message(alone, "p1", "said alone")
		said.Message.Author.ID, said.Message.Private = "1000", true
		reply := message(alone, "p2", "answered alone")
		reply.Self, reply.Message.Private = true, true
		letGo, began := hold(db), epochs.With(t.Context(), db.Epoch())
		done := make(chan error, 2)
		go func() { done <- db.Commit(t.Context(), &core.Batch{Append: []core.Entry{said, reply}}) }()
		synctest.Wait()
		go func() { done <- db.Forget(t.Context(), jay) }()
		synctest.Wait()
		letGo()
		if err := errors.Join(<-done, <-done); err != nil {
			t.Fatal(err)
		}
		want(t, "said alone", len(everything(t, db)[alone]), 0)
		if _, err := db.SaveFact(began, core.Fact{Text: "of what was said", Origin: alone}); !errors.Is(err, core.ErrForgotten) {
			t.Errorf("got %v, want core.ErrForgotten", err)
		}
	})
}

// TestATurnOfTheSameEpoch: a turn that began while a user was being forgotten loses its answer,
// because it may have read what was still there.
func TestATurnOfTheSameEpoch(t *testing.T) {
	db := open(t, t.TempDir())
	add(t, db, asks("j", "1000"))
	if err := db.Commit(t.Context(), &core.Batch{Journal: []core.Record{opens(group, 1)}}); err != nil {
		t.Fatal(err)
	}
	f := newForgetting(t.Context(), db, jay)
	if err := f.begin(); err != nil {
		t.Fatal(err)
	}
	err := db.Commit(epochs.With(t.Context(), db.Epoch()), lastBatch(1, "what was read meanwhile"))
	f.end()
	if err != nil {
		t.Fatal(err)
	}
	if got := texts(t, db, group); got[len(got)-1] != "" {
		t.Errorf("got %q, want the last text empty", got)
	}
}

// TestALateQuote: a late message of another user is stored without its quote of the forgotten user.
func TestALateQuote(t *testing.T) {
	db := open(t, t.TempDir())
	add(t, db, asks("j", "1000"))
	epoch := db.Epoch()
	forgetUser(t, db, "1000")
	late := message(group, "late", "I agree")
	late.Message.Author.ID, late.Message.Time = "2000", day
	late.Message.ReplyTo = &core.Quote{ID: "x", From: core.Author{ID: "1000"}, Text: "QUOTED words", Time: day.AddDate(50, 0, 0)}
	other := late
	other.Message.ID, other.Message.ReplyTo = "other", &core.Quote{ID: "y", From: core.Author{ID: "3000"}, Text: "words of another"}
	if err := db.Commit(epochs.With(t.Context(), epoch), &core.Batch{Append: []core.Entry{late,
		other}}); err != nil {
		t.Fatal(err)
	}
	entries := everything(t, db)[group]
	want(t, "the entry", entries[len(entries)-2].Message.Text, "I agree")
	want(t, "its quote", entries[len(entries)-2].Message.ReplyTo, &core.Quote{ID: "x"})
	want(t, "another's quote", entries[len(entries)-1].Message.ReplyTo, other.Message.ReplyTo)
}
