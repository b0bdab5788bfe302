package reminders

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"synthbot/core"
	"synthbot/core/loop"
	"synthbot/core/values"
	"synthbot/core/watch"
	"synthbot/plugins/reminders/calendar"
)

const (
	maxSleep    = time.Minute      // while reminders wait: the clock may be set, and the machine may sleep
	retryDelay  = 30 * time.Second // after an error of the store
	eventPrefix = "reminder-"      // of an event's id
	maxParallel = 16               // reminders that are fired at the same time
)

// Refresh implements core.Refresher.
func (p *Plugin) Refresh() { p.agenda.sooner(0) }

// Run fires due reminders until ctx ends.
func (p *Plugin) Run(ctx context.Context) error {
	loop.Repeat(ctx, p.agenda.wake, func() time.Duration {
		now := p.host.Clock()
		for _, r := range tellRefused(ctx, &p.host, p.agenda.takeRefused()) {
			p.agenda.refuse(r, now.Add(maxSleep).Unix())
		}
		wait := p.agenda.until(now)
		if wait != 0 {
			return wait
		}
		if err := p.fireDue(ctx, now); err != nil && ctx.Err() == nil {
			p.agenda.sooner(0)
			p.host.Log.Error("reminders wait", "err", err)
			return retryDelay
		}
		return 0
	})
	return nil
}

// fireDue reads the hours up to the first reminder that is not due, and fires those before it.
func (p *Plugin) fireDue(ctx context.Context, now time.Time) error {
	hours, err := p.host.Items.List(ctx, hoursRoot())
	if err != nil {
		return fmt.Errorf("reminders: %w", err)
	}
	for _, mark := range hours {
		begin, err := time.Parse(hourForm, mark.Key)
		if err != nil {
			continue
		}
		entries, err := p.entries(ctx, mark.Key)
		if err != nil {
			return err
		}
		if len(entries) == 0 && now.After(begin.Add(time.Hour)) {
			if err := p.close(ctx, mark); err != nil {
				return err
			}
		}
		due := slices.IndexFunc(entries, func(e entry) bool { return e.due > now.Unix() })
		if due >= 0 {
			p.agenda.sooner(entries[due].due)
			p.fireAll(ctx, entries[:due])
			return nil
		}
		p.fireAll(ctx, entries)
	}
	return nil
}

// fireAll fires reminders, several at a time so that their commits share syncs. Those that fail are tried again later.
func (p *Plugin) fireAll(ctx context.Context, due []entry) {
	errs := make([]error, len(due))
	for first := 0; first < len(due); first += maxParallel {
		var some sync.WaitGroup
		for i := first; i < min(first+maxParallel, len(due)); i++ {
			some.Go(func() { errs[i] = p.fire(ctx, due[i]) })
		}
		some.Wait()
	}
	errs = slices.DeleteFunc(errs, func(err error) bool { return err == nil })
	if len(errs) > 0 && ctx.Err() == nil {
		p.host.Log.Error("reminders wait", "count", len(errs), "err", errs[0])
		p.agenda.sooner(p.host.Clock().Add(maxSleep).Unix())
	}
}

// fire makes the event of a due reminder, and stores when it is due next. After a crash in
// between it does both again, and receiving the same event again has no effect.
func (p *Plugin) fire(ctx context.Context, e entry) error {
	r, version, ok, err := p.get(ctx, e.pointer)
	if err != nil {
		return err
	}
	switch {
	case !ok: // it was cancelled, or its user was forgotten
		return p.drop(ctx, e.pointer, time.Unix(e.due, 0))
	case r.Due.Unix() != e.due:
		return values.Put(ctx, p.host.Items, hourPath(e.hour()), e.key, nil)
	}
	_, exists, err := p.host.Items.Get(ctx, r.Place, e.hereKey())
	if err != nil {
		return fmt.Errorf("reminder: %w", err)
	}
	if !exists { // the place was forgotten
		return p.drop(ctx, e.pointer, r.Due)
	}
	d := r.dueNow(p.host.Clock(), &p.config)
	event, err := p.event(ctx, &r, d)
	if err != nil {
		return err
	}
	err = p.host.Inbox.Receive(ctx, event)
	if errors.Is(err, core.ErrBadEvent) { // it would fail again
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
	item := values.New(e.Person, keyReminder+r.ID, r)
	item.Version = version // it fails if the reminder was cancelled meanwhile
	return p.schedule(ctx, r.Due, e.pointer, values.New(hourPath(e.hour()), e.key, nil), item)
}

// due describes a reminder that is fired.
type due struct {
	at     time.Time     // when it was due
	missed int           // earlier times that are left out
	late   time.Duration // 0: in time
	next   time.Time     // zero: it does not come again
}

// dueNow returns the latest due time. Earlier ones are not fired one by one.
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

func (p *Plugin) event(ctx context.Context, r *reminder, d due) (core.Event, error) {
	o := occasion{ID: r.ID, Due: stamp(d.at, r.Veiled), Missed: d.missed, Repeat: r.Rule}
	text := r.Text
	if d.late > 0 {
		o.Late, o.By = formatSpan(d.late), int(d.late/time.Second)
		language, _, _ := strings.Cut(strings.ToLower(p.host.Language), "-")
		text += " " + fmt.Sprintf(cmp.Or(lateWords[language], "(late by %s)"), o.Late)
	}
	if !d.next.IsZero() {
		o.Next = stamp(d.next, r.Veiled)
	}
	m := core.Message{
		Path: r.Place, ID: fmt.Sprintf(eventPrefix+"%s-%s-%d", r.Author.ID, r.ID, d.at.Unix()),
		Author: r.Author, Text: text, Time: p.host.Clock(), Private: r.Private, Locale: r.Locale,
	}
	err := p.host.Reader.View(ctx, func(v core.View) error { // take scopes and privacy from recent messages
		const back = 30
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
	return core.Event{Kind: core.KindReminder, Message: m, Data: string(core.JSON(o))}, err
}

// agenda knows when to read the store next.
type agenda struct {
	wake chan struct{} // holds a token if next has become earlier

	mu   sync.Mutex
	next int64 // Unix time; no reminder is due before. 0: the store was not read yet

	refused []refused // by their places
}

const never = math.MaxInt64 // agenda.next if no reminder waits

// sooner makes the store be read at a Unix time, unless it is read before.
func (a *agenda) sooner(unix int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if unix < a.next {
		a.next = unix
		loop.Notify(a.wake)
	}
}

// refuse adds a reminder that was refused. It is sent elsewhere at a Unix time.
func (a *agenda) refuse(r refused, unix int64) {
	a.mu.Lock()
	a.refused = append(a.refused, r)
	a.mu.Unlock()
	a.sooner(unix)
}

func (a *agenda) takeRefused() (list []refused) {
	a.mu.Lock()
	defer a.mu.Unlock()
	list, a.refused = a.refused, nil
	return list
}

// until returns how long no reminder is due; negative: until wake. If it returns 0, the caller
// must read the store, and call sooner for the reminders that still wait.
func (a *agenda) until(now time.Time) time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.next == never:
		return -1
	case now.Unix() < a.next:
		return min(time.Unix(a.next, 0).Sub(now), maxSleep)
	}
	a.next = never
	return 0
}

// entry is an item under an hour, which points to a reminder. Keys sort by due.
type entry struct {
	key string
	due int64 // Unix time
	pointer
}

const hourForm = "2006-01-02T15"

// Pseudo-places. No interface can have such a name.
func hoursRoot() core.Path { return core.MustPath("@hours") }

func hourPath(hour string) core.Path { return core.MustPath("@due/" + hour) }

func entryOf(due time.Time, at pointer) entry {
	return entry{key: fmt.Sprintf("%012d/%s/%s", due.Unix(), at.Person, at.ID), due: due.Unix(), pointer: at}
}

func (e *entry) hour() string { return time.Unix(e.due, 0).UTC().Format(hourForm) }

// schedule stores when a reminder is due, together with other items.
func (p *Plugin) schedule(ctx context.Context, due time.Time, at pointer, others ...core.Item) error {
	e := entryOf(due, at)
	err := p.host.Items.PutAll(ctx, append(others,
		values.New(hoursRoot(), e.hour(), struct{}{}), values.New(hourPath(e.hour()), e.key, at))...)
	if err != nil {
		return fmt.Errorf("reminder %s of %s: %w", at.ID, at.Person, err)
	}
	p.agenda.sooner(e.due)
	return nil
}

// entries returns the entries of an hour, in order.
func (p *Plugin) entries(ctx context.Context, hour string) (list []entry, err error) {
	items, err := p.host.Items.List(ctx, hourPath(hour))
	if err != nil {
		return nil, fmt.Errorf("reminders of %s: %w", hour, err)
	}
	for _, item := range items {
		e := entry{key: item.Key}
		stamp, _, _ := strings.Cut(item.Key, "/")
		if _, err := fmt.Sscanf(stamp, "%d", &e.due); err == nil && item.Decode(&e.pointer) == nil {
			list = append(list, e)
		}
	}
	return list, nil
}

// close removes an hour from the list, unless something was added to it since mark was read.
func (p *Plugin) close(ctx context.Context, mark core.Item) error {
	mark.Value = nil
	_, err := p.host.Items.Put(ctx, mark)
	if err != nil && !errors.Is(err, core.ErrVersion) {
		return fmt.Errorf("reminders of %s: %w", mark.Key, err)
	}
	return nil
}

// Observe implements watch.Observer. It remembers the reminders that their places refused, such as deleted topics.
func (p *Plugin) Observe(end watch.TurnEnd) {
	isRefused := func(s watch.Step) bool {
		kind := s.Kind
		return s.Progress != core.ProgressDone && (kind == core.Forbidden || kind == core.Broken)
	}
	if end.Answered || end.Trace == nil || !slices.ContainsFunc(end.Trace.Steps, isRefused) {
		return
	}
	for _, id := range end.Messages {
		if strings.HasPrefix(id, eventPrefix) {
			p.agenda.refuse(refused{end, id}, 0)
		}
	}
}

// refused is a reminder that its place refused.
type refused struct {
	end watch.TurnEnd
	id  string // of its event
}

// tellRefused tells the authors of refused reminders in private. If that fails, the place above learns that there was
// a reminder, but not its text: others may read there. It returns those that must be tried again.
func tellRefused(ctx context.Context, h *core.Host, list []refused) (again []refused) {
	for _, r := range list {
		if r.end.Stale != nil && r.end.Stale() { // somebody was forgotten
			continue
		}
		at := r.end.Turn.Path
		read := func(v core.View) (core.Entry, error) {
			e, _, err := v.Entry(at, r.id)
			return e, err
		}
		e, err := core.Read(ctx, h.Reader, read)
		if err == nil && e.Message.Text == "" {
			continue
		}
		if err == nil {
			err = tellElsewhere(ctx, h.Messenger, &e.Message)
		}
		if errors.Is(err, core.ErrAway) || ctx.Err() != nil {
			again = append(again, r)
		} else if err != nil {
			h.Log.Error("reminder left out", "path", at, "err", err)
		}
	}
	return again
}

func tellElsewhere(ctx context.Context, to core.Messenger, m *core.Message) error {
	person, err := m.Path.Person(m.Author.ID)
	if err != nil {
		return err
	}
	err = to.Tell(ctx, person, "⏰ "+m.Text+"\n\nI can no longer write in the place where you set this reminder.")
	above := m.Path.Parent()
	if err == nil || errors.Is(err, core.ErrAway) || m.Private || above.Parent().IsZero() {
		return err
	}
	return to.Tell(ctx, above, "⏰ A reminder of "+m.Author.Name+
		" was due in a topic or thread here in which I can no longer write.")
}
