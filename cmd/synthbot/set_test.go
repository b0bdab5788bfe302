package main

import (
	"net"
	"strings"
	"testing"
	"time"

	"synthbot/core"
)

// TestSet: what an admin changes in a chat holds there and below at once, outlives
// the process, is told by check --path with where it comes from, and can be taken
// back.
func TestSet(t *testing.T) {
	model := echo(t)
	config := strings.Replace(atDesk, "[bot]", "[bot]\nadmins = [\"desk/@user/you\"]", 1) + "[[engine]]\nprovider = \"vllm\"\nmodel = \"m\"\nbase_url = \"" + model +
		"\"\n[[override]]\npath = \"desk/main\"\ntokens = 900000\nactions_deny = [\"dice_*\"]\nperson_tokens = 800000\n[budget]\nperson_tokens = 700000\n"
	d := startDaemon(t, config)
	d.tells("READY=1")
	told := func(wants ...string) {
		t.Helper()
		status, out, errs := d.command("", "check", "--path", "desk/main")
		out = strings.Join(strings.FieldsFunc(out, func(r rune) bool { return r == ' ' }), " ")
		for _, want := range wants {
			if status != 0 || !strings.Contains(out, "\n"+want+"\n") {
				t.Errorf("check --path lacks %q: %d, %s %s", want, status, out, errs)
			}
		}
	}
	told("tokens 900000 override desk/main", "person_tokens 800000 override desk/main", "actions_deny dice_* override desk/main", "language as spoken, else en bot.language")
	for line, want := range map[string]string{
		"/set language it":                      "language: it (a command in desk/main)",
		"/set scope unified":                    "scope: unified (a command in desk/main)",
		"/set actions_deny memory_forget, web*": "actions_deny: dice_* (override desk/main)",
		"/set tokens 1_000":                     "tokens: 1000 (a command in desk/main)",
		"/set scope everywhere":                 "scope is one of chat, interface, unified.",
		"/set tokens -1":                        `"-1" is no number of tokens`,
		"/set actions_allow [":                  `"[" is no pattern`,
		"/set language klingon!":                `is no language`,
		"/set colour red":                       "what is one of language, ",
	} {
		if reply := d.answers(line); !strings.Contains(reply, want) {
			t.Errorf("%s: %q, want %q", line, reply, want)
		}
		if strings.Contains(line, "deny") { // what is denied is told one by one
			if reply, err := d.out.ReadString('\n'); err != nil || !strings.Contains(reply, "a command in desk/main") {
				t.Errorf("%s: then %q, %v", line, reply, err)
			}
		}
	}
	told("tokens 1000 a command in desk/main", "actions_deny memory_forget, web* a command in desk/main", "actions_deny dice_* override desk/main", "scope unified a command in desk/main")
	if reply := d.answers("m1"); !strings.Contains(reply, "used up") {
		t.Errorf("beyond the limit of the place: %q", reply)
	}
	d.answers("/set tokens 0")
	if reply := d.answers("m2"); !strings.Contains(reply, "re m2") {
		t.Errorf("without a limit: %q", reply)
	}
	if _, out, _ := d.command("", "prompt", "--path", "desk/main", "--text", "hi"); strings.Contains(out, `"memory_forget"`) || !strings.Contains(out, `"memory_save"`) {
		t.Errorf("what is denied by command is in the prompt: %s", out)
	}
	d.answers("/set person_tokens 10")
	d.end()
	told("person_tokens 10 a command in desk/main", "tokens no limit a command in desk/main", "language it a command in desk/main")
	again := startDaemon(t, strings.Replace(config, `"data"`, `"`+d.dir()+`/data"`, 1))
	again.tells("READY=1")
	if reply := again.answers("m3"); !strings.Contains(reply, "Your share") && !strings.Contains(reply, "used up your share") {
		t.Errorf("beyond the person's limit, in the next life: %q", reply)
	}
	again.answers("/set person_tokens default")
	if reply := again.answers("m4"); !strings.Contains(reply, "re m4") {
		t.Errorf("taken back: %q", reply)
	}
	again.end()
}

// TestTwoLimits: a place has one limit of tokens.
func TestTwoLimits(t *testing.T) {
	file := t.TempDir() + "/config.toml"
	write(t, file, "[[budget.place]]\npath = \"desk/1\"\ntokens = 5\n[[override]]\npath = \"desk/1\"\ntokens = 6\n")
	p := &program{file: file, getenv: func(string) string { return "" }, clock: time.Now}
	if _, err := p.load(); err == nil || !strings.Contains(err.Error(), ":6: override[0].tokens: has a budget.place") {
		t.Errorf("%v", err)
	}
}

// TestAllowByCommand: of lists of what is to be had, that of the longest path
// counts, and of equals the command's.
func TestAllowByCommand(t *testing.T) {
	list := "dice_*"
	b := &bot{overlay: &overlay{places: map[core.Path]changed{core.MustPath("desk/1"): {Allow: &list}}}}
	c := &Config{Overrides: []Override{{Path: core.MustPath("desk/1"), ActionsAllow: []string{"web_*"}}, {Path: core.MustPath("desk/1/2"), ActionsAllow: []string{"memory_*"}}}}
	for place, want := range map[string]string{"desk/1": "dice_* a command in desk/1", "desk/1/2/3": "memory_* override desk/1/2", "desk/2": "all -"} {
		b.limitsInEffect(c, core.MustPath(place), func(name, value, from string) {
			if name == "actions_allow" && value+" "+from != want {
				t.Errorf("%s: %s %s, want %s", place, value, from, want)
			}
		})
	}
}

// TestNotifyDeadline: a service manager that does not listen holds nobody up.
func TestNotifyDeadline(t *testing.T) {
	name := t.TempDir() + "/notify"
	deaf, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: name, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer deaf.Close()
	began := time.Now()
	for n := 0; notifyAt(name, "WATCHDOG=1") == nil; n++ {
		if n > 100_000 {
			t.Fatal("it never ends to listen")
		}
	}
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("it took %s to give up", took)
	}
}
