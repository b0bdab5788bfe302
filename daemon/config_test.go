package daemon

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"synthbot/config"
	"synthbot/core"
)

// TestUnknownPaths checks that each path of the configuration and of the plugins must begin with a known interface,
// that an empty element of a list is reported, and that former names of interfaces are replaced everywhere.
func TestUnknownPaths(t *testing.T) {
	const text = `[bot]
admins = ["", "telegram/1"]
[[budget.place]]
tokens = 5
[[memory.keep]]
path = "telegarm/1"
messages = 10
[plugins.knowledge]
escalate = "telegarm/1"
[plugins.moderation]
count_all = ["telegram_bot/-1", "telegarm/1"]
[plugins.review]
[[plugins.review.place]]
path = "telegram/@user/1"
[plugins.mcp.serve]
as = "telegarm/@user/1"
see = ["telegarm/1", "telegram/@user/1"]
send = ["telegram/@user/1"]
[plugins.blueprint.serve]
place = "telegram/@user/1"
[[plugins.beats.beat]]
name = "hello"
prompt = "Say hello."
at = ["8:00"]
places = ["telegram/@user/1"]
[interfaces.telegram]
token = "1:a"
`
	p := &Env{Getenv: func(string) string { return "" }, Clock: time.Now}
	c, err := p.Parse("config.toml", text)
	unknown := ": begins with telegarm, which is not an interface; there is console, discord, telegram"
	const ofUser = ": is the path of a user; write the path of a place, as /id shows it there"
	want := []string{
		"2: bot.admins[0]: is empty; write a path as /id shows it, or take it out", `2: bot.admins[1]: is not a user; write it like "telegram/@user/1000"`,
		`3: budget.place[0].path: is missing; write path = "console/kitchen"`, "6: memory.keep[0].path" + unknown, "9: plugins.knowledge.escalate" + unknown,
		"11: plugins.moderation.count_all[1]" + unknown, "14: plugins.review.place[0].path" + ofUser,
		"16: plugins.mcp.serve.as" + unknown, "17: plugins.mcp.serve.see[0]" + unknown, "17: plugins.mcp.serve.see[1]" + ofUser,
		"18: plugins.mcp.serve.send[0]" + ofUser, "20: plugins.blueprint.serve.place" + ofUser,
		"25: plugins.beats.beat[0].places[0]" + ofUser,
	}
	if got := strings.ReplaceAll(err.Error(), "config.toml:", ""); got != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", got, strings.Join(want, "\n"))
	}
	c.eachPath(func(key config.Key, _ string, p *core.Path) {
		if key.String() == "plugins.moderation.count_all[0]" && p.String() != "telegram/-1" {
			t.Errorf("%s is still %s", key, p)
		}
	})
}

// TestAllFaultsAtOnce checks that faults that drivers, the database and plugins find are reported with all others, at
// their keys.
func TestAllFaultsAtOnce(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "config.toml")
	write(t, filepath.Join(dir, "poem.json"), "roses")
	write(t, file, `[bot]
activation = "q"
[store]
url = "mysql://me:swordfish@host/x"
[interfaces.discord]
token = "a.b.c"
api_url = "ftp://x"
shards = "many"
[interfaces.telegram]
token = "1:a"
api_url = "ftp://x"
[interfaces.telegram.webhook]
url = "https://bot.example.org"
secret = "a b"
listen = "here"
certificate = "cert.pem"
key = "key.pem"
[[plugins.knowledge.source]]
name = "a"
path = "docs"
[[plugins.lorebook.book]]
path = "x.json"
[[plugins.lorebook.book]]
path = "poem.json"
[[plugins.blueprint.source]]
path = "poem.json"
[[plugins.blueprint.source]]
path = "y.json"
`)
	p := &Env{File: file, Getenv: func(string) string { return "" }, Clock: time.Now}
	_, err := p.Load()
	if err == nil {
		t.Fatal("the configuration was accepted")
	}
	want := []string{
		`2: bot.activation: is "q"`, "4: store.url: is invalid: it must look like postgres://", "7: interfaces.discord.api_url: write an address like",
		"8: interfaces.discord.shards: write auto or a number", `11: interfaces.telegram.api_url: "ftp://x" is not`, "14: interfaces.telegram.webhook.secret: only letters",
		`15: interfaces.telegram.webhook.listen: "here" is not an address`, "16: interfaces.telegram.webhook.certificate: DIR/cert.pem cannot be read: no such file or directory; correct the path",
		"17: interfaces.telegram.webhook.key: DIR/key.pem cannot be read", "20: plugins.knowledge.source[0].path: DIR/docs cannot be read: no such file or directory; correct the path",
		"22: plugins.lorebook.book[0].path: DIR/x.json cannot be read", "24: plugins.lorebook.book[1].path: lorebook poem.json: is not JSON",
		"26: plugins.blueprint.source[0].path: DIR/poem.json: ", "28: plugins.blueprint.source[1].path: DIR/y.json: no such file or directory; correct the path",
	}
	got := strings.Split(strings.ReplaceAll(strings.ReplaceAll(err.Error(), file+":", ""), dir, "DIR"), "\n")
	for i := range max(len(got), len(want)) {
		if i >= len(got) || i >= len(want) || !strings.HasPrefix(got[i], want[i]) {
			t.Fatalf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
	if strings.Contains(err.Error(), "swordfish") {
		t.Errorf("the faults contain a password: %v", err)
	}
}

// TestAddressesAndFolders checks what is said about a port that does not exist, and about a data directory with a ~.
func TestAddressesAndFolders(t *testing.T) {
	p := &Env{Getenv: func(string) string { return "" }, Clock: time.Now}
	for text, want := range map[string]string{
		"[bot]\ndata_dir = \"~/x\"":                      "2: bot.data_dir: begins with ~, which only a shell replaces",
		"[bot]\ndata_dir = \"~x\"":                       "",
		"[metrics]\nlisten = \"127.0.0.1:99999\"":        "2: metrics.listen: has no port from 0 to 65535; write one like 127.0.0.1:9787",
		"[metrics]\nlisten = \"0.0.0.0:9787\"":           "2: metrics.listen: is not a local address; write one like 127.0.0.1:9787",
		"[admin]\nlisten = \"localhost:http\"":           "",
		"[plugins.blueprint.serve]\nlisten = \"[::1]:\"": "2: plugins.blueprint.serve.listen: ",
	} {
		_, err := p.Parse("config.toml", text)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), "config.toml:"+want)) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
}

// TestProgramPaths checks that relative paths of programs start from the folder of the configuration, like those of
// files, and that names without a slash stay.
func TestProgramPaths(t *testing.T) {
	const text = `[store]
url = "postgres://bot@localhost/bot"
[speech]
ffmpeg = "bin/ffmpeg"
[speech.in]
provider = "program"
program = ["./hear", "./{file}"]
[speech.out]
provider = "program"
program = ["speak"]
[[plugins.mcp.server]]
name = "near"
command = ["./tools/near", "./arg"]
[[plugins.mcp.server]]
name = "named"
command = ["named"]
[[plugins.mcp.server]]
name = "inside"
command = ["./run"]
dir = "tools"
`
	load := func(dir string) *Config {
		p := &Env{File: filepath.Join(dir, "config.toml"), Getenv: func(string) string { return "" }, Clock: time.Now}
		write(t, p.File, text)
		c, err := p.Load()
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	dir := t.TempDir()
	c := load(dir)
	if load(t.TempDir()).digest != c.digest {
		t.Error("workers whose files are in different folders count as configured differently")
	}
	if c.digest == (&Config{}).hash() || c.digest == "" {
		t.Error("the settings in the file do not count")
	}
	var got []string
	c.Walk(func(s config.Setting) {
		argv, ok := s.Value.Interface().([]string)
		if ok && s.Kind == "program" {
			got = append(got, argv...)
		}
		if s.Key[len(s.Key)-1] == "dir" {
			got = append(got, s.Value.String())
		}
	})
	if want := filepath.Join(dir, "bin/ffmpeg"); c.Speech.FFmpeg != want {
		t.Errorf("got %q, want %q", c.Speech.FFmpeg, want)
	}
	hear, near, tools := filepath.Join(dir, "hear"), filepath.Join(dir, "tools/near"), filepath.Join(dir, "tools")
	if want := []string{hear, "./{file}", "speak", near, "./arg", "", "named", "", "./run", tools}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestInvisibleWords checks that keywords are short, few and visible.
func TestInvisibleWords(t *testing.T) {
	text := "[bot]\nkeywords = [\"\", \" \", \"\\u200b\", \"help\"]\n[[override]]\npath = \"console/main\"\nkeywords = [" +
		strings.Repeat("\"x\",", 100) + "\"" + strings.Repeat("x", 101) + "\"]\n"
	p := &Env{Getenv: func(string) string { return "" }, Clock: time.Now}
	_, err := p.Parse("config.toml", text)
	const invisible = ": has no visible character; write at least one, or take it out"
	want := []string{
		"config.toml:2: bot.keywords[0]" + invisible, "config.toml:2: bot.keywords[1]" + invisible, "config.toml:2: bot.keywords[2]" + invisible,
		"config.toml:5: override[0].keywords: has more than 100 entries; keep the best",
		"config.toml:5: override[0].keywords[100]: is 101 characters; write 100 or less characters",
	}
	if err == nil || err.Error() != strings.Join(want, "\n") {
		t.Errorf("got\n%v\nwant\n%s", err, strings.Join(want, "\n"))
	}
}
