package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"synthbot/admin"
	"synthbot/daemon"
)

// remote marks commands that a running daemon carries out: "if it runs" or "only".
const remote = "daemon"

// atDaemon adds -c to a command that the daemon carries out if one runs.
func (p *program) atDaemon(c *cobra.Command) *cobra.Command {
	c.Annotations = map[string]string{remote: "if it runs"}
	return p.fileFlag(c)
}

// onlyAtDaemon adds -c to a command that needs a running daemon.
func (p *program) onlyAtDaemon(c *cobra.Command) *cobra.Command {
	c.Annotations = map[string]string{remote: "only"}
	return p.fileFlag(c)
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
	if d, ok := p.daemonAt(); ok {
		return p.ask(c.Context(), d, given, p.In, p.Out)
	}
	if c.Annotations[remote] != "only" {
		return nil // the command itself will tell what is wrong, if anything is
	}
	if _, err := p.MustLoad(); err != nil { // a file with faults may not even say where the daemon is
		return err
	}
	return errors.New("no daemon runs with this configuration")
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

// ask lets the daemon carry a command line out, on streams that are files.
func (p *program) ask(ctx context.Context, d *admin.Control, args []string, in io.Reader, out io.Writer) error {
	a := admin.Request{Args: args, Env: make(map[string]string)}
	for _, name := range []string{"TERM", "NO_COLOR", "LC_ALL", "LC_MESSAGES", "LANG", "USER"} {
		value := p.Getenv(name)
		if value != "" {
			a.Env[name] = value
		}
	}
	status, err := d.Run(ctx, a, in.(*os.File), out.(*os.File), p.Err.(*os.File))
	if err != nil {
		return err
	}
	return exited(status)
}

// carry carries out a command line in the daemon, on the files of the client.
func (p *program) carry(ctx context.Context, b *daemon.Bot, e *daemon.Env, args []string) int {
	inside := newProgram(e, args)
	inside.host = b
	return inside.run(ctx)
}
