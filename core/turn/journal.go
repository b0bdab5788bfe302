package turn

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"synthbot/core"
)

// errUnwritten is the store's failure to take what a turn writes.
var errUnwritten = errors.New("journal not written")

// journal is one turn's view of its records: what a former attempt wrote, and
// what this one adds. It implements action.Journal.
type journal struct {
	store core.Store
	clock func() time.Time
	id    core.TurnID

	mu      sync.Mutex
	records map[core.Key]core.Record
	former  map[core.Key]core.Record // as a former attempt left it
	later   []core.Record
	sent    []core.Sent
}

func newJournal(o *setup, id core.TurnID, records []core.Record) *journal {
	j := &journal{
		store: o.Store, clock: o.Clock, id: id,
		records: make(map[core.Key]core.Record, len(records)),
		former:  make(map[core.Key]core.Record, len(records)),
	}
	for _, r := range records {
		j.records[r.Key] = r
		j.former[r.Key] = r
	}
	return j
}

// recall takes up what former attempts sent, since that moment; it joins the
// history with the rest. records come in the order of their keys; one that
// cannot be read is left out, so that it holds nobody up.
func (j *journal) recall(records []core.Record, since time.Time) {
	for _, r := range records {
		if r.Key.Part == 0 || r.Progress != core.Done || r.Time.Before(since) {
			continue
		}
		var what core.Sent
		if json.Unmarshal(r.Data, &what) == nil {
			j.sent = append(j.sent, what)
		}
	}
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
	j.date(records)
	b := core.Batch{Journal: append(j.later, records...)}
	if len(b.Journal) == 0 {
		return nil
	}
	if err := j.store.Commit(ctx, &b); err != nil {
		return fmt.Errorf("%w: %w", errUnwritten, err)
	}
	j.later = nil
	j.keep(records)
	return nil
}

// date lets a step that starts once more keep the time when it started first:
// what it sends may stand on the platform since.
func (j *journal) date(records []core.Record) {
	for i, r := range records {
		if r.Progress == core.Started && r.Key.Step != 0 && j.former[r.Key].Progress == core.Started {
			records[i].Time = j.former[r.Key].Time
		}
	}
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
func (j *journal) Parts(step core.Key) core.Parts { return &parts{j, step} }

// parts guards the sends of one step.
type parts struct {
	*journal
	step core.Key
}

// Send implements core.Parts. Whether a send that a crash cut short reached the
// platform cannot be known: it is tried once more, under the same key, so that a
// platform that knows such keys takes it once.
func (p *parts) Send(ctx context.Context, n int, what core.Sent, do func(context.Context, string) (string, error)) error {
	key := p.step
	key.Part = uint16(n)
	r, known := p.Find(key)
	if known && r.Progress == core.Done {
		return nil
	}
	if !known && !p.covered(key) {
		if err := p.Write(ctx, p.record(key, core.Started, what)); err != nil {
			return err
		}
	}
	id, err := do(ctx, nonce(key))
	if err != nil {
		return err
	}
	what.ID, what.Time = id, p.clock()
	p.Later(p.record(key, core.Done, what))
	p.delivered(what)
	return nil
}

// Since implements core.Parts. The record of the step covers its first part.
func (p *parts) Since(n int) time.Time {
	key := p.step
	key.Part = uint16(n)
	r, ok := p.former[key]
	if !ok && n == 1 {
		r = p.former[p.step]
	}
	if r.Progress != core.Started {
		return time.Time{}
	}
	return r.Time
}

// covered reports whether the record of the step itself says already that this
// part may have been sent: the first one of a step that has begun.
func (p *parts) covered(key core.Key) bool {
	step, _ := p.Find(p.step)
	return key.Part == 1 && step.Progress == core.Started
}

func (j *journal) delivered(s core.Sent) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.sent = append(j.sent, s)
}

// nonce is the idempotency key of a part: the same in every attempt, 25 letters
// and digits.
func nonce(k core.Key) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%d\x00%d\x00%d\x00%d", k.Turn.Path, k.Turn.Seq, k.Round, k.Step, k.Part))
	return strings.ToLower(base32.StdEncoding.EncodeToString(sum[:]))[:25]
}

// opened returns what a former attempt noted when it opened the turn.
func (j *journal) opened() (o core.Opening, ok bool) {
	r, ok := j.Find(core.Key{Turn: j.id})
	if !ok || json.Unmarshal(r.Data, &o) != nil {
		return core.Opening{}, false
	}
	return o, true
}
