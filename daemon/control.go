package daemon

import (
	"context"
	"io"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"synthbot/admin"
)

// Carry carries out a command line in a running bot, on the files of who asks, and
// returns its exit status.
type Carry func(ctx context.Context, b *Bot, e *Env, args []string) int

// openControl opens the control socket, and returns what serves it: it carries out
// what other processes ask the daemon for. Without it the bot talks all the same.
func (b *Bot) openControl(life context.Context, carry Carry) (serve func()) {
	dir, err := b.InForce().Config.DataDir(b.env.Getenv)
	var s *admin.Socket
	if err == nil {
		s, err = admin.ListenControl(dir)
	}
	return func() {
		if err == nil {
			err = s.Serve(life, inRoom(b.log, "admin"), func(ctx context.Context, a admin.Ask, in, out, errs *os.File) int {
				return carry(ctx, b, &Env{
					In: &patient{File: in, ctx: ctx}, Out: &patient{File: out, ctx: ctx}, Err: &patient{File: errs, ctx: ctx},
					Clock: b.env.Clock, Getenv: func(name string) string { return a.Env[name] },
				}, a.Args)
			})
		}
		if err != nil {
			b.log.Error("the control socket is not served", "err", err)
		}
	}
}

// patient is a file of another process, and ends with its context: a terminal
// that somebody else types on by then is not to be read from, and a pipe that
// nobody reads holds nobody up.
type patient struct {
	*os.File
	ctx context.Context
}

// patience is how long a read may go on after its context has ended.
const patience = 100 // milliseconds

// Read implements io.Reader.
func (r *patient) Read(p []byte) (n int, err error) {
	if err := r.await(unix.POLLIN, io.EOF); err != nil {
		return 0, err
	}
	return r.File.Read(p)
}

// atOnce is how much a pipe takes at once when it says that it takes something
// (PIPE_BUF).
const atOnce = 4096

// Write implements io.Writer.
func (r *patient) Write(p []byte) (n int, err error) {
	for n < len(p) {
		if err := r.await(unix.POLLOUT, r.ctx.Err()); err != nil {
			return n, err
		}
		m, err := r.File.Write(p[n:min(len(p), n+atOnce)])
		if n += m; err != nil {
			return n, err
		}
	}
	return n, nil
}

// ReadFrom hides that of os.File, which would wait for ever.
func (r *patient) ReadFrom(from io.Reader) (int64, error) {
	return io.Copy(struct{ io.Writer }{r}, from)
}

// await waits until the file is ready for what is meant; when the context ends
// before, it returns over, or the context's error.
func (r *patient) await(events int16, over error) error {
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
			polled, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: events}}, patience)
			ready = polled > 0 || err != nil && err != syscall.EINTR
		})
		if err != nil || ready {
			return err
		}
	}
}
