package main

import (
	"context"

	"synthbot/core"
)

// nothing is the store of a bot that never heard a word: for commands that only
// look, where there is no database yet.
type nothing struct{}

func (nothing) Commit(context.Context, *core.Batch) error { return core.ErrClosed }
func (nothing) View(_ context.Context, f func(core.View) error) error {
	return f(nothing{})
}
func (nothing) Installation() string { return "" }
func (nothing) Close() error         { return nil }

func (nothing) Head(p core.Path) (core.Head, error)                { return core.Head{Path: p}, nil }
func (nothing) Places(core.Path) ([]core.Head, error)              { return nil, nil }
func (nothing) Waiting() ([]core.Path, error)                      { return nil, nil }
func (nothing) Due(core.Path, int) ([]core.Entry, error)           { return nil, nil }
func (nothing) Entry(core.Path, string) (core.Entry, bool, error)  { return core.Entry{}, false, nil }
func (nothing) After(core.Path, uint64, int) ([]core.Entry, error) { return nil, nil }
func (nothing) Last(core.Path, int) ([]core.Entry, error)          { return nil, nil }
func (nothing) State(core.Path) (core.State, error)                { return core.State{}, nil }
func (nothing) Journal(core.TurnID) ([]core.Record, error)         { return nil, nil }
func (nothing) Recent(core.Path, int, func(core.Path) bool) ([]core.Entry, error) {
	return nil, nil
}
