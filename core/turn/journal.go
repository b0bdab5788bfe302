package turn

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"synthbot/core"
	"synthbot/core/epochs"
)

// Numbers of rounds and parts in a turn's journal. Databases store them, so they never change. Round 0 is the turn
// itself. The model's rounds are 1 to lastModelRound; more of them would be numbered from 100.
const (
	lastModelRound = 3
	lastWordRound  = 4      // the reply if the rounds had no result
	decisionRound  = 5      // the question that the turn decides
	resultRound    = 6      // the message with the result of that
	filesRound     = 7      // the files of a chat command's answer
	doubtRound     = 8      // the note that a message may not have arrived
	commandRound   = 9      // its step 1: a chat command that must not run twice
	voiceRound     = 10     // its step 1: the answer as a voice message
	questionPart   = 10_000 // and above: the questions of a step that waits for an answer
	questionParted = 10     // numbers of parts for each question
)

// journal holds a turn's records, those of earlier attempts and new ones. It implements action.Journal.
type journal struct {
	store core.Store
	clock func() time.Time
	id    core.TurnID
	epoch uint64 // in which its records were read
	begun bool   // the attempt is on disk: what follows ends it

	people []core.Path // its place, who caused the turn, and the askers
	askers []string    // ids of the users who asked for what the turn decides

	mu      sync.Mutex
	records records
	former  records // as the previous attempt left them
	later   []core.Record
	sent    []core.Sent
}

// records are those of one turn, each with a key of its own. They are few.
type records []core.Record

func (all records) find(k core.Key) (r core.Record, ok bool) {
	for i := range all {
		if all[i].Key == k {
			return all[i], true
		}
	}
	return r, false
}

// journalOf returns a turn's journal: that of an earlier attempt of this process, which may not be written completely,
// or else what the store has. An earlier one is dropped, as in the store, if one of its people was forgotten.
func (p *worker) journalOf(
	ctx context.Context, s *setup, id core.TurnID, former records,
) (j *journal, kept bool) {
	j = p.journals[id]
	if j != nil && !s.Store.Forgotten(epochs.With(ctx, j.epoch), j.people...) {
		j.former, j.begun = slices.Clone(j.records), false
		return j, true
	}
	j = &journal{store: s.Store, clock: s.Clock, id: id, former: former}
	j.records = append(make(records, 0, len(former)+3), former...) // most turns add a plan, a step and its message
	j.epoch, _, _ = epochs.Of(ctx)
	if p.journals == nil {
		p.journals = make(map[core.TurnID]*journal)
	}
	p.journals[id] = j
	return j, false
}

// addPeople adds paths of the people. It keeps the slice.
func (j *journal) addPeople(people []core.Path) {
	if len(j.people) == 0 {
		j.people = people
		return
	}
	for _, path := range people {
		if !slices.Contains(j.people, path) {
			j.people = append(j.people, path)
		}
	}
}

// addAskers adds users who asked for what the turn decides.
func (j *journal) addAskers(ids []string) {
	for _, id := range ids {
		if !slices.Contains(j.askers, id) {
			j.askers, j.people = append(j.askers, id), addPerson(j.people, j.id.Path, id)
		}
	}
}

// recall adds the messages that earlier attempts sent since that moment, which join the history, too.
// Records come in the order of their keys; unreadable ones are skipped.
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

// Find returns the record of a key.
func (j *journal) Find(k core.Key) (core.Record, bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.records.find(k)
}

// Write commits the records, and those that Later kept.
func (j *journal) Write(ctx context.Context, records ...core.Record) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	for i, r := range records { // a step that starts again keeps its first time: it may have sent something since
		isStep := r.Key.Step != 0 && r.Key.Part == 0
		before, _ := j.former.find(r.Key)
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

func (j *journal) keep(changed records) {
	for _, r := range changed {
		before := func(old core.Record) bool { return old.Key == r.Key }
		j.records = append(slices.DeleteFunc(j.records, before), r)
	}
}

// record returns a record with the current time.
func (j *journal) record(k core.Key, p core.Progress, data any) core.Record {
	raw, err := json.Marshal(data)
	if err != nil {
		panic(fmt.Errorf("journal: %w", err)) // all its types can be encoded
	}
	return core.Record{Key: k, Progress: p, Time: j.clock(), Data: raw}
}

// Parts returns the journalled sends of one step.
func (j *journal) Parts(step core.Key) core.Deliveries { return &parts{journal: j, step: step} }

// parts journals the sends of one step. It implements core.Deliveries.
type parts struct {
	journal *journal
	step    core.Key
	before  int    // added to the numbers of parts
	data    string // stored with the messages in the log; "": the Data of each Sent
}

// sending is the Data of a part's record.
type sending struct {
	core.Sent
	Sends int `json:"sends"` // how many sends may have worked; records without it count as one
}

// Send implements core.Deliveries. Each send is on disk before it is made, and counts as one
// that may have worked until its outcome is known.
func (p *parts) Send(
	ctx context.Context, n int, what core.Sent, do func(context.Context, string) (string, error),
) error {
	j := p.journal
	n, what.Data = p.before+n, cmp.Or(p.data, what.Data)
	r, sends, since := p.lookUp(n)
	key := r.Key
	if r.Progress == core.ProgressDone {
		return nil
	}
	if sends >= what.MaxSends() {
		j.Later(j.record(key, core.ProgressUnknown, sending{what, sends}))
		return core.Errorf(core.Unsure,
			"it is not known whether this arrived: the connection broke each time it was sent")
	}
	if sends == 0 {
		since = j.clock()
	}
	started := func(sends int) core.Record {
		r := j.record(key, core.ProgressStarted, sending{what, sends})
		r.Time = since
		return r
	}
	step, _ := j.Find(p.step)
	covered := n == 1 && step.Progress == core.ProgressStarted // the step's record implies this send
	if r.Progress != "" || sends > 0 || !covered {
		if err := j.Write(ctx, started(sends+1)); err != nil {
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
		j.Later(started(max(sends, 1)))
	case unknown, ctx.Err() != nil: // the platform's reply was lost, or the send was cut short
		j.Later(started(sends + 1))
		return fmt.Errorf("%w: %w", core.ErrUnknownOutcome, err)
	default:
		j.Later(j.record(key, core.ProgressStarted, sending{what, sends}))
	}
	return err
}

// lookUp returns the record of a part, without Progress if there is none; how many sends of it may have worked; and
// when the first of them began. If an earlier attempt started the step, it may have sent the first part.
func (p *parts) lookUp(n int) (r core.Record, sends int, since time.Time) {
	key := p.step
	key.Part = uint16(n)
	r, known := p.journal.Find(key)
	before, _ := p.journal.former.find(p.step)
	switch {
	case known:
		s := sending{Sends: 1} // also if it cannot be read
		_ = json.Unmarshal(r.Data, &s)
		return r, s.Sends, r.Time
	case n == 1 && before.Progress == core.ProgressStarted:
		return core.Record{Key: key}, 1, before.Time
	}
	return core.Record{Key: key}, 0, since
}

// Since implements core.Deliveries.
func (p *parts) Since(n int) time.Time {
	r, sends, since := p.lookUp(p.before + n)
	if sends == 0 || r.Progress == core.ProgressDone {
		return time.Time{}
	}
	return since
}

// mayHaveAnswered reports whether a message of a model's round may have been sent.
func (j *journal) mayHaveAnswered() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.ContainsFunc(j.records, func(r core.Record) bool {
		return r.Key.Part > 0 && r.Key.Part < questionPart && r.Key.Round <= lastModelRound
	})
}

// unwritten returns the records that wait to be written, and the messages that were sent.
func (j *journal) unwritten() (later []core.Record, sent []core.Sent) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clip(j.later), slices.Clip(j.sent)
}

func (j *journal) texts() []string {
	_, sent := j.unwritten()
	texts := make([]string, len(sent))
	for i, s := range sent {
		texts[i] = s.Text
	}
	return texts
}
