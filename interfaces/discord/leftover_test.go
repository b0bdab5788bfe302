package discord

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"synthbot/core"
	"synthbot/interfaces/discord/discordtest"
)

// said keeps what is logged.
type said struct {
	mu   sync.Mutex
	text strings.Builder
}

func (s *said) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *said) count(what string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Count(s.text.String(), what)
}

// notedBy lists the notes of drafts by their keys.
func notedBy(t *testing.T, d *Driver) []string {
	t.Helper()
	var list []string
	for key, n := range d.notedDrafts(t.Context()) {
		list = append(list, key+" "+n.Channel)
	}
	slices.Sort(list)
	return list
}

// Notes of drafts are kept whatever becomes of the call that they are made in; one with
// an id takes the place of the one before it was known. What cannot be kept is reported.
func TestDraftNotes(t *testing.T) {
	s := newServer(t)
	state, log := &counted{State: shelf()}, &said{}
	_ = state.Put(t.Context(), draftKey, []byte(`{"31":{"id":"1"}}`)) // as it was once
	d := s.bot(t, func(o *Options) { o.State, o.Log = state, slog.New(slog.NewTextHandler(log, nil)) })
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	check := func(what string, want ...string) {
		t.Helper()
		if got := notedBy(t, d); !slices.Equal(got, want) {
			t.Errorf("%s: noted %q, want %q", what, got, want)
		}
	}
	check("at first", "1 31")
	d.noteDraft(ended, draftNote{Channel: "32"})
	check("asked for", "1 31", "32 32")
	d.noteDraft(ended, draftNote{Channel: "32", ID: "2"})
	check("known", "1 31", "2 32")
	d.forgetDraft(ended, draftNote{Channel: "33", ID: "3"})
	d.forgetDraft(ended, draftNote{Channel: "32", ID: "2"})
	check("over", "1 31")
	if n := log.count("level=ERROR"); n != 0 {
		t.Errorf("%d errors", n)
	}
	state.breaks(errors.New("no room"))
	d.noteDraft(ended, draftNote{Channel: "34"})
	if n := log.count("a draft is not noted"); n != 1 {
		t.Errorf("reported %d times", n)
	}
	state.breaks(nil)
	_ = state.Put(t.Context(), draftKey, []byte(`{"31":`))
	check("half a note")
}

// What is left is what others left, or this driver itself, and is still noted so.
func TestDraftsThatAreLeft(t *testing.T) {
	s := newServer(t)
	state := shelf()
	with := func(o *Options) { o.State = state }
	old := s.bot(t, with)
	old.noteDraft(t.Context(), draftNote{Channel: "31", ID: "1"})
	old.noteDraft(t.Context(), draftNote{Channel: "32", ID: "2", Key: "k"})
	d := s.bot(t, with)
	left := func(what, channel string, want ...string) {
		t.Helper()
		var got []string
		for _, n := range d.leftIn(t.Context(), channel) {
			got = append(got, n.ID)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q is left, want %q", what, got, want)
		}
	}
	d.noteDraft(t.Context(), draftNote{Channel: "36", ID: "6"})
	left("its own from the beginning", "36")
	d.leave(draftNote{Channel: "33", ID: "3"})
	left("not noted", "33")
	d.noteDraft(t.Context(), draftNote{Channel: "33", ID: "3"})
	left("its own, in use", "33")
	d.leave(draftNote{Channel: "33", ID: "3"})
	left("in all", "", "1", "2", "3")
	left("in one", "31", "1")
	left("in another", "34")
	old.noteDraft(t.Context(), draftNote{Channel: "32", ID: "2", Key: "l"})
	left("for another part", "32")
	old.noteDraft(t.Context(), draftNote{Channel: "32", ID: "2", Key: "k"})
	left("and no more", "32")
	old.forgetDraft(t.Context(), draftNote{Channel: "31", ID: "1"})
	left("done with by others", "", "3")
	unknown := draftNote{Channel: "35"}
	d.noteDraft(t.Context(), unknown)
	d.leave(unknown)
	d.forgetDraft(t.Context(), unknown)
	d.noteDraft(t.Context(), unknown)
	left("asked for again", "35")
	for nonce, key := range map[string]string{"": "", "k": "", "l": "k"} {
		d.leave(draftNote{Channel: "33", ID: "3", Key: key})
		d.noteDraft(t.Context(), draftNote{Channel: "33", ID: "3", Key: key})
		if id, err := d.resume(t.Context(), "33", &outgoing{Nonce: nonce}); id != "" || err != nil {
			t.Errorf("the part %q goes on with the draft of %q: %s, %v", nonce, key, id, err)
		}
	}
	if n := len(s.Calls("")); n != 0 {
		t.Errorf("%d requests", n)
	}
	s.bot(t).leave(draftNote{Channel: "31", ID: "1"}) // before anything was read
}

// A driver that ends before it was time leaves what others left to the next one, and
// after that time nothing of it is in anybody's way.
func TestDraftsThatNobodyTakesUp(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server) {
		state := shelf()
		with := func(o *Options) { o.State = state }
		first := s.bot(t, with)
		if err := first.Tell(t.Context(), hall(), "half a tex"); err != nil {
			t.Fatal(err)
		}
		first.noteDraft(t.Context(), draftNote{Channel: hallID, Sum: sumOf("half a tex"), At: time.Now()})
		stop := s.listening(t, s.bot(t, with), newInbox())
		time.Sleep(usual.left / 2)
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		if noted := notedBy(t, first); len(noted) != 1 || len(s.Texts(hallID)) != 1 {
			t.Errorf("noted: %v, stands: %q", noted, s.Texts(hallID))
		}
		time.Sleep(time.Minute)
		next := s.bot(t, with)
		s.listening(t, next, newInbox())
		time.Sleep(usual.left + time.Minute)
		if noted := notedBy(t, first); len(noted) != 0 || len(s.Texts(hallID)) != 0 {
			t.Errorf("then noted: %v, stands: %q", noted, s.Texts(hallID))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := next.Tell(ctx, hall(), "And on."); err != nil {
			t.Error(err)
		}
	})
}

// A draft that was to become an answer goes away unless it became that; while the
// platform does not say, it is left for later.
func TestDraftThatWasToBecomeAnAnswer(t *testing.T) {
	for name, c := range map[string]struct {
		stands string
		fault  discordtest.Fault
		age    time.Duration
		noted  bool
		texts  []string
	}{
		"it is":                 {"The whole text.", discordtest.Fault{}, time.Hour, false, []string{"The whole text."}},
		"it is not":             {"half a tex", discordtest.Fault{}, time.Hour, false, nil},
		"it may be":             {"half a tex", discordtest.Fault{}, time.Minute, true, []string{"half a tex"}},
		"it is gone":            {"half a tex", discordtest.Fault{Kind: discordtest.Refused, Status: 404, Code: 10008}, time.Hour, false, []string{"half a tex"}},
		"the channel is closed": {"half a tex", discordtest.Fault{Kind: discordtest.Refused, Status: 403, Code: 50001}, time.Hour, false, []string{"half a tex"}},
		"nobody knows":          {"half a tex", discordtest.Fault{Kind: discordtest.Refused, Status: 400}, time.Hour, true, []string{"half a tex"}},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, s *server) {
				log := &said{}
				d := s.bot(t, func(o *Options) { o.Log = slog.New(slog.NewTextHandler(log, nil)) })
				if err := d.Tell(t.Context(), hall(), c.stands); err != nil {
					t.Fatal(err)
				}
				n := draftNote{Channel: hallID, ID: s.Messages(hallID)[0].ID, At: time.Now(), Key: "k", Final: sumOf("The whole text.")}
				d.noteDraft(t.Context(), n)
				d.leave(n)
				time.Sleep(c.age)
				s.FailNext("GET /channels/"+hallID, c.fault)
				d.clearOld(t.Context(), hallID)
				if got := s.Texts(hallID); !slices.Equal(got, c.texts) || (len(notedBy(t, d)) > 0) != c.noted {
					t.Errorf("stands: %q, noted: %v", got, notedBy(t, d))
				}
				if reported := log.count("whether a draft was left is not known") > 0; reported != (name == "nobody knows") {
					t.Errorf("reported: %v", reported)
				}
			})
		})
	}
}

// A draft whose message was not known is the one that came next and says what was noted.
func TestDraftWhoseMessageWasNotKnown(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server) {
		log := &said{}
		d := s.bot(t, func(o *Options) { o.Log = slog.New(slog.NewTextHandler(log, nil)) })
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
			d.noteDraft(t.Context(), n)
			d.leave(n)
			d.clearOld(t.Context(), hallID)
			if noted := notedBy(t, d); len(noted) != 0 {
				t.Errorf("noted: %v", noted)
			}
		}
		tell("half a tex", "something else")
		all := s.Messages(hallID)
		clear(all[1].ID)
		if got := s.Texts(hallID); len(got) != 2 {
			t.Errorf("what stood before is taken away: %q", got)
		}
		clear(all[0].ID)
		if got := s.Texts(hallID); len(got) != 2 {
			t.Errorf("what says something else is taken away: %q", got)
		}
		tell("half a tex")
		s.FailNext("DELETE /channels/", discordtest.Fault{Kind: discordtest.Refused, Status: 400})
		n := draftNote{Channel: hallID, Sum: sumOf("half a tex"), At: time.Now(), After: all[1].ID}
		d.noteDraft(t.Context(), n)
		d.leave(n)
		d.clearOld(t.Context(), hallID)
		if noted := notedBy(t, d); len(noted) != 1 || len(s.Texts(hallID)) != 3 {
			t.Errorf("while it cannot be taken away: noted: %v, stands: %q", noted, s.Texts(hallID))
		}
		d.clearOld(t.Context(), hallID)
		if noted := notedBy(t, d); len(noted) != 0 || len(s.Texts(hallID)) != 2 {
			t.Errorf("then noted: %v, stands: %q", noted, s.Texts(hallID))
		}
		tell("half a tex")
		clear(all[1].ID)
		if got := s.Texts(hallID); fmt.Sprint(got) != "[half a tex something else]" || log.count("level=") != 1 {
			t.Errorf("stands: %q", got)
		}
		s.FailNext("GET /channels/"+hallID, discordtest.Fault{Kind: discordtest.Refused, Status: 400})
		clear(all[1].ID)
		if log.count("whether a draft was left is not known") != 1 {
			t.Error("that it could not be looked for is not reported")
		}
	})
}

// While it is not known whether a draft became the answer, the answer is not sent beside
// it, however often the part is tried.
func TestDraftOfWhichNobodyKnowsForLong(t *testing.T) {
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
			_, err := act(t, d, "message_discord", map[string]any{"text": "The whole text."}, func(call *core.Call) { call.Parts = parts })
			if !errors.Is(err, core.ErrUnknownOutcome) || len(s.Messages(hallID)) != 1 {
				t.Errorf("%v, stands: %q", err, s.Texts(hallID))
			}
		}
		d.busy.close()
	})
}

// What the driver of the configuration before begins to write after this one has come is
// in use, however late it is.
func TestDraftThatAnotherDriverBegins(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server) {
		state := shelf()
		with := func(o *Options) { o.State = state }
		old := s.bot(t, with)
		s.listening(t, s.bot(t, with), newInbox())
		time.Sleep(usual.left - 10*time.Second)
		old.Draft(hall(), "half a tex")
		time.Sleep(time.Minute)
		if got := s.Texts(hallID); len(got) != 1 {
			t.Errorf("stands: %q", got)
		}
		if _, err := act(t, old, "message_discord", map[string]any{"text": "The whole text."}); err != nil {
			t.Fatal(err)
		}
		if got := s.Messages(hallID); len(got) != 1 || got[0].Edits != 1 {
			t.Errorf("in the end: %+v", got)
		}
		old.busy.close()
	})
}
