package discord

import (
	"context"
	"log/slog"
	"maps"
	"time"

	"synthbot/core/driver"
	"synthbot/core/recent"
	"synthbot/core/sorting"
)

// replyAge is how long an answer to an interaction is attempted. Discord accepts it a little longer.
const replyAge = 14 * time.Minute

// repliesKey is the State's key of the commands that wait for their answer.
const repliesKey = "replies"

// pending is a command or a press of a button that waits for an answer. For a command, Discord shows that the bot
// is thinking until then.
type pending struct {
	ID      string    `json:"id"`
	App     string    `json:"app"`
	Token   string    `json:"token"`
	Channel string    `json:"channel"`
	At      time.Time `json:"at"`

	Answered bool `json:"answered,omitempty"` // further answers can follow until the turn ends
}

func (i *interaction) pending() pending {
	return pending{ID: i.ID, App: i.App, Token: i.Token, Channel: i.Channel, At: time.Now()}
}

// acknowledged blocks until an interaction was acknowledged, because Discord refuses earlier answers. It returns
// false if ctx ends first. Unknown interactions were acknowledged by an earlier process.
func (r *replies) acknowledged(ctx context.Context, id string) bool {
	c, _ := r.arrived.Get(id)
	if c == nil || c.acknowledged == nil {
		return true
	}
	select {
	case <-c.acknowledged:
		return true
	case <-ctx.Done():
		return false
	}
}

// over reports whether it is too late for an answer.
func (p *pending) over() bool { return time.Since(p.At) >= replyAge }

// replies are the commands whose turn has not ended. They are stored, so that a later process, or the driver after
// a reload, can answer them. Safe for concurrent use.
type replies struct {
	state driver.State
	log   *slog.Logger

	arrived *recent.Shared[string, *arrival] // the latest interactions, by id: a resumed session repeats them
}

func (r *replies) add(p pending) {
	r.update(func(all map[string]pending) { all[p.ID] = p })
}

// list returns the commands that can still be answered and that match accepts, the oldest first.
func (r *replies) list(match func(pending) bool) []pending {
	var all map[string]pending
	_ = driver.Load(context.Background(), r.state, repliesKey, &all) // without them, messages are sent instead
	maps.DeleteFunc(all, func(_ string, p pending) bool { return p.over() || !match(p) })
	return sorting.Sorted(maps.Values(all), func(a, b pending) int { return a.At.Compare(b.At) })
}

func (r *replies) answer(p pending) {
	r.update(func(all map[string]pending) {
		if now, ok := all[p.ID]; ok {
			now.Answered = true
			all[p.ID] = now
		}
	})
}

// drop removes a command whose turn has ended, or that cannot be answered.
func (r *replies) drop(p pending) {
	r.update(func(all map[string]pending) { delete(all, p.ID) })
}

// update calls change with the commands that can still be answered, and stores the result.
func (r *replies) update(change func(map[string]pending)) {
	_, err := driver.Update(context.Background(), r.state, repliesKey, func(all *map[string]pending) bool {
		if *all == nil {
			*all = make(map[string]pending)
		}
		maps.DeleteFunc(*all, func(_ string, p pending) bool { return p.over() })
		change(*all)
		return true
	})
	if err != nil {
		r.log.Error("state of a command not stored", "err", err)
	}
}
