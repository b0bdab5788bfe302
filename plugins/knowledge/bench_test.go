package knowledge

import (
	"context"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"synthbot/core"
	"synthbot/core/passage"
	"synthbot/memory"
	"synthbot/plugins/plugintest"
)

// vocabulary returns invented words. The first ones are common.
func vocabulary(random *rand.Rand) (words []string) {
	syllables := strings.Fields("ba ko ri ne tu sal mor den fi gra lo ves tan pe hul")
	for len(words) < 30_000 {
		var b strings.Builder
		for range 2 + random.IntN(3) {
			b.WriteString(syllables[random.IntN(len(syllables))])
		}
		words = append(words, b.String())
	}
	return words
}

// generate writes documents of about 10 KB each, with headings and lists.
func generate(b *testing.B, dir string, documents int, words []string, random *rand.Rand) (size int64) {
	zipf := rand.NewZipf(random, 1.1, 8, uint64(len(words)-1))
	sentence := func(n int) string {
		var all []string
		for range n {
			all = append(all, words[zipf.Uint64()])
		}
		return strings.ToUpper(all[0][:1]) + strings.Join(all, " ")[1:] + "."
	}
	for i := range documents {
		var text strings.Builder
		fmt.Fprintf(&text, "# Report %d on %s\n\n", i, words[random.IntN(len(words))])
		for text.Len() < 10_000 {
			fmt.Fprintf(&text, "## %s\n\n", sentence(3))
			for range 4 {
				text.WriteString(sentence(8+random.IntN(12)) + " ")
			}
			fmt.Fprintf(&text, "\n\n- %s\n- %s\n\n", sentence(6), sentence(7))
		}
		name := filepath.Join(dir, fmt.Sprint(i/100), fmt.Sprintf("report-%d.md", i))
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text.String()), 0o600); err != nil {
			b.Fatal(err)
		}
		size += int64(text.Len())
	}
	return size
}

// meaning returns vectors of 384 numbers. Similar texts have similar vectors.
func meaning(_ context.Context, texts []string) (all [][]float32, err error) {
	for _, text := range texts {
		v := make([]float32, 384)
		for _, word := range strings.Fields(strings.ToLower(text)) {
			h := fnv.New64a()
			h.Write([]byte(word))
			random := rand.New(rand.NewPCG(h.Sum64(), 1))
			for range 8 {
				v[random.IntN(len(v))] += float32(random.NormFloat64())
			}
		}
		v[0] += math.SmallestNonzeroFloat32
		all = append(all, v)
	}
	return all, nil
}

// BenchmarkBig measures 10,000 documents of 100 MB in total. It takes some minutes:
//
//	go test ./plugins/knowledge -run - -bench Big -benchtime 1x -timeout 30m
func BenchmarkBig(b *testing.B) {
	const documents = 10_000
	random := rand.New(rand.NewPCG(1, 2))
	words, dir, data := vocabulary(random), b.TempDir(), b.TempDir()
	text := generate(b, dir, documents, words, random)
	open := func() (*memory.DB, *Plugin) {
		db, err := memory.Open(data, memory.Options{NoSync: true})
		if err != nil {
			b.Fatal(err)
		}
		host := plugintest.NewHarness(b, "knowledge").Host
		host.Passages, host.Items, host.Reader = memory.Passages(db), db.Items("knowledge"), db
		p, err := New(host, defaults(Config{Sources: []Source{{Name: "reports", Path: dir}}}))
		if err != nil {
			b.Fatal(err)
		}
		return db, p
	}
	took := func(what string, do func()) {
		began := time.Now()
		do()
		fmt.Printf("%s: %v\n", what, time.Since(began).Round(10*time.Microsecond))
	}
	indexSize := func() (size int64) {
		_ = filepath.Walk(data, func(_ string, info os.FileInfo, err error) error {
			if err == nil && !info.IsDir() {
				size += info.Size()
			}
			return err
		})
		return size
	}
	query := func(p *Plugin, mode passage.Mode) {
		var slowest time.Duration
		began := time.Now()
		const queries = 200
		for i := range queries {
			var asked []string
			for range 5 {
				asked = append(asked, words[random.IntN(1+len(words)/(1+i%20))])
			}
			at := time.Now()
			if _, err := p.find(b.Context(), []string{"reports"}, strings.Join(asked, " "), mode, searchMax); err != nil {
				b.Fatal(err)
			}
			slowest = max(slowest, time.Since(at))
		}
		fmt.Printf("query %q: %v on average, %v at most\n", mode, (time.Since(began) / queries).Round(10*time.Microsecond), slowest.Round(10*time.Microsecond))
	}
	db, p := open()
	took("first sync", func() { fmt.Println(synced(b, p)) })
	took("unchanged sync", func() { fmt.Println(synced(b, p)) })
	fmt.Printf("%d MB of text, %d MB of index: %.2f\n", text>>20, indexSize()>>20, float64(indexSize())/float64(text))
	query(p, passage.Words)
	took("small talk", func() {
		for range 1000 {
			if _, err := p.Inject(b.Context(), core.Scene{Path: core.MustPath("room/1"), Text: "hello"}); err != nil {
				b.Fatal(err)
			}
		}
	})
	db.SetEmbedder(memory.Embedder{Model: "m", Embed: meaning})
	took("vectors", func() {
		if err := p.AwaitVectors(b.Context(), func(string) {}); err != nil {
			b.Fatal(err)
		}
	})
	fmt.Printf("with vectors, %d MB of index: %.2f\n", indexSize()>>20, float64(indexSize())/float64(text))
	query(p, passage.Both)
	if err := db.Close(); err != nil {
		b.Fatal(err)
	}
	took("start", func() { db, p = open() })
	db.SetEmbedder(memory.Embedder{Model: "m", Embed: meaning})
	took("looking for passages without vectors", func() {
		if n, _, err := memory.Passages(db).Waiting(b.Context()); n != 0 || err != nil {
			b.Errorf("got %d, %v", n, err)
		}
	})
	if err := db.Close(); err != nil {
		b.Fatal(err)
	}
}
