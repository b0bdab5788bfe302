package lorebook

import (
	"cmp"
	"context"
	"path/filepath"
	"slices"
	"strings"

	"synthbot/core"
	"synthbot/core/hint"
	"synthbot/core/sorting"
)

// Plugin is the plugin. It does not change after New.
type Plugin struct {
	host   core.Host
	config Config
	books  []*volume // of Config.Sources
	cards  []card    // the longest path first
}

// card is a persona's own book.
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

// Name implements core.Plugin.
func (p *Plugin) Name() string { return p.host.Name }

// Actions implements core.Plugin: there are none.
func (p *Plugin) Actions() []core.Action { return nil }

// Bounds of what one turn gets, and of what is searched for it.
const (
	maxTold    = 2000     // bytes
	maxScanned = 16 << 10 // bytes of the latest messages
	hintTop    = 100
)

// booksAt returns the books that are used in a place, and what they call the bot.
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

// Recon implements hint.Source: the lore that the talk touches, the first entry strongest.
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
	chosen = fit(chosen, maxTold, func(e *entry) int { return len(filled(e)) })
	hints := make([]hint.Hint, len(chosen))
	for i, e := range chosen {
		hints[i] = hint.Hint{Kind: hint.Snippet, Text: filled(e), Priority: hintTop - i}
		if e.instruction {
			hints[i].Kind = hint.Instruction
		}
	}
	return hints, nil
}

// window is what was said last, the newest at the end.
func window(s core.Scene, depth int) string {
	texts := []string{s.Text}
	size := len(s.Text)
	for i := range slices.Backward(s.Recent) {
		if len(texts) >= depth || size > maxScanned {
			break
		}
		e := &s.Recent[i]
		if e.Spoken() {
			texts = append(texts, e.Message.Text)
			size += len(e.Message.Text)
		}
	}
	slices.Reverse(texts)
	all := strings.Join(texts, "\n")
	if len(all) > maxScanned {
		all = strings.ToValidUTF8(all[len(all)-maxScanned:], "")
	}
	return all
}

// fit leaves out what exceeds so much: the least important entries first, of equals the last.
func fit(found []*entry, most int, size func(*entry) int) []*entry {
	total := 0
	for _, e := range found {
		total += size(e)
	}
	for total > most {
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

// fill puts names into the places that a text holds for them, in one pass: a
// name that looks like such a place stays as it is.
func fill(text, char, user string) string {
	return strings.NewReplacer(
		"{{char}}", char, "{{Char}}", char, "{{CHAR}}", char, "<BOT>", char, "<CHAR>", char,
		"{{user}}", user, "{{User}}", user, "{{USER}}", user, "<USER>", user,
	).Replace(text)
}
