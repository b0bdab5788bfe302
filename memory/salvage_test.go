package memory

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"synthbot/core"
)

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
	newCloud(8).put(t, source, 0, 3, func() string { return "a memory with a vector" })
	add(t, source, message(kitchen, "gone", "x"))
	if err := source.Forget(t.Context(), kitchen); err != nil {
		t.Fatal(err)
	}
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
	want(t, "vectors, which are made anew", size(t, db, bucketVectors), 0)
	b := &core.Batch{Append: []core.Entry{message(kitchen, "gone", "x")}}
	if err := db.Commit(t.Context(), b); err != nil || !b.Known[0] {
		t.Errorf("what was forgotten before comes back: %v, %v", b.Known, err)
	}
	fresh := save(t, db, Fact{Text: "a new one", Origin: group})
	if _, err := db.SaveFact(t.Context(), fresh, 0); err != nil {
		t.Error(err)
	}
	want(t, "memories", len(recall(t, db, Query{See: []core.Path{group, alone}})), 6)
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
		t.writeHead(place, h)
		return nil
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
