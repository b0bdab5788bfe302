package memory

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"synthbot/core"
	"synthbot/core/command"
	"synthbot/core/txt"
	"synthbot/core/values"
)

// Commands implements command.Commander.
func (p *Plugin) Commands() []command.Command {
	return []command.Command{
		{Spec: command.Spec{
			Name: "remember", Idempotent: true, Brief: "Remember something for this chat",
			Args: []command.Arg{{Name: "text", Brief: "What to remember", Rest: true}},
			Briefs: map[string]string{
				"it": "Ricorda qualcosa per questa chat", "de": "Merkt sich etwas für diesen Chat",
				"fr": "Retient quelque chose pour ce chat", "es": "Recuerda algo para este chat",
			},
		}, Do: p.remember},
		{Spec: command.Spec{
			Name: "memories", Idempotent: true, Brief: "List what I remember about you",
			Briefs: map[string]string{
				"it": "Elenca ciò che ricordo di te", "de": "Listet auf, was ich mir über dich gemerkt habe",
				"fr": "Liste ce que j'ai retenu de toi", "es": "Enumera lo que recuerdo de ti",
			},
		}, Do: p.memories},
		{Spec: command.Spec{
			Name: "forget", Brief: "Forget one memory",
			Args: []command.Arg{{Name: "id", Brief: "Its id from /memories", Required: true}},
			Briefs: map[string]string{
				"it": "Dimentica un ricordo", "de": "Vergisst eine Erinnerung",
				"fr": "Oublie un souvenir", "es": "Olvida un recuerdo",
			},
		}, Do: p.forgetOne},
		{Spec: command.Spec{
			Name: "extract", Idempotent: true,
			Brief: "Choose whether I may remember things from your messages on my own",
			Args: []command.Arg{{Name: "answer", Brief: "on or off; leave it out to see which",
				Choices: []string{"on", "off"}}},
			Briefs: map[string]string{
				"it": "Scegli se posso ricordare da solo ciò che scrivi",
				"de": "Wähle, ob ich mir von selbst merken darf, was du schreibst",
				"fr": "Choisis si je peux retenir de moi-même ce que tu écris",
				"es": "Elige si puedo recordar por mi cuenta lo que escribes",
			},
		}, Do: p.extract},
	}
}

// remember saves the caller's text or, without one, the message that they replied to.
func (p *Plugin) remember(ctx context.Context, c command.Call) (string, error) {
	text, by, rank := c.Args["text"], c.Person, c.Author.Rank
	about := []core.Path{by}
	if text == "" && c.Target != "" {
		said, author, err := p.target(ctx, &c)
		if err != nil {
			return "", err
		}
		text, about = said, nil
		if !author.IsZero() {
			by, rank, about = author, core.RankMember, []core.Path{author}
		}
	}
	text = txt.ClipLine(text, textMax+1)
	if text == "" {
		return "", core.Errorf(core.Invalid, "Say what: `/remember text`, or reply `/remember` to a message.")
	} else if len([]rune(text)) > textMax {
		return "", core.Errorf(core.Invalid, "That is too long; at most %d characters are possible.", textMax)
	}
	const importance = 5
	f, err := p.host.Facts.SaveFact(ctx, core.Fact{
		Text: text, About: about, Importance: importance, Language: languageOr(p.host.Language, c.Locale),
		Origin: c.Path, By: by, Rank: rank,
	})
	if err != nil {
		return "", forUsers("", err)
	}
	c.NoteDone(saveName, savePayload{Text: f.Text, Importance: importance}, saved(f))
	return fmt.Sprintf("I will remember that (`%s`).", f.ID), nil
}

// target returns the text and the author of the message that a command was called on. The author
// is zero for messages of bots and if they are unknown.
func (p *Plugin) target(ctx context.Context, c *command.Call) (text string, author core.Path, err error) {
	e, _, err := core.ReadEntry(ctx, p.host.Reader, c.Path, c.Target)
	if err != nil || e.Deleted {
		return "", author, err
	}
	m := e.Message
	others := slices.Concat(m.Foreign, c.Foreign)
	switch {
	case m.Text != "":
	case len(others) > 0: // a forwarded or quoted text
		m.Text, m.Author = others[0].Text, others[0].From
	default:
		m.Author = core.Author{}
	}
	if !e.Self && m.Author.ID != "" && !m.Author.Bot {
		author, err = c.Path.Person(m.Author.ID)
	}
	return strings.TrimSpace(m.Text), author, err
}

const listMax = 30 // facts that a command lists

func (p *Plugin) memories(ctx context.Context, c command.Call) (string, error) {
	found, err := p.factsOf(ctx, &c)
	if err != nil {
		return "", err
	}
	if len(found) == 0 {
		return "I remember nothing about you here.", nil
	}
	var b strings.Builder
	for i, f := range found {
		if i == listMax {
			fmt.Fprintf(&b, "… and %d more.\n", len(found)-listMax)
			break
		}
		fmt.Fprintf(&b, "- `%s` %s: %s\n", f.ID, p.date(f.Time), txt.ClipLine(f.Text, shownMax))
	}
	return b.String() + "`/forget ID` removes one.", nil
}

// forgetOne removes a fact that is visible here or that /memories lists for the caller.
func (p *Plugin) forgetOne(ctx context.Context, c command.Call) (string, error) {
	id := strings.Trim(c.Args["id"], "`")
	see := c.Sees
	f, err := p.fact(ctx, id, see, c.Person)
	failed := (*core.Error)(nil)
	if errors.As(err, &failed) && c.Private {
		var own []core.Fact
		own, err = p.factsOf(ctx, &c)
		i := slices.IndexFunc(own, func(f core.Fact) bool { return f.ID == id })
		if i >= 0 {
			f, see = own[i], []core.Path{own[i].Origin}
		} else if err == nil {
			err = unknown(id)
		}
	}
	if errors.As(err, &failed) {
		return "", core.Errorf(core.Invalid, "I have no memory `%s` here. `/memories` lists them.",
			txt.ClipLine(id, idMax))
	}
	if err != nil {
		return "", err
	}
	if !mayChange(&f, c.Path, c.Person, c.Author.Rank) {
		return "", core.Errorf(core.Forbidden,
			"Somebody else told me that, about somebody else: only they, moderators and admins may remove it.")
	}
	if err := p.host.Facts.DropFact(ctx, f.ID, see...); err != nil && !errors.Is(err, core.ErrUnknown) {
		return "", fmt.Errorf("forget: %w", err)
	}
	c.NoteDone(forgetName, forgetPayload{ID: id}, core.Result{})
	return "Forgotten.", nil
}

// factsOf returns the facts that the caller stated or that are about them, if they may see them here: those visible
// here and, in a private chat, also what they said elsewhere and what was said about them in groups where they talk.
func (p *Plugin) factsOf(ctx context.Context, c *command.Call) ([]core.Fact, error) {
	q := core.FactQuery{See: c.Sees, N: findMax}
	if c.Private {
		heads, err := core.Read(ctx, p.host.Reader, places)
		if err != nil {
			return nil, fmt.Errorf("places: %w", err)
		}
		for _, h := range heads {
			q.See = append(q.See, h.Path)
		}
	}
	latest, err := p.host.Facts.Recall(ctx, q)
	if err != nil {
		return nil, fmt.Errorf("recall: %w", err)
	}
	q.About = []core.Path{c.Person}
	about, err := p.host.Facts.Recall(ctx, q)
	if err != nil {
		return nil, fmt.Errorf("recall: %w", err)
	}
	var facts []core.Fact
	known := make(map[string]bool)
	for _, f := range slices.Concat(about, latest) {
		if concerns(&f, c.Person) && !known[f.ID] {
			known[f.ID] = true
			facts = append(facts, f)
		}
	}
	return p.visible(ctx, c, facts), nil
}

func (p *Plugin) visible(ctx context.Context, c *command.Call, facts []core.Fact) []core.Fact {
	talks := make(map[core.Path]bool)
	return slices.DeleteFunc(facts, func(f core.Fact) bool {
		here := func(see core.Path) bool { return see.Within(f.Origin) }
		if f.By == c.Person || slices.ContainsFunc(c.Sees, here) {
			return false
		}
		there, asked := talks[f.Origin]
		if !asked {
			there = p.talks(ctx, f.Origin, c)
			talks[f.Origin] = there
		}
		return !there
	})
}

const talkReach = 300 // how many recent entries of a place are searched for a user

// talks reports whether the caller wrote lately in a place that is not private.
func (p *Plugin) talks(ctx context.Context, place core.Path, c *command.Call) (there bool) {
	if place.Interface() != c.Path.Interface() {
		return false
	}
	last := func(v core.View) ([]core.Entry, error) { return v.Last(place, talkReach) }
	entries, err := core.Read(ctx, p.host.Reader, last)
	for i := range entries {
		m := &entries[i].Message
		if m.Private {
			return false
		}
		there = there || !entries[i].Self && m.Author.ID == c.Author.ID
	}
	return there && err == nil
}

func places(v core.View) ([]core.Head, error) { return v.Places(core.Path{}) }

// consent is a user's answer to /extract. It is stored under their path.
type consent struct {
	On bool `json:"on"`
}

const consentKey = "extract"

// readable reports whether a user's messages may be searched for facts: in private chats only
// if they agreed, in groups unless they refused.
func readable(ctx context.Context, items core.Items, person core.Path) (private, public bool, err error) {
	c, ok, err := values.Get[consent](ctx, items, person, consentKey)
	return c.On, c.On || !ok && err == nil, err
}

// extract handles /extract: it stores the user's answer, if any, and describes what applies.
func (p *Plugin) extract(ctx context.Context, c command.Call) (string, error) {
	person := c.Person
	if answer, ok := c.Args["answer"]; ok {
		if err := values.Put(ctx, p.host.Items, person, consentKey, consent{On: answer == "on"}); err != nil {
			return "", err
		}
	}
	private, public, err := readable(ctx, p.host.Items, person)
	switch {
	case err != nil:
		return "", err
	case private:
		return "I remember important things from your messages on my own, in groups and in private. What you say in" +
			" private stays there. `/extract off` ends it.", nil
	case public:
		return "In groups I remember important things on my own; in private only what you ask me to. `/extract" +
			" on` lets me do so in private, `/extract off` ends it everywhere.", nil
	}
	return "I remember nothing from your messages on my own, only what you ask me to. `/extract on` changes that.", nil
}
