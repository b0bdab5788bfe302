// Package page is the admin page: what the bot does now, its prompts, its memories, and its costs. It is
// server-rendered HTML that works without scripts and loads nothing from other hosts. A session needs a one-time
// link from the terminal. The page stores only which private conversations admins opened. There is a view for each
// task of admins, and a general one for the lists of plugins. All views share visits, sessions and the filter that
// keeps private conversations closed.
package page

import (
	"embed"
	"io/fs"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"synthbot/admin"
	"synthbot/admin/page/template"
	"synthbot/core"
)

// Options is what a Page shows.
type Options struct {
	Log      *slog.Logger
	Clock    func() time.Time // in the bot's zone
	Turns    *admin.Traces
	Running  *admin.Running
	Lines    *admin.Lines
	Reader   core.Reader
	Facts    core.Facts
	Items    core.Items // stores which private conversations were opened, and why
	Bot      Bot
	Personas Personas
}

// Page is the admin page. Safe for concurrent use.
type Page struct {
	Options
	logins       logins
	streams      chan struct{} // a token for each open live stream
	queue        queue
	templateSets map[string]template.Set
	mux          *http.ServeMux
}

const maxStreams = 16

//go:embed assets/*.css assets/*.js assets/*.svg
var assets embed.FS

//go:embed templates/*.html
var templates embed.FS

// templateSets reads the template of each page, together with the layout and the shared templates.
func templateSets() map[string]template.Set {
	all := make(map[string]template.Set)
	folder, _ := fs.Sub(templates, "templates") // it is part of the program
	pages, _ := fs.Glob(folder, "*.html")
	for _, page := range pages {
		files := []string{"layout.html", "chart.html", "opening.html", "named.html", "list.html", page}
		all[strings.TrimSuffix(page, ".html")] = template.Read(folder, new(Page).functions(nil), files...)
	}
	return all
}

// New makes a page. Handler serves it, and Run samples the queue.
func New(o Options) *Page {
	p := &Page{Options: o, streams: make(chan struct{}, maxStreams), mux: http.NewServeMux()}
	p.logins.clock = o.Clock
	p.logins.tickets, p.logins.sessions = make(map[digest]time.Time), make(map[digest]*session)
	p.templateSets = templateSets()
	p.routes()
	return p
}

// Ticket returns a token for one login within ten minutes.
func (p *Page) Ticket() string { return p.logins.ticket() }

// Handler serves the page.
func (p *Page) Handler() http.Handler { return p.withHeaders(p.mux) }

// routes registers all pages. All but the login need a session.
func (p *Page) routes() {
	p.mux.HandleFunc("GET /assets/", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "private, max-age=3600")
		http.FileServerFS(assets).ServeHTTP(w, r)
	})
	p.mux.HandleFunc("GET /login", p.loginForm)
	p.mux.HandleFunc("POST /login", p.login)
	memories, personas := memoryPages{p}, personaPages{p}
	for pattern, h := range map[string]handler{
		"GET /{$}":               p.now,
		"GET /live":              p.live,
		"GET /turn":              atPlace(p.turn),
		"GET /talk":              p.places,
		"GET /talk/place":        atPlace(p.talk),
		"POST /talk/open":        atPlace(p.open),
		"POST /talk/close":       atPlace(p.close),
		"GET /memories":          atAnyPlace(memories.memories),
		"POST /memories":         memories.search,
		"GET /memories/found":    memories.searchResults,
		"GET /memories/one":      memories.withFact(memories.memory),
		"POST /memories/save":    memories.withFact(memories.saveMemory),
		"POST /memories/drop":    memories.withFact(memories.dropMemory),
		"POST /memories/merge":   memories.withFact(memories.mergeMemory),
		"GET /personas":          personas.personas,
		"GET /personas/one":      personas.withPersona(personas.persona),
		"POST /personas/preview": personas.saveOrPreview(false),
		"POST /personas/save":    personas.saveOrPreview(true),
		"POST /personas/import":  personas.importPersona,
		"POST /personas/remove":  personas.withPersona(personas.removePersona),
		"GET /personas/avatar":   personas.avatar,
		"POST /personas/try":     personas.withPersona(personas.tryPersona),
		"GET /knowledge":         listPages{p}.lists("knowledge", "Knowledge", "/knowledge"),
		"GET /reminders":         listPages{p}.lists("reminders", "Reminders", "/reminders"),
		"GET /charts":            chartPage{p}.charts,
		"GET /catalogue":         atAnyPlace(listPages{p}.catalogue),
		"GET /settings":          atAnyPlace(p.settings),
		"GET /log":               filtered(logPage{p}.log),
		"GET /log/live":          filtered(logPage{p}.live),
		"GET /sessions":          p.sessions,
		"POST /sessions/revoke":  p.revoke,
		"POST /logout":           p.logout,
		"POST /do":               atAnyPlace(p.do),
	} {
		p.mux.Handle(pattern, p.withSession(h))
	}
}

// catalogue shows all actions and what turns them off, in one place, or in all places together with the plugins.
func (p listPages) catalogue(v *visit, place core.Path) (err error) {
	var plugins []List
	back := "/catalogue"
	if !place.IsZero() {
		back += "?place=" + url.QueryEscape(place.String())
	} else if plugins, err = p.shownLists(v, "plugins", back); err != nil {
		return err
	}
	actions := slices.Clone(p.Bot.Actions(place))
	for i := range actions {
		a := &actions[i]
		a.Buttons = shownButtons(&Row{Name: a.Name, Place: place}, a.Buttons, back)
	}
	return p.show(v, "catalogue", "Catalogue", "/catalogue", map[string]any{
		"Place": place, "Plugins": plugins, "Actions": actions,
	})
}

func (p *Page) settings(v *visit, place core.Path) error {
	data := map[string]any{"Place": place, "All": p.Bot.Settings(core.Path{})}
	if !place.IsZero() {
		data["Here"] = p.Bot.Settings(place)
	}
	return p.show(v, "settings", "Settings", "/settings", data)
}
