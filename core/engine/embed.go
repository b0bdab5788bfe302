package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"synthbot/core/llm"
)

// Limits of an embedding call.
const (
	embedBatch = 64   // texts in one call
	embedChars = 6000 // characters of a text; the rest is cut off
	embedSizes = 8192 // numbers in the longest accepted vector
)

// Embedder turns texts into vectors. Safe for concurrent use.
type Embedder struct {
	provider
	failed func(engine string, failed *llm.Error)
}

// NewEmbedder makes an Embedder from a table with an embedding_model. The provider must speak the openai API.
func NewEmbedder(cfg Config, o Options) (*Embedder, error) {
	o = o.withDefaults()
	cfg = cfg.withDefaults()
	p, known := presetOf(cfg.Provider)
	switch {
	case !known || p.name == "anthropic":
		return nil, fmt.Errorf("engine %s: provider: %s has no embeddings", cfg.Name, cfg.Provider)
	case cfg.EmbeddingModel == "":
		return nil, fmt.Errorf("engine %s: embedding_model: missing", cfg.Name)
	}
	server, err := newProvider(cfg, p, newTransport(o.Clock))
	if err != nil {
		return nil, fmt.Errorf("engine %s: %w", cfg.Name, err)
	}
	return &Embedder{server, o.Failed}, nil
}

// Embed returns a vector for each text, in the same order. Its errors are *llm.Error.
func (e *Embedder) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	vectors := make([][]float32, 0, len(texts))
	for batch := range slices.Chunk(texts, embedBatch) {
		some, err := e.batch(ctx, batch)
		if err != nil {
			return nil, err
		}
		vectors = append(vectors, some...)
	}
	return vectors, nil
}

func (e *Embedder) batch(ctx context.Context, texts []string) (vectors [][]float32, err error) {
	call, cancel := context.WithTimeout(ctx, e.cfg.Timeout)
	defer cancel()
	response, _, err := e.post(call, "/embeddings", func(body *bytes.Buffer) error {
		return encode(body, map[string]any{"model": e.cfg.EmbeddingModel, "input": shorten(texts)})
	})
	if err == nil {
		defer response.Body.Close()
		vectors, err = readVectors(response, len(texts))
	}
	if err == nil {
		return vectors, nil
	}
	failed := e.failure(call, ctx, err)
	if e.failed != nil && ctx.Err() == nil {
		e.failed(e.cfg.Name, failed)
	}
	return nil, failed
}

// shorten cuts long texts and replaces blank ones, which servers refuse, by a dot.
func shorten(texts []string) []string {
	short := make([]string, len(texts))
	for i, t := range texts {
		t = strings.ToValidUTF8(t, "\uFFFD")
		if utf8.RuneCountInString(t) > embedChars {
			t = string([]rune(t)[:embedChars])
		}
		if strings.TrimSpace(t) == "" {
			t = "."
		}
		short[i] = t
	}
	return short
}

// readVectors reads an answer: n vectors of one length, in the order of the texts.
func readVectors(response *http.Response, n int) ([][]float32, error) {
	data, err := readBody(response)
	if err != nil {
		return nil, err
	}
	var answer struct {
		Data []struct {
			Index     *int      `json:"index"`
			Embedding []float32 `json:"embedding"`
		} `json:"data"`
		Error json.RawMessage `json:"error"`
	}
	if json.Unmarshal(data, &answer) != nil {
		return nil, errNoAnswer
	}
	if isPresent(answer.Error) {
		return nil, parseErrorValue(answer.Error)
	}
	if len(answer.Data) != n {
		return nil, fmt.Errorf("the vectors do not match the texts: %d of %d came", len(answer.Data), n)
	}
	ordered := make([][]float32, n)
	for i, d := range answer.Data {
		at := i
		if d.Index != nil {
			at = *d.Index
		}
		if at < 0 || at >= len(ordered) || ordered[at] != nil {
			at = i // an invalid index: the server uses the order of the texts
		}
		ordered[at] = d.Embedding
	}
	for _, v := range ordered {
		if len(v) == 0 || len(v) > embedSizes || len(v) != len(ordered[0]) {
			return nil, fmt.Errorf("the vectors do not match the texts: a length of %d", len(v))
		}
	}
	return ordered, nil
}
