package blueprint

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"synthbot/core"
	"synthbot/core/secret"
)

const toolToken = "a token of sufficient length"

// serving returns a server with one tool, which call implements.
func serving(call func(input string) (string, error)) *Server {
	return &Server{
		Log: slog.New(slog.DiscardHandler), Version: "1.2.3",
		Conf: func() Serving { return Serving{Token: secret.New(toolToken)} },
		Offer: func(context.Context) ([]core.Action, error) {
			return []core.Action{{Name: "brew", Brief: "Brew tea", Schema: json.RawMessage(`{"type":"object"}`), Effects: core.EffectNone}}, nil
		},
		Call: func(_ context.Context, _ string, input json.RawMessage) (json.RawMessage, error) {
			out, err := call(string(input))
			return json.RawMessage(out), err
		},
	}
}

// fetched sends a request and returns the status, the headers and the body.
func fetched(t *testing.T, s *Server, method, path, token, body string) (int, http.Header, string) {
	t.Helper()
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	if token != "" {
		r.Header.Set("Authorization", token)
	}
	w := httptest.NewRecorder()
	s.Handler("127.0.0.1:8790").ServeHTTP(w, r)
	answer, err := io.ReadAll(w.Result().Body)
	if err != nil {
		t.Fatal(err)
	}
	return w.Code, w.Result().Header, strings.TrimSpace(string(answer))
}

func TestServeAnswers(t *testing.T) {
	echo := func(input string) (string, error) { return input, nil }
	fails := func(err error) func(string) (string, error) {
		return func(string) (string, error) { return "", err }
	}
	brew, right := "/tools/brew", "Bearer "+toolToken
	for name, tc := range map[string]struct {
		method, path, token, body string
		call                      func(string) (string, error)
		status                    int
		want                      string
	}{
		"a call":            {"POST", brew, right, `{"cups":2}`, echo, 200, `{"cups":2}`},
		"an empty body":     {"POST", brew, right, "", echo, 200, `{}`},
		"no output":         {"POST", brew, right, "", fails(nil), 200, `null`},
		"no token":          {"POST", brew, "", "{}", echo, 401, "UNAUTHORIZED"},
		"another token":     {"POST", brew, right + "x", "{}", echo, 401, "UNAUTHORIZED"},
		"half a token":      {"POST", brew, right[:12], "{}", echo, 401, "UNAUTHORIZED"},
		"no list for all":   {"GET", "/tools", "", "", echo, 401, "UNAUTHORIZED"},
		"an unknown tool":   {"POST", "/tools/bake", right, "{}", echo, 404, "NOT_FOUND"},
		"another method":    {"GET", brew, right, "", echo, 404, "NOT_FOUND"},
		"another page":      {"GET", "/", right, "", echo, 404, "NOT_FOUND"},
		"no JSON":           {"POST", brew, right, "{} {}", echo, 400, "INVALID_INPUT"},
		"too deep":          {"POST", brew, right, strings.Repeat("[", 99) + strings.Repeat("]", 99), echo, 400, "INVALID_INPUT"},
		"the largest input": {"POST", brew, right, `"` + strings.Repeat("x", maxInput-2) + `"`, fails(nil), 200, "null"},
		"too large":         {"POST", brew, right, `"` + strings.Repeat("x", maxInput-1) + `"`, echo, 413, "too large"},
		"an invalid input":  {"POST", brew, right, "{}", fails(core.Errorf(core.Invalid, "no cups")), 400, `{"error":{"code":"INVALID_INPUT","message":"no cups"},"success":false}`},
		"forbidden":         {"POST", brew, right, "{}", fails(core.Errorf(core.Forbidden, "no")), 403, "FORBIDDEN"},
		"too often":         {"POST", brew, right, "{}", fails(&core.Error{Kind: core.Occupied, After: 1500 * time.Millisecond}), 429, "RATE_LIMIT"},
		"later":             {"POST", brew, right, "{}", fails(core.Errorf(core.Temporary, "later")), 503, "UNAVAILABLE"},
		"broken":            {"POST", brew, right, "{}", fails(core.Errorf(core.Broken, "no")), 500, "FAILED"},
		"unknown outcome":   {"POST", brew, right, "{}", fails(core.Errorf(core.Unsure, "?")), 500, "OUTCOME_UNKNOWN"},
		"a wrong output":    {"POST", brew, right, "{}", fails(core.Errorf(core.Mismatch, "?")), 502, "OUTPUT_MISMATCH"},
		"another kind":      {"POST", brew, right, "{}", fails(core.Errorf("odd", "?")), 500, "FAILED"},
		"an inner error":    {"POST", brew, right, "{}", fails(errors.New("secret detail")), 500, "That did not work."},
	} {
		status, head, body := fetched(t, serving(tc.call), tc.method, tc.path, tc.token, tc.body)
		if status != tc.status || !strings.Contains(body, tc.want) || strings.Contains(body, "secret") || !json.Valid([]byte(body)) {
			t.Errorf("%s: got %d %s", name, status, body)
		}
		if (head.Get("Retry-After") == "2") != (status == 429) || (head.Get("WWW-Authenticate") != "") != (status == 401) || head.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s: got %v", name, head)
		}
	}
	shut := serving(echo)
	shut.Conf = func() Serving { return Serving{} } // a reload has removed the table
	if status, _, _ := fetched(t, shut, "POST", brew, "Bearer ", "{}"); status != 401 {
		t.Errorf("without a configured token: status %d", status)
	}
}

// TestServeCatalogue checks that the list of tools is a blueprint with each tool's endpoint.
func TestServeCatalogue(t *testing.T) {
	status, _, body := fetched(t, serving(nil), "GET", "/tools", "Bearer "+toolToken, "")
	b, err := Read([]byte(body))
	if status != 200 || err != nil {
		t.Fatalf("status %d, %s (%v)", status, body, err)
	}
	tool := b.Tools[0]
	if b.Endpoint != "http://127.0.0.1:8790" || b.Version != "1.2.3" || tool.Endpoint.Path != "/tools/brew" || tool.Endpoint.Method != "POST" || !tool.Annotations.ReadOnly {
		t.Errorf("got %+v, %+v", b, tool)
	}
}

func TestServeConfig(t *testing.T) {
	good := Serving{
		Listen: "127.0.0.1:8790", Token: secret.New(toolToken), As: core.MustPath("room/@user/1"), Place: core.MustPath("room/1"), Actions: []string{"brew"},
	}
	for want, change := range map[string]func(*Serving){
		"":        func(*Serving) {},
		"token":   func(s *Serving) { s.Token = secret.New("short") },
		"as":      func(s *Serving) { s.As = core.MustPath("room/1") },
		"place":   func(s *Serving) { s.Place = core.MustPath("other/1") },
		"actions": func(s *Serving) { s.Actions = nil },
	} {
		s, got := good, ""
		change(&s)
		s.Check(func(_ string, at ...any) { got += at[0].(string) })
		if got != want {
			t.Errorf("fault at %q, want %q", got, want)
		}
		s.Listen, got = "", ""
		if s.Check(func(_ string, at ...any) { got += at[0].(string) }); got != "" {
			t.Errorf("disabled, but with a fault at %q", got)
		}
	}
}
