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

// TestLeavingDoesNotWait: who leaves while the engine thinks is let go soon, and
// their message waits for the next time.
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
			t.Errorf("it ended with %d", status)
		}
	case <-time.After(coretest.Patience):
		t.Fatal("it waits for the engine")
	}
}
