package setup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"synthbot/config"
	"synthbot/core"
	"synthbot/core/engine"
	"synthbot/core/secret"
	"synthbot/core/txt"
	"synthbot/daemon/settings"
	"synthbot/interfaces/console"
)

func (w *Wizard) ask(ctx context.Context, into *string, q console.Question) (err error) {
	*into, err = w.Terminal.Ask(ctx, q)
	return err
}

func option(label, value string) console.Option { return console.Option{Label: label, Value: value} }

func (w *Wizard) askPersona(ctx context.Context) error {
	const about = "A persona is a file; you can make it richer later."
	q := console.Question{Title: "Who is the bot?", About: about, Initial: BuiltIn}
	if w.Current.Exists {
		q.Initial, q.Options = Keep, []console.Option{option("keep "+cmp.Or(w.Current.Persona, "Aria"), Keep)}
	}
	q.Options = append(q.Options, option("Aria, the built-in persona", BuiltIn),
		option("a new persona, which I describe now", New),
		option("a persona file or a character card that I have", "file"))
	if err := w.ask(ctx, &w.Persona, q); err != nil || w.Persona != "file" {
		return err
	}
	err := w.ask(ctx, &w.Persona, console.Question{
		Title: "Which file?", About: "A persona (.toml), or a character card (.json, .png).",
		Check: func(answer string) error { return w.Probes.Persona(expandHome(answer)) },
	})
	w.Persona = expandHome(w.Persona)
	return err
}

// expandHome replaces ~ by the home folder, as a shell does.
func expandHome(file string) string {
	home, err := os.UserHomeDir()
	rest, ok := strings.CutPrefix(file, "~/")
	if err != nil || !ok {
		return file
	}
	return filepath.Join(home, rest)
}

func (w *Wizard) askName(ctx context.Context) error {
	return w.ask(ctx, &w.PersonaName, console.Question{
		Title: "What is its name?", About: "Users call it by this name; in groups it answers to it.",
		Check: func(answer string) error {
			n := len([]rune(strings.TrimSpace(answer)))
			if n < 1 || n > 64 || strings.ContainsAny(answer, "\r\n") {
				return errors.New("a name has 1 to 64 characters, on one line")
			}
			return nil
		},
	})
}

func (w *Wizard) askText(ctx context.Context) error {
	return w.ask(ctx, &w.PersonaText, console.Question{
		Title: "Who is " + w.PersonaName + "?", Check: notEmpty("at least one sentence is needed"),
		About: "A few sentences: what it does here, what it likes, how it speaks. Alt-Enter begins a new line.",
	})
}

func (w *Wizard) askEngine(ctx context.Context) error {
	q := console.Question{
		Title: "Which language model does it use?", Initial: Offline,
		About: "More can be added to the file, as fallbacks.",
	}
	if len(w.Current.Engines) > 0 {
		e := w.Current.Engines[0]
		q.Initial, q.Options = Keep, []console.Option{option("keep "+strings.TrimSpace(e.Provider+" "+e.Model), Keep)}
	}
	models := w.ollama(ctx)
	local := slices.ContainsFunc(models, canChat)
	if local {
		if q.Initial == Offline {
			q.Initial = "ollama"
		}
		label := fmt.Sprintf("ollama, which runs here and has %d models", len(models))
		q.Options = append(q.Options, option(label, "ollama"))
	}
	for _, p := range engine.Providers() {
		if p != Offline && (p != "ollama" || !local) {
			q.Options = append(q.Options, option(p, p))
		}
	}
	q.Options = append(q.Options, option("none: only small built-in answers for now", Offline))
	return w.ask(ctx, &w.Engine, q)
}

func (w *Wizard) askBaseURL(ctx context.Context) error {
	if w.knowsOllama() {
		w.BaseURL = w.Defaults.Ollama
		return nil
	}
	err := w.ask(ctx, &w.BaseURL, console.Question{
		Title: "Where does " + w.Engine + " run?",
		About: "An address like http://127.0.0.1:8080; empty: its usual address.",
		Check: func(answer string) error {
			if answer != "" && !strings.HasPrefix(answer, "http://") && !strings.HasPrefix(answer, "https://") {
				return errors.New("write it as http://host:port")
			}
			return nil
		},
	})
	w.askedOllama = w.askedOllama && w.BaseURL == ""
	return err
}

func (w *Wizard) askModel(ctx context.Context) error {
	q := console.Question{
		Title: "Which model?", About: "Its name, as " + w.Engine + " spells it.", Check: notEmpty("a name is needed"),
	}
	if w.sameEngine() {
		q.Initial = w.Current.Engines[0].Model
	}
	if w.Engine == "ollama" {
		for _, m := range w.ollama(ctx) {
			if canChat(m) {
				q.Options = append(q.Options, option(m, m))
			}
		}
	}
	return w.ask(ctx, &w.Model, q)
}

func (w *Wizard) askKey(ctx context.Context) error {
	check := notEmpty(w.Engine + " needs a key: paste it, or name its place")
	return w.askSecret(ctx, &w.Key, console.Question{Title: "The key of " + w.Engine + "?", Check: check})
}

const aboutSecret = "It is not shown, and gets a file of its own; env:NAME and file:PATH are possible, too."

func (w *Wizard) askSecret(ctx context.Context, into *Secret, q console.Question) error {
	var answer string
	q.Hidden, q.About = true, strings.TrimSpace(q.About+" "+aboutSecret)
	err := w.ask(ctx, &answer, q)
	answer = strings.TrimSpace(answer)
	switch {
	case err != nil || answer == "":
	case config.IsReference(answer):
		*into = Secret{Word: answer}
	default:
		*into = Secret{Typed: secret.New(answer)}
	}
	return err
}

func notEmpty(fault string) func(string) error {
	return func(answer string) error {
		if strings.TrimSpace(answer) == "" {
			return errors.New(fault)
		}
		return nil
	}
}

// askAccount asks for the token of a platform until the platform accepts it.
func (w *Wizard) askAccount(ctx context.Context, platform string) error {
	title, a := platformTitle(platform), w.account(platform)
	if w.Current.Accounts[platform] {
		options := []console.Option{
			option("yes: token (kept)", Keep), option("yes, with another token", New), option("no longer", None),
		}
		q := console.Question{Title: "Shall it be on " + title + "?", Initial: Keep, Options: options}
		if err := w.ask(ctx, &a.Token.Word, q); err != nil || a.Token.Word != New {
			return err
		}
	}
	for {
		a.Token = Secret{}
		about := tokenSource(platform) + " Empty: not on " + title + "."
		if err := w.askSecret(ctx, &a.Token, console.Question{Title: title + " token?", About: about}); err != nil {
			return err
		}
		if !a.Token.given() {
			a.Token.Word = None
			return nil
		}
		fault := w.checkIdentity(ctx, platform)
		if fault == nil {
			return nil
		}
		var next string
		err := w.ask(ctx, &next, console.Question{
			Title: "That token cannot be used.", About: fault.Error(), Initial: New,
			Options: []console.Option{option("try another one", New), option("use it as it is", Keep)},
		})
		if err != nil || next == Keep {
			w.Found[platform] = nil
			return err
		}
	}
}

func platformTitle(platform string) string { return strings.ToUpper(platform[:1]) + platform[1:] }

func tokenSource(platform string) string {
	if platform == Telegram {
		return "You get one from @BotFather, with /newbot."
	}
	return "You get one at https://discord.com/developers/applications, under Bot; " +
		"switch the message content intent on there."
}

func (w *Wizard) askAdmin(ctx context.Context) error {
	usual, options := ByCode, []console.Option{
		option("whoever sends it a code first; you get the code in a moment", ByCode),
		option("I know my own path there", "path"), option("nobody for now", None),
	}
	if w.Current.Claim || len(w.Current.Admins) > 0 {
		usual, options = Keep, append([]console.Option{option("as it is", Keep)}, options...)
	}
	err := w.ask(ctx, &w.Claim, console.Question{
		Title: "Who is its admin?", About: "An admin may do everything, and lets others in who write in private.",
		Initial: usual, Options: options,
	})
	if err != nil || w.Claim != "path" {
		return err
	}
	w.Claim, w.Admins = Keep, make([]string, 1)
	const about = "Like telegram/@user/1000; the bot answers /id with it."
	return w.ask(ctx, &w.Admins[0], console.Question{Title: "Your path?", About: about, Check: checkUser})
}

func checkUser(answer string) error {
	p, err := core.ParsePath(strings.TrimSpace(answer))
	if err != nil || !p.IsPerson() {
		return errors.New("not the path of a user: write it like telegram/@user/1000")
	}
	return nil
}

func checkLanguage(answer string) error {
	if new(settings.Language).UnmarshalText([]byte(answer)) != nil {
		return fmt.Errorf("%q is not a language; write a tag like en, it or pt-BR", txt.Clip(txt.Line(answer), 100))
	}
	return nil
}
