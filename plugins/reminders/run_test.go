package reminders

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"synthbot/core"
	"synthbot/core/command"
	"synthbot/core/spoken"
	"synthbot/core/timezone"
	"synthbot/plugins/plugintest"
	"synthbot/plugins/reminders/calendar"
)

// shelf is a core.Items in memory that counts calls.
type shelf struct {
	mu     sync.Mutex
	items  map[core.Path]map[string]core.Item
	calls  int
	listed int                   // items that List returned
	fail   func(core.Item) error // called before a Put, if set
}

func newShelf() *shelf { return &shelf{items: make(map[core.Path]map[string]core.Item)} }

func (s *shelf) Get(_ context.Context, path core.Path, key string) (core.Item, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	item, ok := s.items[path][key]
	return item, ok, nil
}

func (s *shelf) Put(_ context.Context, item core.Item) (uint64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	if err := s.check(item); err != nil {
		return 0, err
	}
	return s.put(item), nil
}

func (s *shelf) PutAll(_ context.Context, list ...core.Item) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	for _, item := range list {
		if err := s.check(item); err != nil {
			return err
		}
	}
	for _, item := range list {
		s.put(item)
	}
	return nil
}

func (s *shelf) check(item core.Item) error {
	if item.Version != core.AnyVersion && item.Version != s.items[item.Path][item.Key].Version {
		return core.ErrVersion
	}
	if s.fail != nil {
		return s.fail(item)
	}
	return nil
}

func (s *shelf) put(item core.Item) uint64 {
	if item.Value == nil {
		delete(s.items[item.Path], item.Key)
		return 0
	}
	if s.items[item.Path] == nil {
		s.items[item.Path] = make(map[string]core.Item)
	}
	item.Version = s.items[item.Path][item.Key].Version + 1
	s.items[item.Path][item.Key] = item
	return item.Version
}

func (s *shelf) List(_ context.Context, root core.Path) (list []core.Item, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	for path, items := range s.items {
		if path.Within(root) {
			for _, item := range items {
				list = append(list, item)
			}
		}
	}
	slices.SortFunc(list, func(a, b core.Item) int {
		return strings.Compare(a.Path.String()+"\x00"+a.Key, b.Path.String()+"\x00"+b.Key)
	})
	s.listed += len(list)
	return list, nil
}

// asked returns the number of calls and of listed items.
func (s *shelf) asked() (calls, listed int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls, s.listed
}

func (s *shelf) count() (n int) {
	for _, items := range s.items {
		n += len(items)
	}
	return n
}

var (
	group  = core.MustPath("room/1")
	jay    = core.Author{ID: "jay", Name: "Jay", Rank: core.RankModerator}
	jayWay = core.MustPath("room/@user/jay")
)

func stand(t testing.TB, items core.Items) (*plugintest.Harness, *Plugin) {
	t.Helper()
	s := plugintest.NewHarness(t, "reminders")
	if items != nil {
		s.Items = items
	}
	return s, restart(t, s)
}

func restart(t testing.TB, s *plugintest.Harness) *Plugin {
	t.Helper()
	p, err := New(s.Host, plugintest.Defaults(t, Config{}))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// runFor runs the plugin for a duration.
func runFor(t *testing.T, p *Plugin, d time.Duration) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan error)
	go func() { over <- p.Run(ctx) }()
	time.Sleep(d)
	synctest.Wait()
	cancel()
	if err := <-over; err != nil {
		t.Errorf("Run: %v", err)
	}
}

func ask(t testing.TB, p *Plugin, text string, at time.Time, rule string) reminder {
	t.Helper()
	w := wish{text: text, when: spoken.When{At: at}}
	if rule != "" {
		var err error
		if w.rule, err = calendar.ParseRule(rule); err != nil {
			t.Fatal(err)
		}
	}
	r, err := p.set(t.Context(), command.Call{Path: group, Author: jay, Person: jayWay}, w)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func occasions(t *testing.T, s *plugintest.Harness) (list []occasion) {
	t.Helper()
	for _, e := range s.Received() {
		var o occasion
		if err := json.Unmarshal([]byte(e.Data), &o); err != nil || e.Kind != core.KindReminder {
			t.Fatalf("%+v: %v", e, err)
		}
		list = append(list, o)
	}
	return list
}

// TestClockChanges checks daily reminders around clock changes in four zones: they come when a local clock
// shows their time.
func TestClockChanges(t *testing.T) {
	for _, tc := range []struct {
		zone, first string
		want        []string
	}{
		{"Europe/Rome", "2027-03-27T02:30", []string{"2027-03-27T02:30:00+01:00", "2027-03-28T03:30:00+02:00", "2027-03-29T02:30:00+02:00"}},
		{"Europe/Rome", "2027-10-30T09:00", []string{"2027-10-30T09:00:00+02:00", "2027-10-31T09:00:00+01:00", "2027-11-01T09:00:00+01:00"}},
		{"America/New_York", "2027-11-06T01:30", []string{"2027-11-06T01:30:00-04:00", "2027-11-07T01:30:00-04:00", "2027-11-08T01:30:00-05:00"}},
		{"America/New_York", "2027-03-13T09:00", []string{"2027-03-13T09:00:00-05:00", "2027-03-14T09:00:00-04:00", "2027-03-15T09:00:00-04:00"}},
		{"Australia/Lord_Howe", "2027-04-03T01:45", []string{"2027-04-03T01:45:00+11:00", "2027-04-04T01:45:00+11:00", "2027-04-05T01:45:00+10:30"}},
		{"Australia/Lord_Howe", "2027-10-02T02:15", []string{"2027-10-02T02:15:00+10:30", "2027-10-03T02:45:00+11:00", "2027-10-04T02:15:00+11:00"}},
		{"America/Santiago", "2027-09-04T00:00", []string{"2027-09-04T00:00:00-04:00", "2027-09-05T01:00:00-03:00", "2027-09-06T00:00:00-03:00"}},
		{"America/Santiago", "2027-04-03T23:30", []string{"2027-04-03T23:30:00-03:00", "2027-04-04T23:30:00-04:00", "2027-04-05T23:30:00-04:00"}},
	} {
		synctest.Test(t, func(t *testing.T) {
			loc, ok := timezone.Load(tc.zone)
			if !ok {
				t.Fatal(tc.zone)
			}
			wall, err := time.Parse("2006-01-02T15:04", tc.first)
			if err != nil {
				t.Fatal(err)
			}
			first := calendar.Resolve(wall, loc)
			s, p := stand(t, nil)
			s.Set(first.Add(-time.Hour))
			ask(t, p, "tea", first, "FREQ=DAILY;COUNT=3")
			var told []string
			seen := make(map[string]time.Time)
			ctx, cancel := context.WithCancel(t.Context())
			over := make(chan error)
			go func() { over <- p.Run(ctx) }()
			for range 75 * 4 { // 75 hours
				time.Sleep(15 * time.Minute)
				synctest.Wait()
				for _, o := range occasions(t, s) {
					if seen[o.Due].IsZero() {
						seen[o.Due] = s.Clock()
						told = append(told, o.Due)
						due, err := time.Parse(time.RFC3339, o.Due)
						if err != nil || s.Clock().Sub(due) >= 15*time.Minute || o.Late != "" {
							t.Errorf("%s was announced at %s, late %q (%v)", o.Due, s.Clock(), o.Late, err)
						}
					}
				}
			}
			cancel()
			if err := <-over; err != nil {
				t.Error(err)
			}
			if !slices.Equal(told, tc.want) {
				t.Errorf("%s from %s: %q, want %q", tc.zone, tc.first, told, tc.want)
			}
		})
	}
}

// TestCrash stops the plugin between a due time and the write about it. The next run announces each time once
// and misses none.
func TestCrash(t *testing.T) {
	for i := range 16 {
		synctest.Test(t, func(t *testing.T) {
			items := newShelf()
			s, p := stand(t, items)
			begin := s.Clock()
			ask(t, p, "always", begin.Add(time.Hour), "FREQ=HOURLY;COUNT=3")
			want := []string{"always", "always", "always"}
			if i%2 == 1 {
				ask(t, p, "once", begin.Add(time.Hour), "")
				want = append(want, "once")
			}
			writes := i / 2
			left := writes
			items.fail = func(core.Item) error {
				if left--; left < 0 {
					return errors.New("the process is dead")
				}
				return nil
			}
			runFor(t, p, 61*time.Minute)
			items.mu.Lock()
			items.fail = nil
			items.mu.Unlock()
			runFor(t, restart(t, s), 3*time.Hour)
			var got []string
			for _, e := range s.Received() {
				got = append(got, e.Message.Text)
			}
			slices.Sort(got)
			if !slices.Equal(got, want) {
				t.Errorf("after %d writes: got %q, want %q", writes, got, want)
			}
			if n := items.count() - len(items.items[hoursRoot()]); n != 0 {
				t.Errorf("after %d writes: %d items remain: %v", writes, n, items.items)
			}
		})
	}
}

// TestDeaf checks that a rejected reminder is retried, and is announced as late.
func TestDeaf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, p := stand(t, nil)
		ask(t, p, "tea", s.Clock().Add(time.Minute), "")
		s.Deaf = core.ErrFull
		ctx, cancel := context.WithCancel(t.Context())
		over := make(chan error)
		go func() { over <- p.Run(ctx) }()
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		s.Deaf = nil
		ask(t, p, "coffee", s.Clock().Add(90*time.Second), "")
		time.Sleep(3 * time.Minute)
		synctest.Wait()
		cancel()
		if err := <-over; err != nil {
			t.Error(err)
		}
		got := s.Received()
		if len(got) != 2 || got[0].Message.Text != "tea (late by 10m)" || got[1].Message.Text != "coffee" {
			t.Errorf("received %+v", got)
		}
	})
}

// TestPoison checks that a reminder that is always rejected does not delay others.
func TestPoison(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, p := stand(t, nil)
		p.host.Inbox = picky{s}
		ask(t, p, "poison", s.Clock().Add(time.Minute), "")
		for i := range 5 {
			ask(t, p, fmt.Sprint("tea ", i), s.Clock().Add(time.Duration(i)*time.Hour+time.Minute), "")
		}
		runFor(t, p, 5*time.Hour)
		got := s.Received()
		if len(got) != 5 {
			t.Errorf("received %+v", got)
		}
		for _, e := range got {
			if e.Message.Time.Second() != 0 {
				t.Errorf("%s was delayed until %s", e.Message.Text, e.Message.Time)
			}
		}
	})
}

type picky struct{ core.Inbox }

func (i picky) Receive(ctx context.Context, events ...core.Event) error {
	if events[0].Message.Text[:3] == "poi" {
		return errors.New("bad event")
	}
	return i.Inbox.Receive(ctx, events...)
}

type refusing struct{ core.Inbox }

func (refusing) Receive(context.Context, ...core.Event) error {
	return fmt.Errorf("refused: %w", core.ErrBadEvent)
}

// TestRefused checks that an invalid event is not retried.
func TestRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, p := stand(t, nil)
		p.host.Inbox = refusing{p.host.Inbox}
		ask(t, p, "tea", s.Clock().Add(time.Hour), "")
		runFor(t, p, 2*time.Hour)
		list, err := p.of(t.Context(), jayWay)
		if err != nil || len(list) != 0 {
			t.Errorf("got %v, %v", list, err)
		}
	})
}

// TestForgotten checks that nothing is announced or remains after the user or the place was forgotten.
func TestForgotten(t *testing.T) {
	for _, gone := range []core.Path{jayWay, group} {
		synctest.Test(t, func(t *testing.T) {
			s, p := stand(t, nil)
			ask(t, p, "tea", s.Clock().Add(time.Hour), "")
			if err := s.DB.Forget(t.Context(), gone); err != nil {
				t.Fatal(err)
			}
			runFor(t, p, 2*time.Hour)
			if got := s.Received(); len(got) != 0 {
				t.Errorf("after %s was forgotten: received %+v", gone, got)
			}
			if left, err := s.Items.List(t.Context(), core.MustPath("room")); err != nil || gone == group && len(left) != 0 {
				t.Errorf("after %s was forgotten: %d items remain, %v", gone, len(left), err)
			}
		})
	}
}

// TestErased checks that items that refer to a user are erased with the user.
func TestErased(t *testing.T) {
	items := newShelf()
	s, p := stand(t, items)
	ask(t, p, "tea", s.Clock().Add(time.Hour), "")
	if err := p.Erase(t.Context(), jayWay); err != nil {
		t.Fatal(err)
	}
	for path, list := range items.items {
		for key, item := range list {
			if path != jayWay && strings.Contains(key+string(item.Value), "jay") {
				t.Errorf("%s %s remains", path, key)
			}
		}
	}
}

// TestSetTwice checks that a call that is repeated, as after a crash, does not set a second reminder, although
// its relative time is later then. Another call does.
func TestSetTwice(t *testing.T) {
	s, p := stand(t, nil)
	a := command.Call{Path: group, Author: jay, Person: jayWay}
	var ids []string
	for _, seed := range []string{"room/1#1/1/1", "room/1#1/1/1", "room/1#1/1/2"} {
		r, err := p.set(t.Context(), a, wish{text: "tea", when: spoken.When{At: s.Clock().Add(time.Hour)}, seed: seed})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, r.ID)
		s.Advance(5 * time.Minute)
	}
	if ids[0] != ids[1] || ids[0] == ids[2] {
		t.Errorf("ids: got %q", ids)
	}
	if list, err := p.of(t.Context(), jayWay); err != nil || len(list) != 2 {
		t.Errorf("got %d reminders, %v", len(list), err)
	}
}

// TestPlaced checks that a reminder's event has the same fields as messages of its place.
func TestPlaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, p := stand(t, nil)
		m := core.Message{Path: group, ID: "1", Author: jay, Text: "hello", Time: s.Clock(), Scopes: []core.Path{core.MustPath("room/category")}}
		if err := s.DB.Commit(t.Context(),
			&core.Batch{Append: []core.Entry{{Event: core.Event{Kind: core.KindMessage, Message: m}}}}); err != nil {
			t.Fatal(err)
		}
		ask(t, p, "tea", s.Clock().Add(time.Hour), "")
		runFor(t, p, 2*time.Hour)
		got := s.Received()
		if len(got) != 1 || !slices.Equal(got[0].Message.Scopes, m.Scopes) || got[0].Message.Author != jay ||
			got[0].Message.Private {
			t.Fatalf("received %+v", got)
		}
		if want := fmt.Sprintf("-%d", s.Clock().Add(-time.Hour).Unix()); !strings.HasSuffix(got[0].Message.ID, want) {
			t.Errorf("id: got %s, want the suffix %s", got[0].Message.ID, want)
		}
	})
}

// TestWhole checks that a reminder and the items that refer to it are written all or not at all, whichever
// write fails.
func TestWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		items := newShelf()
		s, p := stand(t, items)
		set := func() error {
			_, err := p.doSet(t.Context(), core.Call{Path: group, Author: jay}, setPayload{Text: "tea", When: s.Clock().Add(time.Hour).Format(time.RFC3339)})
			return err
		}
		failing := func(what string, do func() error, want int) {
			for n := 1; ; n++ {
				left := n
				items.fail = func(core.Item) error {
					if left--; left == 0 {
						return core.ErrFull
					}
					return nil
				}
				err := do()
				if err == nil {
					return
				}
				if got := items.count(); got != want {
					t.Errorf("%s, write %d fails: got %d items, want %d", what, n, got, want)
				}
			}
		}
		failing("set", set, 0)
		all, err := p.of(t.Context(), jayWay)
		if err != nil || len(all) != 1 {
			t.Fatalf("got %+v, %v", all, err)
		}
		failing("drop", func() error { return p.drop(t.Context(), pointer{jayWay, all[0].ID, group}, all[0].Due) }, 4)
	})
}

// TestAgenda adds and cancels random reminders before and during a run. All that remain are announced once, in
// order.
func TestAgenda(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		items := newShelf()
		s, p := stand(t, items)
		p.config.PerPerson = 1 << 20
		random := rand.New(rand.NewPCG(1, 2))
		want := make(map[string]int64)
		add := func(i int, span time.Duration) {
			r := ask(t, p, fmt.Sprint("r", i), s.Clock().Add(time.Minute+time.Duration(random.Int64N(int64(span)))), "")
			if want[r.Text] = r.Due.Unix(); random.IntN(5) == 0 {
				if err := p.drop(t.Context(), pointer{jayWay, r.ID, group}, r.Due); err != nil {
					t.Fatal(err)
				}
				delete(want, r.Text)
			}
		}
		for i := range 200 {
			add(i, 72*time.Hour)
		}
		for i := range 50 { // within one hour
			w := p.host.Clock().Add(26*time.Hour + time.Duration(random.Int64N(int64(time.Hour))))
			want[fmt.Sprint("m", i)] = bare(t, p, fmt.Sprint("m", i), w)
		}
		ctx, cancel := context.WithCancel(t.Context())
		over := make(chan error)
		go func() { over <- p.Run(ctx) }()
		for i := range 100 {
			time.Sleep(time.Duration(random.Int64N(int64(time.Hour))))
			add(1000+i, 3*time.Hour)
		}
		time.Sleep(80 * time.Hour)
		synctest.Wait()
		cancel()
		if err := <-over; err != nil {
			t.Fatal(err)
		}
		last := int64(0)
		for _, e := range s.Received() {
			due, ok := want[e.Message.Text]
			if !ok || due+1 < last {
				t.Errorf("%s, due at %d, was announced after %d (wanted: %v)", e.Message.Text, due, last, ok)
			}
			last = max(last, due)
			delete(want, e.Message.Text)
		}
		if len(want) > 0 {
			t.Errorf("%d were not announced: %v", len(want), want)
		}
		if n := len(items.items[hoursRoot()]); n > 4 {
			t.Errorf("%d hours remain on disk", n)
		}
	})
}

// bare stores a reminder without checking the limits.
func bare(t testing.TB, p *Plugin, text string, at time.Time) int64 {
	r := reminder{ID: text, Text: text, Place: group, Author: jay, Start: at.Truncate(time.Second),
		Due: at.Truncate(time.Second), person: jayWay}
	if err := p.keep(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	return r.Due.Unix()
}

// TestManyWait checks that a hundred thousand waiting reminders cost nothing: one hour of them is read at the
// start, and nothing until one is due.
func TestManyWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		items := newShelf()
		s, p := stand(t, items)
		many(t, p, 100_000)
		var looked atomic.Int32
		now := s.Clock
		s.Clock = func() time.Time { looked.Add(1); return now() }
		p = restart(t, s)
		items.calls, items.listed = 0, 0
		ctx, cancel := context.WithCancel(t.Context())
		over := make(chan error)
		go func() { over <- p.Run(ctx) }()
		synctest.Wait()
		before, listed := items.asked()
		if listed > 900 || before > 2 {
			t.Errorf("the start listed %d items in %d calls", listed, before)
		}
		looked.Store(0)
		time.Sleep(59 * time.Minute)
		synctest.Wait()
		if after, _ := items.asked(); after != before || looked.Load() > 60 {
			t.Errorf("%d calls and %d reads of the clock while nothing was due", after-before, looked.Load())
		}
		time.Sleep(2*time.Minute + 7*time.Second)
		synctest.Wait()
		if len(s.Received()) == 0 {
			t.Error("the first reminder was not announced")
		}
		cancel()
		if err := <-over; err != nil {
			t.Error(err)
		}
	})
}

// many stores n reminders over 30 days, the first one in an hour.
func many(t testing.TB, p *Plugin, n int) {
	t.Helper()
	begin := p.host.Clock().Add(time.Hour).Truncate(time.Second)
	for i := range n {
		bare(t, p, fmt.Sprintf("many%d", i), begin.Add(time.Duration(i)*(30*24*time.Hour/time.Duration(n))))
	}
}

// BenchmarkWaiting measures a wake-up with a hundred thousand reminders, none of them due.
func BenchmarkWaiting(b *testing.B) {
	_, p := stand(b, newShelf())
	many(b, p, 100_000)
	b.ReportAllocs()
	for b.Loop() {
		if err := p.fireDue(b.Context(), p.host.Clock()); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkStart measures a start with a hundred thousand reminders in a real database, until the plugin
// sleeps.
func BenchmarkStart(b *testing.B) {
	s, p := stand(b, nil)
	var all sync.WaitGroup
	begin := s.Clock().Add(time.Hour)
	for g := range 1000 { // concurrent commits share syncs
		all.Go(func() {
			for i := range 100 {
				bare(b, p, fmt.Sprintf("r%d-%d", g, i), begin.Add(time.Duration(g*100+i)*26*time.Second))
			}
		})
	}
	all.Wait()
	b.ReportAllocs()
	for b.Loop() {
		p := restart(b, s)
		if err := p.fireDue(b.Context(), p.host.Clock()); err != nil {
			b.Fatal(err)
		}
	}
}

// TestDueBeforeItWasSet checks that a reminder of a plan that ran late, as after a crash, is announced at once
// and as late if its time has passed.
func TestDueBeforeItWasSet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, p := stand(t, nil)
		call := core.Call{Path: group, Author: jay, Planned: s.Clock()}
		at := func(d time.Duration) setPayload {
			return setPayload{Text: "tea", When: call.Planned.Add(d).Format(time.RFC3339)}
		}
		time.Sleep(10 * time.Minute)
		if _, err := p.doSet(t.Context(), call, at(time.Minute)); err != nil {
			t.Fatal(err)
		}
		for _, c := range []core.Call{call, {Path: group, Author: jay}} {
			var e *core.Error
			if _, err := p.doSet(t.Context(), c, at(-time.Minute)); !errors.As(err, &e) || e.Kind != core.Invalid {
				t.Errorf("past time: got %v", err)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		over := make(chan error)
		go func() { over <- p.Run(ctx) }()
		time.Sleep(time.Minute)
		synctest.Wait()
		cancel()
		if err := <-over; err != nil {
			t.Error(err)
		}
		if got := s.Received(); len(got) != 1 || got[0].Message.Text != "tea (late by 9m)" {
			t.Errorf("received %+v", got)
		}
	})
}
