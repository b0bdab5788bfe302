package daemon

import (
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
	specs  []command.Spec
	admins []core.Path
	alert  func(text string)  // reports to the admins
	failed func(key any) bool // whether a running interface has failed
}

func (b *Bot) maker(c *Config, commands *command.Registry) maker {
	return maker{
		Env: b.env, config: c, log: b.log, specs: commands.Specs(core.RankBot), admins: b.admins(c),
		alert: b.alerts.report, failed: b.workers.failed,
	}
}

// makeInterfaces makes the interfaces of a bot. Of the former parts, which may be nil, it
// keeps those that did not change.
type makeInterfaces func(m maker, former *parts) ([]core.Interface, error)

// EnabledInterfaces makes the interfaces that the configuration enables.
func EnabledInterfaces(m maker, former *parts) ([]core.Interface, error) {
	var all []core.Interface
	faulty := false
	for _, e := range m.config.Enabled {
		kept := m.unchanged(e, former)
		if kept != nil && !m.failed(kept) {
			all = append(all, kept)
			continue
		}
		i, err := e.make(m, e.Name, e.Own)
		if err != nil {
			faulty = true
			e.fault(err)
			continue
		}
		all = append(all, i)
	}
	if faulty {
		return nil, m.config.Document.Err()
	}
	return all, nil
}

// unchanged returns the former interface if it was made for an equal table, the same
// commands and the same admins; else nil.
func (m *maker) unchanged(e enabled, former *parts) core.Interface {
	if former == nil || !reflect.DeepEqual(former.Commands.Specs(core.RankBot), m.specs) ||
		!slices.Equal(former.Config.Bot.Admins, m.config.Bot.Admins) {
		return nil
	}
	for k, was := range former.Config.Enabled {
		if was.Name == e.Name && was.kind == e.kind && reflect.DeepEqual(was.Own, e.Own) {
			return former.Interfaces[k]
		}
	}
	return nil
}

// consoleName is the name of the interface of terminals that attach to a bot.
const consoleName = "console"

// daemonInterfaces makes the enabled interfaces, and one for terminals that attach by the
// control socket, unless the daemon has a console of that name.
func daemonInterfaces(m maker, former *parts) ([]core.Interface, error) {
	all, err := EnabledInterfaces(m, former)
	if err != nil || has(all, consoleName) {
		return all, err
	}
	if former != nil {
		server := former.consoleServer()
		if server != nil {
			return append(all, server), nil
		}
	}
	return append(all, console.NewServer(consoleName)), nil
}

// InterfacesToLookAt makes the enabled interfaces and a terminal, for commands that only
// look.
func InterfacesToLookAt(m maker, former *parts) ([]core.Interface, error) {
	all, err := EnabledInterfaces(m, former)
	if err != nil || has(all, consoleName) {
		return all, err
	}
	return append(all, console.New(console.Options{In: m.In, Out: m.Out})), nil
}

// Only is for a bot whose interfaces exist already.
func Only(all ...core.Interface) makeInterfaces {
	return func(maker, *parts) ([]core.Interface, error) { return all, nil }
}

func has(all []core.Interface, name string) bool {
	return slices.ContainsFunc(all, func(i core.Interface) bool { return i.Name() == name })
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

// noInterface is the error of a configuration that enables none.
func (c *Config) noInterface() error {
	return Usagef(
		"%s: interfaces: none is enabled, so no user could reach the bot; enable one, or try `synthbot chat`", c.File)
}
