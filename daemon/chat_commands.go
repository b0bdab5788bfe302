package daemon

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"synthbot/core"
	"synthbot/core/command"
	"synthbot/core/turn"
	"synthbot/daemon/settings"
)

type chatCommands struct{ *Bot }

// all returns the bot's own chat commands, besides /claim.
func (b *chatCommands) all() []command.Command {
	data := b.PersonalData()
	help := func(_ context.Context, c command.Call) (string, error) {
		if c.Args["command"] != "" {
			return b.InForce().Commands.HelpOn(c, c.Args["command"]), nil
		}
		return b.InForce().Commands.Help(c, "start", claimName), nil
	}
	undo := func(ctx context.Context, c command.Call) (string, error) { return b.Turns.Undo(ctx, c) }
	list := []command.Command{
		{Do: help, Spec: command.Spec{Name: "help", Brief: "Show my commands", Briefs: map[string]string{
			"it": "Dice che cosa puoi chiedermi", "de": "Sagt, was du mir sagen kannst",
			"fr": "Dit ce que tu peux me demander", "es": "Dice lo que puedes pedirme",
			"pt": "Diz o que me podes pedir",
		}, Args: []command.Arg{{Name: "command", Brief: "A command, to see how it is used"}}}},
		{Do: b.greet, Spec: command.Spec{Name: "start", Brief: "Say hello"}},
		{Do: b.showID, Spec: command.Spec{
			Name: "id", Brief: "Show your id and the id of this chat", Briefs: map[string]string{
				"it": "Mostra il tuo id e quello di questa chat", "de": "Zeigt deine Id und die dieses Chats",
				"fr": "Montre ton id et celui de ce chat", "es": "Muestra tu id y el de este chat",
			},
		}},
		{Do: data.show, Spec: command.Spec{
			Name: "mydata", Brief: "Send you everything that I store about you", Private: true,
			Briefs: map[string]string{
				"it": "Mostra e invia tutto ciò che conservo su di te",
				"de": "Zeigt und schickt alles, was ich über dich weiß",
				"fr": "Montre et envoie tout ce que je garde sur toi",
				"es": "Muestra y envía todo lo que guardo sobre ti",
			},
		}},
		{Do: data.forgetAuthor, Spec: command.Spec{
			Name: "forgetme", Brief: "Erase everything that I store about you, everywhere", Private: true,
			Args: []command.Arg{{Name: "sure", Brief: "Write yes to confirm: this cannot be undone"}},
			Briefs: map[string]string{
				"it": "Cancella tutto ciò che conservo su di te", "de": "Löscht alles, was ich über dich weiß",
				"fr": "Efface tout ce que je garde sur toi", "es": "Borra todo lo que guardo sobre ti",
			},
		}},
		{Do: b.setAsleep(true), Spec: command.Spec{
			Name: "sleep", Brief: "Keep me silent here until /wake; I still listen", Briefs: map[string]string{
				"it": "Taccio qui fino a /wake; ascolto ancora", "de": "Ich schweige hier bis /wake, höre aber zu",
				"fr": "Je me tais ici jusqu'à /wake ; j'écoute encore", "es": "Callo aquí hasta /wake; sigo escuchando",
			},
		}},
		{Do: b.setAsleep(false), Spec: command.Spec{
			Name: "wake", Brief: "Let me answer here again", Briefs: map[string]string{
				"it": "Rispondo di nuovo qui", "de": "Ich antworte hier wieder",
				"fr": "Je réponds de nouveau ici", "es": "Vuelvo a responder aquí",
			},
		}},
		{Do: b.activation, Spec: command.Spec{
			Name: "activation", Brief: "Show or change what I answer here", Rank: core.RankModerator,
			Args: []command.Arg{{Name: "what", Brief: "What I answer in this group", Choices: []string{
				turn.ActivationMention, turn.ActivationKeyword, turn.ActivationAmbient, turn.ActivationAlways,
				turn.ActivationNever, settings.Default,
			}}},
			Briefs: map[string]string{
				"it": "Mostra o cambia a che cosa rispondo qui", "de": "Zeigt oder ändert, worauf ich hier antworte",
				"fr": "Montre ou change ce à quoi je réponds ici", "es": "Muestra o cambia a qué respondo aquí",
			},
		}},
	}
	for _, c := range b.forAdmins() {
		c.Rank = core.RankAdmin
		list = append(list, c)
	}
	for i := range list {
		list[i].Idempotent = list[i].Name != "say"
	}
	return slices.Insert(list, 3, command.Command{Spec: turn.UndoSpec(), Do: undo})
}

// complete returns the possible completions of the last word of an admin's line.
func (b *chatCommands) complete(ctx context.Context, line string) []string {
	now := b.InForce()
	known := func(s *command.Spec, a *command.Arg, before []string) []string {
		switch s.Name + " " + a.Name {
		case "log room":
			return append(now.Config.Rooms(), "all")
		case "persona name", "engine name":
			return now.choices(s.Name)
		case "set value":
			return settings.Values[settings.Settings](before[0])
		}
		if a.Name == "path" {
			return b.places(ctx)
		}
		return nil
	}
	return now.Commands.Complete(line, core.RankAdmin, known)
}

func (b *chatCommands) places(ctx context.Context) (paths []string) {
	heads, err := core.Read(ctx, b.Data, func(v core.View) ([]core.Head, error) { return v.Places(core.Path{}) })
	if err != nil {
		b.log.Warn("places not found", "err", err)
	}
	for _, h := range heads {
		paths = append(paths, h.Path.String())
	}
	return paths
}

func (b *chatCommands) greet(_ context.Context, c command.Call) (string, error) {
	who := b.InForce().personaAt(c.Path).For(c.Author.Name)
	if who.Greeting != "" {
		return who.Greeting, nil
	}
	return "Hello, " + c.Author.Name + ". I am " + who.Name + ". Just talk to me; /help lists my commands.", nil
}

// showID shows the paths of the author and the place, as the configuration file takes them.
func (b *chatCommands) showID(_ context.Context, c command.Call) (string, error) {
	return "You are `" + c.Person.String() + "`, and this place is `" + c.Path.String() + "`.", nil
}

func (b *chatCommands) setAsleep(sleeps bool) func(context.Context, command.Call) (string, error) {
	return func(ctx context.Context, c command.Call) (string, error) {
		if !c.Private && c.Author.Rank < core.RankModerator {
			return "", core.Errorf(core.Forbidden, "Only moderators can do that here.")
		}
		err := b.changes.Change(ctx, c.Path, func(s *settings.Settings) {
			s.Asleep = nil
			if sleeps {
				s.Asleep = &sleeps
			}
		})
		if sleeps {
			return "Good night. I listen, and say nothing until somebody writes /wake.", err
		}
		return "I am awake.", err
	}
}

func (b *chatCommands) activation(ctx context.Context, c command.Call) (string, error) {
	what := c.Args["what"]
	if what != "" {
		if err := b.changes.Set(ctx, c.Path, "activation", what); err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("Here I answer as `%s` says.", b.InForce().settings.At(c.Path).Activation), nil
}

func (b *chatCommands) persona(ctx context.Context, c command.Call) (string, error) {
	now := b.InForce()
	all := strings.Join(now.personas.known(), ", ")
	name := c.Args["name"]
	if name != "" {
		file, ok := now.personas.file(name)
		if !ok && name != settings.Default {
			return "", core.Errorf(core.Invalid, "There is no persona %q. There is %s.", name, all)
		}
		if name == settings.Default {
			file = name
		}
		if err := b.changes.Set(ctx, c.Path, "persona", file); err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("Here I am %s. There is %s.", now.personaAt(c.Path).Name, all), nil
}

func (b *chatCommands) engine(ctx context.Context, c command.Call) (string, error) {
	now := b.InForce()
	names := now.Engines.Names()
	all, name := strings.Join(names, ", "), c.Args["name"]
	if name != "" {
		if name != settings.Default && !slices.Contains(names, name) {
			return "", core.Errorf(core.Invalid, "There is no engine %q. There is %s.", name, all)
		}
		if err := b.changes.Set(ctx, c.Path, "engine", name); err != nil {
			return "", err
		}
	}
	first := cmp.Or(now.settings.At(c.Path).Engine, names[0])
	return fmt.Sprintf("Here %s is asked first. There is %s.", first, all), nil
}

func (b *chatCommands) set(ctx context.Context, c command.Call) (string, error) {
	what, value := c.Args["what"], c.Args["value"]
	if value != "" {
		if err := b.changes.Set(ctx, c.Path, what, value); err != nil {
			return "", err
		}
		b.reloads.settingsChanged()
	}
	var s strings.Builder
	for _, row := range b.InForce().runningSettings(c.Path) {
		if what == "" || what == row.Name {
			fmt.Fprintf(&s, "- %s: %s (%s)\n", row.Name, cmp.Or(row.Value, "–"), row.From)
		}
	}
	return strings.TrimSpace(s.String()), nil
}
