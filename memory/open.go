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
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"synthbot/core"
)

// FileName is the name of the database within the data directory.
const FileName = "synthbot.db"

const (
	lockWait  = time.Second
	allocStep = 1 << 20 // the file grows by this much at once
)

// mapSize is reserved as address space from the start, so that the file can
// grow while it is read. It costs no memory.
const mapSize = 1 << (27 + 3*(strconv.IntSize/64)) // 1 GiB, 128 MiB on small machines

// Options of a DB; the zero value is usable and prunes nothing.
type Options struct {
	Config
	Log   *slog.Logger     // nil: silent
	Clock func() time.Time // nil: time.Now
	// Damaged, if set, is told when the check after an unclean stop, which goes
	// on in the background, finds the file damaged.
	Damaged func(error)
	// Embedder lets facts be found by what they mean; see SetEmbedder.
	Embedder Embedder
	// Full, if set, is told when writing begins to fail because the disk is full,
	// and again when it works. It is called by one goroutine at a time, which
	// waits for it; it may use the DB.
	Full func(bool)
	// Stuck, if set, is called once when the writer has made no progress on a job for
	// Patience, and ten times that where the disk is at work. Nothing can be written any
	// more: the process should end. Job is "" where the fault is no job's.
	Stuck    func(job string)
	Patience time.Duration // 0: 30 seconds
	// Fault, if set, is called by the writer before each job. It is for
	// tests of what happens when a job does not end.
	Fault func(job string)
	// Unchecked leaves that check out.
	Unchecked bool
}

var (
	_ core.Store = (*DB)(nil)
	_ core.Facts = (*DB)(nil)

	_ core.Forgetter = (*DB)(nil)
)

// DB is the open database. Safe for concurrent use; one process at a time.
type DB struct {
	file     string
	log      *slog.Logger
	clock    func() time.Time
	queue    *queue
	epochs   epochs
	meaning  *meaning
	room     *room
	oddities oddities
	watch    watch
	fault    func(*tx, *job) // see Options; the transaction is nil between two
	settings atomic.Pointer[Config]
	reset    chan struct{}      // a token after they were exchanged
	stop     context.CancelFunc // ends what works in the background
	work     sync.WaitGroup
	checking sync.WaitGroup // the check after an unclean stop

	compacting chan struct{} // holds a token while the file is compacted
	files      sync.Mutex    // guards bolt, handle and held; the writer alone changes the first two
	bolt       *bbolt.DB
	handle     *os.File          // bbolt's own
	held       map[*bbolt.DB]int // how many views of each file are open
	changed    changes           // while the file is compacted. The writer's
	torn       int               // the transaction whose last sync failed; 0: none. The writer's
	marked     bool              // the file says that it is in use. The writer's
	broken     error             // why nothing can be written any more. The writer's
	name       string            // see Installation
	crowd      crowd             // who writes together. The writer's

	unclean bool // the file was not closed in order
}

// Open opens the database in dir and makes both where they are missing. Its
// errors name the file, the likely cause and the mend; they wrap core.ErrLocked
// or core.ErrDamaged where that is it. Close ends everything that it began.
func Open(dir string, o Options) (*DB, error) {
	db := newDB(filepath.Join(dir, FileName), o)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, openError(dir, err)
	}
	if err := db.open(); err != nil {
		return nil, openError(db.file, err)
	}
	if err := db.prepare(); err != nil {
		return nil, errors.Join(openError(db.file, err), db.release())
	}
	background, stop := context.WithCancel(context.Background())
	db.stop = stop
	db.refuseBlocked()
	go db.writer()
	db.startWatch(background, o)
	db.room.begin(background)
	db.meaning.begin(background, o.Embedder)
	db.startCheck(background, o)
	db.startPruning(background)
	db.startTidying(background)
	return db, nil
}

// newDB is a DB whose file is still to be opened.
func newDB(file string, o Options) *DB {
	db := &DB{file: file, log: cmp.Or(o.Log, slog.New(slog.DiscardHandler)), clock: o.Clock, queue: newQueue(), reset: make(chan struct{}, 1),
		compacting: make(chan struct{}, 1), held: make(map[*bbolt.DB]int)}
	if db.clock == nil {
		db.clock = time.Now
	}
	if o.Fault != nil {
		db.fault = func(_ *tx, j *job) { o.Fault(j.called()) }
	}
	db.watch.aside = make(map[string]time.Time)
	db.meaning = &meaning{db: db, wake: make(chan struct{}, 1)}
	db.room = &room{db: db, tell: o.Full, scarce: make(chan struct{}, 1)}
	db.SetConfig(o.Config)
	return db
}

// open opens the file itself. What bbolt trips over in a broken one becomes an
// error, and the lock is given back.
func (db *DB) open() (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("%w: %v", core.ErrDamaged, v)
		}
		if err != nil {
			db.drop()
		}
	}()
	if err := db.openBolt(); err != nil {
		return err
	}
	return errors.Join(db.same(), db.whole())
}

func (db *DB) openBolt() (err error) {
	db.bolt, err = bbolt.Open(db.file, 0o600, &bbolt.Options{
		Timeout:         lockWait,
		FreelistType:    bbolt.FreelistMapType,
		InitialMmapSize: mapSize,
		OpenFile:        db.openFile,
	})
	if err != nil && strings.Contains(err.Error(), "file size too small") { // bbolt has no error of its own for that
		err = fmt.Errorf("%w: %w", core.ErrDamaged, err)
	}
	if err == nil {
		db.bolt.AllocSize = allocStep
	}
	return err
}

func (db *DB) openFile(name string, flag int, mode os.FileMode) (*os.File, error) {
	f, err := os.OpenFile(name, flag, mode)
	if err == nil {
		db.handle = f
	}
	return f, err
}

// whole reports a file that is shorter than its first pages say: reading what
// is missing would be a fault.
func (db *DB) whole() error {
	info, err := db.handle.Stat()
	if err != nil {
		return err
	}
	return db.bolt.View(func(t *bbolt.Tx) error {
		if t.Size() > info.Size() {
			return fmt.Errorf("%w: it was cut short, from %d bytes to %d", core.ErrDamaged, t.Size(), info.Size())
		}
		return nil
	})
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

// drop gives a file up that could not be opened. Its mapping may be left, and
// with it a lock that nobody took back.
func (db *DB) drop() {
	if db.bolt != nil {
		db.bolt.Close()
	} else if db.handle != nil {
		unlock(db.handle)
		db.handle.Close()
	}
}

// release closes the file. Where a panic left bbolt's locks behind, waiting for
// them would never end: then only the file itself is unlocked and closed.
func (db *DB) release() error {
	if db.broken != nil {
		unlock(db.handle)
		return errors.Join(db.broken, db.handle.Close())
	}
	if err := db.bolt.Close(); err != nil {
		return fmt.Errorf("%s: %w", db.file, err)
	}
	return nil
}

// openError says what most likely is the matter, and what mends it.
func openError(name string, err error) error {
	var dir *fs.PathError
	switch {
	case errors.Is(err, berrors.ErrTimeout), errors.Is(err, core.ErrLocked):
		return fmt.Errorf("%s: %w: most likely another synthbot runs with this data directory; stop it, or give this one its own bot.data_dir",
			name, core.ErrLocked)
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return fmt.Errorf("%s: %w: this user must be able to read and write it; give it to him, or set another bot.data_dir", name, bare(err))
	case errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.EISDIR), errors.Is(err, fs.ErrExist):
		return fmt.Errorf("%s: %w: something else has this name; move it away, or set another bot.data_dir", name, bare(err))
	case isFull(err):
		return fmt.Errorf("%s: %w: make room, or set another bot.data_dir", name, ErrFull)
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
	return fmt.Errorf("%s: %w: it is no database of synthbot, or the disk lost a part of it; move it away and restore a backup, "+
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
