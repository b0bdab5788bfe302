package schema

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// vectors finds the test suite of the JSON Schema standard, which comes with the library.
func vectors(t *testing.T) string {
	t.Helper()
	out, err := exec.Command("go", "list", "-f", "{{.Dir}}", "github.com/kaptinlin/jsonschema").Output()
	if err != nil {
		t.Skipf("the library's folder cannot be found: %v", err)
	}
	dir := filepath.Join(strings.TrimSpace(string(out)), "testdata", "JSON-Schema-Test-Suite", "tests", "draft2020-12")
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("the library came without the standard's test suite: %v", err)
	}
	return dir
}

// knownFailures lists the vectors that fail with our use of the library, by file or by file and
// group, and why.
func knownFailures() map[string]string {
	const (
		remote   = "would have to be loaded"
		asserted = "is asserted, where the standard only annotates"
		library  = "the library is wrong"
	)
	return map[string]string{
		"refRemote": remote,
		"format":    asserted,
		"content: validation of string-encoded content based on media type":                 asserted,
		"content: validation of binary string-encoding":                                     asserted,
		"content: validation of binary-encoded media type documents":                        asserted,
		"content: validation of binary-encoded media type documents with schema":            asserted,
		"defs: validate definition against metaschema":                                      remote,
		"dynamicRef: strict-tree schema, guards against misspelled properties":              remote,
		"dynamicRef: tests for implementation dynamic anchor and reference link":            remote,
		"dynamicRef: $ref and $dynamicAnchor are independent of order - $defs first":        remote,
		"dynamicRef: $ref and $dynamicAnchor are independent of order - $ref first":         remote,
		"dynamicRef: $ref to $dynamicRef finds detached $dynamicAnchor":                     remote,
		"ref: remote ref, containing refs itself":                                           remote,
		"vocabulary: schema that uses custom metaschema with with no validation vocabulary": remote,
		"format/idn-email: validation of an internationalized e-mail addresses":             library,
		"format/idn-hostname: validation of internationalized host names":                   library,
	}
}

func TestVectors(t *testing.T) {
	dir := vectors(t)
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil || len(files) < 40 {
		t.Fatalf("got %d files, %v", len(files), err)
	}
	formats, err := filepath.Glob(filepath.Join(dir, "optional", "format", "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	known := knownFailures()
	passed, seen := 0, make(map[string]bool)
	for _, file := range append(files, formats...) {
		name := strings.TrimSuffix(filepath.Base(file), ".json")
		if filepath.Base(filepath.Dir(file)) == "format" {
			name = "format/" + name
		}
		for _, g := range groups(t, file) {
			id := name + ": " + g.Description
			ok, n := g.run(t)
			passed += n
			switch {
			case known[name] != "":
				seen[name] = seen[name] || !ok
			case known[id] != "":
				seen[id] = !ok
			case !ok:
				t.Errorf("%s fails", id)
			}
		}
	}
	for id := range known {
		if !seen[id] {
			t.Errorf("%s does not fail; remove it from the list", id)
		}
	}
	t.Logf("%d vectors pass, %d entries are known to fail", passed, len(known))
}

type group struct {
	Description string
	Schema      json.RawMessage
	Tests       []struct {
		Description string
		Data        json.RawMessage
		Valid       bool
	}
}

func groups(t *testing.T, file string) (g []group) {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &g); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return g
}

// run validates the group's values like an action's payload.
func (g *group) run(t *testing.T) (ok bool, passed int) {
	t.Helper()
	s, err := compileSafely(g.Schema)
	if err != nil {
		return false, 0
	}
	ok = true
	for _, test := range g.Tests {
		if s.ValidateJSON(test.Data).IsValid() == test.Valid {
			passed++
		} else {
			ok = false
		}
	}
	return ok, passed
}
