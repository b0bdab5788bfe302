package memory

import (
	"time"

	"synthbot/core"
)

// Limits of one transaction.
const (
	maxGroup      = 1024
	maxGroupBytes = 16 << 20
)

// groupCommit is the jobs of one transaction.
type groupCommit struct {
	jobs   []*job
	size   int           // of the jobs, in bytes
	sealed bool          // no more jobs join
	waited time.Duration // for more jobs
}

// publish reports the outcome to the callers.
func (g *groupCommit) publish() {
	for _, j := range g.jobs {
		if j.publish != nil {
			j.publish()
		}
		j.done <- nil
	}
}

// join adds jobs to the group, whose transaction already runs. It waits until there are as
// many as of late, for a fraction of a commit at most. Without it, callers that write again
// and again would split in two groups that wait for each other's sync.
func (w *writer) join(g *groupCommit) bool {
	patience := min(w.took/2, 2*time.Millisecond)
	for before := len(g.jobs); !g.sealed && before < w.recentWriters; {
		closed := w.db.queue.take(g)
		if len(g.jobs) > before {
			return true
		}
		if closed {
			core.Notify(w.db.queue.wake) // so that run, too, finds it closed
			break
		}
		if g.waited >= patience {
			break
		}
		start := time.Now()
		select {
		case <-w.db.queue.wake:
		case <-time.After(patience - g.waited):
		}
		g.waited += time.Since(start)
	}
	g.sealed = true
	return false
}
