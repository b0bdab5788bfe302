package daemon

import (
	"context"

	"synthbot/core"
)

// EmptyStore is the store of a bot that never heard a word: for commands that only
// look, where there is no database yet.
type EmptyStore struct{}

func (EmptyStore) Commit(context.Context, *core.Batch) error { return core.ErrClosed }
func (EmptyStore) View(_ context.Context, f func(core.View) error) error {
	return f(EmptyStore{})
}
func (EmptyStore) Installation() string { return "" }
func (EmptyStore) Close() error         { return nil }

func (EmptyStore) Head(p core.Path) (core.Head, error)                { return core.Head{Path: p}, nil }
func (EmptyStore) Places(core.Path) ([]core.Head, error)              { return nil, nil }
func (EmptyStore) Waiting() ([]core.Path, error)                      { return nil, nil }
func (EmptyStore) Due(core.Path, int) ([]core.Entry, error)           { return nil, nil }
func (EmptyStore) Entry(core.Path, string) (core.Entry, bool, error)  { return core.Entry{}, false, nil }
func (EmptyStore) After(core.Path, uint64, int) ([]core.Entry, error) { return nil, nil }
func (EmptyStore) Last(core.Path, int) ([]core.Entry, error)          { return nil, nil }
func (EmptyStore) State(core.Path) (core.State, error)                { return core.State{}, nil }
func (EmptyStore) Journal(core.TurnID) ([]core.Record, error)         { return nil, nil }
func (EmptyStore) Recent(core.Path, int, func(core.Path) bool) ([]core.Entry, error) {
	return nil, nil
}
