package daemon

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"synthbot/core"
	"synthbot/core/engine"
	"synthbot/core/llm"
	"synthbot/memory"
)

// usageStore implements engine.Ledger on the database. Every use is counted twice: for the
// place, and for the people who caused it, in shares. Sums of the day are held in memory; they
// are written in the commits that a turn makes anyway.
type usageStore struct {
	bot *Bot
	db  *memory.DB

	mu      sync.Mutex
	day     string
	sums    map[core.Path]engine.Spending // of the day, by place and by person
	writing sync.WaitGroup
}

// Record implements engine.Ledger.
func (l *usageStore) Record(ctx context.Context, u engine.Use) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.turnTo(ctx, u.Day); err != nil {
		return err
	}
	uses := []memory.Use{{Day: u.Day, Person: u.Place, Engine: u.Engine, Calls: 1, Usage: u.Usage}}
	l.add(u.Place, u.Engine, u.Usage)
	for i, person := range u.People {
		share, _ := u.Share(i)
		uses = append(uses, memory.Use{Day: u.Day, Person: person, Engine: u.Engine, Calls: 1, Usage: share})
		l.add(person, u.Engine, share)
	}
	written := l.db.AddUse(uses...)
	l.writing.Go(func() {
		if err := <-written; err != nil {
			l.bot.log.Error("use not written", "err", err)
		}
	})
	return nil
}

func (l *usageStore) add(whose core.Path, name string, u llm.Usage) {
	s := l.sums[whose]
	s.Tokens += int64(u.In + u.Out)
	s.Cost += l.bot.InForce().Config.Cost(name, u)
	l.sums[whose] = s
}

// turnTo makes sure that the sums are those of the day. l.mu is held.
func (l *usageStore) turnTo(ctx context.Context, day string) error {
	if l.day == day {
		return nil
	}
	uses, err := l.db.Uses(ctx, day, day)
	if err != nil {
		return fmt.Errorf("usage: %w", err)
	}
	l.day, l.sums = day, make(map[core.Path]engine.Spending)
	for _, u := range uses {
		l.add(u.Person, u.Engine, u.Usage)
	}
	return nil
}

// Spent implements engine.Ledger.
func (l *usageStore) Spent(ctx context.Context, day string, scope core.Path) (engine.Spending, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.turnTo(ctx, day); err != nil {
		return engine.Spending{}, err
	}
	if scope.IsPerson() {
		return l.sums[scope], nil
	}
	var all engine.Spending
	for whose, s := range l.sums {
		if !whose.IsPerson() && whose.Within(scope) {
			all.Tokens += s.Tokens
			all.Cost += s.Cost
		}
	}
	return all, nil
}

// Cost is what a use of an engine costs, by the prices of the configuration.
func (c *Config) Cost(name string, u llm.Usage) float64 {
	for _, e := range c.Engines {
		if e.Name == name || e.Name == "" && e.Provider == name {
			return e.Cost(u)
		}
	}
	return speechCost(&c.Speech, name, u)
}

// Spent is what one engine was used for on one day.
type Spent struct {
	Day, Engine string
	Calls       int
	llm.Usage
}

// Spending adds up uses by day and engine.
func Spending(uses []memory.Use) (rows []Spent) {
	for _, u := range uses {
		if u.Person.IsPerson() {
			continue // each use is there for its place, too
		}
		i := slices.IndexFunc(rows, func(s Spent) bool { return s.Day == u.Day && s.Engine == u.Engine })
		if i < 0 {
			rows = append(rows, Spent{u.Day, u.Engine, u.Calls, u.Usage})
			continue
		}
		rows[i].Calls += u.Calls
		rows[i].In, rows[i].Cached, rows[i].Out = rows[i].In+u.In, rows[i].Cached+u.Cached, rows[i].Out+u.Out
	}
	return rows
}
