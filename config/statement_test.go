package config

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/pelletier/go-toml/v2"
)

func TestStatements(t *testing.T) {
	const text = "\uFEFF a.\"b c\" = [ # ]\n 1,\n] # x\n\n# prose = 1\n#commented = 2\r\n#[t]\n[ x . y ] # end\n[[\"\\u0062\"]]\nv='''\n[no]'''"
	list, err := Statements(text)
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	for _, s := range list {
		fmt.Fprintf(&got, "%d %t %q %q = %q\n", s.Kind, s.Commented, s.Key, text[s.Start:s.End], text[s.From:s.To])
	}
	want := `3 false ["a" "b c"] " a.\"b c\" = [ # ]\n 1,\n] # x\n" = "[ # ]\n 1,\n]"
0 false [] "# prose = 1\n" = ""
3 true ["commented"] "#commented = 2\r\n" = ""
1 true ["t"] "#[t]\n" = ""
1 false ["x" "y"] "[ x . y ] # end\n" = "x . y"
2 false ["b"] "[[\"\\u0062\"]]\n" = "\"\\u0062\""
3 false ["v"] "v='''\n[no]'''" = "'''\n[no]'''"
`
	if diff := cmp.Diff(want, got.String()); diff != "" {
		t.Error(diff)
	}
	_, err = Statements("a = 1\nb = [\n1\n")
	if err == nil || !strings.HasPrefix(err.Error(), "line 3: ") {
		t.Errorf("unclosed list: got %v", err)
	}
}

// FuzzStatements checks that the statements of a valid file do not overlap, and that each value can be
// replaced.
func FuzzStatements(f *testing.F) {
	for _, seed := range []string{whole, "\uFEFFa=1", "#a=1\n#[b]\n[[c]]\nd={e=[1,\n]}", "'a'.\"b\" = 1979-05-27 07:32:00 # x\r\n"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if strings.HasPrefix(text, byteOrderMark) || toml.Unmarshal([]byte(text), new(map[string]any)) != nil {
			return
		}
		list, err := Statements(text)
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		end := 0
		for _, s := range list {
			if s.Start < end || s.End <= s.Start || strings.TrimSpace(text[end:s.Start]) != "" {
				t.Fatalf("%q: %+v follows %d", text, s, end)
			}
			end = s.End
			if s.To == 0 {
				continue
			}
			var wrong *toml.DecodeError
			with := text[:s.From] + "1" + text[s.To:]
			err := toml.Unmarshal([]byte(with), new(map[string]any))
			if errors.As(err, &wrong) && !strings.Contains(wrong.Error(), "already") {
				t.Fatalf("%q became %q: %v", text, with, err)
			}
		}
	})
}
