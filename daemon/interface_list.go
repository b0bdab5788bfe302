package daemon

import (
	"fmt"
	"log/slog"
	"slices"
	"sort"
	"strings"

	"synthbot/config"
	"synthbot/core"
	"synthbot/core/action"
	"synthbot/core/txt"
	"synthbot/daemon/logs"
	"synthbot/daemon/settings"
	"synthbot/interfaces/console"
	"synthbot/interfaces/discord"
	"synthbot/interfaces/telegram"
)

// driver is a type of interface that a configuration may name.
type driver struct {
	kind, doc string
	fixed     bool // changes with a restart only
	// config makes the driver's own configuration struct.
	config func() any
	make   func(m maker, name string, own any) (core.Interface, error)
}

// drivers lists the drivers of all interfaces.
var drivers = []driver{
	{
		kind: "console", fixed: true, config: func() any { return new(consoleConfig) }, make: makeConsole,
		doc: "The terminal that the daemon was started in: one message per line on standard input.",
	},
	{
		kind: "discord", config: func() any { return new(discord.Config) }, make: makeDiscord,
		doc: "A bot on Discord.",
	},
	{
		kind: "telegram", config: func() any { return new(telegram.Config) }, make: makeTelegram,
		doc: "A bot on Telegram.",
	},
}

// anyInterface is what the table of every interface may hold.
type anyInterface struct {
	Type    string            `toml:"type" doc:"The driver. Default: the table's name."`
	Enabled bool              `toml:"enabled" default:"true" doc:"Whether the interface is started."`
	Offer   settings.Patterns `toml:"offer" example:"react, poll, photo" doc:"The interface's actions that the model may use besides its message action, without the interface's name; * matches any characters. Each makes every prompt longer. synthbot actions lists them."`
}

type consoleConfig struct {
	User    string `toml:"user" default:"you" doc:"The name of the user at the terminal."`
	Session string `toml:"session" default:"main" doc:"The last element of the conversation's path."`
}

func makeConsole(m maker, name string, own any) (core.Interface, error) {
	o := own.(*consoleConfig)
	return console.New(console.Options{
		Name: name, In: m.In, Out: m.Out, Err: m.Err, User: o.User, Session: o.Session,
		Now: m.config.Clock(m.Clock),
	}), nil
}

func makeDiscord(m maker, name string, own any) (core.Interface, error) {
	state, err := m.data.state(name)
	if err != nil {
		return nil, err
	}
	return discord.New(discord.Options{
		Name: name, Config: *own.(*discord.Config), State: state,
		Log: logs.Room(m.log, "interfaces/"+name), Clock: m.config.Clock(m.Clock),
		Admins: m.admins, Admin: m.alert, Commands: m.specs,
	})
}

func makeTelegram(m maker, name string, own any) (core.Interface, error) {
	state, err := m.data.state(name)
	if err != nil {
		return nil, err
	}
	return telegram.New(telegram.Options{
		Name: name, Config: *own.(*telegram.Config), State: state,
		Log: logs.Room(m.log, "interfaces/"+name), Clock: m.config.Clock(m.Clock),
		Admins: m.admins, Admin: m.alert, Commands: m.specs,
	})
}

// findDriver returns the driver of that type.
func findDriver(kind string) (driver, bool) {
	i := slices.IndexFunc(drivers, func(d driver) bool { return d.kind == kind })
	if i < 0 {
		return driver{}, false
	}
	return drivers[i], true
}

// decodeInterfaces reads each interface's table with its driver's own struct.
func decodeInterfaces(c *Config) {
	c.kinds = make(map[string]string)
	for name, table := range c.Interfaces {
		if !interfaceName().MatchString(name) {
			table.Fault("invalid interface name; write small letters, digits, _, . and - alone, 40 at most")
		}
		common := anyInterface{}
		table.Peek(&common)
		kind := common.Type
		if kind == "" {
			kind = name
		}
		c.kinds[name] = kind
		d, ok := findDriver(kind)
		if !ok {
			table.Fault(fmt.Sprintf("this version has no driver %q; it has %s", kind, driverNames()), "type")
			continue
		}
		own := d.config()
		if !common.Enabled {
			table = table.Unresolved() // its secrets may be absent
		}
		table.Decode(&common, own)
		if common.Enabled {
			if t, ok := own.(interface{ Wrong() string }); ok && t.Wrong() != "" { // a missing one is a fault already
				table.Fault(t.Wrong(), "token")
			}
			c.Enabled = append(c.Enabled, enabled{name, d, own, common.Offer, table})
		}
	}
	sort.Slice(c.Enabled, func(i, j int) bool { return c.Enabled[i].Name < c.Enabled[j].Name })
	c.checkAccounts()
}

// checkAccounts finds accounts that two interfaces would serve: each message would be
// answered twice, or by one of them at random.
func (c *Config) checkAccounts() {
	type account struct{ server, token string }
	served := make(map[account]string)
	for _, e := range c.Enabled {
		var a account
		switch own := e.Own.(type) {
		case *discord.Config:
			a = account{own.APIURL, own.Token.Reveal()}
		case *telegram.Config:
			a = account{own.APIURL, own.Token.Reveal()}
		}
		other := served[a]
		if a.token != "" && other != "" {
			e.table.Fault("is that of interfaces."+other+", too; one account is served once", "token")
		}
		served[a] = e.Name
	}
}

// interfaceName matches names that can be part of actions and paths.
var interfaceName = txt.Pattern(`^[a-z0-9_.-]{1,40}$`)

// fault reports an error of the driver, at the key that the error names, if any.
func (e *enabled) fault(err error) {
	text := strings.TrimPrefix(txt.Line(err.Error()), e.Name+": ")
	var at []any
	for {
		key, rest, ok := strings.Cut(text, ": ")
		if !ok || e.table.Line(append(at, key)...) == 0 {
			break
		}
		at, text = append(at, key), rest
	}
	e.table.Fault(text, at...)
}

// enabled is an interface that the configuration enables.
type enabled struct {
	Name string
	driver
	Own   any
	offer settings.Patterns // of its actions that are offered
	table config.Table
}

// withheld returns the actions of an interface that no model is offered.
func (e *enabled) withheld(all []*action.Definition) (names []string) {
	for _, d := range all {
		if d.Owner != e.Name || d.IsMessage() {
			continue
		}
		if !e.offer.Match(strings.TrimSuffix(d.Name, "_"+e.Name)) {
			names = append(names, d.Name)
		}
	}
	return names
}

func driverNames() string {
	names := make([]string, len(drivers))
	for i, d := range drivers {
		names[i] = d.kind
	}
	return strings.Join(names, ", ")
}

// Account makes an interface of that platform for a token alone; nil if there is no
// such platform.
func (p *Env) Account(platform, apiURL string, token core.Secret) (core.Interface, error) {
	d, ok := findDriver(platform)
	if !ok {
		return nil, nil
	}
	own := d.config()
	table := "token = " + config.Quote(token.Reveal()) + "\n"
	if apiURL != "" {
		table += "api_url = " + config.Quote(apiURL) + "\n"
	}
	if err := config.Read(platform, []byte(table), own, config.Options{Getenv: p.Getenv}); err != nil {
		return nil, err
	}
	m := maker{
		Env: p, config: &Config{}, log: slog.New(slog.DiscardHandler), data: &Storage{Store: EmptyStore{}},
		alert: func(string) {},
	}
	return d.make(m, platform, own)
}
