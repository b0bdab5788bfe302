package setup

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"synthbot/config"
	"synthbot/core/engine"
	"synthbot/core/secret"
	"synthbot/core/txt"
	"synthbot/daemon"
)

// Answers with a special meaning.
const (
	Keep    = "keep"     // keep the value in the file
	None    = "none"     // remove it, or leave it out
	New     = "new"      // a new persona, from PersonaName and PersonaText
	BuiltIn = "built-in" // the built-in persona
	Offline = "offline"  // the built-in engine
	ByCode  = "code"     // the first user who sends a code becomes an admin
)

// Platforms with a token.
const (
	Telegram = "telegram"
	Discord  = "discord"
)

// platforms lists them in the order of the questions.
func platforms() []string { return []string{Telegram, Discord} }

// Answers are the answers so far, from flags or the terminal. A zero field is not answered yet.
type Answers struct {
	Persona     string // Keep, BuiltIn, New, or a file
	PersonaName string // of a new one
	PersonaText string
	Engine      string // Keep, Offline, or a provider
	Model       string
	BaseURL     string
	Key         Secret
	Telegram    Account
	Discord     Account
	Admins      []string
	Claim       string // Keep, None, ByCode
	DataDir     string
	Timezone    string
	Language    string
}

// Account is the bot's account on a platform.
type Account struct {
	Token  Secret
	APIURL string // the address of a server other than the platform's; "" for the platform's
}

func (a *Answers) account(platform string) *Account {
	if platform == Discord {
		return &a.Discord
	}
	return &a.Telegram
}

// Secret answers a question for a secret: a word for the configuration, or a secret for a file of its own.
type Secret struct {
	Word  string // Keep, None, env:NAME, file:PATH
	Typed secret.Secret
}

func (s Secret) given() bool { return s.Word != "" || !s.Typed.IsZero() }

// replaces reports whether the answer replaces the secret in the configuration.
func (s Secret) replaces() bool { return s.given() && s.Word != Keep && s.Word != None }

var errSecret = errors.New("does not say where the secret is: write env:NAME, file:PATH, or - to read it from " +
	"standard input (other users of this machine can see the command line)")

// ReadSecret parses the value of a flag, which must not be a secret. For "-", next reads a line of standard input.
func ReadSecret(value string, next func() (string, error)) (Secret, error) {
	switch {
	case value == "", value == Keep, value == None, config.IsReference(value):
		return Secret{Word: value}, nil
	case value != "-":
		return Secret{}, errSecret
	}
	line, err := next()
	if err != nil {
		return Secret{}, fmt.Errorf("standard input: %w", err)
	}
	line = strings.TrimSpace(line)
	if line == "" {
		return Secret{}, errors.New("standard input has no line for this secret")
	}
	return Secret{Typed: secret.New(line)}, nil
}

// Current is what the configuration file contains already. The zero value is for a missing file.
type Current struct {
	Exists   bool
	Persona  string
	Engines  []engine.Config
	Accounts map[string]bool   // platforms with a token
	Servers  map[string]string // the addresses of servers other than the platforms', by platform
	Admins   []string
	Claim    bool
	Access   bool // the file sets who may write in private
	Timezone string
	Language string
}

// Changes are the files that the answers add beside the configuration file, and the claim code.
type Changes struct {
	Code    string                   // its first sender becomes an admin; "" for none
	Claim   daemon.Claim             // accepts the code
	Secrets map[string]secret.Secret // the contents of files beside the configuration, by name
	Persona string                   // a persona file to write beside the configuration; "" for none
	Text    string                   // the content of that file
}

// Apply writes the answers into the file.
func (w *Wizard) Apply(f *File) (Changes, error) {
	out := Changes{Secrets: make(map[string]secret.Secret)}
	w.applyPersona(f, &out)
	w.applyEngine(f, &out)
	for _, p := range platforms() {
		w.applyAccount(f, &out, p)
	}
	w.applyAccess(f, &out)
	for _, p := range []Pair{{"data_dir", w.DataDir}, {"timezone", w.Timezone}, {"language", w.Language}} {
		if p.Literal != "" {
			f.set(p.Literal, p.Key, "bot")
		}
	}
	return out, f.err
}

func (w *Wizard) applyPersona(f *File, out *Changes) {
	path := w.Persona
	switch {
	case path == Keep, path == BuiltIn && w.Current.Persona == "":
		return
	case path == BuiltIn:
		path = ""
	case path == New:
		path = "persona/" + txt.FileName(w.PersonaName, "persona") + ".toml"
		out.Persona, out.Text = path, personaFile(strings.TrimSpace(w.PersonaName), strings.TrimSpace(w.PersonaText))
	}
	f.set(path, "path", "persona")
}

func (o *Changes) reference(s Secret, file string) string {
	if s.Typed.IsZero() {
		return s.Word
	}
	o.Secrets[file] = s.Typed
	return "file:" + file
}

func (w *Wizard) applyEngine(f *File, out *Changes) {
	switch w.Engine {
	case Keep:
		return
	case Offline:
		for i, known := range w.Current.Engines {
			if known.Provider != Offline {
				f.setInEngine(i, "disabled", "true")
			}
		}
		return
	}
	pairs := []Pair{{"model", config.Quote(strings.TrimSpace(w.Model))}}
	if w.Key.replaces() {
		file := txt.FileName(w.Engine, "engine") + "_key"
		pairs = append(pairs, Pair{"api_key", config.Quote(out.reference(w.Key, file))})
	}
	if w.sameEngine() {
		for _, p := range pairs {
			f.setInEngine(0, p.Key, p.Literal)
		}
		return
	}
	pairs = append([]Pair{{"name", config.Quote(w.newName())}, {"provider", config.Quote(w.Engine)}}, pairs...)
	if w.BaseURL != "" {
		pairs = append(pairs, Pair{"base_url", config.Quote(w.BaseURL)})
	}
	f.addFirstEngine(pairs...)
}

func (w *Wizard) newName() string {
	name := w.Engine
	taken := func(e engine.Config) bool { return cmp.Or(e.Name, e.Provider) == name }
	for n := 2; slices.ContainsFunc(w.Current.Engines, taken); n++ {
		name = fmt.Sprintf("%s-%d", w.Engine, n)
	}
	return name
}

func (w *Wizard) applyAccount(f *File, out *Changes, platform string) {
	a := w.account(platform)
	switch {
	case a.Token.replaces():
		f.set(out.reference(a.Token, platform+"_token"), "token", "interfaces", platform)
		if f.Has("enabled", "interfaces", platform) {
			f.setLiteral("true", "enabled", "interfaces", platform)
		}
	case a.Token.Word == None && w.Current.Accounts[platform]:
		f.setLiteral("false", "enabled", "interfaces", platform)
		return
	case !w.Current.Accounts[platform]:
		return // the bot is not on this platform
	}
	if a.APIURL != w.Current.Servers[platform] {
		f.set(a.APIURL, "api_url", "interfaces", platform)
	}
}

// applyAccess sets who may write to the bot in private, if the file does not, and its admins.
func (w *Wizard) applyAccess(f *File, out *Changes) {
	if !w.Current.Access && (!w.Current.Exists || w.hasPlatform() && len(w.Current.Accounts) == 0) {
		f.set("pairing", "private", "access")
	}
	if len(w.Admins) > 0 {
		var all []string
		for _, admin := range slices.Concat(w.Current.Admins, w.Admins) {
			admin = strings.TrimSpace(admin)
			if !slices.Contains(all, admin) {
				all = append(all, admin)
			}
		}
		f.addToList(all, w.Current.Admins, "admins", "bot")
	}
	switch w.Claim {
	case ByCode:
		out.Code, out.Claim = daemon.NewClaim()
		f.set(string(out.Claim), "claim", "bot")
	case None:
		f.remove("claim", "bot")
	}
}

// personaFile returns a persona file that users can extend.
func personaFile(name, text string) string {
	return "# Who the bot is. More about this file: docs/personas.md.\n\nname = " + config.Quote(name) + `

# What else users call it.
#aliases = ["Ari"]

profile = """
` + multiline(text) + `
"""

#likes = ["the second draft of anything"]
#dislikes = ["advice nobody asked for"]
#interests = ["how villages got their names"]

# How it speaks.
#speaking_style = "Short sentences and plain words."

# Its first words to a new user. {{user}} is the user's name, {{char}} the bot's.
#greeting = "Hello {{user}}, I am {{char}}."
`
}

// multiline escapes a text for a TOML string in three quotes.
func multiline(text string) string {
	lines := strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
	for i, line := range lines {
		quoted := config.Quote(line)
		lines[i] = strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`)
	}
	return strings.ReplaceAll(strings.Join(lines, "\n"), `"""`, `""\"`)
}

// CheckToken returns an error if a token does not look like one of a platform. It accepts a missing token.
func CheckToken(platform string, token secret.Secret) error {
	switch {
	case token.IsZero():
	case platform == Discord && !discordToken().MatchString(token.Reveal()):
		return errors.New("its token does not look like one of Discord: three parts with dots between, from the " +
			"portal's page Bot (neither the client secret nor the public key)")
	case platform == Telegram && !telegramToken().MatchString(token.Reveal()):
		return errors.New("its token does not look like one of Telegram: digits, a colon and 35 letters, " +
			"from @BotFather")
	}
	return nil
}

// Shapes of tokens. Discord: the bot's id, a time and a signature, in base64. Telegram: the bot's id and a secret.
var (
	discordToken  = txt.Pattern(`^[\w-]{18,}\.[\w-]{6}\.[\w-]{27,}$`)
	telegramToken = txt.Pattern(`^\d{6,}:[\w-]{30,}$`)
)
