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

	"synthbot/core"
	"synthbot/memory/bolt"
	"synthbot/memory/kv"
)

type engine struct {
	kv.Engine
	shared       kv.Shared // how several processes divide the work; nil if there can be one only
	newlyDue     sync.Map  // the places where something waits since they were looked at last
	log          *slog.Logger
	name         string // in errors and logs
	file         string // beside which other files lie
	remote       bool   // a server's
	installation string // see DB.Installation
	unclean      bool   // it was not closed in order
	upToDate     bool   // it has the present format, and all buckets
	formerCopy   string // the copy of the former format, if it was converted since it was opened
	formerIDs    bool   // it has ids of a former version, which may have been upgraded
}

// recoverPanic is deferred, with what debug.SetPanicOnFault(true) returned. It turns a panic into an error: within
// the store, it means a broken page, or what the engine could not read.
func (e *engine) recoverPanic(panicOnFault bool, err *error) {
	debug.SetPanicOnFault(panicOnFault)
	v := recover()
	fault, known := v.(*kv.Fault)
	switch {
	case known:
		*err = fault.Err
	case v != nil:
		e.log.Error("the store panicked", "file", e.name, "panic", v, "stack", string(debug.Stack()))
		*err = fmt.Errorf("%w: %v", core.ErrDamaged, v)
	}
}

// withName adds the engine's name. Invalid batches stay as they are.
func (e *engine) withName(err error) error {
	if err == nil || errors.Is(err, ErrBatch) {
		return err
	}
	return fmt.Errorf("%s: %w", e.name, err)
}

// dir returns the data directory, and makes it if the database itself lies elsewhere.
func (e *engine) dir() (string, error) {
	dir := filepath.Dir(e.file)
	return dir, bolt.FileError(dir, os.MkdirAll(dir, 0o700))
}

// spool lets write go to an unnamed file beside the database and then copies that to w,
// which may be slow: no read transaction stays open for it.
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
