package memory

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"synthbot/core"
	"synthbot/core/llm"
)

// recorded is an Embedder that records the times and sizes of its calls.
type recorded struct {
	lexicon
	began time.Time
	times []string
	guard sync.Mutex
}

func (r *recorded) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	r.guard.Lock()
	r.times = append(r.times, fmt.Sprintf("%v:%d", time.Since(r.began), len(texts)))
	r.guard.Unlock()
	return r.lexicon.Embed(ctx, texts)
}

// schedule returns the calls since the last call of schedule.
func (r *recorded) schedule() string {
	r.guard.Lock()
	defer r.guard.Unlock()
	calls := strings.Join(r.times, " ")
	r.times = nil
	return calls
}

// saveMany saves n facts in one transaction.
func saveMany(t *testing.T, db *DB, n int, text string) {
	t.Helper()
	err := db.write(t.Context(), &job{run: func(t *tx) error {
		for i := range n {
			if _, err := t.facts().saveFact(core.Fact{Text: fmt.Sprint(text, " ", i), Origin: group}); err != nil {
				return err
			}
		}
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
}

// TestCallsForVectors: how many texts an Embedder gets at once, and when it is called again after a
// failure.
func TestCallsForVectors(t *testing.T) {
	for name, tc := range map[string]struct {
		fault func(texts []string) error
		calls string
		later string // after embedAgain
	}{
		"as it should be": {func([]string) error { return nil }, "0s:32 0s:32 0s:6", ""},
		"a text that it does not take": {func(texts []string) error {
			for _, text := range texts {
				if strings.HasSuffix(text, " 5") {
					return &llm.Error{Kind: llm.ErrorFatal}
				}
			}
			return nil
		}, "0s:32 1s:16 3s:8 7s:4 7s:8 8s:4 10s:2 14s:1 14s:2 15s:1 17s:1 17s:2 17s:4 17s:8 17s:16 17s:32 17s:1", "1h0m17s:1 1h0m18s:1 1h0m20s:1 1h0m24s:1 1h0m32s:1 1h0m48s:1"},
		"down for a while": {func([]string) error { return &llm.Error{Kind: llm.ErrorRetryLater} },
			"0s:32 1s:32 3s:32 7s:32 15s:32 31s:32 1m3s:32 2m7s:32 4m15s:32 8m31s:32 13m31s:32 18m31s:32 23m31s:32 28m31s:32",
			"33m31s:32 38m31s:32 43m31s:32 48m31s:32 53m31s:32 58m31s:32 1h3m31s:32 1h8m31s:32 1h13m31s:32 1h18m31s:32 1h23m31s:32 1h28m31s:32"},
	} {
		t.Run(name, func(t *testing.T) {
			r := &recorded{}
			bubble(t, Options{}, func(t *testing.T, _ string, db *DB) {
				saveMany(t, db, 70, "text")
				r.began = time.Now()
				r.failing(tc.fault)
				db.SetEmbedder(Embedder{Model: "m", Embed: r.Embed})
				time.Sleep(retryPause / 2)
				synctest.Wait()
				want(t, "calls", r.schedule(), tc.calls)
				time.Sleep(retryPause)
				synctest.Wait()
				want(t, "later", r.schedule(), tc.later)
			})
		})
	}
}

// TestManyFactsWithoutVectors: more facts than fit one call get their vectors, also those that are
// saved meanwhile.
func TestManyFactsWithoutVectors(t *testing.T) {
	l := &lexicon{}
	bubble(t, Options{}, func(t *testing.T, _ string, db *DB) {
		const old, more = 3*embedBatch + 1, 2*embedBatch + 1
		saveMany(t, db, old, "old")
		free := make(chan struct{})
		db.SetEmbedder(Embedder{Model: "m", Embed: func(ctx context.Context, texts []string) ([][]float32, error) {
			<-free
			return l.Embed(ctx, texts)
		}})
		synctest.Wait()
		saveMany(t, db, more, "new")
		close(free)
		synctest.Wait()
		want(t, "vectors", size(t, db, bucketVectors), old+more)
		want(t, "texts", len(l.asked()), old+more)
	})
}

// TestExchangeOfAnEmbedder: a new Embedder cancels the call of the old one and gets the texts that
// the old one refused. A late vector of the old one is dropped.
func TestExchangeOfAnEmbedder(t *testing.T) {
	l, other := &lexicon{}, &lexicon{length: 80}
	bubble(t, Options{}, func(t *testing.T, _ string, db *DB) {
		saveMany(t, db, 3, "dog")
		began := time.Now()
		db.SetEmbedder(Embedder{Model: "stuck", Embed: func(ctx context.Context, _ []string) ([][]float32, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}})
		synctest.Wait()
		db.SetEmbedder(l.as("m"))
		synctest.Wait()
		want(t, "texts at once", []any{len(l.asked()), time.Since(began)}, []any{3, time.Duration(0)})
		l.failing(func([]string) error { return &llm.Error{Kind: llm.ErrorFatal} })
		saveMany(t, db, 1, "cat")
		time.Sleep(time.Minute)
		synctest.Wait()
		want(t, "refused", len(db.embeds.refused), 1)
		db.SetEmbedder(other.as("n"))
		synctest.Wait()
		want(t, "texts of another model", len(other.asked()), 4)
		want(t, "refused by it", len(db.embeds.refused), 0)
		l.failing(nil)
		db.SetEmbedder(l.as("n")) // the same model with another length
		synctest.Wait()
		want(t, "texts of the same model", l.asked(), nil)
		save(t, db, core.Fact{Text: "one more", Origin: group})
		synctest.Wait()
		want(t, "texts when its length has changed", len(l.asked()), 5)
		want(t, "vectors", size(t, db, bucketVectors), 5)
		db.SetEmbedder(Embedder{Model: "n"})
		saveMany(t, db, 2, "without any")
		synctest.Wait()
		want(t, "vectors of none", size(t, db, bucketVectors), 5)
	})
}

// TestSearchWithoutEmbedder: a search waits for an Embedder only a limited time. After a failure,
// searches go without it for a while that doubles.
func TestSearchWithoutEmbedder(t *testing.T) {
	r := &recorded{}
	var log strings.Builder
	logged := slog.New(slog.NewTextHandler(&log, nil))
	bubble(t, Options{Log: logged}, func(t *testing.T, _ string, db *DB) {
		r.began = time.Now()
		db.SetEmbedder(Embedder{Model: "m", Embed: r.Embed})
		save(t, db, core.Fact{Text: "jay has a dog", Origin: group})
		synctest.Wait()
		r.schedule()
		r.failing(func([]string) error { return errors.New("not now") })
		ask := func() { recall(t, db, core.FactQuery{Text: "dog", See: []core.Path{group}}) }
		for range 600 {
			ask()
			time.Sleep(time.Second / 2)
		}
		want(t, "calls", r.schedule(), "0s:1 1s:1 3s:1 7s:1 15s:1 31s:1 1m3s:1 2m3s:1 3m3s:1 4m3s:1")
		want(t, "lines of log", strings.Count(log.String(), "by words alone"), 1)
		time.Sleep(warnPause)
		ask()
		want(t, "lines of log", strings.Count(log.String(), "by words alone"), 2)
		want(t, "what was left out of it", strings.Contains(log.String(), "failures=9"), true)
		r.failing(nil)
		time.Sleep(maxQueryPause)
		ask()
		r.failing(func([]string) error { return errors.New("not now") })
		r.schedule()
		began := time.Since(r.began)
		for range 5 {
			ask()
			time.Sleep(time.Second)
		}
		want(t, "calls after one that worked", r.schedule(), fmt.Sprintf("%v:1 %v:1 %v:1", began, began+time.Second, began+3*time.Second))
		recall(t, db, core.FactQuery{See: []core.Path{group}})
		want(t, "calls for a search without a text", r.schedule(), "")
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		r.failing(nil)
		time.Sleep(maxQueryPause)
		if v := db.embeds.query(ctx, "dog", 0); v != nil || time.Now().Before(db.embeds.queryBackoff.until) {
			t.Error("a cancelled search counts as a failure of the Embedder")
		}
		r.length = maxLength + 1
		if v := db.embeds.query(t.Context(), "dog", 0); v != nil || !time.Now().Before(db.embeds.queryBackoff.until) {
			t.Error("an infinite vector was used")
		}
	})
}

// TestVectorsSurviveRestart: vectors from before a restart are used without making them again.
func TestVectorsSurviveRestart(t *testing.T) {
	l := &lexicon{}
	bubble(t, Options{}, func(t *testing.T, dir string, db *DB) {
		db.SetEmbedder(l.as("m"))
		saveMany(t, db, 2, "dog")
		synctest.Wait()
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		l.asked()
		again, err := Open(dir, Options{NoSync: true})
		if err != nil {
			t.Fatal(err)
		}
		again.SetEmbedder(l.as("m"))
		synctest.Wait()
		want(t, "texts", l.asked(), nil)
		save(t, again, core.Fact{Text: "one more", Origin: group})
		synctest.Wait()
		want(t, "texts of one more", l.asked(), []string{"one more"})
		if err := again.Close(); err != nil {
			t.Fatal(err)
		}
		last, err := Open(dir, Options{NoSync: true})
		if err != nil {
			t.Fatal(err)
		}
		last.SetEmbedder(l.as("m"))
		defer last.Close()
		synctest.Wait()
		want(t, "texts of the third life", l.asked(), nil)
	})
}

// TestVectorsThatCannotBeWritten: vectors that could not be stored are made again.
func TestVectorsThatCannotBeWritten(t *testing.T) {
	l := &lexicon{}
	bubble(t, Options{}, func(t *testing.T, _ string, db *DB) {
		saveMany(t, db, 3, "dog")
		d := interceptWrites(t, db)
		d.onWrite(func([]byte, int64) (int, error) { return 0, syscall.EIO })
		db.SetEmbedder(l.as("m"))
		synctest.Wait()
		want(t, "texts", len(l.asked()), 3)
		d.onWrite(nil)
		time.Sleep(embedPause)
		synctest.Wait()
		want(t, "texts of a second try", len(l.asked()) > 0, true)
		time.Sleep(maxEmbedPause)
		synctest.Wait()
		want(t, "vectors", size(t, db, bucketVectors), 3)
	})
}

// TestTheNextEmbedderStartsAfresh: a new Embedder gets calls of the largest size, whatever the old
// one failed at.
func TestTheNextEmbedderStartsAfresh(t *testing.T) {
	other := &recorded{}
	bubble(t, Options{}, func(t *testing.T, _ string, db *DB) {
		saveMany(t, db, 40, "dog")
		db.SetEmbedder(Embedder{Model: "m", Embed: func(ctx context.Context, texts []string) ([][]float32, error) {
			if len(texts) == 1 {
				<-ctx.Done()
			}
			return nil, errors.New("too many")
		}})
		time.Sleep(embedTimeout)
		other.began = time.Now()
		db.SetEmbedder(Embedder{Model: "n", Embed: other.Embed})
		synctest.Wait()
		want(t, "calls", other.schedule(), "0s:32 0s:8")
	})
}

// TestVectorsOfTwoLengths: vectors of another length than the first one are refused, even within a
// call.
func TestVectorsOfTwoLengths(t *testing.T) {
	odd := Embedder{Model: "m", Embed: func(_ context.Context, texts []string) (all [][]float32, err error) {
		for i := range texts {
			all = append(all, fixedEmbedding(8+i))
		}
		return all, nil
	}}
	bubble(t, Options{}, func(t *testing.T, _ string, db *DB) {
		saveMany(t, db, 3, "dog")
		db.SetEmbedder(odd)
		synctest.Wait()
		want(t, "vectors at once", size(t, db, bucketVectors), 0)
		time.Sleep(time.Hour)
		synctest.Wait()
		want(t, "vectors one by one", size(t, db, bucketVectors), 3)
	})
}

// TestUnreadableFileEndsEmbedding: the search for facts without vectors ends if the file cannot be
// read.
func TestUnreadableFileEndsEmbedding(t *testing.T) {
	l := &lexicon{}
	bubble(t, Options{}, func(t *testing.T, _ string, db *DB) {
		saveMany(t, db, 3, "dog")
		l.failing(func([]string) error { return &llm.Error{Kind: llm.ErrorRetryLater} })
		db.SetEmbedder(l.as("m"))
		synctest.Wait()
		m := db.embeds
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		batch := m.nextBatch(ctx, m.embedding)
		want(t, "facts of a file that cannot be read", len(batch), 0)
		batch = m.nextBatch(t.Context(), m.embedding)
		want(t, "facts", len(batch), 3)
	})
}
