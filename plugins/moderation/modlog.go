package moderation

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"synthbot/core"
	"synthbot/core/txt"
)

// What happened. Gates log the other words that happening knows.
const (
	wasBlocked   = "blocked"
	wasUnblocked = "unblocked"
	wasMuted     = "muted"
	wasUnmuted   = "unmuted"
	wasLimited   = "limited"
	hasAppealed  = "appealed"
)

// Bounds of the log.
const (
	maxEvents      = 2000 // in all
	maxEventsEach  = 20   // about one user or place
	maxAppeals     = 500  // in all
	maxAppealsEach = 3    // of one user
)

// event is something that happened, as it is kept under the path that it is about.
type event struct {
	At     time.Time `json:"at"`
	What   string    `json:"what"`
	Place  core.Path `json:"place,omitzero"` // the group, or the private place; zero: an admin, in private
	Name   string    `json:"name,omitempty"`
	Detail string    `json:"detail,omitempty"` // which rule, which limit
	Reason string    `json:"reason,omitempty"`
	Until  time.Time `json:"until,omitzero"`
	All    bool      `json:"everywhere,omitempty"`

	id     string
	about  core.Path // a user, or a place
	by     core.Path // zero: the bot, or a user who was forgotten
	byName string
}

// deed is an event as it is kept under the path of the moderator who caused it.
type deed struct {
	At    time.Time `json:"at"`
	What  string    `json:"what"`
	Place core.Path `json:"place,omitzero"`
	Name  string    `json:"name,omitempty"` // the moderator's
}

// appeal is what a blocked user wrote to the admins.
type appeal struct {
	At   time.Time `json:"at"`
	Name string    `json:"name,omitempty"`
	Text string    `json:"text"`

	id   string
	user core.Path
}

func (e event) path() core.Path { return e.about }

// items returns what is on disk of an event: first what happened, then who caused it.
func (e event) items() []core.Item {
	list := []core.Item{core.NewItem(e.about, logKey+e.id, e)}
	if !e.by.IsZero() {
		list = append(list, core.NewItem(e.by, didKey+e.id, deed{e.At, e.What, e.Place, e.byName}))
	}
	return list
}

func (a appeal) path() core.Path { return a.user }

// item returns what is on disk of an appeal.
func (a appeal) item() core.Item { return core.NewItem(a.user, appealKey+a.id, a) }

func (a appeal) items() []core.Item { return []core.Item{a.item()} }

// line describes the event for moderators; in private with the paths.
func (e *event) line(private bool, now time.Time) string {
	who := "this place"
	switch {
	case e.about.IsPerson() && private:
		who = fmt.Sprintf("%s (`%s`)", displayName(e.Name), e.about)
	case e.about.IsPerson():
		who = displayName(e.Name)
	case private:
		who = e.about.String()
	}
	text := fmt.Sprintf("- %s: %s %s", txt.Moment(e.At, now), who, e.happening())
	if private && !e.Place.IsZero() && e.about.IsPerson() {
		text += " in " + e.Place.String()
	}
	if e.byName != "" {
		text += " by " + e.byName
	}
	if !e.Until.IsZero() {
		text += " until " + txt.Moment(e.Until, now)
	}
	if e.Reason != "" {
		text += ": " + e.Reason
	}
	return text
}

// happening words what happened.
func (e *event) happening() string {
	switch e.What {
	case wasBlocked, wasUnblocked, wasMuted, wasUnmuted:
		if e.All {
			return "was " + e.What + " everywhere"
		}
		return "was " + e.What
	case wasLimited:
		return "reached a limit"
	case "repeating":
		return "repeated the same text"
	case "flooding":
		return "wrote too fast"
	case "walling":
		return "wrote too much at once"
	case "rule":
		return fmt.Sprintf("broke the rule %q", e.Detail)
	}
	return e.What
}

// modLog is what happened and which appeals are open, oldest first, as on disk. It is not
// safe for concurrent use.
type modLog struct {
	events  []event
	appeals []appeal
	last    int64 // the id that was given last
}

// nextID returns an id that rises with time.
func (l *modLog) nextID(now time.Time) string {
	l.last = max(l.last+1, now.UnixNano())
	return formatID(l.last)
}

// formatID gives the same length to all times of this age, so that ids sort.
func formatID(n int64) string { return strconv.FormatInt(n, 36) }

// add adds an event. It returns what removes those from the disk that had to make room.
func (l *modLog) add(e event) (gone []core.Item) {
	l.events, gone = appendBounded(l.events, e, maxEvents, maxEventsEach)
	return gone
}

// addAppeal adds an appeal. It returns what removes those from the disk that had to make
// room.
func (l *modLog) addAppeal(a appeal) (gone []core.Item) {
	l.appeals, gone = appendBounded(l.appeals, a, maxAppeals, maxAppealsEach)
	return gone
}

// entry is an event or an appeal.
type entry interface {
	items() []core.Item
	path() core.Path // that it is about
}

// appendBounded appends to a list of at most maxAll entries, of which at most maxEach are
// about the same path. The oldest make room.
func appendBounded[E entry](list []E, e E, maxAll, maxEach int) (kept []E, gone []core.Item) {
	same := 0
	for i, other := range slices.Backward(list) {
		if other.path() == e.path() {
			same++
		}
		if same == maxEach || i == 0 && len(list) >= maxAll {
			gone = removals(other.items())
			list = slices.Delete(list, i, i+1)
			break
		}
	}
	return append(list, e), gone
}

// appealsOf returns a user's appeals, oldest first.
func (l *modLog) appealsOf(user core.Path) (theirs []appeal) {
	for _, a := range l.appeals {
		if a.user == user {
			theirs = append(theirs, a)
		}
	}
	return theirs
}

// takeAppeals removes and returns a user's appeals.
func (l *modLog) takeAppeals(user core.Path) (gone []appeal) {
	gone = l.appealsOf(user)
	l.appeals = slices.DeleteFunc(l.appeals, func(a appeal) bool { return a.user == user })
	return gone
}

// older returns what is on disk of what happened before a time.
func (l *modLog) older(before time.Time) (items []core.Item) {
	for i := range l.events {
		if l.events[i].At.Before(before) {
			items = append(items, l.events[i].items()...)
		}
	}
	for i := range l.appeals {
		if l.appeals[i].At.Before(before) {
			items = append(items, l.appeals[i].item())
		}
	}
	return items
}

// expire removes what happened before a time.
func (l *modLog) expire(before time.Time) {
	l.events = slices.DeleteFunc(l.events, func(e event) bool { return e.At.Before(before) })
	l.appeals = slices.DeleteFunc(l.appeals, func(a appeal) bool { return a.At.Before(before) })
}

// forget removes what is about a user, which it returns, and where the user caused
// something.
func (l *modLog) forget(user core.Path) (gone []event) {
	l.events = slices.DeleteFunc(l.events, func(e event) bool {
		if e.about == user {
			gone = append(gone, e)
		}
		return e.about == user
	})
	for i := range l.events {
		e := &l.events[i]
		if e.by == user {
			e.by, e.byName = core.Path{}, ""
		}
	}
	l.takeAppeals(user)
	return gone
}

// read adds an event or appeal from disk. finish must be called after the last one.
func (l *modLog) read(item *core.Item) error {
	kind, id, _ := strings.Cut(item.Key, " ")
	if kind+" " == logKey {
		e := event{id: id, about: item.Path}
		if err := item.Decode(&e); err != nil {
			return err
		}
		l.events = append(l.events, e)
	} else {
		a := appeal{id: id, user: item.Path}
		if err := item.Decode(&a); err != nil {
			return err
		}
		l.appeals = append(l.appeals, a)
	}
	if n, err := strconv.ParseInt(id, 36, 64); err == nil {
		l.last = max(l.last, n)
	}
	return nil
}

// finish sorts what was read, and adds to the events who caused them. It returns the deeds
// whose event is gone.
func (l *modLog) finish(deeds []core.Item) (orphans []core.Item, err error) {
	slices.SortFunc(l.events, func(a, b event) int { return cmp.Compare(a.id, b.id) })
	slices.SortFunc(l.appeals, func(a, b appeal) int { return cmp.Compare(a.id, b.id) })
	for _, item := range deeds {
		id := strings.TrimPrefix(item.Key, didKey)
		i, ok := slices.BinarySearchFunc(l.events, id, func(e event, id string) int { return cmp.Compare(e.id, id) })
		if !ok {
			orphans = append(orphans, item)
			continue
		}
		var d deed
		if err := item.Decode(&d); err != nil {
			return nil, err
		}
		l.events[i].by, l.events[i].byName = item.Path, d.Name
	}
	return orphans, nil
}

// removals returns items that remove others.
func removals(items []core.Item) []core.Item {
	for i := range items {
		items[i].Value, items[i].Version = nil, core.AnyVersion
	}
	return items
}
