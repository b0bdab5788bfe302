package standard

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"synthbot/config"
	"synthbot/core"
	"synthbot/core/coretest"
	"synthbot/core/outbound"
	"synthbot/plugins/plugintest"
)

// others returns actions of another plugin for the scripts.
func others() core.Plugin {
	return coretest.NewPlugin("others",
		core.Action{Name: "records", Do: func(context.Context, core.Call) (core.Result, error) {
			return core.Result{Output: json.RawMessage(`[{"n":1,"eyes":3},{"n":2,"eyes":6}]`)}, nil
		}},
		core.Action{Name: "closed", Permission: core.PermissionAdmins},
	)
}

func TestScripts(t *testing.T) {
	plugintest.Run(t, "testdata/bubble/*.txt", plugintest.Of(New), plugintest.With(others()))
}

func TestLiveScripts(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(server))
	t.Cleanup(srv.Close)
	plugintest.Run(t, "testdata/live/*.txt", plugintest.Of(New), plugintest.Live(),
		plugintest.Var("server", srv.URL), plugintest.Var("key", "s3cret"))
}

// server is an API.
func server(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/api/transactions":
		fmt.Fprintf(w, `{"asked":%q,"transactions":[{"id":"t1","amount":-20},{"id":"t2","amount":5}]}`, r.URL.RawQuery+" key="+r.Header.Get("X-Key"))
	case "/api/pay":
		var body struct{ Amount int }
		_ = json.NewDecoder(r.Body).Decode(&body)
		if body.Amount == 6 || r.Header.Get("Idempotency-Key") == "" {
			panic(http.ErrAbortHandler)
		}
		fmt.Fprintf(w, `{"paid":%d}`, body.Amount)
	default:
		http.Error(w, "no such account", http.StatusNotFound)
	}
}

// everything returns a Config with all actions enabled.
func everything() Config {
	return Config{
		Actions: []string{"display", "notify", "wait", "confirm", "api_call", "speak"},
		APIs:    []API{{Name: "bank", URL: "https://bank.example/v1", Methods: []string{"GET", "POST"}, Confirm: true}},
		Wait:    20 * time.Second, Notices: 10, Admins: "moderators",
	}
}

func TestConform(t *testing.T) {
	plugintest.Conform(t, plugintest.Case{Name: "standard", Make: func(t *testing.T, s *plugintest.Harness) core.Plugin {
		p, err := New(s.Host, everything())
		if err != nil {
			t.Fatal(err)
		}
		return p
	}})
}

func TestConfig(t *testing.T) {
	read := func(text string) (Config, error) {
		var c Config
		err := config.Read("standard.toml", []byte(text), &c, config.Options{})
		return c, err
	}
	if c, err := read(""); err != nil || len(c.Actions) != 1 || c.Actions[0] != "display" {
		t.Errorf("default actions: got %v, %v", c.Actions, err)
	}
	for text, want := range map[string]string{
		`actions = ["api_call"]`:                      "nothing to call",
		`actions = ["wait", "wait"]`:                  "named twice",
		`actions = ["dance"]`:                         "one of",
		"[[api]]\nname = \"A B\"\nurl=\"http://x\"":   "at most 32 letters",
		"[[api]]\nname = \"a\"\nurl=\"ftp://x\"":      "https://host/path",
		"[[api]]\nname = \"a\"\nurl=\"http://u:p@x\"": "must not have a user name, password",
		"[[api]]\nname = \"a\"\nurl=\"http://x\"\n[[api]]\nname = \"a\"\nurl=\"http://x\"": "another api",
		"[[api]]\nname = \"a\"\nurl=\"http://x?y\"":                                        "must not have a user name, password, query",
		"[[api]]\nname = \"a\"\nurl=\"http://x\"\nheaders={\"a b\"=\"x\"}":                 "not a valid header name",
		"[[api]]\nname = \"a\"\nurl=\"http://x\"\nheaders={a=\"x\\ny\"}":                   "line break",
		"[[api]]\nname = \"a\"\nurl=\"http://x\"\nallow=[\"10.0.0.1/99\"]":                 "write an address",
		"[speech]\ncommand = [\"x\"]":                                                      "speech.command: has moved to speech.out.program",
		"[[api]]\nname = \"a\"\nurl=\"http://x\"\nmethods=[\"TRACE\"]":                     "one of",
	} {
		if _, err := read(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
}

// TestEndpoints checks that requests are sent only below the API's URL.
func TestEndpoints(t *testing.T) {
	for _, tc := range []struct{ base, endpoint, want string }{
		{"https://bank.example", "/transactions", "https://bank.example/transactions"},
		{"https://bank.example/v1", "/transactions?x=1", "https://bank.example/v1/transactions?q=a+b&x=1"},
		{"https://bank.example/v1/", "transactions", "https://bank.example/v1/transactions"},
		{"https://bank.example/v1", "https://bank.example/v1/a%20b", "https://bank.example/v1/a%20b"},
		{"https://bank.example/v1", "/a#b", "https://bank.example/v1/a"},
		{"https://bank.example/v1", "?x=1", "https://bank.example/v1/?x=1"},
		{"https://bank.example/v1", "/a%252e%252e/b", "https://bank.example/v1/a%252e%252e/b"},
		{"https://bank.example/v1", "https://bank.example/v10/a", ""},
		{"https://bank.example/v1", "https://bank.example/", ""},
		{"https://bank.example/v1", "http://bank.example/v1/a", ""},
		{"https://bank.example/v1", "https://bank.example:444/v1/a", ""},
		{"https://bank.example/v1", "https://evil.example/v1/a", ""},
		{"https://bank.example/v1", "https://bank.example@evil.example/v1/a", ""},
		{"https://bank.example/v1", "//evil.example/v1/a", ""},
		{"https://bank.example/v1", "/../admin", ""},
		{"https://bank.example/v1", "..", ""},
		{"https://bank.example/v1", "/a/../../admin", ""},
		{"https://bank.example/v1", "/%2e%2e/admin", ""},
		{"https://bank.example/v1", "/a%2f..%2f..%2fadmin", ""},
		{"https://bank.example/v1", `/..\..\admin`, ""},
		{"https://bank.example/v1", `\\evil.example\a`, ""},
		{"https://bank.example/v1", "/a\x00b", ""},
		{"https://bank.example/v1", "/%00", ""},
		{"https://bank.example/v1", "javascript:alert(1)", ""},
		{"https://bank.example/v1", "file:///etc/passwd", ""},
	} {
		a, err := newAPI(&API{Name: "bank", URL: tc.base})
		if err != nil {
			t.Fatal(err)
		}
		r := &request{Endpoint: tc.endpoint}
		if strings.Contains(tc.want, "q=") {
			r.Query = map[string]json.RawMessage{"q": json.RawMessage(`"a b"`)}
		}
		got, err := a.url(r)
		if tc.want == "" && err == nil || tc.want != "" && (err != nil || got.String() != strings.Replace(tc.want, "/v1/?", "/v1?", 1) && got.String() != tc.want) {
			t.Errorf("%s below %s: got %v, %v", tc.endpoint, tc.base, got, err)
		}
	}
}

func FuzzEndpoint(f *testing.F) {
	for _, e := range []string{"/a", "//x/a", "https://bank.example/v1/a", "/%2e%2e/", "?a=b"} {
		f.Add(e)
	}
	a, err := newAPI(&API{Name: "bank", URL: "https://bank.example/v1"})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, endpoint string) {
		u, err := a.url(&request{Endpoint: endpoint})
		if err != nil {
			return
		}
		again, err := url.Parse(u.String())
		if err != nil || again.Scheme != "https" || again.Host != "bank.example" || again.Path != "/v1" && !strings.HasPrefix(again.Path, "/v1/") ||
			strings.Contains(again.Path+"/", "/../") {
			t.Errorf("%q is resolved to %s", endpoint, u)
		}
	})
}

// failingMessenger is a Messenger that cannot send files.
type failingMessenger struct {
	core.Messenger
	err error
}

func (m failingMessenger) SendFile(context.Context, core.Deliveries, int, core.Sent, core.Upload) error {
	return m.err
}

func TestPicturesThatCannotBeSentAreWords(t *testing.T) {
	for _, tc := range []struct {
		err  error
		next int
		fail bool
	}{
		{nil, 0, false},
		{core.Errorf(core.Broken, "This place takes no files."), 1, false},
		{core.Errorf(core.Temporary, "Later."), 0, true},
		{errors.New("odd"), 0, true},
	} {
		s := plugintest.NewHarness(t, "standard")
		s.Host.Messenger = failingMessenger{s.Host.Messenger, tc.err}
		p, err := New(s.Host, Config{Actions: []string{"display"}})
		if err != nil {
			t.Fatal(err)
		}
		a := p.Actions()[0]
		c := coretest.Call(&a, core.MustPath("room/1"), core.Author{ID: "jay"}, json.RawMessage(`{"content":{"a":1,"b":2},"format":"chart"}`))
		r, err := a.Do(t.Context(), c)
		if (err != nil) != tc.fail || len(r.Next) != tc.next {
			t.Errorf("%v: got %+v, %v", tc.err, r, err)
		}
		if tc.next > 0 && !strings.Contains(string(r.Next[0].Payload), "Bar chart") {
			t.Errorf("got %s", r.Next[0].Payload)
		}
	}
}

// TestLatest checks that a display without content shows the last completed output of its turn.
func TestLatest(t *testing.T) {
	s := plugintest.NewHarness(t, "standard")
	p, err := New(s.Host, Config{})
	if err != nil {
		t.Fatal(err)
	}
	turn := core.TurnID{Path: core.MustPath("room/1"), Seq: 3}
	at := func(round, step, part uint16) core.Key {
		return core.Key{Turn: turn, Round: round, Step: step, Part: part}
	}
	record := func(k core.Key, progress core.Progress, seconds int, output string) core.Record {
		o := core.Outcome{Action: "a", Result: core.Result{Output: json.RawMessage(output)}}
		return core.Record{Key: k, Progress: progress, Time: s.Clock().Add(time.Duration(seconds) * time.Second),
			Data: core.JSON(o)}
	}
	other := record(at(1, 1, 0), core.ProgressDone, 90, `"another turn"`)
	other.Key.Turn.Seq = 4
	batch := core.Batch{Journal: []core.Record{
		record(at(1, 1, 0), core.ProgressDone, 20, `"later"`), record(at(1, 2, 0), core.ProgressDone, 10, `"earlier"`),
		record(at(1, 3, 0), core.ProgressFailed, 30, `"taken back"`), record(at(1, 4, 0), core.ProgressDone, 40, ""),
		record(at(1, 1, 1), core.ProgressDone, 50, `"a part"`), record(at(1, 0, 0), core.ProgressAccepted, 60, `"the plan"`), record(at(1, 5, 0), core.ProgressDone, 70, `"itself"`), other,
	}}
	if err := s.DB.Commit(t.Context(), &batch); err != nil {
		t.Fatal(err)
	}
	if got, err := p.lastOutput(t.Context(), at(1, 5, 0)); err != nil || string(got) != `"later"` {
		t.Errorf("got %s, %v", got, err)
	}
	if got, err := p.lastOutput(t.Context(), core.Key{Turn: core.TurnID{Path: turn.Path, Seq: 9}}); err != nil ||
		got != nil {
		t.Errorf("turn without outputs: got %s, %v", got, err)
	}
}

// TestReadingOnly checks that a read-only API offers no changing methods and needs no confirmation.
func TestReadingOnly(t *testing.T) {
	for _, tc := range []struct {
		methods    []string
		confirm    bool
		permission string
		actions    int
		want       core.Permission
	}{
		{[]string{"GET"}, true, "admins", 1, core.PermissionAdmins},
		{[]string{"GET", "POST"}, true, "everyone", 2, core.PermissionEveryone},
		{[]string{"GET", "POST"}, false, "moderators", 1, core.PermissionModerators},
	} {
		p, err := New(plugintest.NewHarness(t, "standard").Host, Config{
			Actions: []string{"api_call"}, APIs: []API{{Name: "a", URL: "http://a.example", Methods: tc.methods, Confirm: tc.confirm, Permission: tc.permission, Allow: []outbound.Peer{}}},
		})
		if err != nil {
			t.Fatal(err)
		}
		list := p.Actions()
		if len(list) != tc.actions || list[0].Permission != tc.want || list[0].Confirm || tc.actions > 1 &&
			!list[1].Confirm {
			t.Errorf("%+v: got %d actions, %s", tc, len(list), list[0].Permission)
		}
	}
}
