package moderation

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"synthbot/core"
)

// What happened.
const (
	wasBlocked   = "blocked"
	wasUnblocked = "unblocked"
	wasMuted     = "muted"
	wasUnmuted   = "unmuted"
	wasLimited   = "limited"
	wasRepeating = "repeating"
	wasFlooding  = "flooding"
	wasWalling   = "walling"
	brokeRule    = "rule"
	hasAppealed  = "appealed"
)

// Bounds of what is logged.
const (
	maxEvents  = 2000 // in all
	maxHis     = 20   // of one person, or of one place
	maxAppeals = 500
	maxOnce    = 3 // appeals of one person
	maxQueue   = 1024
)

const (
	logKey    = "log "
	didKey    = "did "
	appealKey = "appeal "
)

// event is something that happened, as it is kept under the path that it is
// about.
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
	about  core.Path // a person, or the place that was muted
	by     core.Path // zero: the bot, or somebody who was forgotten
	byName string
}

// deed is what is kept of an event under the path of who did it.
type deed struct {
	At    time.Time `json:"at"`
	What  string    `json:"what"`
	Place core.Path `json:"place,omitzero"`
	Name  string    `json:"name,omitempty"` // his own
}

// appeal is what a person wrote who does not want to be blocked.
type appeal struct {
	At   time.Time `json:"at"`
	Name string    `json:"name,omitempty"`
	Text string    `json:"text"`

	id     string
	person core.Path
}

// journal is what moderators are shown, oldest first. It mirrors what is on
// disk. It is not safe for concurrent use.
type journal struct {
	events  []event
	appeals []appeal
	last    int64 // of the ids that were given
}

// number gives an id that rises with time.
func (j *journal) number(now time.Time) string {
	j.last = max(j.last+1, now.UnixNano())
	return numbered(j.last)
}

// numbered is of the same length for all times of this age, so that ids sort.
func numbered(n int64) string { return strconv.FormatInt(n, 36) }

// add takes an event in, and returns those that give way to it.
func (j *journal) add(e event) (gone []event) {
	his := 0
	for i := len(j.events) - 1; i >= 0; i-- {
		if j.events[i].about != e.about {
			continue
		}
		if his++; his >= maxHis {
			gone = append(gone, j.events[i])
			j.events = slices.Delete(j.events, i, i+1)
			break
		}
	}
	if len(j.events) >= maxEvents {
		gone = append(gone, j.events[0])
		j.events = slices.Delete(j.events, 0, 1)
	}
	j.events = append(j.events, e)
	return gone
}

// appealed takes an appeal in, and returns those that give way to it.
func (j *journal) appealed(a appeal) (gone []appeal) {
	his := 0
	for i := len(j.appeals) - 1; i >= 0; i-- {
		if j.appeals[i].person != a.person {
			continue
		}
		if his++; his >= maxOnce {
			gone = append(gone, j.appeals[i])
			j.appeals = slices.Delete(j.appeals, i, i+1)
			break
		}
	}
	if len(j.appeals) >= maxAppeals {
		gone = append(gone, j.appeals[0])
		j.appeals = slices.Delete(j.appeals, 0, 1)
	}
	j.appeals = append(j.appeals, a)
	return gone
}

// of returns a person's appeals, oldest first.
func (j *journal) of(person core.Path) (his []appeal) {
	for _, a := range j.appeals {
		if a.person == person {
			his = append(his, a)
		}
	}
	return his
}

// settled takes a person's appeals out.
func (j *journal) settled(person core.Path) (gone []appeal) {
	gone = j.of(person)
	j.appeals = slices.DeleteFunc(j.appeals, func(a appeal) bool { return a.person == person })
	return gone
}

// older returns what was logged before.
func (j *journal) older(before time.Time) (events []event, appeals []appeal) {
	for _, e := range j.events {
		if e.At.Before(before) {
			events = append(events, e)
		}
	}
	for _, a := range j.appeals {
		if a.At.Before(before) {
			appeals = append(appeals, a)
		}
	}
	return events, appeals
}

// expire takes out what was logged before.
func (j *journal) expire(before time.Time) {
	j.events = slices.DeleteFunc(j.events, func(e event) bool { return e.At.Before(before) })
	j.appeals = slices.DeleteFunc(j.appeals, func(a appeal) bool { return a.At.Before(before) })
}

// forget takes out what is about a person, which it returns, and who he was where
// he did something.
func (j *journal) forget(person core.Path) (gone []event) {
	j.events = slices.DeleteFunc(j.events, func(e event) bool {
		if e.about == person {
			gone = append(gone, e)
		}
		return e.about == person
	})
	for i := range j.events {
		if e := &j.events[i]; e.by == person {
			e.by, e.byName = core.Path{}, ""
		}
	}
	j.settled(person)
	return gone
}

// items are what is on disk of an event, what is about it first.
func (e *event) items() []core.Item {
	list := []core.Item{{Path: e.about, Key: logKey + e.id, Version: core.AnyVersion, Value: encode(e)}}
	if !e.by.IsZero() {
		list = append(list, core.Item{Path: e.by, Key: didKey + e.id, Version: core.AnyVersion, Value: encode(deed{e.At, e.What, e.Place, e.byName})})
	}
	return list
}

// encode writes a value of ours.
func encode(v any) json.RawMessage {
	raw, err := json.Marshal(v)
	if err != nil {
		return json.RawMessage("null") // structs of texts and times can be encoded
	}
	return raw
}

// removal takes items away.
func removal(items []core.Item) []core.Item {
	for i := range items {
		items[i].Value, items[i].Version = nil, core.AnyVersion
	}
	return items
}

// read takes over what is on disk: first events and appeals, then, by a second
// call with them, who did what.
func (j *journal) read(item core.Item) error {
	id, isEvent := strings.CutPrefix(item.Key, logKey)
	if isEvent {
		e := event{id: id, about: item.Path}
		if err := json.Unmarshal(item.Value, &e); err != nil {
			return err
		}
		j.events = append(j.events, e)
	} else {
		a := appeal{id: strings.TrimPrefix(item.Key, appealKey), person: item.Path}
		if err := json.Unmarshal(item.Value, &a); err != nil {
			return err
		}
		j.appeals = append(j.appeals, a)
		id = a.id
	}
	if n, err := strconv.ParseInt(id, 36, 64); err == nil {
		j.last = max(j.last, n)
	}
	return nil
}

// attach sorts what was read, and tells of each event who did it. It returns the
// deeds whose event is gone.
func (j *journal) attach(deeds []core.Item) (orphans []core.Item, err error) {
	slices.SortFunc(j.events, func(a, b event) int { return cmp.Compare(a.id, b.id) })
	slices.SortFunc(j.appeals, func(a, b appeal) int { return cmp.Compare(a.id, b.id) })
	for _, item := range deeds {
		id := strings.TrimPrefix(item.Key, didKey)
		i, ok := slices.BinarySearchFunc(j.events, id, func(e event, id string) int { return cmp.Compare(e.id, id) })
		if !ok {
			orphans = append(orphans, item)
			continue
		}
		var d deed
		if err := json.Unmarshal(item.Value, &d); err != nil {
			return nil, err
		}
		j.events[i].by, j.events[i].byName = item.Path, d.Name
	}
	return orphans, nil
}
