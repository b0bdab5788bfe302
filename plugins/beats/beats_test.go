package beats

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"synthbot/core"
	"synthbot/core/coretest"
	"synthbot/core/timezone"
	"synthbot/core/values"
	"synthbot/plugins/moderation"
	"synthbot/plugins/plugintest"
	"synthbot/plugins/reminders"
)

func TestScripts(t *testing.T) {
	others := coretest.NewPlugin("others",
		core.Action{Name: "diary_keep", Brief: "Keep the diary", Permission: core.PermissionBot},
		core.Action{Name: "dice_roll", Brief: "Roll dice", Permission: core.PermissionEveryone})
	plugintest.Run(t, "testdata/*.txt", plugintest.Of(New), plugintest.With(others))
}

// TestNightOfPeople checks that nights follow a time zone that another plugin knows.
func TestNightOfPeople(t *testing.T) {
	plugintest.Run(t, "testdata/zone/*.txt", plugintest.Of(New), plugintest.Of(reminders.New), plugintest.Of(moderation.New))
}

func TestConform(t *testing.T) {
	plugintest.Conform(t, plugintest.Case{
		Name: "beats",
		Make: func(t *testing.T, s *plugintest.Harness) core.Plugin { return made(t, s, Config{}) },
	})
}

func made(t testing.TB, s *plugintest.Harness, c Config) *Plugin {
	t.Helper()
	p, err := New(s.Host, plugintest.Defaults(t, c))
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

func optIn(t testing.TB, s *plugintest.Harness, p *Plugin, places int) {
	t.Helper()
	for i := range places {
		at := core.MustPath(fmt.Sprintf("room/%d", i))
		if err := values.Put(t.Context(), s.Items, at, keyWants, wants{On: true}); err != nil {
			t.Fatal(err)
		}
	}
}

// TestBudgets checks the daily limits for each place and for all places together.
func TestBudgets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := plugintest.NewHarness(t, "beats")
		p := made(t, s, Config{PerPlace: 2, PerDay: 7, Night: "none", Beats: []Beat{{Name: "a", Every: time.Hour, Prompt: "x", Kind: kindInternal, Speak: true}}})
		optIn(t, s, p, 1)
		s.Set(time.Date(2026, 3, 2, 0, 0, 1, 0, time.UTC))
		said := func(at string) {
			m := core.Message{Path: core.MustPath(at), ID: s.Clock().String(), Author: core.Author{ID: "jay"}, Text: "x", Time: s.Clock()}
			if err := s.DB.Commit(t.Context(),
				&core.Batch{Append: []core.Entry{{Event: core.Event{Kind: core.KindMessage,
					Message: m}}}}); err != nil {
				t.Fatal(err)
			}
		}
		for range 20 { // a user reacts to each
			said("room/0")
			runFor(t, p, 50*time.Minute)
		}
		if n := len(s.Received()); n != 2 {
			t.Errorf("a place got %d beats in a day", n)
		}
		optIn(t, s, p, 20)
		runFor(t, p, 7*time.Hour+time.Minute) // until the next day
		if n := len(s.Received()); n < 7 || n > 7+7 {
			t.Errorf("got %d beats in two days", n)
		}
		perDay := make(map[string]int)
		for _, e := range s.Received() {
			perDay[e.Message.Time.Format(time.DateOnly)]++
		}
		for day, n := range perDay {
			if n > 7 {
				t.Errorf("got %d beats on %s", n, day)
			}
		}
	})
}

// TestNight checks that no beat comes at night by the place's own clock.
func TestNight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := plugintest.NewHarness(t, "beats")
		p := made(t, s, Config{PerPlace: 100, PerDay: 10000, Beats: []Beat{{Name: "a", Every: 30 * time.Minute, Prompt: "x", Kind: kindInternal, Speak: true}}})
		zones := []string{"Europe/Rome", "America/New_York", "Asia/Tokyo", "Australia/Lord_Howe"}
		for _, zone := range zones {
			if err := values.Put(t.Context(), s.Items, core.MustPath("room/"+zone[:3]), keyWants, wants{On: true, Zone: zone}); err != nil {
				t.Fatal(err)
			}
		}
		s.Set(time.Date(2027, 3, 27, 20, 0, 1, 0, time.UTC)) // on the 28th, daylight saving time begins in Rome
		p.host.Inbox = forgetful{s, p}
		runFor(t, p, 27*time.Hour)
		hours := make(map[string][]int)
		for _, e := range s.Received() {
			i := slices.IndexFunc(zones,
				func(z string) bool { return strings.HasSuffix(e.Message.Path.String(), z[:3]) })
			loc, _ := timezone.Load(zones[i])
			hour := e.Message.Time.In(loc).Hour()
			if hours[zones[i]] = append(hours[zones[i]], hour); hour < 8 || hour >= 22 {
				t.Errorf("got a beat in %s at %s", zones[i], e.Message.Time.In(loc))
			}
		}
		for _, zone := range zones {
			if list := hours[zone]; !slices.Contains(list, 8) || !slices.Contains(list, 21) {
				t.Errorf("in %s, got only %v", zone, list)
			}
		}
	})
}

// forgetful makes every beat look like the first one.
type forgetful struct {
	core.Inbox
	p *Plugin
}

func (f forgetful) Receive(ctx context.Context, events ...core.Event) error {
	if err := values.Put(ctx, f.p.host.Items, events[0].Message.Path, keyGot, got{}); err != nil {
		return err
	}
	return f.Inbox.Receive(ctx, events...)
}

// TestEvent checks the format of events that turns read.
func TestEvent(t *testing.T) {
	for _, tc := range []struct {
		beat Beat
		want string
	}{
		{Beat{Kind: kindOutreach}, `{"beat":"a","quiet":false,"actions":["message_*"]}`},
		{Beat{Kind: kindInternal}, `{"beat":"a","quiet":true,"actions":["diary_*","memory_*","bio_*"]}`},
		{Beat{Kind: kindInternal, Actions: []string{"diary_*"}}, `{"beat":"a","quiet":true,"actions":["diary_*"]}`},
		{Beat{Kind: kindInternal, Speak: true, Actions: []string{"web_*"}}, `{"beat":"a","quiet":false,"actions":["web_*","message_*"]}`},
	} {
		s := plugintest.NewHarness(t, "beats")
		tc.beat.Name, tc.beat.Prompt, tc.beat.Every = "a", "do", time.Hour
		p := made(t, s, Config{Beats: []Beat{tc.beat}})
		at := place{path: core.MustPath("room/1"), wants: wants{Private: true}}
		if err := p.reach(t.Context(), &due{beat: &p.beats[0], at: time.Unix(1_800_000_000, 0)}, &at,
			scene{}); err != nil {
			t.Fatal(err)
		}
		e := s.Received()[0]
		m := e.Message
		if e.Kind != core.KindBeat || e.Data != tc.want || m.ID != "beat-a-1800000000" || m.Text != "do" || !m.Private || m.Author != (core.Author{Bot: true, Rank: core.RankBot}) {
			t.Errorf("got %+v, want %s", e, tc.want)
		}
	}
}

// TestClockApart checks that the time of silence is computed from the platform's timestamps.
func TestClockApart(t *testing.T) {
	var s scene
	clock := time.Unix(1_800_000_000, 0)
	s.see(&core.Entry{Event: core.Event{Kind: core.KindMessage, Message: core.Message{
		Author: core.Author{ID: "jay"}, Text: "hi", Time: clock.Add(-2*time.Hour - time.Minute), Ahead: 2 * time.Hour,
	}}})
	if quiet := clock.Sub(s.talked); quiet != time.Minute {
		t.Errorf("quiet for %s, want a minute", quiet)
	}
}

// TestGone checks that a place from which the bot was removed gets no beats.
func TestGone(t *testing.T) {
	var s scene
	s.see(&core.Entry{Event: core.Event{Kind: core.KindMessage, Message: core.Message{Author: core.Author{ID: "jay"}, Text: "hi", Time: time.Unix(5, 0)}}})
	s.see(&core.Entry{Event: core.Event{Kind: core.KindMembership, Data: "removed"}})
	if !s.gone || s.talked.Unix() != 5 {
		t.Errorf("got %+v", s)
	}
	if s.see(&core.Entry{Event: core.Event{Kind: core.KindMembership, Data: "added"}}); s.gone {
		t.Errorf("got %+v", s)
	}
	p := made(t, plugintest.NewHarness(t, "beats"), Config{Night: "none", Beats: []Beat{{Name: "a", Every: time.Hour, Prompt: "x"}}})
	gone := core.Entry{Event: core.Event{Kind: core.KindMembership, Data: "blocked", Message: core.Message{Path: core.MustPath("room/1"), ID: "1"}}}
	stand := p.host.Reader.(core.Store)
	if err := stand.Commit(t.Context(), &core.Batch{Append: []core.Entry{gone}}); err != nil {
		t.Fatal(err)
	}
	v, _, err := p.judge(t.Context(), &due{beat: &p.beats[0], at: p.host.Clock()}, &place{path: core.MustPath("room/1"), wants: wants{On: true}})
	if v != no || err != nil {
		t.Errorf("judged %v, %v", v, err)
	}
}

// TestIdle checks that without beats nothing is read, and otherwise nothing until a beat is due.
func TestIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := plugintest.NewHarness(t, "beats")
		counted := &counter{Items: s.Items}
		s.Items = counted
		runFor(t, made(t, s, Config{}), 100*time.Hour)
		if counted.n != 0 {
			t.Errorf("got %d calls without beats", counted.n)
		}
		runFor(t, made(t, s, Config{Beats: []Beat{{Name: "a", At: []string{"12:00"}, Prompt: "x"}}}), 20*time.Hour) // from 10:00
		if counted.n > 2 {
			t.Errorf("got %d calls for one beat", counted.n)
		}
	})
}

type counter struct {
	core.Items
	n int
}

func (c *counter) List(ctx context.Context, root core.Path) ([]core.Item, error) {
	c.n++
	return c.Items.List(ctx, root)
}

func (c *counter) Get(ctx context.Context, path core.Path, key string) (core.Item, bool, error) {
	c.n++
	return c.Items.Get(ctx, path, key)
}

// TestAsleep checks that beats that were due while the machine was suspended are dropped.
func TestAsleep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := plugintest.NewHarness(t, "beats")
		p := made(t, s, Config{Night: "none", Beats: []Beat{{Name: "a", At: []string{"12:00", "23:00"}, Prompt: "x"}}})
		optIn(t, s, p, 1)
		ctx, cancel := context.WithCancel(t.Context())
		over := make(chan error)
		go func() { over <- p.Run(ctx) }()
		synctest.Wait()
		s.Advance(5 * time.Hour) // from 10:00
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if got := s.Received(); len(got) != 0 {
			t.Errorf("received %+v", got)
		}
		time.Sleep(8 * time.Hour)
		synctest.Wait()
		if got := s.Received(); len(got) != 1 {
			t.Errorf("received %+v", got)
		}
		cancel()
		if err := <-over; err != nil {
			t.Error(err)
		}
	})
}

// TestOnce checks that a beat that is marked as done does not come again.
func TestOnce(t *testing.T) {
	s := plugintest.NewHarness(t, "beats")
	p := made(t, s, Config{Night: "none", Beats: []Beat{{Name: "a", Every: time.Hour, Prompt: "x", Kind: kindInternal, Places: []core.Path{core.MustPath("room")}}}})
	d, at := due{beat: &p.beats[0], at: s.Clock()}, place{path: core.MustPath("room/1")}
	for _, want := range []verdict{yes, no} {
		if v, _, err := p.judge(t.Context(), &d, &at); v != want || err != nil {
			t.Errorf("judged %v, %v, want %v", v, err, want)
		}
		if err := p.mark(t.Context(), &d, &at, s.Clock()); err != nil {
			t.Fatal(err)
		}
	}
}

func TestSchedule(t *testing.T) {
	rome, _ := timezone.Load("Europe/Rome")
	for _, tc := range []struct {
		beat  Beat
		after string
		want  []string
	}{
		{Beat{At: []string{"18:30", "09:00"}}, "2027-03-27T10:00:00+01:00", []string{"2027-03-27T18:30:00+01:00", "2027-03-28T09:00:00+02:00"}},
		{Beat{At: []string{"09:00"}, Days: []string{"mon", "Thu"}}, "2026-11-20T10:00:00+01:00", []string{"2026-11-23T09:00:00+01:00", "2026-11-26T09:00:00+01:00"}},
		{Beat{Every: 6 * time.Hour}, "2026-11-20T10:00:00+01:00", []string{"2026-11-20T13:00:00+01:00", "2026-11-20T19:00:00+01:00"}},
		{Beat{Every: 6 * time.Hour, Days: []string{"sun"}}, "2026-11-20T10:00:00+01:00", []string{"2026-11-22T01:00:00+01:00"}},
	} {
		s, err := readSchedule(&tc.beat)
		if err != nil {
			t.Fatal(err)
		}
		at, err := time.Parse(time.RFC3339, tc.after)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range tc.want {
			at = s.next(at, rome)
			if got := at.In(rome).Format(time.RFC3339); got != want {
				t.Errorf("%+v: got %s, want %s", tc.beat, got, want)
			}
		}
	}
}

func TestCheck(t *testing.T) {
	good := Beat{Name: "a", Kind: kindOutreach, At: []string{"09:00"}, Prompt: "x"}
	with := func(f func(*Beat)) Config {
		b := good
		f(&b)
		return Config{Night: "none", Beats: []Beat{b}}
	}
	for name, tc := range map[string]struct {
		c    Config
		want string
	}{
		"good":        {with(func(*Beat) {}), ""},
		"night":       {Config{Night: "22-8"}, "write it like 22:00-08:00, or none [night]"},
		"twice":       {Config{Night: "none", Beats: []Beat{good, good}}, "there are two beats of that name [beat 1 name]"},
		"name":        {with(func(b *Beat) { b.Name = "A b" }), "a name is of a-z, 0-9, - and _, at most 32 letters [beat 0 name]"},
		"neither":     {with(func(b *Beat) { b.At = nil }), "give either at or every [beat 0 at]"},
		"both":        {with(func(b *Beat) { b.Every = time.Hour }), "give either at or every [beat 0 at]"},
		"too often":   {with(func(b *Beat) { b.At, b.Every = nil, time.Minute }), "that is too often; at least 15m0s [beat 0 every]"},
		"no time":     {with(func(b *Beat) { b.At = []string{"9"} }), `"9" is not a time of day; write it like 09:30 [beat 0 at 0]`},
		"no day":      {with(func(b *Beat) { b.Days = []string{"monday"} }), `"monday" is not a day; write mon, tue, wed, thu, fri, sat or sun [beat 0 days 0]`},
		"bad pattern": {with(func(b *Beat) { b.Actions = []string{"[x"} }), `"[x" is not a pattern; write a name, or a part of one with * [beat 0 actions 0]`},
	} {
		var faults []string
		tc.c.Check(func(text string, at ...any) { faults = append(faults, fmt.Sprint(text, " ", at)) })
		if got := strings.Join(faults, "; "); got != tc.want {
			t.Errorf("%s: got %s, want %s", name, got, tc.want)
		}
	}
}

// FuzzTimes checks that accepted times form a schedule that moves forward, and a night that ends.
func FuzzTimes(f *testing.F) {
	f.Add("09:30", "22:00-08:00", "mon", int64(0))
	f.Add("00:00", "8:00-8:00", "sun", int64(86400*365))
	loc, _ := timezone.Load("America/Santiago")
	f.Fuzz(func(t *testing.T, at, dark, day string, unix int64) {
		n, err := readNight(dark)
		if err == nil && n.from == n.to && n.holds(time.Unix(unix%1e9, 0)) {
			t.Fatalf("%q is always night", dark)
		}
		s, err := readSchedule(&Beat{Name: "x", At: []string{at}, Days: []string{day}})
		if err != nil {
			return
		}
		after := time.Unix(unix%4e9, 0)
		next := s.next(after, loc)
		if !next.After(after) || next.Sub(after) > 15*24*time.Hour {
			t.Fatalf("%q on %q: %s comes after %s", at, day, next, after)
		}
	})
}

// refusing is an inbox that rejects the events of a place.
type refusing struct {
	core.Inbox
	place core.Path
}

func (i refusing) Receive(ctx context.Context, events ...core.Event) error {
	if events[0].Message.Path == i.place {
		return core.ErrBadEvent
	}
	return i.Inbox.Receive(ctx, events...)
}

// TestOnePlaceFails checks that a place that rejects a beat does not stop the beats of others.
func TestOnePlaceFails(t *testing.T) {
	s := plugintest.NewHarness(t, "beats")
	s.Inbox = refusing{s, core.MustPath("room/0")}
	p := made(t, s, Config{PerPlace: 1, PerDay: 9, Night: "none", Beats: []Beat{{Name: "a", Every: time.Hour, Prompt: "x"}}})
	places := []place{
		{path: core.MustPath("room/0"), wants: wants{On: true}}, {path: core.MustPath("room/1"), wants: wants{On: true}},
	}
	l := memo{Plugin: p}
	err := l.begin(t.Context(), due{beat: &p.beats[0], at: s.Clock(), zone: time.UTC, places: places})
	if !errors.Is(err, core.ErrBadEvent) {
		t.Error(err)
	}
	if events := s.Received(); len(events) != 1 || events[0].Message.Path != core.MustPath("room/1") {
		t.Errorf("received %+v", events)
	}
}
