package daemon

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"synthbot/core"
	"synthbot/core/engine"
	"synthbot/core/sorting"
	"synthbot/core/txt"
	"synthbot/core/watch"
)

// Limits of alerts.
const (
	alertAgain  = time.Hour       // the same text is not sent again before
	alertRecent = 256             // texts that are remembered for it
	alertSteady = 5 * time.Minute // a state that lasted so long ended for good: the next one is reported at once
	alertDelay  = time.Minute     // how long a state must last that comes back soon; twice as long each time
	steady      = time.Minute     // how long something must run after a failure to count as recovered
)

// alerts sends admins alerts outside of any conversation: about events, and about conditions
// that fail and recover (an engine, an interface, the disk). The last alert about a condition
// is always true in the end. Safe for concurrent use.
type alerts struct {
	log   *slog.Logger
	clock func() time.Time
	send  func(text string) // sends to each admin; returns at once

	mu         sync.Mutex
	recent     map[string]time.Time // when a text was last reported
	conditions map[string]*condition
	closed     bool
}

type condition struct {
	what           string
	well, reported bool
	text, sent     string
	since          time.Time          // when it became well or failed
	lasted         time.Duration      // the state before
	at             map[bool]time.Time // when each state was last sent
	sentOften      int                // times within an hour of each other
	later          *time.Timer        // when the other state may be sent; nil: nothing waits
	outdated       bool               // it failed before a reload, and its state is unknown since
}

// report logs a text and sends it to the admins, unless that was done within the hour.
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

// set records whether something works, with the text that reports it. Each state is
// reported at most once an hour.
func (a *alerts) set(what string, well bool, text string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	c := a.conditions[what]
	if c == nil {
		if well {
			return
		}
		if a.conditions == nil {
			a.conditions = make(map[string]*condition)
		}
		c = &condition{what: what, reported: true, at: make(map[bool]time.Time)}
		a.conditions[what] = c
	}
	if c.well != well || c.since.IsZero() {
		now := a.clock()
		c.since, c.lasted = now, now.Sub(c.since)
	}
	c.well, c.text, c.outdated = well, text, false
	a.settle(c)
}

// failing returns what fails now, the oldest first.
func (a *alerts) failing() (list []condition) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, c := range a.conditions {
		if !c.well {
			list = append(list, *c)
		}
	}
	sorting.Sort(list, func(a, b condition) int { return a.since.Compare(b.since) })
	return list
}

// settle announces the state of a condition if it differs from the reported one: now, or, if it
// comes and goes, when it has lasted for a while, at the latest an hour after the same state was announced.
// a.mu is held.
func (a *alerts) settle(c *condition) {
	if c.later != nil {
		c.later.Stop()
		c.later = nil
	}
	if a.closed {
		return
	}
	if c.well == c.reported {
		if !c.well && c.text != c.sent { // it fails for another reason
			c.sent = c.text
			a.reportLocked(c.text)
		}
		return
	}
	now := a.clock()
	if now.Sub(c.at[false]) >= alertAgain && now.Sub(c.at[true]) >= alertAgain {
		c.sentOften = 0
	}
	at, ok := c.at[c.well]
	due := min(alertAgain-now.Sub(at), alertDelay<<min(max(c.sentOften-2, 0), 10)-now.Sub(c.since))
	if ok && c.lasted < alertSteady && due > 0 {
		c.later = time.AfterFunc(due, func() {
			a.mu.Lock()
			defer a.mu.Unlock()
			a.settle(c)
		})
		return
	}
	c.reported, c.sent, c.at[c.well] = c.well, c.text, now
	c.sentOften++
	level := slog.LevelWarn
	if !c.well {
		level = slog.LevelError
	}
	a.announce(level, c.text)
}

// reloaded records that a reload replaced the engines and interfaces, of which these are there: the state of
// engines that failed is unknown until they answer or fail again, and what is gone fails no more.
func (a *alerts) reloaded(engines, interfaces []string) {
	there := make(map[string]bool)
	for _, name := range engines {
		there[engineCondition+name] = true
	}
	for _, name := range interfaces {
		there[interfaceCondition+name], there[interfaceCondition+name+reach] = true, true
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for what, c := range a.conditions {
		isEngine := strings.HasPrefix(what, engineCondition)
		c.outdated = c.outdated || !c.well && isEngine
		if there[what] || !isEngine && !strings.HasPrefix(what, interfaceCondition) {
			continue
		}
		if c.later != nil {
			c.later.Stop()
		}
		delete(a.conditions, what)
	}
}

// Observe implements watch.Observer.
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

func (a *alerts) close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = true
	for _, c := range a.conditions {
		if c.later != nil {
			c.later.Stop()
		}
	}
}

// The beginnings of the names of conditions of engines and interfaces, and the end of that of an interface
// whose platform cannot be reached.
const (
	engineCondition    = "engine "
	interfaceCondition = "interface "
	reach              = " receives messages"
)

func engineRecovered(name string) string { return "Engine " + name + " answers again." }

func (a *alerts) engineHealth(name string, h engine.Health) {
	text := engineRecovered(name)
	switch h {
	case engine.HealthSome:
		text = "Engine " + name + " fails for one person, call after call, and is left alone for them for a while; " +
			"others may still reach it."
	case engine.HealthBad:
		text = "Engine " + name + " fails, and is left alone for a while; the next one is asked."
	}
	a.set(engineCondition+name, h == engine.HealthGood, text)
}

// announcing is an inbox that reports when the bot is added to a group.
type announcing struct {
	core.Inbox
	bot *Bot
}

func (a announcing) Receive(ctx context.Context, events ...core.Event) error {
	if err := a.Inbox.Receive(ctx, events...); err != nil {
		return err
	}
	for i := range events {
		e := &events[i]
		if e.Kind == core.KindMembership && e.Data == "added" && !e.Message.Private {
			by := txt.Line(e.Message.Author.Name)
			if by != "" {
				by = " by " + by
			}
			const text = "I was added to the group %s%s. To keep me out of it, add it to access.deny."
			a.bot.alerts.report(fmt.Sprintf(text, host{a.bot}.named(ctx, e.Message.Path), by))
		}
	}
	return nil
}
