package memory

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"synthbot/core"
	"synthbot/core/hint"
	"synthbot/plugins/plugintest"
)

func scene(place core.Path, who core.Author, text string) core.Scene {
	return core.Scene{Path: place, Author: who, Text: text, Sees: []core.Path{place}}
}

func hints(t testing.TB, p *Plugin, s core.Scene) (all []string) {
	t.Helper()
	list, err := p.Recon(context.Background(), s)
	if err != nil {
		t.Fatal(err)
	}
	for i, h := range list {
		if h.Kind != hint.Memory || i > 0 && h.Priority >= list[i-1].Priority || strings.ContainsAny(h.Text, "\n\r") {
			t.Errorf("got %+v", h)
		}
		text, _, _ := strings.Cut(h.Text, " (")
		all = append(all, text)
	}
	return all
}

func save(t testing.TB, s *plugintest.Harness, f core.Fact) {
	t.Helper()
	if f.Origin.IsZero() {
		f.Origin = place
	}
	if _, err := s.DB.SaveFact(context.Background(), f); err != nil {
		t.Fatal(err)
	}
}

// TestBroughtUp checks which memories a message brings up.
func TestBroughtUp(t *testing.T) {
	s := plugintest.NewHarness(t, "memory")
	p := made(t, s, standard())
	jays := []core.Path{core.MustPath("room/@user/jay")}
	for _, f := range []core.Fact{
		{Text: "Jay works as a nurse in Oslo", Language: "en", About: jays},
		{Text: "Jay's sister Lea has a red boat", Language: "en", About: jays},
		{Text: "The group meets on the first Friday", Language: "en", Tags: []string{"meeting"}},
		{Text: "Ann è allergica alle noci", Language: "it", Importance: 9, About: []core.Path{core.MustPath("room/@user/ann")}},
		{Text: "Hello is what Jay says to everybody", Language: "en"},
		{Text: "ジェイは東京に住んでいる", Language: "ja"},
	} {
		save(t, s, f)
	}
	for _, tc := range []struct {
		who  core.Author
		text string
		want []string
	}{
		{jay, "hello", nil},
		{jay, "Hi, how are you today? I am fine, thank you very much!", nil},
		{jay, "", nil},
		{jay, "What does my sister do?", []string{"Jay's sister Lea has a red boat"}},
		{jay, "she loves boats", []string{"Jay's sister Lea has a red boat"}},
		{jay, "when is the next meeting?", []string{"The group meets on the first Friday"}},
		{jay, "so many words about the weather and the garden and politics and football and a boat", nil},
		{jay, "chi è allergico alle noci?", []string{"Ann è allergica alle noci"}},
		{ann, "hello", []string{"Ann è allergica alle noci"}},
		{ann, "has Lea a boat?", []string{"Ann è allergica alle noci", "Jay's sister Lea has a red boat"}},
		{core.Author{Rank: core.RankMember}, "hello", nil},
		{core.Author{Rank: core.RankBot}, "look at the boat", []string{"Jay's sister Lea has a red boat"}},
		{jay, "東京はどう?", []string{"ジェイは東京に住んでいる"}},
	} {
		if got := hints(t, p, scene(place, tc.who, tc.text)); !slices.Equal(got, tc.want) {
			t.Errorf("%s: %q brings up %q, want %q", tc.who.Name, tc.text, got, tc.want)
		}
		if got := hints(t, p, scene(core.MustPath("room/2"), tc.who, tc.text)); len(got) > 0 {
			t.Errorf("%s: %q brings up %q in another place", tc.who.Name, tc.text, got)
		}
	}
	list, err := p.Recon(t.Context(), scene(place, jay, "has Lea a boat?"))
	if want := fmt.Sprintf("Jay's sister Lea has a red boat (%s, id 2)", s.Clock().Format(time.DateOnly)); err != nil || list[0].Text != want {
		t.Errorf("got %q, want %q", list[0].Text, want)
	}
}

// TestHintsHaveLimits checks the limits on the number and the length of hints.
func TestHintsHaveLimits(t *testing.T) {
	s := plugintest.NewHarness(t, "memory")
	for i := range 30 {
		save(t, s, core.Fact{Text: fmt.Sprintf("boat %d %s", i, strings.Repeat("sails well ", 60)), Language: "en", Importance: 10, About: []core.Path{core.MustPath("room/@user/jay")}})
	}
	for _, tc := range []struct{ hints, chars, want int }{{5, 8000, 5}, {8, 1200, 2}, {1, 8000, 1}, {0, 8000, 0},
		{5, 100, 0}} {
		c := standard()
		c.Hints, c.HintChars = tc.hints, tc.chars
		if got := hints(t, made(t, s, c), scene(place, jay, "the boat sails")); len(got) != tc.want {
			t.Errorf("%+v: got %d", tc, len(got))
		}
	}
}

// facts fills a database with n facts with the size and vocabulary of real ones.
func facts(b testing.TB, s *plugintest.Harness, n int) {
	b.Helper()
	r := rand.New(rand.NewPCG(1, 2))
	nouns := strings.Fields("boat garden sister nurse hospital piano train bicycle mountain dinner holiday football garage passport novel camera kitchen engine dentist umbrella")
	verbs := strings.Fields("likes bought sold lost found repaired painted forgot planned visited")
	var rows bytes.Buffer
	out := json.NewEncoder(&rows)
	for i := range n {
		f := core.Fact{
			Text:     fmt.Sprintf("Person%d %s the %s and the %s of street %d", r.IntN(n/20+1), verbs[r.IntN(len(verbs))], nouns[r.IntN(len(nouns))], nouns[r.IntN(len(nouns))], r.IntN(n)),
			Language: "en", Origin: place, Time: s.Clock().Add(-time.Duration(i) * time.Minute), Importance: r.IntN(8),
			About: []core.Path{core.MustPath(fmt.Sprint("room/@user/", r.IntN(n/20+1)))},
		}
		if err := out.Encode(map[string]any{"memory": f}); err != nil {
			b.Fatal(err)
		}
	}
	if _, _, err := s.DB.Import(context.Background(), &rows, nil); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkRecon searches 100,000 memories of one place.
func BenchmarkRecon(b *testing.B) {
	s := plugintest.NewHarness(b, "memory")
	facts(b, s, 100_000)
	p := made(b, s, standard())
	for name, text := range map[string]string{
		"hello":    "hello, how are you?",
		"question": "who bought the boat of street 4711?",
		"long":     "Yesterday my sister and the nurse from the hospital took the train to the mountain, lost the passport and the umbrella, and repaired the engine of the boat after dinner in the garden",
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := p.Recon(context.Background(), scene(place, core.Author{ID: "17"}, text)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
