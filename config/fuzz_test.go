package config

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/pelletier/go-toml/v2"
)

// FuzzRead checks that reading never panics, and that a fault of a key in the file names a line with the key.
func FuzzRead(f *testing.F) {
	example, err := os.ReadFile("testdata/example.toml")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(example)
	f.Add(bytes.ReplaceAll(example, []byte("\n#"), []byte("\n")))
	for _, seed := range []string{
		whole, "[[engine]]\n[[engine]]\nx=1\n[engine.headers]\na=1", "engine=[{name=1},{x={y=[{z=1}]}}]", "bot.name=1\n[bot.x]\ny=1",
		"[a.b.c]\n[a]\nb.d=1", "\"a b\".'c'=[[1,[2]],{}]", "a=1\na=2\n[bot]\nname=\"x", "[bot]\nadmins=[\n1,\n\"a//b\"\n]", "[[a]]\n[[a.b]]\n[a.b.c]\nd=1",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		_, _, err := readBot(string(data), world{env: map[string]string{"A": "b"}})
		var faults Faults
		if err == nil || !errors.As(err, &faults) {
			return
		}
		values := make(map[string]any)
		readable := toml.Unmarshal(data, &values) == nil
		text := strings.Split(string(data), "\n")
		for _, fault := range faults {
			if fault.Line < 0 || fault.Line > len(text) || fault.Text == "" {
				t.Fatalf("%q has %d lines, got the fault %+v", data, len(text), fault)
			}
			if readable && fault.Key != "" && contains(values, fault.Key) && !strings.Contains(text[max(fault.Line-1, 0)], lastName(fault.Key)) {
				t.Fatalf("%q: the fault %+v has another line than its key", data, fault)
			}
		}
	})
}

// contains reports whether the file has a key of bare names. It does not use the package's own search for
// lines.
func contains(values map[string]any, key string) bool {
	var here any = values
	for part := range strings.SplitSeq(key, ".") {
		name, index, listed := strings.Cut(part, "[")
		table, ok := here.(map[string]any)
		if !ok || strings.ContainsAny(name, `"…`) {
			return false
		}
		if here, ok = table[name]; !ok {
			return false
		}
		if list, ok := here.([]any); listed && ok {
			n := 0
			for _, digit := range strings.TrimSuffix(index, "]") {
				n = n*10 + int(digit-'0')
			}
			if n >= len(list) || n < 0 {
				return false
			}
			here = list[n]
		}
	}
	return true
}

// lastName returns what the line of a key must contain: its last name. It returns "" for a list element, which
// has no name, and for a name that may be escaped.
func lastName(key string) string {
	name := key[strings.LastIndexByte(key, '.')+1:]
	if strings.Contains(name, "[") {
		return ""
	}
	return name
}
