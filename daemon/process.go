package daemon

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"runtime/debug"
	"sync"
	"syscall"
)

// PrepareProcess changes how the process of a daemon ends. A crash ends it by SIGABRT, because Go's usual exit status
// is that of a wrong configuration, after which systemd does not restart the bot. No core dump is written: it would
// contain secrets. A write to a pipe that nobody reads any more, as to the log, fails instead of ending the process.
func PrepareProcess() {
	debug.SetTraceback("crash")
	_ = syscall.Setrlimit(syscall.RLIMIT_CORE, &syscall.Rlimit{}) // systemd may forbid it, and sets it in the unit
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)       // not Ignore, which started programs would inherit
}

// ErrNoReader is the error of an Output whose reader wants no more, like head. It is not worth a message.
var ErrNoReader = errors.New("nobody reads the output any more")

// Output is standard output. It remembers its first error, so that no command succeeds although its output was lost.
type Output struct {
	io.Writer
	mu    sync.Mutex // guards first
	first error
}

// Write implements io.Writer. After an error it returns that one again.
func (o *Output) Write(b []byte) (int, error) {
	n, err := o.Writer.Write(b)
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
func (o *Output) Failure() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.first
}

// SyscallConn implements syscall.Conn: standard output may be a terminal.
func (o *Output) SyscallConn() (syscall.RawConn, error) {
	file, ok := o.Writer.(syscall.Conn)
	if !ok {
		return nil, errors.ErrUnsupported
	}
	return file.SyscallConn()
}
