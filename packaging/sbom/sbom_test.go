package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
)

func TestBillListsWhatWasBuiltIn(t *testing.T) {
	info := &debug.BuildInfo{
		GoVersion: "go1.99.1", Path: "house/cmd/bot", Main: debug.Module{Path: "house", Version: "(devel)"},
		Deps: []*debug.Module{
			{Path: "example.org/z", Version: "v1.0.0", Sum: "h1:zzz="},
			{Path: "example.org/a", Version: "v2.0.0+incompatible", Sum: "h1:aaa="},
			{Path: "example.org/old", Version: "v1.0.0", Replace: &debug.Module{Path: "example.org/new", Version: "v1.0.1", Sum: "h1:nnn="}},
		},
		Settings: []debug.BuildSetting{{Key: "CGO_ENABLED", Value: "0"}},
	}
	b := billOf(info, "v0.9.0", [32]byte{0xab})
	var got []string
	for _, c := range b.Components {
		line := c.Type + " " + c.URL
		for _, p := range c.Properties {
			line += " " + p.Name + "=" + p.Value
		}
		got = append(got, line)
	}
	want := []string{
		"library pkg:golang/example.org/a@v2.0.0+incompatible go:sum=h1:aaa=",
		"library pkg:golang/example.org/new@v1.0.1 go:sum=h1:nnn=",
		"library pkg:golang/example.org/z@v1.0.0 go:sum=h1:zzz=",
		"library pkg:golang/std@1.99.1",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("components:\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	p := b.Metadata.Component
	if p.URL != "pkg:golang/house@v0.9.0" || !strings.HasPrefix(p.Hashes[0].Content, "ab00") || p.Properties[0] != (property{"go:build:CGO_ENABLED", "0"}) {
		t.Errorf("program: %+v", p)
	}
	if d := b.Dependencies[0]; d.Ref != p.Ref || len(d.On) != len(want) {
		t.Errorf("dependencies: %+v", d)
	}
}

// TestRun reads a real binary, this one, twice.
func TestRun(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var one, two bytes.Buffer
	if err := run([]string{self, "v1"}, "86400", &one); err != nil {
		t.Fatal(err)
	}
	if err := run([]string{self, "v1"}, "86400", &two); err != nil || one.String() != two.String() {
		t.Errorf("not the same bytes, %v", err)
	}
	var b bill
	if err := json.Unmarshal(one.Bytes(), &b); err != nil {
		t.Fatal(err)
	}
	if b.Metadata.Timestamp != "1970-01-02T00:00:00Z" || b.Metadata.Component.Name != "synthbot" {
		t.Errorf("metadata: %+v", b.Metadata)
	}
	std := "pkg:golang/std@" + strings.TrimPrefix(runtime.Version(), "go")
	if len(b.Components) == 0 || b.Components[len(b.Components)-1].Ref != std {
		t.Errorf("%s is not listed: %+v", std, b.Components)
	}
}

func TestRunRefuses(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	text := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(text, []byte("no program"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		args  []string
		epoch string
	}{
		"no version": {[]string{self}, ""},
		"no file":    {[]string{text + "x", "v1"}, ""},
		"no program": {[]string{text, "v1"}, ""},
		"no date":    {[]string{self, "v1"}, "yesterday"},
	} {
		var out bytes.Buffer
		if err := run(tc.args, tc.epoch, &out); err == nil || out.Len() > 0 {
			t.Errorf("%s: %v, %d bytes", name, err, out.Len())
		}
	}
}
