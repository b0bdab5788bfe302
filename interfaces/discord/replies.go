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

// replyAge is how long Discord accepts an answer, less a little.
const replyAge = 14 * time.Minute

// repliesKey is the State's key of the commands that wait for their answer.
const repliesKey = "replies"

// pending is a command, which shows that the bot is thinking until it is answered, or a
// press.
type pending struct {
	ID      string    `json:"id"`
	App     string    `json:"app"`
	Token   string    `json:"token"`
	Channel string    `json:"channel"`
	At      time.Time `json:"at"`

	Answered bool `json:"answered,omitempty"` // further answers can follow until the turn ends

	// taken is closed when it was acknowledged: before, an answer is refused. It is nil if
	// that was in an earlier process.
	taken <-chan struct{}
}

// ready waits until an answer is accepted; it returns false if ctx ended before.
func (p *pending) ready(ctx context.Context) bool {
	if p.taken == nil {
		return true
	}
	select {
	case <-p.taken:
		return true
	case <-ctx.Done():
		return false
	}
}

// over reports whether an answer is too late.
func (p *pending) over() bool { return time.Since(p.At) >= replyAge }

// replies are the commands whose turn is not over. A later process can answer them too, and
// so can the driver of another configuration. Safe for concurrent use.
type replies struct {
	state driver.State
	log   *slog.Logger

	taken *recent.Shared[string, <-chan struct{}] // those of this process, by id
}

// add adds one that waits from now on.
func (r *replies) add(p pending) {
	r.taken.Put(p.ID, p.taken)
	r.update(func(all map[string]pending) { all[p.ID] = p })
}

// find returns the oldest one that match accepts.
func (r *replies) find(match func(pending) bool) (pending, bool) {
	all, _ := r.noted()
	byAge := func(a, b pending) int { return a.At.Compare(b.At) }
	for _, p := range sorting.Sorted(maps.Values(all), byAge) {
		if match(p) {
			p.taken, _ = r.taken.Get(p.ID)
			return p, true
		}
	}
	return pending{}, false
}

// answer marks one as answered.
func (r *replies) answer(p pending) {
	r.update(func(all map[string]pending) {
		if now, ok := all[p.ID]; ok {
			now.Answered = true
			all[p.ID] = now
		}
	})
}

// drop removes one whose turn is over, or that cannot be answered.
func (r *replies) drop(p pending) {
	r.update(func(all map[string]pending) { delete(all, p.ID) })
}

// noted reads those that can still be answered.
func (r *replies) noted() (all map[string]pending, err error) {
	err = driver.Load(context.Background(), r.state, repliesKey, &all)
	maps.DeleteFunc(all, func(_ string, p pending) bool { return p.over() })
	return all, err
}

// update stores what change changed of those that can still be answered.
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
		r.log.Error("whether a command waits for its answer is not noted", "err", err)
	}
}
