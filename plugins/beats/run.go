package beats

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"synthbot/core"
	"synthbot/core/loop"
	"synthbot/core/values"
)

const (
	maxSleep   = time.Minute     // between two rounds: the clock may be set, and the machine may sleep
	maxLate    = 3 * time.Minute // a beat that is later is dropped
	maxWait    = time.Hour       // how long a beat waits for a conversation to end
	retryDelay = 5 * time.Minute // between two checks whether it has ended
	zonesFresh = time.Hour       // after which users' time zones are read again
)

// Refresh implements core.Refresher.
func (p *Plugin) Refresh() {
	p.changed.Store(true)
	loop.Notify(p.wake)
}

// Run begins beats until ctx ends.
func (p *Plugin) Run(ctx context.Context) error {
	if len(p.beats) == 0 {
		<-ctx.Done()
		return nil
	}
	l := memo{Plugin: p, until: p.host.Clock()}
	loop.Repeat(ctx, p.wake, func() time.Duration {
		if p.changed.Swap(false) {
			l.all = nil
		}
		wait, err := l.round(ctx)
		if err != nil && ctx.Err() == nil {
			p.host.Log.Error("beats wait", "err", err)
			return maxSleep
		}
		return wait
	})
	return nil
}

// memo is the state of Run.
type memo struct {
	*Plugin
	all   map[core.Path]wants // nil: must be read again
	read  time.Time           // when all was read
	until time.Time           // beats that were due until then are done
	busy  []due               // beats that wait for conversations to end
}

// due is a beat that is due in the places of a time zone.
type due struct {
	*beat
	at     time.Time
	zone   *time.Location
	places []place   // that did not get it yet; nil: not listed yet
	retry  time.Time // when to try it again
}

// round begins the due beats, and returns how long to sleep.
func (l *memo) round(ctx context.Context) (time.Duration, error) {
	now := l.host.Clock()
	if l.stale(now) || !l.next(l.until).After(now) {
		all, err := l.wanting(ctx)
		if err != nil {
			return 0, err
		}
		l.all, l.read = all, now
	}
	var list []due
	l.busy = slices.DeleteFunc(l.busy, func(d due) bool {
		ready := !d.retry.After(now)
		if ready {
			list = append(list, d)
		}
		return ready
	})
	list = append(list, l.since(now)...)
	l.until = now
	for _, d := range list {
		if err := l.begin(ctx, d); err != nil && ctx.Err() == nil {
			l.host.Log.Error("beat dropped", "beat", d.Name, "err", err)
		}
	}
	return min(max(l.next(now).Sub(now), 0), maxSleep), nil
}

// stale reports whether the wants must be read again although nothing is due: users may have changed their time zones.
func (l *memo) stale(now time.Time) bool {
	if l.all == nil || now.Sub(l.read).Abs() < zonesFresh {
		return l.all == nil
	}
	for _, w := range l.all {
		if w.usersZone {
			return true
		}
	}
	return false
}

// since lists the beats that became due since the last round, except those that are too late.
func (l *memo) since(now time.Time) (list []due) {
	from := l.until
	if from.Before(now.Add(-maxLate)) {
		from = now.Add(-maxLate)
	}
	for i := range l.beats {
		for _, zone := range l.zones(l.all) {
			at := l.beats[i].next(from, zone)
			if !at.After(now) {
				list = append(list, due{beat: &l.beats[i], at: at, zone: zone})
			}
		}
	}
	return list
}

// next returns when the next beat is due, or tried again, after a moment.
func (l *memo) next(after time.Time) time.Time {
	next := after.Add(24 * time.Hour)
	for i := range l.beats {
		for _, zone := range l.zones(l.all) {
			at := l.beats[i].next(after, zone)
			if at.Before(next) {
				next = at
			}
		}
	}
	for _, d := range l.busy {
		if d.retry.Before(next) {
			next = d.retry
		}
	}
	return next
}

// begin begins a beat in all places where it may come. In places where people are talking, it waits. An error in
// one place does not concern the others.
func (l *memo) begin(ctx context.Context, d due) error {
	if d.places == nil {
		var err error
		if d.places, err = l.candidates(ctx, d.beat, d.zone, l.all); err != nil {
			return err
		}
	}
	var left []place
	var errs error
	for _, at := range d.places {
		w, said := l.all[at.path]
		if said {
			at.wants = w // it may have changed
		}
		v, s, err := l.judge(ctx, &d, &at)
		if err == nil && v == yes {
			err = l.reach(ctx, &d, &at, s)
		}
		if v == later {
			left = append(left, at)
		}
		errs = errors.Join(errs, err)
	}
	d.retry = l.host.Clock().Add(retryDelay)
	if len(left) > 0 && d.retry.Sub(d.at) <= maxWait {
		d.places = left
		l.busy = append(l.busy, d)
	}
	return errs
}

type verdict int

const (
	no verdict = iota
	later
	yes
)

func (p *Plugin) judge(ctx context.Context, d *due, at *place) (verdict, scene, error) {
	now := p.host.Clock()
	there := now.In(p.zone(at.wants))
	if !d.silent() && (!at.On || p.night.holds(there)) {
		return no, scene{}, nil
	}
	had, _, err := values.Get[got](ctx, p.host.Items, at.path, keyGot)
	if err != nil {
		return no, scene{}, err
	}
	if had.Latest[d.Name] >= d.at.Unix() || had.Day == there.Format(time.DateOnly) && had.Count >= p.config.PerPlace {
		return no, scene{}, nil
	}
	s, err := p.look(ctx, at.path)
	if err != nil || s.gone {
		return no, s, err
	}
	quiet := now.Sub(s.talked)
	switch {
	case d.silent() && len(d.Places) == 0 && s.talked.Unix() <= had.Latest[d.Name]:
		return no, s, nil // nothing was said since
	case !d.silent() && !had.Reached.IsZero() && !s.talked.After(had.Reached) && !at.Since.After(had.Reached):
		return no, s, nil // nobody reacted to the last one
	case d.Kind == kindOutreach && min(quiet, now.Sub(at.Since)) < d.After:
		return no, s, nil
	case quiet < p.config.Silence:
		return later, s, nil
	}
	return yes, s, nil
}

type data struct {
	Beat    string   `json:"beat"`
	Quiet   bool     `json:"quiet"`
	Actions []string `json:"actions"`
}

// reach begins a beat in a place. It is marked before, so that it cannot come twice.
func (p *Plugin) reach(ctx context.Context, d *due, at *place, s scene) error {
	now := p.host.Clock()
	if ok, err := p.spend(ctx, now); err != nil || !ok {
		return err
	}
	if err := p.mark(ctx, d, at, now); err != nil {
		return err
	}
	may := slices.Clone(d.Actions)
	if len(may) == 0 && d.Kind == kindInternal {
		may = []string{"diary_*", "memory_*", "bio_*"}
	}
	if !d.silent() {
		may = append(may, core.MessagePrefix+"*")
	}
	raw := core.JSON(data{d.Name, d.silent(), may})
	e := core.Event{Kind: core.KindBeat, Data: string(raw), Message: core.Message{
		Path: at.path, ID: fmt.Sprintf("beat-%s-%d", d.Name, d.at.Unix()), Time: now, Text: d.Prompt,
		Author: core.Author{Bot: true, Rank: core.RankBot}, Private: at.Private || s.private, Locale: s.locale,
		Scopes: s.scopes,
	}}
	if err := p.host.Inbox.Receive(ctx, e); err != nil {
		return fmt.Errorf("beat %s: %w", d.Name, err)
	}
	p.host.Log.Info("beat", "beat", d.Name, "path", at.path)
	return nil
}

// spend counts a beat. It returns false if the day's limit is reached.
func (p *Plugin) spend(ctx context.Context, now time.Time) (ok bool, err error) {
	date := now.Format(time.DateOnly)
	err = values.Edit(ctx, p.host.Items, core.Path{}, keyDay, func(today *day) (keep bool, err error) {
		if today.Day != date {
			*today = day{Day: date}
		}
		ok = today.Count < p.config.PerDay
		if ok {
			today.Count++
		}
		return true, nil
	})
	return ok && err == nil, err
}

func (p *Plugin) mark(ctx context.Context, d *due, at *place, now time.Time) error {
	date := now.In(p.zone(at.wants)).Format(time.DateOnly)
	return values.Edit(ctx, p.host.Items, at.path, keyGot, func(had *got) (keep bool, err error) {
		if had.Day != date {
			had.Day, had.Count = date, 0
		}
		had.Count++
		if had.Latest == nil {
			had.Latest = make(map[string]int64)
		}
		had.Latest[d.Name] = d.at.Unix()
		if !d.silent() {
			had.Reached = now
		}
		return true, nil
	})
}
