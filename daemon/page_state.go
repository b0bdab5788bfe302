package daemon

import (
	"cmp"
	"context"
	"io/fs"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	adminpage "synthbot/admin/page"
	"synthbot/core"
	"synthbot/core/command"
	"synthbot/core/epochs"
	"synthbot/core/llm"
	"synthbot/core/txt"
	"synthbot/core/users"
)

// lastFailures holds the last failure of each engine. Safe for concurrent use.
type lastFailures struct {
	mu sync.Mutex
	by map[string]adminpage.Part
}

func (l *lastFailures) add(now time.Time, name string, failed *llm.Error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.by == nil {
		l.by = make(map[string]adminpage.Part)
	}
	l.by[name] = adminpage.Part{Text: cmp.Or(failureCause(failed), string(failed.Kind)), Since: now}
}

func (l *lastFailures) of(name string) adminpage.Part {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.by[name]
}

// State implements adminpage.Bot.
func (s *pageServer) State(ctx context.Context) (state adminpage.State, err error) {
	b := s.bot
	p := b.InForce()
	state = adminpage.State{Version: b.env.Version, Began: b.monitor.began}
	shown := make(map[string]bool) // alerts about engines and interfaces
	state.Engines, state.Interfaces = s.engineStates(p, shown), s.interfaceStates(p, shown)
	for _, c := range b.alerts.failing() {
		if !shown[c.text] {
			state.Failing = append(state.Failing, c.text)
		}
	}
	for _, l := range b.changes.All() {
		if l.Values.Asleep != nil && *l.Values.Asleep {
			state.Asleep = append(state.Asleep, l.Path)
		}
	}
	state.Workers = b.workers.sharing.workerLines(ctx)
	_, state.Errors = b.env.levels.Kept.After(0)
	state.Used, state.Free = s.diskSpace(p.Config)
	state.Guests, err = waitingGuests(ctx, p)
	if err != nil {
		return state, err
	}
	state.Spent, err = s.spending(ctx, p.Config)
	return state, err
}

// waitingGuests lists the users who wait to be let in.
func waitingGuests(ctx context.Context, p *parts) (list []adminpage.Guest, err error) {
	plugin := p.Pairing()
	if plugin == nil {
		return nil, nil
	}
	guests, err := plugin.Waiting(ctx)
	for _, g := range guests {
		list = append(list, adminpage.Guest(g))
	}
	return list, err
}

// engineStates returns whether each engine works. It adds the alerts that it shows to shown.
func (s *pageServer) engineStates(p *parts, shown map[string]bool) (list []adminpage.Part) {
	failing := s.bot.alerts.failing()
	for _, name := range p.Engines.Names() {
		e := s.bot.monitor.failures.of(name)
		e.Name, e.Works = name, true
		for i := range failing {
			c := &failing[i]
			if c.what != engineCondition+name {
				continue
			}
			shown[c.text] = true
			e.Works, e.Since = false, c.since
			e.Text = strings.TrimPrefix(c.text+" "+e.Text, " ")
		}
		list = append(list, e)
	}
	return list
}

// interfaceStates returns whether each interface works. It adds the alerts that it shows to shown.
func (s *pageServer) interfaceStates(p *parts, shown map[string]bool) (list []adminpage.Part) {
	b, failing := s.bot, s.bot.alerts.failing()
	for _, i := range p.Interfaces {
		part := adminpage.Part{Name: label(i), Works: true}
		switch text := b.monitor.trouble(i); text {
		case "":
		case elsewhere:
			part.Name += " (" + elsewhere + ")"
		default:
			part.Works, part.Text = false, text
		}
		for j := range failing {
			c := &failing[j]
			if c.what == interfaceCondition+label(i) || c.what == interfaceCondition+label(i)+receiving {
				shown[c.text] = true
				part.Works, part.Text, part.Since = false, c.text, c.since
			}
		}
		list = append(list, part)
	}
	return list
}

// spending returns today's usage and its limits.
func (s *pageServer) spending(ctx context.Context, c *Config) (sum adminpage.Spending, err error) {
	b := s.bot
	sum.TokensLimit, sum.CostLimit = c.Budget.BotTokens, c.Budget.BotCost
	if b.Data.usage == nil {
		return sum, nil
	}
	spent, err := b.Data.usage.Spent(ctx, c.Clock(b.env.Clock)().Format(time.DateOnly), core.Path{})
	sum.Tokens, sum.Cost = spent.Tokens, spent.Cost
	return sum, err
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
	var names map[core.Path]string
	err := b.Data.View(ctx, func(v core.View) (err error) {
		names, err = b.InForce().Names(v, paths...)
		return err
	})
	if err != nil {
		b.log.Warn("names not found", "err", err)
	}
	return names
}

// Names returns the names of places and users, for admins. Paths without a name are left out.
func (p *parts) Names(v core.View, paths ...core.Path) (map[core.Path]string, error) {
	known := func(path core.Path) string {
		n, ok := p.at(path).(core.Namer)
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

// named returns the name of a place or user, followed by its path in parentheses, or only the path.
func (b host) named(ctx context.Context, path core.Path) string {
	name := b.names(ctx, path)[path]
	if name == "" {
		return path.String()
	}
	return name + " (" + path.String() + ")"
}

// Names implements adminpage.Bot.
func (s *pageServer) Names(ctx context.Context, paths ...core.Path) map[core.Path]string {
	return host{s.bot}.names(ctx, paths...)
}

// Knows implements adminpage.Bot.
func (s *pageServer) Knows(name string) bool {
	_, ok := s.find(name)
	return ok
}

// find finds a command by name, first among the page's own commands, then among the chat commands.
func (s *pageServer) find(name string) (c command.Command, ok bool) {
	if own, err := command.New(s.commands()); err == nil {
		c, ok = own.Find(name)
	}
	if !ok {
		c, ok = s.bot.InForce().Commands.Find(name)
	}
	return c, ok
}

// Do implements adminpage.Bot.
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
