package config

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"synthbot/core"
	"synthbot/core/secret"
)

const whole = `
[bot]
name = "Ada"
timezone = "Europe/Rome"
admins = ["discord/@user/123456789", "telegram/@user/1000"]

[[engine]]
name = "home"
provider = "ollama"
api_key = "env:KEY"
timeout = "90s"
headers = { "X-Title" = "bot" }

[[engine]]
name = "spare"

[interfaces.telegram]
token = "file:telegram_token"

[interfaces.work]
type = "telegram"
enabled = false
token = "env:NOT_SET"

[budget]
person_tokens = 5
cost = 1

[[override]]
path = "discord/1"
lite = false
`

func TestRead(t *testing.T) {
	w := world{
		env:   map[string]string{"KEY": "k1\n", "CREDENTIALS_DIRECTORY": "/run/cred"},
		files: map[string]string{"/run/cred/telegram_token": "t1\r\n", "/etc/bot/telegram_token": "t2"},
	}
	bot, telegram, err := readBot(whole, w)
	if err != nil {
		t.Fatal(err)
	}
	if bot.Bot.Name != "Ada" || bot.Bot.Language != "en" || bot.Bot.Timezone.String() != "Europe/Rome" ||
		len(bot.Bot.Admins) != 2 || bot.Bot.Admins[0] != core.MustPath("discord/@user/123456789") {
		t.Errorf("bot: %+v", bot.Bot)
	}
	want := []engineConfig{
		{Name: "home", Provider: "ollama", Key: secret.New("k1"), Timeout: 90 * time.Second, Chars: 24000, Headers: map[string]string{"X-Title": "bot"}},
		{Name: "spare", Provider: "offline", Timeout: 2 * time.Minute, Chars: 24000},
	}
	if diff := cmp.Diff(want, bot.Engines, cmp.Comparer(func(a, b secret.Secret) bool { return a == b })); diff != "" {
		t.Error(diff)
	}
	if got := telegram["telegram"]; got.Token.Reveal() != "t1" || got.Pace != "platform" {
		t.Errorf("telegram: %+v %q", got, got.Token.Reveal())
	}
	if got := telegram["work"].Token.Reveal(); got != "env:NOT_SET" {
		t.Errorf("secret of a disabled table: got %q", got)
	}
	if bot.Budget.Person != 5 || bot.Budget.Cost != 1 {
		t.Errorf("budget: %+v", bot.Budget)
	}
	if o := bot.Overrides[0]; o.Engine != nil || o.Lite == nil || *o.Lite {
		t.Errorf("override: %+v", o)
	}
}

func TestFaults(t *testing.T) {
	for _, tc := range []struct{ name, file, want string }{
		{"nothing", "", ""},
		{"comments and a byte order mark", "\uFEFF# hello\r\n", ""},
		{"unknown keys", "[bot]\nnmae = 1\ncolour = \"red\"\n[bots]\n[inteface.x]", `
2: bot.nmae: is unknown; did you mean "name"?
3: bot.colour: is unknown; known here are admins, data_dir, language, name, timezone
4: bots: is unknown; did you mean "bot"?
5: inteface: is unknown; did you mean "interfaces"?`},
		{"wrong types", "bot = 1\nplugins = []\n[prompt]\nlite = \"yes\"\n[budget]\nperson_tokens = 1.5\ncost = \"much\"\n[[engine]]\nname = 1\ntimeout = 30\napi_key = 5", `
1: bot: is a whole number; write it as a table of keys
2: plugins: is a list; write it as a table of keys
4: prompt.lite: is text; write true or false, without quotes
6: budget.person_tokens: is a number with a fraction; write a whole number, without quotes
7: budget.cost: is text; write a number, without quotes
9: engine[0].name: is a whole number; write text in quotes
10: engine[0].timeout: is a whole number; write a duration in quotes, such as "30s"
11: engine[0].api_key: is a whole number; write "env:NAME", "file:PATH" or the secret itself, in quotes`},
		{"one bracket", "[engine]\nname = \"x\"\n[access]\nallow = \"x\"", `
1: engine: is a table; there may be several: write the header with two brackets, [[engine]]
4: access.allow: is text; write a list, in brackets: [ … ]`},
		{"out of range", "[bot]\nname = \"\"\n[budget]\nperson_tokens = -1\ncost = 100.5\n[[engine]]\nname = \"x\"\ntimeout = \"100ms\"\nprovider = \"olama\"\n[prompt]\nscope = \"everywhere\"", `
2: bot.name: is 0 characters; write 1 to 64 characters
4: budget.person_tokens: is -1; write 0 or more
5: budget.cost: is 100.5; write 0 to 100
8: engine[0].timeout: is 100ms; write 1s to 1h
9: engine[0].provider: is "olama"; write "ollama", or else one of offline, openai, ollama
11: prompt.scope: is "everywhere"; write one of chat, interface, unified`},
		{"unparsable texts", "[bot]\ntimezone = \"Moon\"\nadmins = [\n  \"a/b\",\n  \"a//b\",\n  7,\n]\n[[engine]]\nname = \"x\"\ntimeout = \"5 min\"\n[budget]\ncost = nan", `
2: bot.timezone: unknown time zone Moon
5: bot.admins[1]: bad path: "a//b" has an empty element
6: bot.admins[2]: is a whole number; write text in quotes
10: engine[0].timeout: is "5 min"; write a duration such as "90s", "15m" or "1h30m"
12: budget.cost: is not a finite number; write a number, without quotes`},
		{"missing", "[[engine]]\n\n[[engine]]\nname = \"\"\n[[share]]\n[[share]]\npaths = []", `
1: engine[0].name: is missing; write name = "home"
4: engine[1].name: is empty; write name = "home"
5: share[0].paths: is missing; write paths = ["discord/81384788765712384", "telegram/-1001234567890"]
7: share[1].paths: is empty; write paths = ["discord/81384788765712384", "telegram/-1001234567890"]`},
		{"inline and dotted", "bot.name = 1\nengine = [\n  { name = 1 },\n  { name = \"x\", tmeout = \"1s\" },\n]\n[interfaces]\ntelegram.token = 1\ntelegram.pace = \"fast\"", `
1: bot.name: is a whole number; write text in quotes
3: engine[0].name: is a whole number; write text in quotes
4: engine[1].tmeout: is unknown; did you mean "timeout"?
7: interfaces.telegram.token: is a whole number; write "env:NAME", "file:PATH" or the secret itself, in quotes
8: interfaces.telegram.pace: is "fast"; write one of platform, off`},
		{"components", "[interfaces.telegram]\nenabled = \"no\"\ntokn = \"x\"\n[interfaces.t2]\ntoken = \"x\"\npace = \"off\"\n[plugins.dice]\nsides = 1\n[plugins.\"a b\"]\nx = 1", `
1: interfaces.telegram.token: is missing; write token = "env:TELEGRAM_TOKEN"
2: interfaces.telegram.enabled: is text; write true or false, without quotes
3: interfaces.telegram.tokn: is unknown; did you mean "token"?
6: interfaces.t2.pace: is for servers of your own
8: plugins.dice.sides: is 1; write 2 to 100
10: plugins."a b".x: is unknown; known here are enabled, sides, type`},
		{"syntax, and what else is wrong", "[bot]\nname = \"Ada\nlangage = \"en\"\n[prompt]\nlite = maybe\n[[engine]]\ntimeout = 5", `
2: cannot be read as TOML: basic strings cannot have new lines; close the quotes, or use three of them
3: bot.langage: is unknown; did you mean "language"?
5: cannot be read as TOML: unexpected character U+006D 'm' at start of value; write text in quotes
7: engine[0].timeout: is a whole number; write a duration in quotes, such as "30s"`},
		{"words of other languages", "[bot]\nname = Tea\n[prompt]\nlite = False", `
2: cannot be read as TOML: unexpected character U+0054 'T' at start of value; write true in small letters, or text in quotes
4: cannot be read as TOML: unexpected character U+0046 'F' at start of value; write false in small letters, or text in quotes`},
		{"words of other formats", "[bot]\nname = yes # please\n[prompt]\nlite = Off", `
2: cannot be read as TOML: unexpected character U+0079 'y' at start of value; write true, or text in quotes
4: cannot be read as TOML: unexpected character U+004F 'O' at start of value; write false, or text in quotes`},
		{"nothing is concluded from half a table", "[interfaces.telegram]\ntoken = x\npace = \"off\"", `
2: cannot be read as TOML: unexpected character U+0078 'x' at start of value; write text in quotes`},
		{"just within bounds", "[plugins.low]\nsides = 2\n[plugins.high]\nsides = 100\n[budget]\nperson_tokens = 0\n[bot]\nname = \"" + strings.Repeat("ä", 64) + "\"", ""},
		{"an unclosed list", "[bot]\nadmins = [\n\"a\"\nname = \"x\"\n[prompt]\nlite = 1", `
4: cannot be read as TOML: expected ',' or ']' after array value`},
		{"a broken header", "[bot\nname = 1", `
1: cannot be read as TOML: expected ']' to close table name`},
		{"twice", "[bot]\nname = \"a\"\nname = \"b\"\nlite = 1", `
3: cannot be read as TOML: key name is already defined; keep one of the two
4: bot.lite: is unknown; known here are admins, data_dir, language, name, timezone`},
		{"a table twice", "[bot]\n[prompt]\n[bot]\n", `
3: cannot be read as TOML: table bot already exists; keep one of the two`},
		{"no text at all", "\x00\x01\xff", `
1: cannot be read as TOML: invalid character at start of key: U+0000; write key = value, or [table]`},
		{"too deep", strings.Repeat("a.", 40) + "b = 1\n", `
1: nests more than 32 levels deep`},
		{"too many keys", "[bot]\n[bot.x]\n" + manyKeys(), `
10001: is one key too many; a file may hold 10000`},
		{"too deep lists", "\nx = " + strings.Repeat("[", 5000) + strings.Repeat("]", 5000), `
2: nests more than 32 levels deep`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, _, err := readBot(tc.file, world{})
			if diff := cmp.Diff(strings.TrimPrefix(tc.want, "\n"), lines(err)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestSecretFaults(t *testing.T) {
	const value = "s3cret-value"
	w := world{
		env: map[string]string{"EMPTY": "\n", "TWO": value + "\n" + value, "CREDENTIALS_DIRECTORY": "/run/cred"},
		files: map[string]string{
			"/run/cred/blank": "\r\n", "/etc/bot/locked": "locked", "/run/cred/binary": value + "\x00\xff",
			"/etc/bot/huge": strings.Repeat(value, 10_000), "/run/up": value,
		},
	}
	for reference, want := range map[string]string{
		"env:NONE":      "env:NONE is not set in the environment or empty; set it, or keep the secret in a file and write file:PATH",
		"env:EMPTY":     "env:EMPTY is not set in the environment or empty; set it, or keep the secret in a file and write file:PATH",
		"env:TWO":       "env:TWO contains a line break or another character that no secret has; write nothing but the secret there",
		"env:":          "env: names no variable; write env:NAME",
		"file:":         "file: names no file; write file:PATH",
		"file:none":     "file:none is not there (looked at /run/cred/none and /etc/bot/none); create it, readable for the bot only",
		"file:/none":    "file:/none is not there (looked at /none); create it, readable for the bot only",
		"file:../up":    "file:../up is not there (looked at /etc/up); create it, readable for the bot only",
		"file:blank":    "file:blank is empty (/run/cred/blank); put the secret in it",
		"file:locked":   "file:locked cannot be read from /etc/bot/locked: permission denied",
		"file:binary":   "file:binary contains a line break or another character that no secret has; write nothing but the secret there",
		"file:huge":     "file:huge cannot be read from /etc/bot/huge: over 64 KiB",
		value + "\\n":   "contains a line break or another character that no secret has; write nothing but the secret there",
		value + "\\uFF": "",
	} {
		_, _, err := readBot("[[engine]]\nname = \"x\"\napi_key = \""+reference+"\"", w)
		got := lines(err)
		if strings.Contains(got, value) {
			t.Errorf("the fault of %q contains the secret: %s", reference, got)
		}
		if want == "" {
			want = "3: cannot be read as TOML: unicode escape sequence is too short; write \\\\ for a backslash, or use single quotes"
		} else {
			want = "3: engine[0].api_key: " + want
		}
		if got != want {
			t.Errorf("%q:\n got %s\nwant %s", reference, got, want)
		}
	}
}

// TestSecretsStaySecret checks that no fault contains a secret that is written in a wrong way.
func TestSecretsStaySecret(t *testing.T) {
	const canary = "7311846502:AAcanary"
	for _, line := range []string{
		`api_key = CANARY`, `api_key = "CANARY`, `api_key = 'CANARY"`, `api_key = ["CANARY"]`, `api_key = { x = "CANARY" }`, `api_key "CANARY"`,
		`api_key = "CANARY" "CANARY"`, `apikey = "CANARY"`, `api_key = """CANARY`, `api_key = "\qCANARY"`, `api_key = "CANARY\u0000"`,
		`api_key = 73118465021111111111111111111`, `api_key = 7.311846502e99999`, `headers = "CANARY"`, `api_key = 7311846502`,
		"api_key = \"CANARY\"\napi_key = \"CANARY\"", "api_key = \"CANARY\"\n[engine.api_key]\nx = \"CANARY\"", `api_key = [[["CANARY"`,
	} {
		file := "[[engine]]\nname = \"x\"\n" + strings.ReplaceAll(line, "CANARY", canary)
		_, _, err := readBot(file, world{})
		got := lines(err)
		if got == "" || strings.Contains(got, "311846502") || strings.Contains(got, "AAcanary") {
			t.Errorf("%s: got faults %q", line, got)
		}
	}
}

// TestOnDisk reads environment and files of this machine, with the zero Options.
func TestOnDisk(t *testing.T) {
	dir, cred := t.TempDir(), t.TempDir()
	t.Setenv("CREDENTIALS_DIRECTORY", cred)
	t.Setenv("SYNTHBOT_TEST_KEY", "from the environment")
	file := filepath.Join(dir, "c.toml")
	for name, text := range map[string]string{
		file:                       "[[engine]]\nname='a'\napi_key='file:one'\n[[engine]]\nname='b'\napi_key='file:two'\n[[engine]]\nname='c'\napi_key='env:SYNTHBOT_TEST_KEY'",
		filepath.Join(cred, "one"): "from systemd", filepath.Join(dir, "one"): "hidden", filepath.Join(dir, "two"): "from beside\n",
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var bot botConfig
	d := Open(file, Options{})
	d.Decode(&bot)
	if err := d.Err(); err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"from systemd", "from beside", "from the environment"} {
		if got := bot.Engines[i].Key.Reveal(); got != want {
			t.Errorf("key of engine %d: got %q, want %q", i, got, want)
		}
	}
	d = Open(dir, Options{})
	d.Decode(&bot)
	if got, want := d.Err().Error(), dir+": cannot be read: is a directory"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestReferences(t *testing.T) {
	o := world{}.options()
	o.References = true
	var bot botConfig
	file := "[[engine]]\nname='a'\napi_key='env:KEY'\n[[engine]]\nname='b'\napi_key='file:x'\n[[engine]]\nname='c'\napi_key='sk-1'\n[[engine]]\nname='d'"
	if err := Read("c.toml", []byte(file), &bot, o); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range bot.Engines {
		got = append(got, e.Key.Reveal())
	}
	if diff := cmp.Diff([]string{"env:KEY", "file:x", "(literal)", ""}, got); diff != "" {
		t.Error(diff)
	}
}

func TestCallersFaults(t *testing.T) {
	d := Parse("c.toml", []byte("[[override]]\n[[override]]\npath = \"a\"\nengine = \"none\""), Options{})
	d.Fault("names no engine", "override", 1, "engine")
	d.Fault("names no engine", "override", 1, "engine")
	d.Fault("is not there", "override", 7, "engine")
	want := "c.toml:1: override[7].engine: is not there\nc.toml:4: override[1].engine: names no engine"
	if got := d.Err().Error(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if d.Line("override", 1, "path") != 3 || d.Line("override", 0, "path") != 0 || d.Line("override", 1) != 2 {
		t.Error("Line returns a wrong line")
	}
}

func manyKeys() string {
	var b strings.Builder
	for i := range 10_000 {
		fmt.Fprintf(&b, "x%d = 1\n", i)
	}
	return b.String()
}

func TestManyFaults(t *testing.T) {
	var b strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&b, "x%d = 1\n", i)
	}
	err := Read("c.toml", []byte(b.String()), new(botConfig), Options{})
	faults := err.(Faults)
	if n := len(faults); n != maxFaults+1 || faults[n-1].Text != "and 4900 more faults; fix these first" {
		t.Errorf("got %d faults, the last one %q", n, faults[n-1].Text)
	}
}

func TestTooLarge(t *testing.T) {
	big := strings.Repeat("#", MaxFile+1)
	w := world{files: map[string]string{"big": big, "locked": "locked"}}
	for file, want := range map[string]string{
		"big":    "big: is over 1024 KiB; a configuration is smaller",
		"none":   "none: cannot be read: file does not exist",
		"locked": "locked: cannot be read: permission denied",
	} {
		d := Open(file, w.options())
		d.Decode(&struct {
			Must string `toml:"must" required:"true"`
		}{})
		if got := d.Err().Error(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// kinds has a field of each remaining type.
type kinds struct {
	Small   int8                     `toml:"small" default:"0x7f"`
	Ratio   float64                  `toml:"ratio"`
	When    time.Time                `toml:"when"`
	Times   []time.Duration          `toml:"times" default:"1s, 2m" max:"1h"`
	Level   level                    `toml:"level" default:"b" oneof:"|a|b"`
	Keys    map[string]secret.Secret `toml:"keys"`
	Nested  *struct{ inner }         `toml:"nested"`
	Lists   [][]int                  `toml:"lists"`
	Any     Table                    `toml:"any"`
	Unread  chan int
	ignored int `toml:"-"`
	inner
}

type (
	level string
	inner struct {
		Depth *int `toml:"depth" min:"1"`
		Deep  struct {
			Name string `toml:"name" default:"x" required:"true"`
		} `toml:"deep"`
	}
)

func TestKinds(t *testing.T) {
	file := `
small = -128
ratio = 1e3
when = 2026-11-20T11:30:00+01:00
times = ["1h"]
level = "a"
keys = { a = "env:A", "b c" = "plain" }
nested = { depth = 3, deep.name = "y" }
lists = [[1, 2], []]
any.depth = 4
depth = 5`
	var k kinds
	w := world{env: map[string]string{"A": "1"}}
	d := Parse("c.toml", []byte(file), w.options())
	d.Decode(&k)
	var any inner
	k.Any.Decode(&any)
	if err := d.Err(); err != nil {
		t.Fatal(err)
	}
	if k.Small != -128 || k.Ratio != 1000 || k.When.Unix() != 1795170600 || k.Times[0] != time.Hour || k.Level != "a" || k.ignored != 0 {
		t.Errorf("got %+v", k)
	}
	if k.Keys["a"].Reveal() != "1" || k.Keys["b c"].Reveal() != "plain" || *k.Nested.Depth != 3 || k.Nested.Deep.Name != "y" {
		t.Errorf("got %+v", k)
	}
	if len(k.Lists) != 2 || k.Lists[0][1] != 2 || *any.Depth != 4 || any.Deep.Name != "x" || *k.Depth != 5 || k.Deep.Name != "x" {
		t.Errorf("got %+v", k)
	}
	if k.Any.Line() != 10 || k.Any.Line("depth") != 10 || k.Any.Line("deep") != 0 {
		t.Errorf("line: got %d", k.Any.Line())
	}
}

func TestKindsFaults(t *testing.T) {
	file := `small = 128
ratio = inf
when = "noon"
times = ["1m", "61m"]
level = "c"
keys.a = "env:NONE"
nested = {}
lists = [[1, "2"]]
depth = 0
any = 1
[deep]
name = ""`
	var k kinds
	want := `c.toml:1: small: is 128; write -128 to 127
c.toml:2: ratio: is not a finite number; write a number, without quotes
c.toml:3: when: parsing time "noon" as "2006-01-02T15:04:05Z07:00": cannot parse "noon" as "2006"
c.toml:4: times[1]: is 1h1m0s; write 1h or less
c.toml:5: level: is "c"; write one of "", a, b
c.toml:6: keys.a: env:NONE is not set in the environment or empty; set it, or keep the secret in a file and write file:PATH
c.toml:8: lists[0][1]: is text; write a whole number, without quotes
c.toml:9: depth: is 0; write 1 or more
c.toml:10: any: is a whole number; write it as a table of keys
c.toml:12: deep.name: is empty; write name = "x"`
	if diff := cmp.Diff(want, Read("c.toml", []byte(file), &k, world{}.options()).Error()); diff != "" {
		t.Error(diff)
	}
}

func TestLineOfATableNamedTwice(t *testing.T) {
	d := Parse("c.toml", []byte("[a.b]\nx = 1\n[a]\ny = 2\n[[c]]\n[[c.d]]\n[[c.d]]\nz = 1"), Options{})
	for want, at := range map[int][]any{1: {"a", "b"}, 2: {"a", "b", "x"}, 3: {"a"}, 4: {"a", "y"}, 5: {"c", 0}, 7: {"c", 0, "d", 1}, 8: {"c", 0, "d", 1, "z"}} {
		if got := d.Line(at...); got != want {
			t.Errorf("%v: got line %d, want %d", at, got, want)
		}
	}
}

func TestDefaults(t *testing.T) {
	bot := botConfig{}
	bot.Bot.DataDir = "kept"
	bot.Bot.Name = "lost"
	Defaults(&bot)
	if bot.Bot.DataDir != "kept" || bot.Bot.Name != "Aria" || bot.Bot.Timezone.String() != "UTC" || bot.Access.Private != "open" {
		t.Errorf("got %+v", bot)
	}
	telegram := telegramConfig{}
	Table{}.Decode(&telegram)
	if telegram.Pace != "platform" {
		t.Errorf("got %+v", telegram)
	}
}

func BenchmarkRead(b *testing.B) {
	w := world{env: map[string]string{"KEY": "k"}, files: map[string]string{"/etc/bot/telegram_token": "t"}}
	for b.Loop() {
		if _, _, err := readBot(whole, w); err != nil {
			b.Fatal(err)
		}
	}
}
