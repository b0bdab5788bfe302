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

// press lets a person press a button.
func (s *server) press(t *testing.T, channel, message, who, custom string) string {
	t.Helper()
	id, err := s.Press(channel, message, who, custom)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// command lets a person call a command, once it is known.
func (s *server) command(t *testing.T, channel, who, name string, options map[string]string) (id string) {
	t.Helper()
	var err error
	until(t, "the command "+name, func() bool {
		id, err = s.Command(channel, who, name, options)
		return err == nil
	})
	return id
}

// awaitAnswer waits for the first answer to an interaction.
func (s *server) awaitAnswer(t *testing.T, id string, how int) discordtest.Interaction {
	t.Helper()
	until(t, "an answer", func() bool { return s.Interaction(id).Answer != 0 })
	i := s.Interaction(id)
	if i.Answer != how {
		t.Errorf("answered with %d, want %d", i.Answer, how)
	}
	return i
}

// sayWithButtons lets the bot say something with buttons, as an answer to Ann.
func (s *server) sayWithButtons(t *testing.T, d *Driver, buttons ...map[string]any) discordtest.Message {
	t.Helper()
	if _, err := act(t, d, "message_discord", map[string]any{"text": "Shall I?", "buttons": buttons}); err != nil {
		t.Fatal(err)
	}
	all := s.Messages(hallID)
	return all[len(all)-1]
}

func TestPress(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	d, in := s.up(t)
	m := s.sayWithButtons(t, d, map[string]any{"label": "Yes", "data": "block Bob"}, map[string]any{"label": "More", "url": "https://example.org"})
	id := s.press(t, hallID, m.ID, annID, annID+":0")
	p := in.wait(t, core.KindPress, 1)[0]
	if p.Target != m.ID || p.Data != "Yes" || p.Message.Author.ID != annID || p.Message.ID != id {
		t.Errorf("press: %+v", p)
	}
	s.awaitAnswer(t, id, discordtest.AnswerNothing)
	until(t, "the buttons are gone", func() bool { return len(s.Messages(hallID)[0].Buttons()) == 0 })
}

// TestLocaleOfMessages: only interactions tell what language a user's client has.
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
		t.Errorf("the messages have the locales %q", locales)
	}
}

func TestStrangersPress(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	d, in := s.up(t, func(o *Options) {
		o.Admins = func() []core.Path { return []core.Path{core.MustPath("discord/@user/" + bobID)} }
	})
	m := s.sayWithButtons(t, d, map[string]any{"label": "Yes", "data": "block Bob"})
	refused := s.awaitAnswer(t, s.press(t, hallID, m.ID, "700000000000000066", annID+":0"), discordtest.AnswerMessage)
	if len(refused.Whispers) != 1 || !strings.Contains(refused.Whispers[0].Text, "somebody else") || len(s.Messages(hallID)) != 1 {
		t.Errorf("refused with %+v", refused)
	}
	s.press(t, hallID, m.ID, bobID, annID+":0")
	if got := in.wait(t, core.KindPress, 1); len(got) != 1 || got[0].Message.Author.ID != bobID {
		t.Errorf("presses: %+v", got)
	}
}

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
		// What comes behind an event that the disk does not take is answered in time.
		s.Say(hallID, annID, "the disk hangs")
		id := s.command(t, hallID, annID, "help", nil)
		s.awaitAnswer(t, id, discordtest.AnswerLater)
		release()
		in.wait(t, core.KindCommand, 1)
	})
}

func TestCommandIsAnsweredInItsPlace(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	d, in := s.up(t, func(o *Options) { o.Commands = registry })
	id := s.command(t, hallID, annID, "help", nil)
	in.wait(t, core.KindCommand, 1)
	s.awaitAnswer(t, id, discordtest.AnswerLater)
	if n := s.Thinking(hallID); n != 1 {
		t.Errorf("%d signs of thinking", n)
	}
	if _, err := act(t, d, "message_discord", map[string]any{"text": "I can do this."}, inAnswerTo(id)); err != nil {
		t.Fatal(err)
	}
	if got := s.Messages(hallID); len(got) != 1 || got[0].Text != "I can do this." || got[0].Interaction != id {
		t.Errorf("answered with %+v", got)
	}
	if _, err := act(t, d, "message_discord", map[string]any{"text": "And more."}, inAnswerTo(id)); err != nil {
		t.Fatal(err)
	}
	if got := s.Messages(hallID); len(got) != 2 || got[1].Interaction != "" {
		t.Errorf("said %+v", got)
	}
}

// inAnswerTo makes a call part of the turn that answers these messages.
func inAnswerTo(ids ...string) func(*core.Call) {
	return func(c *core.Call) { c.Answers = ids }
}

// The answer to one message or command never becomes that of a later command of any user
// in any place; neither does a turn that the bot goes on with by itself.
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
			t.Errorf("%s: stands %+v", turn.text, s.Messages(hallID))
		}
	}
	if n := s.Thinking(hallID); n != 0 {
		t.Errorf("%d signs of thinking are left", n)
	}
}

// A command that is answered while a model's answer grows takes nothing of it away.
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
		t.Errorf("stands: %q", s.Texts(hallID))
	}
	if _, err := act(t, d, "message_discord", map[string]any{"text": "The whole text."}); err != nil {
		t.Fatal(err)
	}
	if got := s.Messages(hallID); len(got) != 4 || got[0].ID != draft || got[0].Text != "The whole text." {
		t.Errorf("in the end: %q", s.Texts(hallID))
	}
}

func TestCommandWithoutAnswer(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	d, in := s.up(t, func(o *Options) { o.Commands = registry })
	id := s.command(t, hallID, annID, "help", nil)
	in.wait(t, core.KindCommand, 1)
	s.awaitAnswer(t, id, discordtest.AnswerLater)
	d.Observe(watch.TurnEnd{Messages: []string{id}})
	until(t, "the sign is gone", func() bool { return s.Thinking(hallID) == 0 })
}

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
		t.Errorf("completed with %v", got.Choices)
	}
	if n := len(in.all()); n != 0 {
		t.Errorf("%d events", n)
	}
}

// newState returns a State that outlives drivers.
func newState() driver.State { return &memoryState{values: map[string][]byte{}} }

// A message that says nothing cannot be remembered: only the user who asks learns that.
func TestInteractionThatMakesNoSense(t *testing.T) {
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
		t.Errorf("answered with %+v", got)
	}
	for _, e := range in.all() {
		if e.Kind == core.KindCommand {
			t.Errorf("called %+v", e)
		}
	}
}

// What a resumed session tells again is answered once.
func TestInteractionToldAgain(t *testing.T) {
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
			t.Errorf("answered %d times", n)
		}
	})
}

// A command can be answered where the bot may not write.
func TestCommandWhereTheBotMayNotWrite(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	d, in := s.up(t, func(o *Options) { o.Commands = registry })
	s.ChangeChannel(hallID, func(c *discordtest.Channel) {
		c.Over = []discordtest.Overwrite{{ID: guildID, Deny: discordtest.MaySend}}
	})
	if _, err := act(t, d, "message_discord", map[string]any{"text": "x"}); kind(err) != core.Forbidden {
		t.Errorf("sent: %v", err)
	}
	id := s.command(t, hallID, annID, "help", nil)
	in.wait(t, core.KindCommand, 1)
	until(t, "a sign", func() bool { return s.Thinking(hallID) == 1 })
	if _, err := act(t, d, "message_discord", map[string]any{"text": strings.Repeat("I can do this. ", 300)}, inAnswerTo(id)); err != nil {
		t.Fatal(err)
	}
	if got := s.Texts(hallID); len(got) != 3 || strings.Count(strings.Join(got, " "), "this") != 300 {
		t.Errorf("said in %d messages", len(got))
	}
}

// What follows a command's answer where the bot may not write is known by no nonce. After
// a lost reply it is looked for, and where it cannot be, it is sent twice more at most, by
// this life or the next; then what comes behind it still arrives.
func TestFollowUpWhoseReplyIsLost(t *testing.T) {
	const reads, blind = discordtest.MaySend, discordtest.MaySend | discordtest.MayReadHistory
	for _, c := range []struct {
		deny  uint64
		lost  int // replies to the second of three messages
		lives int
		want  string // the messages in the channel
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
					t.Errorf("at first %v", err)
				}
				if c.lives > 1 {
					_ = stop()
					d = s.bot(t, change)
				}
				if err := coretest.Again(t.Context(), say); (err != nil) != (c.want == "12223" && c.lost > 2) || err != nil && kind(err) != core.Unsure {
					t.Errorf("in the end %v", err)
				}
				got := ""
				for _, said := range s.Texts(hallID) {
					got += said[:1]
				}
				if got != c.want {
					t.Errorf("%s stand, want %s", got, c.want)
				}
				d.Observe(watch.TurnEnd{Messages: []string{id}})
				time.Sleep(time.Second)
				if left, err := d.replies.stored(); err != nil || len(left) != 0 {
					t.Errorf("noted still: %v", left)
				}
			})
		})
	}
}

// What was being thought about when the process ended is answered in its place in
// the life after, and what gets no answer there shows no sign of it.
func TestCommandOfAFormerLife(t *testing.T) {
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
			before.Observe(watch.TurnEnd{Messages: []string{open}}) // it can do nothing any more
			after := s.bot(t, change)
			c.end(t, after, open)
			after.tasks.Close()
			got := s.Messages(hallID)
			if s.Thinking(hallID) != 0 || len(got) != 1+c.said || got[0].Text != "The first." || c.said == 1 && got[1].Interaction != open {
				t.Errorf("%d signs, and %+v", s.Thinking(hallID), got)
			}
			if _, ok := before.replies.find(func(p pending) bool { return !p.Answered }); ok {
				t.Error("it is taken twice")
			}
		})
	}
}

// TestAnswerFasterThanTheDeferral: the platform is slow to take that a command was
// taken; the answer waits for it, since there is nothing yet that it could fill.
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
		t.Errorf("answered with %+v", got)
	}
	second := s.command(t, hallID, annID, "help", nil)
	in.wait(t, core.KindCommand, 2)
	d.Observe(watch.TurnEnd{Messages: []string{second}})
	s.awaitAnswer(t, second, discordtest.AnswerLater)
	until(t, "the sign is gone", func() bool { return s.Thinking(hallID) == 0 })
}

// The reply to a command's answer is lost for long: the answer is not doubled by
// another try, and clean-up leaves it alone.
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
					t.Errorf("said with %v", err)
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
					t.Errorf("stands: %+v", got)
				}
				if left, err := d.replies.stored(); err != nil || len(left) != 0 {
					t.Errorf("waits still: %v", left)
				}
			})
		})
	}
}

// The token of an interaction is over: that says nothing of the bot's own.
func TestInteractionThatIsOver(t *testing.T) {
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
		t.Errorf("reached: %v, stands: %+v", d.Reaches(hall()), s.Messages(hallID))
	}
	if _, err := act(t, d, "message_discord", map[string]any{"text": "And more."}, inAnswerTo(id)); err != nil {
		t.Fatal(err)
	}
	if n := len(s.Calls("PATCH /webhooks/")); n != 1 || len(s.Messages(hallID)) != 2 {
		t.Errorf("tried %d times, stands: %+v", n, s.Messages(hallID))
	}
}
