package daemon

import (
	"context"

	"synthbot/core"
)

// EmptyStore is the store of a bot that never heard a word: for commands that only
// look, where there is no database yet. Nothing can be written into it.
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

func (EmptyStore) SaveFact(_ context.Context, f core.Fact) (core.Fact, error) {
	return f, core.ErrClosed
}
func (EmptyStore) DropFact(context.Context, string, ...core.Path) error             { return core.ErrUnknown }
func (EmptyStore) Recall(context.Context, core.FactQuery) ([]core.FactMatch, error) { return nil, nil }
func (EmptyStore) Epoch() uint64                                                    { return 0 }

// Items returns what a plugin keeps: nothing.
func (EmptyStore) Items(string) core.Items { return EmptyStore{} }

func (EmptyStore) Get(_ context.Context, path core.Path, key string) (core.Item, bool, error) {
	return core.Item{Path: path, Key: key}, false, nil
}
func (EmptyStore) Put(context.Context, core.Item) (uint64, error)       { return 0, core.ErrClosed }
func (EmptyStore) PutAll(context.Context, ...core.Item) error           { return core.ErrClosed }
func (EmptyStore) List(context.Context, core.Path) ([]core.Item, error) { return nil, nil }
