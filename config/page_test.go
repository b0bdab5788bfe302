package config

import (
	"flag"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files")

func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Error(diff)
	}
}

func TestExample(t *testing.T) {
	text := page().Example(new(botConfig))
	golden(t, "testdata/example.toml", text)
	golden(t, "testdata/reference.md", page().Reference(new(botConfig)))

	plain, _, err := readBot(text, world{})
	if err != nil {
		t.Errorf("example as shipped: %v", err)
	}
	var defaults botConfig
	Defaults(&defaults)
	plain.Interfaces, plain.Plugins = nil, nil
	if diff := cmp.Diff(defaults, *plain, cmp.Comparer(func(a, b zone) bool { return a.String() == b.String() })); diff != "" {
		t.Errorf("the example changes the defaults: %s", diff)
	}

	all := regexp.MustCompile(`(?m)^#(\S)`).ReplaceAllString(text, "$1")
	w := world{env: map[string]string{"OPENAI_API_KEY": "a", "TELEGRAM_TOKEN": "b"}}
	bot, telegram, err := readBot(all, w)
	if err != nil {
		t.Fatalf("example with all keys commented in: %v", err)
	}
	if bot.Engines[0].Timeout != 120*time.Second || telegram["telegram"].Token.Reveal() != "b" || *bot.Overrides[0].Activation != "mention" {
		t.Errorf("got %+v %+v", bot, telegram["telegram"])
	}
}

func TestLint(t *testing.T) {
	if err := page().Lint(new(botConfig)); err != nil {
		t.Error(err)
	}
	for name, tc := range map[string]struct {
		into any
		want string
	}{
		"no sentence": {&struct {
			A int `toml:"a"`
		}{}, "not a sentence"},
		"half a sentence": {&struct {
			A int `toml:"a" doc:"What"`
		}{}, "not a sentence"},
		"a bad default": {&struct {
			A int `toml:"a" doc:"A." default:"x"`
		}{}, "write a whole number"},
		"a default too large": {&struct {
			A int `toml:"a" doc:"A." default:"9" max:"8"`
		}{}, "8 or less"},
		"a bad example": {&struct {
			A zone `toml:"a" doc:"A." example:"Moon"`
		}{}, "Moon"},
		"a bad bound": {&struct {
			A time.Duration `toml:"a" doc:"A." min:"5"`
		}{}, "min of"},
		"a bound on a flag": {&struct {
			A bool `toml:"a" doc:"A." min:"5"`
		}{}, "cannot be limited"},
		"a default pointer": {&struct {
			A *int `toml:"a" doc:"A." default:"5"`
		}{}, "nil by default"},
		"an unknown type": {&struct {
			A chan int `toml:"a" doc:"A."`
		}{}, "cannot be read"},
		"a hidden field": {&struct {
			a int `toml:"a" doc:"A."`
		}{}, "cannot be read"},
		"one key twice": {&struct {
			A, B int `toml:"a" doc:"A."`
		}{}, "two fields"},
		"no struct": {new(int), "not a pointer to a struct"},
	} {
		if err := page().Lint(tc.into); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v, want %q", name, err, tc.want)
		}
	}
}

// TestEmbeddedSetting checks that a field of an embedded struct is in the example and in the reference.
func TestEmbeddedSetting(t *testing.T) {
	type more struct {
		Mood string `toml:"mood" doc:"How the bot feels there." oneof:"calm|wild" example:"wild"`
	}
	into := new(struct {
		Overrides []struct {
			Path string `toml:"path" doc:"."`
			more
		} `toml:"override" doc:"."`
	})
	example, reference := Page{}.Example(into), Page{}.Reference(into)
	if want := "# How the bot feels there. One of: calm, wild. For example:\n#mood = \"wild\"\n"; !strings.Contains(example, want) {
		t.Errorf("the example lacks %q:\n%s", want, example)
	}
	if want := "| `mood` | text | – | How the bot feels there. One of: calm, wild. Example: `\"wild\"`. |"; !strings.Contains(reference, want) {
		t.Errorf("the reference lacks %q:\n%s", want, reference)
	}
}
