package engine

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"synthbot/core/llm"
	"synthbot/core/secret"
)

func (s *server) embedder() *Embedder {
	e, err := NewEmbedder(Config{Name: "test", Provider: "ollama", BaseURL: s.URL, EmbeddingModel: "nomic", APIKey: secret.New(testKey), Timeout: 5 * time.Second}, Options{})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(e.transport.close)
	return e
}

func TestEmbedInTheOrderOfTheTexts(t *testing.T) {
	s := newServer(t, body(200, `{"data":[{"index":1,"embedding":[2,2]},{"index":2,"embedding":[3,3]},{"index":0,"embedding":[1,1.5]}]}`))
	got, err := s.embedder().Embed(bounded(t), []string{"a", " ", strings.Repeat("é", 10_000)})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([][]float32{{1, 1.5}, {2, 2}, {3, 3}}, got); diff != "" {
		t.Error(diff)
	}
	sent := s.last()
	input := sent.body["input"].([]any)
	if sent.path != "/v1/embeddings" || sent.body["model"] != "nomic" || input[1] != "." || len([]rune(input[2].(string))) != embedChars {
		t.Errorf("got %s %.300s", sent.path, sent.raw)
	}
	s.say(body(200, `{"data":[{"embedding":[1]},{"embedding":[2]}]}`))
	if got, err := s.embedder().Embed(bounded(t), []string{"a", "b"}); err != nil || got[1][0] != 2 {
		t.Errorf("got %v, %v", got, err)
	}
	const parts = `{"data":[{"index":0,"embedding":[1]},{"index":1,"embedding":[2]},` +
		`{"index":0,"embedding":[3]},{"index":1,"embedding":[4]}]}` // the server counts within batches of its own
	s.say(body(200, parts))
	got, err = s.embedder().Embed(bounded(t), []string{"a", "b", "c", "d"})
	if diff := cmp.Diff([][]float32{{1}, {2}, {3}, {4}}, got); err != nil || diff != "" {
		t.Error(diff, err)
	}
}

func TestEmbedInBatches(t *testing.T) {
	var s *server
	s = newServer(t, func(w http.ResponseWriter, r *http.Request) {
		n := len(s.last().body["input"].([]any))
		var list []string
		for i := range n {
			list = append(list, fmt.Sprintf(`{"index":%d,"embedding":[%d]}`, i, len(s.got())*1000+i))
		}
		fmt.Fprintf(w, `{"data":[%s]}`, strings.Join(list, ","))
	})
	texts := make([]string, 2*embedBatch+1)
	for i := range texts {
		texts[i] = "x"
	}
	got, err := s.embedder().Embed(bounded(t), texts)
	if err != nil || len(got) != len(texts) || len(s.got()) != 3 || got[embedBatch+1][0] != 2001 {
		t.Errorf("got %d vectors in %d calls, %v", len(got), len(s.got()), err)
	}
	if got, err := s.embedder().Embed(bounded(t), nil); err != nil || len(got) != 0 {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestEmbedFailures(t *testing.T) {
	for name, tc := range map[string]struct {
		answer http.HandlerFunc
		kind   llm.ErrorKind
	}{
		"limited":     {body(429, `{"error":{"message":"slow down `+testKey+`"}}`), llm.ErrorRetryLater},
		"key":         {body(401, `{}`), llm.ErrorFatal},
		"too few":     {body(200, `{"data":[{"index":0,"embedding":[1]}]}`), llm.ErrorRetryLater},
		"not alike":   {body(200, `{"data":[{"index":0,"embedding":[1]},{"index":1,"embedding":[1,2]}]}`), llm.ErrorRetryLater},
		"empty":       {body(200, `{"data":[]}`), llm.ErrorRetryLater},
		"no vectors":  {body(200, `{"data":[{"embedding":null},{"embedding":"x"}]}`), llm.ErrorRetryLater},
		"error":       {body(200, `{"error":{"message":"no such model","type":"not_found_error"}}`), llm.ErrorFatal},
		"html":        {body(200, `<html>`), llm.ErrorRetryLater},
		"double":      {body(200, `{"data":[{"index":0,"embedding":[1]},{"index":0,"embedding":[]}]}`), llm.ErrorRetryLater},
		"far too far": {body(200, `{"data":[{"index":99,"embedding":[1]},{"index":-1,"embedding":[]}]}`), llm.ErrorRetryLater},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, tc.answer)
			_, err := s.embedder().Embed(bounded(t), []string{"a", "b"})
			failed, ok := err.(*llm.Error)
			if !ok || failed.Kind != tc.kind || strings.Contains(err.Error(), testKey) {
				t.Errorf("got %v", err)
			}
		})
	}
	for _, c := range []Config{{Provider: "anthropic", EmbeddingModel: "x"}, {Provider: "ollama"}, {Provider: "offline", EmbeddingModel: "x"}} {
		if _, err := NewEmbedder(c, Options{}); err == nil {
			t.Errorf("%+v is accepted", c)
		}
	}
}
