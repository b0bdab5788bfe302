package discord

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"synthbot/core"
	"synthbot/core/driver"
	"synthbot/interfaces/discord/discordtest"
	"synthbot/interfaces/discord/rest"
)

// TestIsTheSameMessage: all of a message's content decides whether it is the one that was sent.
func TestIsTheSameMessage(t *testing.T) {
	file := func(name string, size int) core.Upload { return core.Upload{Name: name, Data: make([]byte, size)} }
	ours := outgoing{
		Content: " Rome ", Embeds: []embedPayload{{Title: "a", Description: "b"}}, files: []core.Upload{file("x.txt", 5)},
		Poll: &poll{Question: pollMedia{Text: "Which?"}},
	}
	there := func(change func(*message)) *message {
		m := decode[message]([]byte(`{"content":"Rome","embeds":[{"title":"a","description":"b"}],"attachments":[{"filename":"x.txt","size":5}],
			"poll":{"question":{"text":"Which?"}}}`))
		change(&m)
		return &m
	}
	for name, c := range map[string]struct {
		change func(*message)
		want   bool
	}{
		"the same":                   {func(*message) {}, true},
		"with a preview of a link":   {func(m *message) { m.Embeds = append(m.Embeds, embed{embedPayload: embedPayload{Title: "c"}}) }, true},
		"a picture without its data": {func(m *message) { m.Attachments[0].Size = 4 }, true},
		"a file that was renamed":    {func(m *message) { m.Attachments[0].Name = "y.txt" }, true},
		"another file":               {func(m *message) { m.Attachments[0].Name, m.Attachments[0].Size = "y.txt", 4 }, false},
		"another text":               {func(m *message) { m.Content = "Paris" }, false},
		"no file":                    {func(m *message) { m.Attachments = nil }, false},
		"a file more":                {func(m *message) { m.Attachments = append(m.Attachments, m.Attachments[0]) }, false},
		"no embed":                   {func(m *message) { m.Embeds = nil }, false},
		"another title":              {func(m *message) { m.Embeds[0].Title = "c" }, false},
		"another description":        {func(m *message) { m.Embeds[0].Description = "c" }, false},
		"no poll":                    {func(m *message) { m.Poll = nil }, false},
		"another poll":               {func(m *message) { m.Poll.Question.Text = "When?" }, false},
	} {
		if got := ours.matches(there(c.change)); got != c.want {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
	if !(&outgoing{Content: "x"}).matches(&message{Content: "x"}) {
		t.Error("a plain text does not match itself")
	}
}

// TestFindSent: a part that may have arrived is searched for among the bot's messages since then,
// not among users' messages, older ones, or the answers to other commands.
func TestFindSent(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server) {
		d, in := s.up(t, func(o *Options) { o.Commands = registry })
		say := func(change ...func(*core.Call)) {
			t.Helper()
			if _, err := act(t, d, "message_discord", map[string]any{"text": "Sure."}, change...); err != nil {
				t.Fatal(err)
			}
		}
		say()
		time.Sleep(time.Minute)
		before := s.command(t, hallID, annID, "help", nil)
		in.wait(t, core.KindCommand, 1)
		say(inAnswerTo(before))
		time.Sleep(time.Minute)
		now := time.Now()
		s.Say(hallID, annID, "Sure.")
		s.Say(hallID, annID, "Sure.", discordtest.Saying{Extra: map[string]any{"author": nil}})
		at := destination{channel: hallID, place: hall(), answers: []string{"5"}}
		if id, err := d.findSent(t.Context(), at, &outgoing{Content: "Sure."}, now); id != "" || err != nil {
			t.Errorf("got %s, %v, want nothing", id, err)
		}
		asked := len(s.Calls("GET /channels/" + hallID + "/messages"))
		at.answers = []string{before}
		id, err := d.findSent(t.Context(), at, &outgoing{Content: "Sure."}, now)
		if all := s.Messages(hallID); err != nil || id != all[1].ID {
			t.Errorf("answer to the command: got %s, %v, want %s", id, err, all[1].ID)
		}
		say()
		id, err = d.findSent(t.Context(), destination{channel: hallID}, &outgoing{Content: "Sure."}, now)
		if all := s.Messages(hallID); err != nil || id != all[2].ID {
			t.Errorf("later message: got %s, %v, want %s", id, err, all[2].ID)
		}
		if n := len(s.Calls("GET /channels/"+hallID+"/messages")) - asked; n != 2 || asked != 1 {
			t.Errorf("got %d and %d requests for pages, want 1 and 2", asked, n)
		}
	})
}

// TestFindSentPages: a channel is searched page by page, up to searchPages.
func TestFindSentPages(t *testing.T) {
	for said, pages := range map[int]int{
		0: 1, pageSize - 1: 2, pageSize: 2, 2*pageSize + 50: 3, searchPages * pageSize: searchPages,
	} {
		t.Run(fmt.Sprint(said), func(t *testing.T) {
			inBubble(t, func(t *testing.T, s *server) {
				d, now := s.bot(t), time.Now()
				for range said {
					s.Say(hallID, annID, "on and on")
				}
				if _, err := act(t, d, "message_discord", map[string]any{"text": "Sure."}); err != nil {
					t.Fatal(err)
				}
				id, err := d.findSent(t.Context(), destination{channel: hallID}, &outgoing{Content: "Paris"}, now)
				if n := len(s.Calls("GET /channels/" + hallID + "/messages")); id != "" || err != nil || n != pages {
					t.Errorf("got %q, %v, want nothing; %d pages, want %d", id, err, n, pages)
				}
				id, err = d.findSent(t.Context(), destination{channel: hallID}, &outgoing{Content: "Sure."}, now)
				if found := err == nil && id == s.Messages(hallID)[0].ID; found != (said < searchPages*pageSize) {
					t.Errorf("got %q, %v, want the message if it is within the pages", id, err)
				}
			})
		})
	}
}

// TestNothingIsSentWithoutALease: a process that lost its lease sends, edits and deletes no messages,
// because another process may do so. Notices to admins are still sent.
func TestNothingIsSentWithoutALease(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server) {
		state := &leasedState{State: newState()}
		d, _ := s.up(t, func(o *Options) { o.State = &shardState{state, "shard 1/2 "} })
		said, err := act(t, d, "message_discord", map[string]any{"text": "Sure."})
		if err != nil {
			t.Fatal(said, err)
		}
		id := s.Messages(hallID)[0].ID
		state.lost.Store(true)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = d.requestID(ctx, sendRequest(hallID, &outgoing{Content: "late"}, true))
		if !errors.Is(err, core.ErrAway) || rest.OutcomeUnknown(err) {
			t.Errorf("sending: got %v, want an error with a known outcome", err)
		}
		p := draftPlatform{d.account}
		if err := errors.Join(p.Edit(ctx, hallID, id, "late"), p.Delete(ctx, hallID, id)); err == nil {
			t.Error("a message was edited or deleted")
		}
		if err := d.Tell(t.Context(), hall(), "a notice"); err != nil {
			t.Error(err)
		}
		if got := s.Texts(hallID); !slices.Equal(got, []string{"Sure.", "a notice"}) {
			t.Errorf("got %q, want the first message and the notice", got)
		}
	})
}

// leasedState is a State whose lease can be lost.
type leasedState struct {
	driver.State
	lost atomic.Bool
}

func (s *leasedState) Holds() bool { return !s.lost.Load() }

// TestSelfID: the bot's own id is requested until there is a response, and then remembered.
func TestSelfID(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server) {
		d := s.bot(t)
		s.FailNext("GET /users/@me", discordtest.Fault{Kind: discordtest.Refused})
		for _, want := range []string{"", botID, botID} {
			if got := d.selfID(t.Context()); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		}
		if n := len(s.Calls("GET /users/@me")); n != 2 {
			t.Errorf("got %d requests, want 2", n)
		}
	})
}

// TestLongOutageWithoutASearch: if a message cannot be searched for after an outage, its outcome stays
// unknown.
func TestLongOutageWithoutASearch(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server) {
		began := time.Now()
		s.Fail(func(c discordtest.Call) discordtest.Fault {
			if c.Is("GET /channels/") || c.Is("POST /channels/") && time.Since(began) < 150*time.Second {
				return discordtest.Fault{Kind: discordtest.Hang}
			}
			return discordtest.Fault{}
		})
		_, err := act(t, s.bot(t), "message_discord", map[string]any{"text": "Sure."})
		if !errors.Is(err, core.ErrUnknownOutcome) || kind(err) != core.Temporary {
			t.Errorf("got %v, want an unknown outcome", err)
		}
	})
}

// TestRefusalAfterASearch: a message that a search did not find was not sent, so that a refusal afterwards
// has a known outcome.
func TestRefusalAfterASearch(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server) {
		hang := discordtest.Fault{Kind: discordtest.Hang}
		s.FailNext("POST /channels/", hang, hang, hang, hang, discordtest.Fault{Kind: discordtest.Refused, Status: 400})
		_, err := act(t, s.bot(t), "message_discord", map[string]any{"text": "Sure."})
		if errors.Is(err, core.ErrUnknownOutcome) || kind(err) != core.Invalid {
			t.Errorf("got %v, want an invalid request", err)
		}
		if n := len(s.Calls("GET /channels/" + hallID + "/messages")); n != 1 {
			t.Errorf("searched %d times, want 1", n)
		}
	})
}

// TestNoSearchForWhatWasNotSent: a message that certainly was not sent is not searched for.
func TestNoSearchForWhatWasNotSent(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server) {
		until := time.Now().Add(2 * time.Second)
		d := s.bot(t, func(o *Options) {
			o.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
				if time.Now().Before(until) {
					return nil, errors.New("no route to host")
				}
				return s.Dial(ctx, network, addr)
			}
		})
		if _, err := act(t, d, "message_discord", map[string]any{"text": "Sure."}); err != nil {
			t.Fatal(err)
		}
		if n := len(s.Calls("")); n != 1 {
			t.Errorf("got %d requests, want 1", n)
		}
	})
}

// TestSendWithRetriesGivesUp: a request that keeps failing is given up after some tries, and at once
// if the platform refuses it or the context ends.
func TestSendWithRetriesGivesUp(t *testing.T) {
	for name, c := range map[string]struct {
		fault discordtest.Fault
		tries int
		wait  time.Duration
	}{
		"server error": {discordtest.Fault{Kind: discordtest.Broken}, rest.MaxTries, time.Hour},
		"refused":      {discordtest.Fault{Kind: discordtest.Refused, Status: 400}, 1, time.Hour},
		"context ends": {discordtest.Fault{Kind: discordtest.Broken}, 1, 100 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, s *server) {
				s.Fail(func(call discordtest.Call) discordtest.Fault {
					if call.Is("POST /channels/") {
						return c.fault
					}
					return discordtest.Fault{}
				})
				ctx, cancel := context.WithTimeout(t.Context(), c.wait)
				defer cancel()
				began := time.Now()
				_, err := s.bot(t).sendWithRetries(ctx, destination{channel: hallID}, &outgoing{Content: "x", Mentions: noMentions()})
				took := time.Since(began)
				if n := len(s.Calls("POST /channels/")); n != c.tries || err == nil || (n > 1) != (took > 6*time.Second) || took > 15*time.Second {
					t.Errorf("got %d tries in %v, %v, want %d", n, took, err, c.tries)
				}
			})
		})
	}
}

// TestCommandAnsweredElsewhere: an answer in another place leaves the command unanswered until there
// is one in its own place.
func TestCommandAnsweredElsewhere(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	d, in := s.up(t, func(o *Options) { o.Commands = registry })
	id := s.command(t, hallID, annID, "help", nil)
	in.wait(t, core.KindCommand, 1)
	s.awaitAnswer(t, id, discordtest.AnswerLater)
	elsewhere := map[string]any{"text": "Look here.", "interface_path": "discord/" + guildID + "/" + roomID}
	if _, err := act(t, d, "message_discord", elsewhere, inAnswerTo(id)); err != nil {
		t.Fatal(err)
	}
	if got := s.Messages(roomID); len(got) != 1 || got[0].Interaction != "" || s.Thinking(hallID) != 1 {
		t.Errorf("got %+v and %d deferred answers, want a plain message and 1", got, s.Thinking(hallID))
	}
	if _, err := act(t, d, "message_discord", map[string]any{"text": "There."}, inAnswerTo(id)); err != nil {
		t.Fatal(err)
	}
	if got := s.Messages(hallID); len(got) != 1 || got[0].Interaction != id {
		t.Errorf("got %+v, want the answer to the command", got)
	}
}

// TestFollowUps: further messages of a command's answer are sent as follow-ups only if the bot may
// not write in the channel, and only while the interaction is valid.
func TestFollowUps(t *testing.T) {
	for name, c := range map[string]struct {
		fault    discordtest.Fault
		age      time.Duration
		followed bool
	}{
		"may not write":       {discordtest.Fault{Kind: discordtest.Refused, Status: 403, Code: 50013}, 0, true},
		"may not write, late": {discordtest.Fault{Kind: discordtest.Refused, Status: 403, Code: 50013}, replyAge, false},
		"refused":             {discordtest.Fault{Kind: discordtest.Refused, Status: 400}, 0, false},
		"server error":        {discordtest.Fault{Kind: discordtest.Broken}, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, s *server) {
				d, in := s.up(t, func(o *Options) { o.Commands = registry })
				id := s.command(t, hallID, annID, "help", nil)
				in.wait(t, core.KindCommand, 1)
				s.Fail(func(call discordtest.Call) discordtest.Fault {
					if call.Is("POST /channels/" + hallID + "/messages") {
						return c.fault
					}
					return discordtest.Fault{}
				})
				at := destination{channel: hallID, place: hall(), answers: []string{id}}
				at.commands = d.replies.list(at.answersCommand)
				m := outgoing{Content: "One.", Mentions: noMentions(), Nonce: "n", Enforce: true, Reference: map[string]any{"message_id": "5"}, Flags: flagNoPreviews | flagSilentMessage}
				if _, ok, err := d.answerCommand(t.Context(), at, &m); !ok || err != nil {
					t.Fatalf("%v, %v", ok, err)
				}
				time.Sleep(c.age)
				m.Content = "Two."
				at.commands = d.replies.list(at.answersCommand)
				got, err := d.post(t.Context(), at, &m, time.Time{})
				for _, call := range append(s.Calls("PATCH /webhooks/"), s.Calls("POST /webhooks/")...) {
					body := decode[outgoing](call.Body)
					if body.Nonce != "" || body.Enforce || body.Reference != nil || body.Flags != flagNoPreviews {
						t.Errorf("the command was answered with %s, want neither nonce nor reference", call.Body)
					}
				}
				if followed := len(s.Calls("POST /webhooks/")) == 1; followed != c.followed || followed != (err == nil) || followed != (got != "") {
					t.Errorf("follow-up: %v, want %v; got %q, %v", followed, c.followed, got, err)
				}
			})
		})
	}
}

// TestRepeatable: a part can be repeated unless it can only be a follow-up to a command, which has no
// nonce and which the bot may not search for.
func TestRepeatable(t *testing.T) {
	for name, c := range map[string]struct {
		answers  []string
		answered bool
		closed   bool
		want     bool
	}{
		"a message":                     {nil, true, false, true},
		"where the bot may not write":   {nil, true, true, true},
		"the answer to a command":       {[]string{"5"}, false, true, true},
		"after that, in an open place":  {[]string{"5"}, true, false, true},
		"after that, in a closed place": {[]string{"5"}, true, true, false},
	} {
		s := newServer(t)
		d := s.bot(t)
		d.replies.add(pending{ID: "5", Channel: hallID, At: time.Now(), Answered: c.answered})
		if c.closed {
			d.closed.set(hallID, errors.New("closed"))
		}
		at, parts := destination{channel: hallID, place: hall(), answers: c.answers}, &recordingDeliveries{}
		err := d.deliver(t.Context(), parts, at, []outgoing{{Content: "x"}}, priorityNormal)
		if err != nil || parts.what.Repeatable != c.want {
			t.Errorf("%s: repeatable %v, want %v; %v", name, parts.what.Repeatable, c.want, err)
		}
	}
}

// recordingDeliveries is a core.Deliveries that records what it should send and sends nothing.
type recordingDeliveries struct{ what core.Sent }

func (p *recordingDeliveries) Since(int) time.Time { return time.Time{} }

func (p *recordingDeliveries) Send(
	_ context.Context, _ int, what core.Sent, _ func(context.Context, string) (string, error),
) error {
	p.what = what
	return nil
}

// TestCommandBeforeItsAcknowledgement: a command is not answered before it was acknowledged. If the context
// ends first, nothing is sent.
func TestCommandBeforeItsAcknowledgement(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server) {
		d := s.bot(t)
		d.replies.add(pending{ID: "5", App: appID, Token: "t", Channel: hallID, At: time.Now()})
		d.replies.arrived.Put("5", &arrival{acknowledged: make(chan struct{})})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		at := destination{channel: hallID, place: hall(), answers: []string{"5"}}
		at.commands = d.replies.list(at.answersCommand)
		if id, ok, err := d.answerCommand(ctx, at, &outgoing{Content: "x", Mentions: noMentions()}); id != "" || ok || err != nil {
			t.Errorf("got %q, %v, %v, want no answer and no error", id, ok, err)
		}
		if n := len(s.Calls("")); n != 0 {
			t.Errorf("got %d requests, want 0", n)
		}
	})
}

// TestLongAnswerThatIsRefused: a long answer that is refused as a file is sent as several messages
// only if the bot lacks the permission to send files.
func TestLongAnswerThatIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		code int
		want int // messages
	}{"no files": {missingPermission, 3}, "something else": {50001, 0}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t)
			d := s.bot(t, func(o *Options) { o.Config.LongAnswers, o.Config.LongParts = "file", 2 })
			s.Fail(func(call discordtest.Call) discordtest.Fault {
				if call.Is("POST /channels/"+hallID) && len(call.Files) > 0 {
					return discordtest.Fault{Kind: discordtest.Refused, Status: 403, Code: c.code}
				}
				return discordtest.Fault{}
			})
			_, err := act(t, d, "message_discord", map[string]any{"text": strings.Repeat("A sentence of some words. ", 200)})
			if n := len(s.Messages(hallID)); n != c.want || (err == nil) != (n > 0) {
				t.Errorf("got %d messages, %v, want %d", n, err, c.want)
			}
		})
	}
}

// TestSendErrors: errors of requests become errors for users. Those that already are stay unchanged.
func TestSendErrors(t *testing.T) {
	own := core.Errorf(core.Forbidden, "not here")
	for _, c := range []struct {
		err    error
		kind   core.ErrorKind
		unsure bool
	}{
		{own, core.Forbidden, false},
		{&rest.Error{Status: 400}, core.Invalid, false},
		{&rest.Error{Status: 502}, core.Temporary, true},
		{fmt.Errorf("x: %w", rest.ErrDial), core.Temporary, false},
		{errors.New("the answer is lost"), core.Temporary, true},
	} {
		if err := sendError(c.err); kind(err) != c.kind || errors.Is(err, core.ErrUnknownOutcome) != c.unsure {
			t.Errorf("%v: got %v, want kind %s, outcome unknown: %v", c.err, err, c.kind, c.unsure)
		}
	}
	if err := sendError(nil); err != nil {
		t.Error(err)
	}
}

// TestRepliesThatAreRefused: a message that is refused because it is a reply is sent again without a
// reference. After any other refusal it is not sent again.
func TestRepliesThatAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		fault discordtest.Fault
		calls int
	}{
		"without history": {discordtest.Fault{Kind: discordtest.Refused, Status: 403, Code: replyWithoutHistory}, 2},
		"something else":  {discordtest.Fault{Kind: discordtest.Refused, Status: 400}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t)
			d := s.bot(t)
			said := s.Say(hallID, annID, "tell me")
			s.FailNext("POST /channels/"+hallID, c.fault)
			_, err := act(t, d, "message_discord", map[string]any{"text": "Sure.", "reply_to_message_id": said})
			if n := len(s.Calls("POST /channels/" + hallID)); n != c.calls || (err == nil) != (n == 2) {
				t.Errorf("got %d calls, %v, want %d", n, err, c.calls)
			}
			s.FailNext("POST /channels/"+hallID, discordtest.Fault{Kind: discordtest.Refused, Status: 403, Code: replyWithoutHistory})
			if _, err := act(t, d, "message_discord", map[string]any{"text": "Sure."}); err == nil {
				t.Error("a message that was not a reply was sent again")
			}
		})
	}
}

// TestSendingMovesTheCursor: a message of the bot that arrived moves the cursor of its channel. A refused
// one does not.
func TestSendingMovesTheCursor(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server) {
		now := noon(1)
		d := s.bot(t, func(o *Options) { o.Clock = func() time.Time { return now } })
		d.cursors.recordStored(hallID, place{Guild: guildID}, "5", noon(0), false)
		say := func() cursor {
			_, _ = act(t, d, "message_discord", map[string]any{"text": "Sure."})
			cur, _ := d.cursors.get(hallID)
			return cur
		}
		if cur := say(); cur.Awake != now || cur.Said != s.Messages(hallID)[0].ID {
			t.Errorf("sent: got %+v", cur)
		}
		now = noon(2)
		s.FailNext("POST /channels/", discordtest.Fault{Kind: discordtest.Refused, Status: 400})
		if cur := say(); cur.Awake != noon(1) {
			t.Errorf("refused: got %+v, want no change", cur)
		}
	})
}

// TestReadsOfCommands: the list of waiting commands is read once for each message.
func TestReadsOfCommands(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server) {
		state := &countingState{State: newState()}
		d, _ := s.up(t, func(o *Options) { o.State = state })
		before := state.readsOf(repliesKey)
		if _, err := act(t, d, "message_discord", map[string]any{"text": "Sure."}); err != nil {
			t.Fatal(err)
		}
		if n := state.readsOf(repliesKey) - before; n != 1 {
			t.Errorf("read %d times, want 1", n)
		}
	})
}
