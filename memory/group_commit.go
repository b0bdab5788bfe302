package memory

import "time"

// Limits of what one transaction carries.
const (
	maxGroup      = 1024
	maxGroupBytes = 16 << 20
)

// groupCommit is what one transaction carries.
type groupCommit struct {
	jobs   []*job
	size   int           // of the jobs, in bytes
	shut   bool          // nobody joins any more
	waited time.Duration // for those who might
}

// fits reports whether a job may share the transaction. One that is written
// between two of them shares with none.
func (g *groupCommit) fits(j *job) bool {
	if len(g.jobs) == 0 {
		return true
	}
	return len(g.jobs) < maxGroup && g.size+j.size <= maxGroupBytes && j.alone == nil && g.jobs[0].alone == nil
}

func (g *groupCommit) add(j *job) {
	j.taken = true
	g.jobs, g.size = append(g.jobs, j), g.size+j.size
}

// publish reports to all what became of their jobs.
func (g *groupCommit) publish() {
	for _, j := range g.jobs {
		if j.publish != nil {
			j.publish()
		}
		j.done <- nil
	}
}

// crowd remembers how many wrote together of late. Those whom a commit answered
// get the chance to come back before the next one ends: without it, they split
// in two halves that wait for each other's sync. A single writer never waits.
type crowd struct {
	size int
	took time.Duration // the last commit
}

// after is the crowd after a commit: how many it carried, or came meanwhile, and
// how long it took.
func (c crowd) after(size int, took time.Duration) crowd {
	return crowd{max(size, c.size*3/4), took}
}

// many reports whether it is worth while to wait: two are a place whose one turn
// ends while its next begins.
func (c crowd) many() bool { return c.size >= 3 }

// join lets others into the group, whose transaction runs already: so it works
// on those who are there while the rest comes. It waits until as many are there
// as the last time, for a fraction of what a commit takes at most.
func (w *writer) join(g *groupCommit) bool {
	patience := min(w.crowd.took/2, 2*time.Millisecond)
	for before := len(g.jobs); !g.shut && before < w.crowd.size; {
		closed := w.db.queue.take(g)
		if len(g.jobs) > before {
			return true
		}
		if closed {
			w.db.queue.poke() // so that run, too, finds it closed
			break
		}
		if g.waited >= patience {
			break
		}
		start := time.Now()
		w.db.queue.await(patience - g.waited)
		g.waited += time.Since(start)
	}
	g.shut = true
	return false
}
