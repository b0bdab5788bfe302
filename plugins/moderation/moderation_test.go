package moderation

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"synthbot/core"
	"synthbot/core/command"
	"synthbot/plugins/plugintest"
)

func TestScripts(t *testing.T) { plugintest.Run(t, "testdata/*.txt", plugintest.Of(New)) }

var (
	group    = core.MustPath("room/1")
	jayPath  = core.MustPath("room/@user/jay")
	miaPath  = core.MustPath("room/@user/mia")
	bossPath = core.MustPath("room/@user/boss")
)

func made(t testing.TB, s *plugintest.Stand, c Config) *Plugin {
	t.Helper()
	s.People = []core.Path{bossPath}
	p, err := New(s.Host, c)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// boss is an admin who acts in private.
func boss(p *Plugin) *actor {
	return &actor{core.MustPath("room/boss"), true, core.Admin, bossPath, "Boss", p.host.Facts.Epoch()}
}

func mia(p *Plugin) *actor {
	return &actor{group, false, core.Moderator, miaPath, "Mia", p.host.Facts.Epoch()}
}

// says is a message to the bot: in a group where place is a number, else in the
// private place of that name.
func says(place, who, text string) *core.Message {
	m := &core.Message{Path: core.MustPath("room/" + place), Author: core.Author{ID: who, Name: strings.ToUpper(who)}, Text: text, Addressed: core.Mention}
	if place[0] > '9' {
		m.Private, m.Addressed = true, core.Direct
	}
	return m
}

// run lets the plugin do what it does in the background, until what waits is done.
func run(t *testing.T, p *Plugin) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := p.Run(ctx); err != nil {
		t.Fatal(err)
	}
	if err := p.sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func disk(t *testing.T, s *plugintest.Stand) string {
	t.Helper()
	var b strings.Builder
	if err := s.DB.Export(t.Context(), &b, core.Path{}); err != nil {
		t.Fatal(err)
	}
	return b.String()
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
	t.Fatalf("there is no command %s", name)
	return "", nil
}

func TestConform(t *testing.T) {
	plugintest.Conform(t, plugintest.Case{
		Name: "moderation",
		Make: func(t *testing.T, s *plugintest.Stand) core.Plugin {
			p := made(t, s, Config{})
			if _, err := p.hold(t.Context(), boss(p), blocked, wish{who: "room/@user/jay"}); err != nil {
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

// TestForgotten: a block outlives that the person is forgotten, and nothing is
// left that names him, or what was said of him; who blocked him is left with
// nothing of it either. It is lifted by what the list calls him, or by the id of
// who came back.
func TestForgotten(t *testing.T) {
	for name, act := range map[string]func(*Plugin) *actor{"an admin": boss, "a moderator": mia} {
		for _, byID := range []bool{true, false} {
			t.Run(fmt.Sprint(name, byID), func(t *testing.T) { testForgotten(t, act, byID) })
		}
	}
}

func testForgotten(t *testing.T, act func(*Plugin) *actor, byID bool) {
	s := plugintest.NewStand(t, "moderation")
	p := made(t, s, Config{Private: Limit{1, time.Hour}})
	m := says("1", "jay", "hi")
	m.ID = "1"
	if err := s.DB.Commit(t.Context(), &core.Batch{Append: []core.Entry{{Event: core.Event{Kind: core.KindMessage, Message: *m}}}}); err != nil {
		t.Fatal(err)
	}
	if p.Judge(says("jay", "jay", "one"), false); p.Judge(says("jay", "jay", "two"), false).Reply == "" {
		t.Fatal("there is no limit")
	}
	if _, err := p.hold(t.Context(), act(p), blocked, wish{who: "room/@user/jay", reason: "canary-reason", span: day}); err != nil {
		t.Fatal(err)
	}
	jay := command.Call{Path: core.MustPath("room/jay"), Private: true, Author: core.Author{ID: "jay", Name: "Canary-Jay"}}
	jay.Args = map[string]string{"text": "canary-text"}
	if _, err := call(t, p, "appeal", jay); err != nil {
		t.Fatal(err)
	}
	run(t, p)
	p.mu.Lock()
	p.happened(who{"room", "jay"}, m, event{What: wasFlooding}) // left in the queue
	p.mu.Unlock()
	if before := disk(t, s); strings.Count(before, "canary") < 3 || !strings.Contains(before, "Canary-Jay") {
		t.Fatalf("little is kept: %s", before)
	}
	if kept, err := p.Kept(t.Context(), jayPath); err != nil || len(kept) != 1 || !strings.Contains(string(kept[0]), `"kind":"block"`) {
		t.Errorf("he is shown %s, %v", kept, err)
	}
	if err := errors.Join(p.Erase(t.Context(), jayPath), s.DB.Forget(t.Context(), jayPath)); err != nil {
		t.Fatal(err)
	}
	run(t, p)
	left := strings.ToLower(disk(t, s))
	for _, word := range []string{"canary", "jay", "mia", "boss"} {
		if strings.Contains(left, word) {
			t.Errorf("there is still %q: %s", word, left)
		}
	}
	for _, q := range []*Plugin{p, made(t, s, Config{})} {
		if v := q.Judge(says("1", "jay", "hello"), false); v.Admission != core.Discard {
			t.Errorf("who was forgotten is let in: %+v", v)
		}
		if list := q.listed(blocked, func(*hold) bool { return true }); len(list) != 1 || !list[0].person.IsZero() || list[0].name != "" {
			t.Fatalf("the list says %+v", list)
		}
		if kept, err := q.Kept(t.Context(), jayPath); err != nil || len(kept) != 1 {
			t.Errorf("he is shown %s, %v", kept, err)
		}
	}
	lift(t, p, act(p), byID)
}

// lift lifts the one block there is.
func lift(t *testing.T, p *Plugin, a *actor, byID bool) {
	t.Helper()
	name := p.listed(blocked, func(*hold) bool { return true })[0].mark()
	if byID {
		name = "jay"
	}
	if _, err := p.release(t.Context(), a, blocked, "nobody"); err == nil {
		t.Error("nobody was blocked, and is not any more")
	}
	if _, err := p.release(t.Context(), a, blocked, name); err != nil {
		t.Fatalf("%s is not lifted: %v", name, err)
	}
	if v := p.Judge(says("1", "jay", "hello"), false); v.Admission != core.Admit {
		t.Errorf("lifted by %s, and yet %+v", name, v)
	}
	if _, err := p.release(t.Context(), a, blocked, name); err == nil {
		t.Errorf("%s is lifted twice", name)
	}
}

// forgetting forgets somebody at the moment when something is written under his
// path.
type forgetting struct {
	core.Items
	prefix string
	forget func()
}

func (f *forgetting) Put(ctx context.Context, item core.Item) (uint64, error) {
	if strings.HasPrefix(item.Key, f.prefix) && item.Value != nil && item.Path.IsPerson() && f.forget != nil {
		forget := f.forget
		f.forget = nil
		forget()
	}
	return f.Items.Put(ctx, item)
}

// TestForgottenMeanwhile: what is written while the person, or the moderator, is
// forgotten names nobody; the block holds.
func TestForgottenMeanwhile(t *testing.T) {
	for _, prefix := range []string{holdKey, logKey, didKey} {
		for _, whom := range []core.Path{jayPath, bossPath} {
			s := plugintest.NewStand(t, "moderation")
			f := &forgetting{Items: s.Items, prefix: prefix}
			s.Items = f
			p := made(t, s, Config{})
			f.forget = func() {
				if err := s.DB.Forget(context.Background(), whom); err != nil {
					t.Error(err)
				}
			}
			if _, err := p.hold(t.Context(), boss(p), blocked, wish{who: jayPath.String(), reason: "canary"}); err != nil {
				t.Fatal(err)
			}
			if f.forget != nil {
				t.Fatalf("nothing was written under %s", prefix)
			}
			if left := disk(t, s); whom == jayPath && (strings.Contains(left, "jay") || strings.Contains(left, "canary")) || whom == bossPath && strings.Contains(strings.ToLower(left), "boss") {
				t.Errorf("%s was forgotten while %s was written: %s", whom, prefix, left)
			}
			for _, q := range []*Plugin{p, made(t, s, Config{})} {
				if v := q.Judge(says("1", "jay", "hello"), false); v.Admission != core.Discard {
					t.Errorf("the block does not hold: %+v", v)
				}
			}
		}
	}
}

// TestSweep: what is over leaves the disk, and what is old the log.
func TestSweep(t *testing.T) {
	s := plugintest.NewStand(t, "moderation")
	p := made(t, s, Config{Keep: 30 * day})
	if _, err := p.hold(t.Context(), boss(p), blocked, wish{who: jayPath.String(), span: day}); err != nil {
		t.Fatal(err)
	}
	if _, err := p.hush(t.Context(), mia(p), time.Hour, ""); err != nil {
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
		t.Errorf("there is\n%s, want\n%s", got, want)
	}
	s.Advance(25 * time.Hour)
	run(t, p)
	want = " key|room/1 log|room/@user/boss did|room/@user/jay appeal|room/@user/jay log|room/@user/jay log|room/@user/mia did"
	if got := strings.Join(keys(), "|"); got != want {
		t.Errorf("after a day there is\n%s, want\n%s", got, want)
	}
	s.Advance(30 * day)
	run(t, p)
	if got := strings.Join(keys(), "|"); got != " key" {
		t.Errorf("after a month there is %s", got)
	}
}

// TestMoved: what holds in a group holds where the group goes on.
func TestMoved(t *testing.T) {
	s := plugintest.NewStand(t, "moderation")
	p := made(t, s, Config{})
	old, next := core.MustPath("room/5"), core.MustPath("room/100")
	m := says("5", "jay", "hi")
	m.ID = "1"
	if err := s.DB.Commit(t.Context(), &core.Batch{Append: []core.Entry{{Event: core.Event{Kind: core.KindMessage, Message: *m}}}}); err != nil {
		t.Fatal(err)
	}
	a := mia(p)
	a.place = old
	for _, kind := range []string{blocked, muted} {
		if _, err := p.hold(t.Context(), a, kind, wish{who: "jay", reason: "why"}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := p.hush(t.Context(), a, day, ""); err != nil {
		t.Fatal(err)
	}
	move := core.Event{Kind: core.KindMigration, To: next, Message: core.Message{Path: old, ID: "2"}}
	if err := s.DB.Commit(t.Context(), &core.Batch{Change: []core.Event{move}}); err != nil {
		t.Fatal(err)
	}
	if v := p.Judge(says("100", "jay", "hello"), false); v.Admission != core.Admit {
		t.Fatalf("it holds already: %+v", v)
	}
	run(t, p)
	for _, q := range []*Plugin{p, made(t, s, Config{})} {
		if v := q.Judge(says("100", "jay", "hello"), false); v.Admission != core.Discard {
			t.Errorf("the block stayed behind: %+v", v)
		}
		if v := q.Judge(says("100", "ann", "hello"), false); v.Admission != core.Quiet {
			t.Errorf("the mute stayed behind: %+v", v)
		}
		list := q.listed(blocked, func(*hold) bool { return true })
		if len(list) != 1 || list[0].scope != next || list[0].name != "JAY" {
			t.Errorf("the list says %+v", list)
		}
	}
}

// unreadable is a store that cannot be read.
type unreadable struct{ core.Items }

func (unreadable) List(context.Context, core.Path) ([]core.Item, error) {
	return nil, core.ErrDamaged
}

// TestUnreadable: where it is not known who is blocked, nobody is answered.
func TestUnreadable(t *testing.T) {
	s := plugintest.NewStand(t, "moderation")
	fine := s.Items
	s.Items = unreadable{fine}
	p := made(t, s, Config{})
	for range 2 {
		if v := p.Judge(says("1", "jay", "hello"), false); v.Admission != core.Quiet {
			t.Errorf("%+v", v)
		}
	}
	if _, err := p.hold(t.Context(), boss(p), blocked, wish{who: jayPath.String()}); err == nil {
		t.Error("somebody is blocked, and nobody knows who was")
	}
	p.host.Items = fine
	if v := p.Judge(says("1", "jay", "hello"), false); v.Admission != core.Admit {
		t.Errorf("%+v", v)
	}
}

// TestChiefs: who was seen as a moderator of a group is one there, also after a
// restart, until he is seen without the rank.
func TestChiefs(t *testing.T) {
	s := plugintest.NewStand(t, "moderation")
	p := made(t, s, Config{})
	m := says("1", "jay", "hi")
	m.Author.Rank = core.Moderator
	p.Judge(m, false)
	run(t, p)
	jay := target{path: jayPath, Author: core.Author{ID: "jay"}}
	for range 2 {
		p = made(t, s, Config{})
		p.Judge(says("1", "ann", "hi"), false)
		if err := p.may(mia(p), &jay); err == nil {
			t.Error("a moderator may block a moderator")
		}
		elsewhere := mia(p)
		elsewhere.place = core.MustPath("room/2")
		if err := p.may(elsewhere, &jay); err != nil {
			t.Errorf("he is one elsewhere: %v", err)
		}
		p.Judge(says("1", "jay", "again"), true) // counts nothing
	}
	if err := p.may(boss(p), &jay); err != nil {
		t.Errorf("an admin may not: %v", err)
	}
	p.Judge(says("1", "jay", "I am one no longer"), false)
	if err := p.may(mia(p), &jay); err != nil {
		t.Errorf("he is one no longer: %v", err)
	}
	run(t, p)
	p = made(t, s, Config{})
	p.Judge(says("1", "ann", "hi"), false)
	if err := p.may(mia(p), &jay); err != nil {
		t.Errorf("he is one no longer: %v", err)
	}
}

// TestActors: nobody acts but one moderator or admin: not several people at once,
// not the bot itself in a turn of its own, nobody in private beyond himself.
func TestActors(t *testing.T) {
	for name, tc := range map[string]struct {
		who core.Author
		ok  bool
	}{
		"a member":    {core.Author{ID: "jay"}, false},
		"a moderator": {core.Author{ID: "jay", Rank: core.Moderator}, true},
		"an admin":    {core.Author{ID: "jay", Rank: core.Admin}, true},
		"the bot":     {core.Author{ID: "aria", Rank: core.Bot}, false},
		"several":     {core.Author{Rank: core.Moderator}, false},
	} {
		s := plugintest.NewStand(t, "moderation")
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
			if c.Rank > core.Member && !tc.ok && err == nil {
				t.Errorf("%s, /%s: it is done", name, c.Name)
			}
		}
	}
}

// TestDoors: what is left to who is blocked are three commands, in private, five
// times a day; that a message is looked at again counts nothing.
func TestDoors(t *testing.T) {
	for text, want := range map[string]bool{
		"/appeal": true, "/appeal please": true, "/Appeal@AriaBot please": true, "/mydata": true, "/forgetme yes": true, "/appeal\nplease": true,
		"/appeals": false, "appeal": false, " /appeal": false, "/help /appeal": false, "//appeal": false, "/": false, "": false, "/forgetme_": false,
	} {
		if isDoor(text) != want {
			t.Errorf("%q: %v", text, !want)
		}
	}
	s := plugintest.NewStand(t, "moderation")
	p := made(t, s, Config{})
	if _, err := p.hold(t.Context(), boss(p), blocked, wish{who: jayPath.String()}); err != nil {
		t.Fatal(err)
	}
	passes := func(m *core.Message, again bool) bool { return p.Judge(m, again).Admission == core.Quiet }
	for day := range 2 {
		for i := range 7 {
			for range 3 {
				if !passes(says("jay", "jay", "/forgetme yes"), true) {
					t.Errorf("day %d, %d: it does not stand", day, i)
				}
			}
			if got := passes(says("jay", "jay", "/forgetme yes"), false); got != (i < doorsDaily) {
				t.Errorf("day %d, %d: %v", day, i, got)
			}
			if passes(says("1", "jay", "/appeal"), false) || passes(says("jay", "jay", "let me in"), false) {
				t.Error("more than that gets through")
			}
		}
		s.Advance(24 * time.Hour)
	}
}

// TestAtOnce: people talk, are blocked, forgotten and let in again at the same
// time; nothing is torn, and at the end everybody talks. It says most with -race.
func TestAtOnce(t *testing.T) {
	s := plugintest.NewStand(t, "moderation")
	p := made(t, s, Config{Private: Limit{3, time.Hour}, Group: Limit{3, time.Hour}, Place: Limit{5, time.Minute}, Repeat: 2, Rules: []Rule{{Name: "r", Words: []string{"bad"}}}})
	ctx, cancel := context.WithCancel(t.Context())
	var back, all sync.WaitGroup
	back.Go(func() {
		if err := p.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	for n := range 4 {
		id := fmt.Sprintf("p%d", n)
		path := core.MustPath("room/@user/" + id)
		all.Go(func() {
			for i := range 300 {
				p.Judge(says(fmt.Sprint(i%3), id, []string{"good", "bad", "/help", ""}[i%4]), i%5 == 0)
				p.Judge(says(id, id, "/appeal"), false)
			}
		})
		all.Go(func() {
			for range 5 {
				if _, err := p.hold(t.Context(), boss(p), blocked, wish{who: path.String()}); err != nil {
					t.Error(err)
				}
				if n%2 == 0 {
					if err := errors.Join(p.Erase(t.Context(), path), s.DB.Forget(t.Context(), path)); err != nil {
						t.Error(err)
					}
				}
				if _, err := call(t, p, "blocked", command.Call{Path: core.MustPath("room/boss"), Private: true, Author: core.Author{ID: "boss", Rank: core.Admin}}); err != nil {
					t.Error(err)
				}
				if _, err := p.release(t.Context(), boss(p), blocked, path.String()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	cancel()
	back.Wait()
	for _, q := range []*Plugin{p, made(t, s, Config{})} {
		q.Judge(says("1", "ann", "hi"), false)
		if list := q.listed(blocked, func(*hold) bool { return true }); len(list) != 0 {
			t.Errorf("still blocked: %v", list)
		}
	}
}

// TestWritten: what happened is on disk after Run, also what could not be written
// at first; what found no room is not.
func TestWritten(t *testing.T) {
	s := plugintest.NewStand(t, "moderation")
	full := &fullDisk{Items: s.Items, full: true}
	s.Items = full
	p := made(t, s, Config{Group: Limit{1, time.Hour}})
	for i := range 2 * maxQueue {
		for range 2 {
			p.Judge(says("1", fmt.Sprint("p", i), "hi"), false)
		}
	}
	if n := len(p.queue.items); n != maxQueue {
		t.Fatalf("%d wait", n)
	}
	run(t, p)
	full.full = false
	run(t, p)
	if n := strings.Count(disk(t, s), `"what":"limited"`); n != maxQueue {
		t.Errorf("%d are written", n)
	}
	again := made(t, s, Config{Group: Limit{1, time.Hour}})
	if v := again.Judge(says("1", "p7", "hi"), false); v != (core.Verdict{Admission: core.Quiet}) {
		t.Errorf("the limit is forgotten: %+v", v)
	}
}

// fullDisk is a store that cannot be written for a while.
type fullDisk struct {
	core.Items
	full bool
}

func (f *fullDisk) Put(ctx context.Context, item core.Item) (uint64, error) {
	if f.full {
		return 0, core.ErrFull
	}
	return f.Items.Put(ctx, item)
}

// TestLog: the log is bounded, for each person and in all.
func TestLog(t *testing.T) {
	var j journal
	kept := make(map[string]bool)
	for i := range 3 * maxEvents {
		e := event{id: numbered(int64(i)), about: jayPath}
		if i%2 == 0 {
			e.about = core.MustPath(fmt.Sprint("room/@user/", i))
		}
		kept[e.id] = true
		for _, gone := range j.add(e) {
			if !kept[gone.id] {
				t.Fatalf("%s is gone twice", gone.id)
			}
			delete(kept, gone.id)
		}
	}
	his := 0
	for _, e := range j.events {
		if e.about == jayPath {
			his++
		}
	}
	if his != maxHis || len(j.events) > maxEvents || len(kept) != len(j.events) {
		t.Errorf("%d of one person, %d in all, %d kept", his, len(j.events), len(kept))
	}
	for i := range maxAppeals + 50 {
		j.appealed(appeal{id: fmt.Sprint(i), person: core.MustPath(fmt.Sprint("room/@user/", i%200, "x", i/7))})
		j.appealed(appeal{id: fmt.Sprint("j", i), person: jayPath})
	}
	if n := len(j.of(jayPath)); n != maxOnce || len(j.appeals) > maxAppeals {
		t.Errorf("%d appeals of one person, %d in all", n, len(j.appeals))
	}
}
