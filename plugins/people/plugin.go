// Package people keeps short bios of the users whom the bot talks with: their names, what
// they like, and how the bot gets on with them. Facts about no user belong to package
// memory.
//
// # What is kept
//
// A bio lies under its user's path, so it is shown to them and erased with them. It consists
// of records, one for each source:
//
//	own                 what the user said about themselves
//	bot                 what the bot thinks of them
//	telegram/@user/1    what that user said about them (hearsay), or that the two are linked
//
// The origin of a value is the place where it was said. Values are shown there and below,
// and in places that share with it, nowhere else. What somebody says in private about others
// does not enter their bios.
//
// # Who changes what
//
// Users change their own record by speaking about themselves. What they say about others is
// hearsay with their name: it never replaces what those said themselves, and comes after it.
// Relationship is the bot's own view of the author. Users may remove what is said about
// them; moderators may clear what was said in their place.
//
// # Links
//
// A user with accounts on several platforms links them by a code: given in private to one
// account, said in private by the other, once, within ten minutes. Then the values of both
// are read as one user's, each still only where its origin allows. Codes are kept as hashes,
// in memory only. A link holds while both sides have it.
package people

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"synthbot/core"
	"synthbot/core/action"
	"synthbot/core/txt"
	"synthbot/core/users"
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

// Name implements core.Plugin.
func (p *Plugin) Name() string { return "people" }

// Actions implements core.Plugin.
func (p *Plugin) Actions() []core.Action {
	return []core.Action{action.Typed(updateAction, p.update), action.Typed(requestAction, p.request)}
}

// me is how a payload names who speaks.
const me = "me"

// subject is a person whom a call is about.
type subject struct {
	core.Author
	path core.Path
}

// subject finds whom a payload names; "" is who speaks.
func (p *Plugin) subject(ctx context.Context, c *core.Call, name string) (subject, error) {
	name = strings.TrimSpace(name)
	if c.Author.ID != "" && (name == "" || strings.EqualFold(name, me)) {
		name = c.Author.ID
	}
	if name == "" {
		return subject{}, core.Errorf(core.Invalid, "It must be said whom it is about.")
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

// Key of the count of a day's updates, under the path of who caused them.
const dayKey = "day"

// count is how many updates somebody caused on a day.
type count struct {
	Day string `json:"day"`
	N   int    `json:"n"`
}

const dayLayout = "2006-01-02"

// spend counts an update, or refuses it because there were enough today.
func (p *Plugin) spend(ctx context.Context, person core.Path) error {
	now := p.host.Clock()
	today := now.Format(dayLayout)
	return core.EditItem(ctx, p.host.Items, person, dayKey, func(n *count) (keep bool, err error) {
		if n.Day != today {
			*n = count{Day: today}
		}
		if n.N >= p.config.Daily {
			year, month, day := now.Date()
			return false, &core.Error{
				Kind: core.Occupied, Text: "that is enough about people for today; tomorrow it goes on",
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

// hearsayKept is what a user sees of what they said about another.
type hearsayKept struct {
	About  core.Path         `json:"about"`
	Linked bool              `json:"linked,omitempty"`
	Fields map[field][]value `json:"fields,omitempty"`
}

// saidBy returns the records that a user made about others.
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

// Kept implements core.DataKeeper: what a user said about others lies under their paths.
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
		if err := core.PutItem(ctx, p.host.Items, item.Path, item.Key, nil); err != nil {
			return err
		}
	}
	return nil
}
