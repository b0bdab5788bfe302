package engine

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"synthbot/core"
	"synthbot/core/engine/offline"
	"synthbot/core/llm"
)

// script is a model that runs one step for each call.
type script struct {
	name   string
	limits llm.Limits

	mu    sync.Mutex
	steps []func(ctx context.Context) (llm.Answer, error) // the last one is repeated
	calls []time.Time
}

func (s *script) Limits() llm.Limits {
	l := s.limits
	l.Engine = s.name
	return l
}

func (s *script) Generate(ctx context.Context, r llm.Request) (llm.Answer, error) {
	s.mu.Lock()
	step := s.steps[0]
	if len(s.steps) > 1 {
		s.steps = s.steps[1:]
	}
	s.calls = append(s.calls, time.Now())
	s.mu.Unlock()
	if r.Stream != nil {
		r.Stream(s.name)
	}
	return step(ctx)
}

func says(text string) func(context.Context) (llm.Answer, error) {
	return func(context.Context) (llm.Answer, error) { return llm.Answer{Text: text, Engine: text}, nil }
}

func fails(kind llm.ErrorKind, after time.Duration, errs ...error) func(context.Context) (llm.Answer, error) {
	return func(context.Context) (llm.Answer, error) {
		return llm.Answer{}, &llm.Error{Kind: kind, After: after, Engine: "e", Err: errors.Join(errs...)}
	}
}

func chainOf(standby bool, models ...*script) *Chain {
	o := Options{}.withDefaults()
	c := &Chain{options: o, last: offline.New(offline.Options{Standby: standby}),
		lastAlone: offline.New(offline.Options{})}
	for _, m := range models {
		c.links = append(c.links, newLink(m.name, m, 0, o))
	}
	return c
}

func asks(t *testing.T, c *Chain) (string, *llm.Error) {
	t.Helper()
	a, err := c.Ask(t.Context(), plainQuestion())
	if err == nil {
		return a.Engine, nil
	}
	return "", err.(*llm.Error)
}

func TestFallback(t *testing.T) {
	for name, tc := range map[string]struct {
		first func(context.Context) (llm.Answer, error)
	}{
		"overloaded": {fails(llm.ErrorRetryLater, 0)},
		"limited":    {fails(llm.ErrorRetryLater, time.Hour)},
		"wrong key":  {fails(llm.ErrorFatal, 0)},
		"refused":    {fails(llm.ErrorRefused, 0)},
		"too long":   {fails(llm.ErrorTooLong, 0)},
		"untyped":    {func(context.Context) (llm.Answer, error) { return llm.Answer{}, errors.New("x") }},
		"panic":      {func(context.Context) (llm.Answer, error) { panic("boom") }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begin := time.Now()
				first := &script{name: "first", steps: []func(context.Context) (llm.Answer, error){tc.first}}
				second := &script{name: "second", steps: []func(context.Context) (llm.Answer, error){says("second")}}
				if by, failed := asks(t, chainOf(true, first, second)); by != "second" || failed != nil {
					t.Errorf("%q answers, %v", by, failed)
				}
				if took := time.Since(begin); took != 0 {
					t.Errorf("took %v", took)
				}
			})
		})
	}
}

// TestPanicOfTheOfflineEngine is an error, like one of other engines.
func TestPanicOfTheOfflineEngine(t *testing.T) {
	q := plainQuestion()
	q.Build = func(llm.Limits) (llm.Request, error) { panic("x") }
	var failed *llm.Error
	_, err := chainOf(true).Ask(t.Context(), q)
	if !errors.As(err, &failed) || failed.Kind != llm.ErrorFatal || !errors.Is(err, errPanic) {
		t.Errorf("%v", err)
	}
}

// TestFailuresBeforeAnAnswer checks that an answer lists the engines that failed before it, and their errors.
func TestFailuresBeforeAnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failing := func(context.Context) (llm.Answer, error) { return llm.Answer{}, errors.New("the socket is\nclosed") }
		first := &script{name: "first", steps: []func(context.Context) (llm.Answer, error){failing}}
		second := &script{name: "second", steps: []func(context.Context) (llm.Answer, error){says("second")}}
		a, err := chainOf(true, first, second).Ask(t.Context(), plainQuestion())
		if err != nil || len(a.Failed) != 1 || !strings.Contains(a.Failed[0], "engine first") || strings.Contains(a.Failed[0], "\n") {
			t.Errorf("failed engines: got %q, %v", a.Failed, err)
		}
		alone := &script{name: "alone", steps: []func(context.Context) (llm.Answer, error){failing}}
		a, err = chainOf(true, alone).Ask(t.Context(), plainQuestion())
		if err != nil || len(a.Failed) != 1 || !strings.Contains(a.Failed[0], "engine alone") {
			t.Errorf("%s answers after the failures %q, %v", a.Engine, a.Failed, err)
		}
	})
}

// TestSecondTry checks that a single engine that fails is asked once more after the pause that it asked for. If
// the pause is too long, or a retry is useless, the built-in engine answers.
func TestSecondTry(t *testing.T) {
	ok := says("model")
	for name, tc := range map[string]struct {
		steps []func(context.Context) (llm.Answer, error)
		by    string
		calls int
		least time.Duration
		most  time.Duration
	}{
		"hiccup":       {[]func(context.Context) (llm.Answer, error){fails(llm.ErrorRetryLater, 0), ok}, "model", 2, time.Millisecond, time.Second},
		"short pause":  {[]func(context.Context) (llm.Answer, error){fails(llm.ErrorRetryLater, 5*time.Second), ok}, "model", 2, 5 * time.Second, 5 * time.Second},
		"long pause":   {[]func(context.Context) (llm.Answer, error){fails(llm.ErrorRetryLater, time.Minute), ok}, "offline", 1, 0, 0},
		"still down":   {[]func(context.Context) (llm.Answer, error){fails(llm.ErrorRetryLater, 0)}, "offline", 2, time.Millisecond, time.Second},
		"wrong key":    {[]func(context.Context) (llm.Answer, error){fails(llm.ErrorFatal, 0), ok}, "offline", 1, 0, 0},
		"refused":      {[]func(context.Context) (llm.Answer, error){fails(llm.ErrorRefused, 0), ok}, "", 1, 0, 0},
		"ran out time": {[]func(context.Context) (llm.Answer, error){fails(llm.ErrorRetryLater, 0, errTimeout), ok}, "offline", 1, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begin := time.Now()
				m := &script{name: "model", steps: tc.steps}
				by, failed := asks(t, chainOf(true, m))
				if by != tc.by || (failed != nil) != (by == "") || len(m.calls) != tc.calls {
					t.Errorf("%q answers, %v, after %d calls", by, failed, len(m.calls))
				}
				if took := time.Since(begin); took < tc.least || took > tc.most {
					t.Errorf("took %v", took)
				}
			})
		})
	}
}

// TestRetryAfterIsObeyed checks that an engine is not asked during the pause that its server asked for.
func TestRetryAfterIsObeyed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &script{name: "model", steps: []func(context.Context) (llm.Answer, error){fails(llm.ErrorRetryLater, time.Minute), says("model")}}
		c := chainOf(true, m)
		begin := time.Now()
		for time.Since(begin) < 90*time.Second {
			want := "offline"
			if time.Since(begin) >= time.Minute {
				want = "model"
			}
			if by, _ := asks(t, c); by != want {
				t.Fatalf("%[2]q answers after %[1]v", time.Since(begin), by)
			}
			time.Sleep(10 * time.Second)
		}
		if second := m.calls[1].Sub(begin); second < time.Minute {
			t.Errorf("the engine was asked again after %v", second)
		}
	})
}

func TestBreaker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &script{name: "model", steps: []func(context.Context) (llm.Answer, error){fails(llm.ErrorFatal, 0)}}
		c := chainOf(true, m)
		for range 20 {
			asks(t, c)
		}
		if len(m.calls) != tripAfter {
			t.Errorf("got %d calls to a failing engine", len(m.calls))
		}
		time.Sleep(tripFor + time.Second)
		asks(t, c)
		asks(t, c)
		if len(m.calls) != tripAfter+1 {
			t.Errorf("got %d calls after the pause, want one", len(m.calls)-tripAfter)
		}
		m.steps = []func(context.Context) (llm.Answer, error){says("model")}
		time.Sleep(tripFor + time.Second)
		for range 3 {
			if by, _ := asks(t, c); by != "model" {
				t.Errorf("%q answers after the engine came back", by)
			}
		}
	})
}

// TestRefusalsDoNotTrip checks that refused prompts do not disable the engine.
func TestRefusalsDoNotTrip(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &script{name: "model", steps: []func(context.Context) (llm.Answer, error){fails(llm.ErrorRefused, 0)}}
		c := chainOf(true, m)
		for range 20 {
			asks(t, c)
		}
		if len(m.calls) != 20 {
			t.Errorf("got %d calls", len(m.calls))
		}
	})
}

func TestCancelledWhileWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &script{name: "model", steps: []func(context.Context) (llm.Answer, error){fails(llm.ErrorRetryLater, 5*time.Second), says("model")}}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := chainOf(true, m).Ask(ctx, plainQuestion())
		if !errors.Is(err, context.DeadlineExceeded) || len(m.calls) != 1 {
			t.Errorf("%v after %d calls", err, len(m.calls))
		}
	})
}

// TestCancelledCallsDoNotTrip checks that cancelled calls do not disable the engine.
func TestCancelledCallsDoNotTrip(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := func(ctx context.Context) (llm.Answer, error) {
			<-ctx.Done()
			return llm.Answer{}, &llm.Error{Kind: llm.ErrorRetryLater, Err: context.Cause(ctx)}
		}
		m := &script{name: "model", steps: []func(context.Context) (llm.Answer, error){hang}}
		c := chainOf(true, m)
		for range 10 {
			ctx, cancel := context.WithCancel(t.Context())
			go cancel()
			c.Ask(ctx, plainQuestion())
		}
		if len(m.calls) != 10 {
			t.Errorf("%d calls", len(m.calls))
		}
	})
}

func TestErrorsOfAllEngines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &script{name: "a", steps: []func(context.Context) (llm.Answer, error){fails(llm.ErrorFatal, 0, errors.New("from a"))}}
		b := &script{name: "b", steps: []func(context.Context) (llm.Answer, error){fails(llm.ErrorRetryLater, time.Hour, errors.New("from b"))}}
		c := chainOf(true, a, b)
		c.last = nil
		_, failed := asks(t, c)
		if failed == nil || failed.Kind != llm.ErrorRetryLater || failed.After != time.Hour {
			t.Fatalf("got %v", failed)
		}
		for _, want := range []string{"from a", "from b"} {
			if !strings.Contains(failed.Error(), want) {
				t.Errorf("%q lacks %q", failed, want)
			}
		}
	})
}

// TestEachEngineItsOwnPrompt checks that each engine gets a prompt within its own limits, and a stream of its
// own.
func TestEachEngineItsOwnPrompt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &script{name: "a", limits: llm.Limits{Chars: 10}, steps: []func(context.Context) (llm.Answer, error){fails(llm.ErrorFatal, 0)}}
		b := &script{name: "b", limits: llm.Limits{Chars: 20, Dialect: llm.DialectTools}, steps: []func(context.Context) (llm.Answer, error){says("b")}}
		var built []llm.Limits
		var streams []*strings.Builder
		_, err := chainOf(true, a, b).Ask(t.Context(), question(func(l llm.Limits) (llm.Request, error) {
			built = append(built, l)
			stream := new(strings.Builder)
			streams = append(streams, stream)
			r := hello()
			r.Stream = func(p string) { stream.WriteString(p) }
			return r, nil
		}))
		if err != nil || len(built) != 2 || built[0] != a.Limits() || built[1] != b.Limits() {
			t.Errorf("%v, built for %v", err, built)
		}
		if streams[1].String() != "b" {
			t.Errorf("second stream: got %q", streams[1])
		}
	})
}

func TestPromptThatFitsOnlyOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &script{name: "a", limits: llm.Limits{Chars: 10}, steps: []func(context.Context) (llm.Answer, error){says("a")}}
		b := &script{name: "b", limits: llm.Limits{Chars: 20}, steps: []func(context.Context) (llm.Answer, error){says("b")}}
		got, err := chainOf(true, a, b).Ask(t.Context(), question(func(l llm.Limits) (llm.Request, error) {
			if l.Chars < 15 {
				return llm.Request{}, &llm.Error{Kind: llm.ErrorTooLong, Engine: l.Engine}
			}
			return hello(), nil
		}))
		if err != nil || got.Engine != "b" || len(a.calls) != 0 {
			t.Errorf("got %v, %v", got, err)
		}
	})
}

func TestPreferredEngine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &script{name: "a", steps: []func(context.Context) (llm.Answer, error){says("a")}}
		b := &script{name: "b", steps: []func(context.Context) (llm.Answer, error){says("b")}}
		c := chainOf(true, a, b)
		for _, name := range []string{"a", "b", "offline", "unknown", ""} {
			c.options.Prefer = func(core.Path) string { return name }
			want := name
			if want == "unknown" || want == "" {
				want = "a"
			}
			if by, _ := asks(t, c); by != want {
				t.Errorf("prefer %q: %q answers", name, by)
			}
			if got := c.Limits(core.Path{}).Engine; got != want {
				t.Errorf("prefer %q: limits of %q", name, got)
			}
		}
	})
}

func TestFailuresAreLoggedWithoutTexts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		m := &script{name: "model", steps: []func(context.Context) (llm.Answer, error){fails(llm.ErrorFatal, 0, errors.New("bad key"))}}
		c := chainOf(true)
		c.links = []*link{newLink("model", m, 0, Options{Log: slog.New(slog.NewTextHandler(&out, nil))}.withDefaults())}
		asks(t, c)
		if !strings.Contains(out.String(), "bad key") || !strings.Contains(out.String(), "engine=model") || strings.Contains(out.String(), "hello") {
			t.Error(out.String())
		}
	})
}

// TestHealth checks that Health is called once when an engine fails, and for whom, and once when it answers
// again.
func TestHealth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reported []Health
		sick := true
		m := &script{name: "home", steps: []func(context.Context) (llm.Answer, error){func(ctx context.Context) (llm.Answer, error) {
			if sick {
				return fails(llm.ErrorRetryLater, 0)(ctx)
			}
			return says("home")(ctx)
		}}}
		l := newLink("home", m, 0, Options{Health: func(name string, h Health) { reported = append(reported, h) }}.withDefaults())
		want := []Health{}
		asks := func(who string, h ...Health) {
			for range tripAfter + 3 {
				l.ask(t.Context(), by(who))
			}
			if want = append(want, h...); !slices.Equal(reported, want) {
				t.Errorf("reported %v, want %v", reported, want)
			}
		}
		asks("1", HealthSome) // the engine or the user failed
		asks("2", HealthBad)
		sick = false
		time.Sleep(2 * tripFor)
		asks("1", HealthGood)
		sick = true
		asks("1", HealthSome)
		sick = false
		asks("2", HealthGood)
	})
}
