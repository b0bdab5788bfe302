package discord

import (
	"context"
	"log/slog"
	"maps"
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

// pendings are stored by id.
type pendings map[string]pending

func (all pendings) dropOver() {
	maps.DeleteFunc(all, func(_ string, p pending) bool { return p.over() })
}

// replies are the commands whose turn is not over, or presses. Those in the State can be
// answered by a later process, and by the driver of another configuration. Safe for
// concurrent use.
type replies struct {
	state driver.State // nil: lost with the process
	log   *slog.Logger

	mu       sync.Mutex
	all      pendings
	recalled bool // what an earlier process left was read
}

func newReplies(s driver.State, log *slog.Logger) *replies {
	return &replies{state: s, log: log, all: make(pendings)}
}

// add adds one that waits from now on.
func (r *replies) add(p pending) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.refresh()
	p.kept = r.update(func(all pendings) bool {
		all[p.ID] = p
		return true
	})
	r.all[p.ID] = p
}

// find returns the oldest one that match accepts.
func (r *replies) find(match func(pending) bool) (pending, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.refresh()
	byAge := func(a, b pending) int { return a.At.Compare(b.At) }
	for _, p := range slices.SortedFunc(maps.Values(r.all), byAge) {
		if match(p) {
			return p, true
		}
	}
	return pending{}, false
}

// answer marks one as answered.
func (r *replies) answer(p pending) {
	r.mu.Lock()
	defer r.mu.Unlock()
	mark := func(all pendings) bool {
		now, there := all[p.ID]
		if there {
			now.Answered = true
			all[p.ID] = now
		}
		return there
	}
	mark(r.all)
	r.update(mark)
}

// drop removes one whose turn is over, or that cannot be answered.
func (r *replies) drop(p pending) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.all, p.ID)
	r.update(func(all pendings) bool {
		_, there := all[p.ID]
		delete(all, p.ID)
		return there
	})
}

// refresh takes over what the State says. It leaves everything as it is if the State
// cannot be read. r.mu is held.
func (r *replies) refresh() {
	r.all.dropOver()
	if r.recalled && len(r.all) == 0 {
		return
	}
	noted, err := r.noted()
	if err != nil {
		return
	}
	for id, p := range noted {
		if !r.recalled {
			p.kept = true
			r.all[id] = p
		}
	}
	r.recalled = true
	for id, p := range r.all {
		now, there := noted[id]
		if p.kept && !there {
			delete(r.all, id)
			continue
		}
		p.Answered = p.Answered || now.Answered
		r.all[id] = p
	}
}

// noted reads from the State those that can still be answered.
func (r *replies) noted() (all pendings, err error) {
	if r.state != nil {
		err = driver.Load(context.Background(), r.state, repliesKey, &all)
	}
	all.dropOver()
	return all, err
}

// update changes the notes where change returns true; it reports whether that is done.
func (r *replies) update(change func(pendings) bool) bool {
	if r.state == nil {
		return false
	}
	ok, err := driver.Update(context.Background(), r.state, repliesKey, func(all *pendings) bool {
		if *all == nil {
			*all = make(pendings)
		}
		all.dropOver()
		return change(*all)
	})
	if err != nil {
		r.log.Error("whether a command waits for its answer is not noted", "err", err)
	}
	return ok
}
