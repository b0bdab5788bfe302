// Package diary lets the bot keep a diary: what happened in a place, how it felt about it, and
// private thoughts. Facts belong to package memory, bios to package people.
//
// # Storage
//
// A day is an item under its place's path, with the day's entries and, later, their digest. The origin of an entry is
// its place. It is shown there and below, and in places that share with it, but nowhere else.
//
// # Private thoughts
//
// They never leave the diary. A view of a day, from which all prompts, commands and exports are made, has no field for
// them. Their only use is the digest: a model that reads them may answer only with a mood, one word of a fixed list.
// The text of the digest is requested separately, without them.
//
// # Digests
//
// The action diary_digest, for the bot's own beats only, puts a day into a few sentences. Without a configured engine,
// the shortened summaries are the digest. Prompts show the digest of a day instead of its entries.
//
// # Users
//
// An entry lists the users that it names or that caused it, by path, so that they can see the
// entries about them and erase them: entries about them alone are deleted, their names are
// removed from the others, and digests of such days are deleted.
package diary

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"

	"synthbot/core"
	"synthbot/core/action"
	"synthbot/core/command"
	"synthbot/core/sorting"
	"synthbot/core/txt"
)

// Plugin keeps the bot's diary. Safe for concurrent use.
type Plugin struct {
	host   core.Host
	config Config
}

func New(h core.Host, c Config) (*Plugin, error) { return &Plugin{host: h, config: c}, nil }

func (p *Plugin) Name() string { return "diary" }

func (p *Plugin) Actions() []core.Action {
	write := action.Typed(writeAction, p.write)
	write.Undo = action.Undo(p.undoWrite)
	return []core.Action{write, action.Typed(digestAction, p.digest)}
}

const (
	summaryMax = 400 // characters
	thoughtMax = 400
	wordMax    = 32 // characters of a feeling or a tag
	nameMax    = 64
)

// Config is the plugin's table.
type Config struct {
	Daily int `toml:"daily" default:"12" min:"1" max:"100" doc:"How many entries per day the diary of one place may have."`
	Days  int `toml:"days" default:"3" min:"0" max:"14" doc:"How many past days of the diary a prompt contains; 0: none."`
	Bytes int `toml:"bytes" default:"800" min:"100" max:"2000" doc:"How much of the diary a prompt contains at most, in bytes."`
	Keep  int `toml:"keep" default:"365" min:"7" max:"36500" doc:"How many days the diary is kept."`
}

// Commands implements command.Commander.
func (p *Plugin) Commands() []command.Command {
	return []command.Command{{Spec: command.Spec{
		Name: "diary", Idempotent: true, Brief: "Read what I wrote about a day here",
		Args: []command.Arg{{Name: "day",
			Brief: "YYYY-MM-DD, today or yesterday; leave it out for the latest"}},
	}, Do: p.read}}
}

func (p *Plugin) read(ctx context.Context, c command.Call) (string, error) {
	day, err := p.day(ctx, c.Path, strings.ToLower(c.Args["day"]))
	if err != nil || day == "" {
		return "I have not written anything here yet.", err
	}
	v, err := p.view(ctx, c.Path, day)
	if err != nil {
		return "", err
	}
	if v.Digest == nil && len(v.Entries) == 0 {
		return "I wrote nothing that day.", nil
	}
	var b strings.Builder
	fmt.Fprintf(&b, "**%s**\n", day)
	d := v.Digest
	if d != nil {
		fmt.Fprintf(&b, "%s\n", d.Text)
	}
	for _, e := range v.Entries {
		fmt.Fprintf(&b, "- %s %s", e.Time.In(p.host.Clock().Location()).Format("15:04"), e.Summary)
		if len(e.Feelings) > 0 {
			fmt.Fprintf(&b, " *(%s)*", strings.Join(e.Feelings, ", "))
		}
		b.WriteByte('\n')
	}
	return strings.TrimSpace(b.String()), nil
}

// day parses a day; "" is the latest with an entry. It returns "" if there is none.
func (p *Plugin) day(ctx context.Context, place core.Path, text string) (string, error) {
	switch text {
	case "today":
		return p.today(), nil
	case "yesterday":
		return p.host.Clock().AddDate(0, 0, -1).Format(time.DateOnly), nil
	case "":
		days, err := p.days(ctx, place)
		if err != nil || len(days) == 0 {
			return "", err
		}
		return days[len(days)-1], nil
	}
	if _, err := time.Parse(time.DateOnly, text); err != nil {
		return "", core.Errorf(core.Invalid, "Write the day as YYYY-MM-DD, today or yesterday.")
	}
	return text, nil
}

const (
	placesMax = 16  // places whose diary is read
	noteMax   = 200 // characters of one entry
)

// shownNote is a day or an entry as a prompt shows it.
type shownNote struct {
	At       string   `json:"at"`
	Note     string   `json:"note"`
	Feelings []string `json:"feelings,omitempty"`
	Mood     string   `json:"mood,omitempty"`

	time time.Time
}

// Inject implements core.Injector: it returns the notes of the last days, the newest first, as many as fit.
func (p *Plugin) Inject(ctx context.Context, s core.Scene) (json.RawMessage, error) {
	if p.config.Days == 0 {
		return nil, nil
	}
	var notes []shownNote
	places := origins(s.Path, s.Sees)
	for back, full := 0, false; back < p.config.Days && !full; back++ {
		day := p.host.Clock().AddDate(0, 0, -back).Format(time.DateOnly)
		for _, place := range places {
			v, err := p.view(ctx, place, day)
			if err != nil {
				return nil, err
			}
			notes = append(notes, p.notes(&v)...)
		}
		size := 0 // about
		for i := range notes {
			size += len(notes[i].Note)
		}
		full = size > p.config.Bytes
	}
	sorting.SortStable(notes, func(a, b shownNote) int { return b.time.Compare(a.time) })
	n := sort.Search(len(notes), func(i int) bool { return len(core.JSON(notes[:i+1])) > p.config.Bytes })
	if n == 0 {
		return nil, nil
	}
	return core.JSON(notes[:n]), nil
}

// origins returns the places whose entries may be shown: place, those that it sees, and those above them.
func origins(place core.Path, sees []core.Path) []core.Path {
	all := []core.Path{place}
	for _, see := range append([]core.Path{place}, sees...) {
		for ; !see.IsZero() && !see.Parent().IsZero() && len(all) < placesMax; see = see.Parent() {
			if !slices.Contains(all, see) {
				all = append(all, see)
			}
		}
	}
	return all
}

// notes returns the digest of a day and the entries that are not in it.
func (p *Plugin) notes(v *view) (notes []shownNote) {
	rest := v.Entries
	d := v.Digest
	if d != nil {
		text := txt.ClipLine(d.Text, 2*noteMax)
		notes = append(notes, shownNote{At: v.day, Note: text, Mood: d.Mood, time: d.Time})
		rest = rest[min(d.N, len(rest)):]
	}
	for _, e := range rest {
		at := e.Time.In(p.host.Clock().Location()).Format("2006-01-02 15:04")
		notes = append(notes,
			shownNote{At: at, Note: txt.ClipLine(e.Summary, noteMax), Feelings: e.Feelings, time: e.Time})
	}
	return notes
}
