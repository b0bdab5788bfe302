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
	"synthbot/core/txt"
	"synthbot/daemon/settings"
)

// ask stores the answer to a question.
func (w *Wizard) ask(ctx context.Context, into *string, q Question) (err error) {
	*into, err = w.Terminal.Ask(ctx, q)
	return err
}

func (w *Wizard) askPersona(ctx context.Context) error {
	const about = "A persona is a file; you can make it richer later."
	q := Question{Title: "Who is the bot?", About: about, Initial: BuiltIn}
	if w.Current.Exists {
		q.Initial, q.Options = Keep, []Option{{"keep " + cmp.Or(w.Current.Persona, "Aria"), Keep}}
	}
	q.Options = append(q.Options, Option{"Aria, the built-in persona", BuiltIn},
		Option{"a new persona, which I describe now", New},
		Option{"a persona file or a character card that I have", "file"})
	if err := w.ask(ctx, &w.Persona, q); err != nil || w.Persona != "file" {
		return err
	}
	return w.ask(ctx, &w.Persona, Question{
		Title: "Which file?", About: "A persona (.toml), or a character card (.json, .png).", Check: w.Probes.Persona,
	})
}

func (w *Wizard) askName(ctx context.Context) error {
	return w.ask(ctx, &w.PersonaName, Question{
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
	return w.ask(ctx, &w.PersonaText, Question{
		Title: "Who is " + w.PersonaName + "?", Long: true, Check: notEmpty("at least one sentence is needed"),
		About: "A few sentences: what it does here, what it likes, how it speaks.",
	})
}

func (w *Wizard) askEngine(ctx context.Context) error {
	q := Question{
		Title: "Which language model does it use?", Initial: Offline,
		About: "More can be added to the file, as fallbacks.",
	}
	if len(w.Current.Engines) > 0 {
		e := w.Current.Engines[0]
		q.Initial, q.Options = Keep, []Option{{"keep " + strings.TrimSpace(e.Provider+" "+e.Model), Keep}}
	}
	models := w.ollama(ctx)
	local := slices.ContainsFunc(models, canChat)
	if local {
		if q.Initial == Offline {
			q.Initial = "ollama"
		}
		label := fmt.Sprintf("ollama, which runs here and has %d models", len(models))
		q.Options = append(q.Options, Option{label, "ollama"})
	}
	for _, p := range engine.Providers() {
		if p != Offline && (p != "ollama" || !local) {
			q.Options = append(q.Options, Option{p, p})
		}
	}
	q.Options = append(q.Options, Option{"none: only small built-in answers for now", Offline})
	return w.ask(ctx, &w.Engine, q)
}

func (w *Wizard) askBaseURL(ctx context.Context) error {
	if w.knowsOllama() {
		w.BaseURL = w.Defaults.Ollama
		return nil
	}
	err := w.ask(ctx, &w.BaseURL, Question{
		Title: "Where does " + w.Engine + " run?",
		About: "An address like http://127.0.0.1:8080; empty: its usual address.",
		Check: func(answer string) error {
			if answer != "" && !strings.HasPrefix(answer, "http://") && !strings.HasPrefix(answer, "https://") {
				return errors.New("write it as http://host:port")
			}
			return nil
		},
	})
	w.looked = w.looked && w.BaseURL == ""
	return err
}

func (w *Wizard) askModel(ctx context.Context) error {
	q := Question{
		Title: "Which model?", About: "Its name, as " + w.Engine + " spells it.", Check: notEmpty("a name is needed"),
	}
	if w.sameEngine() {
		q.Initial = w.Current.Engines[0].Model
	}
	if w.Engine == "ollama" {
		for _, m := range w.ollama(ctx) {
			if canChat(m) {
				q.Options = append(q.Options, Option{m, m})
			}
		}
	}
	return w.ask(ctx, &w.Model, q)
}

func (w *Wizard) askKey(ctx context.Context) error {
	return w.askSecret(ctx, &w.Key, "The key of "+w.Engine+"?")
}

const aboutSecret = "It is not shown, and gets a file of its own. env:NAME and file:PATH are possible, too."

func (w *Wizard) askSecret(ctx context.Context, into *Secret, title string) error {
	var answer string
	check := notEmpty("nothing was written")
	err := w.ask(ctx, &answer, Question{Title: title, About: aboutSecret, Hidden: true, Check: check})
	if err == nil {
		*into = typedSecret(answer)
	}
	return err
}

// notEmpty returns a check of answers that refuses empty ones.
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
	title := strings.ToUpper(platform[:1]) + platform[1:]
	options := []Option{{"no", None}, {"yes, I have a token", New}}
	if w.Current.Accounts[platform] {
		options = []Option{{"yes: token (kept)", Keep}, {"yes, with another token", New}, {"no longer", None}}
	}
	a := w.account(platform)
	err := w.ask(ctx, &a.Token.Word, Question{
		Title: "Shall it be on " + title + "?", About: tokenSource(platform),
		Initial: options[0].Value, Options: options,
	})
	if err != nil || a.Token.Word != New {
		return err
	}
	for {
		if err := w.askSecret(ctx, &a.Token, "The token?"); err != nil {
			return err
		}
		fault := w.identify(ctx, platform)
		if fault == nil {
			return nil
		}
		var next string
		err := w.ask(ctx, &next, Question{
			Title: "That token cannot be used.", About: fault.Error(), Initial: New,
			Options: []Option{{"try another one", New}, {"use it as it is", Keep}},
		})
		if err != nil || next == Keep {
			w.setFound(platform, nil)
			return err
		}
	}
}

// tokenSource returns where users get a token.
func tokenSource(platform string) string {
	if platform == Telegram {
		return "You get a token from @BotFather, with /newbot."
	}
	return "You get a token at https://discord.com/developers/applications, under Bot; " +
		"switch the message content intent on there."
}

func (w *Wizard) askAdmin(ctx context.Context) error {
	w.usualAdmin()
	options := []Option{
		{"the first user who sends it a code in private; you get the code in a moment", ByCode},
		{"I know my own path there", "path"}, {"nobody for now", None},
	}
	if w.Claim == Keep {
		options = append([]Option{{"as it is", Keep}}, options...)
	}
	err := w.ask(ctx, &w.Claim, Question{
		Title: "Who is its admin?", About: "An admin may do everything. An admin admits others who write in private.",
		Initial: w.Claim, Options: options,
	})
	if err != nil || w.Claim != "path" {
		return err
	}
	w.Claim, w.Admins = Keep, make([]string, 1)
	const about = "Like telegram/@user/1000; the bot answers /id with it."
	return w.ask(ctx, &w.Admins[0], Question{Title: "Your path?", About: about, Check: checkUser})
}

func checkUser(answer string) error {
	p, err := core.ParsePath(strings.TrimSpace(answer))
	if err != nil || !p.IsPerson() {
		return errors.New("is not the path of a user; write it like telegram/@user/1000")
	}
	return nil
}

func (w *Wizard) askDataDir(ctx context.Context) error {
	about := "A folder; empty: " + w.Defaults.DataDir + "."
	return w.ask(ctx, &w.DataDir, Question{Title: "Where does it store its database?", About: about})
}

func (w *Wizard) askZone(ctx context.Context) error {
	return w.ask(ctx, &w.Timezone, Question{
		Title: "Which time zone does it use?", Initial: w.Defaults.Timezone,
		About: "Like Europe/Rome; empty: the machine's.", Check: checkZone,
	})
}

func (w *Wizard) askLanguage(ctx context.Context) error {
	return w.ask(ctx, &w.Language, Question{
		Title: "Which language does it speak if it recognises none?", Initial: w.Defaults.Language,
		About: "A tag like en, it or pt-BR.", Check: checkLanguage,
	})
}

func checkLanguage(answer string) error {
	if new(settings.Language).UnmarshalText([]byte(answer)) != nil {
		return fmt.Errorf("%q is not a language; write a tag like en, it or pt-BR", txt.Clip(txt.Line(answer), 100))
	}
	return nil
}
