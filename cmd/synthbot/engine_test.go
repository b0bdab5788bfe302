package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
)

// modelServer speaks as an OpenAI-compatible server does; reply is the plan.
func modelServer(t *testing.T, reply string) (url string, asked *[]string) {
	asked = new([]string)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
		if err != nil {
			t.Error(err)
		}
		*asked = append(*asked, string(body))
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"choices":[{"message":{"role":"assistant","content":%q},"finish_reason":"stop"}],"usage":{"prompt_tokens":900,"completion_tokens":100}}`, reply)
	}))
	t.Cleanup(server.Close)
	return server.URL, asked
}

func TestModelOverHTTP(t *testing.T) {
	url, asked := modelServer(t, `{"response":"Hello from the model.","intent":"greeting"}`)
	dir := t.TempDir()
	file := filepath.Join(dir, "config.toml")
	write(t, file, fmt.Sprintf(`
[bot]
data_dir = "data"
[[engine]]
name = "home"
provider = "vllm"
model = "m"
base_url = %q
price_in = 1.0
stream = false
[budget]
person_tokens = 2400
`, url))
	out, errs, status := chatting(t, "hello\nhello again\n", "-c", file)
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if status != 0 || len(lines) != 2 || lines[0] != "Hello from the model." {
		t.Fatalf("status %d, says %q, errors %q", status, out, errs)
	}
	if !strings.Contains(lines[1], "share of my thinking") {
		t.Errorf("with the budget spent it says %q", lines[1])
	}
	if len(*asked) != 1 || !strings.Contains((*asked)[0], "You are Aria") {
		t.Errorf("the model was asked %q", *asked)
	}
	var o, e bytes.Buffer
	if status := run(t.Context(), []string{"usage", "-c", file}, nil, &o, &e); status != 0 || !strings.Contains(o.String(), "home      1  900       0  100  0.0009") {
		t.Errorf("usage: status %d\n%s%s", status, o.String(), e.String())
	}
}
