package daemon

import (
	"sync"

	"synthbot/core"
	"synthbot/core/engine"
	"synthbot/core/llm"
	"synthbot/daemon/logs"
	"synthbot/memory"
)

// Store is what keeps all that a bot keeps: a *memory.DB, or EmptyStore.
type Store interface {
	core.Store
	core.Facts
	Items(plugin string) core.Items
}

// Storage is what a bot keeps. Safe for concurrent use.
type Storage struct {
	Store
	DB    *memory.DB    // the store, if it is a database, as of each bot that runs; else nil
	usage engine.Ledger // what engines were used for; nil without a database

	stateLocks sync.Map // of what interfaces store, by their names: *sync.Mutex
}

// openDatabase opens the database of the configuration. It creates a missing one.
func (b *Bot) openDatabase(c *Config) (Store, error) {
	dir, err := c.DataDir(b.env.Getenv)
	if err != nil {
		return nil, err
	}
	o := b.env.StoreOptions()
	o.Config, o.Log = c.Memory, logs.Room(b.log, "memory")
	o.OnFull = func(full bool) {
		if b.InForce().Engines != nil { // else the bot is not built yet
			b.monitor.diskFull(full)
		}
	}
	return memory.Open(dir, o)
}

// newStorage returns what a bot keeps in a store.
func (b *Bot) newStorage(store Store) *Storage {
	db, ok := store.(*memory.DB)
	if !ok {
		return &Storage{Store: store}
	}
	cost := func(engine string, u llm.Usage) float64 { return b.InForce().Config.Cost(engine, u) }
	return &Storage{Store: store, DB: db, usage: &usageStore{db: db, log: b.log, cost: cost}}
}

// close closes the store when all use of engines is written.
func (s *Storage) close() error {
	if u, ok := s.usage.(*usageStore); ok {
		u.writing.Wait()
	}
	return s.Store.Close()
}
