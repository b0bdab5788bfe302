// Package bolt is the engine of package memory that stores everything in one bbolt file: it
// opens, locks, checks, copies and compacts the file, and repeats a failed sync, so that nothing
// that readers have seen is lost. It does not know what the pairs mean.
package bolt

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
	"time"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"synthbot/core"
	"synthbot/memory/kv"
)

const (
	lockWait  = time.Second
	lockPause = 50 * time.Millisecond // between two attempts
	allocStep = 1 << 20               // the file grows by this much at once
)

// mapSize is reserved as address space from the start, so that the file can grow while it is read. It costs no memory.
const mapSize = 1 << (27 + 3*(strconv.IntSize/64)) // 1 GiB, 128 MiB on small machines

// Options of a File.
type Options struct {
	Log    *slog.Logger // nil: silent
	NoSync bool         // does not wait until writes are on the disk, for tests
	// Scattered are the buckets whose keys are inserted everywhere. The others grow at the ends
	// of ranges, so their pages are filled nearly full.
	Scattered []string
}

// File is an open file. It is a kv.Engine.
type File struct {
	name    string
	dir     *os.File // locked; see LockDir
	options Options
	log     *slog.Logger

	// writing holds a token during a transaction, and during the steps of compaction for which
	// writers wait. It guards the fields below.
	writing  chan struct{}
	changed  changes // while the file is compacted
	unsynced int     // the transaction whose last sync failed; 0: none
	broken   error   // why nothing can be written any more; nil: it can
	closed   bool

	compacting chan struct{} // holds a token while the file is compacted
	closingOld sync.WaitGroup

	mu     sync.Mutex // guards the fields below; they change only while writing holds its token
	bolt   *bbolt.DB
	handle *os.File // bbolt's own
}

var _ kv.Engine = (*File)(nil)

// Open opens a file, and creates it and its folder (0700) if they are missing. Its errors name the file, the likely
// cause and the fix; they may wrap core.ErrLocked or core.ErrDamaged. The caller closes the File.
func Open(name string, o Options) (*File, error) {
	f := newFile(name, o)
	dir := filepath.Dir(name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, OpenError(dir, err)
	}
	var err error
	f.dir, err = LockDir(dir)
	if err == nil {
		err = f.open()
	}
	if err != nil {
		f.dir.Close() // without effect if it is nil
		return nil, OpenError(name, err)
	}
	return f, nil
}

func newFile(name string, o Options) *File {
	log := cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	return &File{name: name, options: o, log: log, writing: make(chan struct{}, 1),
		compacting: make(chan struct{}, 1)}
}

// open opens the file. If bbolt panics on a broken file, it returns an error and releases the lock.
func (f *File) open() (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		v := recover()
		if v != nil {
			err = PanicError(v)
		}
		if err != nil {
			f.closeBroken()
		}
	}()
	if info, err := os.Stat(f.name); err == nil && info.Size() == 0 { // bbolt would take it for a new one
		return fmt.Errorf("%w: it is empty", core.ErrDamaged)
	}
	_, err = os.Lstat(f.name)
	if errors.Is(err, fs.ErrNotExist) {
		err = f.create()
	} else {
		err = f.openBolt(f.name)
	}
	if err != nil {
		return err
	}
	named, _ := os.Stat(f.name)
	opened, err := f.handle.Stat()
	if err != nil {
		return err
	}
	if !os.SameFile(named, opened) { // another process replaced it before it was locked
		return core.ErrLocked
	}
	if f.name, err = filepath.EvalSymlinks(f.name); err != nil { // compaction replaces the file, not a link to it
		return err
	}
	return f.bolt.View(func(t *bbolt.Tx) error {
		if t.Size() > opened.Size() { // reading beyond its end would be a fault
			return fmt.Errorf("%w: it was cut short, from %d bytes to %d", core.ErrDamaged, t.Size(), opened.Size())
		}
		return nil
	})
}

// create gives the new file its name once it is complete, so that an empty file of that name is a damaged one.
func (f *File) create() error {
	dir, base := filepath.Split(f.name)
	made := filepath.Join(dir, "."+base+".new")
	if err := os.Remove(made); err != nil && !errors.Is(err, fs.ErrNotExist) { // of a process that was killed
		return err
	}
	err := f.openBolt(made)
	if err == nil {
		_, exists := os.Lstat(f.name)
		if exists == nil { // another process was faster, on a file system that cannot lock directories
			err = core.ErrLocked
		} else {
			err = os.Rename(made, f.name)
		}
	}
	if err != nil {
		return errors.Join(err, os.Remove(made))
	}
	if !f.options.NoSync {
		_ = f.dir.Sync() // some file systems cannot
	}
	return nil
}

func (f *File) openBolt(name string) (err error) {
	f.bolt, err = bbolt.Open(name, 0o600, &bbolt.Options{
		Timeout:         lockWait,
		FreelistType:    bbolt.FreelistMapType,
		InitialMmapSize: mapSize,
		NoSync:          f.options.NoSync,
		NoGrowSync:      f.options.NoSync,
		OpenFile: func(name string, flag int, mode os.FileMode) (opened *os.File, err error) {
			opened, err = os.OpenFile(name, flag, mode)
			if err == nil {
				f.handle = opened
			}
			return opened, err
		},
	})
	if err != nil && strings.Contains(err.Error(), "file size too small") { // bbolt has no error value for that
		err = fmt.Errorf("%w: %w", core.ErrDamaged, err)
	}
	if err == nil {
		f.bolt.AllocSize = allocStep
	}
	return err
}

// closeBroken closes a file that could not be opened, and releases the lock that bbolt may have left.
func (f *File) closeBroken() {
	if f.bolt != nil {
		f.bolt.Close()
	} else if f.handle != nil {
		unlock(f.handle)
		f.handle.Close()
	}
}

// Close implements kv.Engine. After a panic, bbolt's locks may be held forever: then Close only
// unlocks and closes the file itself.
func (f *File) Close() error {
	f.writing <- struct{}{}
	broken := f.broken
	f.closed = true
	<-f.writing
	f.closingOld.Wait()
	defer f.dir.Close()
	if broken != nil {
		unlock(f.handle)
		return errors.Join(broken, f.handle.Close())
	}
	if err := f.bolt.Close(); err != nil {
		return fmt.Errorf("%s: %w", f.name, err)
	}
	return nil
}

// Displaced reports whether a name, by which the file was opened, no longer leads to it: somebody has moved, deleted
// or replaced the file. Everything is still written to the open file.
func (f *File) Displaced(name string) bool {
	_, handle := f.current()
	if isNamed(name, handle) {
		return false
	}
	_, now := f.current()
	return now == handle && len(f.compacting) == 0 // else compaction may have just replaced it
}

// current returns the open file. Compaction may replace it, and closes it when the views that have begun have ended.
func (f *File) current() (*bbolt.DB, *os.File) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.bolt, f.handle
}

// Begin implements kv.Engine. If the file is compacted meanwhile, the view goes on with the old one.
func (f *File) Begin(context.Context) (kv.View, error) {
	for {
		bolt, handle := f.current()
		b, err := bolt.Begin(false)
		if err == nil {
			return &view{tx: tx{Tx: b, file: f}, handle: handle}, nil
		}
		if !errors.Is(err, berrors.ErrDatabaseNotOpen) {
			return nil, err
		}
		now, _ := f.current()
		if now == bolt {
			return nil, core.ErrClosed
		} // else compaction has replaced and closed it
	}
}

// Update implements kv.Engine. After a panic, bbolt's locks may be held forever, so nothing is written any more.
func (f *File) Update(work func(kv.Tx) error) (err error) {
	f.writing <- struct{}{}
	defer func() { <-f.writing }()
	switch {
	case f.closed:
		return core.ErrClosed
	case f.broken != nil:
		return f.broken
	}
	if err := f.retrySync(); err != nil {
		return fullError(err)
	}
	id, failed, returned := 0, false, false
	defer func() {
		if !returned {
			v := recover()
			f.log.Error("the store panicked", "file", f.name, "panic", v, "stack", string(debug.Stack()))
			f.broken = PanicError(v)
			err = f.broken
		}
	}()
	err = f.bolt.Update(func(b *bbolt.Tx) error {
		id = b.ID()
		err := work(&tx{Tx: b, file: f, changed: f.changed})
		failed = err != nil
		return err
	})
	returned = true
	if err == nil || failed {
		return err
	}
	return fullError(f.resolveCommit(id, err))
}

// resolveCommit handles the failed commit of transaction id. If only the sync of its meta page failed, readers
// see the transaction already, and the pages that it freed must not be used before it is durable. So the meta
// page is written again.
func (f *File) resolveCommit(id int, err error) error {
	seen := 0
	viewErr := f.bolt.View(func(b *bbolt.Tx) error { seen = b.ID(); return nil })
	if viewErr != nil || seen < id {
		return err
	}
	f.log.Warn("a commit could not be synced; the sync is tried again", "file", f.name, "err", err)
	f.unsynced = id
	if f.retrySync() != nil {
		return err
	}
	return nil
}

// retrySync writes the meta page again after a failed sync. Until that works, nothing else may be written.
func (f *File) retrySync() error {
	if f.unsynced == 0 {
		return nil
	}
	page := make([]byte, f.bolt.Info().PageSize)
	at := int64(f.unsynced%2) * int64(len(page))
	if _, err := f.handle.ReadAt(page, at); err != nil {
		return err
	}
	if _, err := f.handle.WriteAt(page, at); err != nil {
		return err
	}
	if err := f.bolt.Sync(); err != nil {
		return err
	}
	f.unsynced = 0
	return nil
}

// Size returns the length of the open file.
func (f *File) Size() (int64, error) {
	_, handle := f.current()
	info, err := handle.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}
