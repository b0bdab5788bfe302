package setup

import (
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	"synthbot/core"
)

// Outcome is what the answers come to, besides the changed file.
type Outcome struct {
	Code    string                 // what makes somebody an admin who says it; "": there is none
	Secrets map[string]core.Secret // files beside the configuration, by name
	Persona string                 // a file beside it that is to be written; "": none
	Text    string                 // of that persona
}

// Apply writes the answers into the file.
func (t *Talk) Apply(f *File) (Outcome, error) {
	out := Outcome{Secrets: make(map[string]core.Secret)}
	e := &editor{File: f}
	t.applyPersona(e, &out)
	t.applyEngine(e, &out)
	for _, p := range platforms() {
		t.applyAccount(e, &out, p)
	}
	t.applyAccess(e, &out)
	for key, value := range map[string]string{"data_dir": t.DataDir, "timezone": t.Timezone, "language": t.Language} {
		if value != "" {
			e.set(Text(value), key, "bot")
		}
	}
	return out, e.err
}

// editor changes a file until something goes wrong.
type editor struct {
	*File
	err error
}

func (e *editor) set(literal, key string, table ...string) {
	if e.err == nil {
		e.err = e.Set(table, key, literal)
	}
}

// add gives a key a list of texts, some of which the file says already.
func (e *editor) add(all, there []string, key string, table ...string) {
	fresh := slices.DeleteFunc(slices.Clone(all), func(text string) bool { return slices.Contains(there, text) })
	done := len(fresh) == 0 || e.err != nil
	if !done {
		done, e.err = e.Add(table, key, fresh)
	}
	if !done {
		e.set(Texts(all), key, table...)
	}
}

// Has reports whether the file says a key.
func (f *File) Has(key string, table ...string) bool {
	i, err := f.find(append(slices.Clone(table), key))
	return err == nil && i >= 0
}

func (t *Talk) applyPersona(e *editor, out *Outcome) {
	path := t.Persona
	switch t.Persona {
	case Keep:
		return
	case BuiltIn:
		if path = ""; t.Known.Persona == "" {
			return
		}
	case New:
		path = "persona/" + slug(t.PersonaName) + ".toml"
		out.Persona, out.Text = path, PersonaFile(strings.TrimSpace(t.PersonaName), strings.TrimSpace(t.PersonaText))
	}
	e.set(Text(path), "path", "persona")
}

// slug makes a file's name of a person's, in whatever script it is written.
func slug(name string) string {
	words := strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return !unicode.In(r, unicode.L, unicode.M, unicode.N) })
	return cmp.Or(short(strings.Join(words, "-")), "persona")
}

// short is as much of a file's name as every system can keep, with an ending.
func short(name string) string {
	const most = 100 // bytes
	if len(name) <= most {
		return name
	}
	return strings.ToValidUTF8(name[:most], "")
}

// reference is what the file says in place of a secret.
func (o *Outcome) reference(s Secret, file string) string {
	if s.Typed.IsZero() {
		return s.Word
	}
	o.Secrets[file] = s.Typed
	return "file:" + file
}

func (t *Talk) applyEngine(e *editor, out *Outcome) {
	list := []string{"engine"}
	switch {
	case t.Engine == Keep || e.err != nil:
		return
	case t.Engine == Offline:
		for i := range t.Known.Engines {
			if t.Known.Engines[i].Provider != Offline {
				e.err = errors.Join(e.err, e.SetIn(list, i, "disabled", "true"))
			}
		}
		return
	}
	pairs := []Pair{{"model", Text(strings.TrimSpace(t.Model))}}
	if t.Key.fresh() {
		pairs = append(pairs, Pair{"api_key", Text(out.reference(t.Key, slug(t.Engine)+"_key"))})
	}
	if t.again() {
		for _, p := range pairs {
			e.err = errors.Join(e.err, e.SetIn(list, 0, p.Key, p.Literal))
		}
		return
	}
	pairs = append([]Pair{{"name", Text(t.newName())}, {"provider", Text(t.Engine)}}, pairs...)
	if t.BaseURL != "" {
		pairs = append(pairs, Pair{"base_url", Text(t.BaseURL)})
	}
	e.err = e.First(list, pairs...)
}

// newName is a name for the engine that no other has.
func (t *Talk) newName() string {
	for n := 1; ; n++ {
		name := t.Engine
		if n > 1 {
			name = fmt.Sprintf("%s-%d", t.Engine, n)
		}
		if !slices.ContainsFunc(t.Known.Engines, func(e Engine) bool { return cmp.Or(e.Name, e.Provider) == name }) {
			return name
		}
	}
}

func (t *Talk) applyAccount(e *editor, out *Outcome, platform string) {
	a := t.account(platform)
	switch {
	case a.Token.fresh():
		e.set(Text(out.reference(a.Token, platform+"_token")), "token", "interfaces", platform)
		if e.Has("enabled", "interfaces", platform) {
			e.set("true", "enabled", "interfaces", platform)
		}
	case a.Token.Word == None && t.Known.Accounts[platform]:
		e.set("false", "enabled", "interfaces", platform)
		return
	}
	if a.APIURL != "" {
		e.set(Text(a.APIURL), "api_url", "interfaces", platform)
	}
}

// applyAccess says who may talk to the bot, where nobody said it before, and who
// its admins are.
func (t *Talk) applyAccess(e *editor, out *Outcome) {
	if !t.Known.Access && (!t.Known.There || t.met() && len(t.Known.Accounts) == 0) {
		e.set(Text("pairing"), "private", "access")
	}
	if len(t.Admins) > 0 {
		all := slices.Concat(t.Known.Admins, t.Admins)
		for i := range all {
			all[i] = strings.TrimSpace(all[i])
		}
		seen := make(map[string]bool, len(all))
		all = slices.DeleteFunc(all, func(a string) bool { was := seen[a]; seen[a] = true; return was })
		e.add(all, t.Known.Admins, "admins", "bot")
	}
	if t.Claim == ByCode {
		out.Code = NewCode()
		e.set(Text(HashCode(out.Code)), "claim", "bot")
	}
}

// codeGroup is how many letters of a code stand together.
const codeGroup = 4

// NewCode makes a code of 80 random bits.
func NewCode() string {
	letters := rand.Text()[:4*codeGroup]
	var groups []string
	for part := range slices.Chunk([]byte(letters), codeGroup) {
		groups = append(groups, string(part))
	}
	return strings.Join(groups, "-")
}

// HashCode is what is kept of a code: the same for each way in which it may be
// written.
func HashCode(code string) string {
	letters := strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' || r >= '2' && r <= '7' {
			return r
		}
		return -1
	}, strings.ToUpper(code))
	sum := sha256.Sum256([]byte("synthbot claim " + letters))
	return hex.EncodeToString(sum[:])
}

// Names lists the files of secrets, in order.
func (o *Outcome) Names() []string { return slices.Sorted(maps.Keys(o.Secrets)) }

// PersonaFile writes a persona for people to go on with.
func PersonaFile(name, text string) string {
	return "# Who the bot is. More about this file: docs/personas.md.\n\nname = " + Text(name) + `

# What else it hears to.
#aliases = ["Ari"]

profile = """
` + multiline(text) + `
"""

#likes = ["the second draft of anything"]
#dislikes = ["advice nobody asked for"]
#interests = ["how villages got their names"]

# How it speaks.
#speaking_style = "Short sentences and plain words."

# The first words to somebody new. {{user}} is his name, {{char}} the bot's.
#greeting = "Hello {{user}}, I am {{char}}."
`
}

// multiline writes a text between three quotes.
func multiline(text string) string {
	var lines []string
	for l := range strings.SplitSeq(strings.ReplaceAll(text, "\r\n", "\n"), "\n") {
		quoted := Text(l)
		lines = append(lines, strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`))
	}
	return strings.ReplaceAll(strings.Join(lines, "\n"), `"""`, `""\"`)
}
