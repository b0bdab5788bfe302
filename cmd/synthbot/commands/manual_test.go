package commands

import (
	"bytes"
	"context"
	"os/exec"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"synthbot/daemon"
)

// mustRun runs a command line that must succeed, and returns its output.
func mustRun(t *testing.T, args ...string) string {
	t.Helper()
	var out, errs bytes.Buffer
	if status := run(t.Context(), args, strings.NewReader(""), &out, &errs); status != statusDone {
		t.Fatalf("%v: status %d: %s", args, status, errs.String())
	}
	return out.String()
}

// TestManualSaysAllThatHelpSays checks that the page has each command's description, usage line and flags.
func TestManualSaysAllThatHelpSays(t *testing.T) {
	plain := strings.NewReplacer(`\-`, "-", `\e`, `\`, `\&`, "")
	page := plain.Replace(mustRun(t, "manual"))
	root := (&program{Env: new(daemon.Env)}).root()
	var commands int
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		for _, below := range c.Commands() {
			walk(below)
		}
		if c == root || !c.Runnable() || c.Name() == "help" {
			return
		}
		if c.Hidden {
			if strings.Contains(page, ".SS "+c.CommandPath()) {
				t.Errorf("%s is hidden, but has a section", c.CommandPath())
			}
			return
		}
		commands++
		sentence := c.Short
		if c.Long != "" {
			sentence, _, _ = strings.Cut(c.Long, "\n")
		}
		for _, line := range append(strings.Split(c.LocalFlags().FlagUsagesWrapped(76), "\n"), ".SS "+c.UseLine(), sentence) {
			if !strings.Contains(page, strings.TrimSpace(line)) {
				t.Errorf("%s: the page lacks %q", c.CommandPath(), line)
			}
		}
	}
	walk(root)
	if commands < 15 {
		t.Errorf("compared %d commands, want at least 15", commands)
	}
}

func TestManualIsMadeOfText(t *testing.T) {
	for text, want := range map[string]string{
		"plain":          "plain",
		".so /etc/x":     `\&.so /etc/x`,
		"a\n'b\n.c":      "a\n\\&'b\n\\&.c",
		`--all \fB or -`: `\-\-all \efB or \-`,
	} {
		if got := roff(text); got != want {
			t.Errorf("roff(%q) = %q, want %q", text, got, want)
		}
	}
}

// TestManualIsTakenByMan formats the page with groff, as man does, and accepts no warning.
func TestManualIsTakenByMan(t *testing.T) {
	groff, err := exec.LookPath("groff")
	if err != nil {
		t.Skip("groff is missing")
	}
	c := exec.CommandContext(t.Context(), groff, "-man", "-ww", "-Tutf8", "-P-cbou")
	c.Stdin = strings.NewReader(mustRun(t, "manual"))
	var warnings bytes.Buffer
	c.Stderr = &warnings
	text, err := c.Output()
	if err != nil || warnings.Len() > 0 {
		t.Fatalf("%v: %s", err, warnings.String())
	}
	for _, want := range []string{"SYNTHBOT(1)", "synthbot memory search TEXT", "--config file", "EXIT STATUS"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the page lacks %q:\n%s", want, text)
		}
	}
}

func TestCompletionsForEachShell(t *testing.T) {
	for shell, want := range map[string]string{
		"bash": "complete -o default -F __start_synthbot synthbot",
		"zsh":  "#compdef synthbot",
		"fish": "complete -c synthbot",
	} {
		if got := mustRun(t, "completion", shell); !strings.Contains(got, want) {
			t.Errorf("%s: no %q in %d bytes", shell, want, len(got))
		}
	}
	if status, out, errs := runLine(t, "", "completion", "xyz"); status != statusUsage || out != "" || !strings.Contains(errs, "xyz") {
		t.Errorf("an unknown shell: %d, %q, %q", status, out, errs)
	}
	if status, out, _ := runLine(t, "", "completion"); status != statusDone || !strings.Contains(out, "bash") {
		t.Errorf("no shell: %d, %q", status, out)
	}
	var out, errs bytes.Buffer
	run(context.WithoutCancel(t.Context()), []string{"__complete", "memory", "se"}, strings.NewReader(""), &out, &errs)
	if !strings.Contains(out.String(), "search\tSearch the memories") {
		t.Errorf("memory se: %q %q", out.String(), errs.String())
	}
}
