package daemon

import (
	"cmp"
	"context"
	"strings"

	"synthbot/core/command"
	"synthbot/core/turn"
)

// ofUsers returns the commands of everybody.
func (b *chatCommands) ofUsers() []command.Command {
	briefs := map[string]string{
		"it": "Dice che cosa puoi chiedermi", "de": "Sagt, was du mir sagen kannst",
		"fr": "Dit ce que tu peux me demander", "es": "Dice lo que puedes pedirme", "pt": "Diz o que me podes pedir",
	}
	help := command.Spec{Name: "help", Idempotent: true, Brief: "Show my commands", Briefs: briefs}
	id := command.Spec{
		Name: "id", Idempotent: true, Brief: "Show your id and the id of this chat",
	}
	myData := command.Spec{
		Name: "mydata", Idempotent: true, Brief: "Send you everything that I store about you", Private: true,
		Briefs: map[string]string{
			"it": "Mostra e invia tutto ciò che conservo su di te",
			"de": "Zeigt und schickt alles, was ich über dich weiß",
			"fr": "Montre et envoie tout ce que je garde sur toi",
			"es": "Muestra y envía todo lo que guardo sobre ti",
		},
	}
	forgetMe := command.Spec{
		Name: "forgetme", Idempotent: true, Brief: "Erase everything that I store about you, everywhere", Private: true,
		Args: []command.Arg{{Name: "sure", Brief: "Write yes to confirm: this cannot be undone"}},
		Briefs: map[string]string{
			"it": "Cancella tutto ciò che conservo su di te", "de": "Löscht alles, was ich über dich weiß",
			"fr": "Efface tout ce que je garde sur toi", "es": "Borra todo lo que guardo sobre ti",
		},
	}
	undo := func(ctx context.Context, c command.Call) (string, error) { return b.Turns.Undo(ctx, c) }
	data := b.PersonalData()
	return []command.Command{
		{Spec: help, Do: b.help},
		{Spec: command.Spec{Name: "start", Idempotent: true, Brief: "Say hello"}, Do: b.greet},
		{Spec: id, Do: showID},
		{Spec: turn.UndoSpec(), Do: undo},
		{Spec: myData, Do: data.show},
		{Spec: forgetMe, Do: data.forgetAuthor},
	}
}

// help lists the commands that the author may use.
func (b *chatCommands) help(_ context.Context, c command.Call) (string, error) {
	var s strings.Builder
	s.WriteString("Just talk to me. Besides:\n\n")
	for _, spec := range b.InForce().Commands.Specs(c.Author.Rank) {
		if spec.Name != "start" && spec.Name != claimName && (!spec.Private || c.Private) {
			s.WriteString("- /" + spec.Name + " – " + briefIn(spec, c.Locale) + "\n")
		}
	}
	return strings.TrimSpace(s.String()), nil
}

// briefIn returns the brief in the user's language, if there is one.
func briefIn(s command.Spec, locale string) string {
	language, _, _ := strings.Cut(locale, "-")
	return cmp.Or(s.Briefs[strings.ToLower(language)], s.Brief)
}

// greet answers with the greeting of the persona.
func (b *chatCommands) greet(_ context.Context, c command.Call) (string, error) {
	who := b.InForce().personaAt(c.Path).For(c.Author.Name)
	if who.Greeting != "" {
		return who.Greeting, nil
	}
	return "Hello, " + c.Author.Name + ". I am " + who.Name + ". Just talk to me; /help tells what else there is.", nil
}

// showID shows the paths that the configuration takes for the author and the place.
func showID(_ context.Context, c command.Call) (string, error) {
	return "You are `" + c.Person.String() + "`, and this place is `" + c.Path.String() + "`.", nil
}
