// Package people keeps short bios of the users whom the bot talks with: their names, what
// they like, and how the bot gets on with them. Other facts belong to package memory.
//
// # Storage
//
// A bio is stored under its user's path, so it is shown to them and erased with them. It
// consists of records, one for each source:
//
//	own                 what the user said about themselves
//	bot                 what the bot thinks of them
//	telegram/@user/1    what that user said about them (hearsay), or that the two are linked
//
// The origin of a value is the place where it was said. Values are shown there and below, and in places that share with
// it, but nowhere else. What somebody says in private about others does not enter their bios.
//
// # Who changes what
//
// Users change their own record by speaking about themselves. What they say about others is hearsay with their name: it
// never replaces what those said themselves, and comes after it. Relationship is the bot's own view of the author.
// Users may remove what is said about them; moderators may clear what was said in their place.
//
// # Links
//
// A user with accounts on several platforms links them with a code: the bot gives it to one account in private, and the
// other sends it in private, once, within ten minutes. Then the values of both count as one user's, each still visible
// only where its origin allows. Codes are kept as hashes, in memory only. A link is in force while both sides have it.
package people

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"synthbot/core"
	"synthbot/core/action"
	"synthbot/core/txt"
	"synthbot/core/users"
	"synthbot/core/values"
)

// Plugin keeps bios. Safe for concurrent use.
type Plugin struct {
	host   core.Host
	config Config
	codes  *codes
}

// New makes the plugin.
func New(h core.Host, c Config) (*Plugin, error) {
	return &Plugin{host: h, config: c, codes: newCodes(h.Clock)}, nil
}

func (p *Plugin) Name() string { return "people" }

func (p *Plugin) Actions() []core.Action {
	return []core.Action{action.Typed(updateAction, p.update), action.Typed(requestAction, p.request)}
}

// subject is a user whom a call is about.
type subject struct {
	core.Author
	path core.Path
}

// subject finds the user with a name; "" is the author.
func (p *Plugin) subject(ctx context.Context, c *core.Call, name string) (subject, error) {
	name = strings.TrimSpace(name)
	if name == "" {
		name = c.Author.ID
	}
	if name == "" {
		return subject{}, core.Errorf(core.Invalid, "Say whom it is about.")
	}
	here, err := users.Recent(ctx, p.host.Reader, c.Path, c.Author)
	if err != nil {
		return subject{}, err
	}
	path, ok, err := here.Find(name)
	if err == nil && !ok {
		err = core.Errorf(core.Invalid, "Nobody who talks here is called %s.", txt.ClipLine(name, valueMax))
	}
	return subject{here.Author(path), path}, err
}

// dayKey is the key of the count of a day's updates, under the path of the user who caused them.
const dayKey = "day"

type count struct {
	Day string `json:"day"`
	N   int    `json:"n"`
}

// spend counts an update. It returns an error if the user has caused too many today.
func (p *Plugin) spend(ctx context.Context, person core.Path) error {
	now := p.host.Clock()
	today := now.Format(time.DateOnly)
	return values.Edit(ctx, p.host.Items, person, dayKey, func(n *count) (keep bool, err error) {
		if n.Day != today {
			*n = count{Day: today}
		}
		if n.N >= p.config.Daily {
			year, month, day := now.Date()
			return false, &core.Error{
				Kind: core.Occupied, Text: "there were enough bio updates today; try again tomorrow",
				After: time.Date(year, month, day+1, 0, 0, 0, 0, now.Location()).Sub(now),
			}
		}
		n.N++
		return true, nil
	})
}

// Config is the plugin's table.
type Config struct {
	Fields int `toml:"fields" default:"5" min:"1" max:"7" doc:"How many fields of a bio one update may change."`
	Daily  int `toml:"daily" default:"20" min:"1" max:"1000" doc:"How many bio updates per day one user may cause."`
	Bytes  int `toml:"bytes" default:"300" min:"60" max:"400" doc:"How much of a user's bio a prompt contains at most, in bytes."`
}

// hearsayKept is a user's record about another user, as they see it.
type hearsayKept struct {
	About  core.Path         `json:"about"`
	Linked bool              `json:"linked,omitempty"`
	Fields map[field][]value `json:"fields,omitempty"`
}

// saidBy returns a user's records about others.
func (p *Plugin) saidBy(ctx context.Context, person core.Path) ([]core.Item, error) {
	items, err := p.host.Items.List(ctx, core.Path{})
	if err != nil {
		return nil, fmt.Errorf("bios: %w", err)
	}
	var theirs []core.Item
	for _, item := range items {
		if item.Key == person.String() && item.Path != person {
			theirs = append(theirs, item)
		}
	}
	return theirs, nil
}

// Kept implements core.DataKeeper: it returns the user's records about others, which are under their paths.
func (p *Plugin) Kept(ctx context.Context, person core.Path) ([]json.RawMessage, error) {
	items, err := p.saidBy(ctx, person)
	if err != nil {
		return nil, err
	}
	var kept []json.RawMessage
	for i := range items {
		var r record
		if err := items[i].Decode(&r); err != nil {
			return nil, err
		}
		kept = append(kept, core.JSON(hearsayKept{items[i].Path, r.Linked, r.Fields}))
	}
	return kept, nil
}

// Erase implements core.DataKeeper.
func (p *Plugin) Erase(ctx context.Context, person core.Path) error {
	p.codes.forget(person)
	items, err := p.saidBy(ctx, person)
	if err != nil {
		return err
	}
	for _, item := range items {
		if err := values.Put(ctx, p.host.Items, item.Path, item.Key, nil); err != nil {
			return err
		}
	}
	return nil
}

type updatePayload struct {
	_ struct{} `title:"Change a bio"`

	Who          string   `json:"who,omitempty" title:"person" doc:"Whom it is about, by name, tag or id; left out: the author." max:"256"`
	Names        []string `json:"names,omitempty" title:"names" doc:"What the person wants to be called." max:"8"`
	Pronouns     string   `json:"pronouns,omitempty" title:"pronouns" doc:"As the person says them." max:"40"`
	Birthday     string   `json:"birthday,omitempty" title:"birthday" doc:"MM-DD, or YYYY-MM-DD." max:"10"`
	Likes        []string `json:"likes,omitempty" title:"likes" doc:"A few words each." max:"8"`
	Dislikes     []string `json:"dislikes,omitempty" title:"dislikes" doc:"A few words each." max:"8"`
	Facts        []string `json:"facts,omitempty" title:"facts" doc:"What else is worth knowing: work, home, family; a short line each." max:"8"`
	Relationship string   `json:"relationship,omitempty" title:"relationship" doc:"How you get on with the author, as you see it." max:"120"`
	Remove       []string `json:"remove,omitempty" title:"remove" doc:"What is no longer true, as it is written in the bio." max:"8"`
}

var updateAction = core.Action{
	Name: "bio_update", Similes: []string{"update_bio", "bio_save"},
	Brief: "Note in a person's bio what they are called, like, do, and how you get on",
	Examples: action.Guide("Adds lasting facts to a person's bio, which you see whenever they talk.",
		"When people say something about themselves that will be true for years: a name, a like, a job, a birthday.",
		[]string{
			"Moods and plans of the day do not belong in a bio.",
			"If somebody talks about another person, name that person in who; it counts less than their own words.",
			"Do not repeat what is in the bio already.",
			"relationship is your own view, and only of the author.",
		},
		core.NewExample("Jay says that he is called Jojo and hates olives", `{"names":["Jojo"],"dislikes":["olives"]}`),
		core.NewExample("Ann says that Jay plays the piano", `{"who":"Jay","facts":["plays the piano"]}`),
		core.NewExample("Jay likes olives now; you are old friends by now",
			`{"likes":["olives"],"remove":["olives"],"relationship":"old friends who tease each other"}`),
	).Note("Lists are extended; pronouns, birthday and relationship are replaced.",
		"Nothing comes back: send your message in the same answer.").
		SeeAlso("bio_request returns the whole bio"),
	Effects: core.EffectWrites, Permission: core.PermissionEveryone, Idempotent: true,
	RateLimit: core.RateLimit{Count: 20, Per: time.Hour},
}

func (p *Plugin) update(ctx context.Context, c core.Call, u updatePayload) (core.Result, error) {
	by, err := c.Person()
	if err != nil {
		return core.Result{}, err
	}
	who, err := p.subject(ctx, &c, u.Who)
	if err != nil {
		return core.Result{}, err
	}
	fields, err := p.fields(&u)
	if err != nil {
		return core.Result{}, err
	}
	key := by.String() // of the record that the caller writes
	switch {
	case by.IsZero():
		key = botKey
	case by == who.path:
		key = ownKey
	case fields[relationship] != nil:
		err = core.Errorf(core.Forbidden, "relationship is about the author, and nobody else")
	case c.Private:
		err = core.Errorf(core.Forbidden, "what is said in private about others does not enter their bios")
	}
	if err != nil {
		return core.Result{}, err
	}
	records, err := p.records(ctx, who.path)
	if err != nil {
		return core.Result{}, err
	}
	if len(records) >= sourcesMax && !slices.ContainsFunc(records, func(r record) bool { return r.key == key }) {
		return core.Result{}, core.Errorf(core.Forbidden, "too many people have said something about them already")
	}
	if err := p.spend(ctx, by); err != nil {
		return core.Result{}, err
	}
	return core.Result{}, p.write(ctx, &c, who.path, records, key, fields, u.Remove)
}

func (p *Plugin) fields(u *updatePayload) (map[field][]string, error) {
	fields := make(map[field][]string)
	for f, list := range map[field][]string{
		nicknames: u.Names, pronouns: {u.Pronouns}, birthday: {u.Birthday}, likes: u.Likes, dislikes: u.Dislikes,
		facts: u.Facts, relationship: {u.Relationship},
	} {
		for _, text := range list {
			text = txt.ClipLine(text, valueMax)
			if text != "" && len(fields[f]) < perPayload {
				fields[f] = append(fields[f], text)
			}
		}
	}
	switch {
	case len(fields) > p.config.Fields:
		return nil, core.Errorf(core.Invalid, "%d fields at once; at most %d", len(fields), p.config.Fields)
	case len(fields) == 0 && len(u.Remove) == 0:
		return nil, core.Errorf(core.Invalid, "there is nothing in it to note")
	case fields[birthday] != nil && !isBirthday(fields[birthday][0]):
		return nil, core.Errorf(core.Invalid, "birthday must be MM-DD or YYYY-MM-DD")
	}
	return fields, nil
}

func isBirthday(text string) bool {
	if len(text) == len("01-02") {
		text = "2000-" + text // a leap year
	}
	t, err := time.Parse(time.DateOnly, text)
	return err == nil && t.Year() >= 1900 && t.Year() <= 2100
}

// write changes a user's records. Users who speak about themselves also remove what others said.
// The relationship is in the bot's record.
func (p *Plugin) write(ctx context.Context, c *core.Call, person core.Path, records []record, key string,
	fields map[field][]string, remove []string) error {
	gone := func(v *value) bool {
		return slices.ContainsFunc(remove,
			func(text string) bool { return strings.EqualFold(txt.ClipLine(text, valueMax), v.Text) })
	}
	keys := []string{key}
	if key == ownKey && len(remove) > 0 {
		for _, r := range records {
			keys = append(keys, r.key)
		}
	}
	if key == ownKey && fields[relationship] != nil {
		keys = append(keys, botKey)
	}
	slices.Sort(keys)
	change := func(r *record) {
		r.dropAll(gone)
		for f, texts := range fields {
			if f == relationship && r.key != botKey || f != relationship && r.key != key {
				continue
			}
			for _, text := range texts {
				r.add(f, value{Text: text, Origin: c.Path, Private: c.Private, Time: p.host.Clock()})
			}
		}
		if r.key == key && key != ownKey && key != botKey {
			r.Name = txt.ClipLine(c.Author.Name, valueMax)
		}
	}
	for _, key := range slices.Compact(keys) {
		if err := p.edit(ctx, person, key, change); err != nil {
			return err
		}
	}
	return nil
}

type requestPayload struct {
	_ struct{} `title:"Look up a bio"`

	Who string `json:"who,omitempty" title:"person" doc:"Whose bio, by name, tag or id; left out: the author's." max:"256"`
}

var requestAction = core.Action{
	Name: "bio_request", Similes: []string{"get_bio", "bio_get"},
	Brief: "Look up all that you know about a person who talks here",
	Examples: action.Guide("Returns the whole bio; participants contain only its beginning.",
		"When you are asked what you know about somebody, and participants do not contain it.",
		[]string{"Only people who talk here can be looked up.",
			"What others say about somebody is hearsay: call it that, or do not mention it."},
		core.NewExample("Ann asks what Jay likes", `{"who":"Jay"}`),
	).Note("It contains only what may be said in this place.",
		"The result comes back to you.").SeeAlso("bio_update adds to it"),
	Effects: core.EffectReadsChat, Permission: core.PermissionEveryone, Idempotent: true,
}

const hearsayMax = 20 // lines of hearsay that a model reads

func (p *Plugin) request(ctx context.Context, c core.Call, r requestPayload) (core.Result, error) {
	who, err := p.subject(ctx, &c, r.Who)
	if err != nil {
		return core.Result{}, err
	}
	b, err := p.visible(ctx, who.path, c.Sees)
	if err != nil {
		return core.Result{}, err
	}
	answer := map[string]any{"person": txt.ClipLine(who.Author.Name, valueMax), "bio": b.whole()}
	if who.Tag != "" {
		answer["tag"] = who.Tag
	}
	if len(b.others) > 0 {
		answer["others_say"] = b.others[:min(len(b.others), hearsayMax)]
	}
	return core.Output(answer), nil
}
