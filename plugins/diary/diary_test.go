package diary

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"synthbot/core"
	"synthbot/core/command"
	"synthbot/core/coretest"
	"synthbot/core/epochs"
	"synthbot/core/txt"
	"synthbot/plugins/plugintest"
)

var (
	group   = core.MustPath("room/1")
	jay     = core.Author{ID: "jay", Name: "Jay Miller", Tag: "@jay"}
	ann     = core.Author{ID: "ann", Name: "Ann", Tag: "@ann"}
	jayPath = core.MustPath("room/@user/jay")
	annPath = core.MustPath("room/@user/ann")
)

func standard() Config { return Config{Daily: 12, Days: 3, Bytes: 800, Keep: 30} }

func made(t testing.TB, s *plugintest.Harness) *Plugin {
	t.Helper()
	p, err := New(s.Host, standard())
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// says adds a message to the group's log and returns its number.
func says(t testing.TB, s *plugintest.Harness, who core.Author) uint64 {
	t.Helper()
	b := &core.Batch{Append: []core.Entry{{Event: core.Event{Kind: core.KindMessage, Message: core.Message{
		Path: group, ID: fmt.Sprint(who.ID, s.Clock().UnixNano()), Author: who, Text: "hello", Time: s.Clock(),
	}}}}}
	if err := s.DB.Commit(context.Background(), b); err != nil {
		t.Fatal(err)
	}
	return b.Append[0].Message.Seq
}

// by returns a call of a user, or of none.
func by(s *plugintest.Harness, who core.Author, seq uint64) core.Call {
	c := core.Call{Path: group, Author: who}
	c.Key.Turn, c.Key.Round, c.Key.Step = core.TurnID{Path: group, Seq: seq}, 1, 1
	return c
}

func export(t testing.TB, s *plugintest.Harness) string {
	t.Helper()
	var b strings.Builder
	if err := s.DB.Export(context.Background(), &b, core.Path{}); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestThoughtsStayPrivate checks that a private thought leaves the diary by no way: prompts, exports, commands
// or views.
func TestThoughtsStayPrivate(t *testing.T) {
	const canary = "kanarienvogel"
	s := plugintest.NewHarness(t, "diary")
	model := coretest.NewAsker(`{"digest":"a day"}`, `{"mood":"sad because of a `+canary+`"}`)
	s.Asker = model
	p := made(t, s)
	for _, who := range []core.Author{jay, ann} {
		if _, err := p.write(t.Context(), by(s, who, says(t, s, who)), writePayload{Summary: "We talked.", Thought: "A " + canary + "."}); err != nil {
			t.Fatal(err)
		}
	}
	if !strings.Contains(export(t, s), canary) {
		t.Fatal("the thought is not stored")
	}
	out := func() string {
		var all []any
		for _, rank := range []core.Rank{core.RankMember, core.RankAdmin, core.RankBot} {
			raw, err := p.Inject(t.Context(), core.Scene{Path: group, Author: core.Author{ID: "jay", Rank: rank}, Sees: []core.Path{group}})
			text, err2 := p.read(t.Context(), command.Call{Path: group, Author: core.Author{ID: "jay", Rank: rank}, Person: jayPath, Args: map[string]string{"day": "today"}})
			kept, err3 := p.Kept(t.Context(), jayPath)
			if err := errors.Join(err, err2, err3); err != nil || raw == nil || len(kept) == 0 {
				t.Fatalf("got %s, %s, %v", raw, kept, err)
			}
			all = append(all, string(raw), text, fmt.Sprintf("%s", kept))
		}
		return fmt.Sprint(all...)
	}
	if text := out(); strings.Contains(text, canary) || !strings.Contains(text, "We talked") {
		t.Errorf("got %s", text)
	}
	beat := core.Call{Path: group, Author: core.Author{Rank: core.RankBot}}
	if r, err := p.digest(t.Context(), beat, digestPayload{Day: p.today()}); err != nil ||
		strings.Contains(fmt.Sprint(r), canary) {
		t.Errorf("got %v, %v", r, err)
	}
	if text := out(); strings.Contains(text, canary) || !strings.Contains(text, "a day") {
		t.Errorf("with a digest: %s", text)
	}
	if asked := model.Asked(); len(asked) != 2 || strings.Contains(fmt.Sprint(asked[0]), canary) ||
		!strings.Contains(fmt.Sprint(asked[1]), canary) {
		t.Errorf("got %v", asked)
	}
	if field, ok := reflect.TypeFor[view]().FieldByName("Thought"); ok {
		t.Errorf("a view has %v", field)
	}
}

// TestThoughtsAreNamed checks that a thought is stored under the one name that exports leave out. A thought
// that an older version stored under another name is moved there.
func TestThoughtsAreNamed(t *testing.T) {
	const canary = "kanarienvogel"
	s := plugintest.NewHarness(t, "diary")
	s.Asker = coretest.NewAsker(`{"digest":"a day"}`, `{"mood":"sad"}`)
	p := made(t, s)
	old := core.Item{Path: group, Key: dayKey(p.today()), Value: json.RawMessage(`{"entries":[{"id":"1","time":"2026-03-02T10:00:00Z","summary":"We sang.","thought":"An old ` + canary + `."}]}`)}
	if _, err := s.Items.Put(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	if _, err := p.write(t.Context(), by(s, jay, says(t, s, jay)), writePayload{Summary: "We talked.", Thought: "A new " + canary + "."}); err != nil {
		t.Fatal(err)
	}
	text := export(t, s)
	for _, want := range []string{`"private_thought":"An old ` + canary, `"private_thought":"A new ` + canary} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in %s", want, text)
		}
	}
	if n := strings.Count(text, canary); n != 2 {
		t.Errorf("the thought is stored %d times: %s", n, text)
	}
}

// TestErase checks that no entry contains a forgotten user, and that entries about others stay.
func TestErase(t *testing.T) {
	s := plugintest.NewHarness(t, "diary")
	s.Asker = coretest.NewAsker(`{"digest":"A day with Jay."}`, `{"mood":"calm"}`)
	p := made(t, s)
	jays, anns := says(t, s, jay), says(t, s, ann)
	for i, w := range []struct {
		who  core.Author
		seq  uint64
		what writePayload
	}{
		{jay, jays, writePayload{Summary: "A long talk about trains."}},
		{ann, anns, writePayload{Summary: "Ann asked about jay's job. @JAY, jaywalker, Miller!", Thought: "Poor Jay Miller.", Tags: []string{"Jay"}}},
		{ann, anns, writePayload{Summary: "Ann sang.", People: []string{"ann", "nobody"}}},
		{jay, jays, writePayload{Summary: "Jay and Ann danced.", Feelings: []string{"jay-ish"}}},
		{core.Author{}, jays, writePayload{Summary: "They all spoke at once."}},
		{core.Author{Rank: core.RankBot}, 0, writePayload{Summary: "A quiet night without the Miller."}},
	} {
		c := by(s, w.who, w.seq)
		c.Key.Step = uint16(i + 1)
		if _, err := p.write(t.Context(), c, w.what); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := p.digest(t.Context(), core.Call{Path: group}, digestPayload{Day: p.today()}); err != nil {
		t.Fatal(err)
	}
	if kept, err := p.Kept(t.Context(), jayPath); err != nil || len(kept) != 5 || strings.Contains(fmt.Sprintf("%s", kept), "@user/ann") {
		t.Errorf("got %s, %v", kept, err)
	}
	for range 2 {
		if err := p.Erase(t.Context(), jayPath); err != nil {
			t.Fatal(err)
		}
	}
	d, err := p.page(t.Context(), group, p.today())
	if err != nil || d.Digest != nil {
		t.Fatalf("got %+v, %v", d, err)
	}
	var got []string
	for _, e := range d.Entries {
		got = append(got, fmt.Sprintf("%s|%s|%v|%v|%d %s", e.Summary, e.Thought, e.Tags, e.Feelings, len(e.People), e.By))
	}
	want := []string{
		"Ann asked about somebody's job. somebody, jaywalker, somebody!|Poor somebody.|[somebody]|[]|1 room/@user/ann",
		"Ann sang.||[]|[]|1 room/@user/ann",
		"somebody and Ann danced.||[]|[somebody-ish]|1 ",
		"They all spoke at once.||[]|[]|1 ",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("remaining:\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	raw, err := json.Marshal(d)
	left := strings.ReplaceAll(strings.ToLower(string(raw)), "jaywalker", "")
	if err != nil || strings.Contains(left, "jay") || strings.Contains(left, "miller") {
		t.Errorf("got %s, %v", raw, err)
	}
}

// forgetting forgets a user when a page is read or written.
type forgetting struct {
	core.Items
	when   string // get or put
	forget func()
	puts   int // accepted writes
}

func (f *forgetting) Get(ctx context.Context, path core.Path, key string) (core.Item, bool, error) {
	if f.when == "get" {
		f.forget()
	}
	return f.Items.Get(ctx, path, key)
}

func (f *forgetting) Put(ctx context.Context, item core.Item) (uint64, error) {
	if item.Value != nil && f.when == "put" {
		f.forget()
	}
	version, err := f.Items.Put(ctx, item)
	if item.Value != nil && err == nil {
		f.puts++
	}
	return version, err
}

// TestForgottenMeanwhile checks that nothing is written about a turn whose author is forgotten while it runs.
func TestForgottenMeanwhile(t *testing.T) {
	for _, when := range []string{"before", "get", "put"} {
		for _, forgets := range []core.Path{jayPath, annPath} {
			s := plugintest.NewHarness(t, "diary")
			says(t, s, ann)
			c := by(s, jay, says(t, s, jay))
			once := false
			forget := func() {
				if once {
					return
				}
				once = true
				if err := s.DB.Forget(context.Background(), forgets); err != nil {
					t.Error(err)
				}
			}
			items := &forgetting{Items: s.Items, when: when, forget: forget}
			s.Items = items
			p := made(t, s)
			began := epochs.With(t.Context(), s.DB.Epoch())
			if when == "before" {
				forget()
			}
			_, err := p.write(began, c, writePayload{Summary: "A talk about canaries."})
			survives := forgets == annPath
			if when == "before" && !survives && items.puts > 0 {
				t.Error("an entry about a user who was forgotten before was written")
			}
			var failed *core.Error
			if survives != (err == nil) || err != nil && !errors.As(err, &failed) {
				t.Errorf("%s, %s forgotten: got %v", when, forgets, err)
			}
			if got := strings.Contains(export(t, s), "canaries"); got != survives {
				t.Errorf("%s, %s forgotten: written = %v", when, forgets, got)
			}
		}
	}
}

// TestOnceAndNotForEver checks that a repeated step writes once, and that old pages are removed.
func TestOnceAndNotForEver(t *testing.T) {
	s := plugintest.NewHarness(t, "diary")
	p := made(t, s)
	c := by(s, jay, says(t, s, jay))
	for _, text := range []string{"We talked.", "We talked."} {
		if _, err := p.write(t.Context(), c, writePayload{Summary: text}); err != nil {
			t.Fatal(err)
		}
	}
	first := p.today()
	if v, err := p.view(t.Context(), group, first); err != nil || len(v.Entries) != 1 {
		t.Errorf("got %+v, %v", v, err)
	}
	for range 2 {
		s.Advance(30 * 24 * time.Hour)
		c.Key.Turn.Seq = says(t, s, jay)
		if _, err := p.write(t.Context(), c, writePayload{Summary: "We talked again."}); err != nil {
			t.Fatal(err)
		}
	}
	if days, err := p.days(t.Context(), group); err != nil || len(days) != 2 || days[0] == first {
		t.Errorf("got %v, %v", days, err)
	}
}

func TestReplaceWord(t *testing.T) {
	for _, tc := range []struct{ text, name, want string }{
		{"Jay sang", "Jay", "X sang"}, {"jay's, JAY!", "Jay", "X's, X!"}, {"jaywalker", "Jay", "jaywalker"}, {"bluejay", "Jay", "bluejay"},
		{"@jay and @jayden", "@jay", "X and @jayden"}, {"Jay Jay", "Jay", "X X"}, {"JayJay", "Jay", "JayJay"}, {"", "Jay", ""},
		{"Ömer ÖMER ömers", "ömer", "X X ömers"}, {"东京 hi", "东京", "X hi"}, {"a🙂b", "🙂", "aXb"},
	} {
		if got := replaceWord(tc.text, tc.name, "X"); got != tc.want {
			t.Errorf("%q without %q: got %q, want %q", tc.text, tc.name, got, tc.want)
		}
	}
}

// FuzzWithout checks that a name that was removed from a text does not remain in it.
func FuzzWithout(f *testing.F) {
	f.Add("Jay Miller and @jay", "Jay Miller", "@jay")
	f.Add("ǅ \xff a", "ǆ", "")
	f.Fuzz(func(t *testing.T, text, name, tag string) {
		s := someone{Name: txt.ClipLine(name, nameMax), Tag: txt.ClipLine(tag, nameMax)}
		if strings.Contains(somebody, strings.ToLower(s.Name)) ||
			strings.Contains(strings.ToLower(s.Name+s.Tag), somebody) {
			return
		}
		e := entry{open: open{Summary: s.without(text)}}
		if s.in(&e) && !strings.Contains(strings.ToLower(text), somebody) {
			t.Errorf("%q: %+v is in %q", text, s, e.Summary)
		}
	})
}

// FuzzAnswers checks that any answer of a model gives a digest that is one short line, and a mood of the list.
func FuzzAnswers(f *testing.F) {
	f.Add(`{"digest":"a day"}`, `{"mood":"calm"}`)
	f.Add("```{\"digest\":\"a\\nday\"} {", `{"mood":"Canaria","x":1}`)
	f.Fuzz(func(t *testing.T, text, mood string) {
		s := plugintest.Harness{}
		s.Asker = coretest.NewAsker(text, mood)
		p := &Plugin{host: s.Host}
		d := &page{day: "2026-03-02", place: group, Entries: []entry{{open: open{Summary: "We talked."}, Thought: "Why?"}}}
		got, err := p.consolidate(context.Background(), d)
		if err != nil {
			t.Fatal(err)
		}
		if utf8.RuneCountInString(got.Text) > digestMax || strings.ContainsAny(got.Text, "\r\n\t") || !utf8.ValidString(got.Text) {
			t.Errorf("got %q", got.Text)
		}
		if got.Mood != "" && !slices.Contains(moods(), got.Mood) {
			t.Errorf("got %q", got.Mood)
		}
	})
}

// TestInjectionIsShort checks that a prompt has the newest entries, within the limit.
func TestInjectionIsShort(t *testing.T) {
	s := plugintest.NewHarness(t, "diary")
	p := made(t, s)
	for i := range 12 {
		c := by(s, jay, says(t, s, jay))
		c.Key.Step = uint16(i)
		s.Advance(time.Minute)
		if _, err := p.write(t.Context(), c, writePayload{Summary: fmt.Sprint(i, " <b>", strings.Repeat("é", 300)), Feelings: []string{"calm"}}); err != nil {
			t.Fatal(err)
		}
	}
	raw, err := p.Inject(t.Context(), core.Scene{Path: group, Sees: []core.Path{group}})
	var list []shownNote
	if err != nil || json.Unmarshal(raw, &list) != nil || len(raw) > 800 || len(raw) < 400 || !strings.HasPrefix(list[0].Note, "11 ") {
		t.Errorf("%d bytes: %s, %v", len(raw), raw, err)
	}
}

// BenchmarkInject reads the diary of a place with 15 other users, each with full pages.
func BenchmarkInject(b *testing.B) {
	s := plugintest.NewHarness(b, "diary")
	p := made(b, s)
	scene := core.Scene{Path: group}
	var rows strings.Builder
	for i := range 16 {
		place := core.MustPath(fmt.Sprint("room/", i))
		scene.Sees = append(scene.Sees, place)
		for back := range 3 {
			d := page{}
			for k := range 12 {
				d.Entries = append(d.Entries, entry{open: open{ID: fmt.Sprint(k), Time: s.Clock(), Summary: strings.Repeat("word ", 40), By: jayPath, People: []someone{{jayPath, "Jay", "@jay"}}}, Thought: strings.Repeat("why ", 40)})
			}
			raw, err := json.Marshal(d)
			if err != nil {
				b.Fatal(err)
			}
			fmt.Fprintf(&rows, `{"item":{"plugin":"diary","path":%q,"key":%q,"value":%s}}`+"\n", place, dayKey(s.Clock().AddDate(0, 0, -back).Format(time.DateOnly)), raw)
		}
	}
	if _, _, err := s.DB.Import(context.Background(), strings.NewReader(rows.String()), nil); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if raw, err := p.Inject(context.Background(), scene); err != nil || raw == nil {
			b.Fatal(err)
		}
	}
}
