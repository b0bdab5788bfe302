package knowledge

import (
	"context"
	"fmt"
	"strings"

	"synthbot/core"
	"synthbot/core/txt"
	"synthbot/core/values"
)

const (
	keepLabel  = "Add to knowledge" // the suggestion to keep an answer as an entry
	answerMax  = 2000               // characters of an answer that is passed on
	excerptMax = 100                // characters of the question that it quotes
)

// keepWish matches replies that ask the bot to keep an answer as an entry.
var keepWish = txt.Pattern(`(?i)^(?:please |bitte |per favore )?(?:add (?:it |this )?to (?:the |your )?knowledge|` +
	`remember (?:this|that|the) answer|merke? dir (?:diese|die) antwort|` +
	`ricorda(?:ti)? (?:questa|la) risposta)[.! ]*$`)

// Follow implements core.Follower. The first reply to an escalated question is passed on to the asker. Users who
// may teach can then keep it as an entry.
func (p *Plugin) Follow(ctx context.Context, m core.Message, said core.Entry) (f core.Followed, err error) {
	_, id, _ := strings.Cut(said.Data, ":")
	x := escalation{p}
	g, ok, err := x.gap(ctx, id)
	text := strings.TrimSpace(m.Text)
	switch {
	case err != nil:
		return f, err
	case !ok:
		f.Text = "That question is no longer open."
	case keepWish().MatchString(text) && g.Answer == "":
		f.Text = "Nobody has answered that question yet."
	case keepWish().MatchString(text):
		f.Text, err = x.keepAnswer(ctx, &m, &g)
	case g.Answer != "" && (g.Answer != m.ID || g.In != m.Path):
		f.Text = "That question was answered already, and only the first answer is passed on."
	case text == "":
		f.Text = "I can pass on only text."
	default:
		return x.passOn(ctx, &m, &g)
	}
	return f, err
}

// passOn passes an answer on to the asker. It is idempotent for the same message.
func (p escalation) passOn(ctx context.Context, m *core.Message, g *Gap) (f core.Followed, err error) {
	err = values.Edit(ctx, p.host.Items, g.Owner, gapPrefix+g.ID, func(known *Gap) (bool, error) {
		known.Answered, known.In, known.Answer = p.host.Clock(), m.Path, m.ID
		return known.Question != "", nil
	})
	if err != nil {
		return f, err
	}
	if err := p.sendAnswer(ctx, g, nameOf(&m.Author), m.Text); err != nil {
		return f, err
	}
	f.Text = fmt.Sprintf("I passed that on to %s.", nameOf(&g.Asker))
	if m.Author.Rank >= p.teachRank() {
		f.Suggestions = []string{keepLabel}
		f.Text += " Shall I remember this answer? Reply “" + keepLabel + "”."
	}
	return f, nil
}

// sendAnswer sends an answer to the asker, at most once for each time that the question was asked. by is the name
// of the user who answers.
func (p escalation) sendAnswer(ctx context.Context, g *Gap, by, answer string) error {
	text := txt.Literal(txt.Clip(clean(answer), answerMax))
	id := fmt.Sprint(p.host.Name, "-answer-", g.ID, "-", g.Time.Unix())
	return p.send(ctx, core.Event{Kind: core.KindReminder,
		Message: core.Message{Path: g.Place, ID: id, Author: g.Asker, Time: p.host.Clock()},
		Reply:   fmt.Sprintf("%s answers “%s”:\n%s", by, txt.Literal(txt.ClipLine(g.Question, excerptMax)), text),
	})
}

func nameOf(a *core.Author) string {
	if a.Name == "" {
		return "those who asked"
	}
	return txt.Literal(txt.ClipLine(a.Name, labelMax))
}

// keepAnswer keeps the answer to a question as an entry, which is visible in the group of the question.
func (p escalation) keepAnswer(ctx context.Context, m *core.Message, g *Gap) (string, error) {
	if m.Author.Rank < p.teachRank() {
		return "Only those who may teach me can do that.", nil
	}
	teacher, err := m.Path.Person(m.Author.ID)
	if err != nil || m.Author.ID == "" {
		return "I cannot tell who you are here.", nil
	}
	text, owner, err := p.messageText(ctx, g.In, g.Answer)
	if err != nil || text == "" {
		return "That answer was deleted.", err
	}
	e := Entry{ID: g.ID[:entryID], Text: clean(text), Question: g.Question, Group: g.Place.Group(), Teacher: teacher,
		Time: p.host.Clock()}
	return learned(e.ID), p.keep(ctx, lesson{Entry: e, owner: owner, place: m.Path, asker: g.Owner})
}
