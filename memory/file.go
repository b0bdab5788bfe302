package memory

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.etcd.io/bbolt"

	"synthbot/core"
)

const (
	lockWait  = time.Second
	allocStep = 1 << 20 // the file grows by this much at once
)

// mapSize is reserved as address space from the start, so that the file can
// grow while it is read. It costs no memory.
const mapSize = 1 << (27 + 3*(strconv.IntSize/64)) // 1 GiB, 128 MiB on small machines

// boltFile is the open file. Compaction replaces it; open views keep the former one.
type boltFile struct {
	name         string
	log          *slog.Logger
	noSync       bool   // see Options
	installation string // see DB.Installation
	unclean      bool   // it was not closed in order

	mu     sync.Mutex // guards the fields below; the writer alone changes bolt and handle
	bolt   *bbolt.DB
	handle *os.File // bbolt's own
}

// open opens the file. If bbolt panics on a broken file, it returns an error and releases
// the lock.
func (f *boltFile) open() (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		v := recover()
		if v != nil {
			err = fmt.Errorf("%w: %v", core.ErrDamaged, v)
		}
		if err != nil {
			f.closeBroken()
		}
	}()
	if err := f.openBolt(); err != nil {
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
	return f.bolt.View(func(t *bbolt.Tx) error {
		if t.Size() > opened.Size() { // reading beyond its end would be a fault
			return fmt.Errorf("%w: it was cut short, from %d bytes to %d", core.ErrDamaged, t.Size(), opened.Size())
		}
		return nil
	})
}

func (f *boltFile) openBolt() (err error) {
	f.bolt, err = bbolt.Open(f.name, 0o600, &bbolt.Options{
		Timeout:         lockWait,
		FreelistType:    bbolt.FreelistMapType,
		InitialMmapSize: mapSize,
		NoSync:          f.noSync,
		NoGrowSync:      f.noSync,
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

// closeBroken closes a file that could not be opened, and removes the lock that bbolt may
// have left.
func (f *boltFile) closeBroken() {
	if f.bolt != nil {
		f.bolt.Close()
	} else if f.handle != nil {
		unlock(f.handle)
		f.handle.Close()
	}
}

// current returns the open file. Compaction may replace and close it: views that began
// before end first, others try again.
func (f *boltFile) current() (*bbolt.DB, *os.File) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.bolt, f.handle
}

// writeError adds the file, and core.ErrFull if the disk is full. Invalid batches stay as
// they are.
func (f *boltFile) writeError(err error) error {
	switch {
	case err == nil, errors.Is(err, ErrBatch):
		return err
	case isFull(err):
		return fmt.Errorf("%s: %w: %w", f.name, core.ErrFull, err)
	}
	return fmt.Errorf("%s: %w", f.name, err)
}

// guard turns a panic into an error: within the store, it means a broken page.
func (f *boltFile) guard(work func() error) (err error) {
	defer func() {
		v := recover()
		if v != nil {
			f.log.Error("the store panicked", "file", f.name, "panic", v, "stack", string(debug.Stack()))
			err = fmt.Errorf("%w: %v", core.ErrDamaged, v)
		}
	}()
	return work()
}

// spool lets write go to an unnamed file beside the database and then copies that to w,
// which may be slow: no read transaction stays open for it.
func (f *boltFile) spool(w io.Writer, write func(io.Writer) error) (n int64, err error) {
	temp, err := os.CreateTemp(filepath.Dir(f.name), ".spool-*")
	if err != nil {
		return 0, fullError(filepath.Dir(f.name), err)
	}
	_ = os.Remove(temp.Name())
	defer os.Remove(temp.Name()) // Windows keeps the name of an open file
	defer temp.Close()
	if err := write(temp); err != nil {
		return 0, f.writeError(err)
	}
	if _, err := temp.Seek(0, io.SeekStart); err != nil {
		return 0, err
	}
	return io.Copy(w, temp)
}

// size is the length of the open file.
func (f *boltFile) size() (int64, error) {
	_, handle := f.current()
	info, err := handle.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}
