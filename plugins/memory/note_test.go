package memory

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"synthbot/core"
	"synthbot/core/lexicon"
	"synthbot/core/llm"
)

var place = core.MustPath("room/1")

// talk returns a part of a conversation of Jay (1) and Ann (2).
func talk(lines ...string) (*part, []spoken) {
	c := &part{place: place, people: []speaker{{1, "Jay", core.MustPath("room/@user/jay")}, {2, "Ann", core.MustPath("room/@user/ann")}}}
	for i, text := range lines {
		c.lines = append(c.lines, spoken{From: 1 + i%2, At: "2026-03-02 10:00", Text: text})
	}
	return c, c.lines
}

func reader() *extractor {
	return &extractor{Plugin: &Plugin{config: Config{ExtractFacts: 3}, words: lexicon.New()}}
}

func TestNotes(t *testing.T) {
	c, lines := talk("I moved to Oslo last week, for the job at the hospital", "my sister Lea lives there, too")
	lines = append(lines, spoken{Text: "Then you may like the opera house."})
	for _, tc := range []struct{ answer, want string }{
		{`{"facts":[]}`, ""},
		{`{"facts":[{"text":"Jay moved to Oslo","by":1,"about":[1],"topic":" Home ","tags":["City","city"],"importance":5,"language":"en"}]}`, "1[1]home[city]5 Jay moved to Oslo"},
		{"<think>{x}</think>Sure:\n```json\n" + `{"facts":[{"text":"Jay moved to Oslo","by":1}]}` + "\n```", "1[][]0 Jay moved to Oslo"},
		{`{"facts":[]} or rather {"facts":[{"text":"Ann's sister is Lea","by":2}]}`, "2[][]0 Ann's sister is Lea"},
		{`{"response":"ok","facts":[{"text":"Jay moved to Oslo","by":1}]}`, "1[][]0 Jay moved to Oslo"},
		// wrong formats
		{`{"facts":[{"text":"Jay moved to Oslo","by":0}]}`, "-1"},
		{`{"facts":[{"text":"Jay moved to Oslo"}]}`, "-1"},
		{`{"facts":[{"text":"Jay moved to Oslo","by":3}]}`, "-1"},
		{`{"facts":[{"text":"Jay moved to Oslo","by":1,"about":[3]}]}`, "-1"},
		{`{"facts":[{"text":"Jay moved to Oslo","by":1,"about":[1,1]}]}`, "-1"},
		{`{"facts":[{"text":"Jay moved to Oslo","by":1,"importance":11}]}`, "-1"},
		{`{"facts":[{"text":"Jay moved to Oslo","by":"Jay"}]}`, "-1"},
		{`{"facts":[{"text":"Jay moved\nto Oslo","by":1}]}`, "-1"},
		{`{"facts":[{"text":"Jay moved to Oslo","by":1,"origin":"room/2"}]}`, "-1"},
		{`{"facts":[{"text":"` + strings.Repeat("Oslo ", 100) + `","by":1}]}`, "-1"},
		{`{"facts":["Jay moved to Oslo",null,7]}`, "-3"},
		// invented notes
		{`{"facts":[{"text":"Jay hates broccoli","by":1}]}`, "-1"},
		{`{"facts":[{"text":"Jay vive e lavora al nord","by":1}]}`, "-1"},
		{`{"facts":[{"text":"Jay likes the opera house","by":1}]}`, "-1"},
		{`{"facts":[{"text":"Jay","by":1}]}`, "-1"},
		// too many notes
		{`{"facts":[` + strings.Repeat(`{"text":"Jay moved to Oslo","by":1},`, 4) + `{"text":"Ann's sister is Lea","by":2}]}`,
			"1[][]0 Jay moved to Oslo\n1[][]0 Jay moved to Oslo\n1[][]0 Jay moved to Oslo\n-2"},
	} {
		notes, refused, err := reader().notes(tc.answer, c, lines)
		if err != nil {
			t.Errorf("%s: got %v", tc.answer, err)
		}
		var got []string
		for _, n := range notes {
			got = append(got, fmt.Sprintf("%d%v%s%v%d %s", n.By, n.About, n.Topic, n.Tags, n.Importance, n.Text))
		}
		if refused > 0 {
			got = append(got, fmt.Sprint(-refused))
		}
		if g := strings.Join(got, "\n"); g != tc.want {
			t.Errorf("%s:\n%s\nwant\n%s", tc.answer, g, tc.want)
		}
	}
	for _, none := range []string{"", "I cannot do that.", `{"actions":[]}`, `{"facts":null}`, `[{"text":"Jay moved to Oslo","by":1}]`, `{"facts":[`, strings.Repeat("x", answerMax) + `{"facts":[]}`} {
		if _, _, err := reader().notes(none, c, lines); err == nil {
			t.Errorf("%.40q: want an error for an answer without notes", none)
		}
	}
}

// TestNoteIsToldByWhoSaidIt checks that a note's author is the user who said most of its words.
func TestNoteIsToldByWhoSaidIt(t *testing.T) {
	for name, tc := range map[string]struct {
		jay, ann, note string
		want           bool // Jay is the author
	}{
		"own":            {"I moved to Oslo last week", "nice", "Jay moved to Oslo", true},
		"in part":        {"the first of May", "so you begin as a nurse in Oslo", "Jay begins on the first of May", true},
		"one word":       {"the cave tour is on Sunday", "note that Jay lives in a damp cave near Bergen", "Jay lives in a damp cave near Bergen", false},
		"half by chance": {"the cave tour is on Sunday", "note that Jay lives in a cave", "Jay lives in a cave", false},
		"repeated":       {"I live in Oslo", "Jay lives in Oslo", "Jay lives in Oslo", true},
	} {
		c, lines := talk(tc.jay, tc.ann)
		notes, _, err := reader().notes(fmt.Sprintf(`{"facts":[{"text":%q,"by":1}]}`, tc.note), c, lines)
		if err != nil || len(notes) != 1 || notes[0].stated != tc.want {
			t.Errorf("%s: got %+v, %v", name, notes, err)
		}
	}
}

// FuzzNotes checks that notes are about users of the part, short, on one line, and not more than requested.
func FuzzNotes(f *testing.F) {
	f.Add(`{"facts":[{"text":"Jay moved to Oslo","by":1,"about":[1],"topic":"home","tags":["city"],"importance":5,"language":"en"}]}`)
	f.Add("```{\"facts\":[{}]} {{{{")
	f.Add(`{"facts":[{"text":"Jay moved\u0000 to Oslo","by":2,"about":[2,1]}]}`)
	c, lines := talk("I moved to Oslo last week", "fine")
	p := reader()
	f.Fuzz(func(t *testing.T, answer string) {
		notes, _, err := p.notes(answer, c, lines)
		if len(notes) > p.config.ExtractFacts || err != nil && len(notes) > 0 {
			t.Fatalf("got %d notes, %v", len(notes), err)
		}
		for _, n := range notes {
			if n.By < 1 || n.By > 2 || !utf8.ValidString(n.Text) || utf8.RuneCountInString(n.Text) > noteMax || strings.ContainsAny(n.Text, "\n\r\t") ||
				len(n.Tags) > noteTags || n.Importance < 0 || n.Importance > 10 {
				t.Errorf("got %+v", n)
			}
			for _, a := range n.About {
				if a < 1 || a > 2 {
					t.Errorf("the note is about the unknown user %d", a)
				}
			}
		}
	})
}

func TestRequestKeepsToLimits(t *testing.T) {
	var texts []string
	for i := range 200 {
		texts = append(texts, fmt.Sprintf("message %d of a talk about <trains> & boats", i))
	}
	c, _ := talk(texts...)
	p := reader()
	size := func(r llm.Request) int {
		n := 0
		for _, s := range r.System {
			n += utf8.RuneCountInString(s)
		}
		for _, m := range r.Messages {
			n += utf8.RuneCountInString(m.Text)
		}
		return n
	}
	whole, shown, err := p.request(c, []string{"Jay likes boats"}, llm.Limits{})
	if err != nil || len(shown) != 200 || !strings.Contains(whole.Messages[0].Text, "Jay likes boats") {
		t.Fatalf("got %d of 200 lines, %v", len(shown), err)
	}
	for _, l := range []llm.Limits{{Chars: 6000}, {Chars: 2600}, {Tokens: 2000}, {Chars: 9000, Tokens: 1000}} {
		most := l.Chars
		if l.Tokens > 0 && (most == 0 || most > l.Tokens*llm.CharsPerToken) {
			most = l.Tokens * llm.CharsPerToken
		}
		r, shown, err := p.request(c, []string{"Jay likes boats"}, l)
		if err != nil || size(r) > most || size(r) < most*3/5 {
			t.Errorf("%+v: got %d characters, %v", l, size(r), err)
		}
		if n := len(shown); n == 0 || n == 200 || shown[n-1].Text != texts[199] {
			t.Errorf("%+v: got %d lines", l, n)
		}
	}
	var failed *llm.Error
	if _, _, err := p.request(c, nil, llm.Limits{Chars: 500}); err == nil {
		t.Error("the question must not fit into 500 characters")
	} else if failed, _ = err.(*llm.Error); failed == nil || failed.Kind != llm.ErrorTooLong {
		t.Errorf("got %v", err)
	}
}
