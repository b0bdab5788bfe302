package daemon

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"synthbot/core"
	"synthbot/core/engine"
	"synthbot/core/watch"
)

// TestForgetAlerts: nothing is left of alerts that name a forgotten user.
func TestForgetAlerts(t *testing.T) {
	a := &alerts{log: slog.New(slog.DiscardHandler), send: func(string) {}, clock: time.Now}
	a.report("Ann (x/@user/1) is an admin")
	a.report("Ben (x/@user/10) is an admin")
	a.set("a", false, "no answer for x/@user/1")
	a.set("b", false, "no answer")
	a.forget(core.MustPath("x/@user/1"))
	if failing := a.failing(); len(a.recent) != 1 || len(failing) != 1 || failing[0].text != "no answer" {
		t.Errorf("left are %v and %+v", a.recent, failing)
	}
}

// TestAlerts checks that failures and recoveries are reported once they last, and that the last report is true.
func TestAlerts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var reported []string
		report := func(text string) {
			mu.Lock()
			defer mu.Unlock()
			reported = append(reported, text)
		}
		c := &alerts{log: slog.New(slog.DiscardHandler), send: report, clock: time.Now}
		checkReported := func(when string, want ...string) {
			t.Helper()
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			if !slices.Equal(reported, want) {
				t.Errorf("%s: reported %q, want %q", when, reported, want)
			}
			reported = nil
		}
		c.set("engine home", true, "well")
		checkReported("well from the beginning")
		c.set("engine home", false, "fails")
		c.set("engine home", true, "well")
		checkReported("the first time", "fails", "well")
		for range 3 {
			c.set("engine home", false, "fails")
			c.set("engine home", true, "well")
		}
		time.Sleep(2 * time.Hour)
		checkReported("comes and goes, and is well")
		c.set("engine home", false, "fails")
		c.set("engine home", true, "well")
		checkReported("another time", "fails", "well")
		time.Sleep(time.Minute)
		c.set("engine home", false, "fails")
		checkReported("at once again")
		time.Sleep(alertDelay)
		checkReported("fails for good", "fails")
		c.set("engine home", true, "well")
		time.Sleep(8 * alertDelay)
		c.set("engine home", false, "fails")
		checkReported("a second outage", "well", "fails")
		if list := c.failing(); len(list) != 1 || list[0].text != "fails" || time.Since(list[0].since) != 0 {
			t.Errorf("failing(): got %+v", list)
		}

		for range 40 { // the state changes every minute
			c.set("engine home", true, "well")
			time.Sleep(time.Minute + time.Second)
			c.set("engine home", false, "fails")
			time.Sleep(time.Minute + time.Second)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		mu.Lock()
		if n := len(reported); n < 2 || n > 8 || reported[n-1] != "fails" {
			t.Errorf("80 changes in 80 minutes: reported %q, want 2 to 8, the last one a failure", reported)
		}
		reported = nil
		mu.Unlock()
		c.set("engine home", false, "fails otherwise")
		checkReported("for another reason", "fails otherwise")
		time.Sleep(time.Hour)
		c.Observe(watch.TurnEnd{Trace: &watch.Trace{Asks: []watch.Ask{{Engine: "home"}}}})
		checkReported("a late answer says nothing while it is left alone")
		c.reloaded([]string{"home", "other"}, nil)
		c.Observe(watch.TurnEnd{Trace: &watch.Trace{Asks: []watch.Ask{{Engine: "home", Err: "no"}, {Engine: "other"}}}})
		checkReported("others answer")
		c.Observe(watch.TurnEnd{Trace: &watch.Trace{Asks: []watch.Ask{{Engine: "home"}}}})
		checkReported("after a reload", engineRecovered("home"))

		c.set("engine gone", false, "gone fails")
		c.set("interface gone"+receiving, false, "gone receives nothing")
		c.set("interface stays"+receiving, false, "stays receives nothing")
		checkReported("before a reload", "gone fails", "gone receives nothing", "stays receives nothing")
		c.reloaded([]string{"home"}, []string{"stays"})
		if list := c.failing(); len(list) != 1 || list[0].text != "stays receives nothing" {
			t.Errorf("failing() after a reload without them: got %+v", list)
		}

		c.set("engine home", false, "fails")
		c.set("engine home", true, "well")
		c.close()
		time.Sleep(2 * time.Hour)
		checkReported("after the end", "fails")
	})
}

// TestRunsAgain checks that a restarted worker is reported as running only after it has run for a while.
func TestRunsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log journal
		logger := slog.New(slog.NewTextHandler(&log, nil))
		w := &workers{log: logger, alerts: &alerts{log: logger, clock: time.Now, send: func(string) {}}}
		lasts := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
		fails := func(context.Context) error { return errors.New("token refused") }
		w.start(t.Context(), "interface x", "first", lasts)
		w.start(t.Context(), "interface y", "other", lasts)
		time.Sleep(2 * recoveryTime)
		w.stop("first")
		w.start(t.Context(), "interface x", "second", fails)
		synctest.Wait()
		if text := log.take(); !strings.Contains(text, "interface x has stopped: token refused") || strings.Contains(text, "again") || !w.failed("second") {
			t.Errorf("after the failure: %s", text)
		}
		checkFailing := func(when string, count int) {
			t.Helper()
			synctest.Wait()
			if list := w.alerts.failing(); len(list) != count {
				t.Errorf("%s: failing() got %+v, want %d", when, list, count)
			}
		}
		checkFailing("after the failure", 1)
		w.stop("second")
		w.start(t.Context(), "interface x", "third", fails) // fails again
		checkFailing("after it failed again", 1)
		w.alerts.set("interface x"+receiving, false, "receives nothing")
		w.start(t.Context(), "interface x", "fourth", lasts)
		checkFailing("once it runs", 0)
		time.Sleep(recoveryTime / 2)
		synctest.Wait()
		if text := log.take(); strings.Contains(text, "runs again") || strings.Contains(text, "has stopped") {
			t.Errorf("before recoveryTime: %s", text)
		}
		time.Sleep(recoveryTime)
		synctest.Wait()
		if text := log.take(); strings.Count(text, "interface x runs again.") != 1 || strings.Contains(text, "interface y runs") || strings.Contains(text, "has stopped") {
			t.Errorf("after recoveryTime: %s", text)
		}
		for _, key := range []string{"third", "fourth", "other"} {
			w.stop(key)
		}
		w.alerts.close()
	})
}

// unreachable is an interface that runs and may not receive messages.
type unreachable struct {
	core.Interface
	err atomic.Pointer[error]
}

func (*unreachable) Name() string { return "chat" }

func (m *unreachable) Ready() error {
	if err := m.err.Load(); err != nil {
		return *err
	}
	return nil
}

// TestUnreachablePlatform checks that an interface that cannot reach its platform is reported, and its
// recovery, too.
func TestUnreachablePlatform(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log journal
		logger := slog.New(slog.NewTextHandler(&log, nil))
		b := &Bot{log: logger, env: &Env{Clock: time.Now}}
		b.monitor = &monitor{Bot: b}
		b.alerts = &alerts{log: logger, clock: time.Now, send: func(string) {}}
		b.workers = &workers{log: logger, alerts: b.alerts, sharing: &sharing{Bot: b}}
		chat, away := new(unreachable), errors.New("getUpdates: connection refused")
		chat.err.Store(&away)
		b.parts.Store(&parts{Config: new(Config), Interfaces: []core.Interface{chat}, Engines: new(engine.Chain)})
		b.workers.start(t.Context(), "interface chat", chat, func(ctx context.Context) error { <-ctx.Done(); return nil })
		go b.monitor.watch(t.Context())
		checkReported := func(when, said, state string) {
			t.Helper()
			synctest.Wait()
			text := log.take()
			if strings.Contains(text, "interface chat") != (said != "") || !strings.Contains(text, said) {
				t.Errorf("%s: log %q, want %q", when, text, said)
			}
			if got := b.state(); !strings.Contains(got, state) {
				t.Errorf("%s: state %q, want %q", when, got, state)
			}
		}
		time.Sleep(recoveryTime - time.Second)
		checkReported("while it connects", "", "running on chat")
		time.Sleep(2 * stateInterval)
		const fails = "interface chat receives no messages: getUpdates: connection refused"
		checkReported("later", `level=ERROR msg="`+fails, fails)
		if got := b.monitor.trouble(chat); got != "it receives no messages: getUpdates: connection refused" {
			t.Errorf("trouble(): got %q", got)
		}
		chat.err.Store(nil)
		time.Sleep(2 * stateInterval)
		checkReported("in the end", `level=WARN msg="interface chat receives messages again."`, "running on chat")
	})
}
