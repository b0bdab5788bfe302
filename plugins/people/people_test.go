package people

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"synthbot/core"
	"synthbot/core/epochs"
	"synthbot/plugins/plugintest"
)

var (
	group   = core.MustPath("room/1")
	jay     = core.Author{ID: "jay", Name: "Jay", Tag: "@jay"}
	ann     = core.Author{ID: "ann", Name: "Ann", Tag: "@ann"}
	jayPath = core.MustPath("room/@user/jay")
	annPath = core.MustPath("room/@user/ann")
)

func made(t testing.TB, s *plugintest.Harness) *Plugin {
	t.Helper()
	p, err := New(s.Host, Config{Fields: 5, Daily: 20, Bytes: 300})
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

// FuzzBrief checks that a prompt shows any record as an object within the limit.
func FuzzBrief(f *testing.F) {
	f.Add(`{"fields":{"likes":[{"text":"tea","origin":"room/1"},{"text":"<b>\"&\\","origin":"room/1"}],"pronouns":[{"text":"she"}]}}`, 300)
	f.Add(`{"fields":{"facts":[{"text":"`+strings.Repeat("\u2028", 200)+`"}],"nonsense":[{"text":"x"}]}}`, 60)
	f.Fuzz(func(t *testing.T, raw string, most int) {
		for _, key := range []string{ownKey, botKey, "room/@user/ann"} {
			r := record{key: key}
			if json.Unmarshal([]byte(raw), &r) != nil {
				return
			}
			b := &bio{fields: make(map[field][]value)}
			b.add([]record{r}, func(*value) bool { return true })
			b.normalize()
			told := b.brief(most)
			if told == nil {
				continue
			}
			var object map[string]any
			if err := json.Unmarshal(told, &object); err != nil || len(object) == 0 || len(told) > most {
				t.Errorf("got %d bytes, at most %d allowed: %s, %v", len(told), most, told, err)
			}
		}
	})
}

// TestBriefIsShort checks that 300 bytes show the most important parts of a full bio.
func TestBriefIsShort(t *testing.T) {
	r := record{key: ownKey}
	for _, f := range order() {
		for i := range 2 * perField {
			r.add(f, value{Text: fmt.Sprintf("%s %d %s", f, i, strings.Repeat("ü", 20)), Time: time.Unix(int64(i), 0)})
		}
		if n := len(r.Fields[f]); n > perField || f.single() && n != 1 {
			t.Errorf("%s has %d values", f, n)
		}
	}
	b := &bio{fields: make(map[field][]value)}
	b.add([]record{r}, func(*value) bool { return true })
	b.normalize()
	told := string(b.brief(300))
	if len(told) > 300 || len(told) < 240 || !strings.Contains(told, "names 23") {
		t.Errorf("got %d bytes: %s", len(told), told)
	}
	if b.brief(5) != nil {
		t.Error("five bytes are too few for a bio")
	}
}

func TestIsBirthday(t *testing.T) {
	for text, want := range map[string]bool{
		"04-05": true, "02-29": true, "1980-02-29": true, "1981-02-29": false, "02-30": false, "13-01": false, "0404": false, "": false, "1700-01-01": false, "04-05\n": false,
	} {
		if got := isBirthday(text); got != want {
			t.Errorf("%q: got %v", text, got)
		}
	}
}

// forgetting forgets a user when a bio is read or written.
type forgetting struct {
	core.Items
	when   string // get or put
	forget func()
	puts   int // accepted writes
}

func (f *forgetting) Get(ctx context.Context, path core.Path, key string) (core.Item, bool, error) {
	if f.when == "get" && isRecord(key) {
		f.forget()
	}
	return f.Items.Get(ctx, path, key)
}

func (f *forgetting) Put(ctx context.Context, item core.Item) (uint64, error) {
	written := isRecord(item.Key) && item.Value != nil
	if written && f.when == "put" {
		f.forget()
	}
	version, err := f.Items.Put(ctx, item)
	if written && err == nil {
		f.puts++
	}
	return version, err
}

// TestForgottenMeanwhile checks that nothing is added to a bio if its author or its subject is forgotten during
// the turn. Forgetting another user has no effect.
func TestForgottenMeanwhile(t *testing.T) {
	for _, when := range []string{"before", "get", "put"} {
		for _, tc := range []struct {
			who      string
			forgets  core.Path
			survives bool
		}{
			{"me", annPath, true}, {"me", jayPath, false}, {"Ann", annPath, false}, {"Ann", jayPath, false},
			{"Ann", core.MustPath("room/@user/lea"), true},
		} {
			s := plugintest.NewHarness(t, "people")
			says(t, s, core.Author{ID: "lea", Name: "Lea"})
			says(t, s, ann)
			c := core.Call{Path: group, Author: jay}
			c.Key.Turn = core.TurnID{Path: group, Seq: says(t, s, jay)}
			forget := func() {
				if err := s.DB.Forget(context.Background(), tc.forgets); err != nil {
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
			_, err := p.update(began, c, updatePayload{Who: tc.who, Likes: []string{"canaries"}})
			var failed *core.Error
			if tc.survives != (err == nil) || err != nil && !errors.As(err, &failed) {
				t.Errorf("%s, about %s, %s forgotten: got %v", when, tc.who, tc.forgets, err)
			}
			if when == "before" && !tc.survives && items.puts > 0 {
				t.Errorf("about %s: written although %s was forgotten before", tc.who, tc.forgets)
			}
			var kept strings.Builder
			if err := s.DB.Export(t.Context(), &kept, core.Path{}); err != nil {
				t.Fatal(err)
			}
			if got := strings.Contains(kept.String(), "canaries"); got != tc.survives {
				t.Errorf("%s, about %s, %s forgotten: stored = %v", when, tc.who, tc.forgets, got)
			}
		}
	}
}

// TestNothingOfOthersInPrivate checks that in private conversations, statements about other users are not added
// to their bios.
func TestNothingOfOthersInPrivate(t *testing.T) {
	s := plugintest.NewHarness(t, "people")
	p := made(t, s)
	says(t, s, ann)
	c := core.Call{Path: group, Author: jay, Private: true}
	var failed *core.Error
	if _, err := p.update(t.Context(), c, updatePayload{Who: "Ann", Facts: []string{"snores"}}); !errors.As(err, &failed) || failed.Kind != core.Forbidden {
		t.Errorf("got %v", err)
	}
	if _, err := p.update(t.Context(), c, updatePayload{Facts: []string{"snores"}}); err != nil {
		t.Errorf("about themselves: got %v", err)
	}
}

// TestKeeper checks that a user's statements about others are in the others' exports, and are erased with the
// others.
func TestKeeper(t *testing.T) {
	s := plugintest.NewHarness(t, "people")
	p := made(t, s)
	says(t, s, ann)
	says(t, s, jay)
	if _, err := p.update(t.Context(), core.Call{Path: group, Author: jay}, updatePayload{Who: "Ann", Facts: []string{"sings well"}}); err != nil {
		t.Fatal(err)
	}
	if err := p.join(t.Context(), jayPath, core.MustPath("other/@user/jojo")); err != nil {
		t.Fatal(err)
	}
	kept, err := p.Kept(t.Context(), jayPath)
	if err != nil || len(kept) != 2 || !strings.Contains(string(kept[0])+string(kept[1]), "sings well") {
		t.Errorf("got %s, %v", kept, err)
	}
	if kept, err := p.Kept(t.Context(), annPath); err != nil || len(kept) != 0 {
		t.Errorf("got %s, %v", kept, err)
	}
	if err := p.Erase(t.Context(), jayPath); err != nil {
		t.Fatal(err)
	}
	if b, err := p.visible(t.Context(), annPath, []core.Path{group}); err != nil || len(b.others) > 0 {
		t.Errorf("got %v, %v", b, err)
	}
	if records, err := p.records(t.Context(), core.MustPath("other/@user/jojo")); err != nil || len(records) > 0 {
		t.Errorf("got %v, %v", records, err)
	}
}

// TestHalfALink checks that a link that only one account has, as after a crash, does not apply.
func TestHalfALink(t *testing.T) {
	s := plugintest.NewHarness(t, "people")
	p := made(t, s)
	says(t, s, jay)
	if _, err := p.update(t.Context(), core.Call{Path: group, Author: jay}, updatePayload{Likes: []string{"tea"}}); err != nil {
		t.Fatal(err)
	}
	jojo := core.MustPath("other/@user/jojo")
	link := func(a, b core.Path) {
		if err := p.edit(t.Context(), a, b.String(), func(r *record) { r.Linked = true }); err != nil {
			t.Fatal(err)
		}
	}
	link(jojo, jayPath)
	if b, err := p.visible(t.Context(), jojo, []core.Path{group}); err != nil || len(b.fields) > 0 {
		t.Errorf("got %v, %v", b, err)
	}
	link(jayPath, jojo)
	if b, err := p.visible(t.Context(), jojo, []core.Path{group}); err != nil || len(b.fields) != 1 {
		t.Errorf("got %v, %v", b, err)
	}
}

// TestCodes checks that codes are stored only as hashes, and all have the same length and alphabet.
func TestCodes(t *testing.T) {
	now := time.Unix(0, 0)
	c := newCodes(func() time.Time { return now })
	code, err := c.give(jayPath)
	if err != nil || len(code) != codeLength || strings.Trim(code, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567") != "" {
		t.Fatalf("got %q, %v", code, err)
	}
	if strings.Contains(fmt.Sprintf("%v", c.open), code) {
		t.Error("the code itself is stored")
	}
	newer, err := c.give(jayPath)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.take(code, annPath); err == nil {
		t.Error("the older code of the same person still works")
	}
	if who, err := c.take(strings.ToLower(newer[:4]+"-"+newer[4:]), annPath); err != nil || who != jayPath {
		t.Errorf("got %v, %v", who, err)
	}
	for i := range missesMax {
		_, _ = c.take("AAAAAAAA", core.MustPath(fmt.Sprint("room/@user/", i)))
	}
	last, err := c.give(annPath)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.take(last, jayPath); !errors.Is(err, errOften) {
		t.Errorf("after %d wrong codes: got %v", missesMax, err)
	}
	if now = now.Add(time.Hour); len(c.open) == 0 {
		t.Error("there is nothing to clean up")
	}
	if c.tidy(); len(c.open)+len(c.used)+len(c.misses) > 0 {
		t.Errorf("after an hour: %d open, %d used codes, %d misses", len(c.open), len(c.used), len(c.misses))
	}
}

// BenchmarkBios reads the bios of 20 users in a prompt, out of 10,000.
func BenchmarkBios(b *testing.B) {
	s := plugintest.NewHarness(b, "people")
	p := made(b, s)
	var rows strings.Builder
	for i := range 10_000 {
		r := record{}
		for _, f := range order() {
			for k := range 5 {
				r.add(f, value{Text: fmt.Sprintf("%s number %d", f, k), Origin: group, Time: s.Clock()})
			}
		}
		value, err := json.Marshal(r)
		if err != nil {
			b.Fatal(err)
		}
		fmt.Fprintf(&rows, `{"item":{"plugin":"people","path":"room/@user/%d","key":"own","value":%s}}`+"\n", i, value)
	}
	if _, _, err := s.DB.Import(context.Background(), strings.NewReader(rows.String()), nil); err != nil {
		b.Fatal(err)
	}
	var crowd []core.Author
	for i := range 20 {
		crowd = append(crowd, core.Author{ID: fmt.Sprint(i * 431), Name: "Jay"})
	}
	b.ReportAllocs()
	for b.Loop() {
		bios, err := p.Bios(context.Background(), core.Scene{Path: group, Sees: []core.Path{group}}, crowd)
		if err != nil || len(bios) != 20 {
			b.Fatalf("got %d bios, %v", len(bios), err)
		}
	}
}

// TestForgottenCode checks that a code that a user got before being forgotten does not link them.
func TestForgottenCode(t *testing.T) {
	p := made(t, plugintest.NewHarness(t, "people"))
	code, err := p.codes.give(jayPath)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Erase(t.Context(), jayPath); err != nil {
		t.Fatal(err)
	}
	if who, err := p.codes.take(code, annPath); err == nil {
		t.Errorf("the code still belongs to %s", who)
	}
	if len(p.codes.used) != 1 {
		t.Errorf("codes in memory: %v", p.codes.used)
	}
}
