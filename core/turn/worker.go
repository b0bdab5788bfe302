package turn

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"synthbot/core"
	"synthbot/core/command"
	"synthbot/core/epochs"
	"synthbot/core/watch"
)

// A turn is tried three times. The fourth try only apologises. If that fails, too, the turn is set aside silently.
// When the process crashes, any turn that ran may be the cause: so the first two tries that a crash cut short do not
// count, and from then on the turn does not run at the same time as another suspect.
const (
	maxTries  = 3
	freeTries = 2
	minPause  = 100 * time.Millisecond // between two tries
	maxPause  = 30 * time.Second

	// Bounds of the pause before a message that may have arrived is sent again. It is sent three times at most, so
	// the pauses grow fast: a broken connection may last for minutes.
	minSendPause = time.Second
	maxSendPause = 5 * time.Minute

	forgetPause  = 50 * time.Millisecond // after errForgotten
	commandDepth = 1000                  // waiting entries that are searched for a command
	maxBehind    = 20                    // users in worker.behind
)

var (
	// errWithdrawn ends the model call about a message that was deleted.
	errWithdrawn = errors.New("the message was deleted")
	// errForgotten ends a turn before it begins: a user whom it answers is being forgotten. The entries that
	// remain afterwards still wait.
	errForgotten = errors.New("somebody is being forgotten")
)

// queue is one of the two queues of a place: chat commands do not wait for the turns of
// messages. Order holds inside a queue, and a message waits for the commands before it.
type queue struct {
	path     core.Path
	commands bool
}

// next returns the waiting entries that the queue is to answer now. other says that the place's other queue must wake.
func (q queue) next(waiting []core.Entry) (mine []core.Entry, other bool) {
	first := slices.IndexFunc(waiting, func(e core.Entry) bool { return e.Kind == core.KindCommand })
	switch {
	case q.commands && first >= 0:
		return waiting[first : first+1], first > 0
	case q.commands:
		return nil, len(waiting) > 0
	case first >= 0:
		return waiting[:first], first == 0
	}
	return waiting, false
}

// worker runs the turns of one queue. Its goroutine ends when nothing waits.
type worker struct {
	queue queue
	turns *Turns

	panics     int                      // of the current turn
	over       chan struct{}            // closed when the goroutine ends
	cut        context.CancelFunc       // cuts the current turn short
	journals   map[core.TurnID]*journal // kept from one attempt to the next, until the turn ends
	more       bool                     // entries may wait behind the current turn
	unreported *turn                    // whose last commit returned an error, but may have worked; nil: none

	// Guarded by turns.mu.
	again  bool                    // the worker was woken since it read the log
	begun  uint64                  // the turn whose first attempt was counted with its message; 0: none
	behind []core.Path             // users who wait for the next turn of the place
	gone   map[string]bool         // the messages deleted since the log was read
	asking []core.Entry            // the messages that the model is asked about, until a plan is accepted
	cancel context.CancelCauseFunc // ends that model call
}

// addBehind adds a user to behind. The zero Path is nobody. turns.mu is held.
func (p *worker) addBehind(person core.Path) {
	if !person.IsZero() && len(p.behind) < maxBehind && !slices.Contains(p.behind, person) {
		p.behind = append(p.behind, person)
	}
}

func (p *worker) usersBehind() []core.Path {
	p.turns.mu.Lock()
	defer p.turns.mu.Unlock()
	return slices.Clone(p.behind)
}

// setAsking sets which messages the model is asked about, and how to end that if one is deleted; nil for none.
func (p *worker) setAsking(about []core.Entry, cancel context.CancelCauseFunc) {
	p.turns.mu.Lock()
	defer p.turns.mu.Unlock()
	p.asking, p.cancel = about, cancel
	if slices.ContainsFunc(about, func(e core.Entry) bool { return p.gone[e.Message.ID] }) {
		cancel(errWithdrawn)
	}
}

// run runs turns until nothing waits or life ends.
func (p *worker) run(work context.Context) {
	t := p.turns
	defer t.workers.Done()
	defer close(p.over)
	defer p.cut()
	var pause time.Duration
	for ends := false; !ends; {
		retried := t.retried()
		more, err := p.try(work)
		switch {
		case err == nil:
			pause = 0
		case t.life.Err() != nil:
		case errors.Is(err, errForgotten):
			wait(t.life, forgetPause)
		case !t.setup.Load().reaches(p.queue.path):
			more, err = false, nil // Wake is called when the place can be reached again
		default:
			pause = p.pause(pause, err, retried)
		}
		t.mu.Lock()
		ends = t.life.Err() != nil || !more && err == nil && !p.again
		p.again = false
		if ends { // from now on, wake starts a new worker
			delete(t.awake, p.queue)
		}
		t.mu.Unlock()
	}
}

// pause waits before a failed turn is tried again, or until retried is closed. It returns the full pause.
func (p *worker) pause(before time.Duration, err error, retried <-chan struct{}) time.Duration {
	t := p.turns
	pause := min(max(2*before, minPause), maxPause)
	if errors.Is(err, core.ErrUnknownOutcome) && !errors.Is(err, core.ErrAway) { // an outage counts once
		pause = min(max(5*before, minSendPause), maxSendPause)
	}
	if pause > before || !errors.Is(err, core.ErrAway) { // an outage may last for hours
		t.setup.Load().Log.Error("turn failed, trying again", "path", p.queue.path, "retry_in", pause, "err", err)
	}
	select {
	case <-retried:
	case <-time.After(pause):
	case <-t.life.Done():
	}
	return pause
}

// try runs one turn, if anything waits. A panic in it becomes the error.
func (p *worker) try(ctx context.Context) (more bool, err error) {
	defer func() {
		r := recover()
		if r != nil {
			p.panics++
			err = fmt.Errorf("panic: %v\n%s", r, debug.Stack())
		}
	}()
	if !p.waitForFormer() {
		return false, nil
	}
	p.turns.mu.Lock() // so that Reconfigure comes first, or waits for this turn
	with := p.turns.setup.Load()
	with.running.Add(1)
	p.turns.mu.Unlock()
	defer with.running.Done()
	if !with.reaches(p.queue.path) {
		return false, nil
	}
	t, err := p.load(ctx, with)
	if err != nil {
		return false, err
	}
	if p.unreported != nil && (t == nil || t.journal.id != p.unreported.journal.id) {
		p.unreported.setup = with
		p.unreported.report()
	}
	p.unreported = nil
	if t == nil {
		return false, nil
	}
	t.notify(watch.StageWaiting)
	defer t.notify(watch.StageOver)
	if t.attempt >= freeTries { // the process crashed more than once while it ran
		select {
		case p.turns.suspect <- struct{}{}:
			defer func() { <-p.turns.suspect }()
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
	ctx = epochs.WithTurn(ctx, t.journal.id, t.journal.epoch)
	if p.queue.commands {
		ctx = command.Context(ctx)
	}
	if err = t.begin(ctx); err == nil {
		err = t.answer(ctx)
		if err != nil {
			err = t.interrupted(ctx, err)
		}
	}
	if errors.Is(err, core.ErrUnwritten) && errors.Is(err, core.ErrBadEvent) {
		t.log.Error("turn set aside: the store refuses its records", "ids", t.ids())
		t.results.end = watch.TurnEnd{Aside: true}
		err = t.close(ctx, t.ending())
	}
	if err == nil {
		p.panics = 0
		clear(p.journals)
		t.input.release()
	}
	return p.more, err
}

// load reads what waits, and the history for the prompt. It returns nil if nothing waits.
func (p *worker) load(ctx context.Context, with *setup) (t *turn, err error) {
	ctx = epochs.With(ctx, with.Store.Epoch()) // before anything is read
	p.turns.mu.Lock()
	begun := p.begun
	p.gone, p.begun, p.behind = make(map[string]bool), 0, nil
	p.turns.mu.Unlock()
	other := false
	err = p.turns.store.View(ctx, func(v core.View) error {
		depth := maxMerged
		if p.queue.commands {
			depth = commandDepth
		}
		due, err := v.Due(p.queue.path, depth) // first, because it announces what follows
		if err != nil {
			return err
		}
		head, err := v.Head(p.queue.path)
		if err != nil || head.Path != p.queue.path { // it has moved; the worker of its new path goes on
			return err
		}
		var waiting []core.Entry
		waiting, other = p.queue.next(due)
		if len(waiting) == 0 {
			return nil
		}
		if waiting, err = with.separateReply(v, waiting); err != nil {
			return err
		}
		id := core.TurnID{Path: p.queue.path, Seq: waiting[0].Message.Seq}
		records, err := v.Journal(id)
		if err != nil {
			return err
		}
		t = newTurn(p.turns, p.queue.path, with)
		t.worker = p
		var kept bool
		t.journal, kept = p.journalOf(ctx, with, id, records)
		p.choose(t, waiting, begun)
		p.more = len(due) == depth || due[len(due)-1].Message.Seq > t.last
		p.turns.mu.Lock()
		for i := range waiting {
			m := &waiting[i].Message
			person, _ := m.Path.Person(m.Author.ID)
			if m.Seq > t.last {
				p.addBehind(person)
			}
		}
		p.turns.mu.Unlock()
		t.who = whoCaused(t.messages)
		t.who.Private = head.Private
		if !kept {
			t.journal.recall(records, time.Time{})
		}
		t.journal.addPeople(append(t.causers(), t.path)) // it may answer more messages than an attempt that never began
		return t.input.load(v)
	})
	if other {
		p.turns.wake(queue{p.queue.path, !p.queue.commands}, 0, core.Path{})
	}
	if err != nil || t == nil {
		return nil, err
	}
	t.log = with.Log.With("path", p.queue.path, "turn", t.journal.id.Seq)
	return t, nil
}

// addPerson appends the path of a user of the place. It appends nothing if the id is empty or invalid.
func addPerson(paths []core.Path, place core.Path, id string) []core.Path {
	p, err := place.Person(id)
	if err != nil || id == "" {
		return paths
	}
	return append(paths, p)
}

// choose sets what the turn answers: what an earlier attempt chose, or else what waits now. begun is
// the number of the turn whose first attempt was counted with its message.
func (p *worker) choose(t *turn, waiting []core.Entry, begun uint64) {
	var before core.TurnRecord // of the latest attempt
	r, _ := t.journal.Find(core.Key{Turn: t.journal.id})
	if json.Unmarshal(r.Data, &before) != nil { // there is none, or it is damaged: a part of it must not count
		before = core.TurnRecord{}
	}
	isFirst := begun == t.journal.id.Seq
	for _, e := range waiting {
		if e.Message.Seq <= before.Last && !isFirst {
			t.messages = append(t.messages, e)
		}
	}
	if len(t.messages) == 0 { // also if the place has moved, where entries have new numbers
		t.messages = t.setup.merge(waiting)
	}
	t.last = max(before.Last, t.messages[len(t.messages)-1].Message.Seq)
	t.attempt, t.journal.begun = before.Attempts, isFirst && t.last == before.Last
	t.journal.addAskers(before.Askers)
	if isFirst && !t.journal.begun { // it answers more messages than the one that it was counted with
		t.attempt = 0
	}
}

// wait pauses, or ends with ctx.
func wait(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
