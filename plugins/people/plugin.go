package people

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"synthbot/core"
	"synthbot/core/txt"
	"synthbot/core/users"
)

// Plugin keeps bios. Safe for concurrent use.
type Plugin struct {
	host    core.Host
	config  Config
	codes   *codes
	actions []core.Action
}

// New makes the plugin.
func New(h core.Host, c Config) (*Plugin, error) {
	p := &Plugin{host: h, config: c, codes: newCodes(h.Clock)}
	p.actions = []core.Action{p.updateAction(), p.requestAction()}
	return p, nil
}

// Name implements core.Plugin.
func (p *Plugin) Name() string { return "people" }

// Actions implements core.Plugin.
func (p *Plugin) Actions() []core.Action { return p.actions }

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
	if err != nil {
		return subject{}, err
	}
	if !ok {
		return subject{}, core.Errorf(core.Invalid, "Nobody who talks here is called %s.",
			txt.Clip(txt.Line(name), valueMax))
	}
	i := slices.IndexFunc(here.Users, func(a core.Author) bool { return here.Path(a) == path })
	return subject{here.Users[i], path}, nil
}

// caller is who causes a call: a person, or the zero Path for the bot's own
// turns. Several people are nobody.
func caller(c *core.Call) (core.Path, error) {
	if c.Author.Rank == core.Bot {
		return core.Path{}, nil
	}
	if c.Author.ID == "" {
		return core.Path{}, core.Errorf(core.Forbidden,
			"several people spoke at once; it can be done when one of them speaks alone")
	}
	person, err := c.Path.Person(c.Author.ID)
	if err != nil {
		return core.Path{}, fmt.Errorf("caller: %w", err)
	}
	return person, nil
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
	item, _, err := p.host.Items.Get(ctx, person, dayKey)
	if err != nil {
		return fmt.Errorf("count: %w", err)
	}
	var n count
	if item.Value != nil {
		if err := json.Unmarshal(item.Value, &n); err != nil {
			return fmt.Errorf("count: %w", err)
		}
	}
	now := p.host.Clock()
	today := now.Format(dayLayout)
	if n.Day != today {
		n = count{Day: today}
	}
	if n.N >= p.config.Daily {
		year, month, day := now.Date()
		left := time.Date(year, month, day+1, 0, 0, 0, 0, now.Location()).Sub(now)
		return &core.Error{Kind: core.Occupied, Text: "that is enough about people for today; tomorrow it goes on",
			After: left}
	}
	n.N++
	if item.Value, err = json.Marshal(n); err != nil {
		return fmt.Errorf("count: %w", err)
	}
	item.Path, item.Key, item.Version = person, dayKey, core.AnyVersion
	if _, err := p.host.Items.Put(ctx, item); err != nil {
		return fmt.Errorf("count: %w", err)
	}
	return nil
}
