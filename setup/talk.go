package setup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"synthbot/core"
)

// Question is what somebody at the terminal is asked.
type Question struct {
	Title, About string
	Initial      string   // the answer that is proposed
	Options      []Option // what can be chosen; none: anything can be written
	Hidden       bool     // the answer is not shown
	Long         bool     // it may have several lines
	Check        func(answer string) error
}

// Option is an answer that can be chosen.
type Option struct{ Label, Value string }

// Terminal is where somebody sits.
type Terminal interface {
	// Ask returns the answer, or ErrLeft.
	Ask(ctx context.Context, q Question) (string, error)
	// Say shows a line.
	Say(text string)
}

// ErrLeft is that somebody left instead of answering.
var ErrLeft = errors.New("left without an answer; nothing was written")

// Talk is one way through the questions.
type Talk struct {
	*Answers
	World    World
	Known    Known
	Terminal Terminal
	// Found is what the platforms said of the bot.
	Found map[string][]core.Finding

	models []string // of an Ollama; nil: there is none
	looked bool
}

// step is a question that may have to be asked.
type step struct {
	flag string
	open func(*Talk) bool // whether it is still to be answered
	// needed reports whether nobody but the user can answer it, where he did not
	// say that the usual is good enough.
	needed func(*Talk) bool
	ask    func(*Talk, context.Context) error
	// usual answers in place of the user, where it can.
	usual func(*Talk, context.Context)
}

// steps are all questions, in their order.
func steps() []step {
	list := []step{
		{"--persona", func(t *Talk) bool { return t.Persona == "" }, fresh, (*Talk).askPersona, (*Talk).usualPersona},
		{"--persona-name", func(t *Talk) bool { return t.Persona == New && t.PersonaName == "" }, always, (*Talk).askName, nothing},
		{"--persona-text", func(t *Talk) bool { return t.Persona == New && t.PersonaText == "" }, always, (*Talk).askText, nothing},
		{"--engine", func(t *Talk) bool { return t.Engine == "" }, fresh, (*Talk).askEngine, (*Talk).usualEngine},
		{"--base-url", (*Talk).elsewhere, never, func(t *Talk, _ context.Context) error { t.BaseURL = t.World.Ollama; return nil },
			func(t *Talk, _ context.Context) { t.BaseURL = t.World.Ollama }},
		{"--base-url", (*Talk).nowhere, never, (*Talk).askBase, nothing},
		{"--model", func(t *Talk) bool { return t.remote() && t.Model == "" }, func(t *Talk) bool { return !t.again() }, (*Talk).askModel, (*Talk).usualModel},
		{"--api-key", (*Talk).keyless, always, (*Talk).askKey, nothing},
	}
	for _, p := range platforms() {
		list = append(list, step{"--" + p + "-token", func(t *Talk) bool { return !t.account(p).Token.given() }, nobody,
			func(t *Talk, ctx context.Context) error { return t.askAccount(ctx, p) },
			func(t *Talk, _ context.Context) { t.account(p).Token.Word = t.kept(t.Known.Accounts[p]) }})
	}
	return append(list,
		step{"--admin", func(t *Talk) bool { return t.Claim == "" && len(t.Admins) == 0 }, never, (*Talk).askAdmin, (*Talk).usualAdmin},
		step{"--data-dir", func(t *Talk) bool { return t.DataDir == "" && t.Known.DataDir == "" }, never, (*Talk).askDataDir, nothing},
		step{"--timezone", func(t *Talk) bool { return t.Timezone == "" && t.Known.Timezone == "" }, never, (*Talk).askZone,
			func(t *Talk, _ context.Context) { t.Timezone = t.World.OwnZone }},
		step{"--language", func(t *Talk) bool { return t.Language == "" && t.Known.Language == "" }, never, (*Talk).askLanguage,
			func(t *Talk, _ context.Context) { t.Language = t.World.Language }},
	)
}

func always(*Talk) bool              { return true }
func never(*Talk) bool               { return false }
func fresh(t *Talk) bool             { return !t.Known.There }
func nothing(*Talk, context.Context) {}

// nobody reports whether there is no word yet on where people are to meet the bot.
func nobody(t *Talk) bool {
	return !t.Known.There && !slices.ContainsFunc(platforms(), func(p string) bool { return t.account(p).Token.given() })
}

// Ask asks all that was not answered yet at the terminal.
func (t *Talk) Ask(ctx context.Context) error {
	for _, s := range steps() {
		if !s.open(t) {
			continue
		}
		if err := s.ask(t, ctx); err != nil {
			return err
		}
	}
	return t.check(ctx)
}

// Fill answers without anybody at a terminal. Without usual, what a person should
// decide must have been answered; else the error names the flags.
func (t *Talk) Fill(ctx context.Context, usual bool) error {
	var missing []string
	for _, s := range steps() {
		if !s.open(t) {
			continue
		}
		if usual || !s.needed(t) {
			s.usual(t, ctx)
		}
		if s.needed(t) && s.open(t) {
			missing = append(missing, s.flag)
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("nobody can be asked here: give %s%s", strings.Join(missing, ", "), otherwise(usual))
	}
	return t.check(ctx)
}

func otherwise(usual bool) string {
	if usual {
		return ""
	}
	return " (none: without), or --yes for what is usual"
}

// check holds the answers against the world; a fault names the flag.
func (t *Talk) check(ctx context.Context) error {
	if t.file() {
		if err := t.World.Persona(t.Persona); err != nil {
			return fmt.Errorf("--persona: %w", err)
		}
	}
	if !slices.Contains(append([]string{Keep, Offline}, t.World.Providers...), t.Engine) {
		return fmt.Errorf("--engine: there is no %q; there is %s", t.Engine, strings.Join(t.World.Providers, ", "))
	}
	if err := t.zone(t.Timezone); err != nil {
		return fmt.Errorf("--timezone: %w", err)
	}
	if err := language(t.Language); err != nil {
		return fmt.Errorf("--language: %w", err)
	}
	for _, admin := range t.Admins {
		if err := person(admin); err != nil {
			return fmt.Errorf("--admin: %w", err)
		}
	}
	return t.identify(ctx)
}

// identify asks the platforms for the tokens that they were not asked for yet.
func (t *Talk) identify(ctx context.Context) error {
	if _, err := t.secret(t.Key); err != nil {
		return fmt.Errorf("--api-key: %w (--no-check takes it as it is)", err)
	}
	for _, p := range platforms() {
		if _, asked := t.Found[p]; asked {
			continue
		}
		if err := t.look(ctx, p); err != nil {
			return fmt.Errorf("--%s-token: %w (--no-check takes it as it is)", p, err)
		}
	}
	return nil
}

// secret is what an answer leads to; the zero Secret where there is none, or where
// nothing is to be checked.
func (t *Talk) secret(s Secret) (core.Secret, error) {
	if !s.Typed.IsZero() || !s.fresh() || t.World.Identify == nil {
		return s.Typed, nil
	}
	return t.World.Resolve(s.Word)
}

// look asks a platform who the bot is there.
func (t *Talk) look(ctx context.Context, platform string) error {
	a := t.account(platform)
	token, err := t.secret(a.Token)
	if err != nil || token.IsZero() || t.World.Identify == nil {
		return err
	}
	found := t.World.Identify(ctx, platform, *a, token)
	for _, f := range found {
		if f.Fatal && f.Fix != "" {
			return fmt.Errorf("%s: %s", f.What, f.Fix)
		}
	}
	if address := Address(platform, found, token); address != "" {
		found = append(found, core.Finding{What: "address", Found: address})
	}
	t.note(platform, found)
	return nil
}

// note keeps what a platform said, so that it is not asked again.
func (t *Talk) note(platform string, found []core.Finding) {
	if t.Found == nil {
		t.Found = make(map[string][]core.Finding)
	}
	t.Found[platform] = found
}

// ollama lists the models of an Ollama that runs; nil where none does.
func (t *Talk) ollama(ctx context.Context) []string {
	if !t.looked {
		t.looked = true
		t.models, _ = t.World.Models(ctx, cmp.Or(t.BaseURL, t.World.Ollama, UsualOllama))
	}
	return t.models
}

// chats reports whether a model is one that can talk.
func chats(model string) bool { return !strings.Contains(strings.ToLower(model), "embed") }

// remote reports whether an engine was chosen that has a model.
func (t *Talk) remote() bool { return t.Engine != "" && t.Engine != Keep && t.Engine != Offline }

// keyless reports whether the engine needs a key that there is not.
func (t *Talk) keyless() bool {
	return t.remote() && t.World.NeedsKey(t.Engine) && t.BaseURL == "" && !t.Key.given() && !t.again()
}

// again reports whether the engine that was chosen is the one that is there.
func (t *Talk) again() bool {
	return len(t.Known.Engines) > 0 && t.Known.Engines[0].Provider == t.Engine && t.Known.Engines[0].BaseURL == t.BaseURL
}

// elsewhere reports whether the environment says where the Ollama is.
func (t *Talk) elsewhere() bool {
	return t.Engine == "ollama" && t.BaseURL == "" && t.World.Ollama != ""
}

// nowhere reports whether the engine runs at home, and it is not known where.
func (t *Talk) nowhere() bool {
	return t.remote() && !t.World.NeedsKey(t.Engine) && t.BaseURL == "" && !t.again() && (t.Engine != "ollama" || t.models == nil)
}

// file reports whether the persona is a file that there is already.
func (t *Talk) file() bool {
	return !slices.Contains([]string{"", Keep, BuiltIn, New}, t.Persona)
}

// kept is the usual answer to what may be there already.
func (t *Talk) kept(there bool) string {
	if there {
		return Keep
	}
	return None
}

func (t *Talk) usualPersona(context.Context) {
	if t.Persona = BuiltIn; t.Known.There {
		t.Persona = Keep
	}
}

func (t *Talk) usualEngine(ctx context.Context) {
	switch {
	case t.Known.There:
		t.Engine = Keep
	case slices.ContainsFunc(t.ollama(ctx), chats):
		t.Engine = "ollama"
	default:
		t.Engine = Offline
	}
}

func (t *Talk) usualModel(ctx context.Context) {
	if t.again() {
		t.Model = t.Known.Engines[0].Model
		return
	}
	if t.Engine == "ollama" {
		if i := slices.IndexFunc(t.ollama(ctx), chats); i >= 0 {
			t.Model = t.models[i]
		}
	}
}

// usualAdmin lets somebody become admin by a code, where nobody is.
func (t *Talk) usualAdmin(context.Context) {
	switch {
	case t.Known.Claim || len(t.Known.Admins) > 0:
		t.Claim = Keep
	case t.met():
		t.Claim = ByCode
	default:
		t.Claim = None
	}
}

// met reports whether there is a platform where people meet the bot.
func (t *Talk) met() bool {
	return slices.ContainsFunc(platforms(), func(p string) bool {
		return t.account(p).Token.fresh() || t.Known.Accounts[p] && t.account(p).Token.Word != None
	})
}
