package reminders

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"synthbot/core"
)

// agenda knows what falls due next. Of all that waits it holds the next hour in
// memory, and of that the beginning.
type agenda struct {
	items core.Items
	wake  chan struct{} // something was added
	most  int           // how many entries of an hour are held at once

	mu    sync.Mutex
	fresh []entry // added since Run looked

	// The rest is Run's alone.
	hours  []string // that were not read yet, in order
	spent  []string // that were
	window []entry  // in order: all there is below bound
	bound  string
	failed []entry // with the time of another try
}

// entry is a reminder at the moment it falls due. Keys sort by that.
type entry struct {
	key   string
	due   int64 // Unix
	retry time.Time
	pointer
}

// hourForm is how hours are called.
const hourForm = "2006-01-02T15"

// Roots of pseudo-places; no interface can be called so.
func hoursRoot() core.Path { return core.MustPath("@hours") }

func hourPath(hour string) core.Path { return core.MustPath("@due/" + hour) }

func newAgenda(items core.Items) *agenda {
	return &agenda{items: items, wake: make(chan struct{}, 1), most: 1024}
}

func keyAt(unix int64) string { return fmt.Sprintf("%012d", unix) }

func entryOf(due time.Time, at pointer) entry {
	return entry{key: keyAt(due.Unix()) + "/" + at.Person.String() + "/" + at.ID, due: due.Unix(), pointer: at}
}

func (e *entry) hour() string { return time.Unix(e.due, 0).UTC().Format(hourForm) }

// add puts a moment on disk together with other items, and then before Run.
func (a *agenda) add(ctx context.Context, due time.Time, at pointer, others ...core.Item) error {
	e := entryOf(due, at)
	err := a.items.PutAll(ctx, append(others,
		core.NewItem(hoursRoot(), e.hour(), struct{}{}),
		core.NewItem(hourPath(e.hour()), e.key, at))...)
	if err != nil {
		return fmt.Errorf("reminder %s of %s: %w", at.ID, at.Person, err)
	}
	a.mu.Lock()
	a.fresh = append(a.fresh, e)
	a.mu.Unlock()
	core.Notify(a.wake)
	return nil
}

// open reads which hours there are.
func (a *agenda) open(ctx context.Context) error {
	items, err := a.items.List(ctx, hoursRoot())
	if err != nil {
		return fmt.Errorf("reminders: %w", err)
	}
	a.hours, a.window, a.bound = nil, nil, ""
	for _, item := range items {
		if _, err := time.Parse(hourForm, item.Key); err == nil {
			a.hours = append(a.hours, item.Key)
		}
	}
	return nil
}

// next is when something is to be fired next; ok is false where nothing waits.
func (a *agenda) next(ctx context.Context, now time.Time) (at time.Time, ok bool, err error) {
	a.takeFresh()
	if err := a.clean(ctx, now); err != nil {
		return at, false, err
	}
	for len(a.window) == 0 && len(a.hours) > 0 {
		if err := a.load(ctx); err != nil {
			return at, false, err
		}
	}
	if len(a.window) > 0 {
		at, ok = time.Unix(a.window[0].due, 0), true
	}
	for i := range a.failed {
		t := a.failed[i].retry
		if !ok || t.Before(at) {
			at, ok = t, true
		}
	}
	return at, ok, nil
}

// takeFresh sorts in what was added.
func (a *agenda) takeFresh() {
	a.mu.Lock()
	fresh := a.fresh
	a.fresh = nil
	a.mu.Unlock()
	for _, e := range fresh {
		i, known := slices.BinarySearch(a.hours, e.hour())
		switch {
		case e.key < a.bound:
			a.hold(e)
		case !known:
			a.hours = slices.Insert(a.hours, i, e.hour())
		}
	}
}

func (a *agenda) hold(e entry) {
	byKey := func(x entry, key string) int { return strings.Compare(x.key, key) }
	i, there := slices.BinarySearchFunc(a.window, e.key, byKey)
	if !there {
		a.window = slices.Insert(a.window, i, e)
	}
}

// load reads the next hour, or as much of it as is held.
func (a *agenda) load(ctx context.Context) error {
	hour := a.hours[0]
	items, err := a.items.List(ctx, hourPath(hour))
	if err != nil {
		return fmt.Errorf("reminders of %s: %w", hour, err)
	}
	a.bound = ""
	for _, item := range items {
		if len(a.window) == a.most {
			a.bound = item.Key // the hour is read once more, from here
			return nil
		}
		var e entry
		stamp, _, _ := strings.Cut(item.Key, "/")
		if _, err := fmt.Sscanf(stamp, "%d", &e.due); err != nil || item.Decode(&e.pointer) != nil {
			continue
		}
		e.key = item.Key
		a.window = append(a.window, e)
	}
	begin, err := time.Parse(hourForm, hour)
	if err != nil {
		return fmt.Errorf("reminders: %w", err)
	}
	a.bound = keyAt(begin.Add(time.Hour).Unix())
	a.hours, a.spent = a.hours[1:], append(a.spent, hour)
	return nil
}

// take removes what is to be fired now, at most n.
func (a *agenda) take(now time.Time, n int) []entry {
	var due []entry
	a.failed = slices.DeleteFunc(a.failed, func(e entry) bool {
		if len(due) == n || e.retry.After(now) {
			return false
		}
		due = append(due, e)
		return true
	})
	front := 0
	for front < len(a.window) && len(due) < n && a.window[front].due <= now.Unix() {
		due = append(due, a.window[front])
		front++
	}
	a.window = a.window[front:]
	return due
}

// settled is how long after its end an hour gets no more entries.
const settled = time.Hour

// clean takes hours off the disk that are over and empty.
func (a *agenda) clean(ctx context.Context, now time.Time) error {
	for len(a.spent) > 0 {
		hour := a.spent[0]
		begin, err := time.Parse(hourForm, hour)
		if err == nil && now.Before(begin.Add(time.Hour+settled)) {
			return nil
		}
		if err := a.close(ctx, hour); err != nil {
			return fmt.Errorf("reminders of %s: %w", hour, err)
		}
		a.spent = a.spent[1:]
	}
	return nil
}

// close takes an hour off the disk if it is empty and nothing is added to it meanwhile.
func (a *agenda) close(ctx context.Context, hour string) error {
	mark, ok, err := a.items.Get(ctx, hoursRoot(), hour)
	if err != nil || !ok {
		return err
	}
	left, err := a.items.List(ctx, hourPath(hour))
	if err != nil || len(left) > 0 {
		return err
	}
	mark.Value = nil
	if _, err := a.items.Put(ctx, mark); !errors.Is(err, core.ErrVersion) {
		return err
	}
	return nil
}
