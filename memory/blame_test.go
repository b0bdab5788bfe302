package memory

import (
	"errors"
	"testing"

	"synthbot/memory/kv"
)

// aheadTx is a transaction of an engine that reads ahead.
type aheadTx struct{ kv.Tx }

func (aheadTx) Ahead(...kv.Range) {}

// TestBlame: no job is to blame for what fails while the next one is announced.
func TestBlame(t *testing.T) {
	db := open(t, t.TempDir())
	errHere := errors.New("here")
	g := &groupCommit{db: db}
	later := &job{ahead: func(*tx) []kv.Range { panic(errHere) }, run: func(*tx) error { return nil }}
	g.jobs = []*job{{run: func(*tx) error { g.jobs = append(g.jobs, later); return nil }}}
	g.sealed = true
	err := db.engine.Update(func(b kv.Tx) (err error) {
		defer func() { err, _ = recover().(error) }()
		return g.write(aheadTx{b})
	})
	if !errors.Is(err, errHere) || g.failed != nil {
		t.Errorf("it failed with %v, to blame is %v", err, g.failed)
	}
}
