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
)

// entry is what somebody taught. Its item has the path of the user whose message it repeats, so that
// their words are erased with them, or no path. Who taught it lies under their own path (taughtPrefix).
type entry struct {
	Text  string    `json:"text"`
	Group core.Path `json:"group,omitzero"` // where it is seen; zero: everywhere
	Time  time.Time `json:"time"`
}

const (
	entryPrefix  = "entry "
	taughtPrefix = "taught "
	entryMax     = 6000 // characters
)

// Commands implements command.Commander.
func (p *Plugin) Commands() []command.Command {
	rank := map[string]core.Rank{"everyone": core.RankMember, "admins": core.RankAdmin}
	least, ok := rank[p.config.Teach]
	if !ok {
		least = core.RankModerator
	}
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

// teach adds an entry.
func (p *Plugin) teach(ctx context.Context, c command.Call) (string, error) {
	text, owner := strings.TrimSpace(c.Args["text"]), core.Path{}
	if text == "" && c.Target != "" {
		err := p.host.Reader.View(ctx, func(v core.View) error {
			e, ok, err := v.Entry(c.Path, c.Target)
			if err != nil || !ok || e.Deleted {
				return err
			}
			text = strings.TrimSpace(e.Message.AllText())
			if !e.Self && e.Message.Author.ID != "" {
				owner, err = e.Message.Path.Person(e.Message.Author.ID)
			}
			return err
		})
		if err != nil {
			return "", fmt.Errorf("message %s of %s: %w", c.Target, c.Path, err)
		}
	}
	switch n := len([]rune(text)); {
	case n == 0:
		return "", core.Errorf(core.Invalid, "Tell me what to know: `/teach text`, or reply `/teach` to a message.")
	case n > entryMax:
		return "", core.Errorf(core.Invalid, "That is too long; %d characters are the most.", entryMax)
	}
	id := strings.ToLower(rand.Text()[:6])
	e := entry{Text: clean(text), Group: groupOf(&c), Time: p.host.Clock()}
	err := p.host.Items.PutAll(ctx,
		core.NewItem(owner, entryPrefix+id, e),
		core.NewItem(c.Person, taughtPrefix+id, map[string]any{"time": e.Time, "place": c.Path}))
	if err == nil {
		err = p.index(ctx, id, e)
	}
	if err != nil {
		return "", fmt.Errorf("teach: %w", err)
	}
	return fmt.Sprintf("I know that now. `/unteach %s` takes it back.", id), nil
}

// groupOf is where an entry is seen: in the group in which it is taught, and if an admin
// teaches it in private, everywhere.
func groupOf(c *command.Call) core.Path {
	if c.Private && c.Author.Rank >= core.RankAdmin {
		return core.Path{}
	}
	group := c.Path
	for !c.Private && len(group.Elements()) > 2 {
		group = group.Parent()
	}
	return group
}

func (p *Plugin) index(ctx context.Context, id string, e entry) error {
	p.languages.Store(nil)
	return p.host.Passages.PutDocuments(ctx, taughtIn(e.Group), passage.Document{
		Name: id, Stamp: readerVersion, Language: p.language.LanguageOf(e.Text), Time: e.Time,
		Passages: cut(e.Text, ""),
	})
}

// unteach takes an entry back. Authors, moderators in its group, and admins may do that.
func (p *Plugin) unteach(ctx context.Context, c command.Call) (string, error) {
	id := strings.Trim(c.Args["id"], "`")
	items, err := p.host.Items.List(ctx, core.Path{})
	if err != nil {
		return "", err
	}
	i := slices.IndexFunc(items, func(i core.Item) bool { return i.Key == entryPrefix+id })
	var e entry
	ok := i >= 0 && items[i].Decode(&e) == nil
	_, isAuthor, err := p.host.Items.Get(ctx, c.Person, taughtPrefix+id)
	if err != nil {
		return "", err
	}
	isSeen := c.Path.Within(e.Group)
	moderates := c.Author.Rank == core.RankModerator && !e.Group.IsZero() && isSeen
	switch {
	case !ok || !isSeen && !isAuthor:
		return "", core.Errorf(core.Invalid, "I was not taught `%s` here.", txt.Literal(txt.ClipLine(id, 16)))
	case !isAuthor && !moderates && c.Author.Rank < core.RankAdmin:
		return "", core.Errorf(core.Forbidden, "Somebody else taught me that: only they, moderators and admins may.")
	}
	err = p.host.Items.PutAll(ctx,
		core.NewItem(items[i].Path, entryPrefix+id, nil), core.NewItem(c.Person, taughtPrefix+id, nil))
	if err == nil {
		err = p.host.Passages.DropDocuments(ctx, taughtIn(e.Group), id)
	}
	if err != nil {
		return "", fmt.Errorf("unteach: %w", err)
	}
	return "I do not know that any more. It said: " + txt.Literal(txt.ClipLine(e.Text, 500)), nil
}

// syncTaught makes the index hold what the entries say, as after an import.
func (p *Plugin) syncTaught(ctx context.Context) error {
	items, err := p.host.Items.List(ctx, core.Path{})
	if err != nil {
		return fmt.Errorf("entries: %w", err)
	}
	wanted := make(map[string]map[string]entry) // by source and id
	for i := range items {
		id, ok := strings.CutPrefix(items[i].Key, entryPrefix)
		var e entry
		if !ok || items[i].Decode(&e) != nil {
			continue
		}
		source := taughtIn(e.Group)
		if wanted[source] == nil {
			wanted[source] = make(map[string]entry)
		}
		wanted[source][id] = e
	}
	sources, err := p.everything(ctx)
	if err != nil {
		return err
	}
	for source := range wanted {
		sources = append(sources, source)
	}
	slices.Sort(sources)
	for _, source := range slices.Compact(sources) {
		if source == taught || strings.HasPrefix(source, taught+" ") {
			if err := p.syncEntries(ctx, source, wanted[source]); err != nil {
				return err
			}
		}
	}
	return nil
}

func (p *Plugin) syncEntries(ctx context.Context, source string, wanted map[string]entry) error {
	documents, err := p.host.Passages.Documents(ctx, source)
	if err != nil {
		return err
	}
	var gone []string
	for _, d := range documents {
		_, ok := wanted[d.Name]
		if !ok {
			gone = append(gone, d.Name)
		} else if d.Stamp == readerVersion {
			delete(wanted, d.Name)
		}
	}
	for id, e := range wanted {
		if err := p.index(ctx, id, e); err != nil {
			return err
		}
	}
	return p.host.Passages.DropDocuments(ctx, source, gone...)
}
