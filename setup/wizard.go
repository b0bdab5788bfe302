package setup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"synthbot/core"
	"synthbot/core/engine"
	"synthbot/core/secret"
	"synthbot/daemon"
	"synthbot/interfaces/console"
)

// Terminal asks the user, who may leave (console.ErrLeft) or go back (console.ErrBack). Note shows what goes on.
type Terminal interface {
	Ask(ctx context.Context, q console.Question) (string, error)
	Note(text string)
}

// defaultAnswers is a Terminal that answers each question with its default.
type defaultAnswers struct{}

func (defaultAnswers) Note(string) {}

var errNoAnswer = errors.New("there is no default answer")

func (defaultAnswers) Ask(_ context.Context, q console.Question) (string, error) {
	answer := q.Initial
	if answer == "" && len(q.Options) > 0 {
		answer = q.Options[0].Value
	}
	if q.Check != nil && q.Check(answer) != nil {
		return "", errNoAnswer
	}
	return answer, nil
}

// replay is a Terminal that repeats the answers so far before it asks the user further questions.
type replay struct {
	Terminal
	answers []string
	given   int    // how many of answers were repeated
	former  string // the answer that the user wants to change
}

func (r *replay) Ask(ctx context.Context, q console.Question) (string, error) {
	if r.given < len(r.answers) {
		r.given++
		return r.answers[r.given-1], nil
	}
	if !q.Hidden {
		q.Initial = cmp.Or(r.former, q.Initial)
	}
	r.former = ""
	answer, err := r.Terminal.Ask(ctx, q)
	if err == nil {
		r.answers = append(r.answers, answer)
		r.given++
	}
	return answer, err
}

// back removes the last answer, and starts the replay again; ok is false if there is none.
func (r *replay) back() (ok bool) {
	last := len(r.answers) - 1
	if last < 0 {
		return false
	}
	r.former, r.answers, r.given = r.answers[last], r.answers[:last], 0
	return true
}

// Wizard collects the answers to all questions.
type Wizard struct {
	*Answers
	Probes   Probes
	Defaults Defaults
	Current  Current
	Terminal Terminal
	// Found is what each platform reported about the bot. Platforms in it are not asked again.
	Found map[string][]core.Finding

	models      []string // of a local Ollama; nil: none runs
	askedOllama bool     // for them
}

type step struct {
	flag     string
	open     bool // there is no answer yet
	required bool // only the user can answer it
	ask      func(context.Context) error
}

// steps returns all questions. The answers so far decide which are open.
func (w *Wizard) steps() []step {
	isNew := !w.Current.Exists
	list := []step{
		{"--persona", w.Persona == "", isNew, w.askPersona},
		{"--persona-name", w.Persona == New && w.PersonaName == "", true, w.askName},
		{"--persona-text", w.Persona == New && w.PersonaText == "", true, w.askText},
		{"--engine", w.Engine == "", isNew, w.askEngine},
		{"--base-url", w.needsBaseURL(), false, w.askBaseURL},
		{"--model", w.hasModel() && w.Model == "", !w.sameEngine(), w.askModel},
		{"--api-key", w.needsKeyAnswer(), true, w.askKey},
	}
	needsAccount := isNew && !w.Telegram.Token.given() && !w.Discord.Token.given()
	for _, p := range platforms() {
		ask := func(ctx context.Context) error { return w.askAccount(ctx, p) }
		list = append(list, step{"--" + p + "-token", !w.account(p).Token.given(), needsAccount, ask})
	}
	lacksAdmin := w.Claim == "" && len(w.Admins) == 0 && w.hasPlatform()
	return append(list, step{"--admin", lacksAdmin, false, w.askAdmin})
}

// Ask asks all open questions. If the user goes back, it starts again and replays the answers before the last one.
func (w *Wizard) Ask(ctx context.Context) error {
	if err := w.checkChoices(); err != nil {
		return err
	}
	flags := *w.Answers
	answers := &replay{Terminal: w.Terminal}
	w.Terminal = answers
	for {
		err := w.askOpen(ctx)
		switch {
		case err == nil:
			w.fillDefaults()
			return w.check(ctx)
		case !errors.Is(err, console.ErrBack) || !answers.back():
			return err
		}
		*w.Answers = flags
	}
}

func (w *Wizard) askOpen(ctx context.Context) error {
	for i := range w.steps() {
		s := w.steps()[i]
		if s.open {
			if err := s.ask(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// fillDefaults sets the time zone and the language of this machine, unless they are answered or in the file.
func (w *Wizard) fillDefaults() {
	if w.Current.Timezone == "" {
		w.Timezone = cmp.Or(w.Timezone, w.Defaults.Timezone)
	}
	if w.Current.Language == "" {
		w.Language = cmp.Or(w.Language, w.Defaults.Language)
	}
}

// Fill answers all open questions with their defaults. If all is false, only optional ones: then required questions
// without an answer are an error, which names their flags.
func (w *Wizard) Fill(ctx context.Context, all bool) error {
	if err := w.checkChoices(); err != nil {
		return err
	}
	if w.Current.Exists {
		w.Engine = cmp.Or(w.Engine, Keep)
	}
	w.Terminal = defaultAnswers{}
	w.fillDefaults()
	var missing []string
	for i := range w.steps() {
		s := w.steps()[i]
		if s.open && (all || !s.required) {
			if err := s.ask(ctx); err != nil && !errors.Is(err, errNoAnswer) {
				return err
			}
			s = w.steps()[i]
		}
		if s.open && s.required {
			missing = append(missing, s.flag)
		}
	}
	if len(missing) == 0 {
		return w.check(ctx)
	}
	hint := " (none: without), or --yes for the defaults"
	if all {
		hint = ""
	}
	return fmt.Errorf("answers are missing: give %s%s", strings.Join(missing, ", "), hint)
}

// checkChoices checks the flags with a fixed set of values, before any question. An error names the flag.
func (w *Wizard) checkChoices() error {
	providers, claims := engine.Providers(), []string{ByCode, None, Keep}
	if !slices.Contains(append(providers, "", Keep, Offline), w.Engine) {
		return fmt.Errorf("--engine: there is no %q; there is %s", w.Engine, strings.Join(providers, ", "))
	}
	if w.Claim != "" && !slices.Contains(claims, w.Claim) {
		return fmt.Errorf("--claim: there is no %q; there is %s", w.Claim, strings.Join(claims, ", "))
	}
	return nil
}

func (w *Wizard) check(ctx context.Context) error {
	if !slices.Contains([]string{"", Keep, BuiltIn, New}, w.Persona) {
		if err := w.Probes.Persona(w.Persona); err != nil {
			return fmt.Errorf("--persona: %w", err)
		}
	}
	if w.BaseURL != "" && !w.hasModel() {
		return errors.New("--base-url: no engine is given that runs there; give --engine, too")
	}
	if err := new(daemon.Zone).UnmarshalText([]byte(w.Timezone)); w.Timezone != "" && err != nil {
		return fmt.Errorf("--timezone: %w", err)
	}
	if err := checkLanguage(w.Language); err != nil {
		return fmt.Errorf("--language: %w", err)
	}
	for _, admin := range w.Admins {
		if err := checkUser(admin); err != nil {
			return fmt.Errorf("--admin: %w", err)
		}
	}
	return w.checkSecrets(ctx)
}

// checkSecrets asks the platforms about tokens that were not checked yet.
func (w *Wizard) checkSecrets(ctx context.Context) error {
	if w.Probes.Identify == nil {
		return nil
	}
	if _, err := w.resolve(w.Key); err != nil {
		return fmt.Errorf("--api-key: %w (--no-check skips this check)", err)
	}
	for _, p := range platforms() {
		if _, ok := w.Found[p]; ok {
			continue
		}
		if err := w.checkIdentity(ctx, p); err != nil {
			return fmt.Errorf("--%s-token: %w (--no-check skips this check)", p, err)
		}
	}
	return nil
}

// resolve returns the secret of an answer; the zero Secret if there is none.
func (w *Wizard) resolve(s Secret) (secret.Secret, error) {
	if !s.Typed.IsZero() || !s.replaces() {
		return s.Typed, nil
	}
	return w.Probes.Resolve(s.Word)
}

// token returns the token of a platform's account; zero if there is none. Only other servers may take any shape.
func (w *Wizard) token(platform string) (secret.Secret, error) {
	a := w.account(platform)
	token, err := w.resolve(a.Token)
	if err == nil && !token.IsZero() && a.APIURL == "" {
		err = CheckToken(platform, token)
	}
	return token, err
}

// checkIdentity asks a platform which bot a token belongs to, and adds the answer to Found.
func (w *Wizard) checkIdentity(ctx context.Context, platform string) error {
	token, err := w.token(platform)
	if err != nil || token.IsZero() || w.Probes.Identify == nil {
		return err
	}
	w.Terminal.Note("Asking " + platformTitle(platform) + " whose token that is…")
	found := w.Probes.Identify(ctx, platform, *w.account(platform), token)
	for _, f := range found {
		if f.Fatal && f.Fix != "" {
			return fmt.Errorf("%s: %s", f.What, f.Fix)
		}
	}
	address := botAddress(platform, found, token)
	if address != "" {
		found = append(found, core.Finding{What: "address", Found: address})
	}
	w.Found[platform] = found
	return nil
}

// ollama returns the models of a local Ollama; nil if none runs.
func (w *Wizard) ollama(ctx context.Context) []string {
	if !w.askedOllama {
		w.askedOllama = true
		w.models, _ = w.Probes.Models(ctx, cmp.Or(w.BaseURL, w.Defaults.Ollama, usualOllama))
	}
	return w.models
}

func (w *Wizard) hasModel() bool { return w.Engine != "" && w.Engine != Keep && w.Engine != Offline }

func (w *Wizard) needsKeyAnswer() bool {
	return w.hasModel() && needsKey(w.Engine) && w.BaseURL == "" && !w.Key.given() && !w.sameEngine()
}

// sameEngine reports whether the answered engine is the first one of the file.
func (w *Wizard) sameEngine() bool {
	engines := w.Current.Engines
	return len(engines) > 0 && engines[0].Provider == w.Engine && engines[0].BaseURL == w.BaseURL
}

// knowsOllama reports whether the environment gives the address of Ollama.
func (w *Wizard) knowsOllama() bool { return w.Engine == "ollama" && w.Defaults.Ollama != "" }

// needsBaseURL reports whether the engine runs on a machine of the user, at an address that is not answered yet.
func (w *Wizard) needsBaseURL() bool {
	unknown := !needsKey(w.Engine) && !w.sameEngine() && (w.Engine != "ollama" || w.models == nil)
	return w.hasModel() && w.BaseURL == "" && (unknown || w.knowsOllama())
}

func (w *Wizard) hasPlatform() bool {
	return slices.ContainsFunc(platforms(), func(p string) bool {
		token := w.account(p).Token
		return token.replaces() || w.Current.Accounts[p] && token.Word != None
	})
}

// needsKey reports whether a provider needs a key at its public address.
func needsKey(provider string) bool {
	err := engine.Config{Provider: provider, Model: "any"}.Check()
	return err != nil && strings.HasPrefix(err.Error(), "api_key:")
}
