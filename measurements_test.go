package synthbot_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestMeasurements checks that each command on the page of measurements names an existing test or benchmark.
func TestMeasurements(t *testing.T) {
	page, err := os.ReadFile("docs/measurements.md")
	if err != nil {
		t.Fatal(err)
	}
	commands := regexp.MustCompile("`go test ([^`]+)`").FindAllStringSubmatch(string(page), -1)
	if len(commands) < 20 {
		t.Errorf("got %d commands", len(commands))
	}
	for _, c := range commands {
		words := strings.Fields(strings.ReplaceAll(c[1], "'", ""))
		kind, name, folder := "", "", ""
		for i, w := range words {
			switch {
			case w == "-run" && words[i+1] != "^$":
				kind, name = "Test", strings.TrimPrefix(words[i+1], "Test")
			case w == "-bench":
				kind = "Benchmark"
				name, _, _ = strings.Cut(words[i+1], "/")
			case strings.HasPrefix(w, "./"):
				folder = w
			}
		}
		if name, whole := strings.CutSuffix(name, "$"); !declares(t, folder, kind, name, whole) {
			t.Errorf("%q has no test that `go test %s` runs", folder, c[1])
		}
	}
}

// declares reports whether a test file of the folder has the function.
func declares(t *testing.T, folder, kind, name string, whole bool) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
	if err != nil || folder == "" || name == "" {
		t.Fatal(folder, name, err)
	}
	function := regexp.MustCompile(`(?m)^func ` + kind + `\w*` + name + map[bool]string{true: `\(`, false: `\w*\(`}[whole])
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if function.Match(source) {
			return true
		}
	}
	return false
}
