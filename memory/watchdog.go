package memory

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"synthbot/core"
)

// ErrRefused is the error of a write that is refused because it blocked the writer too
// often. It wraps core.ErrBadEvent, so that it is not tried again.
var ErrRefused = fmt.Errorf("%w: refused: it blocked the database three times", core.ErrBadEvent)

const (
	patience   = 30 * time.Second // for one job
	slowFactor = 10               // for the engine, which commits
	watchTicks = 10               // of the watch within patience
)

// watch notices when the writer makes no progress.
type watch struct {
	mu      sync.Mutex
	doing   work
	refused map[string]time.Time // until then; set before the writer starts
}

type work struct {
	job    string // its name
	busy   bool
	onDisk bool      // it waits for the disk
	steps  uint64    // counts the changes
	since  time.Time // when it began
}

func (w *watch) set(now work) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now.steps, now.since = w.doing.steps+1, time.Now()
	w.doing = now
}

func (w *watch) current() work {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.doing
}

// run calls stuck once if the writer makes no progress for that long, and returns, also when
// ctx ends. It counts ticks: time in which the whole process is stopped does not count.
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
		now := w.current()
		limit := watchTicks
		if now.onDisk {
			limit *= slowFactor
		}
		switch {
		case !now.busy || now.steps != seen:
			seen, ticks = now.steps, 0
		case ticks >= limit:
			stuck(now.job)
			return
		}
	}
}

func (w *writer) startWatch(ctx context.Context, o Options) {
	if o.OnStuck == nil {
		return
	}
	w.db.work.Go(func() {
		w.watch.run(ctx, cmp.Or(o.Patience, patience), func(job string) {
			if err := w.addBlocked(job); err != nil {
				w.db.log.Error("the job that blocks the database cannot be counted",
					"file", w.db.engine.name, "err", err)
			}
			o.OnStuck(job)
		})
	})
}

// RefusedJobs lists the jobs that are refused because they blocked the writer too often.
func (db *DB) RefusedJobs() []string { return slices.Sorted(maps.Keys(db.writer.watch.refused)) }

// Pulse returns nil if an empty transaction commits, or if the writer has waited for the
// disk for less than half a minute when ctx ends. Its errors are those of Commit.
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
	doing := db.writer.watch.current()
	waits := time.Since(doing.since)
	switch {
	case !doing.onDisk:
		return fmt.Errorf("%s: no write commits: the writer works on %q", db.engine.name, doing.job)
	case waits >= patience:
		return fmt.Errorf("%s: no write commits: the disk has been busy for %v",
			db.engine.name, waits.Round(time.Second))
	}
	return nil
}

type jobKey struct{}

// withJobName names the jobs that are written with the context it returns.
func withJobName(ctx context.Context, format string, args ...any) context.Context {
	return context.WithValue(ctx, jobKey{}, fmt.Sprintf(format, args...))
}

func (w *batch) jobName() string {
	b := w.from
	switch {
	case len(b.Journal) > 0:
		return "turn " + b.Journal[0].Key.Turn.String()
	case len(b.Append) > 0:
		return eventName("message", &b.Append[0].Event)
	case len(b.Change) > 0:
		return eventName(string(b.Change[0].Kind), &b.Change[0])
	case len(b.Answered)+len(b.Settled) > 0: // its records were refused
		return "end of turn " + slices.Concat(b.Answered, b.Settled)[0].String()
	}
	return ""
}

func eventName(kind string, e *core.Event) string {
	return kind + " " + cmp.Or(e.Message.ID, e.Target) + " in " + e.Message.Path.String()
}

const (
	stuckSuffix = ".stuck"       // of the file that counts the jobs that blocked the writer
	stuckLimit  = 3              // a job is refused after it blocked the writer so often
	stuckAge    = 24 * time.Hour // a refused job is tried again after so long
)

// blockCount is how often a job blocked the writer, and when it last did. They are stored by job name, in a
// file beside the database.
type blockCount struct {
	Times int       `json:"times"`
	Last  time.Time `json:"last"`
}

func (w *writer) blockedFile() string { return w.db.engine.file + stuckSuffix }

func (w *writer) addBlocked(job string) error {
	if job == "" {
		return nil
	}
	all, err := w.blockedJobs()
	if err != nil {
		return err
	}
	all[job] = blockCount{Times: all[job].Times + 1, Last: w.db.clock()}
	return os.WriteFile(w.blockedFile(), core.JSON(all), 0o600)
}

// refusedJobs returns the jobs that blocked the writer too often, and until when they are refused.
func (w *writer) refusedJobs() map[string]time.Time {
	until := make(map[string]time.Time)
	all, err := w.blockedJobs()
	if err != nil {
		w.db.log.Warn("the list of jobs that blocked the database cannot be read", "file", w.blockedFile(), "err", err)
	}
	for job, counted := range all {
		if counted.Times >= stuckLimit {
			until[job] = counted.Last.Add(stuckAge)
			w.db.log.Error("a job is refused: it blocked the database three times", "job", job, "until", until[job])
		}
	}
	return until
}

// blockedJobs returns the counts that are not too old.
func (w *writer) blockedJobs() (map[string]blockCount, error) {
	all := make(map[string]blockCount)
	data, err := os.ReadFile(w.blockedFile())
	if errors.Is(err, fs.ErrNotExist) {
		return all, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &all)
	}
	maps.DeleteFunc(all, func(_ string, counted blockCount) bool { return w.db.clock().Sub(counted.Last) > stuckAge })
	return all, err
}
