package daemon

import (
	"context"
	"errors"
	"log/slog"
	"reflect"
	"slices"

	"synthbot/core"
	"synthbot/core/command"
	"synthbot/interfaces/console"
)

// maker is what interfaces are made with.
type maker struct {
	*Env
	config *Config
	log    *slog.Logger
	data   *Storage
	specs  []command.Spec
	admins []core.Path
	alert  func(text string)  // reports to the admins
	failed func(key any) bool // whether a running interface has failed
	former *parts             // in force until now
}

func (b *Bot) maker(p *parts) maker {
	return maker{
		Env: b.env, config: p.Config, log: b.log, data: b.Data, specs: p.Commands.Specs(core.RankBot),
		admins: b.admins(p.Config), alert: b.alerts.report, failed: b.workers.failed, former: b.InForce(),
	}
}

// makeInterfaces makes the interfaces of a bot. It keeps former ones that did not change.
type makeInterfaces func(m maker) ([]core.Interface, error)

// EnabledInterfaces makes the interfaces that the configuration enables.
func EnabledInterfaces(m maker) ([]core.Interface, error) {
	var all []core.Interface
	faulty := false
	for _, e := range m.config.Enabled {
		i := m.unchanged(e)
		if i == nil {
			var err error
			if i, err = e.make(m, e.Name, e.Own); err != nil {
				faulty = true
				e.fault(err)
			}
		}
		all = append(all, i)
	}
	if faulty {
		return nil, m.config.Document.Err()
	}
	return all, nil
}

// unchanged returns the former interface if it was made for an equal table, the same
// commands and the same admins, and runs; else nil.
func (m *maker) unchanged(e enabled) core.Interface {
	for k, was := range m.former.Config.Enabled {
		if was.Name == e.Name && was.kind == e.kind && reflect.DeepEqual(was.Own, e.Own) &&
			reflect.DeepEqual(m.former.Commands.Specs(core.RankBot), m.specs) &&
			slices.Equal(m.former.Config.Bot.Admins, m.config.Bot.Admins) && !m.failed(m.former.Interfaces[k]) {
			return m.former.Interfaces[k]
		}
	}
	return nil
}

// consoleName is the name of the interface of terminals that attach to a bot.
const consoleName = "console"

// ReachableInterfaces makes the enabled interfaces, and one for terminals that attach by the
// control socket, unless the daemon has a console of that name.
func ReachableInterfaces(m maker) ([]core.Interface, error) {
	return withConsole(m, func() core.Interface {
		server := m.former.consoleServer()
		if server == nil {
			server = console.NewServer(consoleName)
		}
		return server
	})
}

// InterfacesToLookAt makes the enabled interfaces and a terminal, for commands that only
// look.
func InterfacesToLookAt(m maker) ([]core.Interface, error) {
	return withConsole(m, func() core.Interface { return console.New(console.Options{In: m.In, Out: m.Out}) })
}

// withConsole makes the enabled interfaces, and a console if none is enabled.
func withConsole(m maker, make func() core.Interface) ([]core.Interface, error) {
	all, err := EnabledInterfaces(m)
	named := func(i core.Interface) bool { return i.Name() == consoleName }
	if err != nil || slices.ContainsFunc(all, named) {
		return all, err
	}
	return append(all, make()), nil
}

// consoleServer serves attached terminals; nil if the daemon has a console of its own.
func (p *parts) consoleServer() *console.Server {
	for _, i := range p.Interfaces {
		if h, ok := i.(*console.Server); ok {
			return h
		}
	}
	return nil
}

// Terminal makes a terminal alone. Its arrow keys bring back what users typed in the place.
func Terminal(o console.Options, place core.Path) makeInterfaces {
	return func(m maker) ([]core.Interface, error) {
		o.History = m.data.typedLines(m.log, place)
		return []core.Interface{console.New(o)}, nil
	}
}

// Attach lets the user of a terminal talk to the daemon in a place until they leave.
func (b *Bot) Attach(ctx context.Context, o console.Options, place core.Path) error {
	server := b.InForce().consoleServer()
	if server == nil {
		return errors.New("the daemon has a console of its own: talk to it there, or take it out of the configuration")
	}
	o.History = b.Data.typedLines(b.log, place)
	o.Attached = func(place core.Path) { b.Turns.Wake(place) }
	return server.Attach(ctx, o)
}

// typedLines returns a function that returns what users typed in a place, the oldest first.
func (s *Storage) typedLines(log *slog.Logger, place core.Path) func(context.Context) []string {
	return func(ctx context.Context) (lines []string) {
		err := s.View(ctx, func(v core.View) error {
			entries, err := v.Last(place, 200)
			for i := range entries {
				e := &entries[i]
				if e.Message.Text != "" && e.Spoken() && !e.Self {
					lines = append(lines, e.Message.Text)
				}
			}
			return err
		})
		if err != nil {
			log.Warn("history of the terminal", "err", err)
		}
		return lines
	}
}

// NoInterface is the error of a configuration that enables none.
func (c *Config) NoInterface() error {
	return Usagef(
		"%s: interfaces: none is enabled, so no user could reach the bot; enable one, or try `synthbot chat`", c.File)
}
