package discord

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"synthbot/core/driver"
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
	kept  bool // the State has it
}

// ready waits until an answer is accepted; it returns false if ctx ended before.
func (p *pending) ready(ctx context.Context) bool {
	return p.taken == nil || received(ctx, p.taken)
}

// over reports whether an answer is too late.
func (p *pending) over() bool { return time.Since(p.At) >= replyAge }

// replies are the commands whose turn is not over, or presses. Those in the State can be
// answered by a later process. Safe for concurrent use.
type replies struct {
	state driver.State // nil: lost with the process
	log   *slog.Logger

	mu  sync.Mutex
	all []pending

	first sync.Once  // of reading what an earlier process left
	notes sync.Mutex // of reading and changing the State
}

func newReplies(s driver.State, log *slog.Logger) *replies { return &replies{state: s, log: log} }

// add adds one that waits from now on.
func (r *replies) add(p pending) {
	r.recall()
	p.kept = r.change(func(all map[string]pending) bool {
		all[p.ID] = p
		return true
	})
	r.mu.Lock()
	defer r.mu.Unlock()
	kept := r.all[:0]
	for _, o := range r.all {
		if p.At.Sub(o.At) < replyAge {
			kept = append(kept, o)
		}
	}
	r.all = append(kept, p)
}

// find returns the oldest one that match accepts, as the State has it: the driver of
// another configuration may have answered it.
func (r *replies) find(match func(pending) bool) (pending, bool) {
	r.recall()
	r.mu.Lock()
	all := slices.Clone(r.all)
	r.mu.Unlock()
	for _, p := range all {
		if !match(p) || p.over() {
			continue
		}
		now, there := r.noted()[p.ID]
		switch {
		case p.kept && !there:
			r.forget(p.ID)
			continue
		case p.kept && now.Answered && !p.Answered:
			r.mark(p.ID)
			p.Answered = true
		}
		if match(p) {
			return p, true
		}
	}
	return pending{}, false
}

// answer marks one as answered.
func (r *replies) answer(p pending) {
	r.mark(p.ID)
	r.change(func(all map[string]pending) bool {
		now, there := all[p.ID]
		now.Answered = true
		if there {
			all[p.ID] = now
		}
		return there
	})
}

func (r *replies) mark(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.all {
		if r.all[i].ID == id {
			r.all[i].Answered = true
		}
	}
}

// drop removes one whose turn is over, or that cannot be answered.
func (r *replies) drop(p pending) {
	r.forget(p.ID)
	r.change(func(all map[string]pending) bool {
		_, there := all[p.ID]
		delete(all, p.ID)
		return there
	})
}

func (r *replies) forget(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = slices.DeleteFunc(r.all, func(p pending) bool { return p.ID == id })
}

// recall reads once what an earlier process left.
func (r *replies) recall() {
	r.first.Do(func() {
		for _, p := range r.noted() {
			p.kept = true
			r.all = append(r.all, p)
		}
		slices.SortFunc(r.all, func(a, b pending) int { return a.At.Compare(b.At) })
	})
}

// noted reads from the State, by id, those that can still be answered.
func (r *replies) noted() map[string]pending {
	all := make(map[string]pending)
	if r.state == nil {
		return all
	}
	_ = driver.Load(context.Background(), r.state, repliesKey, &all) // what cannot be read is not there
	for id, p := range all {
		if p.over() {
			delete(all, id)
		}
	}
	return all
}

// change changes the notes where change returns true; it reports whether that is
// done.
func (r *replies) change(change func(map[string]pending) bool) bool {
	if r.state == nil {
		return false
	}
	r.notes.Lock()
	defer r.notes.Unlock()
	all := r.noted()
	if !change(all) {
		return false
	}
	err := driver.Save(context.Background(), r.state, repliesKey, all)
	if err != nil {
		r.log.Error("whether a command waits for its answer is not noted", "err", err)
	}
	return err == nil
}
