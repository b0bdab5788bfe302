// Package output is the standard output of commands, so that none succeeds although its output was lost.
package output

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync"
	"syscall"
)

// ErrNoReader is the error of a Writer whose reader wants no more, like head. It is not worth a message.
var ErrNoReader = errors.New("nobody reads the output any more")

// Writer is standard output. It remembers its first error. Safe for concurrent use.
type Writer struct {
	To    io.Writer
	mu    sync.Mutex // guards first
	first error
}

// Write implements io.Writer. After an error it returns that one again.
func (o *Writer) Write(b []byte) (int, error) {
	n, err := o.To.Write(b)
	if err == nil {
		return n, nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.first == nil {
		if file, ok := errors.AsType[*fs.PathError](err); ok { // it names the file as this program does
			err = file.Err
		}
		o.first = fmt.Errorf("the output cannot be written: %w", err)
		if errors.Is(err, syscall.EPIPE) {
			o.first = ErrNoReader
		}
	}
	return n, o.first
}

// Failure returns the first error; nil if there was none.
func (o *Writer) Failure() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.first
}

// SyscallConn implements syscall.Conn: standard output may be a terminal.
func (o *Writer) SyscallConn() (syscall.RawConn, error) {
	file, ok := o.To.(syscall.Conn)
	if !ok {
		return nil, errors.ErrUnsupported
	}
	return file.SyscallConn()
}
