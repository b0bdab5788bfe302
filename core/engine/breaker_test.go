package engine

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"synthbot/core"
	"synthbot/core/llm"
)

// hangs does not answer until its caller leaves.
func hangs(ctx context.Context) (llm.Answer, error) {
	<-ctx.Done()
	return llm.Answer{}, &llm.Error{Kind: llm.ErrorRetryLater, Err: context.Cause(ctx)}
}

// by returns a question of the users.
func by(people ...string) core.Question {
	q := plainQuestion()
	q.People = nil
	for _, p := range people {
		q.People = append(q.People, core.MustPath("x/@user/"+p))
	}
	return q
}

// trip asks a failing engine until its breaker opens for the users.
func trip(t *testing.T, l *link, people ...string) {
	t.Helper()
	for range tripAfter {
		if _, failed := l.ask(t.Context(), by(people...)); failed == nil || errors.Is(failed, errTripped) {
			t.Fatalf("got %v", failed)
		}
	}
	_, failed := l.ask(t.Context(), by(people...))
	if !errors.Is(failed, errTripped) || !strings.Contains(failed.Error(), "too often in a row, last with ") {
		t.Fatalf("after tripAfter failures: got %v", failed)
	}
}

// TestWithdrawnCallsDoNotTrip checks that a caller that leaves, for any reason, does not count as a failure of
// the engine.
func TestWithdrawnCallsDoNotTrip(t *testing.T) {
	for name, cause := range map[string]error{"cancelled": nil, "deleted": errors.New("withdrawn"), "late": context.DeadlineExceeded} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := &script{name: "model", steps: []func(context.Context) (llm.Answer, error){hangs}}
				counted := 0
				l := newLink("model", m, 0, Options{Failed: func(string, *llm.Error) { counted++ }}.withDefaults())
				for range 2 * tripAfter {
					ctx, cancel := context.WithCancelCause(t.Context())
					go cancel(cause)
					l.ask(ctx, by("1"))
				}
				if len(m.calls) != 2*tripAfter || counted != 0 {
					t.Errorf("got %d calls, %d of them counted as failures", len(m.calls), counted)
				}
			})
		})
	}
}

// TestOnePersonTripsForThemselves checks that failed calls of one user disable the engine for this user only.
// It is disabled for all once another user's calls fail, too.
func TestOnePersonTripsForThemselves(t *testing.T) {
	for name, tc := range map[string]struct {
		caused  [][]string // the users of each failed call
		refused [][]string
		asked   [][]string
	}{
		"one":          {[][]string{{"1"}, {"1"}, {"1"}, {"1"}, {"1"}}, [][]string{{"1"}}, [][]string{{"2"}, {"1", "2"}, {}}},
		"not yet":      {[][]string{{"1"}, {"1"}, {"2"}}, nil, [][]string{{"1"}, {"2"}, {"3"}, {}}},
		"two":          {[][]string{{"1"}, {"1"}, {"2"}, {"1"}}, [][]string{{"1"}, {"2"}, {"3"}, {}}, nil},
		"together":     {[][]string{{"1", "2"}, {"1"}, {"1", "3"}, {"1"}}, [][]string{{"1"}}, [][]string{{"2"}, {"3"}, {"1", "3"}}},
		"both":         {[][]string{{"1", "2"}, {"1", "2"}, {"2", "1"}, {"1", "2"}}, [][]string{{"1"}, {"2"}, {"1", "2"}}, [][]string{{"3"}}},
		"the bot":      {[][]string{{}, {}, {}, {}}, [][]string{{"1"}, {}}, nil},
		"the bot, too": {[][]string{{"1"}, {"1"}, {}, {"1"}}, [][]string{{"1"}, {"2"}, {}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var b breaker
			now := time.Now()
			for _, people := range tc.caused {
				b.fail(by(people...).People, now)
			}
			for _, people := range tc.refused {
				if !b.countsAgainst(by(people...).People) || b.until != now.Add(tripFor) {
					t.Errorf("for %q, the engine is not disabled, or for too long", people)
				}
			}
			for _, people := range tc.asked {
				if b.countsAgainst(by(people...).People) {
					t.Errorf("the engine is disabled for %q", people)
				}
			}
		})
	}
}

// TestSlowCallsOfOnePerson checks that a user whose calls run into the timeout does not disable the engine for
// others.
func TestSlowCallsOfOnePerson(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := func(_ context.Context) (llm.Answer, error) {
			time.Sleep(time.Minute)
			return fails(llm.ErrorRetryLater, 0, errTimeout)(t.Context())
		}
		m := &script{name: "model", steps: []func(context.Context) (llm.Answer, error){slow}}
		c := chainOf(true, m)
		for range tripAfter + 1 {
			c.Ask(t.Context(), by("1"))
		}
		if len(m.calls) != tripAfter {
			t.Errorf("got %d slow calls", len(m.calls))
		}
		m.steps = []func(context.Context) (llm.Answer, error){says("model")}
		for _, who := range []string{"2", "1"} { // one answer enables the engine for all
			if a, err := c.Ask(t.Context(), by(who)); err != nil || a.Engine != "model" {
				t.Errorf("user %s: %q answers, %v", who, a.Engine, err)
			}
		}
	})
}

// TestOneCallTries checks that only one call tries a disabled engine after the pause, and that the next call
// tries it if that one is withdrawn.
func TestOneCallTries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &script{name: "model", steps: []func(context.Context) (llm.Answer, error){fails(llm.ErrorFatal, 0)}}
		l := newLink("model", m, 0, Options{}.withDefaults())
		trip(t, l)
		time.Sleep(tripFor)
		m.steps = []func(context.Context) (llm.Answer, error){hangs}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			l.ask(ctx, by("1"))
		}()
		synctest.Wait()
		if _, failed := l.ask(t.Context(), by("2")); !errors.Is(failed, errTripped) || failed.After != tripFor {
			t.Errorf("beside the trial call: got %v", failed)
		}
		cancel()
		<-done
		m.steps = []func(context.Context) (llm.Answer, error){says("model")}
		if a, failed := l.ask(t.Context(), by("2")); failed != nil || a.Engine != "model" {
			t.Errorf("after a withdrawn trial call: got %v", failed)
		}
		if _, failed := l.ask(t.Context(), by("3")); failed != nil {
			t.Errorf("after an answer: got %v", failed)
		}
	})
}

// TestUnsentSaysNothing checks that a prompt that cannot be built or paid for is not a failure of the engine.
func TestUnsentSaysNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &script{name: "model", steps: []func(context.Context) (llm.Answer, error){fails(llm.ErrorRetryLater, 0)}}
		var counted []llm.ErrorKind
		l := newLink("model", m, 0, Options{Failed: func(_ string, e *llm.Error) { counted = append(counted, e.Kind) }}.withDefaults())
		unsent := func() {
			for _, err := range []error{&llm.Error{Kind: llm.ErrorRefused}, &llm.Error{Kind: llm.ErrorTooLong}, errors.New("x")} {
				q := by("9")
				q.Build = func(llm.Limits) (llm.Request, error) { return llm.Request{}, err }
				l.ask(t.Context(), q)
			}
			q := by("9")
			q.Build = func(llm.Limits) (llm.Request, error) { panic("x") }
			if _, failed := l.ask(t.Context(), q); failed.Kind != llm.ErrorFatal {
				t.Errorf("got %v", failed)
			}
		}
		unsent()
		trip(t, l)
		time.Sleep(tripFor)
		unsent()
		l.ask(t.Context(), by()) // the trial call fails
		if _, failed := l.ask(t.Context(), by()); !errors.Is(failed, errTripped) {
			t.Errorf("the engine was asked again: %v", failed)
		}
		if len(counted) != tripAfter+1 || counted[0] != llm.ErrorRetryLater {
			t.Errorf("counted failures: got %v", counted)
		}
	})
}

// TestPauseIsTheServers checks that a refusal does not pause an engine; only the server's own Retry-After does.
func TestPauseIsTheServers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &script{name: "model", steps: []func(context.Context) (llm.Answer, error){fails(llm.ErrorRefused, time.Hour), says("model")}}
		l := newLink("model", m, 0, Options{}.withDefaults())
		l.ask(t.Context(), by("1"))
		if _, failed := l.ask(t.Context(), by("2")); failed != nil {
			t.Errorf("after a refusal: got %v", failed)
		}
	})
}
