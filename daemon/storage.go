package daemon

import (
	"context"
	"sync"

	"synthbot/core"
	"synthbot/core/engine"
	"synthbot/core/llm"
	"synthbot/core/txt"
	"synthbot/daemon/logs"
	"synthbot/memory"
)

// Storage is what a bot keeps. Where there is no database, for commands that only look,
// it is empty.
type Storage struct {
	Store core.Store
	DB    *memory.DB    // the store, if it is a database; else nil
	usage engine.Ledger // what engines were used for; nil without a database

	stateLocks sync.Map // of what interfaces store, by their names: *sync.Mutex
}

// openDatabase opens the database of the configuration. It creates a missing one.
func (b *Bot) openDatabase(c *Config) (core.Store, error) {
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
func (b *Bot) newStorage(store core.Store) *Storage {
	db, ok := store.(*memory.DB)
	if !ok {
		return &Storage{Store: store}
	}
	cost := func(engine string, u llm.Usage) float64 { return b.InForce().Config.Cost(engine, u) }
	return &Storage{Store: store, DB: db, usage: &usageStore{db: db, log: b.log, cost: cost}}
}

// Items is what a plugin keeps.
func (s *Storage) Items(plugin string) core.Items {
	if s.DB == nil {
		return nowhere{}
	}
	return s.DB.Items(plugin)
}

// Facts are the memories of the bot.
func (s *Storage) Facts() core.Facts {
	if s.DB == nil {
		return nowhere{}
	}
	return s.DB
}

// close closes the store when all use of engines is written.
func (s *Storage) close() error {
	if u, ok := s.usage.(*usageStore); ok {
		u.writing.Wait()
	}
	return s.Store.Close()
}

var _ core.Facts = (*memory.DB)(nil)

// nowhere is what plugins keep where there is no database: for commands that
// only look.
type nowhere struct{}

func (nowhere) Get(_ context.Context, path core.Path, key string) (core.Item, bool, error) {
	return core.Item{Path: path, Key: key}, false, nil
}
func (nowhere) Put(context.Context, core.Item) (uint64, error)       { return 0, core.ErrClosed }
func (nowhere) PutAll(context.Context, ...core.Item) error           { return core.ErrClosed }
func (nowhere) List(context.Context, core.Path) ([]core.Item, error) { return nil, nil }
func (nowhere) SaveFact(context.Context, core.Fact) (core.Fact, error) {
	return core.Fact{}, core.ErrClosed
}
func (nowhere) DropFact(context.Context, string, ...core.Path) error             { return core.ErrUnknown }
func (nowhere) Recall(context.Context, core.FactQuery) ([]core.FactMatch, error) { return nil, nil }
func (nowhere) Epoch() uint64                                                    { return 0 }

// reportSetAside reports to the admins what the database refuses to do.
func (b *Bot) reportSetAside() {
	if b.Data.DB == nil {
		return
	}
	for _, job := range b.Data.DB.RefusedJobs() {
		b.alerts.report("This is set aside for a day, because it blocked the database three times: " + txt.Line(job))
	}
}
