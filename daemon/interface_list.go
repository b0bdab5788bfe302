package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"strings"

	"synthbot/config"
	"synthbot/core"
	"synthbot/core/action"
	"synthbot/core/command"
	"synthbot/core/secret"
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
	fixed     bool // changes apply after a restart only
	// config makes the driver's own configuration struct.
	config func() any
	// make makes the interface: one for each part, all with the same name, if several processes may share it.
	make func(m maker, own any) ([]core.Interface, error)
}

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

type anyInterface struct {
	Type    string            `toml:"type" doc:"The driver. Default: the table's name."`
	Enabled bool              `toml:"enabled" default:"true" doc:"Whether the interface is started."`
	Offer   settings.Patterns `toml:"offer" example:"react, poll, photo" doc:"The interface's actions that the model may use besides its message action, without the interface's name; * matches any characters. Each makes every prompt longer. synthbot actions lists them."`
}

type consoleConfig struct {
	User    string `toml:"user" default:"you" doc:"The name of the user at the terminal."`
	Session string `toml:"session" default:"main" doc:"The last element of the conversation's path."`
}

func makeConsole(m maker, own any) ([]core.Interface, error) {
	o := own.(*consoleConfig)
	return []core.Interface{console.New(console.Options{
		Name: m.name, In: m.env.In, Out: m.env.Out, Err: m.env.Err, User: o.User, Session: o.Session,
		Now: m.now,
	})}, nil
}

func makeDiscord(m maker, own any) (all []core.Interface, err error) {
	o := discord.Options{
		Name: m.name, Config: *own.(*discord.Config), State: m.state, Log: m.log, Clock: m.now,
		Admins: m.admins, Admin: m.alerts.report, Commands: m.specs,
	}
	if m.workers.sharing.database() == nil {
		d, err := discord.New(o)
		return []core.Interface{d}, err
	}
	shards, err := discord.NewShards(o)
	for _, d := range shards {
		all = append(all, d)
	}
	return all, err
}

func makeTelegram(m maker, own any) ([]core.Interface, error) {
	c := *own.(*telegram.Config)
	for _, file := range []*string{&c.Webhook.Certificate, &c.Webhook.Key} {
		if *file != "" {
			*file = m.config.Beside(*file)
		}
	}
	d, err := telegram.New(telegram.Options{
		Name: m.name, Config: c, State: m.state, Log: m.log, Clock: m.now,
		Admins: m.admins, Admin: m.alerts.report, Commands: m.specs,
	})
	return []core.Interface{d}, err
}

func findDriver(kind string) (driver, bool) {
	for _, d := range drivers {
		if d.kind == kind {
			return d, true
		}
	}
	return driver{}, false
}

func decodeInterfaces(c *Config) {
	c.kinds = make(map[string]string)
	for _, name := range slices.Sorted(maps.Keys(c.Interfaces)) {
		table := c.Interfaces[name]
		if !txt.IsName(name, 40, ".-") {
			table.Fault("invalid interface name; write small letters, digits, _, . and - alone, 40 at most")
		}
		common := anyInterface{}
		table.Peek(&common)
		kind := cmp.Or(common.Type, name)
		c.kinds[name] = kind
		d, ok := findDriver(kind)
		if !ok {
			all := strings.Join(driverNames(), ", ")
			table.Fault(fmt.Sprintf("this version has no driver %q; it has %s", kind, all), "type")
			continue
		}
		own := d.config()
		if !common.Enabled {
			table = table.Unresolved() // its secrets may be absent
		}
		table.Decode(&common, own)
		if common.Enabled {
			checker, ok := own.(interface {
				CheckSecrets(fault func(text string, at ...any))
			})
			if ok && table.Resolved() {
				checker.CheckSecrets(table.Fault)
			}
			c.Enabled = append(c.Enabled, enabled{name, d, own, common.Offer, table})
		}
	}
	c.checkAccounts()
}

type account struct {
	Platform, server string
	Token            secret.Secret
}

// Account returns the account that an interface serves; without a token if it has none.
func (e *enabled) Account() account {
	switch own := e.Own.(type) {
	case *discord.Config:
		return account{e.kind, own.APIURL, own.Token}
	case *telegram.Config:
		return account{e.kind, own.APIURL, own.Token}
	}
	return account{}
}

// checkAccounts reports accounts of two interfaces: both would answer each message, or either at random.
func (c *Config) checkAccounts() {
	served := make(map[account]string)
	for _, e := range c.Enabled {
		a := e.Account()
		other := served[a]
		if !a.Token.IsZero() && other != "" {
			e.table.Fault("is the token of interfaces."+other+", too; an account can have one interface only", "token")
		}
		served[a] = e.Name
	}
}

// fault adds an error of the driver to the configuration's faults, at the key that the error names, if any.
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

type enabled struct {
	Name string
	driver
	Own   any
	offer settings.Patterns // the actions that models are offered
	table config.Table
}

// withholds reports whether an action belongs to the interface and is not offered to models.
func (e *enabled) withholds(d *action.Definition) bool {
	return d.Owner == e.Name && !d.IsMessage() && !e.offer.Match(strings.TrimSuffix(d.Name, "_"+e.Name))
}

func driverNames() (names []string) {
	for _, d := range drivers {
		names = append(names, d.kind)
	}
	return names
}

// Account makes an interface of a platform from a token, for probes; nil if there is no such platform.
func (p *Env) Account(platform, apiURL string, token secret.Secret) (core.Interface, error) {
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
	b := p.newBot(RunOptions{Log: slog.New(slog.DiscardHandler)})
	b.Data = &Storage{Store: EmptyStore{}}
	made, err := b.maker(b.InForce()).make(d, platform, own)
	if err != nil {
		return nil, err
	}
	return made[0], nil
}

type maker struct {
	*Bot
	config *Config

	// Of the interface that is made now.
	name  string
	log   *slog.Logger
	state *interfaceState
}

func (b *Bot) maker(p *parts) maker { return maker{Bot: b, config: p.Config} }

func (m *maker) specs() []command.Spec { return m.InForce().Commands.Specs(core.RankBot) }

// interfaceMaker makes the interfaces of a bot. It keeps running ones whose configuration did not change.
type interfaceMaker func(m maker) ([]core.Interface, error)

// EnabledInterfaces makes the interfaces that the configuration enables.
func EnabledInterfaces(m maker) ([]core.Interface, error) {
	var all []core.Interface
	faulty := false
	for _, e := range m.config.Enabled {
		made := m.unchanged(e)
		if made == nil {
			var err error
			if made, err = m.make(e.driver, e.Name, e.Own); err != nil {
				faulty = true
				e.fault(err)
			}
		}
		all = append(all, made...)
	}
	if faulty {
		return nil, m.config.Document.Err()
	}
	return all, nil
}

func (m maker) make(d driver, name string, own any) ([]core.Interface, error) {
	m.name, m.log, m.state = name, logs.Room(m.Bot.log, "interfaces/"+name), m.Data.interfaceState(name)
	return d.make(m, own)
}

// unchanged returns all parts of the running interface if none has failed and its configuration is the same; else nil.
func (m *maker) unchanged(e enabled) []core.Interface {
	same := func(was enabled) bool {
		return was.Name == e.Name && was.kind == e.kind && reflect.DeepEqual(was.Own, e.Own)
	}
	parts := m.InForce().interfacesNamed(e.Name)
	failed := slices.ContainsFunc(parts, func(i core.Interface) bool { return m.workers.failed(i) })
	if failed || !slices.ContainsFunc(m.InForce().Config.Enabled, same) {
		return nil
	}
	return parts
}

type commandOfferer interface {
	// CommandsChanged is called after the chat commands or the admins may have changed. It must not block.
	CommandsChanged()
}

const consoleName = "console" // the interface for terminals that attach to a bot

// ReachableInterfaces makes the enabled interfaces, and a console that terminals attach to, unless one is enabled.
func ReachableInterfaces(m maker) ([]core.Interface, error) {
	return withConsole(m, func() core.Interface {
		server := m.InForce().consoleServer()
		if server == nil {
			server = console.NewServer(consoleName)
		}
		return server
	})
}

// InspectionInterfaces makes the enabled interfaces and a console, for commands that do not run the bot.
func InspectionInterfaces(m maker) ([]core.Interface, error) {
	return withConsole(m, func() core.Interface { return console.New(console.Options{In: m.env.In, Out: m.env.Out}) })
}

func withConsole(m maker, make func() core.Interface) ([]core.Interface, error) {
	all, err := EnabledInterfaces(m)
	named := func(i core.Interface) bool { return i.Name() == consoleName }
	if err != nil || slices.ContainsFunc(all, named) {
		return all, err
	}
	return append(all, make()), nil
}

// consoleServer returns the server for attached terminals; nil if the daemon has a console of its own.
func (p *parts) consoleServer() *console.Server {
	for _, i := range p.Interfaces {
		if server, ok := i.(*console.Server); ok {
			return server
		}
	}
	return nil
}

// Terminal makes only a terminal, which recalls and completes what its user types.
func Terminal(o console.Options, place core.Path) interfaceMaker {
	return func(m maker) ([]core.Interface, error) {
		o.History, o.Complete = m.Data.typedLines(m.Bot.log, place), (&chatCommands{m.Bot}).complete
		return []core.Interface{console.New(o)}, nil
	}
}

// Attach lets the user of a terminal talk to the daemon in a place until they leave.
func (b *Bot) Attach(ctx context.Context, o console.Options, place core.Path) error {
	server := b.InForce().consoleServer()
	if server == nil {
		return errors.New("the daemon has a console of its own: talk to it there, or take it out of the configuration")
	}
	o.History, o.Complete = b.Data.typedLines(b.log, place), (&chatCommands{b}).complete
	o.Attached = func(place core.Path) { b.Turns.Wake(place) }
	return server.Attach(ctx, o)
}

// typedLines returns a function that returns what users typed in a place, the oldest first.
func (s *Storage) typedLines(log *slog.Logger, place core.Path) func(context.Context) []string {
	return func(ctx context.Context) (lines []string) {
		entries, err := core.Read(ctx, s, func(v core.View) ([]core.Entry, error) { return v.Last(place, 200) })
		if err != nil {
			log.Warn("no history for the terminal", "err", err)
		}
		for i := range entries {
			e := &entries[i]
			if e.Message.Text != "" && e.Spoken() && !e.Self {
				lines = append(lines, e.Message.Text)
			}
		}
		return lines
	}
}

// NoInterface returns the error of a configuration that enables no interface.
func (c *Config) NoInterface() error {
	return Usagef(
		"%s: interfaces: none is enabled, so no user could reach the bot; enable one, or try `synthbot chat`", c.File)
}
