package knowledge

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"time"

	"synthbot/core"
	"synthbot/core/command"
	"synthbot/core/passage"
	"synthbot/core/txt"
	"synthbot/core/values"
	"synthbot/plugins/knowledge/cut"
)

// Entry is a text that a user taught. Its item has the path of the user whose message it repeats, so that it is
// erased with them, or no path. Who taught it is stored under the teacher's path (taughtPrefix), and the question
// under the path of the asker (questionPrefix).
type Entry struct {
	ID       string    `json:"-"`
	Text     string    `json:"text"`
	Question string    `json:"-"`              // that it answers; "": unknown
	Group    core.Path `json:"group,omitzero"` // where it is visible: the group in which it was taught; zero: everywhere
	Teacher  core.Path `json:"-"`              // zero: an admin on the page, or a user who was forgotten
	Time     time.Time `json:"time"`           // when it was last changed

	owner core.Path // the user whose message it repeats; zero: none
	asker core.Path // of the question that it answers
}

const (
	entryPrefix    = "entry "
	taughtPrefix   = "taught "
	questionPrefix = "question "
	entryMax       = 6000 // characters
	entryID        = 6    // letters and digits
)

func (p *Plugin) teachRank() core.Rank {
	least, _ := core.Permission(p.config.Teach).Rank()
	return least
}

// Commands implements command.Commander.
func (p *Plugin) Commands() []command.Command {
	least := p.teachRank()
	return []command.Command{
		{Spec: command.Spec{
			Name: "teach", Brief: "Add a text, or the message you reply to, to what I know", Rank: least,
			Args: []command.Arg{{Name: "text", Brief: "What to know", Rest: true}},
		}, Do: p.teach},
		{Spec: command.Spec{
			Name: "unteach", Brief: "Take something back that I was taught", Rank: least, Idempotent: true,
			Args: []command.Arg{{Name: "id", Brief: "Its id from /teach", Required: true}},
		}, Do: p.unteach},
	}
}

func (p *Plugin) teach(ctx context.Context, c command.Call) (string, error) {
	text, owner := strings.TrimSpace(c.Args["text"]), core.Path{}
	if text == "" && c.Target != "" {
		var err error
		if text, owner, err = p.messageText(ctx, c.Path, c.Target); err != nil {
			return "", err
		}
	}
	if text == "" {
		return "", core.Errorf(core.Invalid, "Tell me what to know: `/teach text`, or reply `/teach` to a message.")
	}
	text, err := entryText(text)
	if err != nil {
		return "", err
	}
	group := c.Path.Group()
	if c.Private {
		group = c.Path
		if c.Author.Rank >= core.RankAdmin {
			group = core.Path{}
		}
	}
	id := strings.ToLower(rand.Text()[:entryID])
	e := Entry{ID: id, Text: text, Group: group, Teacher: c.Person, Time: p.host.Clock(), owner: owner}
	return learned(id), p.keep(ctx, e, c.Path)
}

func learned(id string) string {
	return fmt.Sprintf("I know that now. `/unteach %s` takes it back.", id)
}

// messageText returns the text of a message, and the path of its author unless that is the bot. The text is ""
// if the message was deleted.
func (p *Plugin) messageText(
	ctx context.Context, place core.Path, id string,
) (text string, owner core.Path, err error) {
	e, ok, err := core.ReadEntry(ctx, p.host.Reader, place, id)
	if err != nil || !ok || e.Deleted {
		return "", owner, err
	}
	if !e.Self && e.Message.Author.ID != "" {
		owner, err = e.Message.Path.Person(e.Message.Author.ID)
	}
	return strings.TrimSpace(e.Message.AllText()), owner, err
}

// keep stores and indexes an entry that was taught in a place, and closes the questions that it answers.
func (p *Plugin) keep(ctx context.Context, e Entry, place core.Path) error {
	items := []core.Item{
		values.New(e.owner, entryPrefix+e.ID, e),
		values.New(e.Teacher, taughtPrefix+e.ID, map[string]any{"time": e.Time, "place": place}),
	}
	if e.Question != "" {
		items = append(items, values.New(e.asker, questionPrefix+e.ID, e.Question))
	}
	err := p.host.Items.PutAll(ctx, items...)
	if err == nil {
		err = p.index(ctx, e)
	}
	if err == nil {
		err = escalation{p}.closeGaps(ctx, taughtIn(e.Group), e.ID)
	}
	if err != nil {
		return fmt.Errorf("teach: %w", err)
	}
	return nil
}

// stamp changes when the entry must be indexed again: it was edited, or its question was erased.
func (e *Entry) stamp() string { return fmt.Sprint(readerVersion, e.Question != "", e.Time.Unix()) }

func (p *Plugin) index(ctx context.Context, e Entry) error {
	p.languages.Store(nil)
	return p.host.Passages.PutDocuments(ctx, taughtIn(e.Group), passage.Document{
		Name: e.ID, Stamp: e.stamp(), Language: p.languageOf(e.Text), Time: e.Time,
		Passages: cut.Passages(e.Text, e.Question, nil),
	})
}

// unteach removes an entry. Its teacher, moderators of its group, and admins may do that.
func (p *Plugin) unteach(ctx context.Context, c command.Call) (string, error) {
	id := strings.Trim(c.Args["id"], "`")
	items, err := p.host.Items.List(ctx, core.Path{})
	if err != nil {
		return "", err
	}
	i := slices.IndexFunc(items, func(i core.Item) bool { return i.Key == entryPrefix+id })
	var e Entry
	ok := i >= 0 && items[i].Decode(&e) == nil
	byCaller := func(i core.Item) bool { return i.Key == taughtPrefix+id && i.Path == c.Person }
	isAuthor := !c.Person.IsZero() && slices.ContainsFunc(items, byCaller) // entries of admins have no teacher
	isSeen := c.Path.Within(e.Group)
	moderates := c.Author.Rank == core.RankModerator && !e.Group.IsZero() && isSeen
	switch {
	case !ok || !isSeen && !isAuthor:
		return "", core.Errorf(core.Invalid, "I was not taught `%s` here.", txt.Literal(txt.ClipLine(id, 16)))
	case !isAuthor && !moderates && c.Author.Rank < core.RankAdmin:
		return "", core.Errorf(core.Forbidden,
			"Somebody else taught me that: only they, moderators and admins can take it back.")
	}
	var gone []core.Item
	for _, i := range items { // also the items about its teacher and its question
		if i.Key == entryPrefix+id || i.Key == taughtPrefix+id || i.Key == questionPrefix+id {
			gone = append(gone, values.New(i.Path, i.Key, nil))
		}
	}
	err = p.host.Items.PutAll(ctx, gone...)
	if err == nil {
		err = p.host.Passages.DropDocuments(ctx, taughtIn(e.Group), id)
	}
	if err != nil {
		return "", fmt.Errorf("unteach: %w", err)
	}
	return "I no longer know that. It said: " + txt.Literal(txt.ClipLine(e.Text, 500)), nil
}

func (p *Plugin) entries(ctx context.Context) (list []Entry, err error) {
	items, err := p.host.Items.List(ctx, core.Path{})
	if err != nil {
		return nil, fmt.Errorf("entries: %w", err)
	}
	teachers, questions, askers := make(map[string]core.Path), make(map[string]string), make(map[string]core.Path)
	for i := range items {
		if id, ok := strings.CutPrefix(items[i].Key, taughtPrefix); ok {
			teachers[id] = items[i].Path
		}
		question := ""
		if id, ok := strings.CutPrefix(items[i].Key, questionPrefix); ok && items[i].Decode(&question) == nil {
			questions[id], askers[id] = question, items[i].Path
		}
	}
	for i := range items {
		id, ok := strings.CutPrefix(items[i].Key, entryPrefix)
		e := Entry{ID: id, Question: questions[id], Teacher: teachers[id], owner: items[i].Path, asker: askers[id]}
		if ok && items[i].Decode(&e) == nil {
			list = append(list, e)
		}
	}
	return list, nil
}

// syncOthers updates the index to the stored entries, which may differ after an import. It removes the documents of
// sources that are no longer configured.
func (p *Plugin) syncOthers(ctx context.Context, sum *Summary) error {
	entries, err := p.entries(ctx)
	if err != nil {
		return err
	}
	type document struct{ source, name string }
	wanted := make(map[document]Entry)
	for _, e := range entries {
		wanted[document{taughtIn(e.Group), e.ID}] = e
	}
	sources, err := p.host.Passages.Sources(ctx)
	if err != nil {
		return err
	}
	for _, source := range sources {
		if slices.ContainsFunc(p.config.Sources, func(s Source) bool { return s.Name == source }) {
			continue
		}
		documents, err := p.host.Passages.Documents(ctx, source)
		if err != nil {
			return err
		}
		var gone []string
		for _, d := range documents {
			e, ok := wanted[document{source, d.Name}]
			if !ok {
				gone = append(gone, d.Name)
			} else if d.Stamp == e.stamp() {
				delete(wanted, document{source, d.Name})
			}
		}
		if err := p.host.Passages.DropDocuments(ctx, source, gone...); err != nil {
			return err
		}
		if source != taught && !strings.HasPrefix(source, taught+" ") {
			sum.Removed += len(gone)
		}
	}
	for _, e := range wanted {
		if err := p.index(ctx, e); err != nil {
			return err
		}
	}
	return nil
}
