package people

import (
	"context"
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
	n, _, err := core.GetItem[count](ctx, p.host.Items, person, dayKey)
	if err != nil {
		return err
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
	return core.PutItem(ctx, p.host.Items, person, dayKey, n)
}
