package commands

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"synthbot/core/coretest"
	"synthbot/interfaces/discord/discordtest"
	"synthbot/interfaces/telegram/telegramtest"
)

// emptyMachine is a home with nothing in it, in which the test runs.
func emptyMachine(t *testing.T) {
	t.Helper()
	home := t.TempDir()
	t.Chdir(home)
	t.Setenv("HOME", home)
	for _, name := range []string{"XDG_STATE_HOME", "STATE_DIRECTORY", "SYNTHBOT_CONFIG", "OLLAMA_HOST", "CREDENTIALS_DIRECTORY"} {
		t.Setenv(name, "")
	}
	t.Setenv("OLLAMA_HOST", "127.0.0.1:1") // nobody there
}

// typed runs one command line.
func typed(t *testing.T, in string, args ...string) (status int, out, errs string) {
	t.Helper()
	var o, e strings.Builder
	status = run(t.Context(), args, strings.NewReader(in), &o, &e)
	return status, o.String(), e.String()
}

// TestFromNothing goes from an empty machine to the first answer, as a script
// would: init, check, run, and nothing edited by hand.
func TestFromNothing(t *testing.T) {
	began := time.Now()
	emptyMachine(t)
	telegram, discord, model := telegramtest.New(t), discordtest.New(t), newScribe(t)
	telegram.AddPerson(telegramtest.Person{ID: 1000, Name: "Jay"})
	t.Setenv("TELEGRAM_TOKEN", telegramtest.Token)
	status, out, errs := typed(t, discordtest.Token+"\n", "init",
		"--persona-name", "Mira", "--persona-text", "She sails.", "--engine", "vllm", "--model", "m", "--base-url", model.URL, "--data-dir", "data",
		"--telegram-token", "env:TELEGRAM_TOKEN", "--telegram-api-url", telegram.URL, "--discord-token", "-", "--discord-api-url", discord.URL)
	if status != 0 || errs != "" {
		t.Fatalf("init: %d, %s", status, errs)
	}
	for _, want := range []string{
		"ok   telegram   identity     @aria_bot\n", "ok   telegram   address      https://t.me/aria_bot\n", "ok   discord    identity     @aria",
		"https://discord.com/oauth2/authorize?client_id=900000000000000001&", "ok   engine     vllm         answers",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("init does not say %q:\n%s", want, out)
		}
	}
	code := regexp.MustCompile(`/claim \S+`).FindString(out)
	if status, out, errs := typed(t, "", "check", "--online"); status != 0 || !strings.Contains(out, "ok   telegram   identity     @aria_bot") || strings.Contains(out, "mode") && strings.Contains(out, "chmod") {
		t.Errorf("check: %d, %s%s", status, out, errs)
	}
	daemonOf(t, "config.toml", io.Discard)
	say := func(text string) { telegram.Say(1000, 1000, telegramtest.Saying{Text: text}) }
	say("hello")
	hears(t, telegram, 1000, 1)
	say(code)
	hears(t, telegram, 1000, 2)
	say("hello again")
	if texts := hears(t, telegram, 1000, 3); !strings.Contains(texts[0], "I don't know you yet") || !strings.Contains(texts[1], "You are my admin") || texts[2] != "ok" {
		t.Errorf("it said %q", texts)
	}
	say("/help wake")
	if texts := hears(t, telegram, 1000, 4); !strings.HasPrefix(texts[3], "/wake – Let me answer here again") || !strings.Contains(texts[3], "Usage: ") {
		t.Errorf("about one command it says %q", texts[3])
	}
	if asked := strings.Join(model.since(0), ""); strings.Count(asked, `"max_tokens":2048`) != 1 || !strings.Contains(asked, "You are Mira") {
		t.Errorf("the model was asked %q", asked)
	}
	if took := time.Since(began); took > coretest.Patience {
		t.Errorf("it took %s", took)
	}
	for name, mode := range map[string]os.FileMode{"config.toml": 0o600, "discord_token": 0o600, "persona/mira.toml": 0o644} {
		if info, err := os.Stat(name); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
	text, err := os.ReadFile("config.toml")
	holds := func(token string) bool { return strings.Contains(string(text), token) }
	if err != nil || holds(telegramtest.Token) || holds(discordtest.Token) {
		t.Errorf("the configuration holds a token (%v)", err)
	}
}

// TestInitFindsOllama: what runs here is offered, with a model that can talk.
func TestInitFindsOllama(t *testing.T) {
	emptyMachine(t)
	ollama := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/api/tags":
			_, _ = w.Write([]byte(`{"models":[{"name":"nomic-embed-text:latest"},{"name":"llama3.1:8b"}]}`))
		case "/v1/chat/completions":
			_, _ = w.Write([]byte(`{"choices":[{"message":{"content":"Hi"},"finish_reason":"length"}]}`))
		default:
			http.NotFound(w, r)
		}
	}))
	defer ollama.Close()
	t.Setenv("OLLAMA_HOST", strings.TrimPrefix(ollama.URL, "http://"))
	status, out, errs := typed(t, "", "init", "--yes")
	if status != 0 || !strings.Contains(out, "ok   engine     ollama       answers") {
		t.Fatalf("init: %d, %s%s", status, out, errs)
	}
	if status, out, errs := typed(t, "", "check", "--online"); status != 0 || !strings.Contains(out, "ok   engine     ollama") {
		t.Errorf("check: %d, %s%s", status, out, errs)
	}
	before, err := os.ReadFile("config.toml")
	if err != nil || !strings.Contains(string(before), "\nmodel = \"llama3.1:8b\"\n") {
		t.Errorf("%v: %s", err, before)
	}
	if status, out, errs := typed(t, "", "init", "--engine", "ollama"); status != 0 || !strings.Contains(out, "nothing to change") {
		t.Errorf("init again: %d, %s%s", status, out, errs)
	}
}

// TestInitAsksOwnServer: the server in the file is asked whose a new token is, and its address alone makes no bot.
func TestInitAsksOwnServer(t *testing.T) {
	emptyMachine(t)
	telegram := telegramtest.New(t)
	status, out, errs := typed(t, "", "init", "--yes", "--engine", "offline", "--telegram-api-url", telegram.URL)
	text, err := os.ReadFile("config.toml")
	if status != 0 || err != nil || strings.Contains(string(text), "\n[interfaces.telegram]") || !strings.Contains(out, "  synthbot chat\n") {
		t.Errorf("without a token: %d, %s%s%v\n%s", status, out, errs, err, text)
	}
	write(t, "config.toml", "[interfaces.telegram]\napi_url = \""+telegram.URL+"\"\n")
	status, out, errs = typed(t, telegramtest.Token+"\n", "init", "--yes", "--engine", "offline", "--telegram-token", "-")
	if status != 0 || !strings.Contains(out, "ok   telegram   identity     @aria_bot\n") {
		t.Errorf("with the server in the file: %d, %s%s", status, out, errs)
	}
}

// TestInitWords checks flags that are one of a few words, and what they leave behind.
func TestInitWords(t *testing.T) {
	emptyMachine(t)
	for _, tc := range []struct {
		want string
		args []string
	}{
		{`--claim: there is no "bogus"; there is code, none, keep`, []string{"--yes", "--claim", "bogus"}},
		{`--base-url: no engine is given`, []string{"--yes", "--base-url", "http://127.0.0.1:1"}},
		{`--engine: there is no "foo"; there is `, []string{"--engine", "foo"}},
	} {
		status, out, errs := typed(t, "", append([]string{"init"}, tc.args...)...)
		if status != statusUsage || !strings.HasPrefix(errs, "synthbot: init: "+tc.want) {
			t.Errorf("%v: %d, %s%s", tc.args, status, out, errs)
		}
	}
	status, out, errs := typed(t, telegramtest.Token+"\n", "init", "--yes", "--no-check", "--engine", "offline", "--telegram-token", "-", "--claim", "code")
	if status != 0 {
		t.Fatalf("init: %d, %s%s", status, out, errs)
	}
	if status, out, errs = typed(t, "", "init", "--base-url", "http://127.0.0.1:1"); status != statusUsage || !strings.Contains(errs, "--base-url: ") {
		t.Errorf("--base-url without an engine: %d, %s%s", status, out, errs)
	}
	status, out, errs = typed(t, "", "init", "--claim", "none", "--telegram-token", "none")
	text, err := os.ReadFile("config.toml")
	if status != 0 || err != nil || strings.Contains(string(text), "\nclaim") || !strings.Contains(out, "it is still in telegram_token") {
		t.Errorf("without a claim and a token: %d, %s%s%v\n%s", status, out, errs, err, text)
	}
}

// TestInitRefuses: a token that the platform does not know is not written, and not
// reported.
func TestInitRefuses(t *testing.T) {
	emptyMachine(t)
	telegram, discord := telegramtest.New(t), discordtest.New(t)
	for _, tc := range [][]string{
		{"--telegram-token", "-", "--telegram-api-url", telegram.URL}, {"--discord-token", "-", "--discord-api-url", discord.URL},
		{"--telegram-token", "-", "--telegram-api-url", "nowhere"},
	} {
		status, out, errs := typed(t, "123:canary-canary\n", append([]string{"init", "--yes"}, tc...)...)
		if status != statusUsage || !strings.HasPrefix(errs, "synthbot: init: "+tc[0]+": identity: ") || !strings.Contains(errs, "--no-check") || strings.Contains(out+errs, "canary") {
			t.Errorf("%v: %d, %s%s", tc, status, out, errs)
		}
	}
	if entries, err := filepath.Glob("*"); err != nil || len(entries) > 0 {
		t.Errorf("it wrote %v", entries)
	}
}
