package daemon

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"synthbot/admin"
	adminpage "synthbot/admin/page"
	"synthbot/config"
	"synthbot/core"
	"synthbot/core/txt"
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
		list[i] = adminpage.Use{
			Day: u.Day, Whose: u.Person, Engine: u.Engine, Usage: u.Usage, Cost: cost,
		}
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

// shownSettings returns the settings of the configuration for the page. It leaves out unset keys without a default
// in the elements of lists.
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

// changeCommand returns the chat command that changes a setting of a place, the name of its argument, and the
// argument's choices; "" if no command changes the setting.
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

// choices returns the arguments that /persona or /engine takes.
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

// credentials matches the user and the password in a URL.
var credentials = txt.Pattern(`//[^/@\s]+@`)

// PageLink returns a link that opens the admin page. It works once, within ten minutes. The error says why the
// page is not served.
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
