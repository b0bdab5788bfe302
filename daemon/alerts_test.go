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

// TestConditions: failures and recoveries are reported when they last, and the last report is true.
func TestConditions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var told []string
		tell := func(text string) {
			mu.Lock()
			defer mu.Unlock()
			told = append(told, text)
		}
		c := &alerts{log: slog.New(slog.DiscardHandler), send: tell, clock: time.Now}
		says := func(when string, want ...string) {
			t.Helper()
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			if !slices.Equal(told, want) {
				t.Errorf("%s: told %q, want %q", when, told, want)
			}
			told = nil
		}
		c.set("engine home", true, "well")
		says("well from the beginning")
		c.set("engine home", false, "fails")
		c.set("engine home", true, "well")
		says("the first time", "fails", "well")
		for range 3 {
			c.set("engine home", false, "fails")
			c.set("engine home", true, "well")
		}
		time.Sleep(2 * time.Hour)
		says("comes and goes, and is well")
		c.set("engine home", false, "fails")
		c.set("engine home", true, "well")
		says("another time", "fails", "well")
		time.Sleep(time.Minute)
		c.set("engine home", false, "fails")
		says("at once again")
		time.Sleep(alertDelay)
		says("fails for good", "fails")
		c.set("engine home", true, "well")
		time.Sleep(8 * alertDelay)
		c.set("engine home", false, "fails")
		says("a second outage", "well", "fails")
		if list := c.failing(); len(list) != 1 || list[0].text != "fails" || time.Since(list[0].since) != 0 {
			t.Errorf("failing is %+v", list)
		}

		for range 40 { // at the end of each of these minutes the other state begins
			c.set("engine home", true, "well")
			time.Sleep(time.Minute + time.Second)
			c.set("engine home", false, "fails")
			time.Sleep(time.Minute + time.Second)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		mu.Lock()
		if n := len(told); n < 2 || n > 8 || told[n-1] != "fails" {
			t.Errorf("of 80 states in 80 minutes, these were reported: %q", told)
		}
		told = nil
		mu.Unlock()
		c.set("engine home", false, "fails otherwise")
		says("for another reason", "fails otherwise")
		time.Sleep(time.Hour)
		c.Observe(watch.TurnEnd{Trace: &watch.Trace{Asks: []watch.Ask{{Engine: "home"}}}})
		says("a late answer says nothing while it is left alone")
		c.reloaded([]string{"home", "other"}, nil)
		c.Observe(watch.TurnEnd{Trace: &watch.Trace{Asks: []watch.Ask{{Engine: "home", Err: "no"}, {Engine: "other"}}}})
		says("others answer")
		c.Observe(watch.TurnEnd{Trace: &watch.Trace{Asks: []watch.Ask{{Engine: "home"}}}})
		says("after a reload", engineRecovered("home"))

		c.set("engine gone", false, "gone fails")
		c.set("interface gone"+receiving, false, "gone receives nothing")
		c.set("interface stays"+receiving, false, "stays receives nothing")
		says("before a reload", "gone fails", "gone receives nothing", "stays receives nothing")
		c.reloaded([]string{"home"}, []string{"stays"})
		if list := c.failing(); len(list) != 1 || list[0].text != "stays receives nothing" {
			t.Errorf("after a reload without them, failing is %+v", list)
		}

		c.set("engine home", false, "fails")
		c.set("engine home", true, "well")
		c.close()
		time.Sleep(2 * time.Hour)
		says("after the end", "fails")
	})
}

// TestRunsAgain: what had stopped and was started anew is called well when it has run for a while.
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
			t.Errorf("at first: %s", text)
		}
		w.stop("second")
		w.start(t.Context(), "interface x", "third", fails) // as before
		w.start(t.Context(), "interface x", "fourth", lasts)
		time.Sleep(recoveryTime / 2)
		synctest.Wait()
		if text := log.take(); strings.Contains(text, "runs again") || strings.Contains(text, "has stopped") {
			t.Errorf("too early: %s", text)
		}
		time.Sleep(recoveryTime)
		synctest.Wait()
		if text := log.take(); strings.Count(text, "interface x runs again.") != 1 || strings.Contains(text, "interface y runs") || strings.Contains(text, "has stopped") {
			t.Errorf("in the end: %s", text)
		}
		for _, key := range []string{"third", "fourth", "other"} {
			w.stop(key)
		}
		w.alerts.close()
	})
}

// mute is an interface that runs and may receive no messages.
type mute struct {
	core.Interface
	err atomic.Pointer[error]
}

func (*mute) Name() string { return "chat" }

func (m *mute) Ready() error {
	if err := m.err.Load(); err != nil {
		return *err
	}
	return nil
}

// TestUnreachablePlatform: an interface whose platform cannot be reached is reported, with its recovery.
func TestUnreachablePlatform(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log journal
		logger := slog.New(slog.NewTextHandler(&log, nil))
		b := &Bot{log: logger, env: &Env{Clock: time.Now}}
		b.monitor = &monitor{Bot: b}
		b.alerts = &alerts{log: logger, clock: time.Now, send: func(string) {}}
		b.workers = &workers{log: logger, alerts: b.alerts, sharing: &sharing{Bot: b}}
		chat, away := new(mute), errors.New("getUpdates: connection refused")
		chat.err.Store(&away)
		b.parts.Store(&parts{Config: new(Config), Interfaces: []core.Interface{chat}, Engines: new(engine.Chain)})
		b.workers.start(t.Context(), "interface chat", chat, func(ctx context.Context) error { <-ctx.Done(); return nil })
		go b.monitor.watch(t.Context())
		says := func(when, said, state string) {
			t.Helper()
			synctest.Wait()
			text := log.take()
			if strings.Contains(text, "interface chat") != (said != "") || !strings.Contains(text, said) {
				t.Errorf("%s the log says %q, not %q", when, text, said)
			}
			if got := b.state(); !strings.Contains(got, state) {
				t.Errorf("%s the state is %q", when, got)
			}
		}
		time.Sleep(recoveryTime - time.Second)
		says("while it connects", "", "running on chat")
		time.Sleep(2 * stateInterval)
		const fails = "interface chat receives no messages: getUpdates: connection refused"
		says("later", `level=ERROR msg="`+fails, fails)
		if got := b.monitor.trouble(chat); got != "it receives no messages: getUpdates: connection refused" {
			t.Errorf("its trouble is %q", got)
		}
		chat.err.Store(nil)
		time.Sleep(2 * stateInterval)
		says("in the end", `level=WARN msg="interface chat receives messages again."`, "running on chat")
	})
}
