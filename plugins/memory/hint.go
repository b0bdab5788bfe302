package memory

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"synthbot/core"
	"synthbot/core/hint"
	"synthbot/core/lexicon"
	"synthbot/core/sorting"
	"synthbot/core/txt"
	"synthbot/core/users"
)

const (
	pinnedFrom = 8   // the importance from which on a fact about the author is always shown
	pinnedMax  = 2   // how many such facts are shown
	pinnedLook = 200 // facts about the author that are searched for them
	lookMax    = 20  // facts that a search by words returns
	hintTop    = 100 // priority of the first hint
)

// Recon implements hint.Source: it returns the facts that matter for the message.
func (p *Plugin) Recon(ctx context.Context, s core.Scene) ([]hint.Hint, error) {
	if p.config.Hints == 0 {
		return nil, nil
	}
	found, err := p.pinned(ctx, &s)
	if err != nil {
		return nil, err
	}
	more, err := p.matching(ctx, &s)
	if err != nil {
		return nil, err
	}
	for _, f := range more {
		if !slices.ContainsFunc(found, func(g core.Fact) bool { return g.ID == f.ID }) {
			found = append(found, f)
		}
	}
	here := users.List{Place: s.Path}
	here.Add(s.Author)
	for _, e := range slices.Backward(s.Recent) {
		if !e.Self {
			here.Add(e.Message.Author)
		}
	}
	var hints []hint.Hint
	room := p.config.HintChars
	for i := range found {
		text := p.hint(&found[i], &here)
		room -= utf8.RuneCountInString(text)
		if room < 0 || len(hints) == p.config.Hints {
			break
		}
		hints = append(hints, hint.Hint{Kind: hint.Memory, Text: text, Priority: hintTop - len(hints)})
	}
	return hints, nil
}

func (p *Plugin) pinned(ctx context.Context, s *core.Scene) ([]core.Fact, error) {
	if s.Author.ID == "" || s.Author.Rank == core.RankBot {
		return nil, nil
	}
	person, err := s.Path.Person(s.Author.ID)
	if err != nil {
		return nil, fmt.Errorf("speaker: %w", err)
	}
	found, err := p.host.Facts.Recall(ctx, core.FactQuery{See: s.Sees, About: []core.Path{person}, N: pinnedLook})
	if err != nil {
		return nil, fmt.Errorf("recall: %w", err)
	}
	facts := slices.DeleteFunc(found, func(f core.Fact) bool { return f.Importance < pinnedFrom })
	sorting.SortStable(facts, func(a, b core.Fact) int { return cmp.Compare(b.Importance, a.Importance) })
	return facts[:min(len(facts), pinnedMax)], nil
}

// matching returns the facts that share enough words with the message, those with most first.
func (p *Plugin) matching(ctx context.Context, s *core.Scene) ([]core.Fact, error) {
	words := p.words.Content(s.Text)
	if len(words) == 0 {
		return nil, nil
	}
	ask := lexicon.Telling(words)
	found, err := p.host.Facts.Recall(ctx, core.FactQuery{See: s.Sees, Text: strings.Join(ask, " "), N: lookMax})
	if err != nil {
		return nil, fmt.Errorf("recall: %w", err)
	}
	has := make(map[string]int) // by id
	facts := slices.DeleteFunc(found, func(f core.Fact) bool {
		text := p.words.Content(strings.Join(append([]string{f.Text, f.Topic}, f.Tags...), " "))
		has[f.ID] = lexicon.Shared(ask, text)
		return has[f.ID] < lexicon.Enough(len(ask))
	})
	sorting.SortStable(facts, func(a, b core.Fact) int { return cmp.Compare(has[b.ID], has[a.ID]) })
	return facts, nil
}

const hintMax = 400 // characters of one hint's fact

// hint formats a fact on one line: its text, whom it is about, who stated it, its day and its id.
func (p *Plugin) hint(f *core.Fact, here *users.List) string {
	about := ""
	for _, person := range f.About {
		name := txt.ClipLine(here.Author(person).Name, nameMax)
		if name != "" && !strings.Contains(f.Text, name) {
			about = cmp.Or(about, "about ") + name + ", "
		}
	}
	if !f.By.IsZero() { // else the bot found it itself
		about += "told by " + cmp.Or(txt.ClipLine(here.Author(f.By).Name, nameMax), "somebody else") + ", "
	}
	return fmt.Sprintf("%s (%s%s, id %s)", txt.ClipLine(f.Text, hintMax), about, p.date(f.Time), f.ID)
}
