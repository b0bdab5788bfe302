// Package lorebook adds lore to prompts: entries of books whose keys occur in the latest messages, within a budget. A
// book is the character_book of a character card (V2 or V3), a separate lorebook (lorebook_v3), or a world-info export
// whose entries have numbers. The plugin has no actions and stores nothing.
//
// # How entries are found
//
// The latest messages of the place (the book's scan_depth) are searched for an entry's keys: any of them and, if it is
// selective, one of its secondary keys as well. Keys match parts of words unless the configuration wants whole ones.
// Case counts only if the entry says so. With use_regex, keys are regular expressions of Go, also written as /…/i.
// Constant entries are always added. If a book scans recursively, found entries are searched in turn, a bounded number
// of times. Of the decorators of V3, which precede the content, @@activate, @@dont_activate, @@exclude_keys and @@role
// system are supported; the others are removed.
//
// # What the prompt contains
//
// Entries are hints of kind Snippet; those of @@role system are of kind Instruction, which the model follows. They are
// sorted by insertion_order, lower first. If they exceed the book's token budget, or 2,000 bytes a turn, some are left
// out: first entries of lower priority, then later ones, and constant entries last. {{char}} and {{user}} are replaced.
package lorebook

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"synthbot/core"
	"synthbot/core/hint"
	"synthbot/core/lore"
	"synthbot/core/sorting"
	"synthbot/core/txt"
)

// Plugin is the plugin. It is immutable.
type Plugin struct {
	host   core.Host
	config Config
	books  []*volume // of Config.Sources
	cards  []card    // the longest path first
}

type card struct {
	Card
	*volume
}

// New reads the books. Its error names the first file that cannot be read.
func New(h core.Host, c Config) (*Plugin, error) {
	p := &Plugin{host: h, config: c}
	for _, s := range c.Sources {
		file := s.Path
		if !filepath.IsAbs(file) {
			file = filepath.Join(c.Dir, file)
		}
		b, err := Load(file)
		if err != nil {
			return nil, err
		}
		p.books = append(p.books, p.ready(b, s.Path))
	}
	for _, one := range c.Cards {
		p.cards = append(p.cards, card{one, p.ready(one.Book, one.Char)})
	}
	sorting.SortStable(p.cards, func(a, b card) int { return len(b.Path.String()) - len(a.Path.String()) })
	return p, nil
}

func (p *Plugin) ready(b Book, of string) *volume {
	v, broken := prepare(b, p.config)
	if broken > 0 {
		p.host.Log.Warn("lore keys left out: they are not regular expressions", "name", of, "count", broken)
	}
	return v
}

func (p *Plugin) Name() string { return p.host.Name }

// Actions implements core.Plugin: there are none.
func (p *Plugin) Actions() []core.Action { return nil }

const (
	maxHints   = 2000     // bytes of all hints of a turn
	maxScanned = 16 << 10 // bytes of the latest messages that are searched
	hintTop    = 100      // priority of the first hint
)

// booksAt returns the books that are used in a place, and the bot's name in them.
func (p *Plugin) booksAt(place core.Path) (books []*volume, char string) {
	char = "the bot"
	i := slices.IndexFunc(p.cards, func(c card) bool { return place.Within(c.Path) })
	if i >= 0 {
		books, char = append(books, p.cards[i].volume), p.cards[i].Char
	}
	for i, b := range p.books {
		places := p.config.Sources[i].Places
		if len(places) == 0 || slices.ContainsFunc(places, place.Within) {
			books = append(books, b)
		}
	}
	return books, char
}

// Recon implements hint.Source: it returns the matching entries, with falling priority.
func (p *Plugin) Recon(ctx context.Context, s core.Scene) ([]hint.Hint, error) {
	books, char := p.booksAt(s.Path)
	var chosen []*entry
	for _, v := range books {
		found := p.find(ctx, v, window(s, v.depth))
		chosen = append(chosen, fit(found, v.budget, func(e *entry) int { return e.cost })...)
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	sorting.SortStable(chosen, func(a, b *entry) int { return a.order - b.order })
	filled := func(e *entry) string { return fill(e.text, char, cmp.Or(s.Author.Name, "the person")) }
	chosen = fit(chosen, maxHints, func(e *entry) int { return len(filled(e)) })
	hints := make([]hint.Hint, len(chosen))
	for i, e := range chosen {
		hints[i] = hint.Hint{Kind: hint.Snippet, Text: filled(e), Priority: hintTop - i}
		if e.instruction {
			hints[i].Kind = hint.Instruction
		}
	}
	return hints, nil
}

// window returns the text of the latest messages, the newest at the end.
func window(s core.Scene, depth int) string {
	all := s.Text
	for i := range slices.Backward(s.Recent) {
		e := &s.Recent[i]
		if depth <= 1 || len(all) > maxScanned {
			break
		}
		if e.Spoken() {
			all = e.Message.Text + "\n" + all
			depth--
		}
	}
	if len(all) > maxScanned {
		all = strings.ToValidUTF8(all[len(all)-maxScanned:], "")
	}
	return all
}

// fit drops entries until their total size is at most limit: the least important first, of equals the last.
func fit(found []*entry, limit int, size func(*entry) int) []*entry {
	total := 0
	for _, e := range found {
		total += size(e)
	}
	for total > limit {
		least := 0
		for i, e := range found {
			l := found[least]
			if e.constant == l.constant && e.priority <= l.priority || !e.constant && l.constant {
				least = i
			}
		}
		total -= size(found[least])
		found = slices.Delete(found, least, least+1)
	}
	return found
}

// fill replaces the placeholders for names in one pass, so that placeholders within names are not replaced.
func fill(text, char, user string) string {
	return strings.NewReplacer(
		"{{char}}", char, "{{Char}}", char, "{{CHAR}}", char, "<BOT>", char, "<CHAR>", char,
		"{{user}}", user, "{{User}}", user, "{{USER}}", user, "<USER>", user,
	).Replace(text)
}

// Config is the table [plugins.lorebook].
type Config struct {
	Sources   []Source `toml:"book" doc:"A lorebook in addition to that of the persona's card."`
	Depth     int      `toml:"depth" default:"4" min:"1" max:"50" doc:"How many of the latest messages are searched for keys, unless the book says otherwise."`
	Budget    int      `toml:"budget" default:"400" min:"20" max:"1000" doc:"How much of a book a prompt contains at most, in tokens. A book can say less."`
	Rounds    int      `toml:"rounds" default:"3" min:"0" max:"10" doc:"How often entries that were found are searched for further keys, in recursive books."`
	WordsOnly bool     `toml:"words_only" default:"false" doc:"Whether keys match whole words only. Otherwise they match parts of words, as most books expect."`

	// Dir is the folder to which relative paths refer; "": the working directory.
	Dir string
	// Cards are the books of the personas' own cards.
	Cards []Card
}

// Source is a book in a file.
type Source struct {
	Path   string      `toml:"path" kind:"file" required:"true" example:"lore/harbour.json" doc:"A character card or lorebook (.json), relative to the configuration file."`
	Places []core.Path `toml:"places" kind:"place" example:"discord/81384788765712384" doc:"The places where it is used, with all places below them; empty: everywhere."`
}

// Card is the book of a persona, for the places at or below Path. If several match,
// the one with the longest path is used.
type Card struct {
	Path core.Path
	Char string // replaces {{char}}
	Book Book   // without entries: the persona has none
}

// The parts of a book are defined in core.
type (
	Book  = lore.Book
	Entry = lore.Entry
)

// Limits of a book.
const (
	maxFile    = 8 << 20
	maxEntries = 5000
	maxKeys    = 200  // of an entry
	maxKey     = 300  // bytes
	maxContent = 1900 // bytes; more would exceed maxHints
)

// Load reads a book from a file. The error names the file.
func Load(file string) (Book, error) {
	f, err := os.Open(file)
	if err != nil {
		return Book{}, fmt.Errorf("lorebook: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return Book{}, fmt.Errorf("lorebook: %w", err)
	}
	b, err := Read(data)
	if err != nil {
		return Book{}, fmt.Errorf("lorebook %s: %w", filepath.Base(file), err)
	}
	return b, nil
}

// Read parses a lorebook, or the book of a card.
func Read(data []byte) (Book, error) {
	if len(data) > maxFile {
		return Book{}, fmt.Errorf("is over %d MiB", maxFile>>20)
	}
	data = bytes.TrimPrefix(data, []byte("\uFEFF"))
	var top struct {
		Book    json.RawMessage `json:"character_book"`
		Data    json.RawMessage `json:"data"`
		Entries json.RawMessage `json:"entries"`
	}
	if err := json.Unmarshal(data, &top); err != nil {
		return Book{}, fmt.Errorf("is not JSON: %w", err)
	}
	if top.Entries == nil && top.Book == nil && top.Data != nil {
		data = top.Data
		if json.Unmarshal(data, &top) == nil && top.Book != nil {
			top.Entries = nil // character_book takes precedence
		}
	}
	if top.Entries == nil {
		data = top.Book
	}
	b, err := lore.Read(data)
	if err != nil || len(b.Entries) == 0 {
		return Book{}, errors.New("contains no lore: neither entries nor a character_book with entries")
	}
	return b, nil
}

func clean(s string, limit int) string { return txt.ClipBytes(strings.TrimSpace(txt.Lines(s)), limit) }
