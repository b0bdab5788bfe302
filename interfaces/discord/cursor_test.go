package discord

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"synthbot/core/driver"

	"synthbot/core"
	"synthbot/interfaces/discord/discordtest"
)

// countingState is a State that counts reads and writes and can be made to fail.
type countingState struct {
	driver.State
	mu     sync.Mutex
	writes int
	reads  map[string]int // by key
	broken error
}

// failWith makes every read and write fail from now on, or succeed if err is nil.
func (c *countingState) failWith(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.broken = err
}

// fails returns the error of a read or write.
func (c *countingState) fails(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return errors.Join(c.broken, ctx.Err())
}

func (c *countingState) Get(ctx context.Context, key string) ([]byte, error) {
	if err := c.fails(ctx); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.reads == nil {
		c.reads = make(map[string]int)
	}
	c.reads[key]++
	return c.State.Get(ctx, key)
}

// readsOf returns how often a key was read.
func (c *countingState) readsOf(key string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.reads[key]
}

func (c *countingState) Put(ctx context.Context, key string, value []byte) error {
	if err := c.fails(ctx); err != nil {
		return err
	}
	c.mu.Lock()
	c.writes++
	c.mu.Unlock()
	return c.State.Put(ctx, key, value)
}

// noon returns a time some minutes after noon.
func noon(minutes int) time.Time {
	return time.Date(2026, 11, 20, 12, minutes, 0, 0, time.UTC)
}

// TestCursors: the cursor of a channel only moves forward, and each change is written once.
func TestCursors(t *testing.T) {
	state := &countingState{State: newState()}
	c := newCursors(state)
	check := func(what string, want cursor) {
		t.Helper()
		if got, _ := c.get("5"); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, want %+v", what, got, want)
		}
	}
	flush := func(writes int) {
		t.Helper()
		if err := c.flush(t.Context(), false); err != nil || state.writes != writes || c.added {
			t.Errorf("%v; written %d times, want %d; new channels left: %v", err, state.writes, writes, c.added)
		}
	}
	flush(0)
	c.recordSent("5", "90", noon(0))
	if _, known := c.get("5"); known {
		t.Error("a channel became known by a message of the bot")
	}
	flush(0)
	p := place{Guild: "1", Parent: "2"}
	for _, id := range []string{"", "x", "0", "-1", "99999999999999999999999"} {
		c.expect("5", p, id, noon(0))
	}
	if c.added {
		t.Error("a channel became known by an invalid message id")
	}
	c.expect("5", p, "100", noon(1))
	check("expected", cursor{place: p, Last: "99", Seen: noon(1)})
	if !c.added {
		t.Error("the channel was not marked as new")
	}
	c.expect("5", place{Guild: "7"}, "200", noon(2))
	check("expected again", cursor{place: p, Last: "99", Seen: noon(1)})
	flush(1)
	flush(1)
	c.recordStored("5", place{Guild: "7"}, "100", noon(3), false)
	check("seen", cursor{place: p, Last: "100", Seen: noon(3)})
	c.recordStored("5", p, "98", noon(4), true)
	check("an older one seen", cursor{place: p, Last: "100", Seen: noon(4), Awake: noon(4)})
	flush(2)
	c.recordSent("5", "101", noon(5))
	flush(3)
	c.recordSent("5", "99", noon(6))
	want := cursor{place: p, Last: "100", Seen: noon(4), Awake: noon(6), Said: "101"}
	check("spoke", want)
	if got := want.newest(); got != "101" {
		t.Errorf("newest: got %s, want 101", got)
	}
	if got := (&cursor{Last: "102", Said: "101"}).newest(); got != "102" {
		t.Errorf("newest: got %s, want 102", got)
	}
	flush(4)
	state.failWith(errors.New("no room"))
	c.recordStored("5", p, "102", noon(7), false)
	if err := c.flush(t.Context(), false); err == nil {
		t.Error("flush succeeded on a full store")
	}
	state.failWith(nil)
	flush(5)
	next := newCursors(state)
	if err := next.load(t.Context()); err != nil {
		t.Fatal(err)
	}
	want.Last, want.Seen = "102", noon(7)
	if got, known := next.get("5"); !known || !reflect.DeepEqual(got, want) {
		t.Errorf("loaded %+v, want %+v", got, want)
	}
	if got := storedPlace(state, "5"); !reflect.DeepEqual(got, p) {
		t.Errorf("place: got %+v, want %+v", got, p)
	}
}

// storedPlace returns the stored place of a channel.
func storedPlace(state driver.State, channel string) place {
	c := newCursors(state)
	_ = c.load(context.Background())
	cur, _ := c.get(channel)
	return cur.place
}

// TestCursorsThatAreLoaded: stored cursors are loaded. Damaged ones are an error, so that they are
// not overwritten by an empty list.
func TestCursorsThatAreLoaded(t *testing.T) {
	state := &countingState{State: newState()}
	c := newCursors(state)
	if err := c.load(t.Context()); err != nil {
		t.Errorf("nothing stored: %v", err)
	}
	if got := storedPlace(state, "5"); !reflect.DeepEqual(got, place{}) {
		t.Errorf("nothing stored: got %+v, want an empty place", got)
	}
	put := func(text string) { _ = state.Put(t.Context(), cursorKey, []byte(text)) }
	put(`{"5":{"last":"100"},"6":null}`)
	if err := c.load(t.Context()); err != nil || !slices.Equal(channels(c), []string{"5"}) {
		t.Errorf("got %v, %v, want channel 5", channels(c), err)
	}
	put(`{"7":`)
	if err := newCursors(state).load(t.Context()); err == nil || !strings.Contains(err.Error(), cursorKey) {
		t.Errorf("incomplete JSON: got %v, want an error that names the key", err)
	}
	broken := errors.New("an I/O error")
	state.failWith(broken)
	if err := newCursors(state).load(t.Context()); !errors.Is(err, broken) {
		t.Errorf("read error: got %v, want %v", err, broken)
	}
}

// TestCursorsThatAreDropped: dropped cursors are removed from the store, and nothing is written if
// none was dropped.
func TestCursorsThatAreDropped(t *testing.T) {
	state := &countingState{State: newState()}
	c := newCursors(state)
	for id, guild := range map[string]string{"1": "A", "2": "A", "3": "B", "4": ""} {
		c.recordStored(id, place{Guild: guild}, "100", noon(0), false)
	}
	for i, step := range []struct {
		drop   func()
		writes int
		left   string
	}{
		{func() { c.drop(func(_ string, cur *cursor) bool { return cur.Guild == "A" }) }, 2, "[3 4]"},
		{func() { c.drop(func(_ string, cur *cursor) bool { return cur.Guild == "A" }) }, 2, "[3 4]"},
		{func() { c.drop(func(id string, _ *cursor) bool { return id == "3" }) }, 3, "[4]"},
		{func() { c.drop(func(id string, _ *cursor) bool { return id == "3" }) }, 3, "[4]"},
	} {
		if err := c.flush(t.Context(), false); err != nil {
			t.Fatal(err)
		}
		step.drop()
		if err := c.flush(t.Context(), false); err != nil || state.writes != step.writes {
			t.Errorf("step %d: %v; written %d times, want %d", i, err, state.writes, step.writes)
		}
		if left := channels(c); fmt.Sprint(slices.Sorted(slices.Values(left))) != step.left {
			t.Errorf("step %d: got %v, want %s", i, left, step.left)
		}
	}
}

// TestCursorsMakeRoom: when too many channels are known, those that used the bot least recently
// are dropped. Up to a limit, direct messages are kept before others.
func TestCursorsMakeRoom(t *testing.T) {
	for _, tc := range []struct {
		direct, guilds         int
		keptDirect, keptGuilds int
	}{
		{0, maxCursors - 1, 0, maxCursors - 1},
		{100, maxCursors - 100, 100, maxCursors*9/10 - 100},
		{450, maxCursors - 450, maxDirectCursors, 50},
		{maxCursors, 0, maxDirectCursors, 0},
		{maxDirectCursors, maxCursors - maxDirectCursors, maxDirectCursors, 50},
		{0, maxCursors, 0, maxCursors * 9 / 10},
	} {
		c := newCursors(newState())
		add := func(prefix, guild string, n int) {
			for i := range n {
				id := fmt.Sprintf("%s%03d", prefix, i)
				c.all[id] = &cursor{place: place{Guild: guild}, Awake: noon(i / 10), Seen: noon(i)}
			}
		}
		add("d", "", tc.direct)
		add("g", "1", tc.guilds)
		c.recordStored("new", place{Guild: "1"}, "100", noon(0), false)
		if len(c.all) != tc.keptDirect+tc.keptGuilds+1 {
			t.Errorf("%+v: %d channels are left", tc, len(c.all))
		}
		for id := range c.all {
			var n, from int
			switch {
			case id[0] == 'd':
				from = tc.direct - tc.keptDirect
			case id[0] == 'g':
				from = tc.guilds - tc.keptGuilds
			default:
				continue
			}
			if _, err := fmt.Sscanf(id[1:], "%d", &n); err != nil || n < from {
				t.Errorf("%+v: %s was kept, want it dropped", tc, id)
			}
		}
		if _, known := c.get("new"); !known {
			t.Errorf("%+v: the new channel was dropped", tc)
		}
		add("g", "1", maxCursors)
		c.expect("newer", place{Guild: "1"}, "100", noon(0))
		if len(c.all) > maxCursors {
			t.Errorf("%+v: with an expected channel, %d are known, want at most %d", tc, len(c.all), maxCursors)
		}
	}
}

// TestCursorsByLastUse: channels are ordered by their last use of the bot, then by their last message.
func TestCursorsByLastUse(t *testing.T) {
	c := newCursors(newState())
	for id, minutes := range map[string][2]int{"1": {3, 9}, "2": {5, 6}, "3": {5, 7}, "4": {9, 0}, "5": {3, 10}} {
		c.all[id] = &cursor{Awake: noon(minutes[0]), Seen: noon(minutes[1])}
	}
	if got := channels(c); !slices.Equal(got, []string{"4", "3", "2", "5", "1"}) {
		t.Errorf("got %q, want 4, 3, 2, 5, 1", got)
	}
}

// TestCursorsThatCannotBeStored: a cursor that cannot be stored is stored later.
func TestCursorsThatCannotBeStored(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server) {
		state := &countingState{State: newState()}
		d, in := s.bot(t, func(o *Options) { o.State = state }), newInbox()
		s.listen(t, d, in)
		within(t, time.Minute, "connected", func() bool { return d.cache.known(guildID) })
		state.failWith(errors.New("no room"))
		s.Say(hallID, annID, hello())
		in.wait(t, core.KindMessage, 1)
		time.Sleep(time.Minute)
		state.failWith(nil)
		time.Sleep(time.Minute)
		next := newCursors(state)
		if err := next.load(t.Context()); err != nil {
			t.Fatal(err)
		}
		if cur, known := next.get(hallID); !known || cur.Guild != discordtest.GuildID {
			t.Errorf("got %+v, want a cursor of the guild", cur)
		}
	})
}

// channels returns the channels of the cursors, in their order.
func channels(c *cursors) (list []string) {
	for id := range c.each {
		list = append(list, id)
	}
	return list
}

// TestCursorWaitsForMissedMessages: while messages could not be fetched, the cursor of a channel stays before them,
// also of a channel that was unknown.
func TestCursorWaitsForMissedMessages(t *testing.T) {
	now := time.Now()
	c := newCursors(newState())
	c.recordFetch("1", place{Guild: guildID}, "10", now)
	c.expect("1", place{Guild: guildID}, "20", now)
	c.recordStored("1", place{Guild: guildID}, "20", now, false)
	if cur, _ := c.get("1"); cur.Last != "10" || cur.newest() != "20" {
		t.Errorf("got %+v, want 10 as the last and 20 as the newest message", cur)
	}
	if got := c.failedBefore(now); len(got) != 0 {
		t.Errorf("due at once: %v", got)
	}
	if got := c.failedBefore(now.Add(1)); got["1"] != guildID {
		t.Errorf("due later: %v", got)
	}
	c.recordFetch("1", place{Guild: guildID}, "10", time.Time{})
	c.recordStored("1", place{Guild: guildID}, "15", now, false)
	if cur, _ := c.get("1"); cur.Last != "15" || len(c.failedBefore(now.Add(1))) != 0 {
		t.Errorf("after they were fetched: got %+v", cur)
	}
	c.recordFetch("2", place{}, "10", time.Time{})
	if _, known := c.get("2"); known {
		t.Error("a fetch that succeeded made a cursor")
	}
}
