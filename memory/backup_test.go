package memory

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/bbolt"

	"synthbot/core"
	"synthbot/memory/bolt"
)

// furnished opens a database that holds some of everything.
func furnished(t testing.TB, dir string) *DB {
	t.Helper()
	db := open(t, dir)
	b := &core.Batch{}
	for i := range 400 {
		e := message(core.MustPath(fmt.Sprintf("house/room%d", i%7)), fmt.Sprint(i), fmt.Sprintf("message %d %s", i, strings.Repeat("word ", i%40)))
		e.Due = i%3 == 0
		b.Append = append(b.Append, e)
	}
	if err := db.Commit(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	err := db.Commit(t.Context(), &core.Batch{
		Answered: []core.TurnID{{Path: core.MustPath("house/room1"), Seq: 30}},
		Journal:  []core.Record{{Key: core.Key{Turn: core.TurnID{Path: core.MustPath("house/room1"), Seq: 31}}, Progress: core.ProgressStarted}},
		Change:   []core.Event{{Kind: core.KindMigration, Message: core.Message{Path: core.MustPath("house/room6")}, To: core.MustPath("house/attic")}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return db
}

// everything returns the entries of a database by place.
func everything(t testing.TB, db *DB) map[core.Path][]core.Entry {
	t.Helper()
	all := make(map[core.Path][]core.Entry)
	err := db.view(context.Background(), func(v *view) error {
		heads, err := v.Places(core.Path{})
		for _, h := range heads {
			entries, err := v.Last(h.Path, 1e6)
			if err != nil {
				return err
			}
			all[h.Path] = entries
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestBackupAndRestore(t *testing.T) {
	db := furnished(t, t.TempDir())
	backup := filepath.Join(t.TempDir(), "backup.db")
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
				add(t, db, message(kitchen, fmt.Sprint("during", i), "written during the backup"))
			}
		}
	}()
	for range 3 { // replaces an older backup
		if err := db.Backup(backup); err != nil {
			t.Fatal(err)
		}
	}
	close(stop)
	<-stopped
	if info, err := os.Stat(backup); err != nil || info.Mode() != 0o600 {
		t.Errorf("unexpected mode of the backup: %v, %v", info.Mode(), err)
	}
	dir := filepath.Join(t.TempDir(), "restored")
	if err := Restore(dir, backup); err != nil {
		t.Fatal(err)
	}
	if err := Restore(dir, backup); !errors.Is(err, ErrNotEmpty) {
		t.Errorf("restoring over a database: unexpected error %v", err)
	}
	restored := open(t, dir)
	want, got := everything(t, db), everything(t, restored)
	delete(want, kitchen)
	delete(got, kitchen)
	if diff := equal(want, got); diff != "" {
		t.Error(diff)
	}
	if a, b := db.Installation(), restored.Installation(); len(a) < 20 || len(b) < 20 || a == b {
		t.Errorf("the installation is %q, restored as %q", a, b)
	}
	if left := files(t, dir); !slices.Equal(left, []string{FileName}) {
		t.Errorf("unexpected files in the directory: %q", left)
	}
}

func TestRestoreRefusesADamagedBackup(t *testing.T) {
	_, file := filledFile(t)
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	broken := filepath.Join(t.TempDir(), "broken.db")
	if err := os.WriteFile(broken, whole[:20*4096], 0o600); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "data")
	err = Restore(dir, broken)
	checkError(t, errors.New(strings.Split(err.Error(), "\n")[0]), broken)
	if !errors.Is(err, core.ErrDamaged) {
		t.Errorf("%v is not ErrDamaged", err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the new directory was not removed: %v", err)
	}
	if err := Restore(dir, filepath.Join(dir, "nothing")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v is not ErrNotExist", err)
	}
}

func TestCompact(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		db := furnished(t, dir)
		secret := "a secret that goes away"
		if err := os.WriteFile(filepath.Join(dir, FileName+bolt.CompactSuffix), []byte("of a crash"), 0o600); err != nil {
			t.Fatal(err)
		}
		for i := range 300 {
			add(t, db, message(kitchen, fmt.Sprint(i), secret+strings.Repeat(" and more", 1000)))
		}
		var gone []core.Event
		for i := range 300 {
			gone = append(gone, core.Event{Kind: core.KindDeletion, Message: core.Message{Path: kitchen},
				Target: fmt.Sprint(i)})
		}
		if err := db.Commit(t.Context(), &core.Batch{Change: gone}); err != nil {
			t.Fatal(err)
		}
		before := everything(t, db)
		size, after, err := db.Compact(t.Context())
		if err != nil || after > size/2 {
			t.Fatalf("%d to %d bytes, %v", size, after, err)
		}
		if diff := equal(before, everything(t, db)); diff != "" {
			t.Error(diff)
		}
		synctest.Wait() // for the old file to be closed
		want(t, "open files", holders(t, db.engine.name), 1)
		content, err := os.ReadFile(db.engine.name)
		if err != nil || strings.Contains(string(content), secret) {
			t.Errorf("the file still holds deleted text (%v)", err)
		}
		add(t, db, message(kitchen, "after", "written after compacting"))
		if _, err := Open(dir, Options{NoSync: true}); !errors.Is(err, core.ErrLocked) {
			t.Errorf("the lock was lost: %v", err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		if got := everything(t, open(t, dir))[kitchen]; got[len(got)-1].Message.ID != "after" {
			t.Error("a message written after compacting is lost")
		}
		if left := files(t, dir); !slices.Equal(left, []string{FileName}) {
			t.Errorf("unexpected files in the directory: %q", left)
		}
	})
}

// holders counts the open descriptors of a file.
func holders(t *testing.T, file string) (n int) {
	t.Helper()
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip(err)
	}
	for _, fd := range open {
		if name, _ := os.Readlink("/proc/self/fd/" + fd.Name()); strings.TrimSuffix(name, " (deleted)") == file {
			n++
		}
	}
	return n
}

// files lists the files in a directory, except the reserve.
func files(t *testing.T, dir string) (names []string) {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range list {
		if !strings.HasSuffix(f.Name(), reserveSuffix) {
			names = append(names, f.Name())
		}
	}
	return names
}

func TestCompactWithoutRoom(t *testing.T) {
	dir := t.TempDir()
	db := furnished(t, dir)
	want := everything(t, db)
	if err := os.MkdirAll(filepath.Join(dir, FileName+bolt.CompactSuffix, "in the way"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, _, err := db.Compact(t.Context()); err == nil {
		t.Error("no error")
	}
	if diff := equal(want, everything(t, db)); diff != "" {
		t.Error(diff)
	}
	add(t, db, message(kitchen, "after", "works still"))
}

// TestBackupsRest: a backup pauses most of the time, however fast the disk is.
func TestBackupsRest(t *testing.T) {
	rests := map[time.Duration]time.Duration{time.Millisecond: 2 * time.Millisecond, time.Second: 10 * time.Millisecond}
	for takes, pause := range rests {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			w := &throttledWriter{Writer: slowly(takes), resumed: began}
			for range 9 {
				if n, err := w.Write([]byte("x")); n != 1 || err != nil {
					t.Fatal(n, err)
				}
			}
			want(t, "pauses", time.Since(began)-9*takes, 9*pause)
		})
	}
}

// slowly is a writer that takes that long for each write.
type slowly time.Duration

func (s slowly) Write(p []byte) (int, error) {
	time.Sleep(time.Duration(s))
	return len(p), nil
}

// TestUpgradeFails: a failed upgrade leaves the file as it was, and its error names the backup.
func TestUpgradeFails(t *testing.T) {
	dir := t.TempDir()
	db := furnished(t, dir)
	before := everything(t, db)
	err := db.update(t.Context(), func(t *tx) { t.bucket(bucketMeta).Put([]byte(metaSchema), []byte("3")) })
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	old := newDB(db.engine.name, Options{})
	if err := openEngine(old, Options{}); err != nil {
		t.Fatal(err)
	}
	interceptWrites(t, old).onWrite(func([]byte, int64) (int, error) { return 0, syscall.EIO })
	backup := db.engine.name + ".version3"
	checkError(t, old.prepare(Options{}), fmt.Sprint("version ", schema), syscall.EIO.Error(), backup)
	version, err := old.writer.readMeta()
	want(t, "version", version, 3)
	if err := errors.Join(err, old.engine.Close()); err != nil {
		t.Fatal(err)
	}
	restored := filepath.Join(t.TempDir(), "restored")
	if err := Restore(restored, backup); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{dir, restored} {
		db := open(t, dir)
		if diff := equal(before, everything(t, db)); diff != "" {
			t.Error(diff)
		}
		version, _ := db.writer.readMeta()
		want(t, "version", version, schema)
	}
}

// TestKeepFormat: with KeepFormat a database of an older format is not changed.
func TestKeepFormat(t *testing.T) {
	dir := t.TempDir()
	db := furnished(t, dir)
	err := db.update(t.Context(), func(t *tx) { t.bucket(bucketMeta).Put([]byte(metaSchema), []byte("4")) })
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir, Options{BesideBot: true, KeepFormat: true}); !errors.Is(err, ErrOlder) {
		t.Errorf("unexpected error %v", err)
	}
	want(t, "files", files(t, dir), []string{FileName})
	db = open(t, dir)
	version, _ := db.writer.readMeta()
	want(t, "version", version, schema)
	db.Close()
	looking, err := Open(dir, Options{BesideBot: true, KeepFormat: true})
	if err != nil {
		t.Fatal(err)
	}
	looking.Close()
}

// TestLeftovers: temporary copies that a killed process left behind are deleted.
func TestLeftovers(t *testing.T) {
	dir := t.TempDir()
	furnished(t, dir).Close()
	for _, name := range []string{".synthbot.db.version4.8631", ".restore-22/synthbot.db", ".spool-33", ".spool-44/synthbot.db"} {
		file := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte("SECRET"), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	open(t, dir)
	want(t, "files", files(t, dir), []string{FileName})
}

// TestUpgradeOfVersion1 opens a file of a version without vectors.
func TestUpgradeOfVersion1(t *testing.T) {
	packed, err := os.Open(filepath.Join("testdata", "version1.db.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer packed.Close()
	unpacked, err := gzip.NewReader(packed)
	if err != nil {
		t.Fatal(err)
	}
	content, err := io.ReadAll(unpacked)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file := filepath.Join(dir, FileName)
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
	db := open(t, dir)
	if kept, err := os.ReadFile(file + ".version1"); err != nil || !bytes.Equal(bucketsOf(t, kept), bucketsOf(t, content)) {
		t.Errorf("no backup of the old file: %v", err)
	}
	want(t, "the group", len(everything(t, db)[group]), 5)
	want(t, "memories", len(recall(t, db, core.FactQuery{Text: "JAYSECRET", See: []core.Path{group, alone}})), 3)
	want(t, "private", privacy(t, db), map[core.Path]bool{group: false, alone: true})
	db.Close()
	again := open(t, dir)
	want(t, "after opening again", len(everything(t, again)[alone]), 2)
	if err := again.Forget(t.Context(), jay); err != nil {
		t.Fatal(err)
	}
	if left := files(t, dir); !slices.Equal(left, []string{FileName}) {
		t.Errorf("after forgetting, the buckets %q still hold something", left)
	}
}

// TestUpgradeOfTerms opens a file whose facts have the search terms of an older version.
func TestUpgradeOfTerms(t *testing.T) {
	dir := t.TempDir()
	db := open(t, dir)
	fact := save(t, db, core.Fact{Text: "我用Python写代码", Origin: group})
	err := db.write(t.Context(), &job{run: func(t *tx) error {
		t.deleteBelow(bucketWords, nil)
		t.bucket(bucketWords).Put(postingKey(group, termWord+"我用python写代码", factKey(&fact)), rankFact(&fact))
		t.bucket(bucketMeta).Put([]byte(metaSchema), []byte("3"))
		return nil
	}})
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	db = open(t, dir)
	want(t, "found", recall(t, db, core.FactQuery{Text: "python", See: []core.Path{group}}), []string{fact.Text})
}

// bucketsOf lists the buckets of a file.
func bucketsOf(t *testing.T, content []byte) (names []byte) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "x.db")
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
	db, err := bbolt.Open(file, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	err = db.View(func(tx *bbolt.Tx) error {
		return tx.ForEach(func(name []byte, _ *bbolt.Bucket) error {
			names = fmt.Appendf(names, "%s ", name)
			return nil
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// TestOwnerStays: files that are written beside or in place of the database keep its owner, even if
// root runs the command.
func TestOwnerStays(t *testing.T) {
	dir := t.TempDir()
	db := furnished(t, dir)
	err := db.update(t.Context(), func(t *tx) { t.bucket(bucketMeta).Put([]byte(metaSchema), []byte("4")) })
	name := db.engine.file
	err = errors.Join(err, db.Close(), os.Chmod(name, 0o640), os.RemoveAll(db.space.reserve()))
	owner := os.Getuid()
	if owner == 0 {
		owner = 65534
		err = errors.Join(err, os.Chown(name, owner, owner))
	}
	if err != nil {
		t.Fatal(err)
	}
	db = open(t, dir)
	if err := db.space.makeReserve(); err != nil {
		t.Fatal(err)
	}
	if _, _, err := db.Compact(t.Context()); err != nil {
		t.Fatal(err)
	}
	db.Close()
	for _, file := range []string{name, name + versionSuffix + "4", db.space.reserve()} {
		info, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		uid := int(info.Sys().(*syscall.Stat_t).Uid)
		want(t, file, fmt.Sprint(info.Mode().Perm(), uid), fmt.Sprint(fs.FileMode(0o640), owner))
	}
}
