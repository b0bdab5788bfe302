package turn

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"synthbot/core"
	"synthbot/core/epochs"
)

// Numbers of rounds and parts in a turn's journal. They are stored in databases and
// never change, whatever the limits of a turn are. Round 0 is the turn itself. The
// model's rounds are 1 to lastModelRound; more of them would be numbered from 100.
const (
	lastModelRound = 3
	lastWordRound  = 4      // what is said when the rounds came to nothing
	decisionRound  = 5      // the question that the turn decides
	fateRound      = 6      // what became of it, in words
	filesRound     = 7      // the files of a chat command's answer
	doubtRound     = 8      // that a message may not have arrived
	commandRound   = 9      // its step 1: a chat command that must not run twice
	voiceRound     = 10     // its step 1: the voice message that says what was written
	questionPart   = 10_000 // and above: the questions of a step that waits for an answer
	questionParted = 10     // so many numbers for each of them
)

// journal is one turn's view of its records: what earlier attempts wrote, and what this
// one adds. It implements action.Journal.
type journal struct {
	store core.Store
	clock func() time.Time
	id    core.TurnID
	epoch uint64 // in which its records were read
	begun bool   // the attempt is on disk: what follows ends it

	people []core.Path // its place, and who caused the turn

	mu      sync.Mutex
	records map[core.Key]core.Record
	former  []core.Record // as the attempt before left them
	later   []core.Record
	sent    []core.Sent
}

// journalOf returns a turn's journal: the one that an earlier attempt of this process could
// not write whole, or what the store has. The first one is dropped when one of its people
// is forgotten, as the store's is.
func (p *worker) journalOf(
	ctx context.Context, s *setup, id core.TurnID, records []core.Record,
) (j *journal, kept bool) {
	j = p.journals[id]
	if j != nil && !s.Store.Forgotten(epochs.With(ctx, j.epoch), j.people...) {
		j.former, j.begun = slices.Collect(maps.Values(j.records)), false
		return j, true
	}
	j = &journal{store: s.Store, clock: s.Clock, id: id, records: make(map[core.Key]core.Record), former: records}
	j.keep(records)
	j.epoch, _, _ = epochs.Of(ctx)
	if p.journals == nil {
		p.journals = make(map[core.TurnID]*journal)
	}
	p.journals[id] = j
	return j, false
}

// recall adds what earlier attempts sent since that moment. It joins the history with the
// rest. records come in the order of their keys; one that cannot be read is left out.
func (j *journal) recall(records []core.Record, since time.Time) {
	for _, r := range records {
		if r.Key.Part == 0 || r.Progress != core.ProgressDone || r.Time.Before(since) {
			continue
		}
		var what core.Sent
		if json.Unmarshal(r.Data, &what) == nil {
			j.sent = append(j.sent, what)
		}
	}
}

// before returns what the attempt before left under a key.
func (j *journal) before(k core.Key) (r core.Record, ok bool) {
	i := slices.IndexFunc(j.former, func(r core.Record) bool { return r.Key == k })
	if i >= 0 {
		r = j.former[i]
	}
	return r, i >= 0
}

// Find returns what is known under a key.
func (j *journal) Find(k core.Key) (core.Record, bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	r, ok := j.records[k]
	return r, ok
}

// Write commits the records, and those that wait, before it returns.
func (j *journal) Write(ctx context.Context, records ...core.Record) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	for i, r := range records { // a step that starts once more may have sent something since it first started
		isStep := r.Key.Step != 0 && r.Key.Part == 0
		before, _ := j.before(r.Key)
		if isStep && r.Progress == core.ProgressStarted && before.Progress == core.ProgressStarted {
			records[i].Time = before.Time
		}
	}
	b := core.Batch{Journal: append(j.later, records...), Finishing: j.begun}
	if len(b.Journal) == 0 {
		return nil
	}
	if err := j.store.Commit(ctx, &b); err != nil {
		return fmt.Errorf("%w: %w", core.ErrUnwritten, err)
	}
	j.later = nil
	j.keep(records)
	return nil
}

// Later keeps the records for the next Write, or for the turn's end.
func (j *journal) Later(records ...core.Record) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.later = append(j.later, records...)
	j.keep(records)
}

func (j *journal) keep(records []core.Record) {
	for _, r := range records {
		j.records[r.Key] = r
	}
}

// record stamps a fact with the time.
func (j *journal) record(k core.Key, p core.Progress, data any) core.Record {
	raw, err := json.Marshal(data)
	if err != nil {
		panic(fmt.Errorf("journal: %w", err)) // only our own types come here
	}
	return core.Record{Key: k, Progress: p, Time: j.clock(), Data: raw}
}

// Parts returns the journalled sends of one step.
func (j *journal) Parts(step core.Key) core.Deliveries { return &parts{journal: j, step: step} }

// parts guards the sends of one step.
type parts struct {
	journal *journal
	step    core.Key
	before  int    // the number of the first part, less one
	data    string // what the log keeps with them; "": as Sent says
}

// sending is the Data of a part's record.
type sending struct {
	core.Sent
	Sends int `json:"sends"` // how many may have worked; records without it count one
}

// Send implements core.Deliveries. A send that may have worked is on disk before it is
// made, and counts until its outcome is known.
func (p *parts) Send(
	ctx context.Context, n int, what core.Sent, do func(context.Context, string) (string, error),
) error {
	j := p.journal
	n, what.Data = p.before+n, cmp.Or(p.data, what.Data)
	r, sends, since := p.look(n)
	key := r.Key
	if r.Progress == core.ProgressDone {
		return nil
	}
	if sends >= what.MaxSends() {
		j.Later(j.record(key, core.ProgressUnknown, sending{what, sends}))
		return core.Errorf(core.Unsure,
			"it is not known whether this arrived: the connection broke each time it was sent")
	}
	try := j.record(key, core.ProgressStarted, sending{what, sends + 1})
	if sends > 0 {
		try.Time = since
	}
	step, _ := j.Find(p.step)
	covered := n == 1 && step.Progress == core.ProgressStarted // its record says that this part may have been sent
	if r.Progress != "" || sends > 0 || !covered {
		if err := j.Write(ctx, try); err != nil {
			return err
		}
	}
	nonce := sha256.Sum256(fmt.Appendf(nil, "%s\x00%s\x00%d\x00%d\x00%d\x00%d", // the same in every attempt
		j.store.Installation(), key.Turn.Path, key.Turn.Seq, key.Round, key.Step, key.Part))
	id, err := do(ctx, strings.ToLower(base32.StdEncoding.EncodeToString(nonce[:]))[:25])
	unknown := errors.Is(err, core.ErrUnknownOutcome)
	switch {
	case err == nil:
		what.ID, what.Time = id, j.clock()
		j.Later(j.record(key, core.ProgressDone, what))
		j.mu.Lock()
		defer j.mu.Unlock()
		j.sent = append(j.sent, what)
	case unknown && errors.Is(err, core.ErrAway): // an outage counts once
		once := j.record(key, core.ProgressStarted, sending{what, max(sends, 1)})
		once.Time = try.Time
		j.Later(once)
	case unknown, ctx.Err() != nil: // its reply was lost, or it was cut short
		j.Later(try)
		return fmt.Errorf("%w: %w", core.ErrUnknownOutcome, err)
	default:
		j.Later(j.record(key, core.ProgressStarted, sending{what, sends}))
	}
	return err
}

// look returns the record of a part, without Progress if there is none; and how many sends of it may
// have worked, and when the first of them began. A step that an earlier attempt started covers its
// first part.
func (p *parts) look(n int) (r core.Record, sends int, since time.Time) {
	key := p.step
	key.Part = uint16(n)
	r, known := p.journal.Find(key)
	s := sending{Sends: 1}
	before, _ := p.journal.before(p.step)
	switch {
	case known && json.Unmarshal(r.Data, &s) == nil:
		return r, s.Sends, r.Time
	case known:
		return r, 1, r.Time
	case n == 1 && before.Progress == core.ProgressStarted:
		return core.Record{Key: key}, 1, before.Time
	}
	return core.Record{Key: key}, 0, since
}

// Since implements core.Deliveries.
func (p *parts) Since(n int) time.Time {
	r, sends, since := p.look(p.before + n)
	if sends == 0 || r.Progress == core.ProgressDone {
		return time.Time{}
	}
	return since
}

// mayHaveAnswered reports whether a message of a model's round may have been sent.
func (j *journal) mayHaveAnswered() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	for key := range j.records {
		if key.Part > 0 && key.Part < questionPart && key.Round <= lastModelRound {
			return true
		}
	}
	return false
}

// unwritten returns the records that wait to be written, and what was sent.
func (j *journal) unwritten() (later []core.Record, sent []core.Sent) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.later), slices.Clone(j.sent)
}

func (j *journal) texts() []string {
	_, sent := j.unwritten()
	texts := make([]string, len(sent))
	for i, s := range sent {
		texts[i] = s.Text
	}
	return texts
}
