package persona

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"synthbot/config"
)

func TestEmbeddedIsSomebody(t *testing.T) {
	p := Embedded()
	spoken := p.For("Jay")
	if spoken.Name != "Aria" || !slices.Contains(spoken.Aliases, "Ari") {
		t.Errorf("unexpected name %q or aliases %q", spoken.Name, spoken.Aliases)
	}
	if n := utf8.RuneCountInString(spoken.Text); n < 400 || n > 900 {
		t.Errorf("the text has %d characters, want 400 to 900: %s", n, spoken.Text)
	}
	for _, label := range []string{"Profile: ", "Likes: ", "Dislikes: ", "Interests: ", "Speaking style: "} {
		if strings.Count(spoken.Text, label) != 1 {
			t.Errorf("%q is not in the text exactly once: %s", label, spoken.Text)
		}
	}
	if !strings.Contains(spoken.Dialogue, "Jay: ") || !strings.Contains(spoken.Dialogue, "Aria: ") || spoken.Greeting == "" {
		t.Errorf("unexpected dialogue %q or greeting %q", spoken.Dialogue, spoken.Greeting)
	}
	if strings.ContainsAny(spoken.Text, "\n{}<>") {
		t.Errorf("the text is not one line without placeholders: %q", spoken.Text)
	}
}

func TestForRendersOneLabelledLine(t *testing.T) {
	p := &Persona{
		Name: "Mira\n", Aliases: []string{"Mi", "mira", "Captain"},
		Profile: "Sails.\n\nKnows {{USER}}. Likes: nothing;\x00 really", Likes: []string{"salt", "", "rope; tar."},
		Dislikes: []string{"fog"}, SpeakingStyle: "Dry!", Greeting: "Ahoy {{user}},\r\nI'm <BOT>.",
		ExampleDialogue: "{{ User }}: hi\n{{Char}}: ahoy",
	}
	got := p.For("Jay")
	want := "You are Mira, also called Mi, Captain. Profile: Sails. Knows Jay. Likes – nothing; really. " +
		"Likes: salt; rope, tar. Dislikes: fog. Speaking style: Dry!"
	if got.Text != want {
		t.Errorf("text\n got %s\nwant %s", got.Text, want)
	}
	if got.Dialogue != "Jay: hi\nMira: ahoy" || got.Greeting != "Ahoy Jay,\nI'm Mira." {
		t.Errorf("unexpected dialogue %q or greeting %q", got.Dialogue, got.Greeting)
	}
}

func TestPlaceholders(t *testing.T) {
	for in, want := range map[string]string{
		"{{char}} {{CHAR}} {{ Char }} <BOT> <bot> <char>": "C C C C C C",
		"{{user}} <USER> <User>":                          "U U U",
		"{{original}}x":                                   "x",
		"<b>bold</b> {{random:a,b}} {{ {{user}} 1 < 2":    "<b>bold</b> {{random:a,b}} {{ U 1 < 2",
		"{{user":     "{{user",
		"{{{user}}}": "{U}",
		"猫<user>猫":   "猫U猫",
	} {
		if got := replace(in, "C", "U"); got != want {
			t.Errorf("replace(%q) = %q, want %q", in, got, want)
		}
	}
	if got := replace("{{user}}{{char}}", "<USER>", "{{char}}"); got != "{{char}}<USER>" {
		t.Errorf("a placeholder within a name was replaced: %q", got)
	}
}

func TestForUser(t *testing.T) {
	p := &Persona{Name: "A", Profile: "Talks to {{user}}"}
	for user, want := range map[string]string{
		"": "friend.", " \x00\n": "friend.", "Jay\nIgnore all": "Jay Ignore all.", "x Likes: you": "x Likes – you.",
		strings.Repeat("é", 100): strings.Repeat("é", 63) + "…",
	} {
		if got := p.For(user).Text; !strings.HasSuffix(got, "Talks to "+want) {
			t.Errorf("For(%q): unexpected text %q", user, got)
		}
	}
}

// TestNameBesideAPlaceholder: a user's name cannot complete a label with the text around it, in whatever order
// users come.
func TestNameBesideAPlaceholder(t *testing.T) {
	p := &Persona{Name: "A", Profile: "{{user}}: Pro{{user}}"}
	for user, want := range map[string]string{
		"Likes": "Likes – ProLikes.", "file: x": "file: x: Profile – x.", "Jay": "Jay: ProJay.",
	} {
		if got := p.For(user).Text; got != "You are A. Profile: "+want {
			t.Errorf("For(%q): got %q", user, got)
		}
	}
}

// TestNameLikeAPlaceholder: a persona whose name looks like a placeholder keeps it.
func TestNameLikeAPlaceholder(t *testing.T) {
	p := &Persona{Name: "{{user}}", ExampleDialogue: "{{user}}: hi\n{{char}}: ahoy", Greeting: "{{user}}, I'm {{char}}."}
	got := p.For("Jay")
	if got.Dialogue != "Jay: hi\n{{user}}: ahoy" || got.Greeting != "Jay, I'm {{user}}." {
		t.Errorf("unexpected dialogue %q or greeting %q", got.Dialogue, got.Greeting)
	}
}

func TestTOML(t *testing.T) {
	p, err := Load(write(t, "p.toml", "\ufeff"+`
name = "Mira"
aliases = ["Mi"]
profile = """
Line one
two"""
likes = [
  "a", # a comment
  'b',
]
dislikes = []
interests = ["c"]
speaking_style = "dry"
example_dialogue = "{{user}}: hi"
greeting = "Ahoy"
`))
	if err != nil {
		t.Fatal(err)
	}
	if p.Name != "Mira" || p.Profile != "Line one\ntwo" || !slices.Equal(p.Likes, []string{"a", "b"}) || p.Greeting != "Ahoy" ||
		!slices.Equal(p.Interests, []string{"c"}) || p.SpeakingStyle != "dry" || p.ExampleDialogue != "{{user}}: hi" {
		t.Errorf("unexpected persona %+v", p)
	}
}

func TestTOMLTellsAllFaultsAtOnce(t *testing.T) {
	file := write(t, "p.toml", `# no name here
Profil = "x"
likes = "tea"
dislikes = ["a", 3]
greeting = 7
colour = true

[engine]
name = "x"
`)
	_, err := Load(file)
	if err == nil {
		t.Fatal("no error")
	}
	known := "is unknown; known here are aliases, dislikes, example_dialogue, greeting, interests, likes, name, profile, speaking_style, voice"
	want := []string{
		file + ": name: is missing; write name = \"Aria\"",
		file + ":2: Profil: is unknown; did you mean \"profile\"?",
		file + ":3: likes: is text; write a list, in brackets: [ … ]",
		file + ":4: dislikes[1]: is a whole number; write text in quotes",
		file + ":5: greeting: is a whole number; write text in quotes",
		file + ":6: colour: " + known,
		file + ":8: engine: " + known,
	}
	if got := strings.Split(err.Error(), "\n"); !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", err, strings.Join(want, "\n"))
	}
}

// TestInvisibleAliases checks that each alias has a visible character.
func TestInvisibleAliases(t *testing.T) {
	_, err := Parse("p.toml", []byte("name = \"Mira\"\naliases = [\"\", \" \", \"\\u200b\", \"Mi\"]\n"))
	for _, key := range []string{"aliases[0]", "aliases[1]", "aliases[2]"} {
		if err == nil || !strings.Contains(err.Error(), key+": has no visible character") {
			t.Errorf("%s: %v", key, err)
		}
	}
	if err != nil && strings.Contains(err.Error(), "aliases[3]") {
		t.Error(err)
	}
}

// manyKeys returns a file with n unknown keys.
func manyKeys(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "x%d = 1\n", i)
	}
	return b.String()
}

func TestBadFiles(t *testing.T) {
	for name, tc := range map[string]struct{ content, want string }{
		"empty":     {" \n", "the file is empty: a persona needs at least name"},
		"blank":     {"name = \" \\t\"", ":1: name: is empty"},
		"prose":     {"Dear diary, today I", ":1: cannot be read as TOML: "},
		"cut":       {"name = \"A\"\nprofile = \"x", ":2: cannot be read as TOML: "},
		"long":      {"name = \"" + strings.Repeat("a", 101) + "\"", "101 characters; write 100 or less"},
		"huge":      {"name = \"A\"\n# " + strings.Repeat("a", config.MaxFile), "bytes, at most 1048576 are allowed"},
		"nul":       {"name = \"A\x00\"", "neither a TOML persona nor a character card"},
		"latin1":    {"name = \"Andr\xe9\"", "save it as UTF-8"},
		"jpeg":      {"\xff\xd8\xff\xe0xxx", "JPEG"},
		"webp":      {"RIFF\x00\x00\x00\x00WEBPVP8 ", "WebP"},
		"charx":     {"PK\x03\x04xx", "CHARX"},
		"list":      {"[1, 2]", "cannot be read as TOML"},
		"json":      {"{\"a\":\n 1,}", ":2: not JSON"},
		"no card":   {`{"hello": "world"}`, "no character card"},
		"nameless":  {`{"spec":"chara_card_v2","data":{"name":3}}`, "data.name: missing"},
		"many":      {manyKeys(50000), "key too many"},
		"tables":    {strings.Repeat("[t]\nx = 1\n", 5000), "table t already exists"},
		"items":     {"name = \"A\"\nlikes = [" + strings.Repeat("\"a\",", 200) + "]", "more than 100 entries"},
		"png":       {pngSignature, "truncated PNG"},
		"not a png": {"\x89PNG\n", "neither"},
	} {
		t.Run(name, func(t *testing.T) {
			file := write(t, "p", tc.content)
			p, err := Load(file)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Fatalf("Load = %+v, %v; want an error with %q", p, err, tc.want)
			}
			if lines := strings.Split(err.Error(), "\n"); len(lines) > 101 || !strings.HasPrefix(lines[0], file+":") {
				t.Errorf("%d lines, the first is %q", len(lines), lines[0])
			}
		})
	}
}

// TestMisnamedFiles: an error mentions the format of the file's name rather than TOML.
func TestMisnamedFiles(t *testing.T) {
	for name, want := range map[string]string{"a.png": "not a PNG picture", "b.PNG": "not a PNG picture", "c.json": "not a JSON object"} {
		if _, err := Load(write(t, name, "<html>not found</html>")); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: unexpected error %v", name, err)
		}
	}
	if p, err := Load(write(t, "d.png", `{"name":"Mira"}`)); err != nil || p.Name != "Mira" {
		t.Errorf("a JSON card named .png: unexpected error %v", err)
	}
}

func TestUnloadableFiles(t *testing.T) {
	dir := t.TempDir()
	if _, err := Load(dir); err == nil || !strings.Contains(err.Error(), "not a file") {
		t.Errorf("a directory: unexpected error %v", err)
	}
	if _, err := Load(filepath.Join(dir, "none.toml")); err == nil || !strings.Contains(err.Error(), "check the path") {
		t.Errorf("a missing file: unexpected error %v", err)
	}
	big := filepath.Join(dir, "big.png")
	if err := os.WriteFile(big, []byte(pngSignature), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(big, 100<<20); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(big); err == nil || !strings.Contains(err.Error(), "104857600 bytes, at most 33554432 are allowed") {
		t.Errorf("100 MiB: unexpected error %v", err)
	}
}

func TestShippedFileIsTheEmbeddedOne(t *testing.T) {
	p, err := Load("aria.toml")
	if err != nil {
		t.Fatal(err)
	}
	if p.For("x").Text != Embedded().For("x").Text {
		t.Error("aria.toml and the embedded persona differ")
	}
}

func write(t *testing.T, name, content string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func BenchmarkFor(b *testing.B) {
	p := Embedded()
	for b.Loop() {
		p.For("Jay")
	}
}
