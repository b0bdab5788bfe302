package memory

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"synthbot/core"
	"synthbot/core/action"
	"synthbot/core/txt"
	"synthbot/core/users"
)

// Names of the actions that commands also carry out.
const saveName, forgetName = "memory_save", "memory_forget"

type savePayload struct {
	_ struct{} `title:"Remember something"`

	Text       string   `json:"text" title:"what to remember" doc:"One fact in one sentence, with names for pronouns." min:"3" max:"1000"`
	About      []string `json:"about,omitempty" title:"about" doc:"People, by name or tag; me is the author." max:"8"`
	Topic      string   `json:"topic,omitempty" title:"topic" doc:"Like home or job: the newer one replaces the older." max:"64"`
	Tags       []string `json:"tags,omitempty" title:"tags" max:"8"`
	Importance int      `json:"importance" title:"importance" default:"3" min:"0" max:"10"`
	Language   string   `json:"language,omitempty" title:"language" max:"35"`
}

func (p *Plugin) saveAction() core.Action {
	return action.Typed(core.Action{
		Name: saveName, Similes: []string{"remember", "save_memory", "memory_add"},
		Brief: "Remember a lasting fact for later conversations",
		Examples: action.Guide("Saves one fact. You see it again when it fits, in this place only.",
			"When somebody asks you to remember something, or says something of lasting value: a preference, a"+
				" relation, a date, a decision. Saying that you will remember is not enough: this action does it.",
			[]string{
				"One fact per call: three facts are three calls.",
				"\"He likes it\" means nothing next week: write who likes what.",
				"You see the last few messages anyway; small talk is not worth remembering.",
				"Never save passwords, keys or card numbers.",
				"Write in the language of the message; if you are sure, name it in language, as it or pt-BR.",
			},
			core.NewExample("Jay says that he moved",
				`{"text":"Jay lives in Oslo since May","about":["me"],"topic":"home"}`),
			core.NewExample("Ann asks to remember what the group decided",
				`{"text":"The group meets every first Friday at eight at Lea's","tags":["meeting"],"importance":6}`),
			core.NewExample("Jay tells of Ann, in Italian",
				`{"text":"Ann è allergica alle noci","about":["Ann"],"importance":8,"language":"it"}`),
		).Note("A fact replaces an older one that says the same, and an older one with the same topic about the same"+
			" people, if the author stated that or it is about them; otherwise both are kept.",
			"importance is 0 to 10: from 8 on, you always see the fact when that person speaks. tags are"+
				" search words that are not in the text.",
			"Nothing comes back: send your message in the same answer.").
			SeeAlso("memory_update changes an existing one"),
		Effects: core.EffectWrites, Permission: core.PermissionEveryone, Idempotent: true,
		RateLimit: core.RateLimit{Count: 30, Per: time.Hour}, Undo: p.undoSave,
	}, p.save)
}

func (p *Plugin) save(ctx context.Context, c core.Call, s savePayload) (core.Result, error) {
	by, err := c.Person()
	if err != nil {
		return core.Result{}, err
	}
	about, strangers, err := p.about(ctx, &c, s.About)
	if err != nil {
		return core.Result{}, err
	}
	f := core.Fact{
		Text: txt.ClipLine(s.Text, textMax), About: about, Topic: label(s.Topic),
		Tags:       txt.Labels(append(s.Tags, strangers...), nameMax),
		Importance: s.Importance, Language: languageOr(p.host.Language, s.Language), Origin: c.Path, By: by,
		Rank: c.Author.Rank,
	}
	if f.Text == "" {
		return core.Result{}, core.Errorf(core.Invalid, "there is nothing to remember in it")
	}
	f, err = p.host.Facts.SaveFact(ctx, f)
	if err != nil {
		return core.Result{}, forUsers("", err)
	}
	return saved(f), nil
}

// saved is the result of saving a fact. It can be undone unless the fact was known before.
func saved(f core.Fact) core.Result {
	if f.Known {
		return core.Result{}
	}
	return core.Result{Undo: core.JSON(f)}
}

// undoSave removes a saved fact, or puts back the text that it replaced. It refuses if the text was changed since.
func (p *Plugin) undoSave(ctx context.Context, c core.Call, done core.Result) error {
	if done.Undo == nil {
		return core.Errorf(core.Invalid, "it was known before")
	}
	var saved core.Fact
	if err := json.Unmarshal(done.Undo, &saved); err != nil {
		return fmt.Errorf("memory to undo: %w", err)
	}
	f, _, err := p.allowed(ctx, &c, saved.ID)
	switch {
	case errors.Is(err, core.ErrUnknown):
		return nil
	case err != nil:
		return err
	case f.Text != saved.Text:
		return core.Errorf(core.Invalid, "that memory was changed since")
	case len(f.Former) == 0:
		return p.host.Facts.DropFact(ctx, f.ID, c.Sees...)
	}
	f.Text, f.Time, f.By = f.Former[0].Text, f.Former[0].Time, f.Former[0].By
	f.Rank = c.Author.Rank
	_, err = p.host.Facts.SaveFact(ctx, f)
	return err
}

// languageOr returns tag if it is a well-formed language tag, else usual.
func languageOr(usual, tag string) string {
	if languageTag().MatchString(tag) {
		return tag
	}
	return usual
}

type updatePayload struct {
	_ struct{} `title:"Change a memory"`

	ID    string `json:"id" title:"memory" doc:"The id behind the memory." min:"1" max:"16"`
	Text  string `json:"text" title:"new text" doc:"All that is true now, in one sentence." min:"3" max:"1000"`
	Topic string `json:"topic,omitempty" title:"topic" max:"64"`
}

func (p *Plugin) updateAction() core.Action {
	return action.Typed(core.Action{
		Name: "memory_update", Similes: []string{"update_memory", "memory_change"},
		Brief: "Change a memory that is no longer true",
		Examples: action.Guide("Replaces the text of a memory; the old one is kept as its history.",
			"When somebody corrects what you remember about them or from them.",
			[]string{
				"Take the id from memories or from the result of memory_search: do not make one up.",
				"The new text replaces the old one; it is not added to it.",
				"A memory can be changed only where it was said.",
			},
			core.NewExample(
				"You remember that Jay lives in Rome (id 3f); he says that he moved",
				`{"id":"3f","text":"Jay lives in Oslo","topic":"home"}`),
		).Note("The people that it is about stay the same.").
			SeeAlso("memory_forget removes one", "memory_save saves a new one"),
		Effects: core.EffectRanked | core.EffectWrites, Permission: core.PermissionEveryone, Idempotent: true,
		RateLimit: core.RateLimit{Count: 30, Per: time.Hour},
	}, p.update)
}

// allowed returns the fact with an id, or an error if the caller may not change or remove it.
func (p *Plugin) allowed(ctx context.Context, c *core.Call, id string) (core.Fact, core.Path, error) {
	person, err := c.Person()
	if err != nil {
		return core.Fact{}, person, err
	}
	f, err := p.fact(ctx, id, c.Sees, person)
	if err == nil && !mayChange(&f, c.Path, person, c.Author.Rank) {
		err = errNotTheirs
	}
	return f, person, err
}

func (p *Plugin) update(ctx context.Context, c core.Call, u updatePayload) (core.Result, error) {
	f, person, err := p.allowed(ctx, &c, u.ID)
	if err != nil {
		return core.Result{}, err
	}
	if f.Origin != c.Path {
		return core.Result{}, core.Errorf(core.Forbidden,
			"that was said in another place, and can be changed only there; a new memory can be saved here")
	}
	f = core.Fact{
		ID: f.ID, Text: txt.ClipLine(u.Text, textMax), About: f.About, Topic: label(u.Topic),
		Language: f.Language, Origin: f.Origin, By: person,
	}
	if f.Text == "" {
		return core.Result{}, core.Errorf(core.Invalid, "there is nothing to remember in it")
	}
	_, err = p.host.Facts.SaveFact(ctx, f)
	return core.Result{}, forUsers(u.ID, err)
}

type forgetPayload struct {
	_ struct{} `title:"Forget a memory"`

	ID string `json:"id" title:"memory" doc:"The id behind the memory." min:"1" max:"16"`
}

func (p *Plugin) forgetAction() core.Action {
	return action.Typed(core.Action{
		Name: forgetName, Similes: []string{"forget", "forget_memory", "memory_delete"},
		Brief: "Forget a memory for good",
		Examples: action.Guide("Removes one memory and its history.",
			"When somebody wants you to forget something.",
			[]string{
				"Take the id from memories or from the result of memory_search: do not make one up.",
				"It cannot be undone.",
			},
			core.NewExample(
				"Jay asks you to forget that he had an accident, which you remember (id 3f)", `{"id":"3f"}`),
		).Note("People who want everything about themselves removed use the command /forgetme.").
			SeeAlso("memory_update changes its text"),
		Effects: core.EffectChanges | core.EffectRanked, Permission: core.PermissionEveryone, Idempotent: true,
		RateLimit: core.RateLimit{Count: 30, Per: time.Hour},
		Check: func(ctx context.Context, c core.Call) error {
			f, err := action.Payload[forgetPayload](c)
			if err == nil {
				_, _, err = p.allowed(ctx, &c, f.ID)
			}
			return err
		},
	}, p.forget)
}

func (p *Plugin) forget(ctx context.Context, c core.Call, f forgetPayload) (core.Result, error) {
	if _, _, err := p.allowed(ctx, &c, f.ID); err != nil {
		return core.Result{}, err
	}
	return core.Result{}, forUsers(f.ID, p.host.Facts.DropFact(ctx, f.ID, c.Sees...))
}

var languageTag = txt.Pattern(`^[a-zA-Z]{2,3}(-[a-zA-Z0-9]{2,8}){0,3}$`)

type searchPayload struct {
	_ struct{} `title:"Look up memories"`

	Query string   `json:"query,omitempty" title:"what to look for" doc:"A few words or tags." max:"300"`
	About []string `json:"about,omitempty" title:"about" doc:"As in memory_save." max:"8"`
}

const searchMax = 10 // facts that one search returns

func (p *Plugin) searchAction() core.Action {
	return action.Typed(core.Action{
		Name: "memory_search", Similes: []string{"recall", "search_memory"},
		Brief: "Look up what you remember, by words, tags or people",
		Examples: action.Guide("Finds memories, best first, with their ids; the result comes back to you.",
			"When you are asked for something that is neither in memories nor in the history, or need a memory's id.",
			[]string{
				"You see the result only afterwards: promise nothing before.",
				"Search for words that the memory would contain, not for those of the question.",
			},
			core.NewExample("Ann asks what Jay does for a living", `{"query":"job work","about":["Jay"]}`),
			core.NewExample("Jay asks what you know about him", `{"about":["me"]}`),
		).Note("Without a query it finds the most important and newest ones.",
			"It finds only what may be said in this place."),
		Effects: core.EffectReadsChat, Permission: core.PermissionEveryone, Idempotent: true,
	}, p.search)
}

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
	q := core.FactQuery{See: c.Sees, Text: text, About: about, N: searchMax}
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
		list[i] = p.tell(&found[i], &here)
	}
	return core.Output(map[string]any{"memories": list}), nil
}

const shownMax = 300 // characters of a fact that a search or list shows

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

func (p *Plugin) date(t time.Time) string {
	return t.In(p.host.Clock().Location()).Format(time.DateOnly)
}
