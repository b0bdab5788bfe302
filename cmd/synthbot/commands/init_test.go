package commands

import (
	"errors"
	"io"
	"io/fs"
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

// emptyMachine runs the test in an empty home folder.
func emptyMachine(t *testing.T) {
	t.Helper()
	home := t.TempDir()
	t.Chdir(home)
	t.Setenv("HOME", home)
	for _, name := range []string{"XDG_STATE_HOME", "STATE_DIRECTORY", "SYNTHBOT_CONFIG", "OLLAMA_HOST", "CREDENTIALS_DIRECTORY"} {
		t.Setenv(name, "")
	}
	t.Setenv("OLLAMA_HOST", "127.0.0.1:1") // nothing listens there
}

// runLine runs one command line.
func runLine(t *testing.T, in string, args ...string) (status int, out, errs string) {
	t.Helper()
	var o, e strings.Builder
	status = run(t.Context(), args, strings.NewReader(in), &o, &e)
	return status, o.String(), e.String()
}

// TestFromNothing goes from an empty machine to the first answer like a script: init, check, run, and no edits
// by hand.
func TestFromNothing(t *testing.T) {
	began := time.Now()
	emptyMachine(t)
	telegram, discord, model := telegramtest.New(t), discordtest.New(t), newScribe(t)
	telegram.AddPerson(telegramtest.Person{ID: 1000, Name: "Jay"})
	t.Setenv("TELEGRAM_TOKEN", telegramtest.Token)
	status, out, errs := runLine(t, discordtest.Token+"\n", "init",
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
			t.Errorf("init lacks %q:\n%s", want, out)
		}
	}
	code := regexp.MustCompile(`/claim \S+`).FindString(out)
	if status, out, errs := runLine(t, "", "check", "--online"); status != 0 || !strings.Contains(out, "ok   telegram   identity     @aria_bot") || strings.Contains(out, "mode") && strings.Contains(out, "chmod") {
		t.Errorf("check: %d, %s%s", status, out, errs)
	}
	daemonOf(t, "config.toml", io.Discard)
	say := func(text string) { telegram.Say(1000, 1000, telegramtest.Saying{Text: text}) }
	say("hello")
	awaitReplies(t, telegram, 1000, 1)
	say(code)
	awaitReplies(t, telegram, 1000, 2)
	say("hello again")
	if texts := awaitReplies(t, telegram, 1000, 3); !strings.Contains(texts[0], "I don't know you yet") || !strings.Contains(texts[1], "You are my admin") || texts[2] != "ok" {
		t.Errorf("replies: got %q", texts)
	}
	say("/help wake")
	if texts := awaitReplies(t, telegram, 1000, 4); !strings.HasPrefix(texts[3], "/wake – Let me answer here again") || !strings.Contains(texts[3], "Usage: ") {
		t.Errorf("/help wake: got %q", texts[3])
	}
	if asked := strings.Join(model.since(0), ""); strings.Count(asked, `"max_tokens":2048`) != 1 || !strings.Contains(asked, "You are Mira") {
		t.Errorf("requests to the model: got %q", asked)
	}
	if took := time.Since(began); took > coretest.Patience {
		t.Errorf("the test took %s, want at most coretest.Patience", took)
	}
	for name, mode := range map[string]os.FileMode{"config.toml": 0o600, "discord_token": 0o600, "persona/mira.toml": 0o644} {
		if info, err := os.Stat(name); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s: got %v, %v", name, info, err)
		}
	}
	text, err := os.ReadFile("config.toml")
	holds := func(token string) bool { return strings.Contains(string(text), token) }
	if err != nil || holds(telegramtest.Token) || holds(discordtest.Token) {
		t.Errorf("the configuration contains a token (%v)", err)
	}
}

// TestInitFindsOllama checks that init finds an Ollama server on this machine and chooses a chat model.
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
	status, out, errs := runLine(t, "", "init", "--yes")
	if status != 0 || !strings.Contains(out, "ok   engine     ollama       answers") {
		t.Fatalf("init: %d, %s%s", status, out, errs)
	}
	if status, out, errs := runLine(t, "", "check", "--online"); status != 0 || !strings.Contains(out, "ok   engine     ollama") {
		t.Errorf("check: %d, %s%s", status, out, errs)
	}
	before, err := os.ReadFile("config.toml")
	if err != nil || !strings.Contains(string(before), "\nmodel = \"llama3.1:8b\"\n") {
		t.Errorf("%v: got %s", err, before)
	}
	if status, out, errs := runLine(t, "", "init", "--engine", "ollama"); status != 0 || !strings.Contains(out, "nothing to change") {
		t.Errorf("init again: %d, %s%s", status, out, errs)
	}
}

// TestInitAsksOwnServer checks that init verifies a new token with the server in the file, and that a server's
// address without a token does not configure an interface.
func TestInitAsksOwnServer(t *testing.T) {
	emptyMachine(t)
	telegram := telegramtest.New(t)
	status, out, errs := runLine(t, "", "init", "--yes", "--engine", "offline", "--telegram-api-url", telegram.URL)
	text, err := os.ReadFile("config.toml")
	if status != 0 || err != nil || strings.Contains(string(text), "\n[interfaces.telegram]") || !strings.Contains(out, "  synthbot chat\n") {
		t.Errorf("without a token: %d, %s%s%v\n%s", status, out, errs, err, text)
	}
	write(t, "config.toml", "[interfaces.telegram]\napi_url = \""+telegram.URL+"\"\n")
	status, out, errs = runLine(t, telegramtest.Token+"\n", "init", "--yes", "--engine", "offline", "--telegram-token", "-")
	if status != 0 || !strings.Contains(out, "ok   telegram   identity     @aria_bot\n") {
		t.Errorf("with the server in the file: %d, %s%s", status, out, errs)
	}
}

// TestInitWords checks flags with a fixed list of values, and the files that init leaves behind.
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
		status, out, errs := runLine(t, "", append([]string{"init"}, tc.args...)...)
		if status != statusUsage || !strings.HasPrefix(errs, "synthbot: init: "+tc.want) {
			t.Errorf("%v: %d, %s%s", tc.args, status, out, errs)
		}
	}
	status, out, errs := runLine(t, telegramtest.Token+"\n", "init", "--yes", "--no-check", "--engine", "offline", "--telegram-token", "-", "--claim", "code")
	if status != 0 {
		t.Fatalf("init: %d, %s%s", status, out, errs)
	}
	if status, out, errs = runLine(t, "", "init", "--base-url", "http://127.0.0.1:1"); status != statusUsage || !strings.Contains(errs, "--base-url: ") {
		t.Errorf("--base-url without an engine: %d, %s%s", status, out, errs)
	}
	status, out, errs = runLine(t, "", "init", "--claim", "none", "--telegram-token", "none")
	text, err := os.ReadFile("config.toml")
	if status != 0 || err != nil || strings.Contains(string(text), "\nclaim") || !strings.Contains(out, "it is still in telegram_token") {
		t.Errorf("without a claim and a token: %d, %s%s%v\n%s", status, out, errs, err, text)
	}
}

// TestInitRefuses checks that a token that the platform rejects is neither written nor printed.
func TestInitRefuses(t *testing.T) {
	emptyMachine(t)
	telegram, discord := telegramtest.New(t), discordtest.New(t)
	for _, tc := range [][]string{
		{"--telegram-token", "-", "--telegram-api-url", telegram.URL}, {"--discord-token", "-", "--discord-api-url", discord.URL},
		{"--telegram-token", "-", "--telegram-api-url", "nowhere"},
	} {
		status, out, errs := runLine(t, "123:canary-canary\n", append([]string{"init", "--yes"}, tc...)...)
		if status != statusUsage || !strings.HasPrefix(errs, "synthbot: init: "+tc[0]+": identity: ") || !strings.Contains(errs, "--no-check") || strings.Contains(out+errs, "canary") {
			t.Errorf("%v: %d, %s%s", tc, status, out, errs)
		}
	}
	if entries, err := filepath.Glob("*"); err != nil || len(entries) > 0 {
		t.Errorf("init wrote %v, want nothing", entries)
	}
}

// TestInitThroughALink checks that init writes the files of a configuration that a symbolic link names where the other
// commands look for them: beside the link.
func TestInitThroughALink(t *testing.T) {
	emptyMachine(t)
	if err := errors.Join(os.Mkdir("elsewhere", 0o700), os.WriteFile("elsewhere/real.toml", nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("elsewhere/real.toml", "bot.toml"); err != nil {
		t.Fatal(err)
	}
	status, out, errs := runLine(t, discordtest.Token+"\n", "init", "-c", "bot.toml", "--no-check", "--yes",
		"--persona-name", "Mira", "--persona-text", "She sails.", "--data-dir", "data", "--discord-token", "-")
	if status != 0 {
		t.Fatalf("init: %d, %s%s", status, out, errs)
	}
	if err := os.Mkdir("data", 0o700); err != nil {
		t.Fatal(err)
	}
	if status, out, errs := runLine(t, "", "check", "-c", "bot.toml"); status != 0 {
		t.Errorf("check: %d, %s%s", status, out, errs)
	}
	if link, err := os.Lstat("bot.toml"); err != nil || link.Mode()&fs.ModeSymlink == 0 {
		t.Errorf("the link was replaced: %v, %v", link, err)
	}
	if text, err := os.ReadFile("elsewhere/real.toml"); err != nil || !strings.Contains(string(text), "discord") {
		t.Errorf("got the configuration %s, %v", text, err)
	}
}
