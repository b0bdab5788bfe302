package turn

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"synthbot/core"
)

// A turn is tried three times; after that it only apologises, and should even
// that not come to its end, it is set aside without a word. When the process
// dies, every turn that ran looks guilty, though one was at most: so the first
// two tries that a death cut short do not count, and from then on the turn is
// tried alone, with no other suspect beside it.
const (
	maxTries  = 3
	freeTries = 2
)

// Bounds of the time between two tries of a turn that failed.
const (
	minPause = 100 * time.Millisecond
	maxPause = 30 * time.Second
)

// sentPause is the least time before a message is sent again that may have arrived:
// whatever broke the connection may be over then.
const sentPause = time.Second

// errWithdrawn ends the thinking about a message that its author took back.
var errWithdrawn = errors.New("the message was deleted")

// errForgotten ends a turn before it began: somebody whom it answers is being
// forgotten. What is left when that is over waits on.
var errForgotten = errors.New("somebody is being forgotten")

// forgetPause is how long a place waits meanwhile before it looks again.
const forgetPause = 50 * time.Millisecond

// queue is one of the two queues of a place: chat commands do not wait for the
// turns of messages. Inside of a queue order holds, and a message waits for the
// commands before it.
type queue struct {
	path     core.Path
	commands bool
}

// next returns what of a place's waiting entries is the queue's turn now. other
// reports whether the place's other queue has to go on.
func (q queue) next(waiting []core.Entry) (mine []core.Entry, other bool) {
	first := slices.IndexFunc(waiting, func(e core.Entry) bool { return e.Kind == core.KindCommand })
	switch {
	case q.commands && first >= 0:
		return waiting[first : first+1], false
	case q.commands:
		return nil, len(waiting) > 0
	case first >= 0:
		return waiting[:first], first == 0
	}
	return waiting, false
}

// commandDepth is how many waiting entries are searched for a command.
const commandDepth = 1000

// depth is how many waiting entries the queue looks at.
func (q queue) depth() int {
	if q.commands {
		return commandDepth
	}
	return maxMerged
}

// worker takes the turns of one queue. Its goroutine lives while something
// waits.
type worker struct {
	queue queue
	turns *Turns

	panics     int                      // of the turn that is tried, in this life
	over       chan struct{}            // closed when it is asleep
	journals   map[core.TurnID]*journal // that this life wrote, until a turn ends
	unreported *unreported              // the end of the turn before; nil: it was told

	// Guarded by turns.mu.
	again  bool                    // something was received since the log was read
	gone   map[string]bool         // the messages deleted since the log was read
	asking map[string]bool         // the messages thought about, until a plan is accepted
	cancel context.CancelCauseFunc // ends that thinking
}

// deleted ends the thinking about the message. turns.mu is held.
func (p *worker) deleted(id string) {
	if p.gone != nil {
		p.gone[id] = true
	}
	if p.asking[id] {
		p.cancel(errWithdrawn)
	}
}

// thinking sets what the model thinks about and how that ends, until a plan is
// accepted. A nil cancel: nothing can be withdrawn.
func (p *worker) thinking(about []core.Entry, cancel context.CancelCauseFunc) {
	p.turns.mu.Lock()
	defer p.turns.mu.Unlock()
	p.cancel = cancel
	p.asking = make(map[string]bool, len(about))
	for i := range about {
		id := about[i].Message.ID
		p.asking[id] = true
		if p.gone[id] {
			cancel(errWithdrawn)
		}
	}
}

// run takes turns until nothing waits or life ends.
func (p *worker) run() {
	t := p.turns
	defer t.places.Done()
	defer close(p.over)
	for pause := time.Duration(0); ; {
		retried := t.retried()
		more, err := p.tryRecovering()
		switch {
		case err == nil:
			pause = 0
		case t.life.Err() != nil:
		case errors.Is(err, errForgotten):
			wait(t.life, forgetPause)
		case !t.setup.Load().reaches(p.queue.path):
			more, err = false, nil // Wake comes when that is over
		default:
			before := pause
			pause = min(max(2*pause, minPause), maxPause)
			if errors.Is(err, core.ErrUnknownOutcome) {
				pause = max(pause, sentPause)
			}
			if away := errors.Is(err, core.ErrAway); !away || pause > before { // an outage may last for hours
				t.setup.Load().Log.Error("turn failed, trying again", "path", p.queue.path, "in", pause, "err", err)
			}
			select {
			case <-retried:
			case <-time.After(pause):
			case <-t.life.Done():
			}
		}
		if !p.stay(more || err != nil) {
			return
		}
	}
}

// stay reports whether the place has more to do; if not, it is asleep.
func (p *worker) stay(more bool) bool {
	t := p.turns
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.life.Err() == nil && (more || p.again) {
		p.again = false
		return true
	}
	delete(t.awake, p.queue)
	return false
}

// tryRecovering takes one turn; a panic in it is that turn's error.
func (p *worker) tryRecovering() (more bool, err error) {
	defer func() {
		if r := recover(); r != nil {
			p.panics++
			err = fmt.Errorf("panic: %v\n%s", r, debug.Stack())
		}
	}()
	return p.try(p.turns.work)
}

// waitForFormer waits until what the place was before it moved here has come to its end;
// false when life ends before.
func (p *worker) waitForFormer() bool {
	t := p.turns
	t.mu.Lock()
	former := t.former[p.queue]
	t.mu.Unlock()
	if former == nil {
		return true
	}
	select {
	case <-former.over:
	case <-t.life.Done():
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.former[p.queue] == former {
		delete(t.former, p.queue)
	}
	return true
}

// try takes one turn, if anything waits.
func (p *worker) try(ctx context.Context) (more bool, err error) {
	if !p.waitForFormer() {
		return false, nil
	}
	with := p.turns.enter()
	defer with.users.Done()
	if !with.reaches(p.queue.path) {
		return false, nil
	}
	t, err := p.load(ctx, with)
	if err != nil {
		return false, err
	}
	if p.reportFormer(with, t); t == nil {
		return false, nil
	}
	t.notify(core.Waiting)
	defer t.notify(core.Over)
	if t.attempt >= freeTries { // the process died more than once while it ran
		select {
		case p.turns.alone <- struct{}{}:
			defer func() { <-p.turns.alone }()
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
	ctx = core.WithTurn(ctx, t.journal.id, t.journal.epoch)
	if p.queue.commands {
		ctx = core.Beside(ctx)
	}
	if err = t.run(ctx); errors.Is(err, core.ErrUnwritten) && errors.Is(err, core.ErrBadEvent) {
		err = t.abandon(ctx)
	}
	if err == nil {
		p.panics = 0
		clear(p.journals)
	}
	return true, err
}

// load finds what waits, and what the model is told of the past.
func (p *worker) load(ctx context.Context, with *setup) (*turn, error) {
	t := newTurn(p.turns, p.queue.path, with)
	t.worker = p
	ctx = core.WithEpoch(ctx, with.epoch()) // before anything is read
	p.turns.mu.Lock()
	p.gone = make(map[string]bool)
	p.turns.mu.Unlock()
	var records []core.Record
	other := false
	err := p.turns.store.View(ctx, func(v core.View) error {
		head, err := v.Head(p.queue.path)
		if err != nil || head.Path != p.queue.path { // it has moved, and is looked at there
			return err
		}
		waiting, err := v.Due(p.queue.path, p.queue.depth())
		if err != nil {
			return err
		}
		if waiting, other = p.queue.next(waiting); len(waiting) == 0 {
			return nil
		}
		id := core.TurnID{Path: p.queue.path, Seq: waiting[0].Message.Seq}
		if records, err = v.Journal(id); err != nil {
			return err
		}
		var kept bool
		if t.journal, kept = p.journalOf(ctx, with, id, records); !kept {
			t.journal.recall(records, time.Time{})
		}
		t.messages, t.last, t.attempt = choose(waiting, t.journal, with.late)
		t.who = whoCaused(t.messages)
		t.who.Private = head.Private
		if !kept {
			t.journal.people = append(t.causers(), t.path)
		}
		return t.input.load(v)
	})
	if other {
		p.turns.wake(queue{p.queue.path, !p.queue.commands})
	}
	if err != nil || t.journal == nil {
		return nil, err
	}
	t.log = with.Log.With("path", p.queue.path, "turn", t.journal.id.Seq)
	return t, nil
}

// person adds the path of somebody whom a place knows by that id.
func (s *setup) person(paths []core.Path, place core.Path, id string) []core.Path {
	if p, err := place.Person(id); err == nil && id != "" {
		paths = append(paths, p)
	}
	return paths
}

// forgotten reports what the store knows of who was forgotten.
func forgotten(ctx context.Context, s core.Store, paths ...core.Path) bool {
	f, ok := s.(core.Forgetter)
	return ok && f.Forgotten(ctx, paths...)
}

// choose says what the turn answers: what a former attempt chose, or what
// waits now.
func choose(waiting []core.Entry, j *journal, late func(*core.Entry) bool) (chosen []core.Entry, last uint64, attempts int) {
	if o, ok := j.opened(); ok {
		last = o.Last
		for _, e := range waiting {
			if e.Message.Seq <= o.Last {
				chosen = append(chosen, e)
			}
		}
		attempts = o.Attempts
	}
	if len(chosen) == 0 { // nothing was noted, or the place has moved and counts anew
		chosen = merge(waiting, late)
	}
	return chosen, max(last, chosen[len(chosen)-1].Message.Seq), attempts
}

func (s *setup) epoch() uint64 {
	if s.Epoch == nil {
		return 0
	}
	return s.Epoch()
}

// wait pauses, or ends with ctx.
func wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
