package lorebook

import (
	"cmp"
	"context"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// volume is a book, ready to be searched.
type volume struct {
	name      string
	depth     int // messages
	budget    int // tokens
	recursive bool
	entries   []*entry
}

// entry is a piece of lore, ready to be looked for.
type entry struct {
	text      string
	keys      []key
	secondary []key // nil: none is needed
	exclude   []key
	constant  bool
	order     int
	priority  int
	cost      int // tokens

	instruction bool // to be followed; else to be known
}

// key is what is looked for in a text.
type key struct {
	words string         // in small letters, unless exact
	exact bool           // case counts
	whole bool           // it must be a whole word
	re    *regexp.Regexp // in place of words
}

// prepare makes a volume of a book, and counts the keys that should be regular expressions
// and are not.
func prepare(b Book, c Config) (v *volume, broken int) {
	v = &volume{
		name: b.Name, depth: within(b.ScanDepth, 50, c.Depth), budget: within(b.TokenBudget, c.Budget, c.Budget),
		recursive: b.Recursive,
	}
	left := room{keys: maxAllKeys, expressions: maxExpressions}
	for i := range b.Entries[:min(len(b.Entries), maxEntries)] {
		e := &b.Entries[i]
		if e.Enabled {
			one, bad := prepareEntry(e, c.WordsOnly, &left)
			broken += bad
			if one.text != "" && (one.constant || len(one.keys) > 0) {
				v.entries = append(v.entries, one)
			}
		}
	}
	slices.SortStableFunc(v.entries, func(a, b *entry) int { return cmp.Compare(a.order, b.order) })
	return v, broken
}

// Bounds of what is looked for in one book: expressions are large, and slow.
const (
	maxAllKeys     = 20_000
	maxExpressions = 1000
	maxProgram     = 500 // steps of one expression
)

// room is how many keys a book may still have.
type room struct{ keys, expressions int }

// within is what a book says, at most as much as is allowed; or, where it says
// nothing, what is usual.
func within(said, most, usual int) int {
	if said <= 0 {
		return usual
	}
	return min(said, most)
}

func prepareEntry(e *Entry, whole bool, left *room) (one *entry, broken int) {
	d := decorators{constant: e.Constant}
	content := d.read(e.Content)
	one = &entry{
		text: clean(content, maxContent), constant: d.constant && !d.never, order: e.Order, priority: e.Priority,
		instruction: d.instruction,
	}
	one.cost = tokens(one.text)
	if d.never {
		return one, 0
	}
	one.keys, broken = keysOf(e.Keys, e, whole, left)
	one.exclude, _ = keysOf(d.exclude, e, whole, left)
	if e.Selective && len(e.SecondaryKeys) > 0 {
		var bad int
		one.secondary, bad = keysOf(e.SecondaryKeys, e, whole, left)
		broken += bad
		if len(one.secondary) == 0 {
			one.keys = nil // it can never come up
		}
	}
	return one, broken
}

// decorators are the lines of V3 that precede the content.
type decorators struct {
	constant, never, instruction bool

	exclude []string
}

// read takes the decorators off and returns what is left.
func (d *decorators) read(content string) string {
	content = strings.TrimLeft(content, " \t\r\n")
	for strings.HasPrefix(content, "@@") {
		line, rest, _ := strings.Cut(content, "\n")
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch name {
		case "@@activate", "@@constant":
			d.constant = true
		case "@@dont_activate":
			d.never = true
		case "@@role":
			d.instruction = strings.TrimSpace(value) == "system"
		case "@@exclude_keys":
			for k := range strings.SplitSeq(value, ",") {
				k = clean(k, maxKey)
				if k != "" {
					d.exclude = append(d.exclude, k)
				}
			}
		}
		content = strings.TrimLeft(rest, " \t\r\n")
	}
	return content
}

// keysOf makes keys of texts, and counts those that cannot be used.
func keysOf(texts []string, e *Entry, whole bool, left *room) (keys []key, broken int) {
	for _, t := range texts[:min(len(texts), maxKeys)] {
		t = clean(t, maxKey)
		if t == "" {
			continue
		}
		if left.keys--; left.keys < 0 {
			broken++
			continue
		}
		k := key{words: t, exact: e.CaseSensitive, whole: whole}
		if e.Regex {
			if left.expressions--; left.expressions >= 0 {
				k.re = expression(t, e.CaseSensitive)
			}
			if k.re == nil {
				broken++
				continue
			}
		}
		if !k.exact {
			k.words = strings.ToLower(t)
		}
		keys = append(keys, k)
	}
	return keys, broken
}

// expression compiles a key; nil where it is none, or a large one. Go's
// expressions take a time that grows with the text and with their own size.
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
	if program, err := syntax.Compile(parsed.Simplify()); err != nil || len(program.Inst) > maxProgram {
		return nil
	}
	re, err := regexp.Compile(text)
	if err != nil {
		return nil
	}
	return re
}

// scan is a text that keys are looked for in.
type scan struct {
	text, lower string
	over        func() bool // the search is to be given up
}

func newScan(ctx context.Context, text string) scan {
	return scan{text, strings.ToLower(text), func() bool { return ctx.Err() != nil }}
}

// touched reports whether the entry's keys come up.
func (e *entry) touched(s scan) bool {
	return anyOf(e.keys, s) && (e.secondary == nil || anyOf(e.secondary, s)) && !anyOf(e.exclude, s)
}

func anyOf(keys []key, s scan) bool {
	return slices.ContainsFunc(keys, func(k key) bool { return k.in(s) })
}

func (k *key) in(s scan) bool {
	if k.re != nil {
		return !s.over() && k.re.MatchString(s.text)
	}
	text := s.lower
	if k.exact {
		text = s.text
	}
	if !k.whole {
		return strings.Contains(text, k.words)
	}
	for at := 0; ; {
		i := strings.Index(text[at:], k.words)
		if i < 0 {
			return false
		}
		start, end := at+i, at+i+len(k.words)
		before, _ := utf8.DecodeLastRuneInString(text[:start])
		after, _ := utf8.DecodeRuneInString(text[end:])
		if !letter(before) && !letter(after) {
			return true
		}
		_, size := utf8.DecodeRuneInString(text[start:])
		at = start + size
	}
}

func letter(r rune) bool {
	return r != utf8.RuneError && (r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r))
}

// maxFound bounds what one search brings up.
const maxFound = 100

// find returns the entries that a text touches, in their order; rounds is how
// often what was found is searched in turn.
func (v *volume) find(ctx context.Context, text string, rounds int) []*entry {
	found := make(map[*entry]bool)
	s := newScan(ctx, text)
	if !v.recursive {
		rounds = 0
	}
	for ; !s.over(); rounds-- {
		var fresh strings.Builder
		for _, e := range v.entries {
			if !found[e] && len(found) < maxFound && (e.constant || e.touched(s)) {
				found[e] = true
				fresh.WriteString("\n" + e.text)
			}
		}
		if fresh.Len() == 0 || rounds <= 0 {
			break
		}
		s = newScan(ctx, s.text+fresh.String())
	}
	return slices.DeleteFunc(slices.Clone(v.entries), func(e *entry) bool { return !found[e] })
}

// tokens estimates how many tokens a text takes: a quarter of its letters, or
// half of those that are not ASCII.
func tokens(text string) int {
	ascii, other := 0, 0
	for _, r := range text {
		if r < utf8.RuneSelf {
			ascii++
		} else {
			other++
		}
	}
	return (ascii+3)/4 + (other+1)/2
}
