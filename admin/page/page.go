// Package page is the admin's page: what the bot does now, its prompts, its memories, and its
// costs. It is server-rendered HTML that works without scripts and loads nothing from other
// hosts. A session needs a one-time link from the terminal. The page stores only which private
// conversations admins opened.
package page

import (
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"io/fs"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"synthbot/admin"
	"synthbot/admin/page/template"
	"synthbot/core"
	"synthbot/core/llm"
)

// Listing asks for a page of facts, newest first.
type Listing struct {
	Below, About core.Path // zero: all places, all users
	Before       string    // the ID of the last one of the former page
	N            int
}

// Use is the use of an engine on a day. Each use is listed twice: for a place, and for the user
// who caused it.
type Use struct {
	Day    string // 2006-01-02
	Whose  core.Path
	Engine string
	Calls  int
	llm.Usage
	Cost float64
}

// Action is one row of the catalogue.
type Action struct {
	Name, Owner, Brief, Permission string
	Offered                        bool // to users without a rank
	Schema                         json.RawMessage
	Help                           string
}

// Setting is one row of the settings in effect.
type Setting struct{ Name, Value, From string }

// File is a persona file. ID is the caller's; URLs contain it.
type File struct {
	ID, Name, Path string
	Text           string // "" if it is not text
	Editable       bool   // it is text that can be written
}

// Personas are the persona files of the configuration. Errors of Preview and Save are shown to the admin.
type Personas interface {
	Files() []File
	// Preview returns the persona of a text.
	Preview(id, text string) (core.Persona, error)
	// Save replaces the text was, if the file still contains it, and puts the new one in force.
	Save(id, text, was string) error
}

// Options is what a Page shows.
type Options struct {
	Log      *slog.Logger
	Clock    func() time.Time // in the bot's zone
	Turns    *admin.Traces
	Running  *admin.Running
	Reader   core.Reader
	Facts    core.Facts
	Items    core.Items // stores which private conversations were opened, and why
	Listing  func(ctx context.Context, l Listing) (facts []core.Fact, next string, err error)
	Uses     func(ctx context.Context, first, last string) ([]Use, error)
	Actions  func() []Action
	Settings func(place core.Path) []Setting // of a place; of the zero Path: the configuration
	Personas Personas
}

// Page is the admin's page. Safe for concurrent use.
type Page struct {
	Options
	logins  logins
	streams chan struct{} // a token for each open live stream
	queue   queue
	sheets  map[string]template.Set
	mux     *http.ServeMux
}

// maxStreams is how many live streams may be open at once.
const maxStreams = 16

//go:embed assets/*.css assets/*.js assets/*.svg
var assets embed.FS

//go:embed templates/*.html
var templates embed.FS

// sheets reads all templates, each with the layout and what several of them use.
func sheets() map[string]template.Set {
	all := make(map[string]template.Set)
	entries, err := templates.ReadDir("templates")
	if err != nil {
		panic(err) // the folder is part of the program
	}
	common := []string{"templates/layout.html", "templates/chart.html", "templates/opening.html"}
	for _, e := range entries {
		files := append(slices.Clone(common), "templates/"+e.Name())
		all[strings.TrimSuffix(e.Name(), ".html")] = template.Read(templates, files...)
	}
	return all
}

// New makes a page. Handler serves it, and Run samples the queue.
func New(o Options) *Page {
	p := &Page{Options: o, streams: make(chan struct{}, maxStreams), mux: http.NewServeMux()}
	p.logins.clock = o.Clock
	p.sheets = sheets()
	p.routes()
	return p
}

// Ticket returns a token for one login within ten minutes.
func (p *Page) Ticket() string { return p.logins.ticket() }

// Handler serves the page.
func (p *Page) Handler() http.Handler { return p.guarded(p.mux) }

// routes registers all pages. All but the login need a session.
func (p *Page) routes() {
	static, err := fs.Sub(assets, "assets")
	if err != nil {
		panic(err) // the folder is part of the program
	}
	p.mux.Handle("GET /assets/", http.StripPrefix("/assets/", cached(http.FileServerFS(static))))
	p.mux.HandleFunc("GET /login", p.loginForm)
	p.mux.HandleFunc("POST /login", p.login)
	memories, personas := memoryPages{p}, personaPages{p}
	for pattern, h := range map[string]handler{
		"GET /{$}":               p.now,
		"GET /live":              p.live,
		"GET /turn":              p.turn,
		"GET /talk":              p.places,
		"GET /talk/place":        p.talk,
		"POST /talk/open":        p.open,
		"POST /talk/close":       p.close,
		"GET /memories":          memories.memories,
		"POST /memories":         memories.search,
		"GET /memories/found":    memories.foundOnes,
		"GET /memories/one":      memories.memory,
		"POST /memories/save":    memories.saveMemory,
		"POST /memories/drop":    memories.dropMemory,
		"GET /personas":          personas.personas,
		"GET /personas/one":      personas.persona,
		"POST /personas/preview": personas.previewPersona,
		"POST /personas/save":    personas.savePersona,
		"GET /charts":            chartPage{p}.charts,
		"GET /catalogue":         p.catalogue,
		"GET /settings":          p.settings,
		"GET /sessions":          p.sessions,
		"POST /sessions/revoke":  p.revoke,
		"POST /logout":           p.logout,
	} {
		p.mux.Handle(pattern, p.inside(h))
	}
}

// cached lets a browser cache an asset for an hour.
func cached(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "private, max-age=3600")
		h.ServeHTTP(w, r)
	})
}

func (p *Page) catalogue(v *visit) error {
	type shown struct {
		Action
		Pretty string
	}
	var rows []shown
	for _, a := range p.Actions() {
		var b bytes.Buffer
		if json.Indent(&b, a.Schema, "", "  ") != nil {
			b.Reset()
		}
		rows = append(rows, shown{a, b.String()})
	}
	return p.show(v, "catalogue", "Catalogue", "/catalogue", rows)
}

// settings shows the settings of the configuration and of a place.
func (p *Page) settings(v *visit) error {
	data := map[string]any{"Place": "", "All": p.Settings(core.Path{})}
	text := v.URL.Query().Get("place")
	if text != "" {
		place, err := v.place(text)
		if err != nil {
			return err
		}
		data["Place"], data["Here"] = text, p.Settings(place)
	}
	return p.show(v, "settings", "Settings", "/settings", data)
}
