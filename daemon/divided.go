package daemon

import (
	"context"

	"synthbot/core"
	"synthbot/core/action"
)

// part is an interface that may be one of several of the same name. Each serves some places, perhaps
// in a process of its own.
type part interface {
	Part() string // which one it is; "" if there is no other
	Serves(place core.Path) bool
}

// label names an interface, and which part of it this is.
func label(i core.Interface) string {
	if p, ok := i.(part); ok && p.Part() != "" {
		return i.Name() + " " + p.Part()
	}
	return i.Name()
}

// divided is an interface in several parts as one plugin, whose actions are those of the part that
// serves the place.
type divided struct {
	core.Interface // the first part
	parts          *parts
}

var _ action.Resolver = (*divided)(nil)

// Type is the kind of interface.
func (d *divided) Type() string { return d.parts.Config.kinds[d.Name()] }

// Find implements action.Resolver.
func (d *divided) Find(from core.Path, name string) (core.Path, error) {
	return d.parts.at(from).(action.Resolver).Find(from, name)
}

// Actions implements core.Plugin.
func (d *divided) Actions() []core.Action {
	all := d.Interface.Actions()
	byPart := make(map[core.Interface][]core.Action)
	for _, i := range d.parts.named(d.Name()) {
		byPart[i] = i.Actions()
	}
	for n := range all {
		of := func(call *core.Call) *core.Action {
			if actions, ok := byPart[d.parts.at(call.Path)]; ok {
				return &actions[n]
			}
			return &byPart[d.Interface][n] // a place of another interface
		}
		a := &all[n]
		if a.Check != nil {
			a.Check = func(ctx context.Context, call core.Call) error { return of(&call).Check(ctx, call) }
		}
		if a.Undo != nil {
			a.Undo = func(ctx context.Context, call core.Call, done core.Result) error {
				return of(&call).Undo(ctx, call, done)
			}
		}
		a.Do = func(ctx context.Context, call core.Call) (core.Result, error) { return of(&call).Do(ctx, call) }
	}
	return all
}
