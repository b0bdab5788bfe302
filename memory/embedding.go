package memory

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

var errVectors = errors.New("the vectors do not fit the texts")

// embed gives some facts their vectors.
func (m *meaning) embed(ctx context.Context, by Embedder, changed int, batch []wanted) error {
	texts := make([]string, len(batch))
	for i := range batch {
		texts[i] = batch[i].fact.Text
	}
	embeddings, err := m.call(ctx, by, changed, texts)
	if err != nil {
		return err
	}
	vectors := make([]vector, len(batch))
	for i, e := range embeddings {
		v, ok := shrink(by.Model, e)
		if !ok || len(e) != len(embeddings[0]) {
			return fmt.Errorf("%w: a length of %d, without direction or unlike the others", errVectors, len(e))
		}
		vectors[i] = v
	}
	if err := m.learn(ctx, by.Model, len(embeddings[0])); err != nil {
		return err
	}
	err = m.db.write(ctx, &job{size: len(batch) * len(embeddings[0]), run: func(t *tx) error {
		for i := range batch {
			t.means(batch[i], &vectors[i])
		}
		return nil
	}})
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, w := range batch {
		delete(m.waiting, w.number)
	}
	return nil
}

// means keeps a vector, unless the fact went or changed meanwhile.
func (t *tx) means(w wanted, v *vector) {
	f, ok, _ := t.fact(w.fact.ID)
	if ok && f.Text == w.fact.Text {
		t.putVector(f.Origin, w.number, v)
	}
}

// call asks the Embedder, until it is exchanged.
func (m *meaning) call(ctx context.Context, by Embedder, changed int, texts []string) ([][]float32, error) {
	ctx, cancel := context.WithTimeout(ctx, embedTime)
	defer cancel()
	m.mu.Lock()
	if m.changed != changed {
		cancel()
	}
	m.cancel = cancel
	m.mu.Unlock()
	return askFor(ctx, by, texts)
}

// askFor asks an Embedder. What it does wrong is an error.
func askFor(ctx context.Context, by Embedder, texts []string) (embeddings [][]float32, err error) {
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

// inUse is what the file says of its vectors.
type inUse struct {
	Model  string `json:"model"`
	Length int    `json:"length"`
}

const metaVectors = "vectors"

// learn notes the length of a model's vectors. One that differs from what was
// known lets the file be looked through again.
func (m *meaning) learn(ctx context.Context, model string, length int) error {
	m.mu.Lock()
	known, sure := m.length, m.sure
	m.mu.Unlock()
	switch {
	case known == length && sure:
		return nil
	case sure:
		return fmt.Errorf("%w: a length of %d after one of %d", errVectors, length, known)
	}
	value, err := json.Marshal(inUse{model, length})
	if err != nil {
		return fmt.Errorf("vectors: %w", err)
	}
	err = m.db.write(ctx, &job{run: func(t *tx) error {
		t.bucket(bucketMeta).Put([]byte(metaVectors), value)
		return nil
	}})
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.by.Model != model {
		return nil
	}
	m.length, m.sure = length, true
	if known != length {
		m.look, m.from = true, 0
	}
	return nil
}

// recallLength reads what was learnt in a former life.
func (m *meaning) recallLength(ctx context.Context) {
	m.mu.Lock()
	known := m.length > 0
	m.mu.Unlock()
	if known {
		return
	}
	var use inUse
	err := m.db.view(ctx, func(v *view) error {
		value := v.bucket(bucketMeta).Get([]byte(metaVectors))
		if value != nil {
			return json.Unmarshal(value, &use)
		}
		return nil
	})
	m.mu.Lock()
	defer m.mu.Unlock()
	if err == nil && m.length == 0 && use.Model == m.by.Model {
		m.length = use.Length
	}
}

// query turns what is looked for into a vector; ok is false where there is no
// Embedder, or it does not answer in time: then the words must do. After a
// failure it is left alone for a while.
func (m *meaning) query(ctx context.Context, text string, limit time.Duration) (v vector, ok bool) {
	m.mu.Lock()
	by, changed, shut := m.by, m.changed, time.Now().Before(m.shut.until)
	m.mu.Unlock()
	if by.Embed == nil || shut || text == "" {
		return vector{}, false
	}
	call, cancel := context.WithTimeout(ctx, cmp.Or(limit, queryTime))
	defer cancel()
	embeddings, err := askFor(call, by, []string{text})
	if err == nil {
		if v, ok = shrink(by.Model, embeddings[0]); !ok {
			err = fmt.Errorf("%w: a length of %d, or without direction", errVectors, len(embeddings[0]))
		}
	}
	if ctx.Err() != nil {
		return vector{}, false
	}
	m.mu.Lock()
	if m.changed == changed {
		if err == nil {
			m.shut = pause{}
		} else {
			m.shut.failed(queryPauses)
		}
	}
	m.mu.Unlock()
	if err != nil {
		m.complain("memories are searched by words alone", err)
	}
	return v, ok
}

// complain tells of failures, now and then.
func (m *meaning) complain(what string, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.told.IsZero() && time.Since(m.told) < embedTold {
		m.silent++
		return
	}
	m.db.log.Warn(what, "model", m.by.Model, "err", err, "failures", m.silent)
	m.told, m.silent = time.Now(), 0
}
