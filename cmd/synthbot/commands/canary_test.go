package commands

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"synthbot/core/secret"
	"synthbot/daemon"
	"synthbot/interfaces/telegram/telegramtest"
)

// canarySecret returns the secret for a placeholder of the configuration below.
func canarySecret(name string) string { return "Zq7CANARY" + name + "x9Kd" }

// canaryConfig sets every secret that a file can hold. {ECHO} is the URL of an echoServer.
const canaryConfig = `
[bot]
data_dir = "data"
admins = ["telegram/@user/1000"]
[log]
level = "DEBUG"
[admin]
listen = "{PAGE}"
[metrics]
listen = "{METRICS}"
[[engine]]
provider = "openai"
model = "m"
base_url = "{ECHO}/v1"
api_key = "{engine}"
stream = false
[interfaces.telegram]
token = "{TOKEN}"
api_url = "{TELEGRAM}"
pace = "off"
[interfaces.spare]
type = "telegram"
token = "110201543:{telegram}"
api_url = "{ECHO}"
[interfaces.dead]
type = "telegram"
token = "110201543:{dead}"
api_url = "http://127.0.0.1:1"
[interfaces.hook]
type = "telegram"
token = "110201543:{hooktoken}"
api_url = "{ECHO}"
[interfaces.hook.webhook]
url = "https://bot.example.org/hook"
listen = "127.0.0.1:0"
secret = "{hook}"
[interfaces.discord]
token = "{discord}"
api_url = "{ECHO}"
[plugins.standard]
actions = ["display", "api_call", "speak"]
[[plugins.standard.api]]
name = "bank"
url = "{ECHO}/bank"
headers = {X-Key = "{api}"}
allow = ["127.0.0.1"]
[speech.in]
provider = "openai"
base_url = "{ECHO}/v1"
api_key = "{speechin}"
[speech.out]
provider = "openai"
base_url = "{ECHO}/v1"
api_key = "{speechout}"
when = "always"
[plugins.web]
searxng = "{ECHO}/search"
searxng_headers = {X-Key = "{searx}"}
[plugins.blueprint.serve]
listen = "127.0.0.1:0"
token = "{toolstoken}"
as = "telegram/@user/1000"
place = "telegram/1000"
actions = ["*"]
[[plugins.blueprint.source]]
path = "ask.json"
headers = {X-Key = "{blueprint}"}
url = "{ECHO}/agent"
allow = ["127.0.0.1"]
[[plugins.blueprint.source]]
path = "run.json"
command = ["/bin/sh", "-c", "env; echo tool-was-run >&2; env >&2; exit 3"]
env = {KEY = "{blueprintenv}"}
[[plugins.mcp.server]]
name = "far"
url = "{ECHO}/mcp"
headers = {X-Key = "{mcp}"}
[[plugins.mcp.server]]
name = "near"
command = ["/bin/sh", "-c", "echo server-was-run >&2; env; env >&2; exit 3"]
env = {KEY = "{mcpenv}"}
`

const blueprintFormat = `{"name":"%[1]s","type":"agent","version":"1.0.0","description":"Tools.","endpoint":"https://a.example","endpoints":{"invoke":{"path":"/invoke"}},` +
	`"capabilities":{"tools":[{"name":"%[1]s","description":"Look something up.","inputSchema":{"type":"object","properties":{}},"annotations":{"readOnlyHint":true}}]}}`

// echoServer fails every request with a response that repeats the request line and its headers. A chat
// completion for a message of the form "do ACTION" succeeds with that action.
type echoServer struct {
	*httptest.Server
	mu      sync.Mutex
	heard   string // request lines and headers
	prompts string
}

func newEchoServer(t *testing.T) *echoServer {
	p := &echoServer{}
	p.Server = httptest.NewServer(http.HandlerFunc(p.answer))
	t.Cleanup(p.Close)
	return p
}

var wantedAction = regexp.MustCompile(`\\"text\\":\\"do (\w+)`)

func (p *echoServer) answer(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	if err != nil {
		return
	}
	asked := fmt.Sprintf("%s %s %v", r.Method, r.URL, r.Header)
	p.mu.Lock()
	p.heard += asked + "\n"
	p.prompts += string(body) + "\n"
	p.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	payload := map[string]string{"api_call": `{"endpoint":"/x"}`, "speak": `{"text":"hi"}`, "web_search": `{"query":"x"}`, "ask": `{}`, "run": `{}`}
	if all := wantedAction.FindAllSubmatch(body, -1); all != nil && strings.HasSuffix(r.URL.Path, "/chat/completions") {
		found := all[len(all)-1]
		plan := fmt.Sprintf(`{"actions":[{"type":%q,"payload":%s}]}`, found[1], payload[string(found[1])])
		if bytes.Contains(body, []byte(`\"outputs\"`)) {
			plan = `{"response":"That did not work."}`
		}
		fmt.Fprintf(w, `{"choices":[{"message":{"role":"assistant","content":%q},"finish_reason":"stop"}]}`, plan)
		return
	}
	w.WriteHeader(http.StatusUnauthorized)
	_ = json.NewEncoder(w).Encode(map[string]any{"ok": false, "error_code": 401, "description": asked, "message": asked, "error": map[string]any{"message": asked, "type": asked}})
}

// writeSecrets writes the configuration with its secrets. It returns the secrets by name, and the address of the admin
// page.
func writeSecrets(t *testing.T, telegram *telegramtest.Server, echo string) (secrets map[string]string, page string) {
	t.Helper()
	secrets = map[string]string{"TOKEN": telegramtest.Token}
	page = freeAddress(t)
	text := strings.NewReplacer("{ECHO}", echo, "{TELEGRAM}", telegram.URL, "{TOKEN}", telegramtest.Token, "{PAGE}", page, "{METRICS}", freeAddress(t)).Replace(canaryConfig)
	for _, name := range regexp.MustCompile(`\{([a-z]+)\}`).FindAllStringSubmatch(text, -1) {
		secrets[name[1]] = canarySecret(name[1])
		text = strings.ReplaceAll(text, name[0], canarySecret(name[1]))
	}
	write(t, "config.toml", text)
	write(t, "ask.json", fmt.Sprintf(blueprintFormat, "ask"))
	write(t, "run.json", fmt.Sprintf(blueprintFormat, "run"))
	return secrets, page
}

// findLeaks lists the secrets in a text, plain or encoded, with the text around them.
func findLeaks(secrets map[string]string, text string) (list []string) {
	for _, name := range slices.Sorted(maps.Keys(secrets)) {
		secret := secrets[name]
		for _, form := range []string{secret, base64.StdEncoding.EncodeToString([]byte(secret)), fmt.Sprintf("%x", secret)} {
			if at := strings.Index(text, form); at >= 0 {
				list = append(list, name+": …"+text[max(0, at-300):min(len(text), at+len(form)+20)]+"…")
			}
		}
	}
	return list
}

// runCanaryBot runs the configuration until the test ends.
func runCanaryBot(t *testing.T, log io.Writer) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	over := make(chan int, 1)
	go func() { over <- run(ctx, []string{"run", "-c", "config.toml"}, strings.NewReader(""), log, log) }()
	t.Cleanup(func() {
		stop()
		if status := <-over; status != statusFailed { // because interfaces failed
			t.Errorf("exit status %d", status)
		}
	})
}

// TestSecretsStayIn puts a secret wherever the configuration accepts one, makes everything fail that can, and
// checks that no output holds a secret.
func TestSecretsStayIn(t *testing.T) {
	emptyMachine(t)
	telegram, echo := telegramtest.New(t), newEchoServer(t)
	telegram.AddPerson(telegramtest.Person{ID: 1000, Name: "Jay"})
	secrets, _ := writeSecrets(t, telegram, echo.URL)
	outputs := make(map[string]*journal)
	outputs["log"] = &journal{}
	runCanaryBot(t, outputs["log"])
	for n, text := range []string{"hello", "do api_call", "do speak", "do web_search", "do ask", "do run", "/why", "/status", "/usage", "/mydata"} {
		telegram.Say(1000, 1000, telegramtest.Saying{Text: text})
		until(t, func() bool { return strings.Count(outputs["log"].String(), `"turn over"`) > n })
	}
	telegram.AddFile("voice", []byte("OggS a voice"))
	turns := strings.Count(outputs["log"].String(), `"turn over"`)
	telegram.Say(1000, 1000, telegramtest.Saying{Extra: map[string]any{"voice": map[string]any{
		"file_id": "voice", "file_unique_id": "v", "duration": 1, "mime_type": "audio/ogg", "file_size": 12}}})
	until(t, func() bool { return strings.Count(outputs["log"].String(), `"turn over"`) > turns })
	until(t, func() bool {
		log := outputs["log"].String()
		return strings.Contains(log, "interface spare") && strings.Contains(log, "interface discord") && strings.Contains(log, "server-was-run")
	})
	good, err := os.ReadFile("config.toml")
	if err != nil {
		t.Fatal(err)
	}
	write(t, "alive.toml", regexp.MustCompile(`(?s)\[interfaces\.dead\].*?\n\n?\[`).ReplaceAllString(string(good), "["))
	commands := []string{
		"check", "check --online -c alive.toml", "check --path telegram/1000", "prompt --path telegram/1000 --text hi", "actions", "actions --format json", "actions --format ai-tools",
		"actions --format markdown", "history", "history telegram/1000", "memory export", "memory list", "usage", "pair", "backup -", "reload", "page", "init --yes --no-check",
		"service install --dry-run --root root", "mcp",
	}
	for _, c := range commands {
		out := &journal{}
		run(t.Context(), strings.Fields(c), strings.NewReader(""), out, out)
		outputs[c] = out
	}
	for _, wrong := range []string{"{engine}\nx", "{\"a\" = \"{engine}\"}", "[[\"{engine}\"]]", "\"{engine}"} {
		write(t, "config.toml", strings.Replace(string(good), `"`+secrets["engine"]+`"`, strings.ReplaceAll(wrong, "{engine}", secrets["engine"]), 1))
		for _, c := range []string{"check", "init --yes --no-check"} {
			out := &journal{}
			if status := run(t.Context(), strings.Fields(c), strings.NewReader(""), out, out); status != statusUsage {
				t.Errorf("%s with a wrong file: status %d, %s", c, status, out)
			}
			outputs[c+" with a wrong file "+wrong] = out
		}
	}
	if err := syscall.Kill(os.Getpid(), syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	until(t, func() bool { return strings.Contains(outputs["log"].String(), "configuration refused") })
	outputs["chat"] = &journal{}
	for _, m := range telegram.Messages(1000) {
		fmt.Fprintf(outputs["chat"], "%s %s\n", m.Text, m.File)
	}
	echo.mu.Lock()
	outputs["prompts"] = &journal{}
	fmt.Fprint(outputs["prompts"], echo.prompts)
	heard := echo.heard
	echo.mu.Unlock()
	for name, out := range outputs {
		for _, leak := range findLeaks(secrets, out.String()) {
			t.Errorf("%s reveals the secret %s", name, leak)
		}
	}
	// The test is only valid if the secrets were used.
	for _, name := range []string{"engine", "telegram", "hooktoken", "discord", "api", "speechin", "speechout", "searx", "blueprint", "mcp"} {
		if !strings.Contains(heard, secrets[name]) {
			t.Errorf("the secret %s was not used", name)
		}
	}
	for _, want := range []string{`"level":"DEBUG"`, `"interface":"dead"`, "tool-was-run"} {
		if !strings.Contains(outputs["log"].String()+outputs["prompts"].String(), want) {
			t.Errorf("the log and the prompts lack %q", want)
		}
	}
}

// TestEverySecretIsPlanted fails if the configuration has a secret that canaryConfig does not set.
func TestEverySecretIsPlanted(t *testing.T) {
	emptyMachine(t)
	telegram := telegramtest.New(t)
	writeSecrets(t, telegram, "http://127.0.0.1:1")
	p := newProgram(&daemon.Env{Getenv: os.Getenv, Clock: time.Now}, nil)
	c, err := p.load()
	if err != nil {
		t.Fatal(err)
	}
	// The bot above stores in a file. The PostgreSQL tests check the password of the server.
	there := map[string]bool{"memory.ServerConfig.URL": true}
	addSetSecrets(reflect.ValueOf(c).Elem(), there)
	for _, e := range c.Enabled {
		addSetSecrets(reflect.ValueOf(e.Own), there)
	}
	for _, p := range c.Chosen {
		addSetSecrets(reflect.ValueOf(p.Own), there)
	}
	all := []any{new(daemon.Config)}
	interfaces, plugins := daemon.Components()
	for _, component := range append(interfaces, plugins...) {
		all = append(all, component.Into...)
	}
	n := 0
	for _, x := range all {
		for _, field := range secretFields(reflect.TypeOf(x)) {
			if n++; !there[field] {
				t.Errorf("canaryConfig does not set the secret %s", field)
			}
		}
	}
	if n < 10 {
		t.Errorf("found %d secrets, want at least 10", n)
	}
}

// secretFields lists the fields that hold secrets in a type and the types inside it.
func secretFields(t reflect.Type) (list []string) {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		return secretFields(t.Elem())
	case reflect.Struct:
		for f := range t.Fields() {
			if holdsSecret(f.Type) {
				list = append(list, t.String()+"."+f.Name)
				continue
			}
			_, tagged := f.Tag.Lookup("toml")
			if (tagged || f.Anonymous) && strings.HasPrefix(t.PkgPath(), "synthbot") {
				list = append(list, secretFields(f.Type)...)
			}
		}
	}
	return list
}

func holdsSecret(t reflect.Type) bool {
	if t.Kind() == reflect.Map || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	return t == reflect.TypeFor[secret.Secret]()
}

// addSetSecrets adds the fields that hold a secret in v.
func addSetSecrets(v reflect.Value, there map[string]bool) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			addSetSecrets(v.Elem(), there)
		}
	case reflect.Slice:
		for i := range v.Len() {
			addSetSecrets(v.Index(i), there)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			f := v.Type().Field(i)
			switch {
			case !f.IsExported():
			case holdsSecret(f.Type) && !v.Field(i).IsZero():
				there[v.Type().String()+"."+f.Name] = true
			case f.Tag.Get("toml") != "" || f.Anonymous:
				addSetSecrets(v.Field(i), there)
			}
		}
	}
}
