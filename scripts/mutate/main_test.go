package main

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// TestSurvivors: a change that no test notices survives, and one that a test notices
// does not.
func TestSurvivors(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module m\n\ngo 1.26\n",
		"m.go": `package m

func below(x, limit int) bool { return x < limit }

func both(a, b bool) (ok bool) {
	if a {
		ok = b && a
	}
	return ok
}
`,
		"m_test.go": `package m

import "testing"

func TestBelow(t *testing.T) {
	if !below(1, 2) || below(3, 2) || !both(true, true) || both(true, false) {
		t.Fail()
	}
}
`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	o := options{dir: dir, limit: time.Minute, seed: 1}
	survivors, err := o.survivors()
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(survivors)
	want := []string{"m.go:3: move the bound: x < limit", "m.go:7: leave out of &&: a (not reached)"}
	if !slices.Equal(survivors, want) || len(o.mutants) != 5 {
		t.Errorf("%d mutants, survivors %q", len(o.mutants), survivors)
	}
}
