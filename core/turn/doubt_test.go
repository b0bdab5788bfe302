package turn_test

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
	"synthbot/core/turn"
)

const doubtful = "I lost the connection while I was answering: a message of mine may be missing, or be there more than once."

// lossy makes that many sends of text end with an unknown outcome.
func lossy(text string, times int) func(string) error {
	return func(said string) error {
		if said != text || times == 0 {
			return nil
		}
		times--
		return fmt.Errorf("no reply: %w", core.ErrUnknownOutcome)
	}
}

// TestLostReplies: a message that may have arrived is sent again under the same key, at most twice.
// Then the rest is sent and the user is notified, without asking the model.
func TestLostReplies(t *testing.T) {
	for _, tc := range []struct {
		accepted, keys bool
		lost           int
		want           []string
	}{
		{false, false, 1, []string{"one", "two", "three"}},
		{false, false, 2, []string{"one", "two", "three"}},
		{false, false, 3, []string{"one", "three", doubtful}},
		{false, false, 9, []string{"one", "three", doubtful}},
		{true, false, 1, []string{"one", "two", "two", "three"}},
		{true, false, 2, []string{"one", "two", "two", "two", "three"}},
		{true, false, 9, []string{"one", "two", "two", "two", "three", doubtful}},
		{true, true, 3, []string{"one", "two", "three"}},
		{false, true, 3, []string{"one", "two", "three"}},
		{true, true, 9, []string{"one", "two", "three"}},
		{false, true, 9, []string{"one", "two", "three"}}, // retries are safe with keys
	} {
		synctest.Test(t, func(t *testing.T) {
			s := open(t, t.TempDir())
			defer s.Close()
			room := coretest.NewRoom("room")
			room.Forgets = !tc.keys
			var sent []time.Time
			fails := lossy("two", tc.lost)
			loses := func(text string) error {
				if text == "two" {
					sent = append(sent, time.Now())
				}
				return fails(text)
			}
			if tc.accepted {
				room.Lose = loses
			} else {
				room.Fail = loses
			}
			b := start(t, s, room, coretest.NewAsker(plan("one\ntwo\nthree")))
			b.receive(said("1", "jay", "hi"))
			time.Sleep(time.Hour)
			b.quiet()
			if got := room.Texts(); !slices.Equal(got, tc.want) {
				t.Errorf("the room holds %q, want %+v", got, tc)
			}
			for i := 1; i < len(sent); i++ {
				if pause := sent[i].Sub(sent[i-1]); pause < time.Second {
					t.Errorf("%+v: sent again after %s, want at least 1s", tc, pause)
				}
			}
			if n := len(b.asker.Asked()); n != 1 {
				t.Errorf("%+v: the model was asked %d times, want once", tc, n)
			}
			b.stop()
		})
	}
}

// TestEachReplyLost: parts whose outcome is unknown are still sent in order, each three times.
func TestEachReplyLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, t.TempDir())
		defer s.Close()
		room := coretest.NewRoom("room")
		room.Forgets = true
		room.Lose = func(text string) error {
			if text == doubtful {
				return nil
			}
			return core.ErrUnknownOutcome
		}
		b := start(t, s, room, coretest.NewAsker(plan("one\ntwo\nthree")))
		b.receive(said("1", "jay", "hi"))
		time.Sleep(time.Hour)
		b.quiet()
		b.holds("one", "one", "one", "two", "two", "two", "three", "three", "three", doubtful)
		if n := len(b.asker.Asked()); n != 1 {
			t.Errorf("the model was asked %d times, want once", n)
		}
		b.stop()
	})
}

// TestLongUnknown: while sends fail with an unknown outcome, the user gets either the answer or a
// notice that it may be missing.
func TestLongUnknown(t *testing.T) {
	for broken, want := range map[time.Duration]string{
		5 * time.Second: "one", 20 * time.Second: doubtful, 40 * time.Second: doubtful, 2 * time.Minute: doubtful,
	} {
		synctest.Test(t, func(t *testing.T) {
			s := open(t, t.TempDir())
			defer s.Close()
			room := coretest.NewRoom("room")
			room.Forgets = true
			over := time.Now().Add(broken)
			room.Fail = func(string) error {
				if time.Now().Before(over) {
					return core.ErrUnknownOutcome
				}
				return nil
			}
			b := start(t, s, room, coretest.NewAsker(plan("one")))
			b.receive(said("1", "jay", "hi"))
			time.Sleep(time.Hour)
			b.quiet()
			if got := room.Texts(); !slices.Equal(got, []string{want}) {
				t.Errorf("sends fail for %s: the room holds %q, want %q", broken, got, want)
			}
			b.stop()
		})
	}
}

// TestDeathsInASend: without idempotency keys, a message that was in flight at each crash is sent
// at most three times over all restarts. Then the rest is sent and the user is notified once.
func TestDeathsInASend(t *testing.T) {
	const one, two, three = "one", "two", "three"
	for _, deaths := range [][]string{
		{two}, {two, two}, {two, two, two}, {two, two, two, doubtful},
		{two, two, two, three}, {one, one, one, two}, {one, one, one, three},
		{three, three, three, doubtful}, {one, two, three, three},
	} {
		for _, accepted := range []bool{false, true} {
			t.Run(fmt.Sprintf("%.40q, accepted %v", deaths, accepted), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { checkDeathsInASend(t, accepted, deaths) })
			})
		}
	}
}

// checkDeathsInASend kills the bot while it sends each of the texts in deaths, one after the other.
func checkDeathsInASend(t *testing.T, accepted bool, deaths []string) {
	s := open(t, t.TempDir())
	defer s.Close()
	room := coretest.NewRoom("room")
	room.Forgets = true
	asker := coretest.NewAsker(plan("one\ntwo\nthree"))
	died := map[string]int{}
	for i, at := range deaths {
		dead := make(chan struct{})
		m := &mortal{Store: s, left: 1 << 30, die: func() {}}
		dies := func(text string) error {
			if text != at {
				return nil
			}
			died[at]++
			m.kill()
			close(dead)
			return errDead
		}
		room.Fail, room.Lose = nil, dies
		if !accepted {
			room.Fail, room.Lose = dies, nil
		}
		killed := start(t, m, room, asker)
		if i == 0 { // after a restart the turn resumes by itself
			killed.receive(said("1", "jay", "hi"))
		}
		select {
		case <-dead:
		case <-time.After(time.Hour):
			t.Fatalf("%q was not sent", at)
		}
		killed.kill()
	}
	room.Fail, room.Lose = nil, nil
	b := start(t, s, room, asker)
	b.quiet()
	b.stop()
	var want []string
	unsure := false
	for _, text := range []string{"one", "two", "three", doubtful} {
		sends := min(died[text]+1, 3)
		unsure = unsure || died[text] >= 3
		if text == doubtful && !unsure {
			sends = 0
		}
		if !accepted {
			sends -= min(died[text], sends)
		}
		want = append(want, slices.Repeat([]string{text}, sends)...)
	}
	if got := room.Texts(); !slices.Equal(got, want) {
		t.Errorf("the room holds %q, want %q", got, want)
	}
	if n := len(asker.Asked()); n != 1 {
		t.Errorf("the model was asked %d times, want once", n)
	}
}

// TestQuestionInDoubt: a question whose outcome is unknown is sent twice more, and then the user is
// notified.
func TestQuestionInDoubt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, t.TempDir())
		defer s.Close()
		room := coretest.NewRoom("room")
		room.Forgets = true
		room.Fail = func(text string) error {
			if strings.HasPrefix(text, "Pay") {
				return core.ErrUnknownOutcome
			}
			return nil
		}
		bank := coretest.NewPlugin("bank", core.Action{Name: "pay", Brief: "Pay somebody", Permission: core.PermissionEveryone, Confirm: true})
		asker := coretest.NewAsker(`{"response":"one","actions":[{"type":"pay"}]}`)
		b := start(t, s, room, asker, func(o *turn.Options) {
			o.Catalogue = catalogueOf(t, room, bank)
			o.Places.Chooser = func(core.Path) core.Chooser { return room }
		})
		b.receive(said("1", "jay", "pay Ann"))
		time.Sleep(time.Minute)
		b.quiet()
		b.holds("one", doubtful)
		if n := len(asker.Asked()); n != 1 {
			t.Errorf("the model was asked %d times, want once", n)
		}
		b.stop()
	})
}

// TestOutageOfUnknownEnd: if a platform is away after a send that may have arrived, the message
// waits however long that is. Then the bot looks it up instead of sending it again.
func TestOutageOfUnknownEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, t.TempDir())
		defer s.Close()
		room := coretest.NewRoom("room")
		room.Forgets = true
		away := fmt.Errorf("%w: %w", core.ErrAway, core.ErrUnknownOutcome)
		tries := 0
		room.Lose = func(string) error { return away }
		room.Fail = func(string) error {
			if tries++; tries == 1 {
				return nil // this one arrives
			}
			room.Looks = tries == 50 // the platform can be searched again
			return away
		}
		b := start(t, s, room, coretest.NewAsker(plan("one")))
		b.receive(said("1", "jay", "hi"))
		time.Sleep(time.Hour)
		b.quiet()
		b.holds("one")
		if tries != 50 {
			t.Errorf("tried %d times, want 50", tries)
		}
		b.stop()
	})
}

// TestPlanned: a call that is repeated after a crash has the time at which its plan was first asked
// for.
func TestPlanned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, t.TempDir())
		defer s.Close()
		var planned []time.Time
		m := &mortal{Store: s, left: 1 << 30, die: func() {}}
		dead := make(chan struct{})
		look := coretest.NewPlugin("eye", core.Action{Name: "look", Permission: core.PermissionEveryone, Idempotent: true,
			Do: func(_ context.Context, c core.Call) (core.Result, error) {
				planned = append(planned, c.Planned)
				if len(planned) == 1 {
					m.kill()
					close(dead)
				}
				return core.Result{}, nil
			}})
		room, asker := coretest.NewRoom("room"), coretest.NewAsker(`{"response":"sure","actions":[{"type":"look"}]}`)
		with := func(o *turn.Options) { o.Catalogue = catalogueOf(t, room, look) }
		began := time.Now()
		killed := start(t, m, room, asker, with)
		killed.receive(said("1", "jay", "look"))
		<-dead
		killed.kill()
		time.Sleep(time.Hour)
		b := start(t, s, room, asker, with)
		b.quiet()
		b.stop()
		if len(planned) != 2 || !planned[0].Equal(planned[1]) || planned[0].Sub(began) > time.Minute {
			t.Errorf("planned at %v, want twice about %v", planned, began)
		}
	})
}

// TestSendsCutShort: a send that timed out counts as one that may have arrived, both when its step
// and when its turn is retried.
func TestSendsCutShort(t *testing.T) {
	for _, retries := range []int{0, 1, 5} {
		synctest.Test(t, func(t *testing.T) { checkSendsCutShort(t, retries) })
	}
}

func checkSendsCutShort(t *testing.T, retries int) {
	s := open(t, t.TempDir())
	defer s.Close()
	room := coretest.NewRoom("room")
	room.Forgets = true
	tries := 0
	room.Fail = func(text string) error {
		if text != "one" {
			return nil
		}
		tries++
		time.Sleep(31 * time.Second) // longer than a step may take
		return errors.New("cut")
	}
	b := start(t, s, room, coretest.NewAsker(plan("one")), func(o *turn.Options) { o.Catalogue = catalogueOf(t, retrying{room, retries}) })
	b.receive(said("1", "jay", "hi"))
	time.Sleep(time.Hour)
	b.quiet()
	b.holds(doubtful)
	if tries != 3 || len(b.asker.Asked()) != 1 {
		t.Errorf("%d retries: sent %d times and asked the model %d times, want 3 and 1", retries, tries, len(b.asker.Asked()))
	}
	b.stop()
}

// retrying is a room whose message action has retries.
type retrying struct {
	*coretest.Room
	retries int
}

func (r retrying) Actions() []core.Action {
	actions := r.Room.Actions()
	actions[0].Retries = r.retries
	return actions
}

// TestDoubtIsNotForTheModel: after a send of unknown outcome the model is not asked to report
// actions that ran silently either.
func TestDoubtIsNotForTheModel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, t.TempDir())
		defer s.Close()
		room := coretest.NewRoom("room")
		room.Forgets = true
		room.Fail = lossy("one", 9)
		memo := coretest.NewPlugin("memo", core.Action{Name: "save", Permission: core.PermissionEveryone,
			Do: func(context.Context, core.Call) (core.Result, error) { return core.Result{}, nil }})
		b := start(t, s, room, coretest.NewAsker(`{"response":"one","actions":[{"type":"save"}]}`), func(o *turn.Options) { o.Catalogue = catalogueOf(t, room, memo) })
		b.receive(said("1", "jay", "hi"))
		time.Sleep(time.Hour)
		b.quiet()
		b.holds(doubtful)
		if n := len(b.asker.Asked()); n != 1 {
			t.Errorf("the model was asked %d times, want once", n)
		}
		b.stop()
	})
}

// TestRefusalsLeaveNoDoubt: only sends that may have arrived count towards the limit, not those
// that the platform refused.
func TestRefusalsLeaveNoDoubt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, t.TempDir())
		defer s.Close()
		room := coretest.NewRoom("room")
		room.Forgets = true
		refused := 0
		room.Fail = func(string) error {
			if refused++; refused <= 3 {
				return core.ErrAway
			}
			return nil
		}
		room.Lose = lossy("one", 2)
		b := start(t, s, room, coretest.NewAsker(plan("one")))
		defer b.stop()
		b.receive(said("1", "jay", "hi"))
		time.Sleep(time.Hour)
		b.quiet()
		b.holds("one", "one", "one")
	})
}
