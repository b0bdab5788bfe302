package blueprint

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"synthbot/core"
	"synthbot/core/coretest"
	"synthbot/core/outbound"
	"synthbot/core/secret"
	"synthbot/plugins/plugintest"
)

const tools = `{"name":"sum","description":"x","inputSchema":{"type":"object","properties":{"a":{},"target":{}}},"outputSchema":{"type":"array"}},
	{"name":"item","description":"x","inputSchema":{"type":"object"},"endpoint":{"path":"/items/{id}","method":"get"}},
	{"name":"put","description":"x","inputSchema":{"type":"object"},"endpoint":{"path":"/items/{id}","method":"PUT"}}`

// plugin returns a plugin with the tools, whose agent is at a server.
func plugin(t *testing.T, s Source) *Plugin {
	t.Helper()
	if s.Path == "" {
		s.Path = file(t, with(tools))
	}
	p, err := New(plugintest.NewHarness(t, "blueprint").Host, Config{Sources: []Source{s}})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// use calls an action.
func use(t *testing.T, p *Plugin, name, payload string) (core.Result, error) {
	t.Helper()
	for _, a := range p.Actions() {
		if a.Name == name {
			c := coretest.Call(&a, core.MustPath("room/1"), core.Author{ID: "jay"}, json.RawMessage(payload))
			return a.Do(t.Context(), c)
		}
	}
	t.Fatalf("no action %s", name)
	return core.Result{}, nil
}

// serve starts a server and allows the loopback address.
func serve(t *testing.T, h http.HandlerFunc) Source {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	local, err := outbound.ParsePeer("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	return Source{URL: srv.URL + "/v1", Allow: []outbound.Peer{local}, Permission: "everyone", MaxBody: 256 << 10}
}

func TestRequests(t *testing.T) {
	var got string
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got = fmt.Sprintf("%s %s %s %s", r.Method, r.URL.RequestURI(), r.Header.Get("X-Key"), body)
		if len(r.Header.Get("Idempotency-Key")) != 32 {
			t.Error("the request has no idempotency key")
		}
		_, _ = io.WriteString(w, `{"success":true,"output":[1]}`)
	})
	s.Headers = map[string]secret.Secret{"X-Key": secret.New("s3cret")}
	p := plugin(t, s)
	for _, tc := range []struct{ tool, payload, want string }{
		{"sum", `{"a":1}`, `POST /v1 s3cret {"tool":"sum","input":{"a":1}}`},
		{"sum", `{"a":1,"target":"/x"}`, `POST /v1 s3cret {"tool":"sum","input":{"a":1,"target":"/x"}}`},
		{"item", `{"id":"a/b?c","n":2,"q":"x y"}`, `GET /v1/items/a%2Fb%3Fc?n=2&q=x+y s3cret `},
		{"put", `{"id":7,"n":{"a":1}}`, `PUT /v1/items/7 s3cret {"n":{"a":1}}`},
	} {
		if _, err := use(t, p, tc.tool, tc.payload); err != nil || got != tc.want {
			t.Errorf("%s %s: %q, %v", tc.tool, tc.payload, got, err)
		}
	}
	for id, want := range map[string]string{"..": "", ".": "", "%2e%2e": "GET /v1/items/%252e%252e s3cret "} {
		got = ""
		if _, err := use(t, p, "item", fmt.Sprintf(`{"id":%q}`, id)); (err == nil) != (want != "") || got != want {
			t.Errorf("%q: got %q, %v", id, got, err)
		}
	}
	for payload, want := range map[string]string{`{}`: "id is missing", `{"n":1}`: "id is missing", `{"id":""}`: "id must not be empty", `{"id":null}`: "id must not be empty"} {
		got = ""
		if _, err := use(t, p, "item", payload); err == nil || !strings.Contains(err.Error(), want) || got != "" {
			t.Errorf("%s: got %q, %v", payload, got, err)
		}
	}
	s.Context = true
	s.Path = file(t, strings.Replace(with(tools), `"endpoint":"https`, `"endpoints":{"invoke":{"path":"call/me","method":"patch"}},"endpoint":"https`, 1))
	if _, err := use(t, plugin(t, s), "sum", `{}`); err != nil || got != `PATCH /v1/call/me s3cret {"tool":"sum","input":{},"context":{"userId":"room/@user/jay","sessionId":"room/1"}}` {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestAnswers(t *testing.T) {
	var code int
	var body string
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "7")
		w.WriteHeader(code)
		_, _ = io.WriteString(w, body)
	})
	p := plugin(t, s)
	for _, tc := range []struct {
		tool string
		code int
		body string
		want string
		kind core.ErrorKind
	}{
		{"sum", 200, `{"success":true,"output":[1,2]}`, `[1,2]`, ""},
		{"sum", 200, `[1,2]`, `[1,2]`, ""},
		{"sum", 200, `{"success":true}`, `{"done":true}`, ""},
		{"sum", 200, `{"success":true,"output":null}`, `{"done":true}`, ""},
		{"sum", 204, ``, `{"done":true}`, ""},
		{"sum", 200, "plain\nwords", `"plain\nwords"`, ""},
		{"sum", 200, `{"output":1}`, `{"output":1}`, ""},
		{"item", 200, `{"success":true,"output":[1,2]}`, `{"success":true,"output":[1,2]}`, ""}, // the whole response is the output
		{"sum", 200, "\xff\xfe", "neither JSON nor text", core.Broken},
		{"sum", 200, strings.Repeat("[", 200) + strings.Repeat("]", 200), "too deep", core.Broken},
		{"sum", 200, `{"success":true,"output":` + strings.Repeat("[", 200) + strings.Repeat("]", 200) + `}`, "too deep", core.Broken},
		{"sum", 200, `{"success":false,"error":{"code":"INVALID_INPUT","message":"Status must be\n one of pending."}}`, "x says: Status must be one of pending.", core.Invalid},
		{"sum", 200, `{"success":false,"error":{"code":"RATE_LIMITED"}}`, "x says: rate limited", core.Temporary},
		{"sum", 429, `{"success":false,"error":{"code":"X","message":"slow"}}`, "x says: slow", core.Temporary},
		{"item", 422, `{"success":false,"error":{"code":"X","message":"bad"}}`, "x says: bad", core.Invalid},
		{"sum", 400, `oops`, "refused that (400)", core.Invalid},
		{"sum", 403, ``, "does not permit that", core.Forbidden},
		{"sum", 503, ``, "is busy", core.Temporary},
		{"sum", 500, ``, "internal error", core.Temporary},
		{"sum", 200, strings.Repeat("x", 300<<10), "too large", core.Broken},
	} {
		code, body = tc.code, tc.body
		r, err := use(t, p, tc.tool, `{"id":"1"}`)
		var e *core.Error
		switch {
		case tc.kind == "" && (err != nil || string(r.Output) != tc.want):
			t.Errorf("%d %s: got %s, %v", tc.code, tc.body, r.Output, err)
		case tc.kind != "" && (!errors.As(err, &e) || e.Kind != tc.kind || !strings.Contains(e.Text, tc.want)):
			t.Errorf("%d %.50s: got %v, want %s", tc.code, tc.body, err, tc.want)
		case tc.kind == core.Temporary && tc.code != 500 && tc.code != 200 && e.After != 7*time.Second:
			t.Errorf("%d: got a pause of %s", tc.code, e.After)
		}
	}
}

func TestRedirectsStay(t *testing.T) {
	hits := 0
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { hits++ }))
	defer other.Close()
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
	})
	if _, err := use(t, plugin(t, s), "sum", `{}`); err == nil || hits > 0 {
		t.Errorf("redirects were followed %d times: %v", hits, err)
	}
}

func TestSlowAgents(t *testing.T) {
	end := make(chan struct{})
	s := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-end:
		case <-r.Context().Done():
		}
	})
	defer close(end)
	s.Timeout = 30 * time.Millisecond
	var e *core.Error
	if _, err := use(t, plugin(t, s), "sum", `{}`); !errors.As(err, &e) || e.Kind != core.Temporary {
		t.Errorf("got %v", err)
	}
}

func TestShown(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `[{"b":1,"a":2}]`) })
	for show, want := range map[bool]int{true: 1, false: 0} {
		s.Show = show
		r, err := use(t, plugin(t, s), "sum", `{}`)
		if err != nil || len(r.Next) != want {
			t.Errorf("show = %t: got %+v, %v", show, r, err)
		}
		if want > 0 && (r.Next[0].Type != "display" || string(r.Next[0].Payload) != `{"content":[{"b":1,"a":2}]}`) {
			t.Errorf("got %s", r.Next[0].Payload)
		}
	}
	s.Show = true
	if r, err := use(t, plugin(t, s), "item", `{"id":"1"}`); err != nil || len(r.Next) > 0 {
		t.Errorf("without an outputSchema: got %+v, %v", r, err)
	}
}

func TestPrograms(t *testing.T) {
	script := func(text string) Source {
		return Source{Command: []string{"sh", "-c", text}, Env: map[string]secret.Secret{"KEY": secret.New("s3cret")}}
	}
	for _, tc := range []struct {
		s    Source
		want string
		kind core.ErrorKind
	}{
		{script(`cat`), `{"tool":"sum","input":{"a":1}}`, ""},
		{script(`cat >/dev/null; printf '{"success":true,"output":["%s",%d]}' $KEY ${#KEY}`), `["[secret]",6]`, ""}, // the program has the secret, and its output is redacted
		{script(`echo '{"success":false,"error":{"code":"INVALID_INPUT","message":"no"}}'; exit 1`), "x says: no", core.Invalid},
		{script(`echo oops; exit 1`), "The program failed", core.Broken},
		{script(`exit 1`), "The program failed", core.Broken},
		{Source{Command: []string{"/nowhere"}}, "cannot be started", core.Broken},
	} {
		r, err := use(t, plugin(t, tc.s), "sum", `{"a":1}`)
		var e *core.Error
		if tc.kind == "" && (err != nil || string(r.Output) != tc.want) || tc.kind != "" && (!errors.As(err, &e) || e.Kind != tc.kind || !strings.Contains(e.Text, tc.want)) {
			t.Errorf("%v: got %s, %v", tc.s.Command, r.Output, err)
		}
	}
}

func TestPace(t *testing.T) {
	now := time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)
	p := &pace{limits: limits{Minute: 2, Hour: 3}, clock: func() time.Time { return now }}
	for i, tc := range []struct {
		later time.Duration
		wait  time.Duration
	}{
		{0, 0}, {10 * time.Second, 0}, {10 * time.Second, 40 * time.Second}, {40 * time.Second, 0},
		{5 * time.Minute, 54 * time.Minute}, {54 * time.Minute, 0},
	} {
		now = now.Add(tc.later)
		err := p.take()
		var e *core.Error
		if errors.As(err, &e); (err != nil) != (tc.wait > 0) || e != nil && e.After != tc.wait {
			t.Errorf("%d: got %+v", i, err)
		}
	}
	for range 1000 {
		if err := (&pace{clock: time.Now}).take(); err != nil {
			t.Fatal(err)
		}
	}
}
