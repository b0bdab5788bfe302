package knowledge

import (
	"context"
	"fmt"
	"net/http"
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
	offered   *recent.Shared[core.Path, *offer] // to the latest turn, by place

	wake chan struct{} // holds a token if the sources are to be read now

	mu      sync.Mutex
	logged  map[string]string    // faults of documents, by source and name
	read    map[string]time.Time // when pages and feeds were last read, by address
	reading string               // progress of the present reading; "": none is in progress
	synced  time.Time            // when the last reading ended
}

// maxOffers is for how many places offers are remembered.
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

// Name implements core.Plugin.
func (p *Plugin) Name() string { return p.host.Name }

// Actions implements core.Plugin.
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

// visible lists the sources that may be cited in a place.
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

// findLanguages lists the languages of all documents, and caches them.
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
