package knowledge

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"synthbot/core"
	"synthbot/core/action"
	"synthbot/core/passage"
	"synthbot/core/sorting"
	"synthbot/core/txt"
	"synthbot/core/values"
)

// Gap is a question that no document answers. It is stored under the path of the asker, with a mark under the
// place where it was asked. If the mark is gone, the place was forgotten, and the gap is dropped.
type Gap struct {
	ID       string      `json:"-"`
	Owner    core.Path   `json:"-"` // the asker, or the place if it is not a single known user
	Question string      `json:"question"`
	Place    core.Path   `json:"place"`
	Asker    core.Author `json:"asker,omitzero"`
	Time     time.Time   `json:"time"`              // when it was last asked
	Times    int         `json:"times,omitempty"`   // how often it was asked
	Message  string      `json:"message,omitempty"` // the id of the message that asked it last
	Answered time.Time   `json:"answered,omitzero"`
	In       core.Path   `json:"in,omitzero"`      // where the answer was given
	Answer   string      `json:"answer,omitempty"` // the id of its message
}

const (
	gapPrefix   = "gap "
	gapMark     = "asked "
	questionMax = 500                 // characters
	answeredFor = 30 * 24 * time.Hour // how long an answered question is kept, so that the answer can become an entry
)

type escalation struct{ *Plugin }

// noteGap stores a question that no document answers. Unless it was asked in private, it also posts the question
// once in the configured place, where others may answer it.
func (p escalation) noteGap(ctx context.Context, c *core.Call, query string) error {
	g := Gap{
		Question: txt.ClipLine(p.askedText(ctx, c, query), questionMax), Place: c.Path, Time: p.host.Clock(),
		Asker: core.Author{ID: c.Author.ID, Name: c.Author.Name},
	}
	owner, err := c.Person()
	if err != nil || owner.IsZero() {
		owner, g.Asker = c.Path, core.Author{} // several people asked, or the bot itself
	}
	sum := sha256.Sum256([]byte(owner.String() + "\n" + strings.ToLower(g.Question)))
	g.ID = hex.EncodeToString(sum[:8])
	known, _, err := values.Get[Gap](ctx, p.host.Items, owner, gapPrefix+g.ID)
	if len(c.Answers) > 0 {
		g.Message = c.Answers[len(c.Answers)-1]
	}
	g.Times = known.Times
	if g.Message == "" || g.Message != known.Message { // a turn may note it twice
		g.Times++
	}
	if err == nil && known.Answered.IsZero() {
		err = p.host.Items.PutAll(ctx,
			values.New(owner, gapPrefix+g.ID, g), values.New(c.Path, gapMark+g.ID, struct{}{}))
	}
	if err != nil || !p.escalates(c) {
		return err
	}
	link := ""
	if len(c.Answers) > 0 {
		link = p.host.Messenger.Link(c.Path, c.Answers[len(c.Answers)-1])
	}
	if err := p.send(ctx, p.question(ctx, &g, link)); err != nil {
		p.host.Log.Warn("question not passed on", "path", p.config.Escalate, "err", err)
	}
	return nil
}

func (p escalation) question(ctx context.Context, g *Gap, link string) core.Event {
	where := "`" + g.Place.String() + "`"
	if link != "" {
		where = "[" + txt.Literal(g.Place.String()) + "](" + link + ")"
	}
	to := p.config.Escalate
	e := core.Event{
		Kind: core.KindReminder, Data: p.host.Name + ":" + g.ID,
		Message: core.Message{Path: to, ID: p.host.Name + "-question-" + g.ID, Time: p.host.Clock()},
		Reply: fmt.Sprintf("❓ No document answers this question from %s:\n%s\nReply to this message, and I pass "+
			"the answer on.", where, txt.Literal(g.Question)),
	}
	// With an author, the message is erased with them. In a private chat, it would also be taken for theirs.
	private, err := p.isPrivate(ctx, to)
	if err == nil && !private && to.Interface() == g.Place.Interface() {
		e.Message.Author = g.Asker
	}
	return e
}

func (p *Plugin) isPrivate(ctx context.Context, place core.Path) (bool, error) {
	head, err := core.Read(ctx, p.host.Reader, func(v core.View) (core.Head, error) { return v.Head(place) })
	return head.Private, err
}

// send makes the bot send a message. An invalid event is logged and not returned as an error.
func (p escalation) send(ctx context.Context, e core.Event) error {
	err := p.host.Inbox.Receive(ctx, e)
	if errors.Is(err, core.ErrBadEvent) {
		p.host.Log.Error("message not sent", "path", e.Message.Path, "err", err)
		return nil
	}
	return err
}

// escalates reports whether a question is posted for others. Questions from private places are not.
func (p escalation) escalates(c *core.Call) bool {
	return !c.Private && !p.config.Escalate.IsZero() && !c.Path.Within(p.config.Escalate)
}

// askedText returns the messages that the turn answers, or the model's query if they are unknown.
func (p escalation) askedText(ctx context.Context, c *core.Call, query string) (text string) {
	err := p.host.Reader.View(ctx, func(v core.View) error {
		for _, id := range c.Answers {
			e, ok, err := v.Entry(c.Path, id)
			if err != nil {
				return err
			}
			if ok && e.Message.Text != "" {
				text += e.Message.Text + " "
			}
		}
		return nil
	})
	if err != nil || strings.TrimSpace(text) == "" {
		return query
	}
	return text
}

const escalateName = "knowledge_escalate"

type escalatePayload struct {
	_ struct{} `title:"Note what no document answers"`

	Question string `json:"question" title:"the question" doc:"The question, so that others understand it." min:"3" max:"300"`
}

func (p *Plugin) escalateAction() core.Action {
	brief := "Note a question that no document answers"
	if !p.config.Escalate.IsZero() {
		brief = "Ask the people who know a question that no document answers"
	}
	return action.Typed(core.Action{
		Name: escalateName, Similes: []string{"escalate", "knowledge_gap"}, Brief: brief,
		Examples: action.Guide("Lists the question for those who maintain the documents, and asks the people who know,"+
			" if there are any. Their answer is sent later, without you.",
			"When the passages and "+searchName+" do not answer a question about the community.",
			[]string{"Search first, and say in your message that you do not know.",
				"Not for small talk, general knowledge or opinions."},
			core.NewExample("Jay asks for the wardrobe's number, which no passage has",
				`{"question":"What is the number of the wardrobe?"}`)),
		Effects: core.EffectWrites, Permission: core.PermissionEveryone, Idempotent: true,
		RateLimit: core.RateLimit{Count: 10, Per: time.Hour},
	}, func(ctx context.Context, c core.Call, e escalatePayload) (core.Result, error) {
		return core.Result{}, escalation{p}.noteGap(ctx, &c, e.Question)
	})
}

// gaps lists the open and recently answered questions, the newest first. It drops those whose place was
// forgotten, or that were answered long ago.
func (p escalation) gaps(ctx context.Context) (gaps []Gap, err error) {
	items, err := p.host.Items.List(ctx, core.Path{})
	if err != nil {
		return nil, fmt.Errorf("gaps: %w", err)
	}
	marks := make(map[string]core.Path)
	for i := range items {
		if id, ok := strings.CutPrefix(items[i].Key, gapMark); ok {
			marks[id] = items[i].Path
		}
	}
	var gone []core.Item
	for i := range items {
		id, ok := strings.CutPrefix(items[i].Key, gapPrefix)
		g := Gap{ID: id, Owner: items[i].Path}
		if !ok || items[i].Decode(&g) != nil {
			continue
		}
		g.Place, g.Times = marks[id], max(g.Times, 1) // the place may have moved
		if g.Place.IsZero() || !g.Answered.IsZero() && p.host.Clock().Sub(g.Answered) > answeredFor {
			gone = append(gone, values.New(g.Owner, items[i].Key, nil))
			continue
		}
		gaps = append(gaps, g)
		delete(marks, id)
	}
	for id, place := range marks { // of dropped questions, and of forgotten askers
		gone = append(gone, values.New(place, gapMark+id, nil))
	}
	sorting.SortStable(gaps, func(a, b Gap) int { return b.Time.Compare(a.Time) })
	if len(gone) > 0 {
		err = p.host.Items.PutAll(ctx, gone...)
	}
	return gaps, err
}

func (p escalation) gap(ctx context.Context, id string) (g Gap, ok bool, err error) {
	all, err := p.gaps(ctx)
	i := slices.IndexFunc(all, func(g Gap) bool { return g.ID == id })
	if err != nil || i < 0 {
		return g, false, err
	}
	return all[i], true, nil
}

// closeGaps drops the questions that an entry answers, if the entry is visible where they were asked.
func (p escalation) closeGaps(ctx context.Context, source, id string) error {
	all, err := p.gaps(ctx)
	if err != nil {
		return err
	}
	for i := range all {
		g := &all[i]
		if !g.Answered.IsZero() || !slices.Contains(p.visible(g.Place), source) {
			continue
		}
		found, err := p.find(ctx, []string{source}, g.Question, passage.Both, searchMax)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(found, func(m passage.Match) bool { return m.Document == id && fits(&m) }) {
			if err := p.close(ctx, g); err != nil {
				return err
			}
		}
	}
	return nil
}

func (p escalation) close(ctx context.Context, g *Gap) error {
	return p.host.Items.PutAll(ctx, values.New(g.Owner, gapPrefix+g.ID, nil), values.New(g.Place, gapMark+g.ID, nil))
}

func (p escalation) open(ctx context.Context) ([]Gap, error) {
	all, err := p.gaps(ctx)
	return slices.DeleteFunc(all, func(g Gap) bool { return !g.Answered.IsZero() }), err
}

// Gaps prints the unanswered questions, the newest first.
func (p *Plugin) Gaps(ctx context.Context, out io.Writer) error {
	open, err := escalation{p}.open(ctx)
	if err != nil {
		return err
	}
	for _, g := range open {
		day := g.Time.In(p.host.Clock().Location()).Format(time.DateOnly)
		fmt.Fprintf(out, "%s  %s  %s\n", day, g.Place, txt.Line(g.Question))
	}
	if len(open) == 0 {
		fmt.Fprintln(out, "no question is open")
	}
	return nil
}

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
		Time: p.host.Clock(), owner: owner, asker: g.Owner}
	return learned(e.ID), p.keep(ctx, e, m.Path)
}
