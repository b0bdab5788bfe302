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

// planted is a secret of the configuration below.
func planted(name string) string { return "Zq7CANARY" + name + "x9Kd" }

// caged holds a secret in every place that takes one. {ECHO} is a server that
// fails, and says with what it was asked.
const caged = `
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

const blueprintOf = `{"name":"%[1]s","type":"agent","version":"1.0.0","description":"Tools.","endpoint":"https://a.example","endpoints":{"invoke":{"path":"/invoke"}},` +
	`"capabilities":{"tools":[{"name":"%[1]s","description":"Look something up.","inputSchema":{"type":"object","properties":{}},"annotations":{"readOnlyHint":true}}]}}`

// parrot fails every request, and tells in the answer what it was asked with; a
// model's question for an action it answers with that action.
type parrot struct {
	*httptest.Server
	mu      sync.Mutex
	heard   string // headers and addresses
	prompts string
}

func newParrot(t *testing.T) *parrot {
	p := &parrot{}
	p.Server = httptest.NewServer(http.HandlerFunc(p.answer))
	t.Cleanup(p.Close)
	return p
}

var wish = regexp.MustCompile(`\\"text\\":\\"do (\w+)`)

func (p *parrot) answer(w http.ResponseWriter, r *http.Request) {
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
	if all := wish.FindAllSubmatch(body, -1); all != nil && strings.HasSuffix(r.URL.Path, "/chat/completions") {
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

// noise is all that was written, by any writer.
type noise struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (n *noise) Write(p []byte) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.all.Write(p)
}

func (n *noise) String() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.all.String()
}

// cage writes the configuration with its secrets, and returns them by name.
func cage(t *testing.T, telegram *telegramtest.Server, echo string) (secrets map[string]string, page string) {
	t.Helper()
	secrets = map[string]string{"TOKEN": telegramtest.Token}
	page = freeAddress(t)
	text := strings.NewReplacer("{ECHO}", echo, "{TELEGRAM}", telegram.URL, "{TOKEN}", telegramtest.Token, "{PAGE}", page, "{METRICS}", freeAddress(t)).Replace(caged)
	for _, name := range regexp.MustCompile(`\{([a-z]+)\}`).FindAllStringSubmatch(text, -1) {
		secrets[name[1]] = planted(name[1])
		text = strings.ReplaceAll(text, name[0], planted(name[1]))
	}
	write(t, "config.toml", text)
	write(t, "ask.json", fmt.Sprintf(blueprintOf, "ask"))
	write(t, "run.json", fmt.Sprintf(blueprintOf, "run"))
	return secrets, page
}

// leaks names the secrets that a text holds, as they are or encoded, and what
// surrounds them.
func leaks(secrets map[string]string, text string) (list []string) {
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

// caught runs the caged bot until the test ends.
func caught(t *testing.T, log io.Writer) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	over := make(chan int, 1)
	go func() { over <- run(ctx, []string{"run", "-c", "config.toml"}, strings.NewReader(""), log, log) }()
	t.Cleanup(func() {
		stop()
		if status := <-over; status != statusFailed { // as interfaces did
			t.Errorf("it ended with %d", status)
		}
	})
}

// TestSecretsStayIn plants a secret wherever the configuration takes one, lets
// everything fail that can, and looks at all that comes out.
func TestSecretsStayIn(t *testing.T) {
	emptyMachine(t)
	telegram, echo := telegramtest.New(t), newParrot(t)
	telegram.AddPerson(telegramtest.Person{ID: 1000, Name: "Jay"})
	secrets, _ := cage(t, telegram, echo.URL)
	outputs := make(map[string]*noise)
	outputs["log"] = &noise{}
	caught(t, outputs["log"])
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
		out := &noise{}
		run(t.Context(), strings.Fields(c), strings.NewReader(""), out, out)
		outputs[c] = out
	}
	for _, wrong := range []string{"{engine}\nx", "{\"a\" = \"{engine}\"}", "[[\"{engine}\"]]", "\"{engine}"} {
		write(t, "config.toml", strings.Replace(string(good), `"`+secrets["engine"]+`"`, strings.ReplaceAll(wrong, "{engine}", secrets["engine"]), 1))
		for _, c := range []string{"check", "init --yes --no-check"} {
			out := &noise{}
			if status := run(t.Context(), strings.Fields(c), strings.NewReader(""), out, out); status != statusUsage {
				t.Errorf("%s of a wrong file: %d, %s", c, status, out)
			}
			outputs[c+" of a wrong file "+wrong] = out
		}
	}
	if err := syscall.Kill(os.Getpid(), syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	until(t, func() bool { return strings.Contains(outputs["log"].String(), "configuration refused") })
	outputs["chat"] = &noise{}
	for _, m := range telegram.Messages(1000) {
		fmt.Fprintf(outputs["chat"], "%s %s\n", m.Text, m.File)
	}
	echo.mu.Lock()
	outputs["prompts"] = &noise{}
	fmt.Fprint(outputs["prompts"], echo.prompts)
	heard := echo.heard
	echo.mu.Unlock()
	for name, out := range outputs {
		for _, leak := range leaks(secrets, out.String()) {
			t.Errorf("%s tells the secret %s", name, leak)
		}
	}
	// The test would show nothing if they had not been used.
	for _, name := range []string{"engine", "telegram", "hooktoken", "discord", "api", "speechin", "speechout", "searx", "blueprint", "mcp"} {
		if !strings.Contains(heard, secrets[name]) {
			t.Errorf("the secret %s was not used", name)
		}
	}
	for _, want := range []string{`"level":"DEBUG"`, `"interface":"dead"`, "tool-was-run"} {
		if !strings.Contains(outputs["log"].String()+outputs["prompts"].String(), want) {
			t.Errorf("the log does not say %q", want)
		}
	}
}

// TestEverySecretIsPlanted: a new secret of the configuration is one that the test
// above has to plant.
func TestEverySecretIsPlanted(t *testing.T) {
	emptyMachine(t)
	telegram := telegramtest.New(t)
	cage(t, telegram, "http://127.0.0.1:1")
	p := &program{Env: &daemon.Env{Getenv: os.Getenv, Clock: time.Now}}
	c, err := p.load()
	if err != nil {
		t.Fatal(err)
	}
	// The bot above uses the file; the tests on PostgreSQL look for the password of a server.
	there := map[string]bool{"memory.ServerConfig.URL": true}
	holders(reflect.ValueOf(c).Elem(), there)
	for _, e := range c.Enabled {
		holders(reflect.ValueOf(e.Own), there)
	}
	for _, p := range c.Chosen {
		holders(reflect.ValueOf(p.Own), there)
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
				t.Errorf("the secret %s is not planted", field)
			}
		}
	}
	if n < 10 {
		t.Errorf("only %d secrets were found", n)
	}
}

// secretFields lists the fields of a type, and of those inside of it, that hold
// secrets.
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

// holders notes the fields that hold a secret now.
func holders(v reflect.Value, there map[string]bool) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			holders(v.Elem(), there)
		}
	case reflect.Slice:
		for i := range v.Len() {
			holders(v.Index(i), there)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			f := v.Type().Field(i)
			switch {
			case !f.IsExported():
			case holdsSecret(f.Type) && !v.Field(i).IsZero():
				there[v.Type().String()+"."+f.Name] = true
			case f.Tag.Get("toml") != "" || f.Anonymous:
				holders(v.Field(i), there)
			}
		}
	}
}
