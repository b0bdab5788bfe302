package turn_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"synthbot/core"
	"synthbot/core/coretest"
	"synthbot/core/gate"
	"synthbot/core/llm"
	"synthbot/core/turn"
)

// limitedBot starts a bot whose clock only moves by advance.
func limitedBot(t *testing.T, asker *coretest.Asker, change func(o *turn.Options)) (*bot, *clock) {
	c := &clock{now: time.Now()}
	s := open(t, t.TempDir())
	t.Cleanup(func() { s.Close() })
	b := start(t, s, coretest.NewRoom("room"), asker, func(o *turn.Options) {
		o.Clock = c.Now
		change(o)
	})
	b.asker = asker
	return b, c
}

// flood sends n messages and waits for each to be answered.
func (b *bot) flood(name, who string, rank core.Rank, n int) {
	b.t.Helper()
	for i := range n {
		e := said(fmt.Sprintf("%s-%d", name, i), who, fmt.Sprintf("%s %d", name, i))
		e.Message.Author.Rank = rank
		b.receive(e)
		b.ended(1)
	}
}

// answers returns n plans that answer.
func answers(n int) (all []any) {
	for range n {
		all = append(all, plan("Yes?"))
	}
	return all
}

// TestFlooderIsSlowedDown: a member's messages beyond the limit per minute are delayed and then
// answered together. Admins have no limit.
func TestFlooderIsSlowedDown(t *testing.T) {
	for rank, most := range map[core.Rank]time.Duration{core.RankMember: 18 * 5 * time.Second, core.RankAdmin: 0} {
		synctest.Test(t, func(t *testing.T) {
			s := open(t, t.TempDir())
			defer s.Close()
			asker := coretest.NewAsker(answers(40)...)
			b := start(t, s, coretest.NewRoom("room"), asker, func(o *turn.Options) { o.Access.PerMinute = 12 })
			b.asker = asker
			defer b.stop()
			began := time.Now()
			b.flood("flood", "jay", rank, 30)
			if took := time.Since(began); took != most || len(b.room.Texts()) != 30 {
				t.Errorf("rank %d: %d answers in %v, want 30 in %v", rank, len(b.room.Texts()), took, most)
			}
			var burst []core.Event
			for i := range 40 {
				e := said(fmt.Sprintf("burst-%d", i), "jay", fmt.Sprintf("burst %d", i))
				e.Message.Author.Rank = rank
				burst = append(burst, e)
			}
			b.receive(burst...)
			b.ended(1)
			if in := b.input(30); !strings.Contains(in, "burst 0") || !strings.Contains(in, "burst 39") {
				t.Errorf("the burst was not answered together: %s", in)
			}
		})
	}
}

// TestFlooderOfManyPlaces: a user who floods many places does not delay them. Messages that would
// have to wait are stored without an answer, and the user is notified once.
func TestFlooderOfManyPlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, t.TempDir())
		defer s.Close()
		asker := coretest.NewAsker(answers(40)...)
		b := start(t, s, coretest.NewRoom("room"), asker, func(o *turn.Options) { o.Access.PerMinute = 12 })
		b.asker = asker
		defer b.stop()
		var all []core.Event
		for i := range 30 {
			for _, who := range []string{"jay", "ann"} {
				e := said(fmt.Sprintf("%s-%d", who, i), who, "Aria, hello")
				e.Message.Path, e.Message.Private = core.MustPath(fmt.Sprintf("room/%s%d", who, i)), false
				if who == "jay" || i == 0 {
					all = append(all, e)
				}
			}
		}
		began := time.Now()
		b.receive(all...)
		b.quiet()
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("took %v, want at most 10s", took)
		}
		notices := 0
		for _, text := range b.room.Texts() {
			if strings.Contains(text, "faster than I can answer") {
				notices++
			}
		}
		if asked := len(b.asker.Asked()); asked != 14+1 || notices != 1 {
			t.Errorf("the model was asked %d times, want 15; %d notices, want 1", asked, notices)
		}
		if texts := b.logged(core.MustPath("room/jay19")); len(texts) == 0 || texts[0] != "Aria, hello" {
			t.Errorf("stored %q, want the message first", texts)
		}
	})
}

// TestSpentBudgetNoticeOnceAnHour: a user whose budget is spent is notified once an hour, and not
// of other limits.
func TestSpentBudgetNoticeOnceAnHour(t *testing.T) {
	var spent []any
	for range 60 {
		spent = append(spent, &llm.Error{Kind: llm.ErrorRefused, Err: core.Errorf(core.Occupied, "You have used up your share.")})
	}
	b, c := limitedBot(t, coretest.NewAsker(spent...), func(*turn.Options) {})
	b.flood("flood", "jay", core.RankMember, 40)
	b.holds("You have used up your share.")
	b.flood("other", "ann", core.RankMember, 1)
	b.holds("You have used up your share.", "You have used up your share.")
	c.advance(61 * time.Minute)
	b.flood("later", "jay", core.RankMember, 2)
	if n := len(b.room.Texts()); n != 3 {
		t.Errorf("%d notices, want 3: %q", n, b.room.Texts())
	}
}

// TestOtherRefusalsAreReportedEachTime: refusals that are not limits are reported for each message.
func TestOtherRefusalsAreReportedEachTime(t *testing.T) {
	closed := &llm.Error{Kind: llm.ErrorRefused, Err: core.Errorf(core.Forbidden, "Closed for today.")}
	b, _ := limitedBot(t, coretest.NewAsker(closed), func(*turn.Options) {})
	b.flood("open", "jay", core.RankMember, 2)
	b.holds("Closed for today.", "Closed for today.")
}

// limits is a gate that refuses every message.
type limits struct{ limited bool }

func (g limits) Judge(*core.Message, bool) gate.Verdict {
	return gate.Verdict{Admission: gate.Quiet, Reply: "Not now.", Limited: g.limited}
}

// TestGateLimitNoticeOnceAnHour: a gate's reply about a limit is sent once an hour, its other
// replies always.
func TestGateLimitNoticeOnceAnHour(t *testing.T) {
	for _, limited := range []bool{true, false} {
		b, _ := limitedBot(t, coretest.NewAsker(), func(o *turn.Options) {
			o.Plugins.Gates = []gate.Gate{limits{limited}}
		})
		b.flood("flood", "jay", core.RankMember, 5)
		if n := len(b.room.Texts()); limited && n != 1 || !limited && n != 5 {
			t.Errorf("limited %v: got %d replies, want 1 if limited, else 5", limited, n)
		}
	}
}

// TestSeveralWaitForNobody: a turn with messages of several users is not delayed by the limit of
// one of them.
func TestSeveralWaitForNobody(t *testing.T) {
	b, _ := limitedBot(t, coretest.NewAsker(plan("Yes?")), func(o *turn.Options) { o.Access.PerMinute = 1 })
	b.flood("first", "jay", core.RankMember, 1)
	var many []core.Event
	for i := range 6 {
		many = append(many, said(fmt.Sprint("m", i), []string{"jay", "ann"}[i%2], "hi"))
	}
	b.receive(many...)
	if end := b.ended(1)[0]; len(end.Messages) != 6 {
		t.Fatalf("the turn ended as %+v, want 6 messages", end)
	}
	b.holds("Yes?", "Yes?")
}
