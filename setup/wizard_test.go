package setup

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/pelletier/go-toml/v2"

	"synthbot/core"
	"synthbot/core/engine"
	"synthbot/core/secret"
	"synthbot/interfaces/console"
)

// script answers questions by their title. A question without an answer fails the test.
type script struct {
	t       *testing.T
	answers map[string][]string
	asked   []console.Question
	notes   []string
}

func (s *script) Ask(_ context.Context, q console.Question) (string, error) {
	s.asked = append(s.asked, q)
	given := s.answers[q.Title]
	if len(given) == 0 {
		s.t.Errorf("the user was asked %q", q.Title)
		return "", console.ErrLeft
	}
	s.answers[q.Title] = given[1:]
	answer := given[0]
	if answer == "<back>" {
		return "", console.ErrBack
	}
	if answer == "<proposed>" {
		answer = q.Initial
	}
	if len(q.Options) > 0 && !slices.ContainsFunc(q.Options, func(o console.Option) bool { return o.Value == answer }) {
		s.t.Errorf("%q is not an answer to %q: %v", answer, q.Title, q.Options)
	}
	if q.Check != nil {
		if err := q.Check(answer); err != nil {
			return s.Ask(context.Background(), q)
		}
	}
	return answer, nil
}

func (s *script) Note(text string) { s.notes = append(s.notes, text) }

// Tokens with the format of Telegram. Only the first one is known.
const (
	goodToken    = "123456789:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
	unknownToken = "123456789:BBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBB"
)

// at returns a wizard in a small world: an Ollama server with two models, and one known token for each
// platform.
func at(current Current, a Answers) *Wizard {
	return &Wizard{
		Answers: &a, Current: current, Found: make(map[string][]core.Finding),
		Probes: Probes{
			Models: func(_ context.Context, base string) ([]string, error) {
				if base != usualOllama {
					return nil, errors.New("nobody there")
				}
				return []string{"nomic-embed-text:latest", "llama3.1:8b"}, nil
			},
			Identify: func(_ context.Context, platform string, _ Account, token secret.Secret) []core.Finding {
				if token.Reveal() != goodToken {
					return []core.Finding{{What: "identity", Found: "unknown", Fix: "the token is refused", Fatal: true}}
				}
				return []core.Finding{{What: "identity", Found: "@" + platform + "_bot"}}
			},
			Resolve: func(reference string) (secret.Secret, error) {
				if reference == "env:GOOD" {
					return secret.New(goodToken), nil
				}
				return secret.Secret{}, errors.New(reference + " is not set")
			},
			Persona: func(file string) error {
				if file != "card.png" {
					return errors.New("there is no such file")
				}
				return nil
			},
		},
		Defaults: Defaults{Timezone: "Europe/Rome", Language: "it"},
	}
}

func TestAsk(t *testing.T) {
	s := &script{t: t, answers: map[string][]string{
		"Who is the bot?":                   {New},
		"What is its name?":                 {"", "Mira D."},
		"Who is Mira D.?":                   {"She sails.\nAnd \"talks\"."},
		"Which language model does it use?": {"<proposed>"},
		"Which model?":                      {"llama3.1:8b"},
		"Telegram token?":                   {"bad", unknownToken, goodToken},
		"Discord token?":                    {"env:NONE"},
		"That token cannot be used.":        {New, New, Keep},
		"Who is its admin?":                 {"<proposed>"},
	}}
	talk := at(Current{}, Answers{})
	talk.Terminal = s
	if err := talk.Ask(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := *talk.Answers
	want := Answers{
		Persona: New, PersonaName: "Mira D.", PersonaText: "She sails.\nAnd \"talks\".", Engine: "ollama", Model: "llama3.1:8b", Claim: ByCode,
		Telegram: Account{Token: Secret{Typed: secret.New(goodToken)}}, Discord: Account{Token: Secret{Word: "env:NONE"}},
		Timezone: "Europe/Rome", Language: "it",
	}
	if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b secret.Secret) bool { return a == b })); diff != "" {
		t.Error(diff)
	}
	for title, left := range s.answers {
		if len(left) > 0 {
			t.Errorf("%q was asked too rarely", title)
		}
	}
	for _, q := range s.asked {
		if strings.HasSuffix(q.Title, "token?") && !q.Hidden {
			t.Error("a note shows the token")
		}
	}
	if want := "Asking Telegram whose token that is…"; !slices.Equal(s.notes, []string{want, want}) {
		t.Errorf("notes while the user waits: got %q; a token with a wrong format must not be sent", s.notes)
	}
	if found := talk.Found[Telegram]; len(found) != 2 || found[1].Found != "https://t.me/telegram_bot" {
		t.Errorf("Telegram's answer: got %+v", found)
	}
}

// TestAskGoesBack checks that going back asks the previous question again, and drops what its answer led to.
func TestAskGoesBack(t *testing.T) {
	s := &script{t: t, answers: map[string][]string{
		"Who is the bot?": {New, "<proposed>"}, "What is its name?": {"Mira", "<back>", "Mora"}, "Who is Mira?": {"<back>"},
		"Who is Mora?": {"She sails."}, "Which language model does it use?": {Offline}, "Telegram token?": {goodToken, "", ""},
		"Discord token?": {"<back>", "<back>", ""},
	}}
	talk := at(Current{}, Answers{Timezone: "UTC"})
	talk.Terminal = s
	if err := talk.Ask(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := *talk.Answers
	if got.PersonaName != "Mora" || got.PersonaText != "She sails." || got.Engine != Offline || got.Timezone != "UTC" || got.Claim != "" {
		t.Errorf("answers: got %+v", got)
	}
	if token := got.Telegram.Token; token != (Secret{Word: None}) {
		t.Errorf("dropped token: got %+v", token)
	}
}

// TestNoQuestionTwice checks that answers given as flags are not asked for.
func TestNoQuestionTwice(t *testing.T) {
	talk := at(Current{}, Answers{
		Persona: "card.png", Engine: "openai", Model: "gpt", Key: Secret{Word: "env:GOOD"}, Admins: []string{"telegram/@user/1"}, DataDir: "d", Timezone: "UTC", Language: "en",
		Telegram: Account{Token: Secret{Word: "env:GOOD"}}, Discord: Account{Token: Secret{Word: None}},
	})
	talk.Terminal = &script{t: t}
	if err := talk.Ask(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestFill(t *testing.T) {
	good := Account{Token: Secret{Word: "env:GOOD"}}
	for _, tc := range []struct {
		name  string
		given Answers
		usual bool
		want  string
	}{
		{"nothing", Answers{}, false, "answers are missing: give --persona, --engine, --telegram-token, --discord-token (none: without), or --yes for the defaults"},
		{"half", Answers{PersonaName: "x", Persona: New, Engine: "openai", Telegram: good}, false, "give --persona-text, --model, --api-key"},
		{"what is not usual", Answers{Engine: "openai", Persona: New}, true, "give --persona-name, --persona-text, --model, --api-key"},
		{"a secret in the open", Answers{Persona: "card.jpg", Engine: Offline, Telegram: good}, false, "--persona: there is no such file"},
		{"no engine", Answers{Persona: BuiltIn, Engine: "alpaca", Model: "m", Telegram: good}, false, `--engine: there is no "alpaca"; there is `},
		{"no zone", Answers{Timezone: "Moon"}, true, "--timezone: is not a time zone"},
		{"no language", Answers{Language: "??"}, true, "--language: "},
		{"no person", Answers{Admins: []string{"telegram/1"}}, true, "--admin: not the path of a user"},
		{"a key that is not there", Answers{Engine: "openai", Model: "m", Key: Secret{Word: "env:NONE"}}, true, "--api-key: env:NONE is not set"},
		{"a token that nobody knows", Answers{Telegram: Account{Token: Secret{Typed: secret.New(unknownToken)}}}, true,
			"--telegram-token: identity: the token is refused"},
		{"a token of another server", Answers{Discord: Account{Token: Secret{Typed: secret.New("bad")}, APIURL: "x"}}, true,
			"--discord-token: identity: the token is refused"},
		{"a token of another shape", Answers{Discord: Account{Token: Secret{Typed: secret.New("bad")}}}, true,
			"--discord-token: its token does not look like one of Discord: three parts"},
	} {
		err := at(Current{}, tc.given).Fill(t.Context(), tc.usual)
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v, want %q", tc.name, err, tc.want)
		}
	}
	talk := at(Current{}, Answers{})
	if err := talk.Fill(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	if a := talk.Answers; a.Persona != BuiltIn || a.Engine != "ollama" || a.Model != "llama3.1:8b" || a.Claim != "" || a.Timezone != "Europe/Rome" {
		t.Errorf("defaults: got %+v", a)
	}
	again := at(Current{Exists: true, Accounts: map[string]bool{Telegram: true}, Admins: []string{"x/@user/1"}}, Answers{})
	if err := again.Fill(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	a := again.Answers
	tokens := []string{a.Telegram.Token.Word, a.Discord.Token.Word}
	if a.Persona != Keep || a.Engine != Keep || a.Claim != Keep || !slices.Equal(tokens, []string{Keep, None}) {
		t.Errorf("defaults with an existing file: got %+v", a)
	}
}

// TestUnchecked checks that tokens are accepted without a request if checks are off.
func TestUnchecked(t *testing.T) {
	talk := at(Current{}, Answers{Telegram: Account{Token: Secret{Word: "env:NONE"}}})
	talk.Probes.Identify = nil
	if err := talk.Fill(t.Context(), true); err != nil {
		t.Error(err)
	}
}

func TestReadSecret(t *testing.T) {
	lines := []string{" secret \n", "\n"}
	next := func() (string, error) {
		if len(lines) == 0 {
			return "", errors.New("it is over")
		}
		l := lines[0]
		lines = lines[1:]
		return l, nil
	}
	if s, err := ReadSecret("-", next); err != nil || s.Typed.Reveal() != "secret" || s.Word != "" {
		t.Errorf("got %+v, %v", s, err)
	}
	for range 2 {
		if _, err := ReadSecret("-", next); err == nil {
			t.Error("an empty secret was accepted")
		}
	}
	for _, word := range []string{"", Keep, None, "env:A", "file:b"} {
		if s, err := ReadSecret(word, next); err != nil || s.Word != word {
			t.Errorf("%q: got %+v, %v", word, s, err)
		}
	}
	if _, err := ReadSecret("110201543:AAHd", next); err == nil || strings.Contains(err.Error(), "AAHd") {
		t.Errorf("secret on the command line: got %v", err)
	}
}

const example = `# The configuration.

[bot]
# Its name.
#name = "Aria"
#data_dir = "data"
#timezone = "Europe/Rome"
#language = "en"
#claim = ""
#admins = ["telegram/@user/1000"]

[persona]
#path = "persona/aria.toml"

# A model.
#[[engine]]
#name = "home"
#provider = "offline"
#model = "llama3.1"
#base_url = "http://127.0.0.1:11434"
#api_key = "env:OPENAI_API_KEY"

#[interfaces.telegram]
#enabled = true
#token = "env:TELEGRAM_TOKEN"
#api_url = "https://api.telegram.org"
#[interfaces.telegram.webhook]
#url = "x"

[access]
#private = "open"
`

func TestApply(t *testing.T) {
	talk := at(Current{}, Answers{
		Persona: New, PersonaName: "Mira D.", PersonaText: "She sails.", Engine: "openai", Model: "gpt", Key: Secret{Typed: secret.New("k")},
		Telegram: Account{Token: Secret{Typed: secret.New("t")}, APIURL: "http://127.0.0.1:1"}, Discord: Account{Token: Secret{Word: "env:D"}},
		Claim: ByCode, Language: "it",
	})
	f := opened(t, example)
	out, err := talk.Apply(f)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.NewReplacer(
		`#path = "persona/aria.toml"`, `path = "persona/mira-d.toml"`, `#[[engine]]`, `[[engine]]`, `#name = "home"`, `name = "openai"`, `#provider = "offline"`, `provider = "openai"`,
		`#model = "llama3.1"`, `model = "gpt"`, `#api_key = "env:OPENAI_API_KEY"`, `api_key = "file:openai_key"`, "#[interfaces.telegram]\n", "[interfaces.telegram]\n",
		`#token = "env:TELEGRAM_TOKEN"`, `token = "file:telegram_token"`, `#api_url = "https://api.telegram.org"`, `api_url = "http://127.0.0.1:1"`,
		`#private = "open"`, `private = "pairing"`, `#language = "en"`, `language = "it"`, `#claim = ""`, `claim = "`+string(out.Claim)+`"`,
	).Replace(example) + "\n[interfaces.discord]\ntoken = \"env:D\"\n"
	if diff := cmp.Diff(want, f.String()); diff != "" {
		t.Error(diff)
	}
	if names := slices.Sorted(maps.Keys(out.Secrets)); !slices.Equal(names, []string{"openai_key", "telegram_token"}) || out.Secrets["telegram_token"].Reveal() != "t" {
		t.Errorf("secrets: got %v", names)
	}
	if out.Persona != "persona/mira-d.toml" || !strings.Contains(out.Text, "She sails.") {
		t.Errorf("persona %q: %s", out.Persona, out.Text)
	}
}

// TestApplyAgain checks that existing keys are kept and new ones are added.
func TestApplyAgain(t *testing.T) {
	const before = `[bot]
admins = ["telegram/@user/1"] # me
[persona]
path = "mine.png"
# Fast.
[[engine]]
provider = "vllm"
model = "m"
[interfaces.telegram]
token = "literal"
[access]
private = "open"
`
	current := Current{
		Exists: true, Persona: "mine.png", Engines: []engine.Config{{Provider: "vllm", Model: "m"}}, Accounts: map[string]bool{Telegram: true}, Admins: []string{"telegram/@user/1"}, Access: true,
	}
	for _, tc := range []struct {
		name   string
		given  Answers
		change []string
	}{
		{"nothing new", Answers{}, nil},
		{"another model of the same engine", Answers{Engine: "vllm", Model: "n"}, []string{`"m"`, `"n"`}},
		{"another engine", Answers{Engine: "ollama", Model: "n"}, []string{"# Fast.\n", "[[engine]]\nname = \"ollama\"\nprovider = \"ollama\"\nmodel = \"n\"\n\n# Fast.\n"}},
		{"the same engine elsewhere", Answers{Engine: "vllm", Model: "n", BaseURL: "http://x"},
			[]string{"# Fast.\n", "[[engine]]\nname = \"vllm-2\"\nprovider = \"vllm\"\nmodel = \"n\"\nbase_url = \"http://x\"\n\n# Fast.\n"}},
		{"no engine", Answers{Engine: Offline}, []string{"model = \"m\"\n", "model = \"m\"\ndisabled = true\n"}},
		{"no telegram", Answers{Telegram: Account{Token: Secret{Word: None}}}, []string{"token = \"literal\"\n", "token = \"literal\"\nenabled = false\n"}},
		{"another admin", Answers{Admins: []string{"telegram/@user/2", "telegram/@user/1"}}, []string{`["telegram/@user/1"] # me`, `["telegram/@user/1", "telegram/@user/2"] # me`}},
		{"Aria again", Answers{Persona: BuiltIn}, []string{`"mine.png"`, `""`}},
	} {
		talk := at(current, tc.given)
		talk.Probes.Identify = nil
		if err := talk.Fill(t.Context(), true); err != nil {
			t.Fatal(err)
		}
		talk.Timezone, talk.Language = "", ""
		f := opened(t, before)
		_, err := talk.Apply(f)
		if want := strings.NewReplacer(tc.change...).Replace(before); err != nil || f.String() != want {
			t.Errorf("%s: %v: %s", tc.name, err, cmp.Diff(want, f.String()))
		}
	}
}

// TestAnotherAdmin checks that an admin is added to a list of several lines, which keeps its lines and
// comments.
func TestAnotherAdmin(t *testing.T) {
	const one, two = "telegram/@user/1", "telegram/@user/2"
	for before, want := range map[string]string{
		"[\n  \"" + one + "\", # me\n  # \"x]\n]":            "[\"" + two + "\",\n  \"" + one + "\", # me\n  # \"x]\n]",
		"[\n  # nobody ]\n]":                                 "[\"" + two + "\",\n  # nobody ]\n]",
		"[\n  \"" + one + "\", \"" + one + "\", # twice\n]":  "[\"" + two + "\",\n  \"" + one + "\", \"" + one + "\", # twice\n]",
		"[\n  \"" + one + "\",\n  \"" + two + "\" # both\n]": "[\n  \"" + one + "\",\n  \"" + two + "\" # both\n]",
		"[\"" + one + "\"]":                                  "[\"" + one + "\", \"" + two + "\"]",
	} {
		f := opened(t, "[bot]\nadmins = "+before+" # them\n")
		var read struct{ Bot struct{ Admins []string } }
		if err := toml.Unmarshal([]byte(f.String()), &read); err != nil {
			t.Fatal(err)
		}
		current := Current{Exists: true, Access: true, Admins: read.Bot.Admins}
		talk := at(current, Answers{Persona: Keep, Engine: Keep, Admins: []string{two}})
		if _, err := talk.Apply(f); err != nil || f.String() != "[bot]\nadmins = "+want+" # them\n" {
			t.Errorf("%s: got %s, want %s (%v)", before, f.String(), want, err)
		}
		if err := toml.Unmarshal([]byte(f.String()), &read); err != nil || !strings.Contains(strings.Join(read.Bot.Admins, " "), two) {
			t.Errorf("%s: got %v, %v", f.String(), read, err)
		}
	}
}

func TestPersonaFile(t *testing.T) {
	for _, text := range []string{"She sails.", "Two\nlines \\ and \"quotes\", even \"\"\"three\"\"\"\"", "{{char}} is né\x07"} {
		var got struct{ Name, Profile string }
		if err := toml.Unmarshal([]byte(personaFile(`Mi"ra`, text)), &got); err != nil || got.Name != `Mi"ra` || got.Profile != text+"\n" {
			t.Errorf("%q was read back as %+v, %v", text, got, err)
		}
	}
}

func TestAddress(t *testing.T) {
	if got := botAddress(Discord, nil, secret.New("OTAwMDAwMDAwMDAwMDAwMDAx.T0ken.of-tests")); got != "https://discord.com/oauth2/authorize?client_id=900000000000000001&scope=bot+applications.commands&permissions=309237763136" {
		t.Errorf("discord: %q", got)
	}
	for _, token := range []string{"", "x", "good", "c2VjcmV0.x.y"} {
		if got := botAddress(Discord, nil, secret.New(token)); got != "" {
			t.Errorf("%q: got %q", token, got)
		}
	}
}

func TestFromHome(t *testing.T) {
	t.Setenv("HOME", "/home/jay")
	for file, want := range map[string]string{"~/cards/a.png": "/home/jay/cards/a.png", "a.png": "a.png", "~a": "~a", "/x/~/y": "/x/~/y"} {
		if got := expandHome(file); got != want {
			t.Errorf("%s: got %s, want %s", file, got, want)
		}
	}
}

// TestApplyInOrder checks that missing keys are always added in the same order.
func TestApplyInOrder(t *testing.T) {
	for range 20 {
		f := opened(t, "[bot]\n")
		talk := at(Current{Exists: true}, Answers{Persona: Keep, Engine: Keep, DataDir: "d", Timezone: "UTC", Language: "it"})
		if _, err := talk.Apply(f); err != nil || f.String() != "[bot]\ndata_dir = \"d\"\ntimezone = \"UTC\"\nlanguage = \"it\"\n" {
			t.Fatalf("got %v, %s", err, f.String())
		}
	}
}
