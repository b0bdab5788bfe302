package setup

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/pelletier/go-toml/v2"

	"synthbot/config"
)

func opened(t *testing.T, text string) *File {
	t.Helper()
	f, err := Open(text)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestSet(t *testing.T) {
	for _, tc := range []struct{ name, before, table, key, after string }{
		{"an empty file", "", "bot", "name", "[bot]\nname = 1\n"},
		{"a value", "[bot]\n  name = \"x\"  # mine\nb = 2\n", "bot", "name", "[bot]\n  name = 1  # mine\nb = 2\n"},
		{"an example", "[bot]\n# Its name.\n#name = \"x\"\n\n[b]\n#name = 2\n", "bot", "name", "[bot]\n# Its name.\nname = 1\n\n[b]\n#name = 2\n"},
		{"a new key", "[bot]\na = [\n  1, # ]\n]\n\n[b]\nx = 1\n", "bot", "name", "[bot]\na = [\n  1, # ]\n]\nname = 1\n\n[b]\nx = 1\n"},
		{"an example of another table", "[bot]\n#[spare]\n#name = 1\n", "bot", "name", "[bot]\nname = 1\n#[spare]\n#name = 1\n"},
		{"a table that is an example", "[bot]\n\n# Here.\n#[a.b]\n# It.\n#name = \"x\"\n#y = 2\n", "a.b", "name", "[bot]\n\n# Here.\n[a.b]\n# It.\nname = 1\n#y = 2\n"},
		{"an example that would take keys along", "[bot]\n#[a]\nx = 1\n", "a", "name", "[bot]\n#[a]\nx = 1\n\n[a]\nname = 1\n"},
		{"only its children exist", "[a.b.c]\nx = 1\n", "a.b", "name", "[a.b.c]\nx = 1\n\n[a.b]\nname = 1\n"},
		{"dotted keys", "bot.x = 1\n[b]\nbot.name = 2\n", "bot", "name", "bot.x = 1\nbot.name = 1\n[b]\nbot.name = 2\n"},
		{"dotted keys below a header", "[interfaces]\ntelegram.x = 1 # y\n", "interfaces.telegram", "name", "[interfaces]\ntelegram.x = 1 # y\ntelegram.name = 1\n"},
		{"deep dotted keys", "[interfaces]\ntelegram.webhook.x = 1\n", "interfaces.telegram", "name", "[interfaces]\ntelegram.webhook.x = 1\ntelegram.name = 1\n"},
		{"a dotted value", "[interfaces]\ntelegram.name = '''a\n[b]\nname = 2'''\n", "interfaces.telegram", "name", "[interfaces]\ntelegram.name = 1\n"},
		{"no last newline", "[bot]\nx = 2", "bot", "name", "[bot]\nx = 2\nname = 1\n"},
		{"other line ends", "[bot]\r\n#name = 2\r\nx = 3\r\n", "bot", "name", "[bot]\r\nname = 1\r\nx = 3\r\n"},
		{"quoted keys", "[\"bot\"]\n'name' = 2\n\"na.me\" = 3\n", "bot", "name", "[\"bot\"]\n'name' = 1\n\"na.me\" = 3\n"},
		{"a byte order mark", "\uFEFF[bot]\nname = 2\n", "bot", "name", "\uFEFF[bot]\nname = 1\n"},
		{"a table of a list is not it", "[[x]]\nname = 2\n", "bot", "name", "[[x]]\nname = 2\n\n[bot]\nname = 1\n"},
		{"quotes at the end", "[bot]\nx = \"\"\"a\"\"\"\"\"\nname = 2\n", "bot", "name", "[bot]\nx = \"\"\"a\"\"\"\"\"\nname = 1\n"},
		{"prose is not an example", "[bot]\n# name = 2\n##name = 2\n#name\n", "bot", "name", "[bot]\nname = 1\n# name = 2\n##name = 2\n#name\n"},
	} {
		f := opened(t, tc.before)
		f.setLiteral("1", tc.key, strings.Split(tc.table, ".")...)
		if f.err != nil || f.String() != tc.after {
			t.Errorf("%s: got %v, %q, want %q", tc.name, f.err, f.String(), tc.after)
		}
	}
}

func TestShapes(t *testing.T) {
	for _, text := range []string{"bot = { name = 1 }\n", "interfaces.bot = { name = 1 }\n[interfaces.x]\n"} {
		f := opened(t, text)
		f.setLiteral("1", "name", "bot")
		f.setLiteral("1", "name", "interfaces", "bot")
		if !errors.Is(f.err, ErrShape) {
			t.Errorf("%q: got %v, %q", text, f.err, f.String())
		}
	}
	f := opened(t, "engine = [{ name = 1 }]\n")
	if f.addFirstEngine(Pair{"name", "2"}); !errors.Is(f.err, ErrShape) || f.String() != "engine = [{ name = 1 }]\n" {
		t.Errorf("list on one line: got %v, %q", f.err, f.String())
	}
	for _, text := range []string{"[bot", "a = [1", "a = \"x\nb = 1", "= 1", "a = ", "a = '''x", "a 1"} {
		if _, err := Open(text); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
}

func TestLists(t *testing.T) {
	name := Pair{"name", `"new"`}
	for _, tc := range []struct{ name, before, after string }{
		{"none", "[bot]\n", "[bot]\n\n[[engine]]\nname = \"new\"\n"},
		{"an example", "[bot]\n\n# One.\n#[[engine]]\n#name = \"home\"\n#model = 2\n", "[bot]\n\n# One.\n[[engine]]\nname = \"new\"\n#model = 2\n"},
		{"before another", "[bot]\n\n# My own.\n[[engine]]\nname = \"old\"\n[engine.headers]\nname = 1\n",
			"[bot]\n\n[[engine]]\nname = \"new\"\n\n# My own.\n[[engine]]\nname = \"old\"\n[engine.headers]\nname = 1\n"},
	} {
		f := opened(t, tc.before)
		if f.addFirstEngine(name); f.err != nil || f.String() != tc.after {
			t.Errorf("%s: got %v, %q, want %q", tc.name, f.err, f.String(), tc.after)
		}
	}
	f := opened(t, "[[engine]]\nname = 1\n[[engine]]\n#model = 2\n[engine.headers]\nname = 3\n")
	f.setInEngine(0, "name", "9")
	f.setInEngine(1, "model", "8")
	f.setInEngine(1, "name", "7")
	if want := "[[engine]]\nname = 9\n[[engine]]\nmodel = 8\nname = 7\n[engine.headers]\nname = 3\n"; f.err != nil || f.String() != want {
		t.Errorf("got %v, %q", f.err, f.String())
	}
	if f.setInEngine(2, "name", "1"); !errors.Is(f.err, ErrShape) {
		t.Errorf("missing table: got %v", f.err)
	}
}

func TestText(t *testing.T) {
	for _, text := range []string{"", `a "b" \c`, "two\nlines\tand\ra bell\x07", "caffè \u2028\ufeff", strings.Repeat("'", 3)} {
		var got struct{ A string }
		if err := toml.Unmarshal([]byte("a = "+config.Quote(text)), &got); err != nil || got.A != text {
			t.Errorf("Quote(%q) = %s: %v", text, config.Quote(text), err)
		}
	}
	var got struct{ A []string }
	if err := toml.Unmarshal([]byte("a = "+quoteList([]string{"x", `y"`})), &got); err != nil || !slices.Equal(got.A, []string{"x", `y"`}) {
		t.Errorf("got %v, %v", got, err)
	}
	if config.QuoteKey("a-b_1") != "a-b_1" || config.QuoteKey("a b") != `"a b"` || config.QuoteKey("") != `""` {
		t.Error("keys are quoted wrongly")
	}
}

// FuzzSet checks that setting a key keeps a valid file valid and changes nothing else.
func FuzzSet(f *testing.F) {
	for _, seed := range []string{
		"", "[bot]\nname = 1\n", "[bot]\n#name = 1\n#[x.y]\n#name = 2", "bot.x = 1\n[x]\ny.z = 1", "[[x]]\na = 1\n[x.y]\nname = 1", "bot = 1", "x = {y = {}}",
		"[\"bot\"]\n'name' = '''\n[bot]'''\n", "a = [ # ]\n \"]\", {b = 1}, ]\n[bot] # x\r\n", "a = 1979-05-27 07:32:00 # x\n[x.y.z]\n[bot]", "\"\\u0062ot\".x = 1",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		before := make(map[string]any)
		if toml.Unmarshal([]byte(text), &before) != nil {
			return
		}
		file, err := Open(text)
		if err != nil {
			t.Fatalf("the valid file %q is rejected: %v", text, err)
		}
		for _, table := range [][]string{{"bot"}, {"x", "y"}} {
			if file.set("new", "name", table...); file.err != nil {
				return
			}
			within(before, table)["name"] = "new"
		}
		after := make(map[string]any)
		if err := toml.Unmarshal([]byte(file.String()), &after); err != nil {
			return // the caller validates the result
		}
		if diff := cmp.Diff(before, after); diff != "" {
			t.Fatalf("%q became %q: %s", text, file.String(), diff)
		}
	})
}

// within returns the table of a decoded file at a key, and creates missing tables.
func within(values map[string]any, table []string) map[string]any {
	for _, key := range table {
		if _, ok := values[key].(map[string]any); !ok {
			values[key] = make(map[string]any)
		}
		values = values[key].(map[string]any)
	}
	return values
}
