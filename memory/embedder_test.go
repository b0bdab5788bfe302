package memory

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"synthbot/core"
	"synthbot/core/llm"
)

// lexicon is an Embedder that knows a few words. Texts about the same thing have similar vectors,
// whatever words they use.
type lexicon struct {
	mu     sync.Mutex
	texts  []string // the texts it was given
	calls  int
	fault  func(texts []string) error
	length int
}

var things = [][]string{
	{"dog", "hound", "puppy"}, {"tea", "brew", "infusion"}, {"house", "home", "dwelling"}, {"rain", "drizzle", "shower"},
}

func (l *lexicon) Embed(_ context.Context, texts []string) ([][]float32, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls++
	if l.fault != nil {
		if err := l.fault(texts); err != nil {
			return nil, err
		}
	}
	l.texts = append(l.texts, texts...)
	all := make([][]float32, len(texts))
	for i, text := range texts {
		v := make([]float32, max(l.length, 64))
		for k := range v {
			v[k] = float32(mix(uint64(k))%100) / 300 // a part that all texts share
		}
		for k, words := range things {
			if slices.ContainsFunc(words, func(w string) bool { return strings.Contains(text, w) }) {
				for j := range 10 {
					v[k*10+j] += 3
				}
			}
		}
		all[i] = v
	}
	return all, nil
}

// asked returns the texts since the last call of asked.
func (l *lexicon) asked() (texts []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	texts, l.texts = l.texts, nil
	slices.Sort(texts)
	return texts
}

func (l *lexicon) failing(fault func([]string) error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fault, l.calls = fault, 0
}

func (l *lexicon) as(model string) Embedder { return Embedder{Model: model, Embed: l.Embed} }

// bubble runs a test in fake time on a database whose background work it waits for.
func bubble(t *testing.T, o Options, test func(t *testing.T, dir string, db *DB)) {
	dir := t.TempDir()
	open(t, dir).Close()
	synctest.Test(t, func(t *testing.T) {
		o.Log, o.NoSync = cmp.Or(o.Log, complaining(t)), true
		db, err := Open(dir, o)
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := db.Close(); err != nil {
				t.Error(err)
			}
		}()
		test(t, dir, db)
	})
	sound(t, dir)
}

func size(t *testing.T, db *DB, bucket string) (n int) {
	t.Helper()
	err := db.read(t.Context(), func(v *view) {
		for range v.bucket(bucket).pairs(nil, nil) {
			n++
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestRecallByMeaning(t *testing.T) {
	l := &lexicon{}
	bubble(t, Options{}, func(t *testing.T, _ string, db *DB) {
		db.SetEmbedder(l.as("m"))
		for _, text := range []string{"jay has a dog", "ann drinks tea", "bob owns a house", "it was in the rain"} {
			save(t, db, core.Fact{Text: text, Origin: group, Time: day, About: []core.Path{jay}})
		}
		save(t, db, core.Fact{Text: "the hound bit jay", Origin: alone, Time: day, About: []core.Path{jay}})
		save(t, db, core.Fact{Text: "dogs are welcome everywhere", Time: day})
		synctest.Wait()
		for _, tc := range []struct {
			q    core.FactQuery
			want []string
		}{
			{core.FactQuery{Text: "puppy", See: []core.Path{topic}, N: 2}, []string{"dogs are welcome everywhere", "jay has a dog"}},
			{core.FactQuery{Text: "dwelling", See: []core.Path{group}, N: 1}, []string{"bob owns a house"}},
			{core.FactQuery{Text: "puppy", See: []core.Path{alone}, N: 2}, []string{"dogs are welcome everywhere", "the hound bit jay"}},
			{core.FactQuery{Text: "puppy", See: []core.Path{group}, About: []core.Path{jay}, N: 1}, []string{"jay has a dog"}},
			{core.FactQuery{Text: "infusion", See: []core.Path{group}, About: []core.Path{ann}}, nil},
			{core.FactQuery{Text: "bob hound", See: []core.Path{group}, N: 3}, []string{"bob owns a house", "dogs are welcome everywhere", "jay has a dog"}},
		} {
			got := recall(t, db, tc.q)
			slices.Sort(got)
			want(t, fmt.Sprintf("%+v", tc.q), got, tc.want)
		}
		for _, said := range recall(t, db, core.FactQuery{Text: "puppy", See: []core.Path{group}}) {
			if said == "the hound bit jay" {
				t.Error("a fact of a private place was found in the group")
			}
		}
	})
}

// TestSavingDoesNotWait: saving a fact does not wait for the Embedder and does not fail with it.
func TestSavingDoesNotWait(t *testing.T) {
	stuck := Embedder{Model: "m", Embed: func(ctx context.Context, _ []string) ([][]float32, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}}
	bubble(t, Options{}, func(t *testing.T, _ string, db *DB) {
		db.SetEmbedder(stuck)
		begun := time.Now()
		save(t, db, core.Fact{Text: "jay has a dog", Origin: group})
		want(t, "time that saving took", time.Since(begun), 0)
		want(t, "found by words", recall(t, db, core.FactQuery{Text: "dog", See: []core.Path{group}}), []string{"jay has a dog"})
		want(t, "time that the search took", time.Since(begun), queryTimeout)
		begun = time.Now()
		recall(t, db, core.FactQuery{Text: "dog", See: []core.Path{group}})
		want(t, "time of the next one, which does not ask again", time.Since(begun), 0)
		db.SetConfig(Config{Recall: 10 * time.Millisecond})
		time.Sleep(2 * embedPause)
		begun = time.Now()
		recall(t, db, core.FactQuery{Text: "dog", See: []core.Path{group}})
		want(t, "time that the configuration allows", time.Since(begun), 10*time.Millisecond)
	})
}

// TestVectorsAreMadeLater: missing vectors are made later, after failures or a restart, each once.
func TestVectorsAreMadeLater(t *testing.T) {
	l := &lexicon{}
	var log strings.Builder
	down := &llm.Error{Kind: llm.ErrorRetryLater, Engine: "x"}
	l.failing(func([]string) error { return down })
	logged := slog.New(slog.NewTextHandler(&log, nil))
	bubble(t, Options{Log: logged}, func(t *testing.T, dir string, db *DB) {
		db.SetEmbedder(l.as("m"))
		for i := range 200 {
			save(t, db, core.Fact{Text: things[i%4][0] + fmt.Sprint(" ", i), Origin: group})
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if l.calls < 12 || l.calls > 40 {
			t.Errorf("unexpected: %d calls in an hour of failures", l.calls)
		}
		if n := strings.Count(log.String(), "no vectors"); n < 2 || n > 7 {
			t.Errorf("unexpected: %d log lines in an hour of failures:\n%s", n, &log)
		}
		l.failing(nil)
		time.Sleep(maxEmbedPause)
		synctest.Wait()
		want(t, "vectors", size(t, db, bucketVectors), 200)
		want(t, "texts", len(l.asked()), 200)
		l.failing(func([]string) error { return down })
		save(t, db, core.Fact{Text: "the last hound", Origin: group})
		synctest.Wait()
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		l.failing(nil)
		again, err := Open(dir, Options{NoSync: true})
		if err != nil {
			t.Fatal(err)
		}
		again.SetEmbedder(l.as("m"))
		defer again.Close()
		synctest.Wait()
		want(t, "texts after the restart", l.asked(), []string{"the last hound"})
		want(t, "found", len(recall(t, again, core.FactQuery{Text: "puppy", See: []core.Path{group}, N: 500})), 51)
	})
}

// TestAnotherModel: vectors of different models are never compared.
func TestAnotherModel(t *testing.T) {
	l, other := &lexicon{}, &lexicon{length: 96}
	bubble(t, Options{}, func(t *testing.T, _ string, db *DB) {
		db.SetEmbedder(l.as("m"))
		for i := range 100 {
			save(t, db, core.Fact{Text: things[i%4][0] + fmt.Sprint(" ", i), Origin: group})
		}
		synctest.Wait()
		l.asked()
		db.SetEmbedder(l.as("m")) // a reload that changes nothing
		synctest.Wait()
		want(t, "texts after a reload", l.asked(), nil)
		other.failing(func(texts []string) error {
			if len(texts) == 1 { // a query
				return nil
			}
			return errors.New("not now")
		})
		db.SetEmbedder(other.as("n"))
		synctest.Wait()
		want(t, "found while the new model has no vectors", recall(t, db, core.FactQuery{Text: "puppy", See: []core.Path{group}}), nil)
		other.failing(nil)
		time.Sleep(maxEmbedPause)
		synctest.Wait()
		want(t, "found with the new one", len(recall(t, db, core.FactQuery{Text: "puppy", See: []core.Path{group}})), 10)
		want(t, "vectors", size(t, db, bucketVectors), 100)
		db.SetEmbedder(Embedder{})
		want(t, "found without any", recall(t, db, core.FactQuery{Text: "puppy", See: []core.Path{group}}), nil)
		save(t, db, core.Fact{Text: "one more dog", Origin: group})
		other.asked()
		db.SetEmbedder(other.as("n"))
		synctest.Wait()
		want(t, "texts when it is back", other.asked(), []string{"one more dog"})
	})
}

// TestAPoisonedText: a text that the Embedder refuses does not delay the others.
func TestAPoisonedText(t *testing.T) {
	l := &lexicon{}
	l.failing(func(texts []string) error {
		for _, text := range texts {
			switch {
			case strings.Contains(text, "poison"):
				return &llm.Error{Kind: llm.ErrorFatal, Status: 400}
			case strings.Contains(text, "panic"):
				panic("of the embedder")
			}
		}
		return nil
	})
	bubble(t, Options{}, func(t *testing.T, _ string, db *DB) {
		db.SetEmbedder(l.as("m"))
		for i := range 100 {
			text := things[i%4][0] + fmt.Sprint(" ", i)
			if i%40 == 7 {
				text = []string{"poison", "panic"}[i/40%2] + fmt.Sprint(i)
			}
			save(t, db, core.Fact{Text: text, Origin: group})
		}
		time.Sleep(30 * time.Minute)
		synctest.Wait()
		want(t, "vectors", size(t, db, bucketVectors), 97)
		l.failing(nil)
		time.Sleep(2 * retryPause)
		synctest.Wait()
		want(t, "vectors when it takes them", size(t, db, bucketVectors), 100)
	})
}

// TestBadVectors: an invalid vector is not stored.
func TestBadVectors(t *testing.T) {
	good := make([]float32, 8)
	good[0] = 1
	bad := append(slices.Clone(good), 1)
	for name, answer := range map[string][][]float32{
		"none": nil, "too many": {good, good}, "empty": {{}}, "zero": {make([]float32, 8)}, "no number": {{float32(math.NaN()), 1}},
		"endless": {{float32(math.Inf(1)), 1}}, "too long": {make([]float32, maxLength+1)}, "another length": {bad},
	} {
		t.Run(name, func(t *testing.T) {
			var mu sync.Mutex
			now := [][]float32{good}
			e := Embedder{Model: "m", Embed: func(context.Context, []string) ([][]float32, error) {
				mu.Lock()
				defer mu.Unlock()
				return now, nil
			}}
			bubble(t, Options{}, func(t *testing.T, _ string, db *DB) {
				db.SetEmbedder(e)
				save(t, db, core.Fact{Text: "good", Origin: group})
				synctest.Wait()
				mu.Lock()
				now = answer
				mu.Unlock()
				save(t, db, core.Fact{Text: "bad", Origin: group})
				synctest.Wait()
				want(t, "vectors", size(t, db, bucketVectors), 1)
				want(t, "found by words", recall(t, db, core.FactQuery{Text: "bad", See: []core.Path{group}, N: 1}), []string{"bad"})
				mu.Lock()
				now = [][]float32{good}
				mu.Unlock()
				time.Sleep(2 * retryPause)
				synctest.Wait()
				want(t, "vectors later", size(t, db, bucketVectors), 2)
			})
		})
	}
}

// TestVectorsGoWithTheirFacts: a vector is deleted whenever its fact is deleted or changed.
func TestVectorsGoWithTheirFacts(t *testing.T) {
	l := &lexicon{}
	bubble(t, Options{}, func(t *testing.T, _ string, db *DB) {
		db.SetEmbedder(l.as("m"))
		dog := save(t, db, core.Fact{Text: "jay has a dog", Origin: group, Topic: "pet", About: []core.Path{jay}})
		tea := save(t, db, core.Fact{Text: "ann drinks tea", Origin: group, About: []core.Path{ann}})
		synctest.Wait()
		l.asked()
		dog = save(t, db, core.Fact{ID: dog.ID, Text: dog.Text, Tags: []string{"x"}})
		synctest.Wait()
		want(t, "texts of what says the same", l.asked(), nil)
		save(t, db, core.Fact{Text: "jay has a house now", Origin: group, Topic: "pet", About: []core.Path{jay}})
		synctest.Wait()
		want(t, "texts of what was changed", l.asked(), []string{"jay has a house now"})
		want(t, "found by what it said", recall(t, db, core.FactQuery{Text: "puppy", See: []core.Path{group}, N: 1})[0] == "jay has a dog", false)
		l.asked()
		move := core.Event{Kind: core.KindMigration, Message: core.Message{Path: group}, To: core.MustPath("chat/super")}
		if err := db.Commit(t.Context(), &core.Batch{Change: []core.Event{move}}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		want(t, "texts of what moved", l.asked(), nil)
		want(t, "found where it moved", recall(t, db, core.FactQuery{Text: "infusion", See: []core.Path{group}, N: 1}), []string{"ann drinks tea"})
		var out bytes.Buffer
		if err := db.Export(t.Context(), &out, core.Path{}); err != nil || strings.Count(out.String(), "\n") != 2 {
			t.Errorf("%v\n%s", err, &out)
		}
		l.asked()
		if err := db.DropFact(t.Context(), tea.ID, group); err != nil {
			t.Fatal(err)
		}
		want(t, "vectors", size(t, db, bucketVectors), 1)
		if n, _, err := db.Import(t.Context(), &out, nil); err != nil || n != 2 {
			t.Errorf("unexpected: %d lines, %v", n, err)
		}
		synctest.Wait()
		want(t, "texts of what was imported", l.asked(), []string{"ann drinks tea"})
		if err := errors.Join(db.Forget(t.Context(), jay), db.Forget(t.Context(), ann)); err != nil {
			t.Fatal(err)
		}
		want(t, "vectors of the forgotten", size(t, db, bucketVectors), 0)
		want(t, "sketches of the forgotten", size(t, db, bucketSketches), 0)
		_ = dog
	})
}

// TestForgottenWhileEmbedded: a vector that arrives after its fact was deleted or changed is
// dropped.
func TestForgottenWhileEmbedded(t *testing.T) {
	begun, goOn := make(chan struct{}), make(chan struct{})
	l := &lexicon{}
	slow := Embedder{Model: "m", Embed: func(ctx context.Context, texts []string) ([][]float32, error) {
		begun <- struct{}{}
		select {
		case <-goOn:
			return l.Embed(ctx, texts)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}}
	db := openWith(t, t.TempDir(), Options{})
	save(t, db, core.Fact{Text: "jay has a dog", Origin: group, About: []core.Path{jay}})
	house := save(t, db, core.Fact{Text: "ann has a house", Origin: group, About: []core.Path{ann}})
	db.SetEmbedder(slow)
	<-begun
	if err := db.Forget(t.Context(), jay); err != nil {
		t.Fatal(err)
	}
	save(t, db, core.Fact{ID: house.ID, Text: "ann drinks tea"})
	goOn <- struct{}{}
	<-begun // the first two have their vectors
	want(t, "texts", l.asked(), []string{"ann has a house", "jay has a dog"})
	want(t, "vectors", size(t, db, bucketVectors), 0)
}

// TestLikenessOfAnotherModel: vectors of different models have no similarity, even if they have the
// same length.
func TestLikenessOfAnotherModel(t *testing.T) {
	db := open(t, t.TempDir())
	newCloud(8).put(t, db, 0, 1, func() string { return "x" })
	for model, same := range map[string]bool{"m": true, "n": false} {
		meant, _ := quantize(model, []float32{1, 2, 3, 4, 5, 6, 7, 8})
		err := db.view(t.Context(), func(v *view) error {
			s := &search{view: v, vector: &meant, baseline: new(baseline)}
			if like := s.similarity(group, 1); (like != 0) != same {
				t.Errorf("model %s: got similarity %v, want none", model, like)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestFactsWithMeaningStayWhereTheyWereSaid is TestFactsStayWhereTheyWereSaid with a search by
// meaning.
func TestFactsWithMeaningStayWhereTheyWereSaid(t *testing.T) {
	l := &lexicon{}
	bubble(t, Options{}, func(t *testing.T, _ string, db *DB) {
		db.SetEmbedder(l.as("m"))
		checkFactsStay(t, db, synctest.Wait)
	})
}
