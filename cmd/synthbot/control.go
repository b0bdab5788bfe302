package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"synthbot/admin"
)

// remote marks a command that a running daemon carries out, where there is one.
const remote = "daemon"

// atDaemon marks a command so.
func atDaemon(c *cobra.Command) *cobra.Command {
	c.Annotations = map[string]string{remote: "yes"}
	return c
}

// exited is the status of a command that the daemon carried out; what there is to
// be said it has said.
type exited int

func (e exited) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

// forward hands a command to the daemon, if it is one for it and there is one;
// then the error is exited.
func (p *program) forward(c *cobra.Command, given []string) error {
	if p.host != nil || c.Annotations[remote] == "" || c.Flags().Changed("catalogue") { // a file that the daemon may not see
		return nil
	}
	d, ok := p.daemonAt()
	if !ok {
		return nil // the command itself will tell what is wrong, if anything is
	}
	return p.ask(c.Context(), d, given, p.in, p.out)
}

// daemonAt connects to the daemon of the configuration, where it runs. A file
// with faults still says where that is.
func (p *program) daemonAt() (*admin.Control, bool) {
	cfg, _ := p.load()
	dir, err := cfg.dataDir(p.getenv)
	if err != nil {
		return nil, false
	}
	return admin.DialControl(dir)
}

// nobodyRuns is the error of a command that needs a daemon. A file with faults may
// not even say where it is.
func (p *program) nobodyRuns() error {
	if _, err := p.mustLoad(); err != nil {
		return err
	}
	return errors.New("no daemon runs with this configuration")
}

// ask lets the daemon carry a command line out.
func (p *program) ask(ctx context.Context, d *admin.Control, args []string, in io.Reader, out io.Writer) error {
	var pipes pipes
	a := admin.Ask{Args: args, Env: make(map[string]string)}
	for _, name := range []string{"TERM", "NO_COLOR", "LC_ALL", "LC_MESSAGES", "LANG", "USER"} {
		if value := p.getenv(name); value != "" {
			a.Env[name] = value
		}
	}
	status, err := d.Run(ctx, a, pipes.in(in), pipes.out(out), pipes.out(p.errs))
	pipes.close()
	if err != nil {
		return err
	}
	return exited(status)
}

// pipes lend files to what is none.
type pipes struct {
	ours   []*os.File // to be closed when the command is over
	copies sync.WaitGroup
}

func (p *pipes) in(r io.Reader) *os.File {
	if f, ok := r.(*os.File); ok {
		return f
	}
	if r == nil {
		r = strings.NewReader("")
	}
	theirs, ours, err := os.Pipe()
	if err != nil {
		return os.Stdin
	}
	p.ours = append(p.ours, theirs)
	go func() { // it may wait for input that never comes
		_, _ = io.Copy(ours, r)
		_ = ours.Close()
	}()
	return theirs
}

func (p *pipes) out(w io.Writer) *os.File {
	if f, ok := w.(*os.File); ok {
		return f
	}
	ours, theirs, err := os.Pipe()
	if err != nil {
		return os.Stdout
	}
	p.ours = append(p.ours, theirs)
	p.copies.Go(func() {
		_, _ = io.Copy(w, ours)
		_ = ours.Close()
	})
	return theirs
}

// close gives the files back, when all that was written into them has arrived.
func (p *pipes) close() {
	for _, f := range p.ours {
		_ = f.Close()
	}
	p.copies.Wait()
}

// openControl opens the control socket, and returns what serves it: it carries out
// what other processes ask the daemon for. Without it the bot talks all the same.
func (b *bot) openControl(life *lives) (serve func()) {
	dir, err := b.parts.config.dataDir(b.program.getenv)
	var s *admin.Socket
	if err == nil {
		s, err = admin.ListenControl(dir)
	}
	return func() {
		if err == nil {
			err = s.Serve(life.intake, inRoom(b.log, "admin"), func(ctx context.Context, a admin.Ask, in, out, errs *os.File) int {
				return b.carry(ctx, life, a, in, out, errs)
			})
		}
		if err != nil {
			b.log.Error("the control socket is not served", "err", err)
		}
	}
}

// carry carries one command line out, on the files of who asks.
func (b *bot) carry(ctx context.Context, life *lives, a admin.Ask, in, out, errs *os.File) int {
	p := &program{
		in: &patient{File: in, ctx: ctx}, out: &patient{File: out, ctx: ctx}, errs: &patient{File: errs, ctx: ctx}, clock: b.program.clock,
		getenv: func(name string) string { return a.Env[name] },
		host:   &host{b, life},
	}
	root := p.root()
	root.SetArgs(a.Args)
	return p.report(root.ExecuteContext(ctx))
}

// host is the daemon in which a command is carried out.
type host struct {
	*bot
	life *lives
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
