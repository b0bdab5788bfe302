package memory

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"go.etcd.io/bbolt"

	"synthbot/core"
	"synthbot/core/coretest"
)

var kitchen = core.MustPath("house/kitchen")

func message(place core.Path, id, text string) core.Entry {
	return core.Entry{Event: core.Event{Kind: core.KindMessage, Message: core.Message{Path: place, ID: id, Text: text}}}
}

func add(t testing.TB, db *DB, entries ...core.Entry) []core.Entry {
	t.Helper()
	b := &core.Batch{Append: entries}
	if err := db.Commit(context.Background(), b); err != nil {
		t.Fatal(err)
	}
	return b.Append
}

// checkError checks that err is one line and contains all words.
func checkError(t *testing.T, err error, words ...string) {
	t.Helper()
	if err == nil {
		t.Fatal("no error")
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("the error %q lacks %q", err, word)
		}
	}
	if strings.Contains(err.Error(), "\n") {
		t.Errorf("%q has more than one line", err)
	}
}

func TestModes(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	open(t, dir)
	for name, want := range map[string]fs.FileMode{dir: 0o700 | fs.ModeDir, filepath.Join(dir, FileName): 0o600} {
		if info, err := os.Stat(name); err != nil || info.Mode() != want {
			t.Errorf("%s: %v, %v, want %v", name, info.Mode(), err, want)
		}
	}
}

func TestLocked(t *testing.T) {
	dir := t.TempDir()
	open(t, dir)
	_, err := Open(dir, Options{NoSync: true})
	checkError(t, err, filepath.Join(dir, FileName), "another synthbot", "data_dir")
	if !errors.Is(err, core.ErrLocked) {
		t.Errorf("%v is not ErrLocked", err)
	}
}

// unprivileged calls f as a user without rights.
func unprivileged(t *testing.T, f func()) {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if os.Geteuid() == 0 {
		const nobody = 65534
		if _, _, e := syscall.RawSyscall(syscall.SYS_SETFSUID, nobody, 0, 0); e != 0 {
			t.Skip(e)
		}
		defer syscall.RawSyscall(syscall.SYS_SETFSUID, 0, 0, 0)
	}
	f()
}

func TestReadOnlyDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	if err := os.Mkdir(dir, 0o500); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{dir, filepath.Join(dir, "below")} {
		unprivileged(t, func() {
			_, err := Open(name, Options{NoSync: true})
			checkError(t, err, name, "permission denied", "data_dir")
			if !errors.Is(err, fs.ErrPermission) {
				t.Errorf("%v is not ErrPermission", err)
			}
		})
	}
}

func TestSomethingElseInTheWay(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, FileName), 0o700); err != nil {
		t.Fatal(err)
	}
	_, err := Open(dir, Options{NoSync: true})
	checkError(t, err, FileName, "something else has this name")
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = Open(file, Options{NoSync: true})
	checkError(t, err, file, "something else has this name")
}

// filledFile returns a closed database with some content.
func filledFile(t testing.TB) (dir, file string) {
	t.Helper()
	dir = t.TempDir()
	db, err := Open(dir, Options{NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	var entries []core.Entry
	for i := range 300 {
		entries = append(entries, message(kitchen, string(rune('a'+i%26))+strings.Repeat("x", i), strings.Repeat("words ", 50)))
	}
	add(t, db, entries...)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return dir, filepath.Join(dir, FileName)
}

func TestDamagedFiles(t *testing.T) {
	_, good := filledFile(t)
	whole, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	foreign := filepath.Join(t.TempDir(), "other.db")
	other, err := bbolt.Open(foreign, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = other.Update(func(tx *bbolt.Tx) error { _, err := tx.CreateBucket([]byte("other")); return err })
	if err := errors.Join(err, other.Close()); err != nil {
		t.Fatal(err)
	}
	alien, _ := os.ReadFile(foreign)
	noise := bytes.Repeat([]byte("this is no database. "), 4000)
	for name, content := range map[string][]byte{
		"text":         noise,
		"short":        []byte("x"),
		"empty":        {},
		"cut short":    whole[:5*4096],
		"two pages":    whole[:2*4096],
		"no metas":     append(bytes.Repeat([]byte{0xff}, 2*4096), whole[2*4096:]...),
		"another's":    alien,
		"shuffled":     append(append([]byte{}, whole[:2*4096]...), noise...),
		"zeros within": append(append([]byte{}, whole[:2*4096]...), make([]byte, len(whole)-2*4096)...),
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			file := filepath.Join(dir, FileName)
			if err := os.WriteFile(file, content, 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := Open(dir, Options{NoSync: true})
			checkError(t, err, file, "damaged", "--salvage")
			if !errors.Is(err, core.ErrDamaged) {
				t.Errorf("%v is not ErrDamaged", err)
			}
			if now, _ := os.ReadFile(file); !bytes.Equal(now, content) {
				t.Error("the damaged file was changed")
			}
			again, err := os.OpenFile(file, os.O_RDWR, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer again.Close()
			if err := syscall.Flock(int(again.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
				t.Errorf("the lock was not released: %v", err)
			}
		})
	}
}

func TestNewerFormat(t *testing.T) {
	dir, file := filledFile(t)
	b, err := bbolt.Open(file, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = b.Update(func(tx *bbolt.Tx) error {
		return tx.Bucket([]byte(bucketMeta)).Put([]byte(metaSchema), []byte("1000"))
	})
	if err := errors.Join(err, b.Close()); err != nil {
		t.Fatal(err)
	}
	_, err = Open(dir, Options{NoSync: true})
	checkError(t, err, file, "1000", "newer synthbot")
	if errors.Is(err, core.ErrDamaged) {
		t.Errorf("%v is ErrDamaged", err)
	}
}

// TestDamageUnderTheRunningBot overwrites single pages of an open database: reads and writes may
// fail, but nothing panics and Close returns. (Pages of random bytes can still crash a process,
// because bbolt trusts their pointers.)
func TestDamageUnderTheRunningBot(t *testing.T) {
	_, good := filledFile(t)
	whole, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	for at := int64(2); at < 40; at += int64(coretest.Sample(1, 3)) {
		dir := t.TempDir()
		file := filepath.Join(dir, FileName)
		if err := os.WriteFile(file, whole, 0o600); err != nil {
			t.Fatal(err)
		}
		db, err := Open(dir, Options{NoSync: true})
		if err != nil {
			t.Fatal(err)
		}
		f, err := os.OpenFile(file, os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteAt(make([]byte, 4096), at*4096); err != nil {
			t.Fatal(err)
		}
		f.Close()
		for range 3 {
			err = db.View(context.Background(), func(v core.View) error {
				_, err := v.Last(kitchen, 400)
				_, err2 := v.Places(core.Path{})
				return errors.Join(err, err2)
			})
			write := db.Commit(context.Background(), &core.Batch{Append: []core.Entry{message(kitchen, "new", "new")}})
			for _, err := range []error{err, write} {
				if err != nil && !errors.Is(err, core.ErrDamaged) {
					t.Errorf("page %d: unexpected error %v", at, err)
				}
			}
		}
		db.Close()
	}
}

// TestUpgradeOfWhatCannotBeRead: unreadable records do not stop the upgrade of an older file.
func TestUpgradeOfWhatCannotBeRead(t *testing.T) {
	dir := t.TempDir()
	db := openWith(t, dir, Options{Log: slog.New(slog.DiscardHandler)})
	populated(t, db)
	broken := binary.BigEndian.AppendUint64(nil, 77)
	entry := seqKey(append(placeKey(group), "no number"...), 1)
	err := db.update(t.Context(), func(t *tx) {
		t.bucket(bucketMeta).Put([]byte(metaSchema), []byte("3"))
		t.bucket(bucketFacts).Put(broken, []byte("{"))
		private := core.Event{Message: core.Message{Private: true}}
		t.bucket(bucketLog).Put(entry, encodeEntry(&storedEntry{Entry: core.Entry{Event: private}}))
	})
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	again := openWith(t, dir, Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
	if !strings.Contains(log.String(), "unreadable record") {
		t.Errorf("unexpected log %q", &log)
	}
	want(t, "memories", len(recall(t, again, core.FactQuery{Text: "tea", See: []core.Path{group}})), 1)
	err = again.view(t.Context(), func(v *view) error {
		want(t, "head of no place", v.bucket(bucketPlaces).Get(placeKey(core.Path{})), nil)
		return nil
	})
	err2 := again.update(t.Context(), func(t *tx) {
		t.bucket(bucketFacts).Delete(broken)
		t.bucket(bucketLog).Delete(entry)
	})
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
}

// TestAnotherProgramsFile: a file without a positive version is refused.
func TestAnotherProgramsFile(t *testing.T) {
	for _, version := range []string{"", "x", "0"} {
		dir := t.TempDir()
		db, err := Open(dir, Options{NoSync: true})
		if err != nil {
			t.Fatal(err)
		}
		err = db.update(t.Context(), func(t *tx) { t.bucket(bucketMeta).Put([]byte(metaSchema), []byte(version)) })
		if err := errors.Join(err, db.Close()); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(dir, Options{NoSync: true}); !errors.Is(err, core.ErrDamaged) {
			t.Errorf("version %q: %v, want core.ErrDamaged", version, err)
		}
	}
}
