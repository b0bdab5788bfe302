package diary

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"synthbot/core"
	"synthbot/core/action"
	"synthbot/core/txt"
	"synthbot/core/users"
)

type writePayload struct {
	_ struct{} `title:"Write into the diary"`

	Summary  string   `json:"summary" title:"what happened" doc:"What happened here and mattered to you, in one or two sentences. People of this place may read it." min:"3" max:"400"`
	Thought  string   `json:"private_thought,omitempty" title:"private thought" doc:"What you think about it yourself. Nobody will ever read it; it affects your mood." max:"400"`
	Feelings []string `json:"feelings,omitempty" title:"feelings" doc:"How it made you feel, a word each." max:"5"`
	Tags     []string `json:"tags,omitempty" title:"tags" doc:"What it was about, a word each." max:"5"`
	People   []string `json:"people,omitempty" title:"people" doc:"Who was in it, by name, tag or id." max:"10"`
}

var writeAction = core.Action{
	Name: "diary_write", Similes: []string{"write_diary", "diary_entry"},
	Brief: "Write into your own diary what happened here and how you felt about it",
	Examples: action.Guide("Adds an entry to the diary of this place. You see the latest ones in the next days.",
		"Now and then, when something happened that you would tell a friend about in the evening."+
			" You decide; nobody has to ask.",
		[]string{
			"Not every conversation is worth an entry; most days have one or none.",
			"People of this place can read summary: put what they may not know into private_thought, or leave it out.",
			"The diary is not for facts to look up later: it tells how it was.",
		},
		core.NewExample("Jay told the group that he got the job",
			`{"summary":"Jay got the job in Oslo. Everybody cheered, and Ann`+
				` promised to bake a cake.","private_thought":"I will miss our late talks when he moves.",`+
				`"feelings":["proud","wistful"],"tags":["job"],"people":["Jay","Ann"]}`),
		core.NewExample("A quiet evening",
			`{"summary":"We guessed films by their worst reviews until midnight.","feelings":["cheerful"]}`),
	).Note("Nothing comes back: send your message in the same answer."),
	Effects: core.EffectWrites, Permission: core.PermissionEveryone, Idempotent: true,
	RateLimit: core.RateLimit{Count: 6, Per: time.Hour},
}

func (p *Plugin) write(ctx context.Context, c core.Call, w writePayload) (core.Result, error) {
	e := entry{
		open: open{
			ID: entryID(&c), Time: p.host.Clock(),
			Summary: txt.ClipLine(w.Summary, summaryMax), Feelings: txt.Labels(w.Feelings, wordMax),
			Tags: txt.Labels(w.Tags, wordMax),
		},
		Thought: txt.ClipLine(w.Thought, thoughtMax),
	}
	if e.Summary == "" {
		return core.Result{}, core.Errorf(core.Invalid, "there is nothing in it to write down")
	}
	if c.Author.ID != "" {
		by, err := c.Path.Person(c.Author.ID)
		if err != nil {
			return core.Result{}, fmt.Errorf("author: %w", err)
		}
		e.By = by
	}
	if err := p.people(ctx, &c, &e, w.People); err != nil {
		return core.Result{}, err
	}
	day, isFirst := e.Time.Format(time.DateOnly), false
	err := p.edit(ctx, c.Path, day, func(d *page) error {
		d.Entries = slices.DeleteFunc(d.Entries, func(old entry) bool { return old.ID == e.ID })
		if len(d.Entries) >= p.config.Daily {
			return core.Errorf(core.Occupied, "the diary is full for today; write again tomorrow")
		}
		d.Entries = append(d.Entries, e)
		isFirst = len(d.Entries) == 1
		return nil
	})
	if err == nil && isFirst {
		err = p.expire(ctx, c.Path)
	}
	return core.Result{Undo: core.JSON(day)}, err
}

func entryID(c *core.Call) string {
	return fmt.Sprintf("%d-%d-%d", c.Key.Turn.Seq, c.Key.Round, c.Key.Step)
}

// undoWrite deletes the entry, and the day's digest.
func (p *Plugin) undoWrite(ctx context.Context, c core.Call, day string) error {
	return p.edit(ctx, c.Path, day, func(d *page) error {
		n := len(d.Entries)
		d.Entries = slices.DeleteFunc(d.Entries, func(e entry) bool { return e.ID == entryID(&c) })
		if len(d.Entries) < n {
			d.Digest = nil
		}
		return nil
	})
}

// people sets the users of an entry: those whom the payload or the entry's words name, and
// the authors. Users who were not seen here are left out.
func (p *Plugin) people(ctx context.Context, c *core.Call, e *entry, names []string) error {
	here, err := users.Recent(ctx, p.host.Reader, c.Path, c.Author)
	if err != nil {
		return err
	}
	several, err := p.several(ctx, c)
	if err != nil {
		return err
	}
	var named []core.Path
	for _, name := range names {
		if person, ok, err := here.Find(name); err == nil && ok {
			named = append(named, person)
		}
	}
	for _, a := range here.Users {
		s := someone{here.Path(a), txt.ClipLine(a.Name, nameMax), txt.ClipLine(a.Tag, nameMax)}
		if slices.Contains(named, s.Path) || s.Path == e.By || several[a.ID] || s.in(e) {
			e.People = append(e.People, s)
		}
	}
	return nil
}

const turnMax = 200 // entries that one turn may answer

// several returns the ids of the users who caused a turn together; none if it has a single author, or is the bot's own.
func (p *Plugin) several(ctx context.Context, c *core.Call) (map[string]bool, error) {
	if c.Author.ID != "" || c.Author.Rank == core.RankBot {
		return nil, nil
	}
	ids := make(map[string]bool)
	err := p.host.Reader.View(ctx, func(v core.View) error {
		entries, err := v.After(c.Key.Turn.Path, max(c.Key.Turn.Seq, 1)-1, turnMax, nil)
		for i := range entries {
			ids[entries[i].Message.Author.ID] = true
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("turn %s: %w", c.Key.Turn, err)
	}
	return ids, nil
}

func (s someone) in(e *entry) bool {
	texts := slices.Concat([]string{e.Summary, e.Thought}, e.Tags, e.Feelings)
	return slices.ContainsFunc(texts, func(text string) bool { return s.without(text) != text })
}

// somebody replaces the name of an erased user.
const somebody = "somebody"

func (s someone) without(text string) string {
	names := []string{s.Tag, s.Name}
	for part := range strings.FieldsSeq(s.Name) {
		if len([]rune(part)) > 2 {
			names = append(names, part)
		}
	}
	for _, name := range names {
		if name != "" {
			text = replaceWord(text, name, somebody)
		}
	}
	return text
}

// replaceWord replaces a name, regardless of case, where it is a word of its own.
func replaceWord(text, name, with string) string {
	in, want := []rune(text), []rune(name)
	same := func(a, b rune) bool { return unicode.ToLower(a) == unicode.ToLower(b) }
	joined := func(a, b rune) bool { return isWord(a) && isWord(b) }
	var b strings.Builder
	for before := ' '; len(in) > 0; {
		n, after := min(len(want), len(in)), ' '
		if n < len(in) {
			after = in[n]
		}
		if slices.EqualFunc(in[:n], want, same) && !joined(before, want[0]) && !joined(want[n-1], after) {
			b.WriteString(with)
			in, before = in[n:], 'x'
			continue
		}
		b.WriteRune(in[0])
		in, before = in[1:], in[0]
	}
	return b.String()
}

func isWord(r rune) bool {
	return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r)
}
