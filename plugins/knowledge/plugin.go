// Package knowledge lets the bot answer from documents: folders, web pages, feeds, and what users teach it.
// Documents are cut into passages by their structure, and the store's index finds passages by words and by
// meaning. Before a turn, matching passages are offered to the model, which cites them by short marks. In
// answers, marks become links or file names. Marks of passages that were not offered are removed.
//
// # Access
//
// A source lists the places where it may be cited. Every search is limited to the sources that are visible in
// the place of the turn. What is taught in a group is visible in that group; what an admin teaches in private
// is visible everywhere.
//
// # Documents are untrusted
//
// The text of a document is data. It is marked as such in prompts, and a turn that has read it is under the rules for
// foreign text. A file that cannot be read, or exceeds a limit, is logged once, and read again when it changes.
//
// # Storage
//
// The index is derived from the sources and can be rebuilt. A taught entry is an item ("entry ID") without a
// path or, if it repeats a user's message, under the path of that user. Who taught it is stored under the
// teacher's path. Unanswered questions are stored under the path of the asker, with a mark under their place.
// So all of this is shown to these users, and erased with them or the place.
package knowledge

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"synthbot/core"
	"synthbot/core/lexicon"
	"synthbot/core/loop"
	"synthbot/core/outbound"
	"synthbot/core/passage"
	"synthbot/core/recent"
	"synthbot/core/recon"
	"synthbot/core/txt"
)

// Plugin is the knowledge plugin. Safe for concurrent use.
type Plugin struct {
	core.Alone
	host      core.Host
	config    Config
	words     lexicon.Lexicon
	language  *recon.Local
	client    *http.Client
	syncing   chan struct{} // holds a token while sources are read
	languages atomic.Pointer[[]string]
	offered   *recent.Shared[core.Path, *offer] // what the latest turn of a place was offered

	wake chan struct{} // holds a token if the sources are to be read now

	mu      sync.Mutex
	logged  map[string]string    // faults of documents, by source and name
	read    map[string]time.Time // when pages and feeds were last read, by address
	reading string               // progress of the present reading; "": none is in progress
	synced  time.Time            // when the last reading ended
}

const maxOffers = 1024

// New returns the plugin. It does not read the sources yet.
func New(h core.Host, c Config) (*Plugin, error) {
	client := outbound.New(outbound.Options{
		Allow: c.Allow, Timeout: c.Timeout, MaxBody: maxPageBody, Redirects: maxRedirects, Elsewhere: true,
	})
	return &Plugin{
		host: h, config: c, client: client, words: lexicon.New(), language: recon.New(),
		syncing: make(chan struct{}, 1), wake: make(chan struct{}, 1),
		offered: recent.NewShared[core.Path, *offer](maxOffers),
		logged:  make(map[string]string), read: make(map[string]time.Time),
	}, nil
}

func (p *Plugin) Name() string { return p.host.Name }

func (p *Plugin) Actions() []core.Action { return []core.Action{p.searchAction(), p.escalateAction()} }

// Run implements core.Runner: it reads the sources and, from time to time, their changes.
func (p *Plugin) Run(ctx context.Context) error {
	loop.Repeat(ctx, p.wake, func() time.Duration {
		began := time.Now()
		if _, err := p.Sync(ctx, nil); err != nil && ctx.Err() == nil {
			p.host.Log.Warn("documents not read", "err", err)
		}
		return max(p.config.Every, 20*time.Since(began))
	})
	return nil
}

// taught is the source of taught entries that are visible everywhere. Each group has its own; see taughtIn.
const taught = "taught"

// taughtIn returns the source of entries that are visible in a group; the zero Path stands for everywhere.
func taughtIn(group core.Path) string {
	if group.IsZero() {
		return taught
	}
	return taught + " " + group.String()
}

func (p *Plugin) visible(place core.Path) (sources []string) {
	for _, s := range p.config.Sources {
		if len(s.Places) == 0 || slices.ContainsFunc(s.Places, place.Within) {
			sources = append(sources, s.Name)
		}
	}
	sources = append(sources, taught)
	for group := place; !group.IsZero(); group = group.Parent() {
		sources = append(sources, taughtIn(group))
	}
	return sources
}

// find returns the n most relevant passages for a text, best first; none if the text has no meaningful words.
func (p *Plugin) find(
	ctx context.Context, sources []string, text string, mode passage.Mode, n int,
) ([]passage.Match, error) {
	words := lexicon.Telling(p.words.Content(text))
	if len(words) == 0 || p.host.Passages == nil {
		return nil, nil
	}
	languages := p.languages.Load()
	if languages == nil {
		found, err := p.findLanguages(ctx)
		if err != nil {
			return nil, err
		}
		languages = &found
	}
	found, err := p.host.Passages.Find(ctx, passage.Query{
		Sources: sources, Text: strings.Join(words, " "), Languages: *languages, Mode: mode, N: n,
	})
	if err != nil {
		return nil, fmt.Errorf("find: %w", err)
	}
	return found, nil
}

// languageOf returns the language whose stems index a text: the bot's if the text is too short or mixed to tell.
func (p *Plugin) languageOf(text string) string {
	return cmp.Or(p.language.LanguageOf(text), p.host.Language)
}

func (p *Plugin) findLanguages(ctx context.Context) (languages []string, err error) {
	sources, err := p.host.Passages.Sources(ctx)
	if err != nil {
		return nil, fmt.Errorf("sources: %w", err)
	}
	for _, source := range sources {
		documents, err := p.host.Passages.Documents(ctx, source)
		if err != nil {
			return nil, fmt.Errorf("documents: %w", err)
		}
		for _, d := range documents {
			if d.Language != "" && !slices.Contains(languages, d.Language) {
				languages = append(languages, d.Language)
			}
		}
	}
	slices.Sort(languages)
	p.languages.Store(&languages)
	return languages, nil
}

// Config is the table [plugins.knowledge].
type Config struct {
	Sources  []Source        `toml:"source" doc:"Documents that the bot answers from."`
	Escalate core.Path       `toml:"escalate" kind:"place" example:"discord/81384788765712384/81384788765712999" doc:"The place in which the bot asks users the questions that no document answers; empty: they are only listed."`
	Teach    string          `toml:"teach" default:"moderators" oneof:"everyone|moderators|admins" doc:"Who may add to the knowledge from the chat (/teach)."`
	Passages int             `toml:"passages" default:"4" min:"0" max:"20" doc:"How many passages of documents a prompt contains at most."`
	Chars    int             `toml:"chars" default:"2400" min:"200" max:"12000" doc:"The maximum length of these passages together, in characters."`
	Every    time.Duration   `toml:"every" default:"15s" min:"1s" max:"24h" doc:"How often folders are looked through for changes."`
	Refresh  time.Duration   `toml:"refresh" default:"1h" min:"1m" max:"720h" doc:"How often web pages and feeds are read again."`
	Allow    []outbound.Peer `toml:"allow" example:"wiki.lan, 10.0.0.5:8080" doc:"Private addresses, ranges or names that may be read."`
	Timeout  time.Duration   `toml:"timeout" default:"20s" min:"1s" max:"5m" doc:"How long reading one web page or one file may take."`

	// Dir is the folder to which relative paths refer; "": the working directory.
	Dir string
}

// Source is a table [[plugins.knowledge.source]].
type Source struct {
	Name   string      `toml:"name" required:"true" example:"handbook" doc:"Its name, of a-z, 0-9, _ and -."`
	Path   string      `toml:"path" kind:"file" example:"docs" doc:"A folder or a file (.md, .txt, .html, .pdf, .docx), relative to the configuration file. It is watched."`
	URLs   []string    `toml:"urls" example:"https://example.org/faq" doc:"Web pages."`
	Feed   string      `toml:"feed" example:"https://example.org/feed.xml" doc:"A feed (RSS or Atom)."`
	Places []core.Path `toml:"places" kind:"place" example:"discord/81384788765712384" doc:"The places where it may be cited, with all places below them; empty: everywhere."`
}

// Check implements the configuration's own check.
func (c *Config) Check(fault func(text string, at ...any)) {
	var names []string
	for i, s := range c.Sources {
		switch {
		case !txt.IsName(s.Name, 64, "-"):
			fault("is not a name of a-z, 0-9, _ and -", "source", i, "name")
		case s.Name == taught:
			fault("is the name of what users teach; take another", "source", i, "name")
		case slices.Contains(names, s.Name):
			fault("is the name of another source", "source", i, "name")
		case s.Path == "" && len(s.URLs) == 0 && s.Feed == "":
			fault("has no documents; set path, urls or feed", "source", i)
		}
		names = append(names, s.Name)
		for k, address := range s.URLs {
			if !isAddress(address) {
				fault("is not an address; write it as https://example.org/page", "source", i, "urls", k)
			}
		}
		if s.Feed != "" && !isAddress(s.Feed) {
			fault("is not an address; write it as https://example.org/feed.xml", "source", i, "feed")
		}
	}
}

func isAddress(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != "" && u.User == nil
}
