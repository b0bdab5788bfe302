package turn_test

import (
	"context"
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

const doubtful = "I lost the connection while I was answering: my last message may be missing, or be there more than once."

// lossy fails so often for sends of that text.
func lossy(text string, times int) func(string) error {
	return func(said string) error {
		if said != text || times == 0 {
			return nil
		}
		times--
		return fmt.Errorf("no reply: %w", core.ErrUnknownOutcome)
	}
}

// TestLostReplies: a message that may have been sent is sent again under the same
// key, twice at most; then the person is told, and the model is never asked because of it.
func TestLostReplies(t *testing.T) {
	for _, tc := range []struct {
		accepted, keys bool
		lost           int
		want           []string
	}{
		{false, false, 1, []string{"one", "two", "three"}},
		{false, false, 2, []string{"one", "two", "three"}},
		{false, false, 3, []string{"one", doubtful}},
		{false, false, 9, []string{"one", doubtful}},
		{true, false, 1, []string{"one", "two", "two", "three"}},
		{true, false, 2, []string{"one", "two", "two", "two", "three"}},
		{true, false, 9, []string{"one", "two", "two", "two", doubtful}},
		{true, true, 3, []string{"one", "two", "three"}},
		{false, true, 3, []string{"one", "two", "three"}},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := open(t, t.TempDir())
			defer s.Close()
			room := coretest.NewRoom("room")
			room.Forgets = !tc.keys
			if tc.accepted {
				room.Lose = lossy("two", tc.lost)
			} else {
				room.Fail = lossy("two", tc.lost)
			}
			b := start(t, s, room, coretest.NewAsker(plan("one\ntwo\nthree")))
			b.receive(said("1", "jay", "hi"))
			b.quiet()
			if got := room.Texts(); !slices.Equal(got, tc.want) {
				t.Errorf("%+v: the room holds %q", tc, got)
			}
			if n := len(b.asker.Asked()); n != 1 {
				t.Errorf("%+v: the model was asked %d times", tc, n)
			}
			b.stop()
		})
	}
}

// TestDeathsInASend: where the platform knows no keys, a message that was in flight at
// every death is sent three times at most, over all lives, and the person is told once.
func TestDeathsInASend(t *testing.T) {
	for _, accepted := range []bool{false, true} {
		for deaths := 1; deaths <= 4; deaths++ {
			synctest.Test(t, func(t *testing.T) { dieSending(t, accepted, deaths) })
		}
	}
}

func dieSending(t *testing.T, accepted bool, deaths int) {
	s := open(t, t.TempDir())
	defer s.Close()
	room := coretest.NewRoom("room")
	room.Forgets = true
	asker := coretest.NewAsker(plan("one\ntwo\nthree"))
	tries := 0
	for range deaths {
		dead := make(chan struct{})
		m := &mortal{Store: s, left: 1 << 30, die: func() {}}
		dies := func(text string) error {
			if text != "two" && text != doubtful {
				return nil
			}
			if text == "two" {
				tries++
			}
			m.kill()
			close(dead)
			return errDead
		}
		room.Fail, room.Lose = nil, dies
		if !accepted {
			room.Fail, room.Lose = dies, nil
		}
		life := start(t, m, room, asker)
		life.receive(said("1", "jay", "hi"))
		<-dead
		life.kill()
	}
	room.Fail, room.Lose = nil, nil
	b := start(t, s, room, asker)
	b.quiet()
	b.stop()
	want := map[string]int{"one": 1, "two": deaths + 1, "three": 1, doubtful: 0}
	if deaths >= 3 {
		want = map[string]int{"one": 1, "two": 3, "three": 0, doubtful: 1}
	}
	if !accepted {
		want["two"] -= tries
	} else if deaths > 3 { // it died while it told
		want[doubtful]++
	}
	for text, n := range want {
		if got := strings.Count(strings.Join(room.Texts(), "\n"), text); got != n {
			t.Errorf("accepted %v, %d deaths: %q stands %d times, want %d", accepted, deaths, text, got, n)
		}
	}
	if n := len(asker.Asked()); n != 1 {
		t.Errorf("the model was asked %d times", n)
	}
}

// TestQuestionInDoubt: a question that may not have arrived is asked twice more, and
// then the person is told.
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
		bank := coretest.NewPlugin("bank", core.Action{Name: "pay", Brief: "Pay somebody", Permission: core.Everyone, Confirm: true})
		asker := coretest.NewAsker(`{"response":"one","actions":[{"type":"pay"}]}`)
		b := start(t, s, room, asker, func(o *turn.Options) {
			o.Catalogue = catalogueOf(t, room, bank)
			o.Chooser = func(core.Path) core.Chooser { return room }
		})
		b.receive(said("1", "jay", "pay Ann"))
		b.quiet()
		b.stands("one", doubtful)
		if n := len(asker.Asked()); n != 1 {
			t.Errorf("the model was asked %d times", n)
		}
		b.stop()
	})
}

// TestOutageOfUnknownEnd: a platform that is away for long may have accepted the first
// send. The message waits however long that is, and is looked for then.
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
			room.Looks = tries == 50 // it can be asked again
			return away
		}
		b := start(t, s, room, coretest.NewAsker(plan("one")))
		b.receive(said("1", "jay", "hi"))
		time.Sleep(time.Hour)
		b.quiet()
		b.stands("one")
		if tries != 50 {
			t.Errorf("sent %d times", tries)
		}
		b.stop()
	})
}

// TestPlanned: a call that is made again after a death is told when its plan was asked
// for.
func TestPlanned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, t.TempDir())
		defer s.Close()
		var planned []time.Time
		m := &mortal{Store: s, left: 1 << 30, die: func() {}}
		dead := make(chan struct{})
		look := coretest.NewPlugin("eye", core.Action{Name: "look", Permission: core.Everyone, Idempotent: true,
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
		life := start(t, m, room, asker, with)
		life.receive(said("1", "jay", "look"))
		<-dead
		life.kill()
		time.Sleep(time.Hour)
		b := start(t, s, room, asker, with)
		b.quiet()
		b.stop()
		if len(planned) != 2 || !planned[0].Equal(planned[1]) || planned[0].Sub(began) > time.Minute {
			t.Errorf("planned at %v, want twice about %v", planned, began)
		}
	})
}
