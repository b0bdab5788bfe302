package daemon

import (
	"context"
	"io"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"synthbot/admin"
	"synthbot/daemon/logs"
)

// Carry carries out a command line in a running bot, with the files of the process that
// sent it, and returns the exit status.
type Carry func(ctx context.Context, b *Bot, e *Env, args []string) int

// openControl opens the control socket, and returns what serves it until ctx ends: it
// carries out the command lines of other processes. The bot works without it.
func (b *Bot) openControl(ctx context.Context, carry Carry) (serve func()) {
	dir, err := b.InForce().Config.DataDir(b.env.Getenv)
	var s *admin.Socket
	if err == nil {
		s, err = admin.ListenControl(dir)
	}
	run := func(ctx context.Context, a admin.Request, in, out, errs *os.File) int {
		e := &Env{Clock: b.env.Clock, Getenv: func(name string) string { return a.Env[name] }}
		e.In, e.Out, e.Err = &foreignFile{in, ctx}, &foreignFile{out, ctx}, &foreignFile{errs, ctx}
		return carry(ctx, b, e, a.Args)
	}
	return func() {
		if err == nil {
			err = s.Serve(ctx, logs.Room(b.log, "admin"), run)
		}
		if err != nil {
			b.log.Error("the control socket is not served", "err", err)
		}
	}
}

// foreignFile is a file of another process, which ends with its context: it must not read
// from a terminal that another program uses by then, nor wait for a pipe that is not read.
type foreignFile struct {
	*os.File
	ctx context.Context
}

// pollTime is how long a read may continue after its context has ended.
const pollTime = 100 // milliseconds

func (r *foreignFile) Read(p []byte) (n int, err error) {
	if err := r.await(unix.POLLIN, io.EOF); err != nil {
		return 0, err
	}
	return r.File.Read(p)
}

// pipeBuffer is how many bytes a pipe that is ready takes at once (PIPE_BUF).
const pipeBuffer = 4096

func (r *foreignFile) Write(p []byte) (n int, err error) {
	for n < len(p) {
		if err := r.await(unix.POLLOUT, r.ctx.Err()); err != nil {
			return n, err
		}
		m, err := r.File.Write(p[n:min(len(p), n+pipeBuffer)])
		n += m
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

// ReadFrom hides the method of os.File, which could block forever.
func (r *foreignFile) ReadFrom(from io.Reader) (int64, error) {
	return io.Copy(struct{ io.Writer }{r}, from)
}

// await waits until the file is ready for the events. If the context ends first, it
// returns over, or the error of the context.
func (r *foreignFile) await(events int16, over error) error {
	conn, err := r.SyscallConn()
	if err != nil {
		return err
	}
	for {
		if err := r.ctx.Err(); err != nil {
			if over != nil {
				return over
			}
			return err
		}
		ready := false
		err := conn.Control(func(fd uintptr) {
			polled, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: events}}, pollTime)
			ready = polled > 0 || err != nil && err != syscall.EINTR
		})
		if err != nil || ready {
			return err
		}
	}
}
