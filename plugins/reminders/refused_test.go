package reminders

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"synthbot/core"
	"synthbot/core/watch"
	"synthbot/plugins/plugintest"
)

// rejecting is a Messenger that cannot reach a place.
type rejecting struct {
	core.Messenger
	to core.Path
}

func (r rejecting) Tell(ctx context.Context, to core.Path, text string) error {
	if to == r.to {
		return core.Errorf(core.Forbidden, "not there")
	}
	return r.Messenger.Tell(ctx, to, text)
}

// TestRefusedByPlace: the author of a reminder that its topic refused gets it in private, else the group learns of it,
// but not its text.
func TestRefusedByPlace(t *testing.T) {
	private := "room/@user/jay: ⏰ tea\n\nI can no longer write in the place where you set this reminder."
	for name, c := range map[string]struct {
		end      watch.TurnEnd
		step     watch.Step
		place    string
		rejected string
		want     []string
	}{
		"refused": {step: failed(core.Forbidden), want: []string{private}},
		"gone":    {step: failed(core.Broken), want: []string{private}},
		"nobody in private": {step: failed(core.Forbidden), rejected: "room/@user/jay", want: []string{
			"room/1: ⏰ A reminder of Jay was due in a topic or thread here in which I can no longer write."}},
		"no place above": {step: failed(core.Forbidden), place: "room/1", rejected: "room/@user/jay"},
		"answered":       {step: failed(core.Forbidden), end: watch.TurnEnd{Answered: true}},
		"forgotten":      {step: failed(core.Forbidden), end: watch.TurnEnd{Stale: func() bool { return true }}},
		"ignored":        {step: watch.Step{Progress: core.ProgressDone}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, _ := stand(t, nil)
				if c.place == "" {
					c.place = "room/1/7"
				}
				at := core.MustPath(c.place)
				if c.rejected != "" {
					s.Messenger = rejecting{s, core.MustPath(c.rejected)}
				}
				p := restart(t, s)
				end := c.end
				end.Trace = &watch.Trace{Steps: []watch.Step{c.step}}
				p.Observe(received(t, s, at, end))
				runFor(t, p, time.Second)
				if got := s.Sent(); !slices.Equal(got, c.want) {
					t.Errorf("got %q, want %q", got, c.want)
				}
			})
		})
	}
}

// TestRefusedAway: while nothing can be sent, a refused reminder waits.
func TestRefusedAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, p := stand(t, nil)
		s.Deaf = core.ErrAway
		end := watch.TurnEnd{Trace: &watch.Trace{Steps: []watch.Step{failed(core.Forbidden)}}}
		p.Observe(received(t, s, core.MustPath("room/1/7"), end))
		runFor(t, p, time.Second)
		s.Deaf = nil
		runFor(t, p, 2*time.Minute)
		if got := s.Sent(); len(got) != 1 {
			t.Errorf("got %q, want the reminder once", got)
		}
	})
}

// received stores a reminder's event, and completes the end of its turn.
func received(t *testing.T, s *plugintest.Harness, at core.Path, end watch.TurnEnd) watch.TurnEnd {
	t.Helper()
	m := core.Message{Path: at, ID: eventPrefix + "jay-x-1", Text: "tea", Time: s.Clock(),
		Author: core.Author{ID: "jay", Name: "Jay"}}
	event := core.Event{Kind: core.KindReminder, Message: m}
	if err := s.DB.Commit(t.Context(), &core.Batch{Append: []core.Entry{{Event: event}}}); err != nil {
		t.Fatal(err)
	}
	end.Turn.Path, end.Messages = at, []string{"other", m.ID}
	return end
}

func failed(kind core.ErrorKind) watch.Step {
	return watch.Step{Outcome: core.Outcome{Kind: kind}, Progress: core.ProgressFailed}
}
