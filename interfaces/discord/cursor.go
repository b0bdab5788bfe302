package discord

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"strconv"
	"sync"
	"time"

	"synthbot/core/driver"
	"synthbot/core/sorting"
)

// How many channels are remembered, and how many of direct messages if others must make
// room. The longest silent ones are forgotten first.
const (
	maxCursors       = 500
	maxDirectCursors = 400
)

const cursorKey = "channels"

// cursor is how far a channel was taken in.
type cursor struct {
	place
	Last  string    `json:"last"`           // the newest message that is durable
	Awake time.Time `json:"awake,omitzero"` // when the bot was last spoken to there, or spoke
	Seen  time.Time `json:"seen,omitzero"`
	Said  string    `json:"said,omitempty"` // the newest message of the bot's own
}

// newest is the newest message that is known in the channel.
func (c *cursor) newest() string {
	if newer(c.Said, c.Last) {
		return c.Said
	}
	return c.Last
}

// cursors remember the last message seen in each channel, so that what was
// missed can be fetched. Safe for concurrent use.
type cursors struct {
	state driver.State

	mu    sync.Mutex
	all   map[string]*cursor
	dirty bool
	added bool // a channel that the State does not know
}

func newCursors(s driver.State) *cursors { return &cursors{state: s, all: make(map[string]*cursor)} }

// load reads what is stored, unless channels are known.
func (c *cursors) load(ctx context.Context) error {
	c.mu.Lock()
	known := len(c.all) > 0 || c.dirty
	c.mu.Unlock()
	if known {
		return nil
	}
	return c.reload(ctx)
}

// reload reads what is stored, perhaps by another process since.
func (c *cursors) reload(ctx context.Context) error {
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

// flush stores what changed.
func (c *cursors) flush(ctx context.Context) error {
	c.mu.Lock()
	if !c.dirty {
		c.mu.Unlock()
		return nil
	}
	c.dirty, c.added = false, false
	raw, err := json.Marshal(c.all)
	c.mu.Unlock()
	if err == nil {
		err = c.state.Put(ctx, cursorKey, raw)
	}
	if err != nil {
		c.mu.Lock()
		c.dirty = true
		c.mu.Unlock()
	}
	return err
}

// seen is called when a message of a channel is durable.
func (c *cursors) seen(channel string, p place, id string, at time.Time, awake bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	cur, known := c.all[channel]
	if !known {
		c.evict()
		cur = &cursor{place: p}
		c.all[channel] = cur
	}
	if newer(id, cur.Last) {
		cur.Last = id
	}
	cur.Seen, c.dirty = at, true
	if awake {
		cur.Awake = at
	}
}

// expect adds an unknown channel before its first message is durable, so that this
// message can be fetched later.
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

// fresh reports whether there is a channel that the State does not know.
func (c *cursors) fresh() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.added
}

// spoke is called when the bot has sent a message.
func (c *cursors) spoke(channel, id string, at time.Time) {
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

// evict makes room: first the channels where the bot was not spoken to go. Direct messages
// go last, because Discord does not list them.
func (c *cursors) evict() {
	if len(c.all) < maxCursors {
		return
	}
	private, room := 0, maxCursors*9/10
	var others []string
	for _, id := range c.byNeed() {
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

// byNeed lists the channels; the first is the one where the bot was spoken to last. c.mu is held.
func (c *cursors) byNeed() []string {
	return sorting.Sorted(maps.Keys(c.all), func(a, b string) int {
		x, y := c.all[a], c.all[b]
		return cmp.Or(y.Awake.Compare(x.Awake), y.Seen.Compare(x.Seen))
	})
}

// list returns the channels in the order of byNeed.
func (c *cursors) list() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.byNeed()
}

func (c *cursors) get(channel string) (cursor, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if cur, ok := c.all[channel]; ok {
		return *cur, true
	}
	return cursor{}, false
}

// drop forgets the channels that match accepts.
func (c *cursors) drop(match func(channel string, cur *cursor) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := len(c.all)
	maps.DeleteFunc(c.all, match)
	c.dirty = c.dirty || len(c.all) < before
}
