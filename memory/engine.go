package memory

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"
	"sync"

	"synthbot/memory/bolt"
	"synthbot/memory/kv"
)

type engine struct {
	kv.Engine
	shared       kv.Shared // divides the work among processes; nil if only one is possible
	newlyDue     sync.Map  // places with due entries that no transaction has read since
	log          *slog.Logger
	name         string // in errors and logs
	file         string // the database file; other files lie beside it
	remote       bool   // the database is on a server
	installation string // see DB.Installation
	unclean      bool   // it was not closed properly
	upToDate     bool   // it has the current format and all buckets
	formerCopy   string // see FormerCopy
}

// recoverPanic is deferred, with the result of debug.SetPanicOnFault(true). It turns a panic into an error:
// that of the engine if it could not read, else core.ErrDamaged.
func (e *engine) recoverPanic(panicOnFault bool, err *error) {
	debug.SetPanicOnFault(panicOnFault)
	v := recover()
	fault, known := v.(*kv.Fault)
	switch {
	case known:
		*err = fault.Err
	case v != nil:
		e.log.Error("the store panicked", "file", e.name, "panic", v, "stack", string(debug.Stack()))
		*err = bolt.PanicError(v)
	}
}

// withName adds the database's name to an error, unless it is about an invalid batch.
func (e *engine) withName(err error) error {
	if err == nil || errors.Is(err, ErrBatch) {
		return err
	}
	return fmt.Errorf("%s: %w", e.name, err)
}

// dir returns the data directory, which it creates if it is missing.
func (e *engine) dir() (string, error) {
	dir := filepath.Dir(e.file)
	return dir, bolt.FileError(dir, os.MkdirAll(dir, 0o700))
}

// spool lets write fill an unnamed file and copies that to w, so that no read transaction stays open while w is slow.
func (e *engine) spool(w io.Writer, write func(io.Writer) error) (n int64, err error) {
	dir, err := e.dir()
	if err != nil {
		return 0, err
	}
	temp, err := os.CreateTemp(dir, ".spool-*")
	if err != nil {
		return 0, bolt.FileError(dir, err)
	}
	_ = os.Remove(temp.Name())
	defer os.Remove(temp.Name()) // Windows keeps the name of an open file
	defer temp.Close()
	if err := write(temp); err != nil {
		return 0, e.withName(err)
	}
	if _, err := temp.Seek(0, io.SeekStart); err != nil {
		return 0, err
	}
	return io.Copy(w, temp)
}
