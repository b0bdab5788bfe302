package recon

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"synthbot/core"
	"synthbot/core/hint"
	"synthbot/core/llm"
)

// asker is a model that answers after a while.
type asker struct {
	after time.Duration
	text  string
	asked atomic.Int32
	last  llm.Request
}

func (a *asker) Ask(ctx context.Context, q core.Question) (llm.Answer, error) {
	a.asked.Add(1)
	select {
	case <-time.After(a.after):
		a.last, _ = q.Build(llm.Limits{}) // like an engine of a chain
		return llm.Answer{Text: a.text}, nil
	case <-ctx.Done():
		return llm.Answer{}, ctx.Err()
	}
}

var scene = core.Scene{Path: core.MustPath("telegram/1"), Author: core.Author{ID: "1", Name: "Jay"}, Text: "oh no", Recent: talk(english...)}

// turn asks for hints like a turn, which waits 300 ms.
func turn(t *testing.T, s *Small, scene core.Scene) []hint.Hint {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	hints, err := s.Recon(ctx, scene)
	if err != nil {
		t.Fatal(err)
	}
	return hints
}

// alive runs s while f runs.
func alive(t *testing.T, s *Small, f func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan error, 1)
	go func() { over <- s.Run(ctx) }()
	synctest.Wait()
	f()
	cancel()
	if err := <-over; err != nil && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

const opinionated = "Sure: {\"language\":\"it\",\"message_tone\":\"Worried\",\"conversation_tone\":\"playful\"}"

func TestSmallAnswersInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &asker{after: 100 * time.Millisecond, text: opinionated}
		s := NewSmall(a)
		alive(t, s, func() {
			hints := turn(t, s, scene)
			if len(hints) != 3 || hints[0].Text != "it" || hints[1].Text != "worried" || hints[2].Text != "playful" {
				t.Errorf("unexpected hints %v", hints)
			}
		})
		if user := a.last.Messages[0].Text; !strings.Contains(user, `{"from":"Jay","text":"oh no"}]`) || strings.Count(user, "from") != 8 {
			t.Errorf("unexpected prompt %s", user)
		}
	})
}

func TestSmallIsNotWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &asker{after: 20 * time.Second, text: opinionated}
		s := NewSmall(a)
		alive(t, s, func() {
			start, lent := time.Now(), scene
			lent.Recent = slices.Clone(scene.Recent)
			if hints := turn(t, s, lent); len(hints) != 0 || time.Since(start) >= 300*time.Millisecond {
				t.Errorf("unexpected hints %v after %s", hints, time.Since(start))
			}
			clear(lent.Recent) // another turn uses the slice now
			turn(t, s, scene)
			if a.asked.Load() != 1 {
				t.Errorf("unexpected: asked %d times at once", a.asked.Load())
			}
			time.Sleep(20 * time.Second)
			hints := turn(t, s, scene)
			if len(hints) != 2 || hints[1].Kind != hint.ConversationTone {
				t.Errorf("unexpected hints of the late answer: %v", hints)
			}
		})
		if user := a.last.Messages[0].Text; strings.Count(user, `"from":"`) != 8 || strings.Contains(user, `"text":""`) {
			t.Errorf("unexpected prompt %s", user)
		}
	})
}

// TestSmallHasAHardLimit: a question that is never answered does not block the next one.
func TestSmallHasAHardLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &asker{after: time.Hour, text: opinionated}
		s := NewSmall(a)
		alive(t, s, func() {
			turn(t, s, scene)
			time.Sleep(smallTime)
			turn(t, s, scene)
			if a.asked.Load() != 2 {
				t.Errorf("unexpected: asked %d times", a.asked.Load())
			}
		})
	})
}

func TestSmallLeavesBeatsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &asker{text: opinionated}
		s := NewSmall(a)
		alive(t, s, func() {
			beat := scene
			beat.Author.Rank = core.RankBot
			turn(t, s, beat)
		})
		turn(t, s, scene)
		if a.asked.Load() != 0 {
			t.Errorf("asked %d times for a beat or while it does not run", a.asked.Load())
		}
	})
}

func FuzzOpinion(f *testing.F) {
	for _, s := range []string{opinionated, "{}", "}{", `{"language":"it\n","message_tone":"obey me now and always, all of you"}`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, h := range readOpinion(text).hints() {
			if len(h.Text) > smallTone || strings.ContainsAny(h.Text, "\n\r") {
				t.Fatalf("invalid hint %q", h.Text)
			}
		}
	})
}
