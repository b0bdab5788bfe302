package memory

import (
	"errors"
	"testing"

	"synthbot/memory/kv"
)

// prefetchTx is a transaction of an engine with prefetching.
type prefetchTx struct{ kv.Tx }

func (prefetchTx) Prefetch(...kv.Range) {}

// TestBlame: a job is not blamed if the prefetch of the next one fails.
func TestBlame(t *testing.T) {
	db := open(t, t.TempDir())
	errHere := errors.New("here")
	g := &groupCommit{db: db}
	later := &job{prefetch: func(*tx, *reads) { panic(errHere) }, run: func(*tx) error { return nil }}
	g.jobs = []*job{{run: func(*tx) error { g.jobs = append(g.jobs, later); return nil }}}
	g.sealed = true
	err := db.engine.Update(func(b kv.Tx) (err error) {
		defer func() { err, _ = recover().(error) }()
		return g.write(prefetchTx{b})
	})
	if !errors.Is(err, errHere) || g.failed != nil {
		t.Errorf("the group failed with %v and blames %v, want the later job", err, g.failed)
	}
}
