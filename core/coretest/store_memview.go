package coretest

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"synthbot/core"
)

// memView is a View of a MemStore. The store is locked meanwhile.
type memView struct{ s *MemStore }

func (v memView) Head(p core.Path) (core.Head, error) {
	p, _ = v.s.resolve(p)
	return v.head(p), nil
}

// State implements core.View.
func (v memView) State(p core.Path) (core.State, error) {
	at, _ := v.s.resolve(p)
	return v.s.states[at], nil
}

func (v memView) head(p core.Path) core.Head {
	h := core.Head{Path: p}
	if l := v.s.places[p]; l != nil && len(l.entries) > 0 {
		h.Last, h.Answered, h.Private = uint64(len(l.entries)), l.answered, l.private
		h.Count = h.Last
		h.Time = l.entries[len(l.entries)-1].Message.Time
	}
	return h
}

func (v memView) Places(root core.Path) ([]core.Head, error) {
	root, _ = v.s.resolve(root)
	var heads []core.Head
	for p, l := range v.s.places {
		if p.Within(root) && len(l.entries) > 0 {
			heads = append(heads, v.head(p))
		}
	}
	slices.SortFunc(heads, func(a, b core.Head) int { return comparePaths(a.Path, b.Path) })
	return heads, nil
}

// comparePaths compares paths by element, so that a place comes before those below it.
func comparePaths(a, b core.Path) int {
	return slices.Compare(strings.Split(a.String(), "/"), strings.Split(b.String(), "/"))
}

func (v memView) Waiting() ([]core.Path, error) {
	var places []core.Path
	for p, l := range v.s.places {
		if slices.Contains(l.waits, true) {
			places = append(places, p)
		}
	}
	slices.SortFunc(places, comparePaths)
	return places, nil
}

func (v memView) Due(p core.Path, max int) ([]core.Entry, error) {
	return v.pick(p, 0, max, func(l *memPlace, i int) bool { return l.waits[i] }), nil
}

func (v memView) After(p core.Path, seq uint64, max int, _ []core.Entry) ([]core.Entry, error) {
	return v.pick(p, seq, max, func(*memPlace, int) bool { return true }), nil
}

func (v memView) pick(p core.Path, seq uint64, max int, want func(*memPlace, int) bool) []core.Entry {
	p, shift := v.s.resolve(p)
	l := v.s.places[p]
	var entries []core.Entry
	for i := seq + shift; l != nil && i < uint64(len(l.entries)) && len(entries) < max; i++ {
		if want(l, int(i)) {
			entries = append(entries, cloneEntry(l.entries[i]))
		}
	}
	return entries
}

func (v memView) Entry(from core.Path, id string) (core.Entry, bool, error) {
	p, shift := v.s.resolve(from)
	seq, ok := v.s.ids[from][id]
	if !ok {
		return core.Entry{}, false, nil
	}
	return cloneEntry(v.s.places[p].entries[seq+shift-1]), true, nil
}

func (v memView) Last(p core.Path, n int) ([]core.Entry, error) {
	p, _ = v.s.resolve(p)
	return v.last(p, n), nil
}

func (v memView) last(p core.Path, n int) []core.Entry {
	l := v.s.places[p]
	if l == nil || n <= 0 {
		return nil
	}
	var entries []core.Entry
	for _, e := range l.entries[max(len(l.entries)-n, 0):] {
		entries = append(entries, cloneEntry(e))
	}
	return entries
}

func (v memView) Recent(root core.Path, n int, keep func(core.Path) bool) ([]core.Entry, error) {
	root, _ = v.s.resolve(root)
	var logs [][]core.Entry
	heads, _ := v.Places(root)
	for _, h := range heads {
		if keep == nil || keep(h.Path) {
			logs = append(logs, v.last(h.Path, n))
		}
	}
	var entries []core.Entry
	for range max(n, 0) {
		newest := -1
		for i, l := range logs {
			if len(l) > 0 && (newest < 0 || !lastTime(l).Before(lastTime(logs[newest]))) {
				newest = i
			}
		}
		if newest < 0 {
			break
		}
		l := logs[newest]
		entries = append(entries, l[len(l)-1])
		logs[newest] = l[:len(l)-1]
	}
	slices.Reverse(entries)
	return entries, nil
}

// lastTime returns the time of a log's last entry.
func lastTime(l []core.Entry) time.Time { return l[len(l)-1].Message.Time }

func (v memView) Journal(turn core.TurnID) ([]core.Record, error) {
	turn = v.s.turn(turn)
	var records []core.Record
	for key, r := range v.s.records {
		if key.Turn == turn {
			r.Data = slices.Clone(r.Data)
			records = append(records, r)
		}
	}
	slices.SortFunc(records, func(a, b core.Record) int {
		x, y := a.Key, b.Key
		return cmp.Or(cmp.Compare(x.Round, y.Round), cmp.Compare(x.Step, y.Step), cmp.Compare(x.Part, y.Part))
	})
	return records, nil
}
