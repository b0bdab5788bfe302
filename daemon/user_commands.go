package daemon

import (
	"context"
	"strings"

	"synthbot/core/command"
)

// commands are all chat commands: the bot's own and those of plugins.
func (b *Bot) commands(c *Config, plugins []loaded) (*command.Registry, error) {
	claim, err := b.forClaim(c)
	if err != nil {
		return nil, err
	}
	lists := [][]command.Command{b.forAll(), b.forKeepers(), b.forAdmins(), claim}
	for _, l := range plugins {
		if c, ok := l.Plugin.(command.Commander); ok {
			lists = append(lists, c.Commands())
		}
	}
	r, err := command.New(lists...)
	if err != nil {
		return nil, UsageError{err}
	}
	return r, nil
}

// InForce are the parts in force.
func (b *Bot) InForce() *parts {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.parts
}

// forAll are the commands of everybody.
func (b *Bot) forAll() []command.Command {
	return []command.Command{
		{Spec: command.Spec{Name: "help", Idempotent: true, Brief: "Tell what you can say to me", Briefs: map[string]string{
			"it": "Dice che cosa puoi chiedermi", "de": "Sagt, was du mir sagen kannst", "fr": "Dit ce que tu peux me demander",
			"es": "Dice lo que puedes pedirme", "pt": "Diz o que me podes pedir",
		}}, Do: b.help},
		{Spec: command.Spec{Name: "start", Idempotent: true, Brief: "Say hello"}, Do: b.greet},
		{Spec: command.Spec{Name: "id", Idempotent: true, Brief: "Tell what you and this place are called in my settings"}, Do: tellID},
		{Spec: command.Spec{Name: "mydata", Idempotent: true, Brief: "Show and send all that I keep about you", Private: true, Briefs: map[string]string{
			"it": "Mostra e invia tutto ciò che conservo su di te", "de": "Zeigt und schickt alles, was ich über dich weiß",
			"fr": "Montre et envoie tout ce que je garde sur toi", "es": "Muestra y envía todo lo que guardo sobre ti",
		}}, Do: b.myData},
		{Spec: command.Spec{Name: "forgetme", Idempotent: true, Brief: "Erase all that I keep about you, everywhere", Private: true,
			Args: []command.Arg{{Name: "sure", Brief: "Write yes: it cannot be undone"}},
			Briefs: map[string]string{
				"it": "Cancella tutto ciò che conservo su di te", "de": "Löscht alles, was ich über dich weiß",
				"fr": "Efface tout ce que je garde sur toi", "es": "Borra todo lo que guardo sobre ti",
			}}, Do: b.forgetMe},
	}
}

// help lists the commands that are open to who asks.
func (b *Bot) help(_ context.Context, c command.Call) (string, error) {
	var s strings.Builder
	s.WriteString("Just talk to me. Besides:\n\n")
	for _, spec := range b.InForce().Commands.Specs(c.Author.Rank) {
		if spec.Name != "start" && spec.Name != claimName && (!spec.Private || c.Private) {
			s.WriteString("- /" + spec.Name + " – " + briefIn(spec, c.Locale) + "\n")
		}
	}
	return strings.TrimSpace(s.String()), nil
}

// briefIn is the brief in somebody's language, where there is one.
func briefIn(s command.Spec, locale string) string {
	language, _, _ := strings.Cut(locale, "-")
	if brief := s.Briefs[strings.ToLower(language)]; brief != "" {
		return brief
	}
	return s.Brief
}

// greet says hello as the persona does.
func (b *Bot) greet(_ context.Context, c command.Call) (string, error) {
	who := b.InForce().personaAt(c.Path).For(c.Author.Name)
	if who.Greeting != "" {
		return who.Greeting, nil
	}
	return "Hello, " + c.Author.Name + ". I am " + who.Name + ". Just talk to me; /help tells what else there is.", nil
}

// tellID tells the names that belong into the configuration.
func tellID(_ context.Context, c command.Call) (string, error) {
	return "You are `" + c.Person.String() + "`, and this place is `" + c.Path.String() + "`.", nil
}
