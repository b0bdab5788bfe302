package memory

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.etcd.io/bbolt"

	"synthbot/core"
)

// furnished is a database with something of everything.
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
		Journal:  []core.Record{{Key: core.Key{Turn: core.TurnID{Path: core.MustPath("house/room1"), Seq: 31}}, Progress: core.Started}},
		Change:   []core.Event{{Kind: core.KindMigration, Message: core.Message{Path: core.MustPath("house/room6")}, To: core.MustPath("house/attic")}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return db
}

// everything is what a database holds, by place.
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
	for range 3 { // an older one is replaced
		if err := db.Backup(backup); err != nil {
			t.Fatal(err)
		}
	}
	close(stop)
	<-stopped
	if info, err := os.Stat(backup); err != nil || info.Mode() != 0o600 {
		t.Errorf("backup: %v, %v", info.Mode(), err)
	}
	dir := filepath.Join(t.TempDir(), "restored")
	if err := Restore(dir, backup); err != nil {
		t.Fatal(err)
	}
	if err := Restore(dir, backup); !errors.Is(err, ErrNotEmpty) {
		t.Errorf("restored over a database: %v", err)
	}
	want, got := everything(t, db), everything(t, open(t, dir))
	delete(want, kitchen)
	delete(got, kitchen)
	if diff := equal(want, got); diff != "" {
		t.Error(diff)
	}
	left, _ := os.ReadDir(dir)
	if len(left) != 1 {
		t.Errorf("left in the directory: %v", left)
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
	saying(t, errors.New(strings.Split(err.Error(), "\n")[0]), broken)
	if !errors.Is(err, core.ErrDamaged) {
		t.Errorf("%v is not ErrDamaged", err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("left in the directory: %v", left)
	}
	if err := Restore(dir, filepath.Join(dir, "nothing")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v is not ErrNotExist", err)
	}
}

func TestCompact(t *testing.T) {
	dir := t.TempDir()
	db := furnished(t, dir)
	secret := "a secret that goes away"
	for i := range 300 {
		add(t, db, message(kitchen, fmt.Sprint(i), secret+strings.Repeat(" and more", 1000)))
	}
	var gone []core.Event
	for i := range 300 {
		gone = append(gone, core.Event{Kind: core.KindDeletion, Message: core.Message{Path: kitchen}, Target: fmt.Sprint(i)})
	}
	if err := db.Commit(t.Context(), &core.Batch{Change: gone}); err != nil {
		t.Fatal(err)
	}
	want := everything(t, db)
	before, after, err := db.Compact(t.Context())
	if err != nil || after > before/2 {
		t.Fatalf("%d to %d bytes, %v", before, after, err)
	}
	if diff := equal(want, everything(t, db)); diff != "" {
		t.Error(diff)
	}
	content, err := os.ReadFile(db.file)
	if err != nil || strings.Contains(string(content), secret) {
		t.Errorf("what was deleted stands in the file still (%v)", err)
	}
	add(t, db, message(kitchen, "after", "written after compacting"))
	if _, err := Open(dir, Options{}); !errors.Is(err, core.ErrLocked) {
		t.Errorf("the lock was lost: %v", err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if got := everything(t, open(t, dir))[kitchen]; got[len(got)-1].Message.ID != "after" {
		t.Error("what was written after compacting is lost")
	}
	if left, _ := os.ReadDir(dir); len(left) != 1 {
		t.Errorf("left in the directory: %v", left)
	}
}

func TestCompactWithoutRoom(t *testing.T) {
	dir := t.TempDir()
	db := furnished(t, dir)
	want := everything(t, db)
	if err := os.MkdirAll(filepath.Join(dir, FileName+compactSuffix, "in the way"), 0o700); err != nil {
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

func TestSalvage(t *testing.T) {
	source := furnished(t, t.TempDir())
	want := everything(t, source)
	if err := source.Close(); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(source.file)
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	saved := 0
	for round := range 25 {
		damaged := append([]byte(nil), whole...)
		for range round { // pages of noise; the first two are left for others
			at := 4096 * (2 + random.IntN(60))
			for i := range 4096 {
				damaged[at+i] = byte(random.Uint32())
			}
		}
		file := filepath.Join(t.TempDir(), "damaged.db")
		if err := os.WriteFile(file, damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		report, err := Salvage(dir, file)
		if err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		got := everything(t, open(t, dir))
		if diff := equal(want, got); round == 0 && diff != "" {
			t.Error(diff)
		}
		for place, entries := range got {
			for _, e := range entries {
				if diff := equal(want[place][e.Message.Seq-1], e); diff != "" {
					t.Errorf("round %d: %s", round, diff)
				}
				saved++
			}
		}
		if (round == 0) != (len(report.Faults) == 0) && report.Pairs[bucketLog] != 400 {
			t.Errorf("round %d: %+v", round, report)
		}
	}
	t.Logf("%d of %d entries saved", saved, 25*400)
	if saved < 400 {
		t.Error("next to nothing was saved")
	}
}

func TestSalvageOfWhatIsKnown(t *testing.T) {
	source := open(t, t.TempDir())
	populated(t, source)
	var before, after bytes.Buffer
	if err := errors.Join(source.Export(t.Context(), &before, core.Path{}), source.Close()); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	report, err := Salvage(dir, source.file)
	if err != nil || report.Dropped != 0 || len(report.Faults) != 0 {
		t.Fatalf("%+v, %v", report, err)
	}
	db := open(t, dir)
	if err := db.Export(t.Context(), &after, core.Path{}); err != nil || before.String() != after.String() {
		t.Errorf("%v\n%s\n%s", err, &before, &after)
	}
	fresh := save(t, db, Fact{Text: "a new one", Origin: group})
	if _, err := db.SaveFact(t.Context(), fresh, 0); err != nil {
		t.Error(err)
	}
	want(t, "memories", len(recall(t, db, Query{See: []core.Path{group, alone}})), 5)
}

func TestSalvageOfNothing(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x.db")
	if err := os.WriteFile(file, []byte(strings.Repeat("this is no database", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	_, err := Salvage(dir, file)
	saying(t, err, file, "nothing can be saved")
	open(t, dir)
	if _, err := Salvage(dir, file); !errors.Is(err, ErrNotEmpty) {
		t.Errorf("%v is not ErrNotEmpty", err)
	}
}

// FuzzWreck: reading a file full of noise ends, without a panic.
func FuzzWreck(f *testing.F) {
	_, file := filledFile(f)
	whole, err := os.ReadFile(file)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole[:12*4096], uint64(3))
	f.Fuzz(func(_ *testing.T, content []byte, root uint64) {
		w := &wreck{file: strings.NewReader(string(content)), size: int64(len(content)), page: 4096}
		if page, err := w.root(); err == nil {
			root = page
		}
		w.walk(root, 0, func(key, value []byte, bucket bool) {
			if bucket {
				w.bucket(string(key), value, func([]byte, []byte, bool) {})
			}
		})
		if _, err := w.root(); err == nil {
			w.check(root)
			w.freePages()
		}
	})
}

// TestTheListOfFreePages: a page that is free and in use, or neither, is found.
func TestTheListOfFreePages(t *testing.T) {
	db := furnished(t, t.TempDir())
	for i := range 50 { // so that some pages are free
		add(t, db, message(kitchen, fmt.Sprint(i), strings.Repeat("x", 5000)))
	}
	if err := errors.Join(db.Forget(t.Context(), kitchen), db.Close()); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(db.file)
	if err != nil {
		t.Fatal(err)
	}
	w := &wreck{file: bytes.NewReader(whole), size: int64(len(whole))}
	root, err := w.root()
	if err != nil {
		t.Fatal(err)
	}
	list := int(w.free) * 4096
	n := int(order.Uint16(whole[list+10:]))
	if n < 2 {
		t.Fatalf("only %d pages are free", n)
	}
	for name, tc := range map[string]struct {
		spoil func(b []byte)
		says  string
	}{
		"as it was":      {func([]byte) {}, ""},
		"in use":         {func(b []byte) { order.PutUint64(b[list+pageHeader:], root) }, "in use"},
		"free twice":     {func(b []byte) { copy(b[list+pageHeader:], b[list+pageHeader+8:list+pageHeader+16]) }, "in use"},
		"beyond the end": {func(b []byte) { order.PutUint64(b[list+pageHeader:], w.end) }, "is none"},
		"neither":        {func(b []byte) { order.PutUint16(b[list+10:], uint16(n-1)) }, "neither in use nor free"},
		"too many":       {func(b []byte) { order.PutUint16(b[list+10:], 0xfffe) }, "do not fit"},
		"no list":        {func(b []byte) { order.PutUint16(b[list+8:], leafFlag) }, "it is none"},
	} {
		file := filepath.Join(t.TempDir(), "x.db")
		content := bytes.Clone(whole)
		tc.spoil(content)
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
		err := Restore(filepath.Join(t.TempDir(), "data"), file)
		if (err == nil) != (tc.says == "") || !strings.Contains(fmt.Sprint(err), tc.says) {
			t.Errorf("%s: %v", name, err)
		}
		if err != nil && !errors.Is(err, core.ErrDamaged) {
			t.Errorf("%s: %v is not ErrDamaged", name, err)
		}
	}
}

// TestALostPageIsFoundAtTheStart: after an unclean stop every single page of the
// file is missed, and the mend is named.
func TestALostPageIsFoundAtTheStart(t *testing.T) {
	db := furnished(t, t.TempDir())
	whole, err := os.ReadFile(filepath.Join(crash(t, db), FileName))
	if err != nil {
		t.Fatal(err)
	}
	w := &wreck{file: bytes.NewReader(whole), size: int64(len(whole))}
	root, err := w.root()
	if err != nil {
		t.Fatal(err)
	}
	w.check(root)
	found := 0
	for page := uint64(2); page < w.end; page++ {
		if w.seen[page/64]&(1<<(page%64)) == 0 || page == root {
			continue // free, or so bad that Open refuses
		}
		dir := t.TempDir()
		content := bytes.Clone(whole)
		clear(content[page*4096 : (page+1)*4096])
		if err := os.WriteFile(filepath.Join(dir, FileName), content, 0o600); err != nil {
			t.Fatal(err)
		}
		var heard error
		again, err := Open(dir, Options{Damaged: func(err error) { heard = err }})
		if err == nil {
			again.checking.Wait()
			again.Close()
			err = heard
		}
		saying(t, errors.New(strings.Split(fmt.Sprint(err), "\n")[0]), FileName, "damaged")
		if !strings.Contains(fmt.Sprint(err), "`synthbot restore --salvage`") {
			t.Errorf("page %d: %v does not name the mend", page, err)
		}
		found++
	}
	if found < 10 {
		t.Errorf("only %d pages are in use", found)
	}
}

func TestCheckAfterAnUncleanStop(t *testing.T) {
	db := furnished(t, t.TempDir())
	dir := crash(t, db)
	file := filepath.Join(dir, FileName)
	heard := make(chan error, 1)
	checked, err := Open(dir, Options{Damaged: func(err error) { heard <- err }})
	if err != nil {
		t.Fatal(err)
	}
	checked.checking.Wait()
	if len(heard) != 0 {
		t.Errorf("a whole file: %v", <-heard)
	}
	// A mark that stands above what waits breaks a rule of ours, not of bbolt.
	err = checked.write(t.Context(), &job{run: func(t *tx) error {
		place := placeKey(core.MustPath("house/room2"))
		h, _ := t.readHead(place)
		h.count += 5
		return writeHead(t.bucket(bucketPlaces), place, h)
	}})
	if err != nil {
		t.Fatal(err)
	}
	dir = crash(t, checked)
	checked.Close()
	again, err := Open(dir, Options{Damaged: func(err error) { heard <- err }})
	if err != nil {
		t.Fatal(err)
	}
	again.checking.Wait()
	select {
	case err := <-heard:
		saying(t, errors.New(strings.Split(err.Error(), "\n")[0]), filepath.Base(file), "damaged", "house/room2")
	default:
		t.Error("the fault was not reported")
	}
	again.Close()
	last, err := Open(dir, Options{Damaged: func(err error) { heard <- err }})
	if err != nil {
		t.Fatal(err)
	}
	last.checking.Wait()
	last.Close()
	if len(heard) != 0 {
		t.Error("checked though it was closed in order")
	}
}

func TestUpgrade(t *testing.T) {
	dir := t.TempDir()
	db := furnished(t, dir)
	want := everything(t, db)
	further := append(steps(),
		func(t *tx) error { return t.bucket(bucketMeta).Put([]byte("first"), []byte("done")) },
		func(*tx) error { return errors.New("of the second step") },
	)
	err := db.upgrade(schema, further)
	backup := fmt.Sprintf("%s.version%d", db.file, schema)
	saying(t, err, fmt.Sprint("version ", schema+2), "of the second step", backup)
	version, _, err := db.readMeta()
	if err != nil || version != schema+1 {
		t.Errorf("version %d, %v, want %d", version, err, schema+1)
	}
	restored := filepath.Join(t.TempDir(), "restored")
	if err := Restore(restored, backup); err != nil {
		t.Fatal(err)
	}
	old := open(t, restored)
	if diff := equal(want, everything(t, old)); diff != "" {
		t.Error(diff)
	}
	if version, _, err := old.readMeta(); err != nil || version != schema {
		t.Errorf("the backup's version is %d, %v", version, err)
	}
	if err := db.write(t.Context(), &job{run: func(t *tx) error {
		return t.bucket(bucketMeta).Put([]byte(metaSchema), fmt.Append(nil, schema))
	}}); err != nil {
		t.Fatal(err)
	}
}

// TestUpgradeOfVersion1 opens a file that a synthbot without vectors wrote.
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
		t.Errorf("the backup: %v", err)
	}
	want(t, "the group", len(everything(t, db)[group]), 5)
	want(t, "memories", len(recall(t, db, Query{Text: "JAYSECRET", See: []core.Path{group, alone}})), 3)
	db.Close()
	again := open(t, dir)
	want(t, "after opening again", len(everything(t, again)[alone]), 2)
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
