package memory

import (
	"context"
	"fmt"
	"strings"
	"time"

	"synthbot/core"
	"synthbot/core/action"
	"synthbot/core/txt"
	"synthbot/core/users"
)

// languageTag is what a BCP 47 tag looks like.
var languageTag = txt.Pattern(`^[a-zA-Z]{2,3}(-[a-zA-Z0-9]{2,8}){0,3}$`)

const dateLayout = "2006-01-02"

type searchPayload struct {
	_ struct{} `title:"Look up memories"`

	Query string   `json:"query,omitempty" title:"what to look for" doc:"A few words or tags." max:"300"`
	About []string `json:"about,omitempty" title:"about" doc:"As in memory_save." max:"8"`
}

// searched is how many memories one search tells at most.
const searched = 10

func (p *Plugin) searchAction() core.Action {
	return action.Typed(core.Action{
		Name: "memory_search", Similes: []string{"recall", "search_memory"},
		Brief: "Look up what you remember, by words, tags or people",
		Examples: core.Examples{
			Description: "Finds memories, best first, with their ids; the result comes back to you.",
			Instructions: core.Instructions{
				WhenToUse: "When you are asked for something that is neither in memories nor in the history, or" +
					" need a memory's id.",
				CommonPitfalls: []string{
					"What it finds comes back to you afterwards: promise nothing before.",
					"Look for the words that the memory would hold, not for those of the question.",
				},
				Notes: []string{"Without a query it finds the most important and newest ones.",
					"It finds only what may be said in this place."},
			},
			Examples: []core.Example{
				core.NewExample("Ann asks what Jay does for a living", `{"query":"job work","about":["Jay"]}`),
				core.NewExample("Jay asks what you know about him", `{"about":["me"]}`),
			},
		},
		Effects: core.EffectReadsChat, Permission: core.PermissionEveryone, Idempotent: true,
	}, p.search)
}

// shownFact is a memory as a model sees it.
type shownFact struct {
	ID     string   `json:"id"`
	Text   string   `json:"text"`
	About  []string `json:"about,omitempty"`
	By     string   `json:"by,omitempty"`
	Said   string   `json:"said"`
	Tags   []string `json:"tags,omitempty"`
	Before string   `json:"before,omitempty"`
}

func (p *Plugin) search(ctx context.Context, c core.Call, s searchPayload) (core.Result, error) {
	about, strangers, err := p.about(ctx, &c, s.About)
	if err != nil {
		return core.Result{}, err
	}
	text := strings.TrimSpace(strings.Join(append(strangers, s.Query), " "))
	q := core.FactQuery{See: c.Sees, Text: text, About: about, N: searched}
	found, err := p.host.Facts.Recall(ctx, q)
	if err != nil {
		return core.Result{}, fmt.Errorf("recall: %w", err)
	}
	here, err := users.Recent(ctx, p.host.Reader, c.Path, c.Author)
	if err != nil {
		return core.Result{}, err
	}
	list := make([]shownFact, len(found))
	for i := range found {
		list[i] = p.tell(&found[i].Fact, &here)
	}
	return core.Output(map[string]any{"memories": list}), nil
}

const shownMax = 300 // characters of a memory that a search tells

func (p *Plugin) tell(f *core.Fact, here *users.List) shownFact {
	t := shownFact{ID: f.ID, Text: txt.ClipLine(f.Text, shownMax), By: here.Author(f.By).Name, Said: p.date(f.Time),
		Tags: f.Tags}
	for _, person := range f.About {
		name := here.Author(person).Name
		if name != "" {
			t.About = append(t.About, name)
		}
	}
	if len(f.Former) > 0 {
		t.Before = txt.ClipLine(f.Former[0].Text, shownMax)
	}
	return t
}

// date is a day in the bot's time zone.
func (p *Plugin) date(t time.Time) string {
	return t.In(p.host.Clock().Location()).Format(dateLayout)
}
