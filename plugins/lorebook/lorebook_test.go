package lorebook

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"synthbot/core"
	"synthbot/core/prompt"
	"synthbot/plugins/plugintest"
)

func TestScripts(t *testing.T) {
	plugintest.Run(t, "testdata/*.txt", plugintest.Of(func(h core.Host, c Config) (*Plugin, error) {
		c.Dir = "testdata"
		return New(h, c)
	}))
}

// defaults are the configuration's defaults.
var defaults = Config{Depth: 4, Budget: 400, Rounds: 3}

func made(t testing.TB, c Config) *Plugin {
	t.Helper()
	p, err := New(plugintest.NewHarness(t, "lorebook").Host, c)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestConform(t *testing.T) {
	c := defaults
	c.Dir, c.Sources = "testdata", []Source{{Path: "harbour.json"}, {Path: "world.json"}}
	plugintest.Conform(t, plugintest.Case{Name: "lorebook", Make: func(t *testing.T, s *plugintest.Harness) core.Plugin {
		p, err := New(s.Host, c)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}})
}

// promptFor returns what a book adds to the prompt for a text.
func promptFor(t testing.TB, c Config, b Book, text string) []string {
	t.Helper()
	c.Cards = []Card{{Char: "Nell", Book: b}}
	s := core.Scene{Path: core.MustPath("room/1"), Text: text, Author: core.Author{ID: "jay", Name: "Jay"}}
	return snippets(t, made(t, c), s)
}

// snippets returns what the prompt shows.
func snippets(t testing.TB, p *Plugin, s core.Scene) []string {
	t.Helper()
	hints, err := p.Recon(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	return prompt.Merge(hints, "", "").Snippets
}

// TestInstructions checks that entries marked as instructions are given to the model as instructions, not as
// knowledge.
func TestInstructions(t *testing.T) {
	c := defaults
	c.Cards = []Card{{Char: "Nell", Book: one(func(e *Entry) { e.Content = "@@role system\n{{char}} whispers." })}}
	hints, err := made(t, c).Recon(t.Context(), core.Scene{Path: core.MustPath("room/1"), Text: "moss"})
	if r := prompt.Merge(hints, "", ""); err != nil || len(r.Snippets) > 0 || !slices.Equal(r.Instructions, []string{"Nell whispers."}) {
		t.Errorf("got %+v, %v", r, err)
	}
}

// one returns a book with one entry.
func one(change func(*Entry)) Book {
	e := Entry{Keys: []string{"moss"}, Content: "told", Enabled: true}
	change(&e)
	return Book{Entries: []Entry{e}}
}

func TestKeys(t *testing.T) {
	words := defaults
	words.WordsOnly = true
	for name, tc := range map[string]struct {
		c    Config
		book Book
		text string
		want bool
	}{
		"a key":                {defaults, one(func(*Entry) {}), "the Moss is green", true},
		"no key":               {defaults, one(func(*Entry) {}), "the grass is green", false},
		"a part of a word":     {defaults, one(func(*Entry) {}), "mossy", true},
		"whole words":          {words, one(func(*Entry) {}), "mossy stones", false},
		"a whole word":         {words, one(func(*Entry) {}), "mossy stones, moss.", true},
		"whole words, umlauts": {words, one(func(e *Entry) { e.Keys = []string{"öl"} }), "Spöl Öl", true},
		"within a word":        {words, one(func(e *Entry) { e.Keys = []string{"öl"} }), "Spöl", false},
		"case":                 {defaults, one(func(e *Entry) { e.CaseSensitive = true }), "Moss", false},
		"the same case":        {defaults, one(func(e *Entry) { e.CaseSensitive = true }), "moss", true},
		"disabled":             {defaults, one(func(e *Entry) { e.Enabled = false }), "moss", false},
		"constant":             {defaults, one(func(e *Entry) { e.Constant = true; e.Keys = nil }), "grass", true},
		"without keys":         {defaults, one(func(e *Entry) { e.Keys = []string{" "} }), "moss", false},
		"secondary missing":    {defaults, one(func(e *Entry) { e.Selective = true; e.SecondaryKeys = []string{"wet"} }), "moss", false},
		"secondary there":      {defaults, one(func(e *Entry) { e.Selective = true; e.SecondaryKeys = []string{"dry", "wet"} }), "wet moss", true},
		"not selective":        {defaults, one(func(e *Entry) { e.SecondaryKeys = []string{"wet"} }), "moss", true},
		"selective, no second": {defaults, one(func(e *Entry) { e.Selective = true }), "moss", true},
		"an expression":        {defaults, one(func(e *Entry) { e.Regex = true; e.Keys = []string{`m.s{2}\b`} }), "MOSS", true},
		"with flags":           {defaults, one(func(e *Entry) { e.Regex = true; e.Keys = []string{`/^m.ss/i`} }), "Moss", true},
		"flags count":          {defaults, one(func(e *Entry) { e.Regex = true; e.Keys = []string{`/^m.ss/`} }), "Moss", false},
		"no expression":        {defaults, one(func(e *Entry) { e.Regex = true; e.Keys = []string{`(moss`} }), "(moss", false},
		"too large a one":      {defaults, one(func(e *Entry) { e.Regex = true; e.Keys = []string{`(moss){900}|moss`} }), "moss", false},
		"activated":            {defaults, one(func(e *Entry) { e.Content = "@@activate\n@@depth 3\ntold" }), "grass", true},
		"never":                {defaults, one(func(e *Entry) { e.Content = "@@dont_activate\ntold" }), "moss", false},
		"excluded":             {defaults, one(func(e *Entry) { e.Content = "@@exclude_keys dry, dead\ntold" }), "dead moss", false},
		"not excluded":         {defaults, one(func(e *Entry) { e.Content = "@@exclude_keys dry, dead\ntold" }), "moss", true},
		"nothing but signs":    {defaults, one(func(e *Entry) { e.Content = "@@activate" }), "moss", false},
	} {
		got := promptFor(t, tc.c, tc.book, tc.text)
		if (len(got) == 1 && got[0] == "told") != tc.want || len(got) > 1 {
			t.Errorf("%s: got %q", name, got)
		}
	}
}

func TestOrderAndBudget(t *testing.T) {
	long := strings.Repeat("long ", 60) // 75 tokens
	e := func(content string, order, priority int, constant bool) Entry {
		return Entry{Keys: []string{"moss"}, Content: content, Enabled: true, Order: order, Priority: priority, Constant: constant}
	}
	for name, tc := range map[string]struct {
		book Book
		want string
	}{
		"order": {Book{Entries: []Entry{e("c", 3, 0, false), e("a", 1, 0, false), e("b", 2, 0, true)}}, "a b c"},
		"the least important gives way": {Book{TokenBudget: 160, Entries: []Entry{
			e("a "+long, 1, 1, false), e("b "+long, 2, 9, false), e("c "+long, 3, 5, false)}}, "b c"},
		"of equals the last":     {Book{TokenBudget: 160, Entries: []Entry{e("a "+long, 1, 0, false), e("b "+long, 2, 0, false), e("c "+long, 3, 0, false)}}, "a b"},
		"what is constant stays": {Book{TokenBudget: 80, Entries: []Entry{e("a "+long, 1, 9, false), e("b "+long, 2, 0, true)}}, "b"},
		"nothing fits":           {Book{TokenBudget: 20, Entries: []Entry{e("a "+long, 1, 0, true)}}, ""},
		"a turn's limit": {Book{TokenBudget: 9999, Entries: []Entry{
			e("a "+strings.Repeat(long, 3), 1, 0, false), e("b "+strings.Repeat(long, 3), 2, 0, false), e("c "+strings.Repeat(long, 3), 3, 0, false)}}, "a b"},
	} {
		c := defaults
		c.Budget = 1000
		var first []string
		for _, text := range promptFor(t, c, tc.book, "moss") {
			first = append(first, text[:1])
		}
		if got := strings.Join(first, " "); got != tc.want {
			t.Errorf("%s: got %q, want %q", name, got, tc.want)
		}
	}
}

// chain returns a book in which each entry triggers the next one.
func chain(n int) Book {
	b := Book{Recursive: true}
	for i := range n {
		b.Entries = append(b.Entries, Entry{Keys: []string{fmt.Sprintf("key%d.", i)}, Content: fmt.Sprintf("key%d.", i+1), Enabled: true, Order: n - i})
	}
	return b
}

func TestRecursion(t *testing.T) {
	for rounds, want := range map[int]int{0: 1, 3: 4, 10: 11} {
		c := defaults
		c.Rounds = rounds
		if got := promptFor(t, c, chain(50), "key0."); len(got) != want {
			t.Errorf("%d rounds: got %d entries, want %d", rounds, len(got), want)
		}
	}
	c := defaults
	b := chain(50)
	b.Recursive = false
	if got := promptFor(t, c, b, "key0."); len(got) != 1 {
		t.Errorf("book without recursion: got %q", got)
	}
	b = Book{Recursive: true, Entries: []Entry{{Keys: []string{"a"}, Content: "b", Enabled: true}, {Keys: []string{"b"}, Content: "a", Enabled: true}}}
	if got := promptFor(t, c, b, "a"); len(got) != 2 {
		t.Errorf("circular book: got %q", got)
	}
}

func said(texts ...string) (list []core.Entry) {
	for _, text := range texts {
		list = append(list, core.Entry{Event: core.Event{Kind: core.KindMessage, Message: core.Message{Text: text}}})
	}
	return list
}

func TestDepth(t *testing.T) {
	c := defaults
	book := one(func(*Entry) {})
	book.ScanDepth = 3
	c.Cards = []Card{{Book: book}}
	p := made(t, c)
	for _, tc := range []struct {
		recent []core.Entry
		want   bool
	}{
		{said("moss", "a"), true}, {said("moss", "a", "b"), false}, {said("a", "moss", "b"), true},
	} {
		got := snippets(t, p, core.Scene{Path: core.MustPath("room/1"), Text: "c", Recent: tc.recent})
		if (got != nil) != tc.want {
			t.Errorf("got %q, want %v", got, tc.want)
		}
	}
}

// TestCards checks that the book of a persona's card applies where the persona does.
func TestCards(t *testing.T) {
	c := defaults
	c.Cards = []Card{
		{Char: "Nell", Book: one(func(e *Entry) { e.Content = "{{char}} knows {{user}}" })},
		{Path: core.MustPath("room/2"), Char: "Tam"},
		{Path: core.MustPath("room/2/7"), Char: "{{user}}", Book: one(func(e *Entry) { e.Content = "{{char}}, not {{user}}" })},
	}
	p := made(t, c)
	for place, want := range map[string]string{
		"room/1": "Nell knows Jay", "room/2": "", "room/2/7": "{{user}}, not Jay",
	} {
		s := core.Scene{Path: core.MustPath(place), Text: "moss", Author: core.Author{ID: "jay", Name: "Jay"}}
		if got := snippets(t, p, s); strings.Join(got, " ") != want {
			t.Errorf("%s: got %q", place, got)
		}
	}
}

// TestTwoBooks checks that the entries of several books are in one order.
func TestTwoBooks(t *testing.T) {
	c := defaults
	c.Dir, c.Sources = "testdata", []Source{{Path: "world.json"}}
	got := promptFor(t, c, one(func(e *Entry) { e.Keys, e.Order = []string{"dragon"}, 200 }), "a dragon")
	if strings.Join(got, " ") != "Dragons love tea. Dragons sleep by day. told" {
		t.Errorf("got %q", got)
	}
}

func TestRead(t *testing.T) {
	for name, tc := range map[string]struct{ text, want string }{
		"V2 card":        {`{"data":{"character_book":{"entries":[{"keys":["a"],"content":"x"}]}}}`, "[a] x"},
		"V3 lorebook":    {`{"spec":"lorebook_v3","data":{"entries":[{"keys":["a"],"content":"x","use_regex":false}]}}`, "[a] x"},
		"a book alone":   {`{"entries":[{"keys":"a, b","content":"x"}]}`, "[a b] x"},
		"an old card":    {`{"character_book":{"entries":[{"keys":["a"],"content":"x"}]}}`, "[a] x"},
		"world info":     {`{"entries":{"0":{"key":["a"],"content":"x"}}}`, "[a] x"},
		"odd types":      {`{"entries":[{"keys":["a",7,null],"content":"x","insertion_order":"5","enabled":"true","priority":{}},3,{"content":7}]}`, "[a] x"},
		"a mark before":  {"\uFEFF" + `{"entries":[{"keys":["a"],"content":"x"}]}`, "[a] x"},
		"no entries":     {`{"entries":[]}`, "contains no lore"},
		"a card without": {`{"data":{"name":"Nell"}}`, "contains no lore"},
		"a list":         {`[]`, "is not JSON"},
		"no JSON":        {`lore`, "is not JSON"},
	} {
		b, err := Read([]byte(tc.text))
		got := fmt.Sprint(err)
		if err == nil {
			got = fmt.Sprintf("%s %s", b.Entries[0].Keys, b.Entries[0].Content)
			if len(b.Entries) != 1 || !b.Entries[0].Enabled {
				t.Errorf("%s: got %+v", name, b)
			}
		}
		if !strings.Contains(got, tc.want) {
			t.Errorf("%s: got %s, want %s", name, got, tc.want)
		}
	}
	for range 20 { // entries whose keys are not numbers have a stable order, too
		b, err := Read([]byte(`{"entries":{"d":{"content":"4"},"10":{"content":"6"},"b":{"content":"2"},"2":{"content":"5"},"a":{"content":"1"},"c":{"content":"3"}}}`))
		order := ""
		for _, e := range b.Entries {
			order += e.Content
		}
		if err != nil || order != "123456" {
			t.Fatalf("got %s, %v", order, err)
		}
	}
	c := defaults
	c.Sources = []Source{{Path: "nowhere.json"}}
	if _, err := New(plugintest.NewHarness(t, "lorebook").Host, c); err == nil || !strings.Contains(err.Error(), "nowhere.json") {
		t.Errorf("missing file: got %v", err)
	}
}

// FuzzRead checks that any accepted book works and stays within a turn's limit.
func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"data":{"character_book":{"recursive_scanning":true,"entries":[{"keys":["a","/x.*/i"],"content":"@@activate\nx {{user}}","use_regex":true,"constant":true}]}}}`), "a b")
	f.Add([]byte(`{"entries":{"3":{"key":["a"],"keysecondary":["b"],"selective":true,"content":"\u0000é"}}}`), "A B")
	s := plugintest.NewHarness(f, "lorebook")
	f.Fuzz(func(t *testing.T, data []byte, text string) {
		b, err := Read(data)
		if err != nil {
			return
		}
		c := defaults
		c.Cards = []Card{{Char: "Nell", Book: b}}
		p, err := New(s.Host, c)
		if err != nil {
			t.Fatal(err)
		}
		hints, err := p.Recon(t.Context(), core.Scene{Path: core.MustPath("room/1"), Text: text})
		total := 0
		for _, h := range hints {
			total += len(h.Text)
			if h.Text == "" || !utf8.ValidString(h.Text) {
				t.Errorf("invalid hint %q", h.Text)
			}
		}
		if err != nil || total > maxHints {
			t.Errorf("got %d bytes, %v", total, err)
		}
	})
}

// large returns a book of the maximum size.
func large() Book {
	b := Book{Recursive: true}
	for i := range maxEntries {
		b.Entries = append(b.Entries, Entry{
			Keys: []string{fmt.Sprintf("name%d", i), fmt.Sprintf("Place %d", i), fmt.Sprintf("thing-%d", i)}, Content: strings.Repeat("lore ", 50), Enabled: true, Order: i,
		})
	}
	return b
}

func TestGivesUp(t *testing.T) {
	c := defaults
	c.Cards = []Card{{Book: large()}}
	p := made(t, c)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if hints, err := p.Recon(ctx, core.Scene{Path: core.MustPath("room/1"), Text: "name7"}); !errors.Is(err, context.Canceled) || hints != nil {
		t.Errorf("got %v, %v", hints, err)
	}
}

func BenchmarkRecon(b *testing.B) {
	c := defaults
	c.Cards = []Card{{Book: large()}}
	p := made(b, c)
	s := core.Scene{Path: core.MustPath("room/1"), Text: "what of name4711 and Place 12?", Recent: said(strings.Repeat("they talked about the weather and the sea. ", 90))}
	for b.Loop() {
		if hints, err := p.Recon(b.Context(), s); err != nil || len(hints) == 0 {
			b.Fatal(err)
		}
	}
}
