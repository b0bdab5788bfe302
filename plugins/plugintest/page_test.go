package plugintest

import (
	"encoding/json"
	"go/format"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var block = regexp.MustCompile("(?ms)^<!-- file: (\\S+) -->\n```[a-z]*\n(.*?)^```$")

// mostLines limits the lines of the plugin.
const mostLines = 60

// TestPage compiles the plugin of docs/plugins.md as if it were in a folder beside the others, and runs its
// tests.
func TestPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/plugins.md")
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for _, m := range block.FindAllStringSubmatch(string(page), -1) {
		files[m[1]] = m[2]
		if text, err := format.Source([]byte(m[2])); strings.HasSuffix(m[1], ".go") && (err != nil || string(text) != m[2]) {
			t.Errorf("%s is not formatted (%v)", m[1], err)
		}
	}
	if n := strings.Count(files["tally.go"], "\n"); n == 0 || n >= mostLines {
		t.Errorf("the plugin has %d lines, want fewer", n)
	}
	dir := t.TempDir()
	overlay := lay(t, dir, files)
	binary := filepath.Join(dir, "tally.test")
	// Vet would need the folder.
	execute(t, "", "go", "test", "-c", "-vet=off", "-overlay", overlay, "-o", binary, "../tally")
	out := execute(t, dir, binary, "-test.v")
	for _, want := range []string{"--- PASS: TestScripts/tea", "--- PASS: TestConform/tiers/count_up"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}

// lay writes the files, and the overlay with which the go command finds them in a folder that does not exist.
func lay(t *testing.T, dir string, files map[string]string) (overlay string) {
	t.Helper()
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	replace := make(map[string]string)
	for name, text := range files {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(name, ".go") {
			replace[filepath.Join(filepath.Dir(here), "tally", name)] = file
		}
	}
	raw, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	overlay = filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(overlay, raw, 0o644); err != nil {
		t.Fatal(err)
	}
	return overlay
}

func execute(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	c := exec.CommandContext(t.Context(), name, args...)
	c.Dir = dir
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", filepath.Base(name), strings.Join(args, " "), err, out)
	}
	return string(out)
}
