package memory

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	berrors "go.etcd.io/bbolt/errors"

	"synthbot/core"
)

// FileName is the name of the database within the data directory.
const FileName = "synthbot.db"

// Options of a DB; the zero value is usable and prunes nothing.
type Options struct {
	Config
	Log   *slog.Logger     // nil: silent
	Clock func() time.Time // nil: time.Now
	// OnDamaged, if set, is called when the check after an unclean stop, which goes
	// on in the background, finds the file damaged.
	OnDamaged func(error)
	// Embedder lets facts be found by what they mean; see SetEmbedder.
	Embedder Embedder
	// OnFull, if set, is called when writing begins to fail because the disk is full,
	// and again when it works. It is called by one goroutine at a time, which
	// waits for it; it may use the DB.
	OnFull func(bool)
	// OnStuck, if set, is called once when the writer has made no progress on a job for
	// Patience, and ten times that where the disk is at work. Nothing can be written any
	// more: the process should end. Job is "" if no job is the cause.
	OnStuck  func(job string)
	Patience time.Duration // 0: 30 seconds
	// BeforeJob, if set, is called by the writer before each job. It is for
	// tests of what happens when a job does not end.
	BeforeJob func(job string)
	// SkipCheck leaves that check out.
	SkipCheck bool
}

var (
	_ core.Store = (*DB)(nil)
	_ core.Facts = (*DB)(nil)

	_ core.Forgetter = (*DB)(nil)
)

// DB is the open database. Safe for concurrent use; one process at a time.
type DB struct {
	log      *slog.Logger
	clock    func() time.Time
	file     *boltFile
	queue    *queue
	writer   *writer
	epochs   epochs
	meaning  *meaning
	room     *room
	oddities oddities
	pruning  *pruning
	blocked  *blockedJobs

	compacting chan struct{}      // holds a token while the file is compacted
	stop       context.CancelFunc // ends what works in the background
	work       sync.WaitGroup
	checking   sync.WaitGroup // the check after an unclean stop
}

// Open opens the database in dir and makes both where they are missing. Its
// errors name the file, the likely cause and the fix; they wrap core.ErrLocked
// or core.ErrDamaged where that is it. Close ends everything that it began.
func Open(dir string, o Options) (*DB, error) {
	db := newDB(filepath.Join(dir, FileName), o)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, openError(dir, err)
	}
	if err := db.file.open(); err != nil {
		return nil, openError(db.file.name, err)
	}
	if err := db.prepare(); err != nil {
		return nil, errors.Join(openError(db.file.name, err), db.release())
	}
	background, stop := context.WithCancel(context.Background())
	db.stop = stop
	db.writer.watch.aside = db.blocked.refused()
	go db.writer.run()
	db.startWatch(background, o)
	db.room.begin(background)
	db.meaning.begin(background, o.Embedder)
	db.startCheck(background, o)
	db.pruning.start(background)
	db.startTidying(background)
	return db, nil
}

// newDB is a DB whose file is still to be opened.
func newDB(name string, o Options) *DB {
	log := cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	db := &DB{log: log, clock: o.Clock, queue: newQueue(), compacting: make(chan struct{}, 1)}
	if db.clock == nil {
		db.clock = time.Now
	}
	db.file = newBoltFile(name, db.log)
	db.writer = &writer{db: db}
	db.blocked = &blockedJobs{file: name + stuckSuffix, clock: func() time.Time { return db.clock() }, log: db.log}
	if o.BeforeJob != nil {
		db.writer.fault = func(_ *tx, j *job) { o.BeforeJob(j.called()) }
	}
	db.meaning = &meaning{db: db, wake: make(chan struct{}, 1)}
	db.room = &room{db: db, tell: o.OnFull, scarce: make(chan struct{}, 1)}
	db.pruning = &pruning{db: db, changed: make(chan struct{}, 1)}
	db.SetConfig(o.Config)
	return db
}

// Close writes what waits, ends the background work and closes the file. Views
// must have ended. Whatever is called afterwards returns core.ErrClosed.
func (db *DB) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), tidyClose)
	defer cancel()
	db.tidy(ctx)
	if !db.queue.close() {
		return nil
	}
	db.stop()
	db.checking.Wait()
	db.work.Wait()
	return db.release()
}

// release closes the file. Where a panic left bbolt's locks behind, waiting for
// them would never end: then only the file itself is unlocked and closed.
func (db *DB) release() error {
	if db.writer.broken != nil {
		unlock(db.file.handle)
		return errors.Join(db.writer.broken, db.file.handle.Close())
	}
	if err := db.file.bolt.Close(); err != nil {
		return fmt.Errorf("%s: %w", db.file.name, err)
	}
	return nil
}

// openError names the likely cause and the fix.
func openError(name string, err error) error {
	var dir *fs.PathError
	switch {
	case errors.Is(err, berrors.ErrTimeout), errors.Is(err, core.ErrLocked):
		return fmt.Errorf("%s: %w: most likely another synthbot runs with this data directory; "+
			"stop it, or give this one its own bot.data_dir", name, core.ErrLocked)
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return fmt.Errorf("%s: %w: this user must be able to read and write it; give them the right, "+
			"or set another bot.data_dir", name, bare(err))
	case errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.EISDIR), errors.Is(err, fs.ErrExist):
		return fmt.Errorf("%s: %w: something else has this name; "+
			"move it away, or set another bot.data_dir", name, bare(err))
	case isFull(err):
		return fmt.Errorf("%s: %w: make room, or set another bot.data_dir", name, core.ErrFull)
	case errors.Is(err, core.ErrDamaged), errors.Is(err, berrors.ErrInvalid), errors.Is(err, berrors.ErrChecksum),
		errors.Is(err, berrors.ErrVersionMismatch):
		return damagedError(name, err)
	case errors.As(err, &dir):
		return fmt.Errorf("%s: %w", name, bare(err))
	}
	return fmt.Errorf("%s: %w", name, err)
}

func damagedError(name string, err error) error {
	if !errors.Is(err, core.ErrDamaged) {
		err = fmt.Errorf("%w: %w", core.ErrDamaged, err)
	}
	return fmt.Errorf("%s: %w: it is no database of synthbot, or the disk lost a part of it; "+
		"move it away and restore a backup, "+
		"or save what can be read of it with `synthbot restore --salvage`", name, err)
}

// bare takes the file's name, which is said already, off an error.
func bare(err error) error {
	var e *fs.PathError
	if errors.As(err, &e) {
		return e.Err
	}
	return err
}
