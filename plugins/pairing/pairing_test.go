package pairing

import (
	"strconv"
	"testing"
	"time"

	"synthbot/core"
	"synthbot/core/gate"
	"synthbot/core/values"
	"synthbot/plugins/plugintest"
)

func TestScripts(t *testing.T) { plugintest.Run(t, "testdata/*.txt", plugintest.Of(New)) }

func made(t *testing.T, s *plugintest.Harness, c Config) *Plugin {
	t.Helper()
	p, err := New(s.Host, c)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func from(person string) *core.Message {
	return &core.Message{Path: core.MustPath("room/" + person), Private: true, Author: core.Author{ID: person, Name: person}}
}

// TestCrowd checks that the number of codes is limited, and that the codes of forgotten users are removed.
func TestCrowd(t *testing.T) {
	s := plugintest.NewHarness(t, "pairing")
	p := made(t, s, Config{Valid: 1e12, Again: 1e12, Open: 3})
	told := 0
	for i := range 10 {
		v := p.Judge(from(strconv.Itoa(i)), false)
		if v.Admission != gate.Redact {
			t.Fatalf("user %d: got %v", i, v)
		}
		if v.Reply != "" {
			told++
		}
	}
	if told != 3 {
		t.Errorf("got %d codes, want 3", told)
	}
	jay := core.MustPath("room/@user/1")
	if kept, err := p.Kept(t.Context(), jay); err != nil || len(kept) != 1 {
		t.Errorf("stored: %s, %v", kept, err)
	}
	if err := p.Erase(t.Context(), jay); err != nil {
		t.Fatal(err)
	}
	if kept, err := p.Kept(t.Context(), jay); err != nil || len(kept) != 0 {
		t.Errorf("stored: %s, %v", kept, err)
	}
	if people, err := p.Waiting(t.Context()); err != nil || len(people) != 2 {
		t.Errorf("waiting %v, %v", people, err)
	}
}

// TestExpired checks that codes that expired while the bot was not running are removed with their user, and by later
// ones.
func TestExpired(t *testing.T) {
	for _, erase := range []bool{true, false} {
		s := plugintest.NewHarness(t, "pairing")
		made(t, s, Config{Valid: 1, Open: 1}).Judge(from("jay"), false)
		p, jay := made(t, s, Config{Valid: 1e12, Open: 1}), core.MustPath("room/@user/jay")
		if kept, err := p.Kept(t.Context(), jay); err != nil || len(kept) != 1 {
			t.Errorf("stored: %s, %v", kept, err)
		}
		if waiting, err := p.Waiting(t.Context()); err != nil || len(waiting) != 0 {
			t.Errorf("waiting: %v, %v", waiting, err)
		}
		if erase {
			if err := p.Erase(t.Context(), jay); err != nil {
				t.Fatal(err)
			}
		} else if p.Judge(from("ann"), false).Reply == "" {
			t.Error("an expired code counts")
		}
		items, err := s.Items.List(t.Context(), core.Path{})
		if want := map[bool]int{false: 1}[erase]; err != nil || len(items) != want {
			t.Errorf("got %v, %v, want %d items", items, err, want)
		}
	}
}

// TestManyExpired checks that many expired codes do not delay a new one, and that a valid code has precedence over
// expired ones of the same user.
func TestManyExpired(t *testing.T) {
	s, jay := plugintest.NewHarness(t, "pairing"), core.MustPath("room/@user/jay")
	stored := []core.Item{values.New(core.Path{}, codeKey+"valid", invitation{Person: jay, Until: s.Clock().Add(time.Hour)})}
	for i := range 2 * maxDropped {
		v := invitation{Person: jay, Until: s.Clock().Add(-time.Hour)}
		stored = append(stored, values.New(core.Path{}, codeKey+strconv.Itoa(i), v))
	}
	if err := s.Items.PutAll(t.Context(), stored...); err != nil {
		t.Fatal(err)
	}
	p := made(t, s, Config{Valid: 1e12, Open: 2})
	if p.Judge(from("ann"), false).Reply == "" {
		t.Error("expired codes count")
	}
	items, err := s.Items.List(t.Context(), core.Path{})
	if err != nil || len(items) != maxDropped+2 {
		t.Errorf("got %d items, %v, want %d", len(items), err, maxDropped+2)
	}
	if _, err := p.Pair(t.Context(), jay.String(), core.Path{}); err != nil {
		t.Error(err)
	}
}

// TestTheSameMessageAgain checks that a message that is delivered again gets the same reply, while other
// messages of the user get none for a while.
func TestTheSameMessageAgain(t *testing.T) {
	s := plugintest.NewHarness(t, "pairing")
	p := made(t, s, Config{Valid: 1e12, Again: 1e12, Open: 3})
	first, second := from("jay"), from("jay")
	first.ID, second.ID = "1", "2"
	v := p.Judge(first, false)
	if again := p.Judge(first, false); v.Reply == "" || again != v {
		t.Errorf("got %q, then %q", v.Reply, again.Reply)
	}
	if other := p.Judge(second, false); other.Reply != "" {
		t.Errorf("another message got %q", other.Reply)
	}
	if people, err := p.Waiting(t.Context()); err != nil || len(people) != 1 {
		t.Errorf("waiting %v, %v", people, err)
	}
}

// TestByPath checks that an admin can let in a waiting user by their path, but not a user who has not asked.
func TestByPath(t *testing.T) {
	s := plugintest.NewHarness(t, "pairing")
	p := made(t, s, Config{Valid: 1e12, Again: 1e12, Open: 3})
	p.Judge(from("jay"), false)
	if g, err := p.Pair(t.Context(), "room/@user/ann", core.Path{}); err == nil {
		t.Errorf("%s was let in without having asked", g)
	}
	if g, err := p.Pair(t.Context(), " room/@user/jay ", core.Path{}); err != nil || g.String() != "jay (room/@user/jay)" {
		t.Errorf("got %s, %v", g, err)
	}
	if v := p.Judge(from("jay"), false); v != (gate.Verdict{}) {
		t.Errorf("the user is still refused: %v", v)
	}
}

func TestConform(t *testing.T) {
	plugintest.Conform(t, plugintest.Case{
		Name: "pairing",
		Make: func(t *testing.T, s *plugintest.Harness) core.Plugin {
			return made(t, s, Config{Valid: 1e12, Again: 1e12, Open: 3})
		},
	})
}

// TestRefresh checks that decisions of another process apply after Refresh, and that open codes stay valid.
func TestRefresh(t *testing.T) {
	s := plugintest.NewHarness(t, "pairing")
	c := Config{Valid: 1e12, Again: 1e12, Open: 3}
	p, other := made(t, s, c), made(t, s, c)
	if v := p.Judge(from("jay"), false); v.Admission != gate.Redact || v.Reply == "" {
		t.Fatalf("got %+v", v)
	}
	p.Judge(from("ann"), false)
	jay := core.MustPath("room/@user/jay")
	refresh := any(p).(core.Refresher).Refresh
	if _, err := other.Pair(t.Context(), jay.String(), core.Path{}); err != nil {
		t.Fatal(err)
	}
	refresh()
	if v := p.Judge(from("jay"), false); v.Admission != gate.Admit {
		t.Errorf("after pairing: got %+v", v)
	}
	if v := p.Judge(from("ann"), false); v.Reply != "" {
		t.Errorf("got another code: %s", v.Reply)
	}
	if err := other.Unpair(t.Context(), jay); err != nil {
		t.Fatal(err)
	}
	refresh()
	if v := p.Judge(from("jay"), false); v.Admission != gate.Redact {
		t.Errorf("after unpairing: got %+v", v)
	}
}
