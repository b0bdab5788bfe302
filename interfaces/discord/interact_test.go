package discord

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"synthbot/core"
	"synthbot/core/coretest"
	"synthbot/core/driver"
	"synthbot/core/watch"
	"synthbot/interfaces/discord/discordtest"
)

// press presses a button for a user and returns the interaction's id.
func (s *server) press(t *testing.T, channel, message, who, custom string) string {
	t.Helper()
	id, err := s.Press(channel, message, who, custom)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// command calls a command for a user, once it is registered.
func (s *server) command(t *testing.T, channel, who, name string, options map[string]string) (id string) {
	t.Helper()
	var err error
	until(t, "the command "+name, func() bool {
		id, err = s.Command(channel, who, name, options)
		return err == nil
	})
	return id
}

// awaitAnswer waits for the first answer to an interaction and checks its type.
func (s *server) awaitAnswer(t *testing.T, id string, how int) discordtest.Interaction {
	t.Helper()
	until(t, "an answer", func() bool { return s.Interaction(id).Answer != 0 })
	i := s.Interaction(id)
	if i.Answer != how {
		t.Errorf("got an answer of type %d, want %d", i.Answer, how)
	}
	return i
}

// sayWithButtons sends a message with buttons in answer to Ann.
func (s *server) sayWithButtons(t *testing.T, d *Driver, buttons ...map[string]any) discordtest.Message {
	t.Helper()
	if _, err := act(t, d, "message_discord", map[string]any{"text": "Shall I?", "buttons": buttons}); err != nil {
		t.Fatal(err)
	}
	all := s.Messages(hallID)
	return all[len(all)-1]
}

// TestPress: a press of the user that the buttons are for is acknowledged and received, and the
// buttons are removed.
func TestPress(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	d, in := s.up(t)
	m := s.sayWithButtons(t, d, map[string]any{"label": "Yes", "data": "block Bob"}, map[string]any{"label": "More", "url": "https://example.org"})
	id := s.press(t, hallID, m.ID, annID, annID+":0")
	p := in.wait(t, core.KindPress, 1)[0]
	if p.Target != m.ID || p.Data != "Yes" || p.Message.Author.ID != annID || p.Message.ID != id {
		t.Errorf("got %+v, want Ann's press of Yes", p)
	}
	s.awaitAnswer(t, id, discordtest.AnswerNothing)
	until(t, "the buttons are gone", func() bool { return len(s.Messages(hallID)[0].Buttons()) == 0 })
}

// TestLocaleOfMessages: messages have the language of their author's client, once an interaction
// revealed it.
func TestLocaleOfMessages(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	d, in := s.up(t)
	m := s.sayWithButtons(t, d, map[string]any{"label": "Yes", "data": "yes"})
	s.Say(hallID, annID, "before")
	in.wait(t, core.KindMessage, 1)
	s.press(t, hallID, m.ID, annID, annID+":0")
	in.wait(t, core.KindPress, 1)
	s.Say(hallID, annID, "after")
	s.Say(hallID, bobID, "me too")
	var locales []string
	for _, e := range in.wait(t, core.KindMessage, 3) {
		locales = append(locales, e.Message.Locale)
	}
	if !slices.Equal(locales, []string{"", "it", ""}) {
		t.Errorf("got locales %q, want it only for Ann's second message", locales)
	}
}

// TestStrangersPress: a press of another user is refused with a whisper, unless that user is an admin.
func TestStrangersPress(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	d, in := s.up(t, func(o *Options) {
		o.Admins = func() []core.Path { return []core.Path{core.MustPath("discord/@user/" + bobID)} }
	})
	m := s.sayWithButtons(t, d, map[string]any{"label": "Yes", "data": "block Bob"})
	refused := s.awaitAnswer(t, s.press(t, hallID, m.ID, "700000000000000066", annID+":0"), discordtest.AnswerMessage)
	if len(refused.Whispers) != 1 || !strings.Contains(refused.Whispers[0].Text, "somebody else") || len(s.Messages(hallID)) != 1 {
		t.Errorf("got %+v, want one whisper and no message", refused)
	}
	s.press(t, hallID, m.ID, bobID, annID+":0")
	if got := in.wait(t, core.KindPress, 1); len(got) != 1 || got[0].Message.Author.ID != bobID {
		t.Errorf("got presses %+v, want only the admin's", got)
	}
}

// TestSlowDiskDefersAllTheSame: a command is acknowledged in time, even if the store hangs.
func TestSlowDiskDefersAllTheSame(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server) {
		d := s.bot(t, func(o *Options) { o.Commands = registry })
		in := newInbox()
		hang := make(chan struct{})
		release := sync.OnceFunc(func() { close(hang) })
		defer release()
		in.answer = func(e core.Event) {
			if e.Message.Text == "the disk hangs" {
				<-hang
			}
		}
		s.listen(t, d, in)
		until(t, "connected", func() bool { return d.cache.known(guildID) })
		// This event blocks the inbox, so that the command waits behind it.
		s.Say(hallID, annID, "the disk hangs")
		id := s.command(t, hallID, annID, "help", nil)
		s.awaitAnswer(t, id, discordtest.AnswerLater)
		release()
		in.wait(t, core.KindCommand, 1)
	})
}

// TestCommandIsAnsweredInItsPlace: the first message of an answer fills the deferred answer to the
// command. Further messages are plain ones.
func TestCommandIsAnsweredInItsPlace(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	d, in := s.up(t, func(o *Options) { o.Commands = registry })
	id := s.command(t, hallID, annID, "help", nil)
	in.wait(t, core.KindCommand, 1)
	s.awaitAnswer(t, id, discordtest.AnswerLater)
	if n := s.Thinking(hallID); n != 1 {
		t.Errorf("got %d deferred answers, want 1", n)
	}
	if _, err := act(t, d, "message_discord", map[string]any{"text": "I can do this."}, inAnswerTo(id)); err != nil {
		t.Fatal(err)
	}
	if got := s.Messages(hallID); len(got) != 1 || got[0].Text != "I can do this." || got[0].Interaction != id {
		t.Errorf("got %+v, want the answer to the command", got)
	}
	if _, err := act(t, d, "message_discord", map[string]any{"text": "And more."}, inAnswerTo(id)); err != nil {
		t.Fatal(err)
	}
	if got := s.Messages(hallID); len(got) != 2 || got[1].Interaction != "" {
		t.Errorf("got %+v, want a second, plain message", got)
	}
}

// inAnswerTo makes a call part of the turn that answers messages or commands.
func inAnswerTo(ids ...string) func(*core.Call) {
	return func(c *core.Call) { c.Answers = ids }
}

// TestEachCommandGetsItsOwnAnswer: only the turn of a command fills its deferred answer, not the turn of
// a message, of another command, or one that the bot continues by itself.
func TestEachCommandGetsItsOwnAnswer(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	d, in := s.up(t, func(o *Options) { o.Commands = registry })
	said := s.Say(hallID, annID, hello())
	help := s.command(t, hallID, annID, "help", nil)
	again := s.command(t, hallID, annID, "help", nil)
	in.wait(t, core.KindCommand, 2)
	s.awaitAnswer(t, again, discordtest.AnswerLater)
	for _, turn := range []struct{ answers, text, fills string }{
		{said, "To the message.", ""},
		{"continue-1-1", "And I go on.", ""},
		{again, "To the second command.", again},
		{again, "More on that.", ""},
		{help, "To the first command.", help},
	} {
		if _, err := act(t, d, "message_discord", map[string]any{"text": turn.text}, inAnswerTo(turn.answers)); err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(s.Messages(hallID), func(m discordtest.Message) bool { return m.Text == turn.text })
		if i < 0 || s.Messages(hallID)[i].Interaction != turn.fills {
			t.Errorf("%s: got %+v, want it to fill %q", turn.text, s.Messages(hallID), turn.fills)
		}
	}
	if n := s.Thinking(hallID); n != 0 {
		t.Errorf("%d deferred answers are left, want 0", n)
	}
}

// TestCommandBesideADraft: answering a command leaves the draft of another answer in place.
func TestCommandBesideADraft(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	d, in := s.up(t, func(o *Options) { o.Commands = registry })
	d.Draft(hall(), "half a tex")
	until(t, "a draft", func() bool { return len(s.Texts(hallID)) == 1 })
	draft := s.Messages(hallID)[0].ID
	help := s.command(t, hallID, annID, "help", nil)
	in.wait(t, core.KindCommand, 1)
	if _, err := act(t, d, "message_discord", map[string]any{"text": strings.Repeat("I can do this. ", 300)}, inAnswerTo(help)); err != nil {
		t.Fatal(err)
	}
	if got := s.Messages(hallID); len(got) != 4 || got[0].ID != draft || got[0].Text != "half a tex ▍" {
		t.Errorf("got %q, want the draft and three messages", s.Texts(hallID))
	}
	if _, err := act(t, d, "message_discord", map[string]any{"text": "The whole text."}); err != nil {
		t.Fatal(err)
	}
	if got := s.Messages(hallID); len(got) != 4 || got[0].ID != draft || got[0].Text != "The whole text." {
		t.Errorf("in the end got %q, want the draft turned into the answer", s.Texts(hallID))
	}
}

// TestCommandWithoutAnswer: when a turn ends without an answer, the deferred answer to its command is
// deleted.
func TestCommandWithoutAnswer(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	d, in := s.up(t, func(o *Options) { o.Commands = registry })
	id := s.command(t, hallID, annID, "help", nil)
	in.wait(t, core.KindCommand, 1)
	s.awaitAnswer(t, id, discordtest.AnswerLater)
	d.Observe(watch.TurnEnd{Messages: []string{id}})
	until(t, "the deferred answer is deleted", func() bool { return s.Thinking(hallID) == 0 })
}

// TestCompletion: a request for completions is answered with matching choices and is not an event.
func TestCompletion(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	_, in := s.up(t, func(o *Options) { o.Commands = registry })
	s.ChangeGuild(guildID, func(g *discordtest.Guild) { g.Members[bobID].Roles = nil; g.Owner = bobID })
	var id string
	until(t, "the command", func() bool {
		var err error
		id, err = s.Complete(hallID, bobID, "zone", "zone", "asia")
		return err == nil
	})
	got := s.awaitAnswer(t, id, discordtest.AnswerChoices)
	if len(got.Choices) != 16 || got.Choices[0] != "Asia/Atown" {
		t.Errorf("got %v, want 16 choices from Asia/Atown", got.Choices)
	}
	if n := len(in.all()); n != 0 {
		t.Errorf("got %d events, want 0", n)
	}
}

// newState returns an empty State, which several drivers can use in turn.
func newState() driver.State { return &memoryState{values: map[string][]byte{}} }

// TestMenuOnAnEmptyMessage: a message without text cannot be remembered, and only the user who asked
// sees that.
func TestMenuOnAnEmptyMessage(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	_, in := s.up(t, func(o *Options) { o.Commands = registry })
	said := s.Say(hallID, bobID, "")
	var id string
	until(t, "the menu", func() bool {
		var err error
		id, err = s.Menu(hallID, annID, menuName, said)
		return err == nil
	})
	got := s.awaitAnswer(t, id, discordtest.AnswerMessage)
	if len(got.Whispers) != 1 || len(s.Everything(hallID)) != 1 {
		t.Errorf("got %+v, want one whisper and no message", got)
	}
	for _, e := range in.all() {
		if e.Kind == core.KindCommand {
			t.Errorf("got the command %+v, want none", e)
		}
	}
}

// TestInteractionReceivedAgain: an interaction that a resumed session repeats is answered once.
func TestInteractionReceivedAgain(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server) {
		d, in := s.up(t, func(o *Options) { o.Commands = registry })
		m := s.sayWithButtons(t, d, map[string]any{"label": "Yes", "data": "block Bob"})
		s.press(t, hallID, m.ID, annID, annID+":0")
		in.wait(t, core.KindPress, 1)
		time.Sleep(time.Second)
		for _, p := range s.Sent("INTERACTION_CREATE") {
			s.Send(p)
		}
		time.Sleep(10 * time.Second)
		if n := len(s.Calls("POST /interactions/")); n != 1 {
			t.Errorf("answered %d times, want 1", n)
		}
	})
}

// TestCommandWhereTheBotMayNotWrite: a command is answered completely, even if the bot may not write in
// the channel.
func TestCommandWhereTheBotMayNotWrite(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	d, in := s.up(t, func(o *Options) { o.Commands = registry })
	s.ChangeChannel(hallID, func(c *discordtest.Channel) {
		c.Over = []discordtest.Overwrite{{ID: guildID, Deny: discordtest.MaySend}}
	})
	if _, err := act(t, d, "message_discord", map[string]any{"text": "x"}); kind(err) != core.Forbidden {
		t.Errorf("a plain message: got %v, want forbidden", err)
	}
	id := s.command(t, hallID, annID, "help", nil)
	in.wait(t, core.KindCommand, 1)
	until(t, "a deferred answer", func() bool { return s.Thinking(hallID) == 1 })
	if _, err := act(t, d, "message_discord", map[string]any{"text": strings.Repeat("I can do this. ", 300)}, inAnswerTo(id)); err != nil {
		t.Fatal(err)
	}
	if got := s.Texts(hallID); len(got) != 3 || strings.Count(strings.Join(got, " "), "this") != 300 {
		t.Errorf("got %d messages, want the whole answer in 3", len(got))
	}
}

// TestFollowUpWhoseReplyIsLost: follow-ups have no nonce. After a lost response, a follow-up is searched
// for. Where the bot may not read, it is sent twice more at most, also across a restart. The messages
// after it still arrive.
func TestFollowUpWhoseReplyIsLost(t *testing.T) {
	const reads, blind = discordtest.MaySend, discordtest.MaySend | discordtest.MayReadHistory
	for _, c := range []struct {
		deny uint64
		lost int    // replies to the second of three messages
		runs int    // processes
		want string // the messages in the channel
	}{
		{reads, 0, 1, "123"}, {reads, 1, 1, "123"}, {reads, 9, 2, "123"},
		{blind, 0, 1, "123"}, {blind, 1, 1, "1223"}, {blind, 2, 1, "12223"}, {blind, 9, 1, "12223"},
		{blind, 1, 2, "1223"}, {blind, 2, 2, "12223"}, {blind, 9, 2, "12223"},
	} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			inBubble(t, func(t *testing.T, s *server) {
				state := newState()
				change := func(o *Options) { o.Commands, o.State = registry, state }
				s.ChangeChannel(hallID, func(channel *discordtest.Channel) {
					channel.Over = []discordtest.Overwrite{{ID: guildID, Deny: c.deny}}
				})
				d, in := s.bot(t, change), newInbox()
				stop := s.listen(t, d, in)
				id := s.command(t, hallID, annID, "help", nil)
				in.wait(t, core.KindCommand, 1)
				s.awaitAnswer(t, id, discordtest.AnswerLater)
				lost := c.lost
				s.Fail(func(call discordtest.Call) discordtest.Fault {
					if !call.Is("POST /webhooks/") || !strings.Contains(string(call.Body), "2222") || lost == 0 {
						return discordtest.Fault{}
					}
					lost--
					return discordtest.Fault{Kind: discordtest.ResetAfter}
				})
				text := ""
				for _, sign := range []string{"1", "2", "3"} {
					text += strings.Repeat(strings.Repeat(sign, 9)+" ", 199) + "\n"
				}
				parts := &coretest.Parts{}
				say := func() error {
					_, err := act(t, d, "message_discord", map[string]any{"text": text}, inAnswerTo(id), func(call *core.Call) { call.Deliveries = parts })
					return err
				}
				err := say()
				if c.lost > 0 && !errors.Is(err, core.ErrUnknownOutcome) {
					t.Errorf("at first got %v, want an unknown outcome", err)
				}
				if c.runs > 1 {
					_ = stop()
					d = s.bot(t, change)
				}
				if err := coretest.Again(t.Context(), say); (err != nil) != (c.want == "12223" && c.lost > 2) || err != nil && kind(err) != core.Unsure {
					t.Errorf("in the end got %v", err)
				}
				got := ""
				for _, said := range s.Texts(hallID) {
					got += said[:1]
				}
				if got != c.want {
					t.Errorf("got messages %s, want %s", got, c.want)
				}
				d.Observe(watch.TurnEnd{Messages: []string{id}})
				time.Sleep(time.Second)
				if left := d.replies.list(func(pending) bool { return true }); len(left) != 0 {
					t.Errorf("stored commands: got %v, want none", left)
				}
			})
		})
	}
}

// TestCommandAfterARestart: a command that waited for its answer when the process ended is answered by
// the next process. If it gets no answer there, its deferred answer is deleted.
func TestCommandAfterARestart(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(*testing.T, *Driver, string)
		said int
	}{
		"answered": {func(t *testing.T, d *Driver, id string) {
			if _, err := act(t, d, "message_discord", map[string]any{"text": "I can do this."}, inAnswerTo(id)); err != nil {
				t.Error(err)
			}
		}, 1},
		"not answered": {func(_ *testing.T, d *Driver, id string) { d.Observe(watch.TurnEnd{Messages: []string{id}}) }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t)
			state := newState()
			change := func(o *Options) { o.Commands, o.State = registry, state }
			before, in := s.bot(t, change), newInbox()
			stop := s.listen(t, before, in)
			done := s.command(t, hallID, annID, "help", nil)
			in.wait(t, core.KindCommand, 1)
			s.awaitAnswer(t, done, discordtest.AnswerLater)
			if _, err := act(t, before, "message_discord", map[string]any{"text": "The first."}, inAnswerTo(done)); err != nil {
				t.Fatal(err)
			}
			open := s.command(t, hallID, annID, "help", nil)
			in.wait(t, core.KindCommand, 2)
			s.awaitAnswer(t, open, discordtest.AnswerLater)
			if err := stop(); err != nil {
				t.Fatal(err)
			}
			before.Observe(watch.TurnEnd{Messages: []string{open}}) // has no effect after the stop
			after := s.bot(t, change)
			c.end(t, after, open)
			after.tasks.Close()
			got := s.Messages(hallID)
			if s.Thinking(hallID) != 0 || len(got) != 1+c.said || got[0].Text != "The first." || c.said == 1 && got[1].Interaction != open {
				t.Errorf("got %d deferred answers and %+v, want 0 and %d messages", s.Thinking(hallID), got, 1+c.said)
			}
			if len(before.replies.list(func(p pending) bool { return !p.Answered })) > 0 {
				t.Error("the former driver still has the command as unanswered")
			}
		})
	}
}

// TestAnswerFasterThanTheDeferral: an answer waits until the platform has accepted the deferral that it
// fills.
func TestAnswerFasterThanTheDeferral(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	d, in := s.up(t, func(o *Options) { o.Commands = registry })
	s.Delay(func(c discordtest.Call) time.Duration {
		if c.Is("POST /interactions/") {
			return 200 * time.Millisecond
		}
		return 0
	})
	first := s.command(t, hallID, annID, "help", nil)
	in.wait(t, core.KindCommand, 1)
	if _, err := act(t, d, "message_discord", map[string]any{"text": "I can do this."}, inAnswerTo(first)); err != nil {
		t.Fatal(err)
	}
	if got := s.Messages(hallID); len(got) != 1 || got[0].Interaction != first || s.Thinking(hallID) != 0 {
		t.Errorf("got %+v, want the answer to the command", got)
	}
	second := s.command(t, hallID, annID, "help", nil)
	in.wait(t, core.KindCommand, 2)
	d.Observe(watch.TurnEnd{Messages: []string{second}})
	s.awaitAnswer(t, second, discordtest.AnswerLater)
	until(t, "the deferred answer is deleted", func() bool { return s.Thinking(hallID) == 0 })
}

// TestCommandWhoseAnswerIsLost: if the responses to a command's answer are lost, another try does not
// repeat the answer, and the end of the turn does not delete it.
func TestCommandWhoseAnswerIsLost(t *testing.T) {
	for name, again := range map[string]bool{"tried again": true, "given up": false} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, s *server) {
				d, in := s.up(t, func(o *Options) { o.Commands = registry })
				id := s.command(t, hallID, annID, "help", nil)
				in.wait(t, core.KindCommand, 1)
				s.Fail(func(c discordtest.Call) discordtest.Fault {
					if c.Is("PATCH /webhooks/") {
						return discordtest.Fault{Kind: discordtest.ResetAfter}
					}
					return discordtest.Fault{}
				})
				say := func() error {
					_, err := act(t, d, "message_discord", map[string]any{"text": "I can do this."}, inAnswerTo(id))
					return err
				}
				if err := say(); kind(err) != core.Temporary {
					t.Errorf("at first got %v, want a temporary error", err)
				}
				s.Fail(nil)
				if again {
					if err := say(); err != nil {
						t.Error(err)
					}
				}
				d.Observe(watch.TurnEnd{Messages: []string{id}})
				time.Sleep(10 * time.Second)
				if got := s.Messages(hallID); len(got) != 1 || got[0].Interaction != id {
					t.Errorf("got %+v, want one answer to the command", got)
				}
				if left := d.replies.list(func(pending) bool { return true }); len(left) != 0 {
					t.Errorf("stored commands: got %v, want none", left)
				}
			})
		})
	}
}

// TestExpiredInteraction: an expired token of an interaction does not count as a rejected bot token. The
// answer is sent as a plain message.
func TestExpiredInteraction(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	d, in := s.up(t, func(o *Options) { o.Commands = registry })
	id := s.command(t, hallID, annID, "help", nil)
	in.wait(t, core.KindCommand, 1)
	s.awaitAnswer(t, id, discordtest.AnswerLater)
	s.FailNext("PATCH /webhooks/", discordtest.Fault{Kind: discordtest.Refused, Status: 401, Code: 50027})
	if _, err := act(t, d, "message_discord", map[string]any{"text": "I can do this."}, inAnswerTo(id)); err != nil {
		t.Fatal(err)
	}
	if !d.Reaches(hall()) || len(s.Messages(hallID)) != 1 {
		t.Errorf("reachable: %v; got %+v, want one message", d.Reaches(hall()), s.Messages(hallID))
	}
	if _, err := act(t, d, "message_discord", map[string]any{"text": "And more."}, inAnswerTo(id)); err != nil {
		t.Fatal(err)
	}
	if n := len(s.Calls("PATCH /webhooks/")); n != 1 || len(s.Messages(hallID)) != 2 {
		t.Errorf("tried %d times, want 1; got %+v, want two messages", n, s.Messages(hallID))
	}
}
