package moderation

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"synthbot/core"
	"synthbot/core/sorting"
	"synthbot/core/txt"
	"synthbot/core/values"
)

// Values of event.What. Gates log further ones, see event.happening.
const (
	wasBlocked   = "blocked"
	wasUnblocked = "unblocked"
	wasMuted     = "muted"
	wasUnmuted   = "unmuted"
	wasLimited   = "limited"
	hasAppealed  = "appealed"
)

const (
	maxEvents      = 2000 // in all
	maxEventsEach  = 20   // about one user or place
	maxAppeals     = 500  // in all
	maxAppealsEach = 3    // of one user
)

// event is an event of the moderation log, or an appeal. It is stored under the path that it is about.
type event struct {
	At     time.Time `json:"at"`
	What   string    `json:"what,omitempty"` // "": an appeal
	Place  core.Path `json:"place,omitzero"` // the group, or the private place; zero: an admin, in private
	Name   string    `json:"name,omitempty"`
	Detail string    `json:"detail,omitempty"` // which rule, which limit
	Reason string    `json:"reason,omitempty"`
	Until  time.Time `json:"until,omitzero"`
	All    bool      `json:"everywhere,omitempty"` // not only in Place
	Text   string    `json:"text,omitempty"`       // what a blocked user wrote to the admins

	id     string
	about  core.Path // a user, or a place
	by     core.Path // zero: the bot, or a user who was forgotten
	byName string
}

// deed is the part of an event that is stored under the path of the moderator who caused it.
type deed struct {
	At    time.Time `json:"at"`
	What  string    `json:"what"`
	Place core.Path `json:"place,omitzero"`
	Name  string    `json:"name,omitempty"` // the moderator's
}

func (e *event) isAppeal() bool { return e.What == "" }

// items returns the items that store an event: first the event, then the deed.
func (e *event) items() []core.Item {
	if e.isAppeal() {
		return []core.Item{values.New(e.about, appealKey+e.id, e)}
	}
	list := []core.Item{values.New(e.about, logKey+e.id, e)}
	if !e.by.IsZero() {
		list = append(list, values.New(e.by, didKey+e.id, deed{e.At, e.What, e.Place, e.byName}))
	}
	return list
}

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

// modLog holds the events and the open appeals, oldest first, as they are stored. It is not safe for concurrent use.
type modLog struct {
	events []event
	last   int64 // the highest id so far
}

// stamp sets the time of an event, and an id that increases with time.
func (l *modLog) stamp(e *event, now time.Time) {
	l.last = max(l.last+1, now.UnixNano())
	e.At, e.id = now, formatID(l.last)
}

// formatID formats an id. Ids of present times have the same length, so that they sort.
func formatID(n int64) string { return strconv.FormatInt(n, 36) }

// add adds an event. If the log is full, it drops the oldest event about the same path, else the
// oldest of all, and returns the items that remove it from the store.
func (l *modLog) add(e event) (gone []core.Item) {
	maxAll, maxEach := maxEvents, maxEventsEach
	if e.isAppeal() {
		maxAll, maxEach = maxAppeals, maxAppealsEach
	}
	all, same, oldest := 0, 0, 0
	for i := len(l.events) - 1; i >= 0 && same < maxEach; i-- {
		if l.events[i].isAppeal() != e.isAppeal() {
			continue
		}
		all, oldest = all+1, i
		if l.events[i].about == e.about {
			same++
		}
	}
	if same == maxEach || all >= maxAll {
		gone = removals(l.events[oldest].items())
		l.events = slices.Delete(l.events, oldest, oldest+1)
	}
	l.events = append(l.events, e)
	return gone
}

// remove removes and returns the events for which the function returns true.
func (l *modLog) remove(which func(*event) bool) (gone []event) {
	l.events = slices.DeleteFunc(l.events, func(e event) bool {
		taken := which(&e)
		if taken {
			gone = append(gone, e)
		}
		return taken
	})
	return gone
}

// read adds a stored event or appeal. finish must be called after the last one.
func (l *modLog) read(item *core.Item, id string) error {
	e := event{id: id, about: item.Path}
	if err := item.Decode(&e); err != nil {
		return err
	}
	l.events = append(l.events, e)
	if n, err := strconv.ParseInt(id, 36, 64); err == nil {
		l.last = max(l.last, n)
	}
	return nil
}

// finish sorts the events, and sets who caused them from the deeds. It returns the deeds whose event is gone.
func (l *modLog) finish(deeds []core.Item) (orphans []core.Item, err error) {
	sorting.Sort(l.events, func(a, b event) int { return cmp.Compare(a.id, b.id) })
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

// removals turns items into ones that remove them from the store.
func removals(items []core.Item) []core.Item {
	for i := range items {
		items[i].Value, items[i].Version = nil, core.AnyVersion
	}
	return items
}
