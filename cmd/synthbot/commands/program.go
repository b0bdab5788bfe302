// Package commands holds the flags and the subcommands. Each parses its arguments, calls other
// packages and prints the result. The running bot is package daemon.
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

	"synthbot/cmd/synthbot/output"
	"synthbot/config"
	"synthbot/core"
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

// Main executes a command line and returns the exit status. When the program begins to end, turns have
// grace to finish, and everything else has closeTime after that. Then the process exits at once.
func Main(ctx context.Context, e *daemon.Env, args []string, grace, closeTime time.Duration) int {
	p := newProgram(e, args)
	p.grace, p.shutdown.closeTime = grace, closeTime
	return p.run(ctx)
}

// newProgram returns an invocation. It ends the process if the database or a stopping bot hangs.
func newProgram(e *daemon.Env, args []string) *program {
	p := &program{Env: e, args: args, output: &output.Writer{To: e.Out}, loadOnce: sync.OnceValues(e.Load)}
	p.Out = p.output
	p.Version = version
	p.OnStuck = func(job string) {
		p.abandon("the database makes no progress, and the process ends: " + txt.Line(job))
	}
	p.OnStopping = func(grace time.Duration) { p.shutdown.after(grace, p.abandon) }
	return p
}

func (p *program) run(ctx context.Context) int {
	root := p.root()
	root.InitDefaultCompletionCmd()
	completion, _, _ := root.Find([]string{"completion"})
	group(completion) // an unknown shell is a wrong argument
	root.SetArgs(p.args)
	err := root.ExecuteContext(ctx)
	lost := p.output.Failure()
	if lost != nil && (err == nil || errors.Is(err, lost)) {
		err, p.parsed = lost, true
	}
	return p.report(err)
}

// program is one invocation of the command line.
type program struct {
	*daemon.Env

	output          *output.Writer // Env.Out
	grace           time.Duration  // how long turns may take to finish when the bot stops
	shutdown        shutdownLimit
	restoreTerminal func()                         // nil: the terminal's mode was not changed
	loadOnce        func() (*daemon.Config, error) // Env.Load, but once: a pipe can be read only once

	parsed     bool        // flags and arguments were valid
	args       []string    // the whole command line
	runningBot *daemon.Bot // the daemon's bot, if the command runs inside a daemon; else nil
}

// load reads the configuration and the files that it names, once. Its error reports all problems at once.
// Inside a daemon, it returns the configuration in force.
func (p *program) load() (*daemon.Config, error) {
	if p.runningBot != nil {
		c := *p.runningBot.InForce().Config
		return &c, nil
	}
	return p.loadOnce()
}

// mustLoad is load for commands that need a configuration file.
func mustLoad(p *program) (*daemon.Config, error) {
	cfg, err := p.load()
	return cfg, cmp.Or(err, daemon.RequireFile(cfg))
}

// report prints an error, one problem a line, and returns the exit status.
func (p *program) report(err error) int {
	var faults config.Faults
	var u daemon.UsageError
	var status exitStatus
	switch {
	case err == nil:
		return statusDone
	case errors.As(err, &status):
		return int(status)
	case errors.Is(err, output.ErrNoReader):
		return statusFailed
	case errors.As(err, &faults):
		for _, f := range faults {
			fmt.Fprintln(p.Err, p.ErrorPrefix()+txt.Line(f.String()))
		}
		return statusUsage
	}
	text := strings.TrimSpace(err.Error())
	if known, ok := errors.AsType[*core.Error](err); ok {
		text = strings.TrimPrefix(text, string(known.Kind)+": ") // which only programs need
	}
	for line := range strings.SplitSeq(text, "\n") {
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
	root.InitDefaultHelpCmd()
	help, _, _ := root.Find([]string{"help"})
	help.Args = func(_ *cobra.Command, args []string) error {
		_, _, err := root.Find(args)
		return err
	}
	return root
}

// group completes a command that only has subcommands, and adds these. Alone it prints its help; an unknown
// subcommand is a usage error.
func group(c *cobra.Command, subcommands ...*cobra.Command) *cobra.Command {
	c.AddCommand(subcommands...)
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
	abandonTime = 2 * time.Second // for abandon to print why the process ends
	maxStacks   = 16 << 20        // bytes
)

// shutdownLimit ends the process if it does not end by itself in time.
type shutdownLimit struct {
	closeTime time.Duration // how long everything but turns may take to end, after the grace period

	mu    sync.Mutex
	timer *time.Timer // nil until the program begins to end
}

// after calls abandon after grace and closeTime, unless stop is called before. Only the first call counts.
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

// sameRequest is how long after the first signal others count as the same request: `timeout`, for example, signals
// the process and then its group.
const sameRequest = 200 * time.Millisecond

// untilSignal returns a context that ends with SIGINT, SIGTERM or one of the others. Then the
// program has grace and closeTime to end. If it takes longer, or on a second request, the process
// exits at once. The caller calls stop at the end.
func (p *program) untilSignal(
	ctx context.Context, grace time.Duration, others ...os.Signal,
) (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	p.restoreTerminal = console.Keep(p.In)
	signals, over := make(chan os.Signal, 2), make(chan struct{})
	signal.Notify(signals, append(others, syscall.SIGINT, syscall.SIGTERM)...)
	go func() {
		var first time.Time
		for {
			select {
			case <-over:
				return
			case s := <-signals:
				first = cmp.Or(first, time.Now())
				if time.Since(first) >= sameRequest {
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

// abandon ends the process at once. It prints the reason and the stacks of all goroutines to standard error.
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
