package memory

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"synthbot/core"
)

var errVectors = errors.New("the vectors do not fit the texts")

// embed gives some facts their vectors. Its call ends when the Embedder is replaced.
func (m *embedWorker) embed(ctx context.Context, by Embedder, changed int, batch []core.Fact) error {
	texts := make([]string, len(batch))
	for i := range batch {
		texts[i] = batch[i].Text
	}
	call, cancel := context.WithTimeout(ctx, embedTimeout)
	defer cancel()
	m.mu.Lock()
	if m.changed != changed {
		cancel()
	}
	m.cancel = cancel
	m.mu.Unlock()
	embeddings, err := callEmbedder(call, by, texts)
	if err != nil {
		return err
	}
	length := len(embeddings[0])
	vectors := make([]vector, len(batch))
	for i, e := range embeddings {
		v, ok := quantize(by.Model, e)
		if !ok || len(e) != length {
			return fmt.Errorf("%w: a length of %d, without direction or unlike the others", errVectors, len(e))
		}
		vectors[i] = v
	}
	if err := m.setLength(changed, length); err != nil {
		return err
	}
	return m.db.write(ctx, &job{size: len(batch) * length, run: func(t *tx) error {
		for i := range batch {
			number := numberOfFact(&batch[i])
			f, ok, _ := t.facts().fact(number)
			if ok && f.Text == batch[i].Text { // it may have changed, or been dropped
				t.facts().putVector(f.Origin, number, &vectors[i])
			}
		}
		return nil
	}})
}

// callEmbedder calls an Embedder. Its panics and wrong counts are errors.
func callEmbedder(ctx context.Context, by Embedder, texts []string) (embeddings [][]float32, err error) {
	defer func() {
		p := recover()
		if p != nil {
			err = fmt.Errorf("embedder: panic: %v", p)
		}
	}()
	embeddings, err = by.Embed(ctx, texts)
	if err == nil && len(embeddings) != len(texts) {
		err = fmt.Errorf("%w: %d of %d came", errVectors, len(embeddings), len(texts))
	}
	return embeddings, err
}

// setLength stores the length of a model's vectors. All facts are looked at again, since some
// may have vectors of another length.
func (m *embedWorker) setLength(changed, length int) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.changed != changed || m.length == length {
		return nil
	}
	if m.length != 0 {
		return fmt.Errorf("%w: a length of %d after one of %d", errVectors, length, m.length)
	}
	m.length, m.from = length, 0
	return nil
}

// query returns the vector of a search text; ok is false if there is no Embedder, or none
// that answers in time. After a failure it is not called for a while.
func (m *embedWorker) query(ctx context.Context, text string, limit time.Duration) (v vector, ok bool) {
	m.mu.Lock()
	by, changed, shut := m.embedder, m.changed, time.Now().Before(m.queryPause.until)
	m.mu.Unlock()
	if by.Embed == nil || shut || text == "" {
		return vector{}, false
	}
	call, cancel := context.WithTimeout(ctx, cmp.Or(limit, queryTimeout))
	defer cancel()
	embeddings, err := callEmbedder(call, by, []string{text})
	if err == nil {
		if v, ok = quantize(by.Model, embeddings[0]); !ok {
			err = fmt.Errorf("%w: a length of %d, or without direction", errVectors, len(embeddings[0]))
		}
	}
	if ctx.Err() != nil {
		return vector{}, false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case err == nil && m.changed == changed:
		m.queryPause = pause{}
	case err != nil:
		if m.changed == changed {
			m.queryPause.failed(maxQueryPause)
		}
		m.warn("memories are searched by words alone", err)
	}
	return v, ok
}

// warn logs a failure, at most once in warnPause. m.mu is held.
func (m *embedWorker) warn(what string, err error) {
	if !m.warned.IsZero() && time.Since(m.warned) < warnPause {
		m.unlogged++
		return
	}
	m.db.log.Warn(what, "model", m.embedder.Model, "err", err, "failures", m.unlogged)
	m.warned, m.unlogged = time.Now(), 0
}
