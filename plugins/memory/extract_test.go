package memory

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"synthbot/core"
	"synthbot/core/coretest"
	"synthbot/core/llm"
	"synthbot/core/watch"
	"synthbot/plugins/plugintest"
)

var (
	jay = core.Author{ID: "jay", Name: "Jay", Tag: "@jay"}
	ann = core.Author{ID: "ann", Name: "Ann", Tag: "@ann"}
)

func standard() Config {
	return Config{Hints: 5, HintChars: 1200, Extract: true, ExtractAfter: 15 * time.Minute, ExtractMin: 2,
		ExtractDaily: 4, ExtractFacts: 5}
}

// says adds a message to a place's log.
func says(t testing.TB, s *plugintest.Harness, place core.Path, who core.Author, text string) {
	t.Helper()
	e := core.Entry{Self: who.ID == "", Event: core.Event{Kind: core.KindMessage, Message: core.Message{
		Path: place, ID: fmt.Sprint(text, who.ID, s.Clock().UnixNano()), Author: who, Text: text, Time: s.Clock(), Private: strings.HasSuffix(place.String(), "/jay"),
	}}}
	if err := s.DB.Commit(context.Background(), &core.Batch{Append: []core.Entry{e}}); err != nil {
		t.Fatal(err)
	}
}

// saysLater does the same on a platform whose clock is ahead of ours.
func saysLater(t testing.TB, s *plugintest.Harness, ahead time.Duration, text string) {
	t.Helper()
	e := core.Entry{Event: core.Event{Kind: core.KindMessage, Message: core.Message{
		Path: place, ID: text, Author: jay, Text: text, Time: s.Clock().Add(ahead), Ahead: -ahead,
	}}}
	if err := s.DB.Commit(t.Context(), &core.Batch{Append: []core.Entry{e}}); err != nil {
		t.Fatal(err)
	}
}

func converse(t testing.TB, s *plugintest.Harness, place core.Path) {
	t.Helper()
	says(t, s, place, jay, "I bought a red boat in Bergen")
	says(t, s, place, core.Author{}, "Nice.")
	says(t, s, place, ann, "I would like to sail, too")
}

const boat = `{"facts":[{"text":"Jay bought a red boat in Bergen","by":1,"about":[1]}]}`

// asker is a coretest.Asker that calls a function before it answers.
type asker struct {
	*coretest.Asker
	before func()
}

func (a asker) Ask(ctx context.Context, q core.Question) (llm.Answer, error) {
	a.before()
	return a.Asker.Ask(ctx, q)
}

func made(t testing.TB, s *plugintest.Harness, c Config) *Plugin {
	t.Helper()
	p, err := New(s.Host, c)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func texts(t testing.TB, s *plugintest.Harness, place core.Path) (all []string) {
	t.Helper()
	found, err := s.DB.Recall(t.Context(), core.FactQuery{See: []core.Path{place}, N: 100})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range found {
		all = append(all, f.Text)
	}
	return all
}

// running runs a plugin until end is called.
func running(p *Plugin) (end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	over := make(chan struct{})
	go func() { defer close(over); _ = p.Run(ctx) }()
	synctest.Wait()
	return func() { cancel(); <-over }
}

// TestKilledInTheMiddle checks that a process that is killed while the model reads does not make the next one
// read the same part again. Later messages are read.
func TestKilledInTheMiddle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := plugintest.NewHarness(t, "memory")
		model := coretest.NewAsker(boat)
		model.Hold = make(chan struct{})
		s.Asker = model
		converse(t, s, place)
		killed := made(t, s, standard())
		end := running(killed)
		defer end()
		time.Sleep(16 * time.Minute)
		synctest.Wait()
		if n := len(model.Asked()); n != 1 {
			t.Fatalf("the model was asked %d times", n)
		}
		next := coretest.NewAsker(`{"facts":[{"text":"Ann sold a green canoe","by":1,"about":[1]}]}`)
		s.Asker = next
		p := made(t, s, standard())
		defer running(p)()
		time.Sleep(time.Hour)
		synctest.Wait()
		if n := len(next.Asked()); n != 0 {
			t.Fatalf("the same part was read again, %d times", n)
		}
		says(t, s, place, ann, "I sold my green canoe")
		says(t, s, place, core.Author{}, "To whom?")
		says(t, s, place, ann, "to Lea")
		p.Observe(watch.TurnEnd{Turn: core.TurnID{Path: place, Seq: 4}})
		time.Sleep(16 * time.Minute)
		synctest.Wait()
		if n := len(next.Asked()); n != 1 || strings.Contains(next.Asked()[0].Messages[0].Text, "boat") {
			t.Fatalf("the new part was read %d times: %v", n, next.Asked())
		}
		if got := texts(t, s, place); len(got) != 1 || got[0] != "Ann sold a green canoe" {
			t.Errorf("got %q", got)
		}
	})
}

// TestForgottenWhileRead checks that nothing is stored about a user who is forgotten while the model reads.
func TestForgottenWhileRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := plugintest.NewHarness(t, "memory")
		s.Asker = asker{coretest.NewAsker(`{"facts":[{"text":"Jay bought a red boat in Bergen","by":1,"about":[1]},{"text":"Ann would like to sail","by":2,"about":[2]}]}`), func() {
			if err := s.DB.Forget(context.Background(), core.MustPath("room/@user/jay")); err != nil {
				t.Error(err)
			}
		}}
		converse(t, s, place)
		defer running(made(t, s, standard()))()
		time.Sleep(16 * time.Minute)
		synctest.Wait()
		if got := texts(t, s, place); len(got) != 1 || got[0] != "Ann would like to sail" {
			t.Errorf("got %q", got)
		}
	})
}

// TestNotWhileTheyTalk checks that a conversation is not read while users talk, unless it is longer than one
// reading.
func TestNotWhileTheyTalk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := plugintest.NewHarness(t, "memory")
		model := coretest.NewAsker(boat)
		s.Asker = model
		p := made(t, s, standard())
		defer running(p)()
		says(t, s, place, core.Author{}, "Hello all.")
		p.Observe(watch.TurnEnd{Turn: core.TurnID{Path: place, Seq: 1}})
		for i := range partMax - 1 {
			time.Sleep(10 * time.Minute)
			says(t, s, place, jay, fmt.Sprint("and on and on ", i))
		}
		synctest.Wait()
		if n := len(model.Asked()); n != 0 {
			t.Fatalf("asked %d times while users talk", n)
		}
		says(t, s, place, core.Author{}, "You talk a lot.")
		for i := range 3 {
			time.Sleep(10 * time.Minute)
			says(t, s, place, jay, fmt.Sprint("and still ", i))
		}
		synctest.Wait()
		if n := len(model.Asked()); n != 1 {
			t.Fatalf("asked %d times although there is more than one reading", n)
		}
	})
}

// TestOtherClock checks that the end of a conversation is detected although the platform's clock differs from
// ours.
func TestOtherClock(t *testing.T) {
	read := func(t *testing.T, ahead time.Duration, resumed bool) {
		s := plugintest.NewHarness(t, "memory")
		model := coretest.NewAsker(boat)
		s.Asker = model
		says(t, s, place, core.Author{}, "Hello all.")
		saysLater(t, s, ahead, "first")
		p := made(t, s, standard())
		defer running(p)()
		if !resumed {
			p.Observe(watch.TurnEnd{Turn: core.TurnID{Path: place, Seq: 1}})
		}
		for i := range 4 {
			time.Sleep(10 * time.Minute)
			saysLater(t, s, ahead, fmt.Sprint("and on ", i))
		}
		synctest.Wait()
		if n := len(model.Asked()); n != 0 {
			t.Errorf("asked %d times while users talk", n)
		}
		time.Sleep(16 * time.Minute)
		synctest.Wait()
		if n := len(model.Asked()); n != 1 {
			t.Errorf("asked %d times after the conversation", n)
		}
	}
	for _, ahead := range []time.Duration{2 * time.Hour, -2 * time.Hour} {
		for _, resumed := range []bool{false, true} {
			t.Run(fmt.Sprint(ahead, resumed), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { read(t, ahead, resumed) })
			})
		}
	}
}

// TestResume checks that, after a restart, old unread conversations are skipped and the others are read one
// after the other.
func TestResume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := plugintest.NewHarness(t, "memory")
		model := coretest.NewAsker(`{"facts":[]}`)
		s.Asker = model
		for i := range 3 {
			converse(t, s, core.MustPath(fmt.Sprint("room/old-", i)))
		}
		s.Advance(72 * time.Hour)
		for i := range 3 {
			converse(t, s, core.MustPath(fmt.Sprint("room/new-", i)))
		}
		s.Advance(time.Hour)
		defer running(made(t, s, standard()))()
		time.Sleep(time.Second)
		synctest.Wait()
		if n := len(model.Asked()); n != 1 {
			t.Errorf("%d conversations are read at the same time, want 1", n)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if n := len(model.Asked()); n != 3 {
			t.Errorf("%d conversations are read, want the 3 of the last two days", n)
		}
	})
}

// counting counts the plugin's reads.
type counting struct {
	core.Items
	asked atomic.Int64
}

func (c *counting) Get(ctx context.Context, path core.Path, key string) (core.Item, bool, error) {
	c.asked.Add(1)
	return c.Items.Get(ctx, path, key)
}

// TestSleepCostsNothing checks that a place is read once after any number of turns, and then no more.
func TestSleepCostsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := plugintest.NewHarness(t, "memory")
		items := &counting{Items: s.Items}
		s.Items = items
		p := made(t, s, standard())
		defer running(p)()
		for range 10 {
			for i := range 100 {
				p.Observe(watch.TurnEnd{Turn: core.TurnID{Path: core.MustPath(fmt.Sprint("room/", i)), Seq: 1}})
			}
			p.Observe(watch.TurnEnd{Turn: core.TurnID{Path: core.MustPath("room/none")}}) // an event without messages
			time.Sleep(time.Minute)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if n := items.asked.Load(); n != 100 {
			t.Errorf("100 places were read %d times", n)
		}
		time.Sleep(7 * 24 * time.Hour)
		synctest.Wait()
		if n := items.asked.Load(); n != 100 {
			t.Errorf("a week later, they were read %d times", n)
		}
	})
}
