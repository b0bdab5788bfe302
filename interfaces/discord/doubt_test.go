package discord

import (
	"context"
	"errors"
	"testing"
	"time"

	"synthbot/core"
	"synthbot/interfaces/discord/discordtest"
	"synthbot/interfaces/discord/rest"
)

// interruptedJournal is the journal of a step that a crash interrupted while its first part was
// being sent, since began.
type interruptedJournal struct {
	journal
	began time.Time
}

func (f *interruptedJournal) Since(n int) time.Time {
	if n == 1 {
		return f.began
	}
	return time.Time{}
}

var errCrash = errors.New("the process died")

// TestPartInterruptedByACrash: a part that was being sent at a crash is one message in the end, also if
// the platform has forgotten its nonce.
func TestPartInterruptedByACrash(t *testing.T) {
	for name, c := range map[string]struct {
		payload map[string]any
		before  string        // sent by the bot long before the part
		lost    bool          // the part never reached the platform
		away    time.Duration // between the processes
		want    int           // messages in the end
	}{
		"it arrived, at once":       {map[string]any{"text": "Sure."}, "", false, time.Second, 1},
		"it arrived, hours ago":     {map[string]any{"text": "Sure, *Ann*."}, "", false, 3 * time.Hour, 1},
		"it was lost":               {map[string]any{"text": "Sure."}, "", true, 3 * time.Hour, 1},
		"the same was said before":  {map[string]any{"text": "Sure."}, "Sure.", true, 3 * time.Hour, 2},
		"an embed arrived":          {map[string]any{"embeds": []any{map[string]any{"title": "Rome", "description": "19"}}}, "", false, 3 * time.Hour, 1},
		"another embed was said":    {map[string]any{"embeds": []any{map[string]any{"title": "Rome"}}}, "Rome", true, 3 * time.Hour, 2},
		"another text came between": {map[string]any{"text": "Sure thing."}, "Sure.", false, 3 * time.Hour, 2},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, s *server) {
				if c.before != "" {
					if _, err := act(t, s.bot(t), "message_discord", map[string]any{"text": c.before}); err != nil {
						t.Fatal(err)
					}
					time.Sleep(time.Minute)
				}
				parts := &interruptedJournal{journal: journal{base: "crash"}}
				with := func(call *core.Call) { call.Deliveries = &crashingJournal{parts: parts} }
				began := time.Now()
				if c.lost {
					s.FailNext("POST /channels/", discordtest.Fault{Kind: discordtest.Refused, Status: 400})
				}
				if _, err := act(t, s.bot(t), "message_discord", c.payload, with); err == nil {
					t.Fatal("the first process delivered the part, want a crash")
				}
				time.Sleep(c.away)
				for range 60 {
					s.Say(hallID, annID, "and then people talked on")
				}
				parts.began = began
				if _, err := act(t, s.bot(t), "message_discord", c.payload, func(call *core.Call) { call.Deliveries = parts }); err != nil {
					t.Fatal(err)
				}
				all := s.Messages(hallID)
				if len(all) != c.want || parts.done[1].ID != all[len(all)-1].ID {
					t.Errorf("got %d messages, want %d, the last journalled as %s: %+v", len(all), c.want, parts.done[1].ID, all)
				}
			})
		})
	}
}

// crashingJournal fails like a process that dies after it sent a part and before it recorded that.
type crashingJournal struct{ parts *interruptedJournal }

func (d *crashingJournal) Since(n int) time.Time { return d.parts.Since(n) }

func (d *crashingJournal) Send(
	ctx context.Context, n int, what core.Sent, do func(context.Context, string) (string, error),
) error {
	if err := d.parts.Send(ctx, n, what, do); err != nil {
		return err
	}
	delete(d.parts.done, n)
	return errCrash
}

// TestDraftThatBecameTheAnswerBeforeACrash: after a crash, an answer that was a draft is found,
// though it has no nonce.
func TestDraftThatBecameTheAnswerBeforeACrash(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server) {
		state := newState()
		first := s.bot(t, func(o *Options) { o.State = state })
		first.Draft(hall(), "Su")
		within(t, time.Minute, "a draft", func() bool { return len(s.Messages(hallID)) == 1 })
		parts := &interruptedJournal{journal: journal{base: "crash"}}
		began := time.Now()
		if _, err := act(t, first, "message_discord", map[string]any{"text": "Sure."}, func(call *core.Call) { call.Deliveries = &crashingJournal{parts: parts} }); err == nil {
			t.Fatal("the first process delivered the part, want a crash")
		}
		first.tasks.Close()
		parts.began = began
		next := s.bot(t, func(o *Options) { o.State = state })
		if _, err := act(t, next, "message_discord", map[string]any{"text": "Sure."}, func(call *core.Call) { call.Deliveries = parts }); err != nil {
			t.Fatal(err)
		}
		if got := s.Texts(hallID); len(got) != 1 || got[0] != "Sure." {
			t.Errorf("got %q, want only the answer", got)
		}
	})
}

// TestPartInterruptedByACrashInAnOldMessage: the message that became the answer may be much older than
// the part: a draft that grew for a while, or the deferred answer to a command.
func TestPartInterruptedByACrashInAnOldMessage(t *testing.T) {
	for name, begin := range map[string]func(t *testing.T, s *server, d *Driver) (answers []string){
		"a draft": func(t *testing.T, s *server, d *Driver) []string {
			d.Draft(hall(), "Su")
			within(t, time.Minute, "a draft", func() bool { return len(s.Messages(hallID)) == 1 })
			return nil
		},
		"a command": func(t *testing.T, s *server, d *Driver) []string {
			id, err := s.Command(hallID, annID, "help", nil)
			if err != nil {
				t.Fatal(err)
			}
			within(t, time.Minute, "deferred", func() bool { return s.Interaction(id).Answer == discordtest.AnswerLater })
			return []string{id}
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, s *server) {
				state := newState()
				first, in := s.bot(t, func(o *Options) {
					o.State, o.Commands = state, onlyHelp
				}), newInbox()
				stop := s.listen(t, first, in)
				within(t, time.Minute, "commands", func() bool { return len(s.Calls("PUT /applications/")) == 1 })
				answers := begin(t, s, first)
				time.Sleep(2 * time.Minute)
				parts := &interruptedJournal{journal: journal{base: "crash"}}
				began := time.Now()
				if _, err := act(t, first, "message_discord", map[string]any{"text": "Sure."}, func(call *core.Call) { call.Deliveries, call.Answers = &crashingJournal{parts: parts}, answers }); err == nil {
					t.Fatal("the first process delivered the part, want a crash")
				}
				if err := stop(); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Hour)
				parts.began = began
				next := s.bot(t, func(o *Options) { o.State = state })
				if _, err := act(t, next, "message_discord", map[string]any{"text": "Sure."}, func(call *core.Call) { call.Deliveries, call.Answers = parts, answers }); err != nil {
					t.Fatal(err)
				}
				if got := s.Texts(hallID); len(got) != 1 || got[0] != "Sure." {
					t.Errorf("got %q, want only the answer", got)
				}
			})
		})
	}
}

// TestPartInterruptedByACrashWithoutHistory: if the bot may not read the channel, the part cannot be
// searched for and is sent again.
func TestPartInterruptedByACrashWithoutHistory(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server) {
		s.ChangeChannel(hallID, func(c *discordtest.Channel) {
			c.Over = []discordtest.Overwrite{{ID: guildID, Deny: discordtest.MayReadHistory}}
		})
		parts := &interruptedJournal{journal: journal{base: "crash"}, began: time.Now().Add(-time.Hour)}
		if _, err := act(t, s.bot(t), "message_discord", map[string]any{"text": "Sure."}, func(call *core.Call) { call.Deliveries = parts }); err != nil {
			t.Fatal(err)
		}
		if n := len(s.Messages(hallID)); n != 1 {
			t.Errorf("got %d messages, want 1", n)
		}
	})
}

// TestPartInterruptedByACrashWhileSearchFails: while the search for a part fails, the part is not
// sent. A later try searches again.
func TestPartInterruptedByACrashWhileSearchFails(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server) {
		s.Fail(func(c discordtest.Call) discordtest.Fault {
			if c.Is("GET /channels/") {
				return discordtest.Fault{Kind: discordtest.Broken}
			}
			return discordtest.Fault{}
		})
		parts := &interruptedJournal{journal: journal{base: "crash"}, began: time.Now().Add(-time.Hour)}
		_, err := act(t, s.bot(t), "message_discord", map[string]any{"text": "Sure."}, func(call *core.Call) { call.Deliveries = parts })
		if kind(err) != core.Temporary || len(s.Messages(hallID)) != 0 {
			t.Errorf("got %v and %d messages, want a temporary error and none", err, len(s.Messages(hallID)))
		}
	})
}

// TestLongOutageAfterALostAnswer: if a response is lost and the platform has forgotten the nonce
// after a long outage, the channel is searched, and the message is not sent twice.
func TestLongOutageAfterALostAnswer(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server) {
		s.HonourNonces(rest.NonceAge)
		first := true
		began := time.Now()
		s.Fail(func(c discordtest.Call) discordtest.Fault {
			switch {
			case !c.Is("POST /channels/" + hallID + "/messages"):
			case first:
				first = false
				return discordtest.Fault{Kind: discordtest.HangAfter}
			case time.Since(began) < 150*time.Second:
				return discordtest.Fault{Kind: discordtest.Hang}
			}
			return discordtest.Fault{}
		})
		if _, err := act(t, s.bot(t), "message_discord", map[string]any{"text": "Sure."}); err != nil {
			t.Fatal(err)
		}
		if n := len(s.Messages(hallID)); n != 1 {
			t.Errorf("got %d messages, want 1", n)
		}
	})
}
