package discord

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"synthbot/core/driver"
	"synthbot/core/sorting"
)

// Limits of stored cursors. Channels without recent messages to or from the bot are dropped first.
const (
	maxCursors       = 500
	maxDirectCursors = 400 // of direct messages that survive an eviction
)

const cursorKey = "channels"

// cursor says up to which message a channel's messages are stored.
type cursor struct {
	place
	Last  string    `json:"last"`           // the newest message before which all are durable
	Awake time.Time `json:"awake,omitzero"` // when the bot was last addressed there, or wrote
	Seen  time.Time `json:"seen,omitzero"`  // when Last was received
	Said  string    `json:"said,omitempty"` // the newest of the bot's own messages and of those after missing ones

	failed time.Time // when fetching the messages after Last failed; zero: none are missing
}

func (c *cursor) newest() string {
	return slices.MaxFunc([]string{c.Last, c.Said}, compareIDs)
}

// cursors hold the last stored message of each channel, so that missed ones can be fetched. Safe for concurrent use.
type cursors struct {
	state driver.State

	mu    sync.Mutex
	all   map[string]*cursor
	dirty bool // something is not stored yet
	added bool // a new channel is not stored yet
}

func newCursors(s driver.State) *cursors { return &cursors{state: s, all: make(map[string]*cursor)} }

// load reads the stored cursors, which another process may have changed.
func (c *cursors) load(ctx context.Context) error {
	var all map[string]*cursor
	err := driver.Load(ctx, c.state, cursorKey, &all)
	c.mu.Lock()
	defer c.mu.Unlock()
	for channel, cur := range all {
		if cur != nil {
			c.all[channel] = cur
		}
	}
	return err
}

// flush stores the cursors if they have changed, or with onlyNew if there is a new channel.
func (c *cursors) flush(ctx context.Context, onlyNew bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.dirty || onlyNew && !c.added {
		return nil
	}
	err := driver.Save(ctx, c.state, cursorKey, c.all)
	c.dirty, c.added = err != nil, false
	return err
}

// recordStored records a message that is durable. awake means that it was from or to the bot.
func (c *cursors) recordStored(channel string, p place, id string, at time.Time, awake bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	cur, known := c.all[channel]
	if !known {
		c.evict()
		cur = &cursor{place: p}
		c.all[channel] = cur
	}
	newest := &cur.Last
	if !cur.failed.IsZero() {
		newest = &cur.Said
	}
	if newer(id, *newest) {
		*newest = id
	}
	cur.Seen, c.dirty = at, true
	if awake {
		cur.Awake = at
	}
}

// expect adds an unknown channel before its first message is durable, so that the message can be fetched if the
// process ends.
func (c *cursors) expect(channel string, p place, id string, at time.Time) {
	n, err := strconv.ParseUint(id, 10, 64)
	c.mu.Lock()
	defer c.mu.Unlock()
	_, known := c.all[channel]
	if known || err != nil || n == 0 {
		return
	}
	c.evict()
	c.all[channel] = &cursor{place: p, Last: strconv.FormatUint(n-1, 10), Seen: at}
	c.dirty, c.added = true, true
}

// recordFetch records when fetching the messages after a given one failed, or with zero that it succeeded. Until it
// has succeeded, Last does not move.
func (c *cursors) recordFetch(channel string, p place, last string, failed time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	cur, known := c.all[channel]
	switch {
	case known:
		cur.failed = failed
	case !failed.IsZero():
		c.evict()
		c.all[channel] = &cursor{place: p, Last: last, Seen: failed, failed: failed}
		c.dirty, c.added = true, true
	}
}

// failedBefore returns the guilds of the channels whose fetch failed before a time, by channel.
func (c *cursors) failedBefore(t time.Time) map[string]string {
	c.mu.Lock()
	defer c.mu.Unlock()
	guilds := make(map[string]string)
	for id, cur := range c.all {
		if !cur.failed.IsZero() && cur.failed.Before(t) {
			guilds[id] = cur.Guild
		}
	}
	return guilds
}

func (c *cursors) recordSent(channel, id string, at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	cur, known := c.all[channel]
	if known {
		cur.Awake, c.dirty = at, true
		if newer(id, cur.Said) {
			cur.Said = id
		}
	}
}

// evict drops channels if there are too many, those that used the bot least recently first. Direct messages
// are kept longest, because Discord does not list them. c.mu is held.
func (c *cursors) evict() {
	if len(c.all) < maxCursors {
		return
	}
	private, room := 0, maxCursors*9/10
	var others []string
	for _, id := range c.byLastUse() {
		switch {
		case c.all[id].Guild != "":
			others = append(others, id)
		case private < maxDirectCursors:
			private++
		default:
			delete(c.all, id)
		}
	}
	for _, id := range others[min(room-private, len(others)):] {
		delete(c.all, id)
	}
}

// byLastUse lists the channels, beginning with the one where the bot was last addressed. c.mu is held.
func (c *cursors) byLastUse() []string {
	return sorting.Sorted(maps.Keys(c.all), func(a, b string) int {
		x, y := c.all[a], c.all[b]
		return cmp.Or(y.Awake.Compare(x.Awake), y.Seen.Compare(x.Seen))
	})
}

// each calls yield with a copy of each cursor, in the order of byLastUse. Meanwhile, cursors may change.
func (c *cursors) each(yield func(channel string, cur cursor) bool) {
	c.mu.Lock()
	channels := c.byLastUse()
	c.mu.Unlock()
	for _, id := range channels {
		cur, ok := c.get(id)
		if ok && !yield(id, cur) {
			return
		}
	}
}

func (c *cursors) get(channel string) (cursor, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if cur, ok := c.all[channel]; ok {
		return *cur, true
	}
	return cursor{}, false
}

func (c *cursors) drop(match func(channel string, cur *cursor) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := len(c.all)
	maps.DeleteFunc(c.all, match)
	c.dirty = c.dirty || len(c.all) < before
}
