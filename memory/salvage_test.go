package memory

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"synthbot/core"
	"synthbot/core/coretest"
	"synthbot/memory/bolt"

	"go.etcd.io/bbolt"
)

func TestSalvage(t *testing.T) {
	source := furnished(t, t.TempDir())
	want := everything(t, source)
	if err := source.Close(); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(source.engine.name)
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	saved, rounds := 0, coretest.Sample(25, 4)
	for round := range rounds {
		damaged := append([]byte(nil), whole...)
		for range round { // overwrites pages, except the two meta pages
			at := 4096 * (2 + random.IntN(len(damaged)/4096-2))
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
		if round > 0 && err != nil && strings.Contains(err.Error(), "nothing could be saved") {
			continue
		}
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
	t.Logf("%d of %d entries saved", saved, rounds*400)
	if saved < 40*rounds {
		t.Error("fewer entries were saved than expected")
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
	report, err := Salvage(dir, source.engine.name)
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
		t.Errorf("a forgotten message was stored again: %v, %v", b.Known, err)
	}
	fresh := save(t, db, core.Fact{Text: "a new one", Origin: group})
	if _, err := db.SaveFact(t.Context(), fresh); err != nil {
		t.Error(err)
	}
	want(t, "memories", len(recall(t, db, core.FactQuery{See: []core.Path{group, alone}})), 6)
}

// TestSalvageRebuildsDerivedData: whatever derived data was lost, Salvage rebuilds it.
func TestSalvageRebuildsDerivedData(t *testing.T) {
	db, err := Open(t.TempDir(), Options{NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	populated(t, db)
	if err := errors.Join(db.Forget(t.Context(), kitchen), db.Forget(t.Context(), core.MustPath("chat/nobody"))); err != nil {
		t.Fatal(err)
	}
	said := add(t, db, message(kitchen, "k", "waits"), message(kitchen, "", "x"), message(topic, "t", "x"))
	said[0].Due = true
	err = db.write(t.Context(), &job{run: func(t *tx) error {
		t.bucket(bucketPlaces).Delete(placeKey(alone))
		t.head(placeKey(topic)).private = true // its private messages are deleted
		t.finish()
		setID(t, placeKey(group), knownID{id: shortID("g1")})
		setID(t, placeKey(group), knownID{shortID("g2"), 1, 1})
		t.bucket(bucketDue).Delete(seqKey(placeKey(group), 4))
		t.fail("it", t.MakeBucket("of another program"))
		t.bucket("of another program").Put([]byte("x"), []byte("y"))
		for _, bucket := range []string{bucketLog, bucketIDs, bucketJournal, bucketFacts, bucketUsage,
			bucketPlugins, bucketStates, bucketAliases} {
			t.bucket(bucket).Put([]byte("no key"), []byte("no value"))
		}
		t.bucket(bucketIDs).Put(slices.Concat(placeKey(group), shortID("none")), []byte{0, 1})
		t.bucket(bucketFacts).Put([]byte("8 bytes."), []byte("{}"))
		t.epochsFloor(77)
		return nil
	}})
	file := filepath.Join(crash(t, db), FileName)
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	report, err := Salvage(dir, file)
	if err != nil || report.Dropped != 10 {
		t.Errorf("%+v, %v, want 10 pairs dropped", report, err)
	}
	saved := open(t, dir)
	want(t, "waiting", len(dueIn(t, saved, group)), 2)
	want(t, "private", privacy(t, saved), map[core.Path]bool{group: false, alone: true, kitchen: false, topic: true})
	for _, e := range []core.Entry{message(group, "g1", "again"), message(group, "g2", "again"), message(alone, "p1", "again")} {
		b := &core.Batch{Append: []core.Entry{e}}
		if err := saved.Commit(t.Context(), b); err != nil || !b.Known[0] {
			t.Errorf("the id %s is no longer known: %v", e.Message.ID, err)
		}
	}
	fresh := add(t, saved, message(core.MustPath("chat/fresh"), "1", "x"))
	want(t, "the first number of a new place", fresh[0].Message.Seq, 78)
	if _, err := Salvage(filepath.Join(db.engine.name, "x"), db.engine.name); err == nil || errors.Is(err, ErrNotEmpty) {
		t.Errorf("salvaging into a file: unexpected error %v", err)
	}
	if _, err := Salvage(t.TempDir(), filepath.Join(dir, "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v, want os.ErrNotExist", err)
	}
}

// epochsFloor makes the numbers of places begin above n.
func (t *tx) epochsFloor(n uint64) { t.bucket(bucketMeta).Put([]byte(metaFloor), fmt.Append(nil, n)) }

// TestSalvageOfManyPairs: Salvage handles more pairs than fit one transaction, of all sizes.
func TestSalvageOfManyPairs(t *testing.T) {
	db := open(t, t.TempDir())
	s := &salvager{db: db, report: Salvaged{Pairs: make(map[string]int)}}
	s.add(bucketGone, nil, nil)
	for _, size := range []int{bbolt.MaxKeySize, bbolt.MaxKeySize + 1} {
		s.add(bucketGone, make([]byte, size), nil)
	}
	for i := range salvageStep + 9 {
		s.add(bucketGone, fmt.Append(nil, i), nil)
	}
	s.flush()
	want(t, "report", s.report, Salvaged{Pairs: map[string]int{bucketGone: salvageStep + 10}, Dropped: 2})
	want(t, "kept", size(t, db, bucketGone), salvageStep+10)
	want(t, "error", s.err, nil)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	s.add(bucketGone, []byte("x"), nil)
	if s.flush(); !errors.Is(s.err, core.ErrClosed) {
		t.Errorf("got %v, want core.ErrClosed", s.err)
	}
}

// TestSalvageOfAnEmptyDatabase: a file without content is an error, and no new directory is left.
func TestSalvageOfAnEmptyDatabase(t *testing.T) {
	dir := t.TempDir()
	open(t, dir).Close()
	target := filepath.Join(dir, "new")
	_, err := Salvage(target, filepath.Join(dir, FileName))
	if err == nil || !strings.Contains(err.Error(), "nothing could be saved") {
		t.Errorf("unexpected error %v", err)
	}
	if _, err := os.Stat(target); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the new directory is there: %v", err)
	}
}

func TestSalvageOfNothing(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x.db")
	if err := os.WriteFile(file, []byte(strings.Repeat("this is no database", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	_, err := Salvage(dir, file)
	checkError(t, err, file, "nothing can be saved")
	if strings.Contains(err.Error(), reserveSuffix) {
		t.Errorf("the error mentions a reserve that never existed: %v", err)
	}
	open(t, dir)
	if _, err := Salvage(dir, file); !errors.Is(err, ErrNotEmpty) {
		t.Errorf("%v is not ErrNotEmpty", err)
	}
}

// TestTheListOfFreePages: a backup is restored whatever its list of free pages says; the new file
// has its own list.
func TestTheListOfFreePages(t *testing.T) {
	db := furnished(t, t.TempDir())
	for i := range 50 { // frees some pages
		add(t, db, message(kitchen, fmt.Sprint(i), strings.Repeat("x", 5000)))
	}
	save(t, db, core.Fact{Text: "number one", Origin: group})
	dropped := save(t, db, core.Fact{Text: "number two", Origin: group})
	var before bytes.Buffer
	err := errors.Join(db.DropFact(t.Context(), dropped.ID, group), db.Forget(t.Context(), kitchen),
		db.Export(t.Context(), &before, core.Path{}))
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(db.engine.name)
	if err != nil {
		t.Fatal(err)
	}
	order := binary.LittleEndian
	list := 0
	for at := 2 * 4096; at < len(whole); at += 4096 {
		if order.Uint64(whole[at:]) == uint64(at/4096) && order.Uint16(whole[at+8:]) == 16 {
			list = at // may be an older list of free pages
		}
	}
	for name, spoil := range map[string]func(list []byte){
		"as it was": func([]byte) {},
		"elsewhere": func(b []byte) { order.PutUint64(b, 7) },
		"in use":    func(b []byte) { order.PutUint64(b[16:], 2); order.PutUint64(b[24:], 3) },
		"too many":  func(b []byte) { order.PutUint16(b[10:], 0xfffe) },
		"of noise":  func(b []byte) { copy(b[16:], strings.Repeat("noise", 100)) },
		"no list":   func(b []byte) { order.PutUint16(b[8:], 2) },
	} {
		content := bytes.Clone(whole)
		spoil(content[list:])
		dir := filepath.Join(t.TempDir(), "data")
		if err := Restore(dir, writeTemp(t, content)); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var after bytes.Buffer
		restored := open(t, dir)
		if err := restored.Export(t.Context(), &after, core.Path{}); err != nil || after.String() != before.String() {
			t.Errorf("%s: the restored content differs (%v)", name, err)
		}
		want(t, "the next memory", save(t, restored, core.Fact{Text: "number three", Origin: group}).ID, "3")
	}
}

// TestSalvageOfCircularPages: pages that refer to themselves do not hang Salvage, and the rest is
// saved.
func TestSalvageOfCircularPages(t *testing.T) {
	_, file := filledFile(t)
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	order := binary.LittleEndian
	for at := 2 * 4096; at < len(content); at += 4096 {
		if page := content[at : at+4096]; order.Uint16(page[8:]) == 1 { // a branch
			for i := range min(order.Uint16(page[10:]), 8) {
				order.PutUint64(page[16+int(i)*16+8:], order.Uint64(page))
			}
		}
	}
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
	report, err := Salvage(t.TempDir(), file)
	if err != nil || report.Pairs[bucketPlaces] != 1 || !strings.Contains(fmt.Sprint(report.Faults), "it is used twice") {
		t.Errorf("%+v, %v", report, err)
	}
}

// TestSalvageTakesTheNewestTransaction: the newest transaction is read from either meta page, with
// any page size, and the one before it if the newest is broken.
func TestSalvageTakesTheNewestTransaction(t *testing.T) {
	db := furnished(t, t.TempDir())
	for i := range 3 {
		add(t, db, message(kitchen, fmt.Sprint(i), "x"))
		file := filepath.Join(crash(t, db), FileName)
		report, err := Salvage(t.TempDir(), file)
		want(t, "entries", report.Pairs[bucketLog], 401+i)
		content, err2 := os.ReadFile(file)
		newest := transactions(t, db) % 2
		content[newest*4096+32] ^= 1 // breaks its root
		report, err3 := Salvage(t.TempDir(), writeTemp(t, content))
		want(t, "entries before", report.Pairs[bucketLog], 400+i)
		if err := errors.Join(err, err2, err3); err != nil {
			t.Error(err)
		}
	}
	file := filepath.Join(t.TempDir(), "large.db")
	large, err := bbolt.Open(file, 0o600, &bbolt.Options{PageSize: 16384})
	if err == nil {
		err = errors.Join(bbolt.Compact(large, boltOf(db), 0), large.Close())
	}
	report, err2 := Salvage(t.TempDir(), file)
	if err := errors.Join(err, err2, bolt.CheckPages(file)); err != nil || report.Pairs[bucketLog] != 403 {
		t.Errorf("large pages: unexpected report %+v, %v", report, err)
	}
}

func writeTemp(t *testing.T, content []byte) (file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "x.db")
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestALostPageIsFoundAtTheStart: after an unclean stop, Open notices any single lost page, and the
// error names the fix.
func TestALostPageIsFoundAtTheStart(t *testing.T) {
	db := furnished(t, t.TempDir())
	whole, err := os.ReadFile(filepath.Join(crash(t, db), FileName))
	if err != nil {
		t.Fatal(err)
	}
	used := make(map[int]bool)
	err = boltOf(db).View(func(b *bbolt.Tx) error {
		for page := 2; ; page++ {
			info, err := b.Page(page)
			if info == nil || err != nil {
				return err
			}
			used[page] = (info.Type == "leaf" || info.Type == "branch") && page != int(b.Cursor().Bucket().Root())
			for range info.OverflowCount {
				page++
				used[page] = true
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	// The others are free, or Open refuses the file without them.
	pages := slices.Sorted(maps.Keys(used))
	pages = slices.DeleteFunc(pages, func(page int) bool { return !used[page] })
	if len(pages) < 10 {
		t.Errorf("only %d pages are in use", len(pages))
	}
	for i := 0; i < len(pages); i += coretest.Sample(1, 4) {
		page := pages[i]
		dir := t.TempDir()
		content := bytes.Clone(whole)
		clear(content[page*4096 : (page+1)*4096])
		if err := os.WriteFile(filepath.Join(dir, FileName), content, 0o600); err != nil {
			t.Fatal(err)
		}
		var log strings.Builder
		again, err := Open(dir, Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
		if err == nil {
			again.starting.Wait()
			again.Close()
			err = errors.New(log.String())
		}
		checkError(t, errors.New(strings.Split(fmt.Sprint(err), "\n")[0]), FileName, "damaged")
		if !strings.Contains(fmt.Sprint(err), "`synthbot restore --salvage`") {
			t.Errorf("page %d: the error %v does not name the fix", page, err)
		}
	}
}

func TestCheckAfterAnUncleanStop(t *testing.T) {
	db := furnished(t, t.TempDir())
	dir := crash(t, db)
	file := filepath.Join(dir, FileName)
	var log strings.Builder
	o := Options{Log: slog.New(slog.NewTextHandler(&log, nil))}
	damaged := func() bool { return strings.Contains(log.String(), "the database is damaged") }
	checked, err := Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	checked.starting.Wait()
	if damaged() {
		t.Errorf("unexpected log for an intact file: %s", &log)
	}
	log.Reset()
	// A mark above a waiting entry breaks our own rule, not one of bbolt.
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
	again, err := Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	again.starting.Wait()
	checkError(t, errors.New(strings.TrimSpace(log.String())), filepath.Base(file), "the database is damaged", "house/room2")
	again.Close()
	log.Reset()
	last, err := Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	last.starting.Wait()
	last.Close()
	if damaged() {
		t.Error("the file was checked although it was closed cleanly")
	}
}
