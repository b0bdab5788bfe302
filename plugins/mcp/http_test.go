package mcp

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"synthbot/core"
	"synthbot/core/secret"
)

// remote returns the configuration of a server at a URL.
func remote(url string) Server {
	return Server{
		Name: "test", URL: url, Headers: map[string]secret.Secret{"X-Key": secret.New("s3cr3t-token")},
		Timeout: time.Minute, Start: time.Minute,
	}
}

// serve serves the good server over HTTP, behind the handler that before returns.
func serve(t *testing.T, before func(next http.Handler) http.Handler) *httptest.Server {
	t.Helper()
	good := goodServer("good")
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return good }, nil)
	s := httptest.NewServer(before(handler))
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
		for session := range good.Sessions() {
			_ = session.Close() // the client may have closed it
		}
	})
	return s
}

func asIs(next http.Handler) http.Handler { return next }

func TestHTTP(t *testing.T) {
	keys := make(chan string, 100)
	s := serve(t, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			select {
			case keys <- r.Header.Get("X-Key"):
			default:
			}
			next.ServeHTTP(w, r)
		})
	})
	b := start(t, nil, remote(s.URL))
	b.there("test_echo")
	if out := b.must("test_echo", `{"text":"over HTTP"}`); !strings.Contains(out, "over HTTP") {
		t.Error(out)
	}
	b.must("test_grow", `{}`)
	b.there("test_grown")
	b.end()
	for range len(keys) {
		if key := <-keys; key != "s3cr3t-token" {
			t.Errorf("request header: got %q", key)
		}
	}
	if strings.Contains(b.log.String(), "s3cr3t") {
		t.Error(b.log)
	}
}

func TestHTTPHangs(t *testing.T) {
	t.Parallel()
	s := serve(t, asIs)
	conf := remote(s.URL)
	conf.Timeout = time.Second
	b := start(t, nil, conf)
	b.there("test_hang")
	if _, err := b.call("test_hang", `{}`); err == nil {
		t.Error("no error")
	}
	b.must("test_echo", `{"text":"still there"}`)
}

// TestHTTPDies checks that a server's actions are removed when it is unreachable, and return with it.
func TestHTTPDies(t *testing.T) {
	t.Parallel()
	first := serve(t, asIs)
	tune := func(p *times) { p.probeEvery, p.probeTimeout = 50*time.Millisecond, 2*time.Second }
	b := start(t, tune, remote(first.URL))
	b.there("test_echo")
	address := first.Listener.Addr().String()
	first.CloseClientConnections()
	first.Close()
	b.gone()
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Skip("another process uses the port")
	}
	again := &httptest.Server{Listener: listener, Config: &http.Server{Handler: mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return goodServer("good") }, nil)}}
	again.Start()
	t.Cleanup(func() { again.CloseClientConnections(); again.Close() })
	b.there("test_echo")
	b.must("test_echo", `{"text":"again"}`)
	b.end()
}

// TestHTTPRedirect checks that headers, which may contain secrets, are not sent to the target of a redirect.
func TestHTTPRedirect(t *testing.T) {
	t.Parallel()
	var reached atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Add(1) }))
	defer other.Close()
	s := httptest.NewServer(http.RedirectHandler(other.URL, http.StatusTemporaryRedirect))
	defer s.Close()
	b := start(t, nil, remote(s.URL))
	b.says("mcp server is gone", 2)
	b.end()
	if reached.Load() > 0 {
		t.Error("the redirect was followed")
	}
}

// broken returns a handler that works until the tools are listed, and then calls then.
func broken(then http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(io.LimitReader(r.Body, 1<<20))
		id, found := idOf(string(body))
		w.Header().Set("Content-Type", "application/json")
		switch {
		case r.Method != http.MethodPost:
			http.Error(w, "no", http.StatusMethodNotAllowed)
		case strings.Contains(string(body), `"server/discover"`):
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}`, id)
		case strings.Contains(string(body), `"initialize"`):
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"x","version":"1"}}}`, id)
		case strings.Contains(string(body), `"tools/list"`):
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"one","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}]}}`, id)
		case strings.Contains(string(body), `"tools/call"`):
			then(w, r)
		case found:
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{}}`, id)
		default:
			w.WriteHeader(http.StatusAccepted)
		}
	}
}

func idOf(body string) (string, bool) {
	_, rest, found := strings.Cut(body, `"id":`)
	end := strings.IndexAny(rest, ",}")
	if !found || end < 0 {
		return "null", false
	}
	return rest[:end], true
}

func TestHTTPBroken(t *testing.T) {
	t.Parallel()
	endless := func(kind, chunk string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", kind)
			for r.Context().Err() == nil {
				if _, err := io.WriteString(w, strings.Repeat(chunk, 1000)); err != nil {
					return
				}
			}
		}
	}
	for name, tc := range map[string]struct {
		then http.HandlerFunc
		dies bool
	}{
		"an error":          {func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusServiceUnavailable) }, false},
		"an inner error":    {func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusInternalServerError) }, false},
		"no JSON":           {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") }, true},
		"endless JSON":      {endless("application/json", "[[[[[[[["), true},
		"an endless stream": {endless("text/event-stream", ": x\n\n"), true},
		"an endless event":  {endless("text/event-stream", "data: xxxxxxxx"), true},
		"another type":      {func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Type", "image/png") }, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewServer(broken(tc.then))
			t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
			b := start(t, nil, remote(s.URL))
			b.there("test_one")
			_, err := b.call("test_one", `{}`)
			var e *core.Error
			if !errors.As(err, &e) || e.Kind != core.Temporary {
				t.Errorf("got %v", err)
			}
			if tc.dies {
				b.gone()
			}
			b.there("test_one")
		})
	}
}

// TestHTTPSilentStream checks that a server whose stream never begins does not block its start.
func TestHTTPSilentStream(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			<-r.Context().Done()
			return
		}
		broken(nil)(w, r)
	}))
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	conf := remote(s.URL)
	conf.Start = 300 * time.Millisecond
	b := start(t, nil, conf)
	b.says("mcp server is gone", 1)
	b.end()
}
