package engine

import (
	"context"
	"sync"

	"synthbot/core"
	"synthbot/core/llm"
)

// Tally is a Ledger in memory. It holds one day and forgets it with the process.
type Tally struct {
	mu   sync.Mutex
	day  string
	sums map[core.Path]Spending
}

// maxScopes bounds a Tally; beyond it, further places and persons of the day
// count for the bot alone.
const maxScopes = 100_000

// NewTally makes an empty Tally.
func NewTally() *Tally { return &Tally{sums: make(map[core.Path]Spending)} }

// Spent implements Ledger.
func (t *Tally) Spent(_ context.Context, day string, scope core.Path) (Spending, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if day != t.day {
		return Spending{}, nil
	}
	return t.sums[scope], nil
}

// Record implements Ledger.
func (t *Tally) Record(_ context.Context, u Use) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if u.Day > t.day {
		t.day, t.sums = u.Day, make(map[core.Path]Spending)
	}
	if u.Day != t.day {
		return nil // of a day that is over
	}
	t.add(core.Path{}, u.Usage, u.Cost)
	for scope := u.Place; !scope.IsZero(); scope = scope.Parent() {
		t.add(scope, u.Usage, u.Cost)
	}
	for i, person := range u.People {
		usage, cost := u.Share(i)
		t.add(person, usage, cost)
	}
	return nil
}

func (t *Tally) add(scope core.Path, u llm.Usage, cost float64) {
	s, known := t.sums[scope]
	if !known && len(t.sums) >= maxScopes && !scope.IsZero() {
		return
	}
	s.Tokens += int64(u.In + u.Out)
	s.Cost += cost
	t.sums[scope] = s
}
