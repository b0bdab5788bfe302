package daemon

import (
	"bytes"
	"context"
	"errors"

	"synthbot/core"
	"synthbot/core/values"
	"synthbot/daemon/logs"
	"synthbot/daemon/settings"
	"synthbot/memory"
)

// Store is the storage of a bot: a *memory.DB, or EmptyStore.
type Store interface {
	core.Store
	core.Facts
	Items(plugin string) core.Items
}

// Storage is the store of a bot, and the ledger of its budgets. Safe for concurrent use.
type Storage struct {
	Store
	DB    *memory.DB  // the store if it is a database, as it is for every running bot; nil otherwise
	usage *usageStore // the usage of engines; nil without a database
}

func (b *Bot) openStore(l RunOptions) error {
	open := l.Open
	if open == nil {
		open = func() (Store, error) { return b.openDatabase(l.Config) }
	}
	store, err := open()
	if err != nil {
		return err
	}
	b.Data = &Storage{Store: store}
	if db, ok := store.(*memory.DB); ok {
		b.Data.DB, b.Data.usage = db, &usageStore{bot: b, db: db}
	}
	b.changes, err = settings.Open[settings.Settings](context.Background(), b.workers.sharing.items(botItems))
	if err != nil {
		return errors.Join(err, store.Close())
	}
	return nil
}

func (b *Bot) openDatabase(c *Config) (Store, error) {
	dir, err := c.DataDir(b.env.Getenv)
	if err != nil {
		return nil, err
	}
	o := b.env.StoreOptions()
	o.Config, o.Log = c.Memory, logs.Room(b.log, "memory")
	o.OnFull = b.monitor.outageHandler("disk", &b.monitor.full,
		"The disk is full. I accept no messages until there is space; nothing is lost.",
		"There is space on the disk again, and I go on.")
	o.OnAway = b.monitor.outageHandler("database", &b.monitor.away,
		"The database cannot be reached. I accept no messages until it can; nothing is lost.",
		"The database can be reached again, and I go on.")
	o.Server, o.OnFenced, o.OnHint = c.Store, b.monitor.end, b.workers.sharing.handleHint
	return memory.Open(dir, o)
}

type interfaceState struct {
	items core.Items
	place core.Path
	db    *memory.DB
}

func (s *Storage) interfaceState(name string) *interfaceState {
	place, _ := core.MakePath(name) // the configuration takes no name that is not a path
	return &interfaceState{s.Items("interface " + name), place, s.DB}
}

// Get returns nil for an unknown key.
func (s *interfaceState) Get(ctx context.Context, key string) (value []byte, err error) {
	value, _, err = values.Get[[]byte](ctx, s.items, s.place, key)
	return value, err
}

// Put is durable when it returns.
func (s *interfaceState) Put(ctx context.Context, key string, value []byte) error {
	return values.Put(ctx, s.items, s.place, key, value)
}

// Swap implements driver.Swapper.
func (s *interfaceState) Swap(ctx context.Context, key string, old, value []byte) (ok bool, err error) {
	err = values.Edit(ctx, s.items, s.place, key, func(now *[]byte) (keep bool, err error) {
		if !bytes.Equal(*now, old) {
			return false, core.ErrVersion
		}
		*now = value
		return true, nil
	})
	if errors.Is(err, core.ErrVersion) {
		return false, nil
	}
	return err == nil, err
}

// Holds implements driver.Holder.
func (s *interfaceState) Holds() bool { return s.db == nil || memory.OwnsParts(s.db) }

// EmptyStore is a read-only store without content. Commands that only read use it while there is no database yet.
type EmptyStore struct{}

func (EmptyStore) Commit(context.Context, *core.Batch) error             { return core.ErrClosed }
func (EmptyStore) View(_ context.Context, f func(core.View) error) error { return f(EmptyStore{}) }
func (EmptyStore) Forgotten(context.Context, ...core.Path) bool          { return false }
func (EmptyStore) Installation() string                                  { return "" }
func (EmptyStore) Close() error                                          { return nil }

func (EmptyStore) Head(p core.Path) (core.Head, error)                               { return core.Head{Path: p}, nil }
func (EmptyStore) Places(core.Path) ([]core.Head, error)                             { return nil, nil }
func (EmptyStore) Waiting() ([]core.Path, error)                                     { return nil, nil }
func (EmptyStore) Due(core.Path, int) ([]core.Entry, error)                          { return nil, nil }
func (EmptyStore) Entry(core.Path, string) (core.Entry, bool, error)                 { return core.Entry{}, false, nil }
func (EmptyStore) Last(core.Path, int) ([]core.Entry, error)                         { return nil, nil }
func (EmptyStore) State(core.Path) (core.State, error)                               { return core.State{}, nil }
func (EmptyStore) Journal(core.TurnID) ([]core.Record, error)                        { return nil, nil }
func (EmptyStore) After(core.Path, uint64, int, []core.Entry) ([]core.Entry, error)  { return nil, nil }
func (EmptyStore) Recent(core.Path, int, func(core.Path) bool) ([]core.Entry, error) { return nil, nil }

func (EmptyStore) SaveFact(_ context.Context, f core.Fact) (core.Fact, error) {
	return f, core.ErrClosed
}
func (EmptyStore) DropFact(context.Context, string, ...core.Path) error        { return core.ErrUnknown }
func (EmptyStore) Recall(context.Context, core.FactQuery) ([]core.Fact, error) { return nil, nil }
func (EmptyStore) Epoch() uint64                                               { return 0 }

// Items returns the items of a plugin: none.
func (EmptyStore) Items(string) core.Items { return EmptyStore{} }

func (EmptyStore) Get(_ context.Context, path core.Path, key string) (core.Item, bool, error) {
	return core.Item{Path: path, Key: key}, false, nil
}
func (EmptyStore) Put(context.Context, core.Item) (uint64, error)       { return 0, core.ErrClosed }
func (EmptyStore) PutAll(context.Context, ...core.Item) error           { return core.ErrClosed }
func (EmptyStore) List(context.Context, core.Path) ([]core.Item, error) { return nil, nil }
