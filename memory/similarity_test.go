package memory

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"pgregory.net/rapid"

	"synthbot/core"
	"synthbot/core/coretest"
)

func TestVectorsComeBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pair := rapid.SliceOfN(rapid.Float32Range(-1e3, 1e3), 2, 400)
		a := pair.Draw(t, "a")
		b := rapid.SliceOfN(rapid.Float32Range(-1e3, 1e3), len(a), len(a)).Draw(t, "b")
		v, ok := quantize("m", a)
		w, ok2 := quantize("m", b)
		if !ok || !ok2 {
			t.Skip("no direction")
		}
		back, err := decodeVector(v.encode(1), 1)
		isSame := back.model == v.model && back.scale == v.scale && slices.Equal(back.components, v.components)
		if err != nil || !isSame {
			t.Fatalf("%v was decoded as %v, %v", v, back, err)
		}
		if got, want := back.cosine(&w), cosine(a, b); math.Abs(got-want) > 0.02 {
			t.Fatalf("the similarity is %.4f, want the cosine %.4f", got, want)
		}
		coarse := v.coarse()
		back, err = decodeVector(coarse.encode(firstPassage), firstPassage)
		same := back.scale == coarse.scale && slices.Equal(back.components, coarse.components)
		if err != nil || back.model == v.model || !same {
			t.Fatalf("the coarse %v was decoded as %v, %v", coarse, back, err)
		}
		if x := back.cosine(&coarse); math.Abs(x-1) > 0.001 {
			t.Fatalf("the coarse %v has the similarity %v to itself", coarse, x)
		}
	})
}

// TestCoarse: four bits for each number are enough for passages. Random directions are the hardest
// case, since many are almost equally near.
func TestCoarse(t *testing.T) {
	queries := coretest.Sample(20, 3)
	for _, length := range []int{97, 384, 1024} {
		c, most, kept := newCloud(length), 0.0, 0
		for range queries {
			asked, _ := quantize("m", c.any())
			var fine, coarse []float64
			for range 500 {
				v, _ := quantize("m", c.any())
				small := v.coarse()
				fine, coarse = append(fine, v.cosine(&asked)), append(coarse, small.cosine(&asked))
				most = max(most, math.Abs(fine[len(fine)-1]-coarse[len(coarse)-1]))
			}
			best, tenth := slices.Clone(fine), slices.Clone(coarse)
			slices.Sort(best)
			slices.Sort(tenth)
			for i := range fine {
				if fine[i] >= best[490] && coarse[i] >= tenth[490] {
					kept++
				}
			}
		}
		stay := float64(kept) / float64(10*queries)
		t.Logf("length %d: cosines differ by %.3f at most, %.1f %% of the nearest ten stay", length, most, 100*stay)
		if most > 0.05 || stay < 0.775 {
			t.Errorf("length %d: cosines differ by %.3f, %.1f %% of the nearest stay", length, most, 100*stay)
		}
	}
}

func cosine(a, b []float32) float64 {
	var ab, aa, bb float64
	for i := range a {
		ab, aa, bb = ab+float64(a[i])*float64(b[i]), aa+float64(a[i])*float64(a[i]), bb+float64(b[i])*float64(b[i])
	}
	return ab / math.Sqrt(aa*bb)
}

func FuzzVector(f *testing.F) {
	v, _ := quantize("m", []float32{1, -2, 3})
	f.Add(v.encode(1))
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, number := range []uint64{1, firstPassage} {
			v, err := decodeVector(b, number)
			if err != nil {
				continue
			}
			if x := v.cosine(&v); math.IsNaN(x) || x < 0 {
				t.Fatalf("%x has the similarity %v to itself", b, x)
			}
			v.sketch()
		}
	})
}

// cloud makes vectors like those of embedding models: in clusters, and with a common part.
type cloud struct {
	random  *rand.Rand
	length  int
	middles [][]float32
}

func newCloud(length int) *cloud {
	c := &cloud{random: rand.New(rand.NewPCG(5, uint64(length))), length: length}
	base := c.direction(1)
	for range 300 {
		middle := c.direction(1)
		for i := range middle {
			middle[i] += base[i]
		}
		c.middles = append(c.middles, middle)
	}
	return c
}

func (c *cloud) direction(size float64) []float32 {
	v := make([]float32, c.length)
	for i := range v {
		v[i] = float32(c.random.NormFloat64() * size / math.Sqrt(float64(c.length)))
	}
	return v
}

func (c *cloud) any() []float32 {
	v := c.direction(0.9)
	for i, x := range c.middles[c.random.IntN(len(c.middles))] {
		v[i] += x
	}
	return v
}

// put stores vectors for facts whose text is a number.
func (c *cloud) put(t testing.TB, db *DB, from, n int, text func() string) {
	t.Helper()
	err := db.write(t.Context(), &job{run: func(tx *tx) error {
		for i := range n {
			f, err := tx.facts().saveFact(core.Fact{Text: text(), Origin: group, Language: "en", Time: day.Add(time.Duration(from+i) * time.Minute)})
			if err != nil {
				return err
			}
			number, _ := factNumber(f.ID)
			v, _ := quantize("m", c.any())
			tx.facts().putVector(f.Origin, number, &v)
		}
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
}

// hitRate returns which part of the ten nearest facts a search by sketches finds.
func (c *cloud) hitRate(t testing.TB, db *DB, queries int) float64 {
	t.Helper()
	found := 0
	for range queries {
		meant, _ := quantize("m", c.any())
		err := db.view(t.Context(), func(v *view) error {
			s := &search{view: v, vector: &meant, index: map[uint64]int{}, baseline: new(baseline)}
			near := s.candidates([]core.Path{group})
			var all []float64
			v.facts().sketches(group, 0, meant.model, func(fact uint64, _ []byte) {
				all = append(all,
					s.similarity(group, fact))
			})
			slices.Sort(all)
			tenth := all[len(all)-10]
			for _, h := range near[:10] {
				if h.similarity >= tenth {
					found++
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return float64(found) / float64(10*queries)
}

// TestSketchesFindTheNearest: comparing sketches first finds almost the same facts as comparing all
// vectors.
func TestSketchesFindTheNearest(t *testing.T) {
	for _, length := range []int{96, 768} {
		db := open(t, t.TempDir())
		c := newCloud(length)
		n := 0
		c.put(t, db, 0, coretest.Sample(1500, 1000), func() string { n++; return fmt.Sprint("number ", n) })
		rate := c.hitRate(t, db, coretest.Sample(20, 8))
		t.Logf("length %d: %.1f %% of the nearest ten", length, 100*rate)
		if rate < 0.95 {
			t.Errorf("length %d: only %.1f %% of the nearest ten are found", length, 100*rate)
		}
	}
}

// tongue is an artificial language: each thing has several words and belongs to a field. Its
// embeddings know the meaning of words but no names.
type tongue struct {
	random *rand.Rand
	cloud  *cloud
	base   []float32
	things [][]float32
}

const (
	fieldsOfTongue = 40
	thingsOfField  = 12
	wordsOfThing   = 4
	namesOfTongue  = 300
)

func newTongue() *tongue {
	g := &tongue{random: rand.New(rand.NewPCG(1, 7)), cloud: newCloud(256)}
	g.base = g.cloud.direction(1.5)
	for range fieldsOfTongue {
		middle := g.cloud.direction(1)
		for range thingsOfField {
			own := g.cloud.direction(0.8)
			for i := range own {
				own[i] += middle[i]
			}
			g.things = append(g.things, own)
		}
	}
	return g
}

func wordOf(thing, one int) string { return fmt.Sprintf("w%dx%d", thing, one) }

// embed returns the sum of the meanings of a text's words, with noise.
func (g *tongue) embed(text string) []float32 {
	v := slices.Clone(g.base)
	for word := range strings.FieldsSeq(text) {
		var thing, one int
		known, _ := fmt.Sscanf(word, "w%dx%d", &thing, &one)
		for k, noise := range g.cloud.direction(0.35) {
			if known == 2 {
				v[k] += g.things[thing][k]
			}
			v[k] += noise
		}
	}
	return v
}

func (g *tongue) filler() string { return fmt.Sprint("the", int(g.random.ExpFloat64()*4)) }

// say makes a text of three things of a field, a name and filler words, and four queries for it.
func (g *tongue) say() (text string, asked map[string]string) {
	field := g.random.IntN(fieldsOfTongue)
	name := fmt.Sprint("name", g.random.IntN(namesOfTongue))
	var told, other []string
	for range 3 {
		thing, one := field*thingsOfField+g.random.IntN(thingsOfField), g.random.IntN(wordsOfThing)
		told, other = append(told, wordOf(thing, one)), append(other, wordOf(thing, (one+1)%wordsOfThing))
	}
	text = strings.Join([]string{name, g.filler(), told[0], g.filler(), told[1], g.filler(), told[2], g.filler()}, " ")
	return text, map[string]string{
		"in other words":     strings.Join([]string{g.filler(), other[0], other[1], g.filler()}, " "),
		"by name":            strings.Join([]string{g.filler(), name, g.filler()}, " "),
		"name and new words": strings.Join([]string{name, g.filler(), other[0], g.filler()}, " "),
		"the same words":     strings.Join([]string{g.filler(), told[0], told[2]}, " "),
	}
}

// TestMeaningHelps: in all kinds of queries, a search by words and meaning finds facts better than
// one by words. The log shows the mean reciprocal rank.
func TestMeaningHelps(t *testing.T) {
	db := open(t, t.TempDir())
	g := newTongue()
	type case_ struct {
		id    string
		asked map[string]string
	}
	var cases []case_
	err := db.write(t.Context(), &job{run: func(tx *tx) error {
		for range coretest.Sample(1200, 400) {
			text, asked := g.say()
			f, err := tx.facts().saveFact(core.Fact{Text: text, Language: "en", Origin: group, Time: day})
			if err != nil {
				return err
			}
			v, _ := quantize("m", g.embed(text))
			number, _ := factNumber(f.ID)
			tx.facts().putVector(group, number, &v)
			cases = append(cases, case_{f.ID, asked})
		}
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	ranks := map[string]*[2]float64{"by name": {}, "in other words": {}, "name and new words": {}, "the same words": {}}
	asked := coretest.Sample(60, 30)
	for _, c := range cases[:asked] {
		for way, text := range c.asked {
			meant, _ := quantize("m", g.embed(text))
			for i, m := range []*vector{nil, &meant} {
				ranks[way][i] += reciprocal(t, db, c.id, text, m) / float64(asked)
			}
		}
	}
	for way, r := range ranks {
		t.Logf("%-20s words %.3f, words and meaning %.3f", way, r[0], r[1])
		if r[1] < r[0]-0.02 || way != "by name" && way != "the same words" && r[1] < r[0]+0.1 {
			t.Errorf("%s: got %.3f by words and %.3f by words and meaning, want more with meaning", way, r[0], r[1])
		}
	}
}

// reciprocal returns one divided by the rank of a fact in the results.
func reciprocal(t *testing.T, db *DB, id, text string, meant *vector) (r float64) {
	err := db.view(t.Context(), func(v *view) error {
		q := core.FactQuery{Text: text, See: []core.Path{group}, N: 10}
		for i, f := range v.recall(q, meant) {
			if f.ID == id {
				r = 1 / float64(i+1)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// BenchmarkRecall searches 100,000 memories of a place by words, and by words and meaning.
func BenchmarkRecall(b *testing.B) {
	for _, length := range []int{384, 768, 1536} {
		db := open(b, b.TempDir())
		c, text := newCloud(length), vocabulary()
		for i := 0; i < 100000; i += 1000 {
			c.put(b, db, i, 1000, text)
		}
		rate := 100 * c.hitRate(b, db, 20)
		for _, q := range []struct {
			name string
			core.FactQuery
		}{
			{"common", core.FactQuery{Text: "word0 word1 word2 word3 word4"}},
			{"usual", core.FactQuery{Text: text()}},
			{"unknown", core.FactQuery{Text: text()}},
			{"tag", core.FactQuery{Tags: []string{"x"}, Text: "word1"}},
		} {
			q.See, q.N = []core.Path{topic}, 10
			for _, kind := range []string{"words", "meaning"} {
				b.Run(fmt.Sprintf("length=%d/%s/%s", length, q.name, kind), func(b *testing.B) { benchRecall(b, db, c, q.FactQuery, kind == "meaning", rate) })
			}
		}
	}
}

func benchRecall(b *testing.B, db *DB, c *cloud, q core.FactQuery, meaning bool, rate float64) {
	found, begun := 0, spent()
	for b.Loop() {
		err := db.view(b.Context(), func(v *view) error {
			var vector *vector
			if meaning {
				meant, _ := quantize("m", c.any())
				vector = &meant
			}
			found += len(v.recall(q, vector))
			return nil
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64((spent()-begun).Microseconds())/1000/float64(b.N), "cpu-ms/op")
	b.ReportMetric(float64(found)/float64(b.N), "found")
	if meaning {
		b.ReportMetric(rate, "%nearest")
	}
}

// spent returns the CPU time of the process, which other processes disturb less than the clock.
func spent() time.Duration {
	var use syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &use) != nil {
		return 0
	}
	return time.Duration(use.Utime.Nano() + use.Stime.Nano())
}
