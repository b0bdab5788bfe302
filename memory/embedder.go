package memory

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"synthbot/core"
	"synthbot/core/llm"
)

// Embedder turns texts into vectors, so that facts are found by their meaning; the zero
// Embedder does nothing. Embed returns a vector for each text, in order; it is safe for
// concurrent use and ends with its context. Vectors of different models are never compared:
// those of another model are replaced in the background.
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
	scanStep      = 2000 // facts looked at in one view
	maxWaiting    = 4096 // facts in the list of those without a vector; beyond, the file is scanned
	retryPause    = time.Hour
	warnPause     = 10 * time.Minute // between two warnings
)

// embedWorker gives every fact a vector, in the background. What is left to do is not
// stored: the file is scanned after each start and each change of the Embedder, and facts
// saved meanwhile are added to a list.
type embedWorker struct {
	db   *DB
	wake chan struct{} // holds a token while there may be something to do

	mu       sync.Mutex
	embedder Embedder
	changed  int                // how often the Embedder was replaced
	cancel   context.CancelFunc // ends the last call
	length   int                // of the Embedder's vectors; 0: not known yet
	waiting  map[uint64]bool    // facts that may need a vector
	scan     bool               // the file is to be scanned
	scanFrom uint64             // from this fact on
	refused  map[uint64]bool    // facts that the Embedder will not take

	queryPause pause // of queries
	warned     time.Time
	unlogged   int // failures since the last warning
}

// pause doubles with each failure in a row.
type pause struct {
	length time.Duration
	until  time.Time
}

func (p *pause) failed(longest time.Duration) {
	p.length = min(max(2*p.length, embedPause), longest)
	p.until = time.Now().Add(p.length)
}

// SetEmbedder replaces the Embedder, as after a reload of the configuration. It returns at
// once. Vectors of the same model stay; others are replaced in the background.
func (db *DB) SetEmbedder(e Embedder) {
	m := db.embeds
	m.mu.Lock()
	defer m.mu.Unlock()
	m.embedder, m.changed = e, m.changed+1
	m.length = 0
	m.waiting, m.refused = make(map[uint64]bool), make(map[uint64]bool)
	m.scan, m.scanFrom, m.queryPause = e.Embed != nil, 0, pause{}
	if m.cancel != nil {
		m.cancel()
	}
	m.signal()
}

func (m *embedWorker) signal() {
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// saved adds facts that may need a vector.
func (m *embedWorker) saved(facts []uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.embedder.Embed == nil || len(facts) == 0 {
		return
	}
	for _, fact := range facts {
		if len(m.waiting) >= maxWaiting {
			m.scan, m.scanFrom = true, 0
			break
		}
		m.waiting[fact] = true
		delete(m.refused, fact)
	}
	m.signal()
}

// start starts the work in the background.
func (m *embedWorker) start(ctx context.Context, by Embedder) {
	m.db.SetEmbedder(by)
	m.db.work.Go(func() {
		again := time.NewTicker(retryPause)
		defer again.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-again.C:
				m.retryRefused()
			case <-m.wake:
			}
			m.embedAll(ctx)
		}
	})
}

// retryRefused tries refused facts again: the fault may have been the Embedder's.
func (m *embedWorker) retryRefused() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.refused) > 0 && m.embedder.Embed != nil {
		clear(m.refused)
		m.scan, m.scanFrom = true, 0
	}
}

// wanted is a fact without a vector.
type wanted struct {
	number uint64
	fact   core.Fact
}

// embedAll works until every fact has a vector. After a call that failed it tries fewer
// texts; a fact that fails alone is refused.
func (m *embedWorker) embedAll(ctx context.Context) {
	var rest pause
	size := embedBatch
	for ctx.Err() == nil {
		batch, by, changed := m.next(ctx, size)
		if len(batch) == 0 {
			return
		}
		err := m.embed(ctx, by, changed, batch)
		switch {
		case err == nil:
			size, rest = min(2*size, embedBatch), pause{}
			continue
		case ctx.Err() != nil:
			return
		case m.isReplaced(changed):
			size, rest = embedBatch, pause{}
			continue
		}
		m.warn("memories have no vectors yet", err)
		if !isTemporary(err) {
			if size == 1 {
				m.refuse(batch[0].number)
			}
			size = max(size/2, 1)
		}
		rest.failed(maxEmbedPause)
		m.wait(ctx, rest.length, changed)
	}
}

// isTemporary reports whether an error does not depend on the texts.
func isTemporary(err error) bool {
	var e *llm.Error
	return errors.As(err, &e) && e.Kind == llm.ErrorRetryLater
}

// isReplaced reports whether the Embedder was replaced meanwhile.
func (m *embedWorker) isReplaced(changed int) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.changed != changed
}

func (m *embedWorker) refuse(fact uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.refused) < maxWaiting {
		m.refused[fact] = true
	}
	delete(m.waiting, fact)
}

// wait waits for d, or until the Embedder is replaced.
func (m *embedWorker) wait(ctx context.Context, d time.Duration, changed int) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	for !m.isReplaced(changed) {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
			return
		case <-m.wake: // for a new fact, or a new Embedder
		}
	}
}

// next lists up to size facts without a vector of the current model.
func (m *embedWorker) next(ctx context.Context, size int) (batch []wanted, by Embedder, changed int) {
	for {
		m.mu.Lock()
		by, changed = m.embedder, m.changed
		length, look, facts := m.length, m.scan, slices.Sorted(maps.Keys(m.waiting))
		m.mu.Unlock()
		if by.Embed == nil {
			return nil, by, changed
		}
		batch = m.pick(ctx, facts, size, by.Model, length)
		if len(batch) > 0 || !look || !m.scanOn(ctx) {
			return batch, by, changed
		}
	}
}

// pick reads the facts that need a vector and removes the others from the list.
func (m *embedWorker) pick(ctx context.Context, facts []uint64, size int, model string, length int) (batch []wanted) {
	var drop []uint64
	err := m.db.view(ctx, func(v *view) error {
		for _, number := range facts {
			if len(batch) == size {
				break
			}
			f, ok, _ := v.facts().fact(number)
			if ok && !v.facts().hasVector(f.Origin, number, model, length) {
				batch = append(batch, wanted{number, f})
			} else {
				drop = append(drop, number)
			}
		}
		return nil
	})
	if err != nil {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, number := range drop {
		delete(m.waiting, number)
	}
	return batch
}

// hasVector reports whether a fact has a vector of that model and length; 0: of any length.
func (t factTx) hasVector(origin core.Path, fact uint64, model string, length int) bool {
	v, ok := t.vectorOf(origin, fact)
	return ok && v.model == modelTag(model, cmp.Or(length, len(v.digits)))
}

// scanOn adds the facts of the next part of the file; false if it cannot be read.
func (m *embedWorker) scanOn(ctx context.Context) bool {
	m.mu.Lock()
	from, changed := m.scanFrom, m.changed
	m.mu.Unlock()
	var found []uint64
	err := m.db.view(ctx, func(v *view) error {
		for k := range v.bucket(bucketFacts).pairs(binary.BigEndian.AppendUint64(nil, from), nil) {
			if len(k) != 8 || len(found) == scanStep {
				break
			}
			found = append(found, binary.BigEndian.Uint64(k))
		}
		return nil
	})
	m.mu.Lock()
	defer m.mu.Unlock()
	if err != nil || m.changed != changed {
		return err == nil
	}
	for _, fact := range found {
		if !m.refused[fact] {
			m.waiting[fact] = true
		}
		m.scanFrom = fact + 1
	}
	m.scan = len(found) == scanStep
	return true
}
