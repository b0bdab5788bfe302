package memory

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"synthbot/core"
)

// ErrRefused wraps the error of a write that is refused because it blocked the
// writer too often. It is a core.ErrBadEvent: nobody is to hand that in again.
var ErrRefused = fmt.Errorf("%w: set aside: it blocked the database three times", core.ErrBadEvent)

const (
	patience   = 30 * time.Second // for one job
	slowFactor = 10               // for the disk: a commit, or a job that runs alone
	watchTicks = 10               // how often the watch looks within patience
)

// watch notices when the writer makes no progress.
type watch struct {
	mu    sync.Mutex
	busy  bool
	slow  bool   // the disk is at work, which may take long
	job   *job   // what the writer works for; nil: nobody in particular
	steps uint64 // counts changes of the fields above

	aside map[string]time.Time // jobs that are refused until then; set before the writer starts
}

// enter notes that the writer works on a job from now on. It fails if that is refused.
func (w *watch) enter(j *job, now time.Time) error {
	if len(w.aside) > 0 && now.Before(w.aside[j.called()]) {
		return fmt.Errorf("%s: %w", j.called(), ErrRefused)
	}
	w.note(j, j.alone != nil)
	return nil
}

// waitForDisk notes that the writer waits for the disk from now on.
func (w *watch) waitForDisk() { w.note(nil, true) }

func (w *watch) note(j *job, slow bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.busy, w.slow, w.job = true, slow, j
	w.steps++
}

// rest notes that the writer has nothing to do.
func (w *watch) rest() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.busy, w.slow, w.job = false, false, nil
}

// look returns what the writer does.
func (w *watch) look() (job string, steps uint64, busy, slow bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.job.called(), w.steps, w.busy, w.slow
}

// run calls stuck once when the writer has made no progress for that long, and
// returns, also when ctx ends. It counts its own ticks: time that passes while
// the whole process is stopped does not count.
func (w *watch) run(ctx context.Context, patience time.Duration, stuck func(job string)) {
	tick := time.NewTicker(patience / watchTicks)
	defer tick.Stop()
	var seen uint64
	for ticks := 0; ; ticks++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		job, steps, busy, slow := w.look()
		limit := watchTicks
		if slow {
			limit *= slowFactor
		}
		switch {
		case !busy || steps != seen:
			seen, ticks = steps, 0
		case ticks >= limit:
			stuck(job)
			return
		}
	}
}

// startWatch watches the writer until ctx ends.
func (db *DB) startWatch(ctx context.Context, o Options) {
	if o.OnStuck == nil {
		return
	}
	db.work.Go(func() {
		db.writer.watch.run(ctx, cmp.Or(o.Patience, patience), func(job string) {
			if err := db.blocked.add(job); err != nil {
				db.log.Error("what blocks the database cannot be noted", "file", db.file.name, "err", err)
			}
			o.OnStuck(job)
		})
	})
}

// RefusedJobs lists what is refused because it blocked the writer too often.
func (db *DB) RefusedJobs() []string { return slices.Sorted(maps.Keys(db.writer.watch.aside)) }

// Pulse returns nil when an empty transaction commits, or when the disk keeps the
// writer busy as ctx ends. Its errors are those of Commit.
func (db *DB) Pulse(ctx context.Context) error {
	j := &job{done: make(chan error, 1), run: func(*tx) error { return nil }}
	if err := db.queue.add(j); err != nil {
		return err
	}
	select {
	case err := <-j.done:
		return err
	case <-ctx.Done():
	}
	db.queue.withdraw(j)
	what, _, _, slow := db.writer.watch.look()
	if slow {
		return nil
	}
	return fmt.Errorf("%s: no write commits: the writer works on %q", db.file.name, what)
}

// jobKey is the context key of a job's name.
type jobKey struct{}

// working names the jobs that are written under the context.
func working(ctx context.Context, format string, args ...any) context.Context {
	return context.WithValue(ctx, jobKey{}, fmt.Sprintf(format, args...))
}

// called returns the job's name; "" if it has none.
func (j *job) called() string {
	if j == nil || j.name == nil {
		return ""
	}
	return j.name()
}

// purpose names a batch by the turn that it belongs to, or by what it brings.
func (w *batch) purpose() string {
	b := w.from
	switch {
	case len(b.Journal) > 0:
		return "turn " + b.Journal[0].Key.Turn.String()
	case len(b.Append) > 0:
		return event("message", &b.Append[0].Event)
	case len(b.Change) > 0:
		return event(string(b.Change[0].Kind), &b.Change[0])
	case len(b.Answered)+len(b.Settled) > 0: // without any record, since they are refused
		return "end of turn " + slices.Concat(b.Answered, b.Settled)[0].String()
	}
	return ""
}

func event(kind string, e *core.Event) string {
	return kind + " " + cmp.Or(e.Message.ID, e.Target) + " in " + e.Message.Path.String()
}
