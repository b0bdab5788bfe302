package discord

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"synthbot/core"
	"synthbot/core/driver"
	"synthbot/interfaces/discord/discordtest"
)

// logBuffer collects log lines.
type logBuffer struct {
	mu   sync.Mutex
	text strings.Builder
}

func (s *logBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *logBuffer) count(what string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Count(s.text.String(), what)
}

// draftNote is a note of a draft as it is stored.
type draftNote struct {
	Channel string    `json:"channel,omitempty"`
	ID      string    `json:"id,omitempty"`
	Sum     string    `json:"sum,omitempty"`
	At      time.Time `json:"at,omitzero"`
	After   string    `json:"after,omitempty"`
	Key     string    `json:"key,omitempty"`
	Final   string    `json:"final,omitempty"`
}

func sumOf(text string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(text))) }

// draftNotesIn returns the notes of drafts.
func draftNotesIn(t *testing.T, state driver.State) map[string]draftNote {
	t.Helper()
	all := map[string]draftNote{}
	raw, _ := state.Get(context.Background(), draftKey)
	if err := json.Unmarshal(raw, &all); raw != nil && err != nil {
		t.Error(err)
	}
	return all
}

// writeDraftNote stores a note as an earlier version did before it crashed.
func writeDraftNote(t *testing.T, state driver.State, n draftNote) {
	t.Helper()
	raw, err := json.Marshal(map[string]draftNote{cmp.Or(n.ID, n.Channel): n})
	if err == nil {
		err = state.Put(context.Background(), draftKey, raw)
	}
	if err != nil {
		t.Error(err)
	}
}

// TestAbandonedDrafts: a driver that ends before a leftover draft is due leaves it to the
// next driver, which deletes it in time.
func TestAbandonedDrafts(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server) {
		state := newState()
		with := func(o *Options) { o.State = state }
		first := s.bot(t, with)
		if err := first.Tell(t.Context(), hall(), "half a tex"); err != nil {
			t.Fatal(err)
		}
		writeDraftNote(t, state, draftNote{Channel: hallID, Sum: sumOf("half a tex"), At: time.Now()})
		stop := s.listen(t, s.bot(t, with), newInbox())
		time.Sleep(defaultTimings.leftover / 2)
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		if noted := draftNotesIn(t, state); len(noted) != 1 || len(s.Texts(hallID)) != 1 {
			t.Errorf("got draft notes %v and %q, want one note and the draft", noted, s.Texts(hallID))
		}
		time.Sleep(time.Minute)
		next := s.bot(t, with)
		s.listen(t, next, newInbox())
		time.Sleep(defaultTimings.leftover + time.Minute)
		if noted := draftNotesIn(t, state); len(noted) != 0 || len(s.Texts(hallID)) != 0 {
			t.Errorf("later got draft notes %v and %q, want none", noted, s.Texts(hallID))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := next.Tell(ctx, hall(), "And on."); err != nil {
			t.Error(err)
		}
	})
}

// TestDraftThatWasToBecomeAnAnswer: a draft that was about to become an answer is deleted unless
// it did. While that is unknown, it is kept.
func TestDraftThatWasToBecomeAnAnswer(t *testing.T) {
	closed := discordtest.Fault{Kind: discordtest.Refused, Status: 403, Code: 50001}
	for name, c := range map[string]struct {
		text  string
		fault discordtest.Fault
		age   time.Duration
		noted bool
		texts []string
	}{
		"it is":                 {"The whole text.", discordtest.Fault{}, time.Hour, false, []string{"The whole text."}},
		"it is not":             {"half a tex", discordtest.Fault{}, time.Hour, false, nil},
		"it may be":             {"half a tex", discordtest.Fault{}, time.Minute, true, []string{"half a tex"}},
		"it is gone":            {"half a tex", discordtest.Fault{Kind: discordtest.Refused, Status: 404, Code: 10008}, time.Hour, false, []string{"half a tex"}},
		"the channel is closed": {"half a tex", closed, time.Hour, true, []string{"half a tex"}},
		"it stays closed":       {"half a tex", closed, 25 * time.Hour, false, []string{"half a tex"}},
		"unknown":               {"half a tex", discordtest.Fault{Kind: discordtest.Refused, Status: 400}, time.Hour, true, []string{"half a tex"}},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, s *server) {
				log := &logBuffer{}
				state := newState()
				d := s.bot(t, func(o *Options) { o.State, o.Log = state, slog.New(slog.NewTextHandler(log, nil)) })
				if err := s.bot(t).Tell(t.Context(), hall(), c.text); err != nil {
					t.Fatal(err)
				}
				n := draftNote{Channel: hallID, ID: s.Messages(hallID)[0].ID, At: time.Now(), Key: "k", Final: sumOf("The whole text.")}
				writeDraftNote(t, state, n)
				time.Sleep(c.age)
				s.FailNext("GET /channels/"+hallID, c.fault)
				d.drafts.Clear(t.Context(), hallID)
				if got := s.Texts(hallID); !slices.Equal(got, c.texts) || (len(draftNotesIn(t, state)) > 0) != c.noted {
					t.Errorf("got %q, want %q; draft notes %v, want one: %v", got, c.texts, draftNotesIn(t, state), c.noted)
				}
				if reported := log.count("left-over draft not read") > 0; reported != (name == "unknown" || name == "the channel is closed") {
					t.Errorf("logged: %v", reported)
				}
			})
		})
	}
}

// TestDraftWhoseMessageWasNotKnown: a leftover draft without a message id is the next message of
// the bot with the noted text, and only that.
func TestDraftWhoseMessageWasNotKnown(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server) {
		log := &logBuffer{}
		state := newState()
		bot := func() *Driver {
			return s.bot(t, func(o *Options) { o.State, o.Log = state, slog.New(slog.NewTextHandler(log, nil)) })
		}
		d := s.bot(t)
		tell := func(texts ...string) {
			t.Helper()
			for _, text := range texts {
				if err := d.Tell(t.Context(), hall(), text); err != nil {
					t.Fatal(err)
				}
			}
		}
		clear := func(after string) {
			t.Helper()
			n := draftNote{Channel: hallID, Sum: sumOf("half a tex"), At: time.Now().Add(-time.Minute), After: after}
			writeDraftNote(t, state, n)
			bot().drafts.Clear(t.Context(), hallID)
			if noted := draftNotesIn(t, state); len(noted) != 0 {
				t.Errorf("draft notes: got %v, want none", noted)
			}
		}
		tell("half a tex", "something else")
		all := s.Messages(hallID)
		clear(all[1].ID)
		if got := s.Texts(hallID); len(got) != 2 {
			t.Errorf("an earlier message was deleted: got %q", got)
		}
		clear(all[0].ID)
		if got := s.Texts(hallID); len(got) != 2 {
			t.Errorf("a message with another text was deleted: got %q", got)
		}
		tell("half a tex")
		s.FailNext("DELETE /channels/", discordtest.Fault{Kind: discordtest.Refused, Status: 400})
		n := draftNote{Channel: hallID, Sum: sumOf("half a tex"), At: time.Now(), After: all[1].ID}
		writeDraftNote(t, state, n)
		next := bot()
		next.drafts.Clear(t.Context(), hallID)
		if noted := draftNotesIn(t, state); len(noted) != 1 || len(s.Texts(hallID)) != 3 {
			t.Errorf("while deleting fails: got draft notes %v and %q, want one note and three messages", noted, s.Texts(hallID))
		}
		next.drafts.Clear(t.Context(), hallID)
		if noted := draftNotesIn(t, state); len(noted) != 0 || len(s.Texts(hallID)) != 2 {
			t.Errorf("then got draft notes %v and %q, want none and two messages", noted, s.Texts(hallID))
		}
		tell("half a tex")
		clear(all[1].ID)
		if got := s.Texts(hallID); fmt.Sprint(got) != "[half a tex something else]" || log.count("level=") != 1 {
			t.Errorf("got %q, want the draft deleted, and one log line", got)
		}
		s.FailNext("GET /channels/"+hallID, discordtest.Fault{Kind: discordtest.Refused, Status: 400})
		clear(all[1].ID)
		if log.count("left-over draft not searched for") != 1 {
			t.Error("the failed search was not logged")
		}
	})
}

// TestDraftWithLongUnknownOutcome: while a draft may have become the answer, no try of the part
// sends the answer as a second message.
func TestDraftWithLongUnknownOutcome(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server) {
		d := s.bot(t)
		d.Draft(hall(), "The wh")
		within(t, time.Minute, "a draft", func() bool { return len(s.Messages(hallID)) == 1 })
		s.Fail(func(call discordtest.Call) discordtest.Fault {
			if call.Is("PATCH /channels/" + hallID) {
				return discordtest.Fault{Kind: discordtest.Reset}
			}
			return discordtest.Fault{}
		})
		parts := &journal{base: "whole"}
		for range 3 {
			_, err := act(t, d, "message_discord", map[string]any{"text": "The whole text."}, func(call *core.Call) { call.Deliveries = parts })
			if !errors.Is(err, core.ErrUnknownOutcome) || len(s.Messages(hallID)) != 1 {
				t.Errorf("got %v and %q, want an unknown outcome and only the draft", err, s.Texts(hallID))
			}
		}
		d.tasks.Close()
	})
}

// TestDraftThatAnotherDriverBegins: a draft that the previous driver begins after the next one
// started is not deleted as a leftover.
func TestDraftThatAnotherDriverBegins(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server) {
		state := newState()
		with := func(o *Options) { o.State = state }
		old := s.bot(t, with)
		s.listen(t, s.bot(t, with), newInbox())
		time.Sleep(defaultTimings.leftover - 10*time.Second)
		old.Draft(hall(), "half a tex")
		time.Sleep(time.Minute)
		if got := s.Texts(hallID); len(got) != 1 {
			t.Errorf("got %q, want the draft", got)
		}
		if _, err := act(t, old, "message_discord", map[string]any{"text": "The whole text."}); err != nil {
			t.Fatal(err)
		}
		if got := s.Messages(hallID); len(got) != 1 || got[0].Edits != 1 {
			t.Errorf("in the end got %+v, want the draft edited once", got)
		}
		old.tasks.Close()
	})
}
