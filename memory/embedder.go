package memory

import (
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"sync"
	"time"

	"synthbot/core"
	"synthbot/core/llm"
)

// Embedder turns texts into vectors, so that facts are found by what they mean;
// the zero Embedder is none. Embed returns a vector for each text, in their
// order; it is safe for concurrent use and ends when its context does. Model
// names what makes the vectors: those of different models are never compared,
// and what another one made is made anew, in the background.
type Embedder struct {
	Model string
	Embed func(ctx context.Context, texts []string) ([][]float32, error)
}

// Bounds of the work with an Embedder.
const (
	embedBatch  = 32          // texts of one call
	embedTime   = time.Minute // for one call in the background
	queryTime   = 250 * time.Millisecond
	embedPause  = time.Second // after a call that failed; doubles
	embedPauses = 5 * time.Minute
	queryPauses = time.Minute
	embedLook   = 2000 // facts looked at in one view
	maxWaiting  = 4096 // facts that are known to need a vector; beyond, the file is looked through
	embedAgain  = time.Hour
	embedTold   = 10 * time.Minute // between two lines of log about failures
)

// meaning is the work of giving every fact its vector. What is still to be done
// is not stored: facts that have none are found by looking through the file,
// after each start and each change of the Embedder; those that are saved
// meanwhile announce themselves.
type meaning struct {
	db   *DB
	wake chan struct{} // one token while there may be something to do

	mu      sync.Mutex
	by      Embedder
	changed int                // how often by was exchanged
	cancel  context.CancelFunc // ends the last call
	length  int                // of the vectors of by; 0: not known yet
	sure    bool               // that length was seen in this life
	waiting map[uint64]bool    // facts that may need a vector
	look    bool               // the file is to be looked through
	from    uint64             // from that fact on
	refused map[uint64]bool    // facts that the Embedder will not take

	shut   pause // of queries
	told   time.Time
	silent int // failures since the last line of log
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

// SetEmbedder exchanges the Embedder, as after a reload of the configuration.
// It returns at once. The same model keeps the vectors that are there; the
// vectors of another one are made anew in the background.
func (db *DB) SetEmbedder(e Embedder) {
	m := db.meaning
	m.mu.Lock()
	defer m.mu.Unlock()
	m.by, m.changed = e, m.changed+1
	m.length, m.sure = 0, false
	m.waiting, m.refused = make(map[uint64]bool), make(map[uint64]bool)
	m.look, m.from, m.shut = e.Embed != nil, 0, pause{}
	if m.cancel != nil {
		m.cancel()
	}
	m.poke()
}

func (m *meaning) poke() {
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// saved tells that facts may need a vector.
func (m *meaning) saved(facts []uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.by.Embed == nil || len(facts) == 0 {
		return
	}
	for _, fact := range facts {
		if len(m.waiting) >= maxWaiting {
			m.look, m.from = true, 0
			break
		}
		m.waiting[fact] = true
		delete(m.refused, fact)
	}
	m.poke()
}

// begin starts to work in the background.
func (m *meaning) begin(ctx context.Context, by Embedder) {
	m.db.SetEmbedder(by)
	m.db.work.Go(func() {
		again := time.NewTicker(embedAgain)
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

// retryRefused has what was refused tried again: the fault may have been the
// other side's.
func (m *meaning) retryRefused() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.refused) > 0 && m.by.Embed != nil {
		clear(m.refused)
		m.look, m.from = true, 0
	}
}

// wanted is a fact without a vector.
type wanted struct {
	number uint64
	fact   core.Fact
}

// embedAll works until every fact has its vector. Where a call fails, fewer
// texts are tried; a fact that fails alone, by its own fault as it seems, is
// left out.
func (m *meaning) embedAll(ctx context.Context) {
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
		case m.isOver(changed):
			size, rest = embedBatch, pause{}
			continue
		}
		m.complain("memories have no vectors yet", err)
		if !passes(err) {
			if size == 1 {
				m.refuse(batch[0].number)
			}
			size = max(size/2, 1)
		}
		rest.failed(embedPauses)
		m.wait(ctx, rest.length, changed)
	}
}

// passes reports whether an error will pass by itself, whatever the texts.
func passes(err error) bool {
	var e *llm.Error
	return errors.As(err, &e) && e.Kind == llm.ErrorRetryLater
}

// isOver reports whether the Embedder was exchanged meanwhile.
func (m *meaning) isOver(changed int) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.changed != changed
}

func (m *meaning) refuse(fact uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.refused) < maxWaiting {
		m.refused[fact] = true
	}
	delete(m.waiting, fact)
}

// wait pauses until the Embedder is exchanged at the latest.
func (m *meaning) wait(ctx context.Context, d time.Duration, changed int) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	for !m.isOver(changed) {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
			return
		case <-m.wake: // for a new fact, or a new Embedder
		}
	}
}

// next collects facts without a vector of the current model, at most size.
func (m *meaning) next(ctx context.Context, size int) (batch []wanted, by Embedder, changed int) {
	if m.isIdle() {
		return nil, Embedder{}, 0
	}
	m.recallLength(ctx)
	for {
		m.mu.Lock()
		by, changed = m.by, m.changed
		tag, more := modelTag(by.Model, m.length), m.look
		if m.length == 0 {
			tag = 0
		}
		some := make([]uint64, 0, len(m.waiting))
		for fact := range m.waiting {
			some = append(some, fact)
		}
		m.mu.Unlock()
		slices.Sort(some)
		batch = m.pick(ctx, some, tag, size)
		if len(batch) > 0 || !more || by.Embed == nil || !m.lookOn(ctx, tag) {
			return batch, by, changed
		}
	}
}

// isIdle reports whether there is no Embedder.
func (m *meaning) isIdle() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.by.Embed == nil
}

// pick reads the facts that need a vector indeed, and forgets the others.
func (m *meaning) pick(ctx context.Context, facts []uint64, tag uint32, size int) (batch []wanted) {
	var settled []uint64
	err := m.db.view(ctx, func(v *view) error {
		for _, number := range facts {
			if len(batch) == size {
				break
			}
			f, ok, _ := v.fact(factID(number))
			if ok && v.lacks(f.Origin, number, tag) {
				batch = append(batch, wanted{number, f})
			} else {
				settled = append(settled, number)
			}
		}
		return nil
	})
	if err != nil {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, number := range settled {
		delete(m.waiting, number)
	}
	return batch
}

// lacks reports whether a fact has no vector of that model.
func (t *tx) lacks(origin core.Path, fact uint64, tag uint32) bool {
	value := t.bucket(bucketVectors).Get(seqKey(placeKey(origin), fact))
	return len(value) < vectorHeader || binary.BigEndian.Uint32(value) != tag
}

// lookOn looks through a part of the file; false when it failed.
func (m *meaning) lookOn(ctx context.Context, tag uint32) bool {
	m.mu.Lock()
	from, changed := m.from, m.changed
	m.mu.Unlock()
	var found []uint64
	next, more := from, false
	err := m.db.view(ctx, func(v *view) error {
		c := v.bucket(bucketFacts).Cursor()
		n := 0
		for k, value := c.Seek(binary.BigEndian.AppendUint64(nil, from)); len(k) == 8; k, value = c.Next() {
			next = binary.BigEndian.Uint64(k)
			if n++; n > embedLook {
				more = true
				break
			}
			if f, err := decodeFact(k, value); err == nil && v.lacks(f.Origin, next, tag) {
				found = append(found, next)
			}
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
	}
	m.look, m.from = more, next
	return true
}
