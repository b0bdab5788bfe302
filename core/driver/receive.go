package driver

import (
	"context"
	"errors"
	"slices"

	"synthbot/core"
)

// MaxDamaged is how often events may fail with core.ErrDamaged while others are stored, before they are skipped.
const MaxDamaged = 3

// Receiver stores events in an inbox. What can never be stored is skipped, so that it does not stop what comes after
// it. Not safe for concurrent use.
type Receiver struct {
	Inbox core.Inbox
	Skip  func(first *core.Event, err error) // logs that a group of events is skipped

	faults map[eventKey]int // how often a group failed with core.ErrDamaged while others were stored, or MaxDamaged
}

// eventKey identifies a group of events by its first one.
type eventKey struct {
	path           core.Path
	kind           core.Kind
	id, data, text string // an edit has the id of its message
}

func keyOf(group []core.Event) eventKey {
	e := &group[0]
	return eventKey{e.Message.Path, e.Kind, e.Message.ID, e.Data, e.Message.Text}
}

// Receive stores groups of events, each of one place, in one commit, or one by one if that fails because of one of
// them. After an error, the caller calls Receive again with the same groups, perhaps among others.
func (r *Receiver) Receive(ctx context.Context, groups [][]core.Event) error {
	if len(r.faults) > 0 {
		skipped := func(group []core.Event) bool { return r.faults[keyOf(group)] >= MaxDamaged }
		groups = slices.DeleteFunc(slices.Clone(groups), skipped)
	}
	var err error
	switch len(groups) {
	case 0:
	case 1:
		err = r.Inbox.Receive(ctx, groups[0]...)
	default:
		err = r.Inbox.Receive(ctx, slices.Concat(groups...)...)
	}
	if errors.Is(err, core.ErrBadEvent) || errors.Is(err, core.ErrDamaged) {
		err = r.receiveEach(ctx, groups)
	}
	if err == nil {
		r.faults = nil
	}
	return err
}

// receiveEach stores groups one by one. After a failure, further groups of the same place are not stored, to keep the
// order.
func (r *Receiver) receiveEach(ctx context.Context, groups [][]core.Event) (failure error) {
	stuck, damaged := map[core.Path]bool{}, map[int]error{}
	stored := false
	for n, group := range groups {
		place := group[0].Message.Path
		if stuck[place] {
			continue
		}
		switch err := r.Inbox.Receive(ctx, group...); {
		case err == nil:
			stored = true
		case errors.Is(err, core.ErrBadEvent):
			r.addFaults(MaxDamaged, group, err)
		default:
			failure, stuck[place] = err, true
			if errors.Is(err, core.ErrDamaged) {
				damaged[n] = err
			}
		}
	}
	for n, err := range damaged {
		if stored { // else perhaps nothing at all can be stored
			r.addFaults(1, groups[n], err)
		}
	}
	return failure
}

// addFaults adds faults of a group, which is skipped once it has MaxDamaged.
func (r *Receiver) addFaults(n int, group []core.Event, err error) {
	if r.faults == nil {
		r.faults = map[eventKey]int{}
	}
	key := keyOf(group)
	r.faults[key] += n
	if r.faults[key] >= MaxDamaged {
		r.Skip(&group[0], err)
	}
}
