package reminders

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"time"

	"synthbot/core"
)

// agenda says when the store is to be read next.
type agenda struct {
	wake chan struct{} // next is sooner than it was

	mu   sync.Mutex
	next int64 // Unix; nothing falls due before it. 0: nobody has looked yet
}

// never is agenda.next where nothing waits.
const never = math.MaxInt64

// sooner notes that something falls due at a time.
func (a *agenda) sooner(unix int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if unix < a.next {
		a.next = unix
		core.Notify(a.wake)
	}
}

// until returns how long nothing falls due; negative: until wake. If something may be due,
// it is 0, and the caller reads the store and calls sooner for what still waits.
func (a *agenda) until(now time.Time) time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.next == never:
		return -1
	case now.Unix() < a.next:
		return min(time.Unix(a.next, 0).Sub(now), nap)
	}
	a.next = never
	return 0
}

// entry is a reminder at the moment it falls due. Keys sort by that.
type entry struct {
	key string
	due int64 // Unix
	pointer
}

// hourForm is how hours are called.
const hourForm = "2006-01-02T15"

// Roots of pseudo-places; no interface can be called so.
func hoursRoot() core.Path { return core.MustPath("@hours") }

func hourPath(hour string) core.Path { return core.MustPath("@due/" + hour) }

func entryOf(due time.Time, at pointer) entry {
	return entry{key: fmt.Sprintf("%012d/%s/%s", due.Unix(), at.Person, at.ID), due: due.Unix(), pointer: at}
}

func (e *entry) hour() string { return time.Unix(e.due, 0).UTC().Format(hourForm) }

// schedule puts a moment on disk together with other items.
func (p *Plugin) schedule(ctx context.Context, due time.Time, at pointer, others ...core.Item) error {
	e := entryOf(due, at)
	err := p.host.Items.PutAll(ctx, append(others,
		core.NewItem(hoursRoot(), e.hour(), struct{}{}),
		core.NewItem(hourPath(e.hour()), e.key, at))...)
	if err != nil {
		return fmt.Errorf("reminder %s of %s: %w", at.ID, at.Person, err)
	}
	p.agenda.sooner(e.due)
	return nil
}

// entries reads an hour, in order.
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

// close takes an hour off the disk, unless something was added to it since the mark was read.
func (p *Plugin) close(ctx context.Context, mark core.Item) error {
	mark.Value = nil
	_, err := p.host.Items.Put(ctx, mark)
	if err != nil && !errors.Is(err, core.ErrVersion) {
		return fmt.Errorf("reminders of %s: %w", mark.Key, err)
	}
	return nil
}
