package bolt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"synthbot/core"
	"synthbot/memory/kv"
)

// open opens a file that holds one pair.
func open(t *testing.T) *File {
	t.Helper()
	f, err := Open(filepath.Join(t.TempDir(), "data", "x.db"), Options{NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(f.Close(), CheckPages(f.name)); err != nil {
			t.Error(err)
		}
	})
	err = f.Update(func(t kv.Tx) error {
		return errors.Join(t.MakeBucket("a"), t.MakeBucket("b"), t.Bucket("a").Put([]byte("k"), []byte("first")))
	})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestCreateKeepsOthers: a new file does not replace that of a process that was faster.
func TestCreateKeepsOthers(t *testing.T) {
	name := filepath.Join(t.TempDir(), "x.db")
	if err := os.WriteFile(name, []byte("of another process"), 0o600); err != nil {
		t.Fatal(err)
	}
	f := newFile(name, Options{NoSync: true})
	defer f.closeBroken()
	if err := f.create(); !errors.Is(err, core.ErrLocked) {
		t.Errorf("got %v, want %v", err, core.ErrLocked)
	}
	if data, err := os.ReadFile(name); err != nil || string(data) != "of another process" {
		t.Errorf("the file holds %q, %v", data, err)
	}
}

// pairs returns all pairs and counters of a file.
func pairs(t *testing.T, f *File) map[string]string {
	t.Helper()
	v, err := f.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer v.End()
	all := make(map[string]string)
	for _, name := range v.Buckets() {
		b := v.Bucket(name)
		all[name] = fmt.Sprint(b.Sequence())
		c := b.Cursor(nil, nil)
		for k, value := c.Seek(nil); k != nil; k, value = c.Next() {
			all[name+"/"+string(k)] = string(value)
		}
	}
	return all
}

func nothing(kv.Tx) error { return nil }

// TestMuchChangesWhileCompacting: the copy catches up with changes before writers have to wait, and
// holds all changes.
func TestMuchChangesWhileCompacting(t *testing.T) {
	f := open(t)
	c := newCompaction(t.Context(), f, nothing)
	err := c.exclusive(func() error { f.changed = make(changes); return nil })
	if err := errors.Join(err, c.copy()); err != nil {
		t.Fatal(err)
	}
	err = f.Update(func(t kv.Tx) error {
		a, b := t.Bucket("a"), t.Bucket("b")
		for i := range compactRest + 1 {
			if err := a.Put(fmt.Append(nil, i), []byte("said meanwhile")); err != nil {
				return err
			}
		}
		n, err := b.NextSequence()
		return errors.Join(err, a.Delete([]byte("k")), a.Put([]byte("empty"), nil), b.Put([]byte("n"), fmt.Append(nil, n)))
	})
	if err != nil {
		t.Fatal(err)
	}
	before, left := pairs(t, f), -1
	c.last = func(kv.Tx) error { left = len(f.changed); return nil }
	if err := c.complete(); err != nil {
		t.Fatal(err)
	}
	if left != 0 || f.bolt != c.target.bolt || f.changed != nil {
		t.Errorf("%d changes were left to the last step; the copy is in use: %t", left, f.bolt == c.target.bolt)
	}
	if after := pairs(t, f); fmt.Sprint(after) != fmt.Sprint(before) || after["b"] != "1" {
		t.Errorf("unexpected pairs after compacting: %v", after)
	}
}

// TestAnUnsyncedCopyIsNotUsed: compacting fails if the copy cannot be synced, since a power failure
// could destroy it.
func TestAnUnsyncedCopyIsNotUsed(t *testing.T) {
	f := open(t)
	before := pairs(t, f)
	_, _, err := f.Compact(t.Context(), func(to kv.Tx) error {
		zero, err := os.OpenFile("/dev/zero", os.O_RDWR, 0) // can be written but not synced
		if err != nil {
			return err
		}
		return errors.Join(syscall.Dup3(int(zero.Fd()), int(to.(*tx).file.handle.Fd()), 0), zero.Close())
	})
	if !errors.Is(err, syscall.EINVAL) {
		t.Errorf("got %v, want EINVAL", err)
	}
	if after := pairs(t, f); fmt.Sprint(after) != fmt.Sprint(before) {
		t.Errorf("the file changed to %v", after)
	}
	if _, _, err := f.Compact(t.Context(), nothing); err != nil {
		t.Error(err)
	}
}

// TestTheLastStepFails: if the last step of compacting fails, the copy is deleted and the old file
// stays in use.
func TestTheLastStepFails(t *testing.T) {
	f := open(t)
	last := func(t kv.Tx) error {
		return errors.Join(t.Bucket("a").Delete([]byte("k")), errors.ErrUnsupported)
	}
	if _, _, err := f.Compact(t.Context(), last); !errors.Is(err, errors.ErrUnsupported) {
		t.Error(err)
	}
	if _, err := os.Stat(f.name + CompactSuffix); !errors.Is(err, os.ErrNotExist) {
		t.Error("the copy was not deleted")
	}
	if got := pairs(t, f)["a/k"]; got != "first" || f.changed != nil {
		t.Errorf("unexpected pairs %q; changes are still recorded: %t", got, f.changed != nil)
	}
}

// TestCompactADisplacedFile: compaction does not replace a file that somebody has put in place of the open one.
func TestCompactADisplacedFile(t *testing.T) {
	f := open(t)
	name := f.name
	if f.Displaced(name) {
		t.Error("the file is displaced from the beginning")
	}
	err := errors.Join(os.Rename(name, name+".old"), os.WriteFile(name, []byte("another one"), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := f.Compact(t.Context(), nothing); !errors.Is(err, errDisplaced) || !f.Displaced(name) {
		t.Errorf("compacted with %v; displaced: %t", err, f.Displaced(name))
	}
	text, err := os.ReadFile(name)
	if err := errors.Join(err, os.Rename(name+".old", name)); err != nil || string(text) != "another one" {
		t.Errorf("the other file has %d bytes: %v", len(text), err)
	}
}

// TestClosed: every operation on a closed file fails without a panic.
func TestClosed(t *testing.T) {
	f, err := Open(filepath.Join(t.TempDir(), "x.db"), Options{})
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	_, begin := f.Begin(t.Context())
	_, _, compact := f.Compact(t.Context(), nothing)
	for what, err := range map[string]error{"begin": begin, "update": f.Update(nothing), "compact": compact} {
		if !errors.Is(err, core.ErrClosed) {
			t.Errorf("%s: got %v, want core.ErrClosed", what, err)
		}
	}
}

// TestPanicEndsWriting: after a panic, writing fails permanently, because bbolt may still hold its
// locks. The file can be opened again.
func TestPanicEndsWriting(t *testing.T) {
	f, err := Open(filepath.Join(t.TempDir(), "x.db"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	first := f.Update(func(kv.Tx) error { panic("a broken page") })
	if again := f.Update(nothing); !errors.Is(first, core.ErrDamaged) || again != first {
		t.Errorf("got errors %v and then %v, want the same one", first, again)
	}
	if err := f.Close(); !errors.Is(err, core.ErrDamaged) {
		t.Error(err)
	}
	second, err := Open(f.name, Options{})
	if err := errors.Join(err, second.Close()); err != nil {
		t.Error(err)
	}
}

// TestScatteredBuckets: a bucket that only grows at its end fills its pages.
func TestScatteredBuckets(t *testing.T) {
	f, err := Open(filepath.Join(t.TempDir(), "x.db"), Options{NoSync: true, Scattered: []string{"scattered"}})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, name := range []string{"grows", "scattered"} {
		err := f.Update(func(t kv.Tx) error {
			err := t.MakeBucket(name)
			for i := range 2000 {
				err = errors.Join(err, t.Bucket(name).Put(fmt.Appendf(nil, "%08d", i), bytes.Repeat([]byte{1}, 100)))
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	v, err := f.Begin(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer v.End()
	grows := v.Bucket("grows").(bucket).Stats().LeafPageN
	if scattered := v.Bucket("scattered").(bucket).Stats().LeafPageN; 3*scattered < 4*grows {
		t.Errorf("unexpected: %d pages, and %d of the scattered bucket", grows, scattered)
	}
}
