package daemon

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"synthbot/admin"
	adminpage "synthbot/admin/page"
	"synthbot/config"
	"synthbot/core"
	"synthbot/core/txt"
	"synthbot/core/watch"
	"synthbot/daemon/logs"
	"synthbot/memory"
)

// pageServer serves the admin's page, and is the source of its data.
type pageServer struct {
	bot     *Bot
	running admin.Running          // turns, while the page is served
	served  atomic.Pointer[served] // nil: it is not served
}

// served is the page at its address.
type served struct {
	*adminpage.Page
	address string
}

// serve serves the page until ctx ends.
func (s *pageServer) serve(ctx context.Context, address string) {
	var sampling sync.WaitGroup
	serveHTTP(ctx, s.bot.log, "admin's page", address, func(at net.Addr) http.Handler {
		p := adminpage.New(s.options())
		s.served.Store(&served{p, at.String()})
		sampling.Go(func() { p.Run(ctx) })
		return p.Handler()
	})
	sampling.Wait()
}

// watchers see how far turns are; nobody does where there is no page.
func (s *pageServer) watchers(c *Config) []watch.StageObserver {
	if c.Admin.Listen == "" {
		return nil
	}
	return []watch.StageObserver{&s.running}
}

// options is what the page shows of the bot.
func (s *pageServer) options() adminpage.Options {
	b, db := s.bot, s.bot.Data.DB
	o := adminpage.Options{
		Log: logs.Room(b.log, "admin"), Turns: b.monitor.traces, Running: &s.running,
		Reader: b.Data.Store, Facts: b.Data.Facts(), Items: b.Data.Items("page"),
		Clock:    func() time.Time { return b.InForce().Config.Clock(b.env.Clock)() }, // a reload may change the zone
		Actions:  s.actions,
		Settings: s.settings,
		Personas: personaEditor{b},
	}
	if db == nil {
		return o
	}
	o.Listing = func(ctx context.Context, l adminpage.Listing) ([]core.Fact, string, error) {
		return db.ListFacts(ctx, memory.Listing{Below: l.Below, About: l.About, Before: l.Before, N: l.N})
	}
	o.Uses = func(ctx context.Context, first, last string) ([]adminpage.Use, error) {
		uses, err := db.Uses(ctx, first, last)
		list := make([]adminpage.Use, len(uses))
		for i, u := range uses {
			cost := b.InForce().Config.Cost(u.Engine, u.Usage)
			list[i] = adminpage.Use{
				Day: u.Day, Whose: u.Person, Engine: u.Engine, Calls: u.Calls, Usage: u.Usage, Cost: cost,
			}
		}
		return list, err
	}
	return o
}

// actions returns the rows of the catalogue.
func (s *pageServer) actions() []adminpage.Action {
	snapshot := s.bot.InForce().Snapshot
	open := Offered(snapshot)
	var list []adminpage.Action
	for _, d := range snapshot.All() {
		list = append(list, adminpage.Action{
			Name: d.Name, Owner: d.Owner, Brief: d.Brief, Permission: string(d.Allows()), Offered: open(d.Name),
			Schema: d.Schema, Help: d.Examples.Description,
		})
	}
	return list
}

// settings returns the settings of a place; for the zero Path those of the configuration.
func (s *pageServer) settings(place core.Path) (rows []adminpage.Setting) {
	if !place.IsZero() {
		for _, row := range s.bot.PlaceSettings(place) {
			rows = append(rows, adminpage.Setting(row))
		}
		return rows
	}
	c := s.bot.InForce().Config
	row := func(name, value string) {
		rows = append(rows, adminpage.Setting{Name: name, Value: value, From: c.File})
	}
	each("", reflect.ValueOf(c).Elem(), row)
	for _, e := range c.Enabled {
		each("interfaces."+e.Name+".", reflect.ValueOf(e.own), row)
	}
	for _, p := range c.Chosen {
		each("plugins."+p.name+".", reflect.ValueOf(p.Own), row)
	}
	return rows
}

// each calls row for each setting of a struct, with its path in the file. Secrets hide
// themselves.
func each(prefix string, v reflect.Value, row func(name, value string)) {
	v = reflect.Indirect(v)
	if v.Kind() != reflect.Struct {
		return
	}
	for i := range v.NumField() {
		f, value := v.Type().Field(i), v.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("toml"), ",")
		switch {
		case !f.IsExported() || name == "-":
		case f.Anonymous && name == "":
			each(prefix, value, row)
		case name != "":
			setting(prefix+name, value, row)
		}
	}
}

// setting calls row for a setting, or for its fields or elements.
func setting(name string, v reflect.Value, row func(name, value string)) {
	if _, ok := v.Interface().(map[string]config.Table); ok {
		return // settings of interfaces and plugins follow
	}
	_, prints := v.Interface().(fmt.Stringer)
	switch {
	case v.Kind() == reflect.Pointer && v.IsNil():
	case v.Kind() == reflect.Pointer && !prints:
		setting(name, v.Elem(), row)
	case v.Kind() == reflect.Struct && !prints:
		each(name+".", v, row)
	case v.Kind() == reflect.Slice && isPlainStruct(v.Type().Elem()):
		for i := range v.Len() {
			setting(fmt.Sprintf("%s[%d]", name, i), v.Index(i), row)
		}
	case v.Kind() == reflect.Map || mayHide(name) && v.Kind() == reflect.Slice:
		row(name, fmt.Sprintf("(%d, not shown)", v.Len()))
	default:
		row(name, credentials.ReplaceAllString(txt.Line(fmt.Sprint(v.Interface())), "//[secret]@"))
	}
}

var (
	stringer = reflect.TypeFor[fmt.Stringer]()
	// credentials matches the user and the password of an address.
	credentials = regexp.MustCompile(`//[^/@\s]+@`)
)

// isPlainStruct reports whether a type is a struct without a text of its own.
func isPlainStruct(t reflect.Type) bool { return t.Kind() == reflect.Struct && !t.Implements(stringer) }

// mayHide reports whether users put secrets into a list of that name.
func mayHide(name string) bool {
	return slices.Contains([]string{"args", "env", "headers", "command"}, name[strings.LastIndexByte(name, '.')+1:])
}

// PageLink returns a link that opens the admin's page, once, within ten minutes.
func (b *Bot) PageLink() (string, error) {
	s, listen := b.page.served.Load(), b.InForce().Config.Admin.Listen
	switch {
	case s == nil && listen == "":
		return "", Usagef("there is no page: set listen in [admin], like 127.0.0.1:8787, and restart the daemon")
	case s == nil:
		const why = "the daemon's log says why, often because another program uses the port"
		return "", fmt.Errorf("the page is not served at %s; %s", listen, why)
	}
	// Browsers do not send what follows #, so that no log has it.
	return fmt.Sprintf("http://%s/login#%s", s.address, s.Ticket()), nil
}
