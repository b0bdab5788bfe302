package turn

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"time"

	"synthbot/core"
	"synthbot/core/action"
	"synthbot/core/prompt"
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

// lane is one of the two queues of a place: chat commands do not wait for the
// turns of messages. Inside of a lane order holds, and a message waits for the
// commands before it.
type lane struct {
	path     core.Path
	commands bool
}

// next returns what of a place's waiting entries is the lane's turn now. other
// reports whether the place's other lane has to go on.
func (l lane) next(waiting []core.Entry) (mine []core.Entry, other bool) {
	first := slices.IndexFunc(waiting, func(e core.Entry) bool { return e.Kind == core.KindCommand })
	switch {
	case l.commands && first >= 0:
		return waiting[first : first+1], false
	case l.commands:
		return nil, len(waiting) > 0
	case first >= 0:
		return waiting[:first], first == 0
	}
	return waiting, false
}

// commandDepth is how many waiting entries are searched for a command.
const commandDepth = 1000

// depth is how many waiting entries the lane looks at.
func (l lane) depth() int {
	if l.commands {
		return commandDepth
	}
	return mergeMax
}

// place is a lane of a place that is awake. Its goroutine lives while something
// waits.
type place struct {
	lane
	turns *Turns

	panics   int                      // of the turn that is tried, in this life
	over     chan struct{}            // closed when it is asleep
	journals map[core.TurnID]*journal // that this life wrote, until a turn ends
	untold   *untold                  // the end of the turn before; nil: it was told

	// Guarded by turns.mu.
	again  bool                    // something was received since the log was read
	gone   map[string]bool         // the messages deleted since the log was read
	asking map[string]bool         // the messages thought about, until a plan is accepted
	cancel context.CancelCauseFunc // ends that thinking
}

// deleted ends the thinking about the message. turns.mu is held.
func (p *place) deleted(id string) {
	if p.gone != nil {
		p.gone[id] = true
	}
	if p.asking[id] {
		p.cancel(errWithdrawn)
	}
}

// live takes turns until nothing waits or life ends.
func (p *place) live() {
	t := p.turns
	defer t.places.Done()
	defer close(p.over)
	for pause := time.Duration(0); ; {
		retried := t.retried()
		more, err := p.safely()
		switch {
		case err == nil:
			pause = 0
		case t.life.Err() != nil:
		case errors.Is(err, errForgotten):
			wait(t.life, forgetPause)
		case !t.setup.Load().reaches(p.path):
			more, err = false, nil // Wake comes when that is over
		default:
			before := pause
			pause = min(max(2*pause, minPause), maxPause)
			if errors.Is(err, core.ErrUnknownOutcome) {
				pause = max(pause, sentPause)
			}
			if away := errors.Is(err, core.ErrAway); !away || pause > before { // an outage may last for hours
				t.setup.Load().Log.Error("turn failed, trying again", "path", p.path, "in", pause, "err", err)
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
func (p *place) stay(more bool) bool {
	t := p.turns
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.life.Err() == nil && (more || p.again) {
		p.again = false
		return true
	}
	delete(t.awake, p.lane)
	return false
}

// safely takes one turn; a panic in it is that turn's error.
func (p *place) safely() (more bool, err error) {
	defer func() {
		if r := recover(); r != nil {
			p.panics++
			err = fmt.Errorf("panic: %v\n%s", r, debug.Stack())
		}
	}()
	return p.try(p.turns.work)
}

// follow waits until what the place was before it moved here has come to its end;
// false when life ends before.
func (p *place) follow() bool {
	t := p.turns
	t.mu.Lock()
	former := t.former[p.lane]
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
	if t.former[p.lane] == former {
		delete(t.former, p.lane)
	}
	return true
}

// try takes one turn, if anything waits.
func (p *place) try(ctx context.Context) (more bool, err error) {
	if !p.follow() {
		return false, nil
	}
	with := p.turns.enter()
	defer with.users.Done()
	if !with.reaches(p.path) {
		return false, nil
	}
	t, err := p.open(ctx, with)
	if err != nil {
		return false, err
	}
	if p.tellEnd(with, t); t == nil {
		return false, nil
	}
	t.move(core.Waiting)
	defer t.move(core.Over)
	if t.suspect() {
		select {
		case p.turns.alone <- struct{}{}:
			defer func() { <-p.turns.alone }()
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
	ctx = core.WithTurn(ctx, t.id, t.epoch)
	if p.commands {
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

// run begins the turn and does what is left of it after so many tries.
func (t *turn) run(ctx context.Context) error {
	if err := t.begin(ctx); err != nil {
		return err
	}
	var err error
	switch tries := max(t.attempt-freeTries, t.panics+1); {
	case tries > maxTries+1:
		err = t.setAside(ctx)
	case tries > maxTries:
		err = t.apologise(ctx)
	default:
		err = t.take(ctx)
	}
	if ctx.Err() != nil || errors.Is(err, core.ErrUnwritten) || errors.Is(err, core.ErrAway) || errors.Is(err, core.ErrUnknownOutcome) {
		t.giveBack() // what went wrong was not this turn's fault
	}
	return err
}

// turn is one turn of a place.
type turn struct {
	*place
	*journal
	with     *setup
	snapshot *action.Snapshot
	who      action.Who
	messages []core.Entry // what it answers
	last     uint64
	goes     string // the id of its sequel
	attempt  int
	log      *slog.Logger

	here       Settings       // that hold in the place
	parts      prompt.Parts   // what the model is told
	reading    action.Reading // what of it others wrote
	strangers  bool           // what is said was planned after reading what strangers wrote
	points     bool           // a message points at something that the bot said so
	outcome    []action.Done  // of the latest round
	finished   []action.Done  // of all rounds
	intent     string         // as the latest plan that names one
	confidence float64
	about      core.State // what the plans say that it is about
	origins    []*journal // of turns whose questions this one decided
	resumed    bool       // this life has begun to decide the question before
	unsure     bool       // a question may not have arrived
	trace      core.Trace
}

// open finds what waits.
func (p *place) open(ctx context.Context, with *setup) (*turn, error) {
	t := &turn{place: p, with: with, snapshot: with.Catalogue.Load(), trace: core.Trace{Began: time.Now()}}
	ctx = core.WithEpoch(ctx, with.epoch()) // before anything is read
	p.turns.mu.Lock()
	p.gone = make(map[string]bool)
	p.turns.mu.Unlock()
	var records []core.Record
	other := false
	err := p.turns.store.View(ctx, func(v core.View) error {
		head, err := v.Head(p.path)
		if err != nil || head.Path != p.path { // it has moved, and is looked at there
			return err
		}
		waiting, err := v.Due(p.path, p.depth())
		if err != nil {
			return err
		}
		if waiting, other = p.next(waiting); len(waiting) == 0 {
			return nil
		}
		id := core.TurnID{Path: p.path, Seq: waiting[0].Message.Seq}
		if records, err = v.Journal(id); err != nil {
			return err
		}
		var kept bool
		if t.journal, kept = p.journalOf(ctx, with, id, records); !kept {
			t.journal.recall(records, time.Time{})
		}
		t.messages, t.last, t.attempt = choose(waiting, t.journal, with.late)
		t.who = caused(t.messages)
		t.who.Private = head.Private
		if !kept {
			t.journal.people = append(t.causers(), t.path)
		}
		return t.read(v)
	})
	if other {
		p.turns.wake(lane{p.path, !p.commands})
	}
	if err != nil || t.journal == nil {
		return nil, err
	}
	t.log = with.Log.With("path", p.path, "turn", t.id.Seq)
	return t, nil
}

// suspect reports whether the process died more than once while this turn ran.
func (t *turn) suspect() bool { return t.attempt >= freeTries }

// begin commits that the turn is tried. Somebody may have been forgotten after it
// was read what waits: from that commit on the store knows that a turn runs that
// answers him, before it does not. So it is looked at on both sides.
func (t *turn) begin(ctx context.Context) error {
	if t.stale(ctx) {
		return errForgotten
	}
	t.attempt++
	if err := t.Write(ctx, t.opening(core.Started)); err != nil {
		return err
	}
	t.begun = true
	if t.stale(ctx) {
		t.giveBack()
		return errForgotten
	}
	return nil
}

// stale reports whether who caused the turn, or its place, was forgotten since it
// was read what waits, or is being forgotten.
func (t *turn) stale(ctx context.Context) bool {
	return forgotten(ctx, t.with.Store, append(t.causers(), t.path)...)
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

func (t *turn) opening(p core.Progress) core.Record {
	return t.record(core.Key{Turn: t.id}, p, core.Opening{Last: t.last, Attempts: t.attempt})
}

// giveBack uncounts an attempt that ended without any fault of its own.
func (t *turn) giveBack() {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.turns.work), time.Second)
	defer cancel()
	t.attempt--
	t.Later(t.opening(core.Started))
	if err := t.flush(ctx); err != nil {
		t.log.Warn("attempt stays counted until it can be written", "err", err)
	}
}

// take is the turn, step by step.
func (t *turn) take(ctx context.Context) error {
	if err := t.sift(ctx); err != nil {
		return err
	}
	if len(t.messages) == 0 {
		return t.close(ctx)
	}
	q, agreed, decides, err := t.decision(ctx)
	if err != nil {
		return err
	}
	if decides {
		taken, err := t.decide(ctx, q, agreed)
		if err != nil {
			return err
		}
		if taken && !t.worthWords() {
			return t.close(ctx)
		}
		if err := t.flush(ctx); err != nil {
			return err
		}
	}
	for round := uint16(1); round <= lastRound; round++ {
		plan, err := t.plan(ctx, round)
		if errors.Is(err, errWithdrawn) {
			return nil // what is left waits; the next look at the log finds it
		}
		if err != nil {
			return err
		}
		if err := t.execute(ctx, round, plan); err != nil {
			return err
		}
		if round == lastRound || !t.worthWords() {
			break
		}
		if err := t.flush(ctx); err != nil {
			return err
		}
	}
	if err := t.atLeastAWord(ctx); err != nil {
		return err
	}
	return t.close(ctx)
}

// flush puts what was done on disk: the model may think for long about it.
func (t *turn) flush(ctx context.Context) error {
	for _, o := range t.origins {
		if err := o.Write(ctx); err != nil {
			return err
		}
	}
	return t.Write(ctx)
}

// atLeastAWord sees to it that a person whose turn came to nothing is told, and who
// may not have got all of the answer.
func (t *turn) atLeastAWord(ctx context.Context) error {
	if t.unasked() {
		return nil
	}
	worked := slices.ContainsFunc(t.finished, func(d action.Done) bool {
		return d.Progress == core.Done || d.Progress == core.Pending
	})
	switch {
	case t.inDoubt():
		return t.execute(ctx, doubtRound, t.say(doubt))
	case len(t.said()) > 0:
		return nil
	case !worked:
		return t.execute(ctx, lastWordRound, t.say(lost))
	case t.unheard():
		return t.execute(ctx, lastWordRound, t.say(done))
	}
	return nil
}

// inDoubt reports whether something that the turn sent may not have arrived, and is
// not sent again.
func (t *turn) inDoubt() bool {
	return t.unsure || slices.ContainsFunc(t.finished, func(d action.Done) bool { return d.Outcome.Kind == core.Unsure })
}

// sift leaves out what was taken back, and what comes from people who are shut
// out by now; and it looks again at what everybody may do.
func (t *turn) sift(ctx context.Context) (err error) {
	t.messages = slices.DeleteFunc(t.messages, func(e core.Entry) bool { return e.Deleted || !t.with.stands(&e) })
	for i := range t.messages {
		e := &t.messages[i]
		if impulsive(e.Kind) || e.Self {
			continue
		}
		t.with.rank(&e.Message)
		if e.Message.Author.Rank, err = t.capped(ctx, e); err != nil {
			return err
		}
	}
	if len(t.messages) > 0 {
		before := t.who
		t.who = caused(t.messages)
		t.who.Sees, t.who.Private, t.who.Continued = before.Sees, before.Private, before.Continued
		t.impulse()
	}
	return nil
}

// caused says whose turn it is, and where.
func caused(messages []core.Entry) action.Who {
	first := &messages[0].Message
	w := action.Who{Path: first.Path, Private: first.Private, Scopes: first.Scopes, Continued: messages[0].Count}
	for i := range messages {
		author := messages[i].Message.Author
		if !slices.ContainsFunc(w.Authors, func(a core.Author) bool { return a.ID == author.ID }) {
			w.Authors = append(w.Authors, author)
		}
	}
	return w
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
