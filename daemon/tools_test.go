package daemon

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"synthbot/core"
	"synthbot/core/coretest"
	"synthbot/plugins/blueprint"
)

const toolToken = "a token of sufficient length"

// serveTools serves the actions of a bot with the configuration. It returns the address.
func serveTools(t *testing.T, table string) (address string) {
	t.Helper()
	b := assembled(t, table+`
[interfaces.console]
enabled = true
[plugins.memory]
[plugins.games]
[plugins.blueprint.serve]
listen = "127.0.0.1:0"
token = "`+toolToken+`"
as = "console/@user/jay"
place = "console/main"
actions = ["dice_roll", "memory_*", "web_*", "confirm", "poll", "message_*"]
`)
	s := &toolServer{b, make(chan struct{}, maxToolCalls)}
	server := httptest.NewUnstartedServer(nil)
	server.Config.Handler = s.handler(server.Listener.Addr())
	server.Start()
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

func askTool(t *testing.T, method, address, host, body string) (int, string) {
	t.Helper()
	r, err := http.NewRequest(method, "http://"+address, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+toolToken)
	r.Host = host
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(answer)
}

// TestTools checks that other programs can call the actions that the user may cause in the place, with the
// checks of turns.
func TestTools(t *testing.T) {
	at := serveTools(t, "")
	status, body := askTool(t, "GET", at+"/tools", "", "")
	list, err := blueprint.Read([]byte(body))
	if status != 200 || err != nil {
		t.Fatalf("%d %s (%v)", status, body, err)
	}
	var names []string
	for i := range list.Tools {
		names = append(names, list.Tools[i].Name)
	}
	for name, want := range map[string]bool{"dice_roll": true, "memory_search": true, "random_choice": false, "confirm": false, "message_console": false} {
		if slices.Contains(names, name) != want {
			t.Errorf("%s: offered = %t, want %t", name, !want, want)
		}
	}
	for _, tc := range []struct {
		tool, body string
		status     int
		want       string
	}{
		{"dice_roll", `{"dice":"2d6"}`, 200, `"total"`},
		{"dice_roll", `{"dice":[]}`, 400, "payload.dice"},
		{"random_choice", `{"options":["a","b"]}`, 404, "NOT_FOUND"},
		{"message_console", `{"text":"hi"}`, 404, "NOT_FOUND"},
		{"memory_search", `{"query":"tea"}`, 200, ""},
	} {
		status, body := askTool(t, "POST", at+"/tools/"+tc.tool, "", tc.body)
		if status != tc.status || !strings.Contains(body, tc.want) {
			t.Errorf("%s %s: got status %d, %s, want %d, %q", tc.tool, tc.body, status, body, tc.status, tc.want)
		}
	}
	if status, _ := askTool(t, "GET", at+"/tools", "evil.example", ""); status != http.StatusMisdirectedRequest {
		t.Errorf("another host name: got status %d, want %d", status, http.StatusMisdirectedRequest)
	}
}

// TestToolsOfADeniedUser checks that a user who is denied access has no tools.
func TestToolsOfADeniedUser(t *testing.T) {
	at := serveTools(t, "[access]\ndeny = [\"console/@user/jay\"]\n")
	for _, r := range [][2]string{{"GET", "/tools"}, {"POST", "/tools/dice_roll"}} {
		if status, body := askTool(t, r[0], at+r[1], "", "{}"); status != http.StatusForbidden {
			t.Errorf("%s: got %d %s", r, status, body)
		}
	}
}

// TestToolsForAnotherBot checks that another bot can use the list of tools as a blueprint.
func TestToolsForAnotherBot(t *testing.T) {
	at := serveTools(t, "")
	_, list := askTool(t, "GET", at+"/tools", "", "")
	file := filepath.Join(t.TempDir(), "ai-tools.json")
	write(t, file, list)
	b := assembled(t, `
[[plugins.blueprint.source]]
path = "`+file+`"
prefix = "other."
allow = ["`+at+`"]
headers = {Authorization = "Bearer `+toolToken+`"}
`)
	d, ok := b.InForce().Snapshot.Resolve("other.dice_roll")
	if !ok {
		t.Fatal("the other bot lacks the action other.dice_roll")
	}
	call := core.Call{Path: core.MustPath("console/main"), Payload: json.RawMessage(`{"dice":"1d1"}`), Planned: time.Now()}
	result, err := d.Do(t.Context(), call)
	if err != nil || !strings.Contains(string(result.Output), `"total":1`) {
		t.Errorf("got %s, %v", result.Output, err)
	}
	call.Payload = json.RawMessage(`{"dice":[]}`)
	if _, err := d.Do(t.Context(), call); err == nil || !strings.Contains(err.Error(), "payload.dice") {
		t.Errorf("invalid input: got %v, want a fault of payload.dice", err)
	}
}

// TestToolCalls checks the outcomes of calls, that calls cannot send messages, that each has a key of its own,
// and that their number at the same time is limited.
func TestToolCalls(t *testing.T) {
	b := assembled(t, "[interfaces.console]\nenabled = true\n[plugins.blueprint.serve]\nlisten = \"127.0.0.1:0\"\ntoken = \""+toolToken+
		"\"\nas = \"console/@user/jay\"\nplace = \"console/main\"\nactions = [\"*\"]\n[access]\nmoderators = [\"console/@user/jay\"]\n")
	keys := make(map[core.Key]bool)
	begun, release := make(chan bool, maxToolCalls), make(chan bool)
	act := func(name string, p core.Permission, do func(context.Context, core.Call) (core.Result, error)) core.Action {
		return core.Action{
			Name: name, Brief: "Try " + name, Schema: json.RawMessage(`{"type":"object"}`), Permission: p, Effects: core.EffectNone,
			Examples: core.Examples{Examples: []core.Example{core.NewExample("Always", `{}`)}}, Do: do,
		}
	}
	wrong := act("wrong", core.PermissionEveryone, func(context.Context, core.Call) (core.Result, error) { return core.Output("text"), nil })
	wrong.Output = json.RawMessage(`{"type":"object"}`)
	p := *b.InForce()
	err := p.collectActions(coretest.NewPlugin("tries", wrong,
		act("send", core.PermissionModerators, func(ctx context.Context, c core.Call) (core.Result, error) {
			return core.Result{}, c.Deliveries.Send(ctx, 1, core.Sent{}, func(context.Context, string) (string, error) { panic("a tool call sent a message") })
		}),
		act("rule", core.PermissionAdmins, nil),
		act("note", core.PermissionEveryone, func(_ context.Context, c core.Call) (core.Result, error) {
			if keys[c.Key] || c.Author.ID != "jay" || !c.Private {
				t.Errorf("call: got %+v, want a new key and the private place of jay", c)
			}
			keys[c.Key] = true
			return core.Result{}, nil
		}),
		act("hold", core.PermissionEveryone, func(context.Context, core.Call) (core.Result, error) {
			begun <- true
			<-release
			return core.Result{}, nil
		})))
	if err != nil {
		t.Fatal(err)
	}
	b.parts.Store(&p)
	s := &toolServer{b, make(chan struct{}, maxToolCalls)}
	server := httptest.NewServer(s.handler(&net.TCPAddr{}))
	defer server.Close()
	at := strings.TrimPrefix(server.URL, "http://") + "/tools/"
	for _, tc := range []struct {
		tool   string
		status int
	}{{"wrong", 502}, {"send", 403}, {"rule", 404}, {"note", 200}, {"note", 200}} {
		if status, body := askTool(t, "POST", at+tc.tool, "", ""); status != tc.status {
			t.Errorf("%s: got status %d, %s, want %d", tc.tool, status, body, tc.status)
		}
	}
	var calls sync.WaitGroup
	for range maxToolCalls {
		calls.Go(func() { askTool(t, "POST", at+"hold", "", "") })
	}
	for range maxToolCalls {
		<-begun
	}
	if status, body := askTool(t, "POST", at+"note", "", ""); status != http.StatusTooManyRequests {
		t.Errorf("one call too many: status %d, %s", status, body)
	}
	close(release)
	calls.Wait()
}
