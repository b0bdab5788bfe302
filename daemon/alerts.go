package daemon

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"time"

	"synthbot/core"
	"synthbot/core/engine"
	"synthbot/core/loop"
	"synthbot/core/sorting"
	"synthbot/core/txt"
	"synthbot/core/watch"
)

// Limits of alerts.
const (
	alertAgain   = time.Hour       // the same text is not sent again sooner
	alertRecent  = 256             // how many sent texts are remembered
	alertSteady  = 5 * time.Minute // a change is reported at once if the state before it lasted so long
	alertDelay   = time.Minute     // how long a recurring state must last to be reported; doubles each time
	recoveryTime = time.Minute     // how long something must run after a failure to count as recovered
)

// alerts sends alerts to admins about events, and about conditions that fail and recover, such as an engine. If a
// condition changes often, alerts are delayed, but the last one reports the present state. Safe for concurrent use.
type alerts struct {
	log   *slog.Logger
	clock func() time.Time
	send  func(text string) // sends to each admin; must not block

	mu         sync.Mutex
	recent     map[string]time.Time // when a text was last reported
	conditions map[string]*condition
	closed     bool
}

// condition is something that works or fails, such as an engine.
type condition struct {
	what            string
	works, reported bool               // whether it works, and whether it did by the last report
	text, sent      string             // the alert for its state, and the last one that was sent
	since           time.Time          // when it began to work or fail
	formerLasted    time.Duration      // how long the state before lasted
	sentAt          map[bool]time.Time // when an alert about each state was last sent, by works
	recentCount     int                // how many alerts were sent without a pause of an hour
	later           *time.Timer        // calls settle again; nil: no alert is delayed
	outdated        bool               // it failed before a reload, and was not used since
	restarted       bool               // it failed, and was started again; whether that lasts is not known yet
}

// report logs a text and sends it to the admins, unless it was sent within the last hour.
func (a *alerts) report(text string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.reportLocked(text)
}

func (a *alerts) reportLocked(text string) {
	now := a.clock()
	if at, ok := a.recent[text]; ok && now.Sub(at) < alertAgain {
		return
	}
	if a.recent == nil || len(a.recent) >= alertRecent {
		a.recent = make(map[string]time.Time)
	}
	a.recent[text] = now
	a.announce(slog.LevelWarn, text)
}

func (a *alerts) announce(level slog.Level, text string) {
	a.log.Log(context.Background(), level, text)
	a.send(text)
}

// set records whether a condition works, with the text of the alert. What never failed is not reported. See settle.
func (a *alerts) set(what string, works bool, text string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	c := a.conditions[what]
	if c == nil {
		if works {
			return
		}
		if a.conditions == nil {
			a.conditions = make(map[string]*condition)
		}
		c = &condition{what: what, reported: true, sentAt: make(map[bool]time.Time)}
		a.conditions[what] = c
	}
	if c.works != works || c.since.IsZero() {
		now := a.clock()
		c.since, c.formerLasted = now, now.Sub(c.since)
	}
	c.works, c.text, c.outdated, c.restarted = works, text, false, false
	a.settle(c)
}

// restarted is called when a worker starts: what failed before is neither failing nor reported as recovered yet.
func (a *alerts) restarted(name string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, what := range []string{name, name + receiving} {
		if c, ok := a.conditions[what]; ok {
			c.restarted = true
		}
	}
}

// failing returns the conditions that fail now, the oldest first.
func (a *alerts) failing() (list []condition) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, c := range a.conditions {
		if !c.works && !c.restarted {
			list = append(list, *c)
		}
	}
	sorting.Sort(list, func(a, b condition) int { return a.since.Compare(b.since) })
	return list
}

// settle announces the state of a condition if it differs from the reported one. If it changes often, settle waits
// until the state lasts, but at most until an hour after the same state was last announced. a.mu is held.
func (a *alerts) settle(c *condition) {
	if c.later != nil {
		c.later.Stop()
		c.later = nil
	}
	if a.closed {
		return
	}
	if c.works == c.reported {
		if !c.works && c.text != c.sent { // it fails for another reason
			c.sent = c.text
			a.reportLocked(c.text)
		}
		return
	}
	now := a.clock()
	if now.Sub(c.sentAt[false]) >= alertAgain && now.Sub(c.sentAt[true]) >= alertAgain {
		c.recentCount = 0
	}
	at, ok := c.sentAt[c.works]
	due := min(alertAgain-now.Sub(at), alertDelay<<min(max(c.recentCount-2, 0), 10)-now.Sub(c.since))
	if ok && c.formerLasted < alertSteady && due > 0 {
		c.later = time.AfterFunc(due, func() {
			a.mu.Lock()
			defer a.mu.Unlock()
			a.settle(c)
		})
		return
	}
	c.reported, c.sent, c.sentAt[c.works] = c.works, c.text, now
	c.recentCount++
	level := slog.LevelWarn
	if !c.works {
		level = slog.LevelError
	}
	a.announce(level, c.text)
}

// reloaded is called after a reload with the names of all engines and interfaces. The state of failing engines
// becomes unknown until they are used again. Conditions of removed engines and interfaces are dropped.
func (a *alerts) reloaded(engines, interfaces []string) {
	present := make(map[string]bool)
	for _, name := range engines {
		present[engineCondition+name] = true
	}
	for _, name := range interfaces {
		present[interfaceCondition+name], present[interfaceCondition+name+receiving] = true, true
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for what, c := range a.conditions {
		isEngine := strings.HasPrefix(what, engineCondition)
		c.outdated = c.outdated || !c.works && isEngine
		if present[what] || !isEngine && !strings.HasPrefix(what, interfaceCondition) {
			continue
		}
		if c.later != nil {
			c.later.Stop()
		}
		delete(a.conditions, what)
	}
}

// Observe implements watch.Observer. It reports the recovery of an engine that failed before a reload.
func (a *alerts) Observe(e watch.TurnEnd) {
	if e.Trace == nil {
		return
	}
	for _, ask := range e.Trace.Asks {
		what := engineCondition + ask.Engine
		a.mu.Lock()
		c := a.conditions[what]
		recovered := c != nil && c.outdated && ask.Err == ""
		a.mu.Unlock()
		if recovered {
			a.set(what, true, engineRecovered(ask.Engine))
		}
	}
}

// forget drops the texts that name a user or a place, and the conditions with such texts.
func (a *alerts) forget(path core.Path) {
	a.mu.Lock()
	defer a.mu.Unlock()
	maps.DeleteFunc(a.recent, func(text string, _ time.Time) bool { return path.NamedIn(text) })
	maps.DeleteFunc(a.conditions, func(_ string, c *condition) bool {
		named := path.NamedIn(c.text) || path.NamedIn(c.sent)
		if named && c.later != nil {
			c.later.Stop()
		}
		return named
	})
}

func (a *alerts) close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = true // delayed alerts are not sent
}

// Parts of the names of conditions.
const (
	engineCondition    = "engine "            // the engine's name follows
	interfaceCondition = "interface "         // the interface's label follows
	receiving          = " receives messages" // follows the label: whether the platform can be reached
)

func engineRecovered(name string) string { return "Engine " + name + " answers again." }

func (a *alerts) engineHealth(name string, h engine.Health) {
	text := engineRecovered(name)
	switch h {
	case engine.HealthSome:
		text = "Engine " + name + " fails repeatedly for one person and is left alone for them for a while; " +
			"others can still use it."
	case engine.HealthBad:
		text = "Engine " + name + " fails and is left alone for a while; the next one is used."
	}
	a.set(engineCondition+name, h == engine.HealthGood, text)
}

// handleReceived alerts the admins to a new group, and drops what memory holds about a place that moved.
func (b *Bot) handleReceived(ctx context.Context, events []core.Event) {
	for i := range events {
		e := &events[i]
		if e.Kind == core.KindMembership && e.Data == "added" && !e.Message.Private {
			by := txt.Line(e.Message.Author.Name)
			if by != "" {
				by = " by " + by
			}
			const text = "I was added to the group %s%s. To keep me out of it, add it to access.deny."
			b.alerts.report(fmt.Sprintf(text, host{b}.nameWithPath(ctx, e.Message.Path), by))
		}
		if e.Kind == core.KindMigration {
			b.Data.usage.invalidate()
			b.workers.sharing.refresh("")
			if b.InForce().Config.names(e.Message.Path) {
				loop.Notify(b.reloads.requested)
			}
		}
	}
}
