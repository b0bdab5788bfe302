package daemon

import (
	"context"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	adminpage "synthbot/admin/page"
	"synthbot/core"
	"synthbot/core/command"
	"synthbot/core/epochs"
	"synthbot/core/txt"
	"synthbot/core/users"
)

// lastFailure returns how and when an engine failed last; the zero Part if it did not.
func (m *monitor) lastFailure(engine string) adminpage.Part {
	last, _ := m.failures.Load(engine)
	part, _ := last.(adminpage.Part)
	return part
}

func (s *pageServer) State(ctx context.Context) (state adminpage.State, err error) {
	b := s.bot
	p := b.InForce()
	state = adminpage.State{Version: b.env.Version, Began: b.monitor.began}
	failing := b.alerts.failing()
	take := func(what string) (c condition, ok bool) { // removes the condition, so that it is shown once
		i := slices.IndexFunc(failing, func(c condition) bool { return c.what == what })
		if i >= 0 {
			c, failing = failing[i], slices.Delete(failing, i, i+1)
		}
		return c, i >= 0
	}
	state.Engines, state.Interfaces = s.engineStates(p, take), s.interfaceStates(p, take)
	for _, c := range failing {
		state.Failing = append(state.Failing, c.text)
	}
	for _, l := range b.changes.All() {
		if l.Values.Asleep != nil && *l.Values.Asleep {
			state.Asleep = append(state.Asleep, l.Path)
		}
	}
	state.Workers = b.workers.sharing.workerLines(ctx)
	_, state.Errors = b.env.lines.After(0)
	state.Used, state.Free = s.diskSpace(p.Config)
	pairing := p.Pairing()
	if pairing != nil {
		guests, err := pairing.Waiting(ctx)
		if err != nil {
			return state, err
		}
		for _, g := range guests {
			state.Guests = append(state.Guests, adminpage.Guest(g))
		}
	}
	spent, err := b.Data.usage.Spent(ctx, b.now().Format(time.DateOnly), core.Path{})
	state.Spent = adminpage.Spending{
		Tokens: spent.Tokens, TokensLimit: p.Config.Budget.BotTokens,
		Cost: spent.Cost, CostLimit: p.Config.Budget.BotCost,
	}
	return state, err
}

// engineStates returns whether each engine works. It takes the conditions of engines.
func (s *pageServer) engineStates(p *parts, take func(what string) (condition, bool)) (list []adminpage.Part) {
	for _, name := range p.Engines.Names() {
		e := s.bot.monitor.lastFailure(name)
		e.Name, e.Works = name, true
		if c, ok := take(engineCondition + name); ok {
			e.Works, e.Since = false, c.since
			e.Text = strings.TrimPrefix(c.text+" "+e.Text, " ")
		}
		list = append(list, e)
	}
	return list
}

// interfaceStates returns whether each interface works. It takes the conditions of interfaces.
func (s *pageServer) interfaceStates(p *parts, take func(what string) (condition, bool)) (list []adminpage.Part) {
	for _, i := range p.Interfaces {
		part := adminpage.Part{Name: label(i), Works: true}
		switch text := s.bot.monitor.trouble(i); text {
		case "":
		case elsewhere:
			part.Name += " (" + elsewhere + ")"
		default:
			part.Works, part.Text = false, text
		}
		for _, what := range []string{interfaceCondition + label(i), interfaceCondition + label(i) + receiving} {
			if c, ok := take(what); ok {
				part.Works, part.Text, part.Since = false, c.text, c.since
			}
		}
		list = append(list, part)
	}
	return list
}

// diskSpace returns the size of the bot's files and the free space, in bytes; 0 if unknown.
func (s *pageServer) diskSpace(c *Config) (used, free uint64) {
	dir, err := c.DataDir(s.bot.env.Getenv)
	if err != nil {
		return 0, 0
	}
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil
		}
		if info, err := d.Info(); err == nil {
			used += uint64(info.Size())
		}
		return nil
	})
	var disk unix.Statfs_t
	if unix.Statfs(dir, &disk) == nil {
		free = disk.Bavail * uint64(disk.Bsize)
	}
	return used, free
}

// maxShownName is how many characters of a name are shown.
const maxShownName = 60

// names returns the names of places and users, for admins. Paths without a name are left out.
func (b host) names(ctx context.Context, paths ...core.Path) map[core.Path]string {
	names, err := core.Read(ctx, b.Data, func(v core.View) (map[core.Path]string, error) {
		return b.InForce().Names(v, paths...)
	})
	if err != nil {
		b.log.Warn("names not found", "err", err)
	}
	return names
}

// Names returns the names of places and users, for admins. Paths without a name are left out.
func (p *parts) Names(v core.View, paths ...core.Path) (map[core.Path]string, error) {
	known := func(path core.Path) string {
		n, ok := p.interfaceAt(path).(core.Namer)
		if !ok {
			return ""
		}
		return n.NameOf(path)
	}
	names, err := users.NamesOf(v, known, paths...)
	for path, name := range names {
		names[path] = txt.ClipLine(name, maxShownName)
	}
	return names, err
}

// nameWithPath returns the name of a place or user, followed by its path in parentheses, or only the path.
func (b host) nameWithPath(ctx context.Context, path core.Path) string {
	name := b.names(ctx, path)[path]
	if name == "" {
		return path.String()
	}
	return name + " (" + path.String() + ")"
}

func (s *pageServer) Names(ctx context.Context, paths ...core.Path) map[core.Path]string {
	return host{s.bot}.names(ctx, paths...)
}

func (s *pageServer) Knows(name string) bool {
	_, ok := s.find(name)
	return ok
}

// find finds a command by name, first among the page's own commands, then among the chat commands.
func (s *pageServer) find(name string) (c command.Command, ok bool) {
	own := s.commands()
	i := slices.IndexFunc(own, func(c command.Command) bool { return c.Name == name })
	if i >= 0 {
		return own[i], true
	}
	return s.bot.InForce().Commands.Find(name)
}

func (s *pageServer) Do(ctx context.Context, place core.Path, name string, args map[string]string) (string, error) {
	known, ok := s.find(name)
	if !ok {
		return "", core.Errorf(core.Invalid, "There is no command /%s: its plugin is off.", name)
	}
	given := make([]string, len(known.Args))
	for i, a := range known.Args {
		given[i] = args[a.Name]
	}
	parsed, err := known.Parse(given)
	if err != nil {
		return "", err
	}
	author := core.Author{ID: "page", Name: "the admin's page", Rank: core.RankAdmin}
	person, _ := place.Person(author.ID) // the zero Path outside of places
	ctx = command.Context(epochs.With(ctx, s.bot.Data.Epoch()))
	return known.Do(ctx, command.Call{
		Path: place, Author: author, Person: person, Args: parsed, Sees: []core.Path{place},
		Attach: func(core.Upload) {},
	})
}
