package reminders

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"synthbot/core"
	"synthbot/plugins/reminders/calendar"
)

const (
	nap     = time.Minute      // the longest sleep while something waits: clocks jump, machines are put to sleep
	pause   = 30 * time.Second // after a fault of the store
	atATime = 16               // so many are fired at once
)

// Run fires what falls due until ctx ends.
func (p *Plugin) Run(ctx context.Context) error {
	opened := false
	core.Repeat(ctx, p.agenda.wake, func() time.Duration {
		wait, err := time.Duration(0), error(nil)
		if !opened {
			err = p.agenda.open(ctx)
			opened = err == nil
		}
		if opened {
			wait, err = p.round(ctx)
		}
		if err != nil && ctx.Err() == nil {
			p.host.Log.Error("reminders wait", "err", err)
			return pause
		}
		return wait
	})
	return nil
}

// round fires what is due, and says how long to sleep then.
func (p *Plugin) round(ctx context.Context) (wait time.Duration, err error) {
	for {
		now := p.host.Clock()
		at, ok, err := p.agenda.next(ctx, now)
		if err != nil {
			return 0, err
		}
		if !ok {
			return -1, nil
		}
		if at.After(now) {
			return min(at.Sub(now), nap), nil
		}
		if err := p.fireAll(ctx, p.agenda.take(now, atATime)); err != nil {
			return 0, err
		}
	}
}

// fireAll fires some at once; their commits share their syncs. What could not be
// fired is tried again; it fails where that is so of as many as there may be.
func (p *Plugin) fireAll(ctx context.Context, due []entry) error {
	errs := make([]error, len(due))
	var all sync.WaitGroup
	for i := range due {
		all.Go(func() { errs[i] = p.fire(ctx, due[i]) })
	}
	all.Wait()
	var last error
	failed := 0
	for i, err := range errs {
		if err == nil {
			continue
		}
		due[i].retry = p.host.Clock().Add(nap)
		p.agenda.failed = append(p.agenda.failed, due[i])
		failed++
		last = fmt.Errorf("reminder %s of %s: %w", due[i].ID, due[i].Person, err)
	}
	switch {
	case failed == atATime:
		return last
	case failed > 0:
		p.host.Log.Error("reminders wait", "count", failed, "err", last)
	}
	return nil
}

// fire says that a reminder is due, and writes down when it comes again. After a
// crash in between it does the same again, and the first step has no effect.
func (p *Plugin) fire(ctx context.Context, e entry) error {
	r, version, ok, err := p.get(ctx, e.pointer)
	if err != nil {
		return err
	}
	switch {
	case !ok: // it was cancelled, or its person was forgotten
		return p.drop(ctx, e.pointer, time.Unix(e.due, 0))
	case r.Due.Unix() != e.due:
		return core.PutItem(ctx, p.host.Items, hourPath(e.hour()), e.key, nil)
	}
	_, stands, err := p.host.Items.Get(ctx, r.Place, e.hereKey())
	if err != nil {
		return fmt.Errorf("reminder: %w", err)
	}
	if !stands { // the place was forgotten
		return p.drop(ctx, e.pointer, r.Due)
	}
	d := r.dueNow(p.host.Clock(), &p.config)
	event, err := p.event(ctx, &r, d)
	if err != nil {
		return err
	}
	err = p.host.Inbox.Receive(ctx, event)
	if errors.Is(err, core.ErrBadEvent) { // trying it again would not help
		p.host.Log.Error("reminder left out", "path", r.Place, "err", err)
		err = nil
	}
	if err != nil {
		return err
	}
	if d.next.IsZero() {
		return p.drop(ctx, e.pointer, r.Due)
	}
	r.Due, r.Told = d.next, r.Told+1
	item := core.NewItem(e.Person, keyReminder+r.ID, r)
	item.Version = version // it fails if the reminder was cancelled meanwhile
	return p.agenda.add(ctx, r.Due, e.pointer, core.NewItem(hourPath(e.hour()), e.key, nil), item)
}

// due is what is due of a reminder.
type due struct {
	at     time.Time
	missed int           // how many times before that were left out
	late   time.Duration // 0: in time
	next   time.Time     // zero: that was the last one
}

// dueNow finds the latest due time. Earlier ones are not announced one by one.
func (r *reminder) dueNow(now time.Time, c *Config) due {
	d := due{at: r.Due}
	if rule, err := calendar.ParseRule(r.Rule); err == nil {
		for at := range rule.After(r.Start, r.Due, c.MaxAhead) {
			if at.After(now) {
				d.next = at
				break
			}
			d.at = at
			d.missed++
		}
	}
	late := now.Sub(d.at)
	if late >= c.Late {
		d.late = late
	}
	return d
}

// occasion is the Data of the event.
type occasion struct {
	ID     string `json:"id"`
	Due    string `json:"due"`
	Late   string `json:"late,omitempty"`
	By     int    `json:"late_seconds,omitempty"`
	Missed int    `json:"missed,omitempty"`
	Repeat string `json:"repeat,omitempty"`
	Next   string `json:"next,omitempty"`
}

// event is what is received.
func (p *Plugin) event(ctx context.Context, r *reminder, d due) (core.Event, error) {
	o := occasion{ID: r.ID, Due: stamp(d.at, r.Veiled), Missed: d.missed, Repeat: r.Rule}
	text := r.Text
	if d.late > 0 {
		o.Late, o.By = formatSpan(d.late), int(d.late/time.Second)
		text += " " + lateness(p.host.Language, o.Late)
	}
	if !d.next.IsZero() {
		o.Next = stamp(d.next, r.Veiled)
	}
	m := core.Message{
		Path: r.Place, ID: fmt.Sprintf("reminder-%s-%s-%d", r.Author.ID, r.ID, d.at.Unix()),
		Author: r.Author, Text: text, Time: p.host.Clock(), Private: r.Private, Locale: r.Locale,
	}
	return core.Event{Kind: core.KindReminder, Message: m, Data: string(core.JSON(o))}, p.placed(ctx, &m)
}

// placed gives the message what people's messages of the place have.
func (p *Plugin) placed(ctx context.Context, m *core.Message) error {
	const back = 30
	return p.host.Reader.View(ctx, func(v core.View) error {
		entries, err := v.Last(m.Path, back)
		for i := range entries {
			e := &entries[i]
			if !e.Self && e.Kind == core.KindMessage {
				m.Scopes = e.Message.Scopes
				m.Private = m.Private || e.Message.Private
			}
		}
		return err
	})
}
