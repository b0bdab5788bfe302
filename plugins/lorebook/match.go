package lorebook

import (
	"cmp"
	"context"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"unicode/utf8"

	"synthbot/core/sorting"
	"synthbot/core/txt"
)

// volume is a book that is prepared for searches.
type volume struct {
	depth     int // messages
	budget    int // tokens
	recursive bool
	entries   []*entry
}

type entry struct {
	text        string
	keys        []key
	secondary   []key // one of them must also occur, unless empty
	exclude     []key // none of them may occur
	constant    bool  // always added
	instruction bool  // the model must follow it, not only know it
	order       int
	priority    int
	cost        int // tokens
}

// key is searched for in texts.
type key struct {
	words string         // in lower case, unless exact
	exact bool           // case-sensitive
	re    *regexp.Regexp // instead of words
}

// Limits of one book. Regular expressions are large and slow.
const (
	maxAllKeys     = 20_000
	maxExpressions = 1000
	maxProgram     = 500 // instructions of one compiled expression
	maxDepth       = 50  // messages
)

// reader converts a book to a volume.
type reader struct {
	keys, expressions int // that the book may still have
	broken            int // keys that cannot be used
}

// prepare converts a book to a volume, and counts the keys that cannot be used.
func prepare(b Book, c Config) (v *volume, broken int) {
	v = &volume{
		depth: min(b.ScanDepth, maxDepth), budget: min(b.TokenBudget, c.Budget), recursive: b.Recursive,
	}
	if b.ScanDepth <= 0 {
		v.depth = c.Depth
	}
	if b.TokenBudget <= 0 {
		v.budget = c.Budget
	}
	r := reader{keys: maxAllKeys, expressions: maxExpressions}
	for i := range b.Entries[:min(len(b.Entries), maxEntries)] {
		if !b.Entries[i].Enabled {
			continue
		}
		e := r.entry(&b.Entries[i])
		if e.text != "" && (e.constant || len(e.keys) > 0) {
			v.entries = append(v.entries, e)
		}
	}
	sorting.SortStable(v.entries, func(a, b *entry) int { return cmp.Compare(a.order, b.order) })
	return v, r.broken
}

// entry converts an entry. It has no keys if it is never added. Lines before the content that begin
// with @@ are decorators of V3.
func (r *reader) entry(from *Entry) *entry {
	e := &entry{constant: from.Constant, order: from.Order, priority: from.Priority}
	never := false
	content := strings.TrimLeft(from.Content, " \t\r\n")
	for strings.HasPrefix(content, "@@") {
		line, rest, _ := strings.Cut(content, "\n")
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch name {
		case "@@activate", "@@constant":
			e.constant = true
		case "@@dont_activate":
			never = true
		case "@@role":
			e.instruction = strings.TrimSpace(value) == "system"
		case "@@exclude_keys":
			broken := r.broken
			e.exclude = append(e.exclude, r.keysOf(strings.Split(value, ","), from)...)
			r.broken = broken // only an entry's own keys count
		}
		content = strings.TrimLeft(rest, " \t\r\n")
	}
	e.text = clean(content, maxContent)
	e.cost = tokens(e.text)
	if never {
		e.constant = false
		return e
	}
	e.keys = r.keysOf(from.Keys, from)
	if from.Selective && len(from.SecondaryKeys) > 0 {
		e.secondary = r.keysOf(from.SecondaryKeys, from)
		if len(e.secondary) == 0 {
			e.keys = nil
		}
	}
	return e
}

func (r *reader) keysOf(texts []string, e *Entry) (keys []key) {
	for _, t := range texts[:min(len(texts), maxKeys)] {
		t = clean(t, maxKey)
		if t == "" {
			continue
		}
		k := key{words: t, exact: e.CaseSensitive}
		if !k.exact {
			k.words = strings.ToLower(t)
		}
		r.keys--
		if e.Regex {
			r.expressions--
		}
		if e.Regex && r.expressions >= 0 {
			k.re = expression(t, e.CaseSensitive)
		}
		if r.keys < 0 || e.Regex && k.re == nil {
			r.broken++
			continue
		}
		keys = append(keys, k)
	}
	return keys
}

// expression compiles a key. It returns nil if the key is not a regular expression, or a
// large one: the time to match grows with its size.
func expression(text string, exact bool) *regexp.Regexp {
	end := strings.LastIndexByte(text, '/')
	if strings.HasPrefix(text, "/") && end > 0 {
		flags := text[end+1:]
		exact = !strings.Contains(flags, "i")
		text = text[1:end]
		if strings.Contains(flags, "s") {
			text = "(?s)" + text
		}
	}
	if !exact {
		text = "(?i)" + text
	}
	parsed, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil || len(program.Inst) > maxProgram {
		return nil
	}
	re, _ := regexp.Compile(text) // nil with an error
	return re
}

// scan is a text in which keys are searched for.
type scan struct {
	text, lower string
	whole       bool        // match only whole words
	over        func() bool // returns true if the search must end
}

func (s *scan) matches(e *entry) bool {
	return slices.ContainsFunc(e.keys, s.has) && !slices.ContainsFunc(e.exclude, s.has) &&
		(len(e.secondary) == 0 || slices.ContainsFunc(e.secondary, s.has))
}

func (s *scan) has(k key) bool {
	text := s.lower
	if k.exact {
		text = s.text
	}
	switch {
	case k.re != nil:
		return !s.over() && k.re.MatchString(s.text)
	case !s.whole:
		return strings.Contains(text, k.words)
	}
	for range txt.Words(text, k.words) {
		return true
	}
	return false
}

const maxFound = 100 // how many entries one search returns

// find returns the entries that match a text, in their order. In recursive books, it also searches
// the entries that it found.
func (p *Plugin) find(ctx context.Context, v *volume, text string) []*entry {
	found := make(map[*entry]bool)
	for rounds := p.config.Rounds; ctx.Err() == nil; rounds-- {
		s := scan{text, strings.ToLower(text), p.config.WordsOnly, func() bool { return ctx.Err() != nil }}
		before := len(found)
		for _, e := range v.entries {
			if !found[e] && len(found) < maxFound && (e.constant || s.matches(e)) {
				found[e] = true
				text += "\n" + e.text
			}
		}
		if len(found) == before || !v.recursive || rounds <= 0 {
			break
		}
	}
	return slices.DeleteFunc(slices.Clone(v.entries), func(e *entry) bool { return !found[e] })
}

// tokens estimates the number of tokens of a text: one for four ASCII characters, or for two others.
func tokens(text string) int {
	ascii := 0
	for _, r := range text {
		if r < utf8.RuneSelf {
			ascii++
		}
	}
	other := utf8.RuneCountInString(text) - ascii
	return (ascii+3)/4 + (other+1)/2
}
