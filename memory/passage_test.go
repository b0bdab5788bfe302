package memory

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"synthbot/core"
	"synthbot/core/coretest"
	"synthbot/core/passage"
)

func document(name string, texts ...string) passage.Document {
	d := passage.Document{Name: name, Stamp: "1", Language: "en", Link: "https://example.org/" + name}
	for _, text := range texts {
		title, rest, ok := strings.Cut(text, "|")
		if !ok {
			title, rest = "", text
		}
		d.Passages = append(d.Passages, passage.Passage{Title: title, Text: rest, Anchor: title})
	}
	return d
}

func put(t testing.TB, db *DB, source string, documents ...passage.Document) {
	t.Helper()
	if err := Passages(db).PutDocuments(t.Context(), source, documents...); err != nil {
		t.Fatal(err)
	}
}

// foundTexts returns the texts that a query finds.
func foundTexts(t testing.TB, db *DB, q passage.Query) (all []string) {
	t.Helper()
	if q.N == 0 {
		q.N = 10
	}
	found, err := Passages(db).Find(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range found {
		all = append(all, m.Text)
	}
	return all
}

func TestPassages(t *testing.T) {
	db := open(t, t.TempDir())
	put(t, db, "handbook",
		document("faq.md", "Refunds|Money comes back within a week.", "Opening hours|We open at nine."),
		document("copy.md", "Hours|We open   at Nine."),
		document("rules.md", "A refund is never owed for gifts, and refunds for parts are rare."))
	put(t, db, "secret", document("faq.md", "The refund of the treasurer was late."))
	for text, want := range map[string][]string{
		"refund": {"A refund is never owed for gifts, and refunds for parts are rare.", "Money comes back within a week."},
		"open":   {"We open at nine."}, "nothing of it": nil,
	} {
		got := foundTexts(t, db, passage.Query{Sources: []string{"handbook", "unknown"}, Text: text, Languages: []string{"en"}})
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) && (text != "open" || len(got) != 1) {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
	found, err := Passages(db).Find(t.Context(), passage.Query{Sources: []string{"handbook"}, Text: "refunds money", N: 1, Languages: []string{"en"}})
	if err != nil || len(found) != 1 || found[0].Anchor != "Refunds" || found[0].Link != "https://example.org/faq.md" ||
		found[0].Source != "handbook" || found[0].Document != "faq.md" || found[0].Share < 0.99 {
		t.Errorf("unexpected passages %+v, %v", found, err)
	}
	put(t, db, "handbook", document("faq.md", "Money is kept."))
	if got := foundTexts(t, db, passage.Query{Sources: []string{"handbook"}, Text: "money week"}); !slices.Equal(got, []string{"Money is kept."}) {
		t.Errorf("unexpected passages after a change: %q", got)
	}
	sources, err := Passages(db).Sources(t.Context())
	if err != nil || !slices.Equal(sources, []string{"handbook", "secret"}) {
		t.Errorf("unexpected sources %q, %v", sources, err)
	}
	if err := Passages(db).DropDocuments(t.Context(), "handbook", "faq.md", "rules.md", "never.md"); err != nil {
		t.Fatal(err)
	}
	documents, err := Passages(db).Documents(t.Context(), "handbook")
	if err != nil || len(documents) != 1 || documents[0].Name != "copy.md" || documents[0].Stamp != "1" {
		t.Errorf("unexpected documents %+v, %v", documents, err)
	}
	if err := db.Forget(t.Context(), core.Path{}); err != nil {
		t.Fatal(err)
	}
	if got := foundTexts(t, db, passage.Query{Sources: []string{"handbook", "secret"}, Text: "open refund"}); got != nil {
		t.Errorf("unexpected passages after everything was forgotten: %q", got)
	}
}

// TestPassagesModel changes documents at random and compares each search with a scan of all
// documents. Large documents take several transactions.
func TestPassagesModel(t *testing.T) {
	db := open(t, t.TempDir())
	random := rand.New(rand.NewPCG(1, 2))
	model := make(map[string]passage.Document)
	for step := range coretest.Sample(40, 20) {
		name := fmt.Sprintf("%d.md", random.IntN(5))
		if random.IntN(4) == 0 {
			delete(model, name)
			if err := Passages(db).DropDocuments(t.Context(), "s", name); err != nil {
				t.Fatal(err)
			}
			continue
		}
		var all []string
		for i := range random.IntN(3) * random.IntN(300) {
			all = append(all, fmt.Sprintf("p%d step%d word%d word%d %s", i, step, random.IntN(50), random.IntN(50), name))
		}
		d := document(name, all...)
		model[name] = d
		put(t, db, "s", d)
	}
	for word := range coretest.Sample(50, 10) {
		want := 0
		for _, d := range model {
			for _, p := range d.Passages {
				if slices.Contains(strings.Fields(p.Text), fmt.Sprint("word", word)) {
					want++
				}
			}
		}
		if got := foundTexts(t, db, passage.Query{Sources: []string{"s"}, Text: fmt.Sprint("word", word), N: 10000}); len(got) != want {
			t.Errorf("word%d: %d passages, want %d", word, len(got), want)
		}
	}
}

func TestPassagesByMeaning(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, dir string, db *DB) {
		l := new(lexicon)
		db.SetEmbedder(l.as("m"))
		save(t, db, core.Fact{Text: "A hound barks", Origin: group})
		put(t, db, "s", document("a", "The puppy sleeps.", "Tea is hot."))
		synctest.Wait()
		for mode, want := range map[passage.Mode]string{passage.Words: "", passage.Meaning: "The puppy sleeps.", passage.Both: "The puppy sleeps."} {
			got := append(foundTexts(t, db, passage.Query{Sources: []string{"s"}, Text: "dog", Mode: mode, N: 1}), "")[0]
			if got != want {
				t.Errorf("%q: %q, want %q", mode, got, want)
			}
		}
		put(t, db, "s", document("a", "Rain again."))
		synctest.Wait()
		if n := size(t, db, bucketVectors); n != 2 {
			t.Errorf("%d vectors, want 2", n)
		}
	})
}

// TestPassagesWaitForVectors: the number of passages without vectors is known, and those with
// vectors are not read again after a restart.
func TestPassagesWaitForVectors(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, dir string, db *DB) {
		waiting := func(when string, want int) {
			t.Helper()
			synctest.Wait()
			if n, _, err := Passages(db).Waiting(t.Context()); err != nil || n != want {
				t.Errorf("%s: %d passages wait for vectors, want %d: %v", when, n, want, err)
			}
		}
		l := new(lexicon)
		put(t, db, "s", document("a", "The puppy sleeps.", "Tea is hot."), document("b", "Rain."))
		put(t, db, "t", document("a", "A hound barks."))
		waiting("without an engine", 0)
		db.SetEmbedder(Embedder{Model: "m", Embed: func(ctx context.Context, _ []string) ([][]float32, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}})
		waiting("while it is asked", 4)
		down := errors.New("connection refused")
		l.failing(func([]string) error { return down })
		db.SetEmbedder(l.as("m"))
		waiting("while it fails", 4)
		if _, failed, _ := Passages(db).Waiting(t.Context()); failed != down {
			t.Errorf("got the error %v, want %v", failed, down)
		}
		l.failing(nil)
		time.Sleep(time.Minute)
		waiting("afterwards", 0)
		if _, failed, _ := Passages(db).Waiting(t.Context()); failed != nil {
			t.Errorf("got the error %v after a success", failed)
		}
		var kept [][2][]byte
		change := func(value func(old []byte) []byte) {
			err := db.update(t.Context(), func(t *tx) {
				for k, v := range t.bucket(bucketPassages).pairs(nil, nil) {
					kept = append(kept, [2][]byte{bytes.Clone(k), bytes.Clone(v)})
				}
				for _, pair := range kept[:4] {
					t.bucket(bucketPassages).Put(pair[0], value(pair[1]))
				}
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		change(func([]byte) []byte { return []byte("unreadable") })
		l.asked()
		db.SetEmbedder(l.as("m")) // would fail the test for each passage that it reads
		waiting("after a start", 0)
		change(func(old []byte) []byte { return old })
		if n := len(l.asked()); n != 0 {
			t.Errorf("%d texts were embedded again, want none", n)
		}
		db.SetEmbedder(l.as("other"))
		waiting("after another model", 0)
		if n := len(l.asked()); n != 4 {
			t.Errorf("for another model %d texts were embedded", n)
		}
	})
}

// TestPassagesOfOlderFiles: an older file without buckets for passages gets them.
func TestPassagesOfOlderFiles(t *testing.T) {
	dir := t.TempDir()
	db := open(t, dir)
	err := db.update(t.Context(), func(t *tx) {
		for _, name := range []string{bucketDocuments, bucketPassages, bucketPassageWords} {
			t.fail(name, boltTx(t).DeleteBucket([]byte(name)))
		}
	})
	if err = cmp.Or(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	again := open(t, dir)
	put(t, again, "s", document("a", "Tea is hot."))
	if got := foundTexts(t, again, passage.Query{Sources: []string{"s"}, Text: "tea"}); len(got) != 1 {
		t.Errorf("unexpected passages %q", got)
	}
}

// TestPassagesBig measures $DOCS documents of 10 KB each; 10,000 are 100 MB.
func TestPassagesBig(t *testing.T) {
	documents := coretest.Sample(1000, 60)
	if n, err := strconv.Atoi(os.Getenv("DOCS")); err == nil {
		documents = n
	}
	dir := t.TempDir()
	db, err := Open(dir, Options{SkipCheck: true})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	random := rand.New(rand.NewPCG(3, 4))
	common := rand.NewZipf(random, 1.05, 4, 40000)
	sentence := func(n int) string {
		var b strings.Builder
		for b.Len() < n {
			fmt.Fprintf(&b, "%s ", syllables(common.Uint64()))
		}
		return b.String()
	}
	total, began := 0, spent()
	for i := 0; i < documents; i += 20 {
		var batch []passage.Document
		for k := range 20 {
			var parts []string
			for range 12 {
				text := sentence(830)
				total += len(text)
				parts = append(parts, sentence(30)+"|"+text)
			}
			batch = append(batch, document(fmt.Sprintf("manual/chapter-%d.md", i+k), parts...))
		}
		put(t, db, "handbook", batch...)
	}
	took := spent() - began
	used := 0 // without free pages
	err = db.view(t.Context(), func(v *view) error {
		for _, name := range []string{bucketDocuments, bucketPassages, bucketPassageWords} {
			s := boltBucket(v, name).Stats()
			used += s.LeafAlloc + s.BranchAlloc
			t.Logf("%s: %d KiB", name, (s.LeafAlloc+s.BranchAlloc)>>10)
		}
		return nil
	})
	info, err2 := os.Stat(db.engine.name)
	if err = cmp.Or(err, err2); err != nil {
		t.Fatal(err)
	}
	ratio := float64(used) / float64(total)
	slowest, sum := time.Duration(0), time.Duration(0)
	for range 50 {
		q := passage.Query{Sources: []string{"handbook"}, Text: sentence(60), Languages: []string{"en"}, N: 8, Mode: passage.Words}
		began := spent()
		foundTexts(t, db, q)
		took := spent() - began
		slowest, sum = max(slowest, took), sum+took
	}
	t.Logf("%d MB in %v; the file has %d MB, %.2f times the text are used; a query takes %v, %v at most", total>>20,
		took, info.Size()>>20, ratio, sum/50, slowest)
	most := 2.0
	if documents < 1000 { // pages are less full with few documents
		most = 3
	}
	if ratio > most || documents >= 1000 && info.Size() > int64(2*total) {
		t.Errorf("the index is %.2f times as large as the text, the file has %d MB", ratio, info.Size()>>20)
	}
}

// syllables returns a word for a number.
func syllables(n uint64) string {
	list := []string{"ba", "de", "ki", "lo", "mu", "ra", "sen", "tor", "vi", "wes"}
	var b strings.Builder
	for n += 10; n > 0; n /= 10 {
		b.WriteString(list[n%10])
	}
	return b.String()
}
