package commands

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

// TestSet checks that a setting that an admin changes in a chat applies there and below at once, survives a
// restart, is listed with its origin by `check --path`, and can be reset.
func TestSet(t *testing.T) {
	model := newEchoModel(t)
	config := strings.Replace(atDesk, "[bot]", "[bot]\nadmins = [\"desk/@user/you\"]", 1) + "[[engine]]\nprovider = \"vllm\"\nmodel = \"m\"\nbase_url = \"" + model +
		"\"\n[[override]]\npath = \"desk/main\"\ntokens = 900000\nactions_deny = [\"dice_*\"]\nperson_tokens = 800000\n[budget]\nperson_tokens = 700000\n"
	d := startDaemon(t, config)
	d.awaitNotice("READY=1")
	checkListed := func(wants ...string) {
		t.Helper()
		status, out, errs := d.command("", "check", "--path", "desk/main")
		out = strings.Join(strings.FieldsFunc(out, func(r rune) bool { return r == ' ' }), " ")
		for _, want := range wants {
			if status != 0 || !strings.Contains(out, "\n"+want+"\n") {
				t.Errorf("check --path lacks %q: %d, %s %s", want, status, out, errs)
			}
		}
	}
	checkListed("tokens 900000 override desk/main", "person_tokens 800000 override desk/main", "actions_deny dice_* override desk/main", "language as spoken, else en bot.language")
	for line, want := range map[string]string{
		"/set language it":                      "language: it (a command in desk/main)",
		"/set scope unified":                    "scope: unified (a command in desk/main)",
		"/set actions_deny memory_forget, web*": "actions_deny: dice_* (no action matches dice_*) (override desk/main)",
		"/set tokens 1_000":                     "tokens: 1000 (a command in desk/main)",
		"/set scope everywhere":                 `scope is "everywhere"; write one of chat, interface, unified.`,
		"/set tokens -1":                        "tokens is -1; write 0 or more.",
		"/set actions_allow [":                  `actions_allow is "["; write the name of an action`,
		"/set language klingon!":                `language is "klingon!"; write a language tag`,
		"/set colour red":                       "what must be one of keywords, ",
	} {
		if reply := d.ask(line); !strings.Contains(reply, want) {
			t.Errorf("%s: got %q, want %q", line, reply, want)
		}
		if strings.Contains(line, "deny") { // the reply has a line for each source, and names patterns that match nothing
			want := "actions_deny: memory_forget, web* (no action matches web*) (a command in desk/main)"
			if reply, err := d.out.ReadString('\n'); err != nil || !strings.Contains(reply, want) {
				t.Errorf("%s: second line %q, %v, want %q", line, reply, err, want)
			}
		}
	}
	checkListed("tokens 1000 a command in desk/main", "actions_deny memory_forget, web* a command in desk/main", "actions_deny dice_* override desk/main", "scope unified a command in desk/main")
	if reply := d.ask("m1"); !strings.Contains(reply, "the limit of 1000 tokens a day is less than one answer takes") {
		t.Errorf("answer above the limit of the place: %q", reply)
	}
	d.ask("/set tokens 0")
	if reply := d.ask("m2"); !strings.Contains(reply, "re m2") {
		t.Errorf("answer without a limit: %q", reply)
	}
	if _, out, _ := d.command("", "prompt", "--path", "desk/main", "--text", "hi"); strings.Contains(out, `"memory_forget"`) || !strings.Contains(out, `"memory_save"`) {
		t.Errorf("the prompt has an action that /set denied: %s", out)
	}
	d.ask("/set person_tokens 10")
	d.end()
	checkListed("person_tokens 10 a command in desk/main", "tokens no limit a command in desk/main", "language it a command in desk/main")
	again := startDaemon(t, strings.Replace(config, `"data"`, `"`+d.dir()+`/data"`, 1))
	again.awaitNotice("READY=1")
	if reply := again.ask("m3"); !strings.Contains(reply, "used up your share") {
		t.Errorf("answer above the user's limit, after a restart: %q", reply)
	}
	again.ask("/set person_tokens default")
	if reply := again.ask("m4"); !strings.Contains(reply, "re m4") {
		t.Errorf("answer after the limit was reset: %q", reply)
	}
	again.end()
}

// TestSetBindsRecon checks that a changed limit of a place also applies to the small model.
func TestSetBindsRecon(t *testing.T) {
	url, _ := modelServer(t, `{"response":"Hello."}`)
	var asked atomic.Int64
	small := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"choices":[{"message":{"content":"{}"},"finish_reason":"stop"}],"usage":{"prompt_tokens":9}}`)
	}))
	t.Cleanup(small.Close)
	config := strings.Replace(atDesk, "[bot]", "[bot]\nadmins = [\"desk/@user/you\"]", 1) + "[prompt]\nrecon = \"small\"\n"
	for name, address := range map[string]string{"home": url, "small": small.URL} {
		config += fmt.Sprintf("[[engine]]\nname = %q\nprovider = \"vllm\"\nmodel = \"m\"\nbase_url = %q\n", name, address)
	}
	config += "[[override]]\npath = \"desk/main\"\nengine = \"home\"\n"
	d := startDaemon(t, config)
	d.awaitNotice("READY=1")
	d.ask("m1")
	until(t, func() bool { return asked.Load() == 1 })
	if reply := d.ask("/set tokens 1"); !strings.Contains(reply, "tokens: 1 ") {
		t.Fatal(reply)
	}
	d.ask("m2")
	d.end()
	if n := asked.Load(); n != 1 {
		t.Errorf("the small model was asked %d times, want once", n)
	}
}
