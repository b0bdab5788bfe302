package setup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"synthbot/core"
	"synthbot/core/txt"
)

// choose asks for one of several answers.
func (t *Talk) choose(ctx context.Context, title, about, initial string, options ...Option) (string, error) {
	return t.Terminal.Ask(ctx, Question{Title: title, About: about, Initial: initial, Options: options})
}

func (t *Talk) askPersona(ctx context.Context) (err error) {
	var options []Option
	initial := BuiltIn
	if t.Known.There {
		initial = Keep
		options = append(options, Option{"keep " + cmp.Or(t.Known.Persona, "Aria"), Keep})
	}
	options = append(options, Option{"Aria, who comes with the program", BuiltIn}, Option{"somebody new, whom I describe now", New},
		Option{"a persona file or a character card that I have", "file"})
	if t.Persona, err = t.choose(ctx, "Who is the bot?", "A persona is a file; you can make it richer later.", initial, options...); t.Persona != "file" {
		return err
	}
	t.Persona, err = t.Terminal.Ask(ctx, Question{Title: "Which file?", About: "A persona (.toml), or a character card (.json, .png).", Check: t.World.Persona})
	return err
}

func (t *Talk) askName(ctx context.Context) (err error) {
	t.PersonaName, err = t.Terminal.Ask(ctx, Question{Title: "What is its name?", About: "People call it so, and in groups it wakes it.", Check: name})
	return err
}

func name(answer string) error {
	if n := len([]rune(strings.TrimSpace(answer))); n < 1 || n > 64 || strings.ContainsAny(answer, "\r\n") {
		return errors.New("a name has 1 to 64 characters, on one line")
	}
	return nil
}

func (t *Talk) askText(ctx context.Context) (err error) {
	t.PersonaText, err = t.Terminal.Ask(ctx, Question{
		Title: "Who is " + t.PersonaName + "?", Long: true,
		About: "A few sentences: what it does here, what it likes, how it speaks.",
		Check: func(answer string) error {
			if strings.TrimSpace(answer) == "" {
				return errors.New("a sentence is needed at least")
			}
			return nil
		},
	})
	return err
}

func (t *Talk) askEngine(ctx context.Context) (err error) {
	var options []Option
	initial := Offline
	if len(t.Known.Engines) > 0 {
		initial = Keep
		options = append(options, Option{"keep " + strings.TrimSpace(t.Known.Engines[0].Provider+" "+t.Known.Engines[0].Model), Keep})
	}
	if models := t.ollama(ctx); slices.ContainsFunc(models, chats) {
		initial = cmp.Or(strings.TrimSuffix(initial, Offline), "ollama")
		options = append(options, Option{fmt.Sprintf("ollama, which runs here and has %d models", len(models)), "ollama"})
	}
	for _, p := range t.World.Providers {
		if p != Offline && (p != "ollama" || !slices.ContainsFunc(t.models, chats)) {
			options = append(options, Option{p, p})
		}
	}
	options = append(options, Option{"none: small answers of its own, until there is one", Offline})
	t.Engine, err = t.choose(ctx, "Which language model speaks for it?", "More can be added to the file, as fallbacks.", initial, options...)
	return err
}

func (t *Talk) askBase(ctx context.Context) (err error) {
	t.BaseURL, err = t.Terminal.Ask(ctx, Question{
		Title: "Where does " + t.Engine + " run?", About: "An address like http://127.0.0.1:8080; empty: where it usually does.",
		Check: func(answer string) error {
			if answer != "" && !strings.HasPrefix(answer, "http://") && !strings.HasPrefix(answer, "https://") {
				return errors.New("write it as http://host:port")
			}
			return nil
		},
	})
	t.looked = t.looked && t.BaseURL == ""
	return err
}

func (t *Talk) askModel(ctx context.Context) (err error) {
	q := Question{Title: "Which model?", About: "Its name, as " + t.Engine + " spells it.", Check: func(answer string) error {
		if strings.TrimSpace(answer) == "" {
			return errors.New("a name is needed")
		}
		return nil
	}}
	if t.again() {
		q.Initial = t.Known.Engines[0].Model
	}
	if t.Engine == "ollama" {
		for _, m := range t.ollama(ctx) {
			if chats(m) {
				q.Options = append(q.Options, Option{m, m})
			}
		}
	}
	t.Model, err = t.Terminal.Ask(ctx, q)
	return err
}

func (t *Talk) askKey(ctx context.Context) error {
	key, err := t.Terminal.Ask(ctx, Question{
		Title: "The key of " + t.Engine + "?", Hidden: true, Check: filled,
		About: "It is not shown, and gets a file of its own. env:NAME and file:PATH are taken, too.",
	})
	t.Key = typed(key)
	return err
}

// typed is the answer to a hidden question.
func typed(answer string) Secret {
	answer = strings.TrimSpace(answer)
	if strings.HasPrefix(answer, "env:") || strings.HasPrefix(answer, "file:") {
		return Secret{Word: answer}
	}
	return Secret{Typed: core.NewSecret(answer)}
}

func filled(answer string) error {
	if strings.TrimSpace(answer) == "" {
		return errors.New("nothing was written")
	}
	return nil
}

// askAccount asks for a platform's token until the platform knows it.
func (t *Talk) askAccount(ctx context.Context, platform string) error {
	title := strings.ToUpper(platform[:1]) + platform[1:]
	options := []Option{{"no", None}, {"yes, I have a token", New}}
	if t.Known.Accounts[platform] {
		options = []Option{{"yes: token (kept)", Keep}, {"yes, with another token", New}, {"no longer", None}}
	}
	word, err := t.choose(ctx, "Shall it be on "+title+"?", where(platform), options[0].Value, options...)
	a := t.account(platform)
	if a.Token.Word = word; err != nil || word != New {
		return err
	}
	about := "It is not shown, and gets a file of its own. env:NAME and file:PATH are taken, too."
	for {
		token, err := t.Terminal.Ask(ctx, Question{Title: "The token?", About: about, Hidden: true, Check: filled})
		if err != nil {
			return err
		}
		a.Token = typed(token)
		if err = t.look(ctx, platform); err == nil {
			return nil
		}
		if word, err = t.choose(ctx, "That token cannot be used.", err.Error(), New, Option{"try another one", New}, Option{"take it as it is", Keep}); err != nil || word == Keep {
			t.note(platform, nil)
			return err
		}
	}
}

// where says where a token is to be had.
func where(platform string) string {
	if platform == Telegram {
		return "A token is had from @BotFather, with /newbot."
	}
	return "A token is had at https://discord.com/developers/applications, under Bot; switch the message content intent on there."
}

func (t *Talk) askAdmin(ctx context.Context) error {
	t.usualAdmin(ctx)
	options := []Option{{"who says a code to it in private, which you get in a moment", ByCode}, {"I know my own path there", "path"}, {"nobody for now", None}}
	if t.Claim == Keep {
		options = append([]Option{{"as it is", Keep}}, options...)
	}
	word, err := t.choose(ctx, "Who is its admin?", "An admin may do everything. Others who write in private are let in by one.", t.Claim, options...)
	if t.Claim = word; err != nil || word != "path" {
		return err
	}
	t.Claim = Keep
	path, err := t.Terminal.Ask(ctx, Question{Title: "Your path?", About: "Like telegram/@user/1000; the bot tells it to who says /id.", Check: person})
	t.Admins = []string{strings.TrimSpace(path)}
	return err
}

func person(answer string) error {
	if p, err := core.ParsePath(strings.TrimSpace(answer)); err != nil || !p.IsPerson() {
		return errors.New("names no person; write it like telegram/@user/1000")
	}
	return nil
}

func (t *Talk) askDataDir(ctx context.Context) (err error) {
	t.DataDir, err = t.Terminal.Ask(ctx, Question{Title: "Where does it keep what it is told?", About: "A folder; empty: " + t.World.DataDir + "."})
	return err
}

func (t *Talk) askZone(ctx context.Context) (err error) {
	t.Timezone, err = t.Terminal.Ask(ctx, Question{Title: "In which time zone does it live?", Initial: t.World.OwnZone, About: "Like Europe/Rome; empty: the machine's.", Check: t.zone})
	return err
}

func (t *Talk) zone(answer string) error {
	if answer == "" {
		return nil
	}
	return t.World.Zone(answer)
}

func (t *Talk) askLanguage(ctx context.Context) (err error) {
	t.Language, err = t.Terminal.Ask(ctx, Question{
		Title: "Which language does it speak where it recognises none?", Initial: t.World.Language, About: "A tag like en, it or pt-BR.", Check: language,
	})
	return err
}

func language(answer string) error {
	if answer != "" && !regexp.MustCompile(`^[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*$`).MatchString(answer) {
		return fmt.Errorf("%q is no language; write a tag like en, it or pt-BR", txt.Clip(txt.Line(answer), 100))
	}
	return nil
}
