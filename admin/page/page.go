// Package page is the admin's page: what the bot does now, what it was told to
// do it, what it keeps, and what it costs. It is server-rendered HTML that works
// without scripts, asks nothing of any other host, and is closed to whoever does
// not come with a one-time link from the terminal. It decides nothing about
// turns, and keeps nothing but who looked into which private conversation.
package page

import (
	"context"
	"embed"
	"encoding/json"
	"io/fs"
	"log/slog"
	"net/http"
	"time"

	"synthbot/core"
	"synthbot/core/llm"
	"synthbot/core/watch"
)

// Turns are the latest turns of the bot. Safe for concurrent use.
type Turns interface {
	// Recent returns the newest turns, at most n, newest first.
	Recent(n int) []watch.TurnEnd
	// Last returns the newest turn that meant accepts.
	Last(meant func(*watch.TurnEnd) bool) (watch.TurnEnd, bool)
	// Subscribe returns a channel of the turns that end from now on; what it has
	// no room for is left out. done ends it.
	Subscribe(room int) (ends <-chan watch.TurnEnd, done func())
}

// Running are the turns that run now. Safe for concurrent use.
type Running interface {
	// Now returns them, the one that began first coming first.
	Now() []watch.TurnStage
	// Changes returns a channel that holds a token when Now has changed since the
	// last one was taken. done ends it.
	Changes() (changes <-chan struct{}, done func())
}

// Listing asks for a page of facts, newest first.
type Listing struct {
	Below, About core.Path // zero: anywhere, anybody
	Before       string    // the ID of the last one of the page before
	N            int
}

// Use is what was spent on a day with an engine. Each use is there twice: for a
// place, and for the person who caused it.
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
	Offered                        bool // to an ordinary person
	Schema                         json.RawMessage
	Help                           string
}

// Setting is one row of the settings in effect.
type Setting struct{ Name, Value, From string }

// File is a persona's file. ID is the caller's, and stands in URLs.
type File struct {
	ID, Name, Path string
	Editable       bool // it is text that can be written
}

// Personas are the persona files of the configuration. An error of Preview and
// Save is told to the admin.
type Personas interface {
	Files() []File
	// Source returns a file's text.
	Source(id string) (text string, err error)
	// Preview returns the persona that the text would make.
	Preview(id, text string) (core.Persona, error)
	// Save writes the text in place of was, if that is still what is there, and
	// lets it take effect.
	Save(id, text, was string) error
}

// Options is what a Page shows. All but Personas, Listing, Uses, Actions and
// Settings is required; a page about what is missing says so.
type Options struct {
	Log      *slog.Logger
	Clock    func() time.Time // in the bot's zone
	Turns    Turns
	Running  Running
	Reader   core.Reader
	Facts    core.Facts
	Items    core.Items // keeps who opened which private conversation, and why
	Listing  func(ctx context.Context, l Listing) (facts []core.Fact, next string, err error)
	Uses     func(ctx context.Context, first, last string) ([]Use, error)
	Actions  func() []Action
	Settings func(place core.Path) []Setting // of a place; of the zero Path: the configuration
	Personas Personas
}

// Page is the admin's page. Safe for concurrent use.
type Page struct {
	Options
	doors   doors
	streams chan struct{} // one token for each live stream that is open
	queue   queue
	sheets  map[string]book
	mux     *http.ServeMux
}

// maxStreams is how many live streams may be open at once.
const maxStreams = 16

//go:embed assets/*.css assets/*.js assets/*.svg
var assets embed.FS

//go:embed templates/*.html
var templates embed.FS

// New makes a page. It serves when Handler is served, and samples the queue
// while Run runs.
func New(o Options) *Page {
	p := &Page{Options: o, streams: make(chan struct{}, maxStreams), mux: http.NewServeMux()}
	p.doors.clock = o.Clock
	p.sheets = sheets()
	p.routes()
	return p
}

// Ticket returns a token that lets whoever holds it in, once, within ten minutes.
func (p *Page) Ticket() string { return p.doors.ticket() }

// Handler serves the page.
func (p *Page) Handler() http.Handler { return p.guarded(p.mux) }

// routes are all there is; what is not open asks for a session.
func (p *Page) routes() {
	static, err := fs.Sub(assets, "assets")
	if err != nil {
		panic(err) // the folder is part of the program
	}
	p.mux.Handle("GET /assets/", http.StripPrefix("/assets/", cached(http.FileServerFS(static))))
	p.mux.HandleFunc("GET /login", p.loginForm)
	p.mux.HandleFunc("POST /login", p.login)
	for pattern, h := range map[string]handler{
		"GET /{$}":               p.now,
		"GET /live":              p.live,
		"GET /turn":              p.turn,
		"GET /talk":              p.places,
		"GET /talk/place":        p.talk,
		"POST /talk/open":        p.open,
		"POST /talk/close":       p.close,
		"GET /memories":          p.memories,
		"POST /memories":         p.search,
		"GET /memories/found":    p.foundOnes,
		"GET /memories/one":      p.memory,
		"POST /memories/save":    p.saveMemory,
		"POST /memories/drop":    p.dropMemory,
		"GET /personas":          p.personas,
		"GET /personas/one":      p.persona,
		"POST /personas/preview": p.previewPersona,
		"POST /personas/save":    p.savePersona,
		"GET /charts":            p.charts,
		"GET /catalogue":         p.catalogue,
		"GET /settings":          p.settings,
		"GET /sessions":          p.sessions,
		"POST /sessions/revoke":  p.revoke,
		"POST /logout":           p.logout,
	} {
		p.mux.Handle(pattern, p.inside(h))
	}
}

// cached lets a browser keep what is part of the program for an hour.
func cached(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "private, max-age=3600")
		h.ServeHTTP(w, r)
	})
}
