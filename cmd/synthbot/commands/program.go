// Package commands holds the flags and the subcommands: each parses, calls and prints.
// The running bot itself is package daemon.
package commands

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"synthbot/config"
	"synthbot/core/txt"
	"synthbot/daemon"
	"synthbot/interfaces/console"
)

// Exit statuses.
const (
	statusDone   = 0
	statusFailed = 1 // while running
	statusUsage  = 2 // wrong usage or configuration
)

// Main carries out a command line and returns the exit status. Once the program is to end, turns may
// take grace to finish, and then everything else rest; what still runs after that is abandoned.
func Main(ctx context.Context, e *daemon.Env, args []string, grace, rest time.Duration) int {
	p := newProgram(e, args)
	p.grace, p.shutdown.closeTime = grace, rest
	return p.run(ctx)
}

// newProgram returns an invocation that may end the process.
func newProgram(e *daemon.Env, args []string) *program {
	p := &program{Env: e, args: args}
	p.Version = version
	p.OnStuck = func(job string) {
		p.abandon("the database makes no progress, and the process ends: " + txt.Line(job))
	}
	p.OnStopping = func(grace time.Duration) { p.shutdown.after(grace, p.abandon) }
	return p
}

func (p *program) run(ctx context.Context) int {
	root := p.root()
	root.SetArgs(p.args)
	return p.report(root.ExecuteContext(ctx))
}

// program is one invocation and its outside world.
type program struct {
	*daemon.Env

	grace           time.Duration // how long turns may take to finish when the bot ends
	shutdown        shutdownLimit
	restoreTerminal func() // sets the terminal as it was; nil: it is as it was

	parsed     bool        // flags and arguments were right
	args       []string    // the whole command line
	runningBot *daemon.Bot // the daemon that the command is carried out in; nil: none
}

// load reads the configuration and all that it names, all faults at once.
// In the daemon it is the one in force.
func (p *program) load() (*daemon.Config, error) {
	if p.runningBot != nil {
		c := *p.runningBot.InForce().Config
		return &c, nil
	}
	return p.Env.Load()
}

// report prints what went wrong, one line each, and chooses the exit status.
func (p *program) report(err error) int {
	var faults config.Faults
	var u daemon.UsageError
	var status exitStatus
	switch {
	case err == nil:
		return statusDone
	case errors.As(err, &status):
		return int(status)
	case errors.As(err, &faults):
		for _, f := range faults {
			fmt.Fprintln(p.Err, p.ErrorPrefix()+txt.Line(f.String()))
		}
		return statusUsage
	}
	for line := range strings.SplitSeq(strings.TrimSpace(err.Error()), "\n") {
		fmt.Fprintln(p.Err, p.ErrorPrefix()+"synthbot: "+txt.Line(line))
	}
	if errors.As(err, &u) || !p.parsed {
		return statusUsage
	}
	return statusFailed
}

func (p *program) root() *cobra.Command {
	root := &cobra.Command{
		Use:           "synthbot",
		Short:         "A companion with a persona for your community, on your own server",
		SilenceErrors: true, SilenceUsage: true,
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: true},
		PersistentPreRunE: func(c *cobra.Command, _ []string) error {
			p.parsed = true
			return p.forward(c, p.args)
		},
	}
	root.SetIn(p.In)
	root.SetOut(p.Out)
	root.SetErr(p.Err)
	for _, command := range []func(*program) *cobra.Command{
		runCommand, chatCommand, checkCommand, actionsCommand, promptCommand, historyCommand, usageCommand,
		memoryCommand, knowledgeCommand, backupCommand, restoreCommand, storeCommand, versionCommand,
		reloadCommand, mcpCommand, pageCommand, pairCommand, logCommand, pdfTextCommand, manualCommand,
		initCommand, serviceCommand,
	} {
		root.AddCommand(command(p))
	}
	return root
}

// group makes a command of one that only has others below it: alone it prints its
// help, and a name that it does not know is wrong usage.
func group(c *cobra.Command) *cobra.Command {
	c.Args = cobra.NoArgs
	c.RunE = func(c *cobra.Command, _ []string) error { return c.Help() }
	return c
}

func (p *program) addConfigFlag(c *cobra.Command) *cobra.Command {
	c.Flags().StringVarP(&p.File, "config", "c", "",
		"configuration `file` (default $SYNTHBOT_CONFIG, ./config.toml, /etc/synthbot/config.toml)")
	return c
}

// Set by the linker in released binaries.
var (
	version = "dev"
	commit  = ""
)

func versionCommand(p *program) *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print version, commit and Go version", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			from := commit
			if info, ok := debug.ReadBuildInfo(); ok && from == "" {
				for _, s := range info.Settings {
					if s.Key == "vcs.revision" {
						from = s.Value
					}
				}
			}
			from = cmp.Or(from, "unknown")
			_, err := fmt.Fprintf(p.Out, "synthbot %s, commit %s, %s\n", version, from, runtime.Version())
			return err
		},
	}
}

const (
	abandonTime = 2 * time.Second // to say why the process ends
	maxStacks   = 16 << 20        // bytes
)

// ending ends the process when what runs does not end by itself.
type shutdownLimit struct {
	closeTime time.Duration // after the grace of turns, for all else to end

	mu    sync.Mutex
	timer *time.Timer // runs from the moment the program begins to end
}

// after calls abandon after the grace and rest, unless over is called before. Only the first call counts.
func (e *shutdownLimit) after(grace time.Duration, abandon func(why string)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.timer == nil {
		limit := grace + e.closeTime
		e.timer = time.AfterFunc(limit, func() { abandon(fmt.Sprintf("not everything ended within %s", limit)) })
	}
}

func (e *shutdownLimit) stop() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.timer != nil {
		e.timer.Stop()
	}
}

// untilSignal returns a context that ends with SIGINT, SIGTERM or one of the others.
// From then on the program has the grace, and a while more, to end; then, or with a
// second signal, it is abandoned. stop is called when all is over.
func (p *program) untilSignal(
	ctx context.Context, grace time.Duration, others ...os.Signal,
) (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	p.restoreTerminal = console.Keep(p.In)
	signals, over := make(chan os.Signal, 2), make(chan struct{})
	signal.Notify(signals, append(others, syscall.SIGINT, syscall.SIGTERM)...)
	go func() {
		for second := false; ; second = true {
			select {
			case <-over:
				return
			case s := <-signals:
				if second {
					p.abandon(fmt.Sprintf("ended at once by signal: %s", s))
				}
				cancel()
				p.shutdown.after(grace, p.abandon)
			}
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		close(over)
		p.shutdown.stop()
		cancel()
	}
}

// abandon ends the process at once, whatever runs. It says why on standard error,
// with the stacks of all goroutines.
func (p *program) abandon(why string) {
	said := make(chan struct{})
	go func() { // standard error may be a pipe that nobody reads
		defer close(said)
		stacks := make([]byte, maxStacks)
		stacks = stacks[:runtime.Stack(stacks, true)]
		fmt.Fprintf(p.Err, "%ssynthbot: %s\n%s\n", p.ErrorPrefix(), why, stacks)
	}()
	select {
	case <-said:
	case <-time.After(abandonTime):
	}
	if p.restoreTerminal != nil {
		p.restoreTerminal()
	}
	os.Exit(statusFailed)
}
