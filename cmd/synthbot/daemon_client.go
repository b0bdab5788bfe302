package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"synthbot/admin"
	"synthbot/daemon"
)

// remote marks a command that a running daemon carries out, if there is one.
const remote = "daemon"

// atDaemon marks a command as remote.
func atDaemon(c *cobra.Command) *cobra.Command {
	c.Annotations = map[string]string{remote: "yes"}
	return c
}

// exited is the status of a command that the daemon carried out. The daemon printed its errors.
type exited int

func (e exited) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

// forward hands a command to the daemon, if it is one for it and there is one;
// then the error is exited.
func (p *program) forward(c *cobra.Command, given []string) error {
	local := c.Flags().Changed("catalogue") // names a file that the daemon may be unable to read
	if p.host != nil || c.Annotations[remote] == "" || local {
		return nil
	}
	d, ok := p.daemonAt()
	if !ok {
		return nil // the command itself will tell what is wrong, if anything is
	}
	return p.ask(c.Context(), d, given, p.In, p.Out)
}

// daemonAt connects to the daemon of the configuration, where it runs. A file
// with faults still says where that is.
func (p *program) daemonAt() (*admin.Control, bool) {
	cfg, _ := p.load()
	dir, err := cfg.DataDir(p.Getenv)
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
	a := admin.Request{Args: args, Env: make(map[string]string)}
	for _, name := range []string{"TERM", "NO_COLOR", "LC_ALL", "LC_MESSAGES", "LANG", "USER"} {
		value := p.Getenv(name)
		if value != "" {
			a.Env[name] = value
		}
	}
	status, err := d.Run(ctx, a, pipes.in(in), pipes.out(out), pipes.out(p.Err))
	pipes.close()
	if err != nil {
		return err
	}
	return exited(status)
}

// pipes provide files for streams that are not files.
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

// carry carries out a command line in the daemon, on the files of the client.
func (p *program) carry(ctx context.Context, b *daemon.Bot, e *daemon.Env, args []string) int {
	inside := newProgram(e, args)
	inside.host = b
	return inside.run(ctx)
}
