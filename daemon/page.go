package daemon

import (
	"context"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"synthbot/admin"
	adminpage "synthbot/admin/page"
	"synthbot/config"
	"synthbot/core"
	"synthbot/core/command"
	"synthbot/core/epochs"
	"synthbot/core/txt"
	"synthbot/core/users"
	"synthbot/core/watch"
	"synthbot/daemon/logs"
	"synthbot/daemon/settings"
)

// pageServer serves the admin page. It implements adminpage.Bot.
type pageServer struct {
	bot     *Bot
	running admin.Running              // the running turns, if the page is on
	served  atomic.Pointer[servedPage] // nil: the page is not served
}

type servedPage struct {
	*adminpage.Page
	address string
}

func (s *pageServer) serve(ctx context.Context, address string) {
	var sampling sync.WaitGroup
	serveHTTP(ctx, s.bot.log, "admin's page", address, func(at net.Addr) http.Handler {
		p := adminpage.New(s.options())
		s.served.Store(&servedPage{p, at.String()})
		sampling.Go(func() { p.Run(ctx) })
		return p.Handler()
	})
	sampling.Wait()
}

// watchers returns the observers of running turns; none if the page is off.
func (s *pageServer) watchers(c *Config) []watch.StageObserver {
	if c.Admin.Listen == "" {
		return nil
	}
	return []watch.StageObserver{&s.running}
}

func (s *pageServer) options() adminpage.Options {
	b := s.bot
	return adminpage.Options{
		Log: logs.Room(b.log, "admin"), Turns: b.monitor.traces, Running: &s.running, Lines: &b.env.lines,
		Reader: b.Data.Store, Facts: b.Data.Store, Items: b.Data.Items("page"),
		Clock: b.now,
		Bot:   s, Personas: personaEditor{b},
	}
}

func (s *pageServer) Listing(ctx context.Context, l core.FactPage) ([]core.Fact, string, error) {
	return s.bot.Data.DB.ListFacts(ctx, l)
}

func (s *pageServer) Uses(ctx context.Context, first, last string) ([]adminpage.Use, error) {
	uses, err := s.bot.Data.DB.Uses(ctx, first, last)
	list := make([]adminpage.Use, len(uses))
	for i, u := range uses {
		cost := s.bot.InForce().Config.CostOf(u)
		list[i] = adminpage.Use{Day: u.Day, Whose: u.Person, Engine: u.Engine, Usage: u.Usage, Cost: cost}
	}
	return list, err
}

func (s *pageServer) Rooms() []string { return s.bot.InForce().Config.Rooms() }

func (s *pageServer) Settings(place core.Path) (rows []adminpage.Setting) {
	p, defaults := s.bot.InForce(), make(map[string]string)
	if place.IsZero() {
		return p.Config.shownSettings()
	}
	for _, row := range p.PlaceSettings(core.Path{}) {
		defaults[row.Name] = row.Value
	}
	changed := make(map[string]bool)
	for _, row := range p.runningSettings(place) {
		set := adminpage.Setting{Name: row.Name, Value: row.Value, Set: row.Set, From: row.From}
		set.Default = defaults[row.Name]
		if !changed[row.Name] {
			set.Command, set.Arg, set.Choices = p.changeCommand(row.Name)
		}
		changed[row.Name] = true
		rows = append(rows, set)
	}
	return rows
}

// shownSettings leaves out unset keys without a default in the elements of lists.
func (c *Config) shownSettings() (rows []adminpage.Setting) {
	c.Walk(func(s config.Setting) {
		row := adminpage.Setting{Name: s.Key.String(), Value: shownValue(s), From: "the default"}
		if d, ok := s.Default(); ok {
			row.Default = shownValue(d)
		}
		switch {
		case row.Value != row.Default:
			row.From = c.File
		case strings.Contains(row.Name, "[") && s.Value.IsZero():
			return
		}
		rows = append(rows, row)
	})
	return rows
}

// changeCommand returns the chat command that changes a setting of a place, with its argument; "" if there is none.
func (p *parts) changeCommand(name string) (command, arg string, choices []string) {
	switch name {
	case "persona", "engine":
		return name, "name", p.choices(name)
	case "activation":
		known, _ := p.Commands.Find(name)
		return name, "what", known.Args[0].Choices
	}
	if slices.Contains(settings.Names[settings.Settings](), name) {
		return "set", "value", nil
	}
	return "", "", nil
}

func (p *parts) choices(command string) []string {
	if command == "persona" {
		return append(p.personas.known(), settings.Default)
	}
	return append(p.Engines.Names(), settings.Default)
}

// shownValue formats a setting for the page, without secrets.
func shownValue(s config.Setting) string {
	v, name := s.Value, s.Key[len(s.Key)-1]
	mayHide := slices.Contains([]any{"args", "env", "headers", "command"}, name) // users put secrets there
	if v.Kind() == reflect.Map || mayHide && v.Kind() == reflect.Slice {
		return fmt.Sprintf("(%d, not shown)", v.Len())
	}
	return credentials().ReplaceAllString(txt.Line(fmt.Sprint(v.Interface())), "//[secret]@")
}

var credentials = txt.Pattern(`//[^/@\s]+@`)

// PageLink returns a link that opens the admin page once, within ten minutes. The error says why there is none.
func (b *Bot) PageLink() (string, error) {
	s, listen := b.page.served.Load(), b.InForce().Config.Admin.Listen
	switch {
	case s == nil && listen == "":
		return "", Usagef("there is no page: set listen in [admin], like 127.0.0.1:8787, and restart the daemon")
	case s == nil:
		const why = "the daemon's log says why, often because another program uses the port"
		return "", fmt.Errorf("the page is not served at %s; %s", listen, why)
	}
	// Browsers do not send the part after #, so the ticket is in no log.
	return fmt.Sprintf("http://%s/login#%s", s.address, s.Ticket()), nil
}

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

const maxShownName = 60 // characters

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
	for _, own := range s.commands() {
		if own.Name == name {
			return own, true
		}
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
