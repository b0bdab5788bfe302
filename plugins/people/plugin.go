package people

import (
	"context"
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
