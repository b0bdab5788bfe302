package memory

import (
	"bytes"
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

// boltFile is the open file. Compaction exchanges it; views that are open then go on
// with the former one.
type boltFile struct {
	name         string
	log          *slog.Logger
	installation string // see DB.Installation
	unclean      bool   // it was not closed in order

	mu     sync.Mutex // guards the fields below; the writer alone changes bolt and handle
	bolt   *bbolt.DB
	handle *os.File          // bbolt's own
	held   map[*bbolt.DB]int // how many views each file has
}

func newBoltFile(name string, log *slog.Logger) *boltFile {
	return &boltFile{name: name, log: log, held: make(map[*bbolt.DB]int)}
}

// open opens the file. A panic of bbolt over a broken one becomes an error, and the lock
// is released.
func (f *boltFile) open() (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		v := recover()
		if v != nil {
			err = fmt.Errorf("%w: %v", core.ErrDamaged, v)
		}
		if err != nil {
			f.drop()
		}
	}()
	if err := f.openBolt(); err != nil {
		return err
	}
	return errors.Join(f.checkNotReplaced(), f.checkLength())
}

func (f *boltFile) openBolt() (err error) {
	f.bolt, err = bbolt.Open(f.name, 0o600, &bbolt.Options{
		Timeout:         lockWait,
		FreelistType:    bbolt.FreelistMapType,
		InitialMmapSize: mapSize,
		OpenFile:        f.openFile,
	})
	if err != nil && strings.Contains(err.Error(), "file size too small") { // bbolt has no error of its own for that
		err = fmt.Errorf("%w: %w", core.ErrDamaged, err)
	}
	if err == nil {
		f.bolt.AllocSize = allocStep
	}
	return err
}

func (f *boltFile) openFile(name string, flag int, mode os.FileMode) (*os.File, error) {
	opened, err := os.OpenFile(name, flag, mode)
	if err == nil {
		f.handle = opened
	}
	return opened, err
}

// checkNotReplaced fails if another process replaced the file between opening and
// locking it.
func (f *boltFile) checkNotReplaced() error {
	named, err := os.Stat(f.name)
	opened, err2 := f.handle.Stat()
	if err = errors.Join(err, err2); err == nil && !os.SameFile(named, opened) {
		err = core.ErrLocked
	}
	return err
}

// checkLength fails if the file is shorter than its first pages say: reading what is
// missing would be a fault.
func (f *boltFile) checkLength() error {
	size, err := fileSize(f.handle)
	if err != nil {
		return err
	}
	return f.bolt.View(func(t *bbolt.Tx) error {
		if t.Size() > size {
			return fmt.Errorf("%w: it was cut short, from %d bytes to %d", core.ErrDamaged, t.Size(), size)
		}
		return nil
	})
}

// drop closes a file that could not be opened. Its mapping may be left, and with it a
// lock that nobody released.
func (f *boltFile) drop() {
	if f.bolt != nil {
		f.bolt.Close()
	} else if f.handle != nil {
		unlock(f.handle)
		f.handle.Close()
	}
}

// hold returns the open file, which stays open until let is called.
func (f *boltFile) hold() (*bbolt.DB, *os.File) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.held[f.bolt]++
	return f.bolt, f.handle
}

// let ends a hold. It closes a file that was exchanged and that nobody holds any more.
func (f *boltFile) let(bolt *bbolt.DB) {
	if !f.leaves(bolt) {
		return
	}
	if err := bolt.Close(); err != nil {
		f.log.Error("the former file cannot be closed", "file", f.name, "err", err)
	}
}

// leaves counts one holder less, and reports whether the file has no use any more.
func (f *boltFile) leaves(bolt *bbolt.DB) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.held[bolt]--; f.held[bolt] > 0 {
		return false
	}
	delete(f.held, bolt)
	return bolt != f.bolt
}

// exchange goes on with another open file. Views of the old one keep that.
func (f *boltFile) exchange(fresh *boltFile) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.bolt, f.handle = fresh.bolt, fresh.handle
}

// uses reports whether the database goes on with that file.
func (f *boltFile) uses(fresh *boltFile) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.bolt == fresh.bolt
}

// writeError names the file, and the kind where it is known. What a caller did
// wrong stays as it is.
func (f *boltFile) writeError(err error) error {
	switch {
	case err == nil, errors.Is(err, ErrBatch):
		return err
	case isFull(err):
		return fmt.Errorf("%s: %w: %w", f.name, core.ErrFull, err)
	}
	return fmt.Errorf("%s: %w", f.name, err)
}

// guard turns a panic into an error. Inside of the store a panic means a page
// that is not what it should be.
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

// spool lets write go to a file without a name beside the database, and then
// copies it to w: the reader of w may be slow, and must not hold what write
// reads. A buffer in memory is written at once.
func (f *boltFile) spool(w io.Writer, write func(io.Writer) error) (n int64, err error) {
	if b, ok := w.(*bytes.Buffer); ok {
		before := b.Len()
		err := write(b)
		return int64(b.Len() - before), err
	}
	temp, err := os.CreateTemp(filepath.Dir(f.name), ".spool-*")
	if err != nil {
		return 0, fullError(filepath.Dir(f.name), err)
	}
	defer temp.Close()
	if os.Remove(temp.Name()) != nil { // where a file that is open keeps its name
		defer func() { err = errors.Join(err, temp.Close(), os.Remove(temp.Name())) }()
	}
	if err := write(temp); err != nil {
		return 0, f.writeError(err)
	}
	if _, err := temp.Seek(0, io.SeekStart); err != nil {
		return 0, err
	}
	return io.Copy(w, temp)
}

func fileSize(f *os.File) (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}
