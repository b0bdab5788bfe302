package memory

import (
	"errors"
	"testing"

	"synthbot/memory/kv"
)

// prefetchTx is a transaction of an engine that prefetches.
type prefetchTx struct{ kv.Tx }

func (prefetchTx) Prefetch(...kv.Range) {}

// TestBlame checks that no job is blamed for a failure of the next one's prefetch.
func TestBlame(t *testing.T) {
	db := open(t, t.TempDir())
	errHere := errors.New("here")
	g := &groupCommit{db: db}
	later := &job{prefetch: func(*tx) []kv.Range { panic(errHere) }, run: func(*tx) error { return nil }}
	g.jobs = []*job{{run: func(*tx) error { g.jobs = append(g.jobs, later); return nil }}}
	g.sealed = true
	err := db.engine.Update(func(b kv.Tx) (err error) {
		defer func() { err, _ = recover().(error) }()
		return g.write(prefetchTx{b})
	})
	if !errors.Is(err, errHere) || g.failed != nil {
		t.Errorf("it failed with %v, and blames %v", err, g.failed)
	}
}
