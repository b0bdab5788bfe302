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
	want := []string{"m.go:3: move the bound: x < limit (not reached)", "m.go:7: leave out of &&: a (not reached)"}
	if !slices.Equal(survivors, want) || len(o.mutants) != 5 || o.tried != 5 {
		t.Errorf("%d of %d mutants, survivors %q", o.tried, len(o.mutants), survivors)
	}
	o = options{dir: dir, limit: time.Minute, at: []string{"m.go:6", "m.go:7"}}
	if survivors, err = o.survivors(); err != nil || o.tried != 4 || len(survivors) != 1 {
		t.Errorf("%d mutants on two lines, survivors %q, %v", o.tried, survivors, err)
	}
}
