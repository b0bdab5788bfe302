package setup

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"synthbot/config"
	"synthbot/core"
	"synthbot/core/engine"
	"synthbot/daemon"
)

// Changes are what the answers add besides the configuration file.
type Changes struct {
	Code    string                 // makes its first sender an admin; "" for none
	Claim   daemon.Claim           // of the code
	Secrets map[string]core.Secret // files beside the configuration, by name
	Persona string                 // a file beside it to write; "" for none
	Text    string                 // of that persona
}

// Apply writes the answers into the file.
func (w *Wizard) Apply(f *File) (Changes, error) {
	out := Changes{Secrets: make(map[string]core.Secret)}
	w.applyPersona(f, &out)
	w.applyEngine(f, &out)
	for _, p := range platforms() {
		w.applyAccount(f, &out, p)
	}
	w.applyAccess(f, &out)
	for key, value := range map[string]string{"data_dir": w.DataDir, "timezone": w.Timezone, "language": w.Language} {
		if value != "" {
			f.set(value, key, "bot")
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
		path = "persona/" + slug(w.PersonaName) + ".toml"
		out.Persona, out.Text = path, personaFile(strings.TrimSpace(w.PersonaName), strings.TrimSpace(w.PersonaText))
	}
	f.set(path, "path", "persona")
}

// slug makes the name of a file from a name in any script.
func slug(name string) string {
	const longest = 100 // bytes, which every system can store with an ending
	words := strings.FieldsFunc(strings.ToLower(name), func(r rune) bool {
		return !unicode.In(r, unicode.L, unicode.M, unicode.N)
	})
	joined := strings.Join(words, "-")
	return cmp.Or(strings.ToValidUTF8(joined[:min(len(joined), longest)], ""), "persona")
}

// reference returns the value of a secret in the file.
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
				f.setIn(i, "disabled", "true")
			}
		}
		return
	}
	pairs := []Pair{{"model", config.Quote(strings.TrimSpace(w.Model))}}
	if w.Key.changes() {
		pairs = append(pairs, Pair{"api_key", config.Quote(out.reference(w.Key, slug(w.Engine)+"_key"))})
	}
	if w.sameEngine() {
		for _, p := range pairs {
			f.setIn(0, p.Key, p.Literal)
		}
		return
	}
	pairs = append([]Pair{{"name", config.Quote(w.newName())}, {"provider", config.Quote(w.Engine)}}, pairs...)
	if w.BaseURL != "" {
		pairs = append(pairs, Pair{"base_url", config.Quote(w.BaseURL)})
	}
	f.addFirst(pairs...)
}

// newName returns a name for the engine that no other has.
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
	case a.Token.changes():
		f.set(out.reference(a.Token, platform+"_token"), "token", "interfaces", platform)
		if f.Has("enabled", "interfaces", platform) {
			f.setLiteral("true", "enabled", "interfaces", platform)
		}
	case a.Token.Word == None && w.Current.Accounts[platform]:
		f.setLiteral("false", "enabled", "interfaces", platform)
		return
	}
	if a.APIURL != "" {
		f.set(a.APIURL, "api_url", "interfaces", platform)
	}
}

// applyAccess sets who may talk to the bot, if the file does not, and its admins.
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
		f.add(all, w.Current.Admins, "admins", "bot")
	}
	if w.Claim == ByCode {
		out.Code, out.Claim = daemon.NewClaim()
		f.set(string(out.Claim), "claim", "bot")
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

// multiline writes a text between three quotes.
func multiline(text string) string {
	lines := strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
	for i, line := range lines {
		quoted := config.Quote(line)
		lines[i] = strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`)
	}
	return strings.ReplaceAll(strings.Join(lines, "\n"), `"""`, `""\"`)
}
