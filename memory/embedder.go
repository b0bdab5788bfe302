package memory

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math"
	"sync"
	"time"

	"synthbot/core"
	"synthbot/core/llm"
	"synthbot/core/loop"
)

// Embedder turns texts into vectors, so that facts are found by their meaning; the zero Embedder does nothing.
// Embed returns a vector for each text, in order; it is safe for concurrent use and ends with its context. Vectors
// of different models are never compared: those of another model are replaced in the background.
type Embedder struct {
	Model string
	Embed func(ctx context.Context, texts []string) ([][]float32, error)
}

// Bounds of the work with an Embedder.
const (
	embedBatch    = 32          // texts of one call
	embedTimeout  = time.Minute // for one call in the background
	queryTimeout  = 250 * time.Millisecond
	embedPause    = time.Second // after a call that failed; doubles
	maxEmbedPause = 5 * time.Minute
	maxQueryPause = time.Minute
	retryPause    = time.Hour
	warnPause     = 10 * time.Minute // between two warnings
)

// embeddable is a fact or passage with the text that is embedded.
type embeddable struct {
	number uint64
	origin core.Path
	text   string
}

func embeddableAt(t *tx, number uint64) (e embeddable, ok bool) {
	if number < firstPassage {
		f, ok := t.facts().fact(number)
		return embeddable{number, f.Origin, f.Text}, ok
	}
	p, ok := passageTx{t}.passage(number)
	origin, err := sourcePath(p.Source)
	return embeddable{number, origin, p.embedded()}, ok && err == nil
}

// embedWorker gives every fact and passage a vector, in the background. It does not store what is left to do: it looks
// through all of them after each start and each change of the Embedder, and then from the lowest number that is saved.
type embedWorker struct {
	db   *DB
	wake chan struct{} // holds a token while there may be something to do

	mu         sync.Mutex
	*embedding // the current one; mu guards the fields of former ones, too
	warned     time.Time
	unlogged   int // failures since the last warning
}

// embedding is the work with one Embedder, until that is replaced.
type embedding struct {
	Embedder
	life         context.Context
	end          context.CancelFunc // ends life
	length       int                // of the Embedder's vectors; 0: not known yet
	from         uint64             // facts and passages from this number on may need a vector
	size         int                // texts of the next call
	callBackoff  backoff            // after failed calls in the background
	failed       error              // of the last call in the background
	refused      map[uint64]bool    // facts whose call failed although they were alone
	retryRefused time.Time          // when these are tried again
	queryBackoff backoff            // after failed queries
}

// backoff doubles with each failure in a row.
type backoff struct {
	length time.Duration
	until  time.Time
}

func (p *backoff) grow(longest time.Duration) {
	p.length = min(max(2*p.length, embedPause), longest)
	p.until = time.Now().Add(p.length)
}

// SetEmbedder replaces the Embedder, as after a reload of the configuration. It returns at once.
// Vectors of the same model stay; others are replaced in the background.
func (db *DB) SetEmbedder(e Embedder) {
	m := db.embeds
	m.mu.Lock()
	defer m.mu.Unlock()
	m.end()
	m.embedding = &embedding{Embedder: e, size: embedBatch, refused: make(map[uint64]bool)}
	m.life, m.end = context.WithCancel(context.Background())
	loop.Notify(m.wake)
}

// noteSaved is called with facts and passages that may need a vector.
func (m *embedWorker) noteSaved(facts []uint64) {
	if len(facts) == 0 {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, fact := range facts {
		m.from = min(m.from, fact)
		delete(m.refused, fact)
	}
	loop.Notify(m.wake)
}

// step embeds the next facts, and returns when to go on; see loop.Repeat. After a failed call it tries fewer
// texts. A fact that fails alone is refused for a while only: the fault may be the Embedder's.
func (m *embedWorker) step(ctx context.Context) time.Duration {
	m.mu.Lock()
	e := m.embedding
	if len(e.refused) > 0 && !time.Now().Before(e.retryRefused) {
		clear(e.refused)
		e.from = 0
	}
	wait := time.Until(e.callBackoff.until)
	m.mu.Unlock()
	if wait > 0 {
		return wait
	}
	batch := m.nextBatch(ctx, e)
	var err error
	if len(batch) > 0 {
		err = m.embed(ctx, e, batch)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	e.failed = err
	switch {
	case m.embedding != e || ctx.Err() != nil:
		return 0
	case len(batch) == 0:
		e.size, e.callBackoff = embedBatch, backoff{}
		return retryPause
	case err == nil:
		e.size, e.callBackoff = min(2*e.size, embedBatch), backoff{}
		return 0
	}
	m.warn("memories have no vectors yet", err)
	e.callBackoff.grow(maxEmbedPause)
	var failed *llm.Error
	if errors.As(err, &failed) && failed.Kind == llm.ErrorRetryLater { // the texts are not the cause
		return e.callBackoff.length
	}
	if e.size == 1 {
		if len(e.refused) == 0 {
			e.retryRefused = time.Now().Add(retryPause)
		}
		e.refused[batch[0].number] = true
	}
	e.size = max(e.size/2, 1)
	return e.callBackoff.length
}

// nextBatch returns the facts and passages of the next call: those without a vector of the current model.
func (m *embedWorker) nextBatch(ctx context.Context, e *embedding) (batch []embeddable) {
	m.mu.Lock()
	from, length, size, refused := e.from, e.length, e.size, maps.Clone(e.refused)
	e.from = math.MaxUint64 // unless more are saved meanwhile
	m.mu.Unlock()
	defer func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		e.from = min(e.from, from)
	}()
	if e.Embed == nil {
		return nil
	}
	err := m.db.read(ctx, func(v *view) {
		done := v.passagesWithVector(e.Model, length, from)
		for number := range v.numbersFrom(from) {
			if len(batch) == size {
				break
			}
			if done[number] {
				continue
			}
			next, ok := embeddableAt(&v.tx, number)
			if !ok || refused[number] {
				continue
			}
			stored, ok := v.facts().vectorOf(next.origin, number)
			if !ok || stored.model != modelTag(e.Model, cmp.Or(length, len(stored.components))) {
				batch = append(batch, next)
			}
		}
	})
	if err != nil {
		return nil
	}
	from = math.MaxUint64
	if len(batch) > 0 {
		from = batch[0].number
	}
	return batch
}

// numbersFrom iterates over the numbers of facts and then of passages, beginning with from.
func (v *view) numbersFrom(from uint64) iter.Seq[uint64] {
	return func(yield func(uint64) bool) {
		for _, bucket := range []string{bucketFacts, bucketPassages} {
			for k := range v.bucket(bucket).pairs(numberKey(from), nil) {
				if len(k) == 8 && !yield(binary.BigEndian.Uint64(k)) {
					return
				}
			}
		}
	}
}

// passagesWithVector returns the passages, from a number on, that have a vector of a model. If length is 0, the
// first vector of each source tells the length. It reads no passage.
func (v *view) passagesWithVector(model string, length int, from uint64) map[uint64]bool {
	done := make(map[uint64]bool)
	for _, origin := range v.placesIn(bucketDocuments, core.Path{}) {
		dimensions := length
		for number, value := range v.numbers(bucketVectors, placeKey(origin), 0) {
			if one, err := decodeVector(value, number); err == nil && length == 0 {
				dimensions = len(one.components)
			}
			break
		}
		tag := modelTag(model, dimensions) ^ coarseTag
		v.facts().sketches(origin, from, tag, func(number uint64, _ []byte) { done[number] = true })
	}
	return done
}

var errVectors = errors.New("the vectors do not fit the texts")

// embed calls the Embedder for some facts, and stores their vectors. SetEmbedder cancels the call.
func (m *embedWorker) embed(ctx context.Context, e *embedding, batch []embeddable) error {
	texts := make([]string, len(batch))
	for i := range batch {
		texts[i] = batch[i].text
	}
	call, cancel := context.WithTimeout(ctx, embedTimeout)
	defer cancel()
	defer context.AfterFunc(e.life, cancel)()
	vectors, err := callEmbedder(call, e.Embedder, texts)
	if err != nil {
		return err
	}
	length := len(vectors[0].components)
	m.mu.Lock()
	known := e.length
	if known == 0 {
		e.length, e.from = length, 0 // some facts may have vectors of another length
	}
	m.mu.Unlock()
	if known != 0 && known != length {
		return fmt.Errorf("%w: a length of %d after one of %d", errVectors, length, known)
	}
	return m.db.write(ctx, &job{size: len(batch) * length, run: func(t *tx) error {
		for i := range batch {
			now, ok := embeddableAt(t, batch[i].number)
			if ok && now.text == batch[i].text { // it may have changed, or been dropped
				t.facts().putVector(now.origin, now.number, &vectors[i])
			}
		}
		return nil
	}})
}

// callEmbedder returns the vectors of texts. Panics, wrong counts or lengths, and vectors without direction are errors.
func callEmbedder(ctx context.Context, by Embedder, texts []string) (vectors []vector, err error) {
	defer func() {
		p := recover()
		if p != nil {
			err = fmt.Errorf("embedder: panic: %v", p)
		}
	}()
	embeddings, err := by.Embed(ctx, texts)
	if err == nil && len(embeddings) != len(texts) {
		err = fmt.Errorf("%w: %d for %d texts", errVectors, len(embeddings), len(texts))
	}
	if err != nil {
		return nil, err
	}
	for _, e := range embeddings {
		v, ok := quantize(by.Model, e)
		if !ok || len(e) != len(embeddings[0]) {
			return nil, fmt.Errorf("%w: a length of %d, without direction or unlike the others", errVectors, len(e))
		}
		vectors = append(vectors, v)
	}
	return vectors, nil
}

// query returns the vector of a search text; nil if there is no Embedder, or if it does not answer in time. After a
// failure, the Embedder is not called for a while.
func (m *embedWorker) query(ctx context.Context, text string, limit time.Duration) *vector {
	m.mu.Lock()
	e, paused := m.embedding, time.Now().Before(m.queryBackoff.until)
	m.mu.Unlock()
	if e.Embed == nil || paused || text == "" {
		return nil
	}
	call, cancel := context.WithTimeout(ctx, cmp.Or(limit, queryTimeout))
	defer cancel()
	vectors, err := callEmbedder(call, e.Embedder, []string{text})
	if ctx.Err() != nil {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if err != nil {
		e.queryBackoff.grow(maxQueryPause)
		m.warn("memories are searched by words alone", err)
		return nil
	}
	e.queryBackoff = backoff{}
	return &vectors[0]
}

// warn logs a failure, at most once in warnPause. m.mu is held.
func (m *embedWorker) warn(what string, err error) {
	if time.Since(m.warned) < warnPause {
		m.unlogged++
		return
	}
	m.db.log.Warn(what, "model", m.Model, "err", err, "failures", m.unlogged)
	m.warned, m.unlogged = time.Now(), 0
}
