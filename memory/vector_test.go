package memory

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"testing"

	"synthbot/core"
)

// fixedEmbedding returns an embedding that only depends on its length.
func fixedEmbedding(length int) []float32 {
	embedding := make([]float32, length)
	state := uint32(length)
	for i := range embedding {
		state = state*1664525 + 1013904223
		embedding[i] = float32(int(state>>16%201)) - 100
	}
	return embedding
}

// TestVectorsAreStoredAsBefore: vectors and sketches of older files can be compared with new ones.
func TestVectorsAreStoredAsBefore(t *testing.T) {
	for length, stored := range map[int]string{
		1: "519e509a2eef", 2: "07535e7baba2", 7: "15e08f364222", 64: "80b6612ddae7", 100: "06208d8c73d0", 768: "70ba42f34454", 1024: "ad87ecb086d9", 1025: "e45c98c3e4c8", maxLength: "490fc7edb53c",
	} {
		v, ok := quantize("model", fixedEmbedding(length))
		if !ok {
			t.Fatalf("length %d: no vector", length)
		}
		sum := sha256.Sum256(append(v.encode(61), v.encodeSketch(61)...))
		want(t, fmt.Sprint("length ", length), hex.EncodeToString(sum[:6]), stored)
	}
	even, _ := quantize("model", []float32{1, 1})
	sketched := even.sketch()
	ones := 0
	for at := range sketchWords * 64 {
		ones += int(sketched[at/64] >> (at % 64) & 1)
	}
	want(t, "bits of a vector whose sums are often zero", ones, 0)
}

// TestBrokenVectors: bytes that encode cannot have written are refused.
func TestBrokenVectors(t *testing.T) {
	vector := func(scale float32, length int) []byte {
		b := binary.BigEndian.AppendUint32([]byte{1, 2, 3, 4}, math.Float32bits(scale))
		return append(b, make([]byte, length)...)
	}
	inf := float32(math.Inf(1))
	for name, tc := range map[string]struct {
		stored []byte
		ok     bool
	}{
		"nothing": {nil, false}, "no numbers": {vector(1, 0), false}, "one": {vector(1, 1), true},
		"the longest": {vector(1, maxLength), true}, "too long": {vector(1, maxLength+1), false},
		"no scale": {vector(0, 1), false}, "a negative scale": {vector(-1, 1), false},
		"an endless scale": {vector(inf, 1), false},
	} {
		_, err := decodeVector(tc.stored, 1)
		if (err == nil) != tc.ok || err != nil && !errors.Is(err, errFields) {
			t.Errorf("%s: unexpected error %v", name, err)
		}
	}
	long := make([]float32, maxLength+1)
	long[0] = 1
	_, ok := quantize("m", long)
	want(t, "an embedding that is too long", ok, false)
	_, ok = quantize("m", []float32{inf, 1})
	want(t, "an endless embedding", ok, false)
	_, ok = quantize("m", long[:maxLength])
	want(t, "the longest embedding", ok, true)
}

// TestScaleThatIsNotANumber: a vector whose scale is NaN is refused.
func TestScaleThatIsNotANumber(t *testing.T) {
	b := binary.BigEndian.AppendUint32([]byte{1, 2, 3, 4}, math.Float32bits(float32(math.NaN())))
	if _, err := decodeVector(append(b, 1), 1); !errors.Is(err, errFields) {
		t.Errorf("got %v, want %v", err, errFields)
	}
}

// TestSketchesOfAPlace: each fact has one sketch, in whatever order facts come and go.
func TestSketchesOfAPlace(t *testing.T) {
	db := open(t, t.TempDir())
	err := db.write(t.Context(), &job{run: func(t *tx) error {
		put := func(model string, facts ...uint64) {
			for _, fact := range facts {
				v, _ := quantize(model, fixedEmbedding(int(fact)+2))
				v.model = modelTag(model, 0)
				t.facts().putVector(group, fact, &v)
			}
		}
		put("m", 7, 3, 59, 60, 61, 0, 3)
		put("other", 5)
		t.facts().dropVector(group, 59)
		t.facts().dropVector(group, 58)
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	err = db.view(t.Context(), func(v *view) error {
		var facts []uint64
		v.facts().sketches(group, 0, modelTag("m", 0), func(fact uint64, stored []byte) {
			facts = append(facts, fact)
			vector, ok := v.facts().vectorOf(group, fact)
			sketch := vector.sketch()
			want(t, "a vector", ok, true)
			want(t, "bits in which its sketch differs", sketch.distance(stored), 0)
			want(t, "its sketch", v.facts().sketchAt(group, fact), vector.encodeSketch(fact))
		})
		want(t, "facts", facts, []uint64{0, 3, 7, 60, 61})
		want(t, "a sketch that was dropped", v.facts().sketchAt(group, 59), nil)
		want(t, "bytes of the first chunk", len(v.bucket(bucketSketches).Get(chunkKey(group, 0))), 4*sketchBytes)
		v.facts().sketches(topic, 0, modelTag("m", 0), func(fact uint64, _ []byte) { t.Errorf("unexpected fact %d in another place", fact) })
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	err = db.write(t.Context(), &job{run: func(t *tx) error { // Check would report vectors without facts
		for _, fact := range []uint64{0, 3, 5, 7, 60, 61} {
			t.facts().dropVector(group, fact)
		}
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	want(t, "chunks in the end", size(t, db, bucketSketches), 0)
}

// TestUsualLikeness: the usual similarity is computed from the less similar facts, if there are
// enough.
func TestUsualLikeness(t *testing.T) {
	var u baseline
	u.counts[400], u.counts[512], u.counts[600] = 8, 8, 13
	if u.compute(); u.threshold != 0 || u.spread != 0 {
		t.Errorf("for %d facts: unexpected %v, %v", minForBaseline-1, u.threshold, u.spread)
	}
	u.counts[600]++
	for rank, apart := range map[int]float64{0: 400, 7: 400, 8: 512, 15: 512, 16: 600, 29: 600, 30: 1024} {
		if got, likeness := u.similarityAt(rank), math.Cos(math.Pi*apart/1024); math.Abs(got-likeness) > 1e-12 {
			t.Errorf("rank %d: got %v, want %v", rank, got, likeness)
		}
	}
	u.compute()
	near := func(what string, got, wanted float64) {
		t.Helper()
		if math.Abs(got-wanted) > 1e-6 {
			t.Errorf("%s: got %v, want %v", what, got, wanted)
		}
	}
	near("spread", u.spread, 0.392364)
	near("least", u.threshold, 0.784729)
	u.top = 1.8
	near("as near as by chance", u.scaled(u.threshold), 0)
	near("less near", u.scaled(0.1), 0)
	near("between", u.scaled(1.2), (1.2-u.threshold)/(1.8-u.threshold))
	near("the nearest", u.scaled(1.8), 1)
	near("nearer than the nearest", u.scaled(2), 1)
	u.top = 1
	near("all are near", u.scaled(0.9), (0.9-u.threshold)/(2*u.spread))
	var narrow baseline
	narrow.counts[512] = 100
	narrow.compute()
	near("the least spread", narrow.spread, 0.02)
	near("a small part", narrow.scaled(narrow.threshold+0.05), 0.5)
}

// TestForemost: the best of many are returned in order, and the others are not stored.
func TestForemost(t *testing.T) {
	const keep = 5
	f := topN[int]{keep: keep, order: func(a, b int) int { return a - b }}
	for i := range 1000 {
		before := len(f.all)
		x := i * 617 % 251
		late := f.full && x >= f.all[keep-1]
		f.add(x)
		if len(f.all) >= 2*keep || late && len(f.all) > before || i >= 2*keep && !f.full {
			t.Fatalf("unexpected after %d: %v", i+1, f.all)
		}
	}
	want(t, "the first", f.take(), []int{0, 0, 0, 0, 1})
	few := topN[int]{keep: keep, order: f.order}
	few.add(2)
	few.add(1)
	want(t, "of few", few.take(), []int{1, 2})
}

// TestStrangeKeys: a search skips invalid pairs.
func TestStrangeKeys(t *testing.T) {
	db, err := Open(t.TempDir(), Options{NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	save(t, db, core.Fact{Text: "tea is ready", Origin: group, Tags: []string{"x"}, Topic: "tea"})
	v, _ := quantize("m", fixedEmbedding(8))
	gone := []byte{0, 0, 0, 0, 0, 0, 0, 99}
	err = db.write(t.Context(), &job{run: func(t *tx) error {
		t.facts().putVector(group, 1, &v)
		for _, term := range []string{termAll, termWord + "tea", tagTerm("x"), topicTerm(core.Fact{Topic: "tea"})} {
			for _, key := range []string{"", "1234567", "\x00\x00\x00\x00\x00\x00\x00\x01\x02"} {
				t.bucket(bucketWords).Put(postingKey(group, term, []byte(key)), []byte("1234567"))
			}
			t.bucket(bucketWords).Put(postingKey(group, term, gone), []byte("1234567"))
		}
		t.bucket(bucketSketches).Put(append(chunkKey(group, 0), 1), v.encodeSketch(2))
		t.bucket(bucketSketches).Put(append(placeKey(group), 1), v.encodeSketch(3))
		t.bucket(bucketSketches).Put(append(chunkKey(group, 0), 0), v.encodeSketch(2)[:40])
		t.facts().putVector(group, 98, &v) // a vector without a fact
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range []core.FactQuery{{Text: "tea"}, {Tags: []string{"x"}}, {}} {
		for _, meant := range []*vector{nil, &v} {
			q.See, q.N = []core.Path{group}, 10
			err := db.view(t.Context(), func(view *view) error {
				var found []string
				for _, f := range view.recall(q, meant) {
					found = append(found, f.Text)
				}
				want(t, "found", found, []string{"tea is ready"})
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		}
	}
	again := save(t, db, core.Fact{Text: "tea is cold", Origin: group, Topic: "tea"})
	want(t, "it takes the place of the one before", again.ID, "1")
}
