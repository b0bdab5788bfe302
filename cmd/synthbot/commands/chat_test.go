package commands

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"synthbot/core/coretest"
)

// TestLeavingDoesNotWait checks that `chat` ends soon when its user leaves while the engine works.
func TestLeavingDoesNotWait(t *testing.T) {
	asked := make(chan struct{}, 8)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		asked <- struct{}{}
		<-r.Context().Done()
	}))
	defer server.Close()
	file := filepath.Join(t.TempDir(), "config.toml")
	write(t, file, fmt.Sprintf("[bot]\ndata_dir = \"data\"\n[[engine]]\nprovider = \"vllm\"\nmodel = \"m\"\nbase_url = %q\n", server.URL))
	ctx, leave := context.WithCancel(t.Context())
	over := make(chan int, 1)
	go func() {
		over <- run(ctx, []string{"chat", "-c", file}, strings.NewReader("hello\n"), io.Discard, io.Discard)
	}()
	<-asked
	leave()
	select {
	case status := <-over:
		if status != statusDone {
			t.Errorf("exit status %d", status)
		}
	case <-time.After(coretest.Patience):
		t.Fatal("chat waits for the engine")
	}
}

// TestStatusNamesCause checks that /status names the cause of an engine's failures, and that /why names it for
// a turn that skipped the engine because of them.
func TestStatusNamesCause(t *testing.T) {
	model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, `{"error":{"message":"the card is on fire"}}`, http.StatusInternalServerError)
	}))
	defer model.Close()
	file := filepath.Join(t.TempDir(), "config.toml")
	write(t, file, fmt.Sprintf("[bot]\ndata_dir = \"data\"\n[[engine]]\nprovider = \"vllm\"\nmodel = \"m\"\nbase_url = %q\n", model.URL))
	var said strings.Builder
	in := strings.Repeat("hello\n", 4) + "/status\n/why\n"
	run(t.Context(), []string{"chat", "-c", file}, strings.NewReader(in), &said, io.Discard)
	_, status, _ := strings.Cut(said.String(), "synthbot ")
	for _, want := range []string{"is left alone", "the card is on fire", "not asked: it failed too often in a row, last with"} {
		if !strings.Contains(status, want) {
			t.Errorf("no %q in the output:\n%s", want, status)
		}
	}
}
