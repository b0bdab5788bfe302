package moderation

import (
	"context"
	"regexp"
	"strings"
	"testing"
	"time"

	"synthbot/core"
	"synthbot/core/command"
	"synthbot/core/gate"
	"synthbot/plugins/filter"
	"synthbot/plugins/limits"
	"synthbot/plugins/plugintest"
)

func TestScripts(t *testing.T) { plugintest.Run(t, "testdata/*.txt", plugintest.Of(New)) }

var (
	group    = core.MustPath("room/1")
	jayPath  = core.MustPath("room/@user/jay")
	miaPath  = core.MustPath("room/@user/mia")
	bossPath = core.MustPath("room/@user/boss")
)

func made(t testing.TB, s *plugintest.Harness, c Config) *Plugin {
	t.Helper()
	s.People = []core.Path{bossPath}
	p, err := New(s.Host, plugintest.Defaults(t, c))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// gated returns a plugin with further gates.
func gated(t testing.TB, s *plugintest.Harness, l limits.Config, rules ...filter.Rule) *Plugin {
	t.Helper()
	p := made(t, s, Config{})
	f, err := filter.New(s.Clock, filter.Config{Rules: rules}, p)
	if err != nil {
		t.Fatal(err)
	}
	p.AddGates(f, limits.New(s.Clock, l, p))
	return p
}

// boss returns an admin who acts in private.
func boss(p *Plugin) *actor {
	author := core.Author{ID: "boss", Name: "Boss", Rank: core.RankAdmin}
	return &actor{Call: command.Call{Path: core.MustPath("room/boss"), Private: true, Author: author, Person: bossPath}}
}

func mia(p *Plugin) *actor {
	author := core.Author{ID: "mia", Name: "Mia", Rank: core.RankModerator}
	return &actor{Call: command.Call{Path: group, Author: author, Person: miaPath}}
}

// says returns a message to the bot: in a group if place is a number, else in the private place of that name.
func says(place, who, text string) *core.Message {
	m := &core.Message{Path: core.MustPath("room/" + place), Author: core.Author{ID: who, Name: strings.ToUpper(who)}, Text: text, Addressed: core.AddressedMention}
	if place[0] > '9' {
		m.Private, m.Addressed = true, core.AddressedDirect
	}
	return m
}

// run lets the plugin do its background work until nothing waits.
func run(t *testing.T, p *Plugin) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := p.Run(ctx); err != nil {
		t.Fatal(err)
	}
	if err := p.records.sweep(t.Context(), p.config.Keep); err != nil {
		t.Fatal(err)
	}
}

// disk returns the stored items without their random keys, which may contain any name by chance.
func disk(t *testing.T, s *plugintest.Harness) string {
	t.Helper()
	var b strings.Builder
	if err := s.DB.Export(t.Context(), &b, core.Path{}); err != nil {
		t.Fatal(err)
	}
	return regexp.MustCompile(`"[A-Za-z0-9+/]{40,}={0,2}"`).ReplaceAllString(b.String(), `""`)
}

func call(t *testing.T, p *Plugin, name string, c command.Call) (string, error) {
	t.Helper()
	for _, x := range p.Commands() {
		if x.Name == name {
			person, err := c.Path.Person(c.Author.ID)
			if err != nil {
				t.Fatal(err)
			}
			c.Person = person
			return x.Do(t.Context(), c)
		}
	}
	t.Fatalf("no command %s", name)
	return "", nil
}

func TestConform(t *testing.T) {
	plugintest.Conform(t, plugintest.Case{
		Name: "moderation",
		Make: func(t *testing.T, s *plugintest.Harness) core.Plugin {
			p := made(t, s, Config{})
			if _, err := p.holdUser(t.Context(), boss(p), blocked, holdRequest{name: "room/@user/jay"}); err != nil {
				t.Fatal(err)
			}
			return p
		},
		Keep: []plugintest.Sample{{Command: "appeal", Args: map[string]string{"text": plugintest.Canary}}},
		Ask: []plugintest.Sample{
			{Command: "appeal"}, {Command: "appeals"}, {Command: "blocked"}, {Command: "modlog"},
		},
	})
}

// TestSweep checks that expired holds and old log lines are removed from the disk.
func TestSweep(t *testing.T) {
	s := plugintest.NewHarness(t, "moderation")
	p := made(t, s, Config{Keep: 30 * day})
	if _, err := p.holdUser(t.Context(), boss(p), blocked, holdRequest{name: jayPath.String(), span: day}); err != nil {
		t.Fatal(err)
	}
	if _, err := p.mute(t.Context(), mia(p), holdRequest{span: time.Hour}); err != nil {
		t.Fatal(err)
	}
	if _, err := call(t, p, "appeal", command.Call{Path: core.MustPath("room/jay"), Private: true, Author: core.Author{ID: "jay"}, Args: map[string]string{"text": "please"}}); err != nil {
		t.Fatal(err)
	}
	run(t, p)
	keys := func() (all []string) {
		items, err := s.Items.List(t.Context(), core.Path{})
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range items {
			word, _, _ := strings.Cut(i.Key, " ")
			all = append(all, i.Path.String()+" "+word)
		}
		return all
	}
	want := " hold| key|room/1 log|room/1 mute|room/@user/boss did|room/@user/jay appeal|room/@user/jay hold|room/@user/jay log|room/@user/jay log|room/@user/mia did"
	if got := strings.Join(keys(), "|"); got != want {
		t.Errorf("stored:\n%s\nwant\n%s", got, want)
	}
	s.Advance(25 * time.Hour)
	run(t, p)
	want = " key|room/1 log|room/@user/boss did|room/@user/jay appeal|room/@user/jay log|room/@user/jay log|room/@user/mia did"
	if got := strings.Join(keys(), "|"); got != want {
		t.Errorf("stored after a day:\n%s\nwant\n%s", got, want)
	}
	s.Advance(30 * day)
	run(t, p)
	if got := strings.Join(keys(), "|"); got != " key" {
		t.Errorf("stored after a month: %s", got)
	}
}

// TestMoved checks that blocks and mutes follow a group that gets a new id.
func TestMoved(t *testing.T) {
	s := plugintest.NewHarness(t, "moderation")
	p := made(t, s, Config{})
	old, next := core.MustPath("room/5"), core.MustPath("room/100")
	m := says("5", "jay", "hi")
	m.ID = "1"
	if err := s.DB.Commit(t.Context(),
		&core.Batch{Append: []core.Entry{{Event: core.Event{Kind: core.KindMessage, Message: *m}}}}); err != nil {
		t.Fatal(err)
	}
	a := mia(p)
	a.Path = old
	for _, kind := range []string{blocked, muted} {
		if _, err := p.holdUser(t.Context(), a, kind, holdRequest{name: "jay", reason: "why"}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := p.mute(t.Context(), a, holdRequest{span: day}); err != nil {
		t.Fatal(err)
	}
	move := core.Event{Kind: core.KindMigration, To: next, Message: core.Message{Path: old, ID: "2"}}
	if err := s.DB.Commit(t.Context(), &core.Batch{Change: []core.Event{move}}); err != nil {
		t.Fatal(err)
	}
	if v := p.Judge(says("100", "jay", "hello"), false); v.Admission != gate.Admit {
		t.Fatalf("it applies before the move: %+v", v)
	}
	run(t, p)
	for _, q := range []*Plugin{p, made(t, s, Config{})} {
		if v := q.Judge(says("100", "jay", "hello"), false); v.Admission != gate.Discard {
			t.Errorf("the block does not apply after the move: %+v", v)
		}
		if v := q.Judge(says("100", "ann", "hello"), false); v.Admission != gate.Quiet {
			t.Errorf("the mute does not apply after the move: %+v", v)
		}
		list := q.records.active(blocked, func(*hold) bool { return true })
		if len(list) != 1 || list[0].scope != next || list[0].name != "JAY" {
			t.Errorf("list: got %+v", list)
		}
	}
}

// unreadable is a store whose reads fail.
type unreadable struct{ core.Items }

func (unreadable) List(context.Context, core.Path) ([]core.Item, error) {
	return nil, core.ErrDamaged
}

// TestUnreadable checks that no user is answered while the blocks cannot be read.
func TestUnreadable(t *testing.T) {
	s := plugintest.NewHarness(t, "moderation")
	fine := s.Items
	s.Items = unreadable{fine}
	p := made(t, s, Config{})
	for range 2 {
		if v := p.Judge(says("1", "jay", "hello"), false); v.Admission != gate.Quiet {
			t.Errorf("got %+v", v)
		}
	}
	if _, err := p.holdUser(t.Context(), boss(p), blocked, holdRequest{name: jayPath.String()}); err == nil {
		t.Error("a block was set although the blocks are unknown")
	}
	p.records.host.Items = fine
	if v := p.Judge(says("1", "jay", "hello"), false); v.Admission != gate.Admit {
		t.Errorf("got %+v", v)
	}
}

// TestModerators checks that a user who was seen as a moderator of a group stays one there, also after a
// restart, until they are seen without the rank.
func TestModerators(t *testing.T) {
	s := plugintest.NewHarness(t, "moderation")
	p := made(t, s, Config{})
	m := says("1", "jay", "hi")
	m.Author.Rank = core.RankModerator
	p.Judge(m, false)
	alone := says("jay", "jay", "hi")
	alone.Author.Rank = core.RankModerator
	if p.Judge(alone, false); len(p.records.moderators) != 1 {
		t.Errorf("in private there are no moderators: %v", p.records.moderators)
	}
	run(t, p)
	jay := user{path: jayPath}
	for range 2 {
		p = made(t, s, Config{})
		p.Judge(says("1", "ann", "hi"), false)
		if err := p.checkRank(mia(p), jay); err == nil {
			t.Error("a moderator may block a moderator")
		}
		elsewhere := mia(p)
		elsewhere.Path = core.MustPath("room/2")
		if err := p.checkRank(elsewhere, jay); err != nil {
			t.Errorf("moderator of another group: got %v", err)
		}
		p.Judge(says("1", "jay", "again"), true) // a repeated judgement does not count
	}
	if err := p.checkRank(boss(p), jay); err != nil {
		t.Errorf("block by an admin: got %v", err)
	}
	p.Judge(says("1", "jay", "I am one no longer"), false)
	if err := p.checkRank(mia(p), jay); err != nil {
		t.Errorf("without the rank: got %v", err)
	}
	run(t, p)
	p = made(t, s, Config{})
	p.Judge(says("1", "ann", "hi"), false)
	if err := p.checkRank(mia(p), jay); err != nil {
		t.Errorf("without the rank: got %v", err)
	}
}

// TestActors checks that only one moderator or admin can act: not several users at once, not the bot in a turn
// of its own, and not a user in private except on themselves.
func TestActors(t *testing.T) {
	for name, tc := range map[string]struct {
		who core.Author
		ok  bool
	}{
		"a member":    {core.Author{ID: "jay"}, false},
		"a moderator": {core.Author{ID: "jay", Rank: core.RankModerator}, true},
		"an admin":    {core.Author{ID: "jay", Rank: core.RankAdmin}, true},
		"the bot":     {core.Author{ID: "aria", Rank: core.RankBot}, false},
		"several":     {core.Author{Rank: core.RankModerator}, false},
	} {
		s := plugintest.NewHarness(t, "moderation")
		p := made(t, s, Config{})
		for _, a := range p.Actions() {
			payload := `{"person":"room/@user/eve"}`
			_, err := a.Do(t.Context(), core.Call{Path: group, Author: tc.who, Payload: []byte(payload)})
			refused := err != nil && strings.Contains(err.Error(), "Only a moderator or an admin")
			if refused == tc.ok {
				t.Errorf("%s, %s: %v", name, a.Name, err)
			}
		}
		for _, c := range p.Commands() {
			_, err := c.Do(t.Context(), command.Call{Path: group, Author: tc.who, Person: jayPath, Args: map[string]string{"person": "room/@user/eve"}})
			if c.Rank > core.RankMember && !tc.ok && err == nil {
				t.Errorf("%s, /%s: the command succeeded", name, c.Name)
			}
		}
	}
}

// TestAppealsAreForAdmins checks that only admins can list appeals, and only in private.
func TestAppealsAreForAdmins(t *testing.T) {
	s := plugintest.NewHarness(t, "moderation")
	p := made(t, s, Config{})
	for rank, ok := range map[core.Rank]bool{core.RankMember: false, core.RankModerator: false, core.RankAdmin: true,
		core.RankBot: false} {
		c := command.Call{Path: core.MustPath("room/jay"), Private: true, Author: core.Author{ID: "jay", Rank: rank}}
		if _, err := call(t, p, "appeals", c); (err == nil) != ok {
			t.Errorf("rank %d: got %v", rank, err)
		}
		if c.Path, c.Private = group, false; rank == core.RankAdmin {
			if _, err := call(t, p, "appeals", c); err == nil {
				t.Error("appeals are listed in a group")
			}
		}
	}
}

// TestRepeated checks that a call that is repeated after a crash changes and logs nothing more, and can be undone.
func TestRepeated(t *testing.T) {
	for name, tc := range map[string]struct{ payload, log string }{
		"mute_here":        {`{"duration":"2h"}`, "muted"},
		"mute_here a user": {`{"person":"jay","duration":"2h"}`, "muted"},
		"block_user":       {`{"person":"jay","duration":"2h"}`, "blocked"},
	} {
		t.Run(name, func(t *testing.T) {
			s := plugintest.NewHarness(t, "moderation")
			m := says("1", "jay", "hi")
			m.ID = "1"
			seen := []core.Entry{{Event: core.Event{Kind: core.KindMessage, Message: *m}}}
			if err := s.DB.Commit(t.Context(), &core.Batch{Append: seen}); err != nil {
				t.Fatal(err)
			}
			action, _, _ := strings.Cut(name, " ")
			c := core.Call{Key: core.Key{Turn: core.TurnID{Path: group, Seq: 1}, Round: 1, Step: 1}, Path: group,
				Author: core.Author{ID: "mia", Name: "Mia", Rank: core.RankModerator}, Payload: []byte(tc.payload)}
			var p *Plugin
			var a core.Action
			var results []core.Result
			for range 2 {
				p = made(t, s, Config{})
				for _, a = range p.Actions() {
					if a.Name == action {
						break
					}
				}
				r, err := a.Do(t.Context(), c)
				if err != nil {
					t.Fatal(err)
				}
				results = append(results, r)
				s.Advance(time.Minute)
			}
			if first, again := string(results[0].Output), string(results[1].Output); first != again {
				t.Errorf("got %s, then %s", first, again)
			}
			if n := len(p.records.events(func(e *event) bool { return e.What == tc.log })); n != 1 {
				t.Errorf("logged %d times", n)
			}
			if err := a.Undo(t.Context(), c, results[1]); err != nil {
				t.Fatal(err)
			}
			if left := p.records.find(func(*hold) bool { return true }); len(left) != 0 {
				t.Errorf("after it was undone: %+v", left)
			}
			c.Key.Step = 2
			if _, err := a.Do(t.Context(), c); err != nil {
				t.Fatal(err)
			}
			if n := len(p.records.events(func(e *event) bool { return e.What == tc.log })); n != 2 {
				t.Errorf("after another call: logged %d times in all", n)
			}
		})
	}
}
