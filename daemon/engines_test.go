package daemon

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"synthbot/core"
	"synthbot/core/engine"
	"synthbot/core/llm"
)

// TestQuestionsOfPluginsHoldTheBudget checks that a plugin's question counts against the budget while it is
// being answered.
func TestQuestionsOfPluginsHoldTheBudget(t *testing.T) {
	asked, answer := make(chan struct{}), make(chan struct{})
	var calls atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if calls.Add(1) == 1 {
			close(asked)
			<-answer
		}
		io.WriteString(w, `{"choices":[{"message":{"content":"yes"},"finish_reason":"stop"}]}`)
	}))
	defer server.Close()
	file := filepath.Join(t.TempDir(), "config.toml")
	write(t, file, "[bot]\ndata_dir = \"data\"\n[budget]\nbot_tokens = 300\n[[engine]]\nprovider = \"vllm\"\nmodel = \"m\"\n"+
		"base_url = \""+server.URL+"\"\n")
	e := &Env{File: file, Getenv: func(string) string { return "" }, Clock: time.Now, In: strings.NewReader(""), Out: io.Discard, Err: io.Discard}
	c, err := e.Load()
	if err != nil {
		t.Fatal(err)
	}
	question := core.Question{Path: core.MustPath("console/main"), Build: func(llm.Limits) (llm.Request, error) {
		text := strings.Repeat("word ", 120) // about 200 tokens
		return llm.Request{Messages: []llm.Utterance{{Role: llm.RoleUser, Text: text}}}, nil
	}}
	look := func(b *Bot) error {
		ask := func(plugin string) error {
			_, err := b.host(c, plugin).Asker.Ask(context.Background(), question)
			return err
		}
		first := make(chan error, 1)
		go func() { first <- ask("diary") }()
		<-asked
		err := ask("memory")
		if _, ok := errors.AsType[*engine.SpentError](err); !ok {
			t.Errorf("a second question beside the first: got %v, want a SpentError", err)
		}
		close(answer)
		return <-first
	}
	l := RunOptions{Config: c, Log: e.Logger(c, 0), Interfaces: InspectionInterfaces, Inspect: look}
	if err := e.Run(t.Context(), l); err != nil {
		t.Fatal(err)
	}
}
