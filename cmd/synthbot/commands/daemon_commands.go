package commands

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"synthbot/admin"
	"synthbot/core"
	"synthbot/daemon"
	"synthbot/interfaces/console"
	"synthbot/plugins/mcp"
	"synthbot/setup"
)

func runCommand(p *program) *cobra.Command {
	return p.addConfigFlag(&cobra.Command{
		Use: "run", Short: "Run the bot until SIGINT or SIGTERM; SIGHUP reloads the configuration", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := p.offerInit(c.Context()); err != nil {
				return err
			}
			return p.daemon(c.Context())
		},
	})
}

// offerInit offers to set up the bot, if there is no configuration and a user at a terminal.
func (p *program) offerInit(ctx context.Context) error {
	if p.ConfigFile() != "" || !console.IsTerminal(p.In) || !console.IsTerminal(p.Out) {
		return nil
	}
	fmt.Fprint(p.Out, "There is no configuration yet. Answer a few questions to write one? [Y/n] ")
	var answer string
	_, err := fmt.Fscanln(p.In, &answer) // an empty line is an error, too, and means yes
	if errors.Is(err, io.EOF) || answer != "" && !strings.HasPrefix(strings.ToLower(answer), "y") {
		return nil // the daemon reports the missing configuration
	}
	return (&setup.Init{Runs: true}).Run(ctx, p.Env)
}

// Until the first garbage collection, and for at most startFor after the start, the heap may grow by startGC percent.
// A start allocates little, and most of it remains, so this saves 3 of 16 ms, and as much for the first message.
// Afterwards the heap may grow by usualGC percent, unless $GOGC is set. At 50 chats, that needs 4 MiB less than Go's
// default of 100, and 7 per cent more processor time.
const (
	startGC  = 400
	usualGC  = 60
	startFor = time.Second
)

// daemon runs the bot until ctx or a signal ends it.
func (p *program) daemon(ctx context.Context) error {
	daemon.PrepareProcess()
	usual := debug.SetGCPercent(startGC)
	if p.Getenv("GOGC") == "" {
		usual = usualGC
	}
	restore := sync.OnceFunc(func() { debug.SetGCPercent(usual) })
	runtime.AddCleanup(new([64]byte), func(int) { restore() }, 0) // the first collection frees it
	ctx, stop := p.untilSignal(ctx, p.grace)
	defer stop()
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP)
	defer signal.Stop(hup)
	cfg, err := mustLoad(p)
	if err != nil {
		return err
	}
	if len(cfg.Enabled) == 0 {
		return cfg.NoInterface()
	}
	runCommand := func(ctx context.Context, b *daemon.Bot, e *daemon.Env, args []string) int {
		inside := newProgram(e, args)
		inside.runningBot = b
		return inside.run(ctx)
	}
	started := func() {
		restore()
		daemon.ReleasePages()
	}
	return p.Run(ctx, daemon.RunOptions{
		Config: cfg, Log: p.Logger(cfg, slog.LevelDebug), Interfaces: daemon.ReachableInterfaces, Grace: p.grace,
		RunCommand: runCommand, Reload: hup, Ready: func() { time.AfterFunc(startFor, started) },
	})
}

func reloadCommand(p *program) *cobra.Command {
	return p.requireDaemon(&cobra.Command{
		Use: "reload", Short: "Make the running bot reload its configuration", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			later, err := p.runningBot.Reload()
			if err == nil && len(later) > 0 {
				fmt.Fprintln(p.Out, "reloaded; these keys apply after a restart only: "+strings.Join(later, ", "))
			}
			return err
		},
	})
}

func pageCommand(p *program) *cobra.Command {
	return p.requireDaemon(&cobra.Command{
		Use: "page", Short: "Print a one-time link to the admin page, valid for ten minutes", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			link, err := p.runningBot.PageLink()
			if err == nil {
				_, err = fmt.Fprintln(p.Out, link)
			}
			return err
		},
	})
}

func logCommand(p *program) *cobra.Command {
	return p.requireDaemon(&cobra.Command{
		ValidArgsFunction: completeRooms(p),
		Use:               "log [ROOM [LEVEL]]", Short: "Show or change the log levels of the running bot",
		Args: cobra.MaximumNArgs(2),
		Long: "Shows the log level of each package of the running bot (ROOM), or changes it until the bot\n" +
			"stops. Levels are debug, info, warn, error, and default for the level in the configuration.\n" +
			"ROOM \"all\" sets every room that has no level of its own. At level debug, the log\n" +
			"contains what users write.",
		RunE: func(_ *cobra.Command, args []string) error {
			args = append(args, "", "")
			text, err := p.runningBot.SetLog(args[0], args[1])
			if said, ok := errors.AsType[*core.Error](err); ok {
				return daemon.Usagef("%s", said.Text)
			}
			if err == nil {
				_, err = fmt.Fprintln(p.Out, text)
			}
			return err
		},
	})
}

// pdfTextCommand reads a PDF on standard input and prints its text. It is not for users: the daemon runs it for each
// PDF, so that a file that hangs the parser or takes all memory ends only this process.
func pdfTextCommand(p *program) *cobra.Command {
	return &cobra.Command{
		Use: daemon.PdfCommand, Hidden: true, Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return daemon.ServePDF(p.In, p.Out) },
	}
}

// daemonAnnotation marks commands that a running daemon executes: "if it runs" or "only".
const daemonAnnotation = "daemon"

// preferDaemon marks a command that the daemon executes if one runs, and adds -c to it.
func (p *program) preferDaemon(c *cobra.Command) *cobra.Command {
	c.Annotations = map[string]string{daemonAnnotation: "if it runs"}
	return p.addConfigFlag(c)
}

// requireDaemon marks a command that needs a running daemon, and adds -c to it.
func (p *program) requireDaemon(c *cobra.Command) *cobra.Command {
	c.Annotations = map[string]string{daemonAnnotation: "only"}
	return p.addConfigFlag(c)
}

// exitStatus is the status of a command whose errors are printed already, as by the daemon.
type exitStatus int

func (e exitStatus) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

// forward runs a command in the daemon, if the command allows that and a daemon runs. Then it returns an
// exitStatus. Otherwise it returns nil, or an error if the command needs a daemon.
func (p *program) forward(c *cobra.Command, args []string) error {
	local := c.Flags().Changed("catalogue") // it names a file that the daemon may not be allowed to read
	if p.runningBot != nil || c.Annotations[daemonAnnotation] == "" || local {
		return nil
	}
	if d, ok := p.dialDaemon(); ok {
		return p.runInDaemon(c.Context(), d, args, p.In, p.output.To)
	}
	if c.Annotations[daemonAnnotation] != "only" {
		return nil // the command itself reports errors of the configuration
	}
	if _, err := mustLoad(p); err != nil { // an invalid file may not name the daemon's data directory
		return err
	}
	return errors.New("no daemon runs with this configuration")
}

// dialDaemon connects to the daemon of the configuration. An invalid configuration file may still name its data
// directory. ok is false if no daemon runs, or if the data directory is uncertain.
func (p *program) dialDaemon() (d *admin.Control, ok bool) {
	cfg, err := p.load()
	dir, unknown := cfg.DataDir(p.Getenv)
	if unknown != nil || err != nil && daemon.HidesDataDir(cfg) {
		return nil, false
	}
	return admin.DialControl(dir)
}

// withFile calls f with a file, or with standard input if its name is "-". If a daemon runs, it executes the command
// instead, with the file as its standard input.
func withFile(c *cobra.Command, p *program, name string, f func(io.Reader) error) error {
	from := p.In
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return daemon.Usagef("%w", err)
		}
		defer file.Close()
		from = file
	}
	if p.runningBot == nil {
		if d, ok := p.dialDaemon(); ok {
			return p.runInDaemon(c.Context(), d, []string{c.Parent().Name(), c.Name(), "-"}, from, p.output.To)
		}
	}
	return f(from)
}

// runInDaemon makes the daemon execute a command line with these streams, which must be files. The error is an
// exitStatus if that worked.
func (p *program) runInDaemon(ctx context.Context, d *admin.Control, args []string, in io.Reader, out io.Writer) error {
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
	return exitStatus(status)
}

func pairCommand(p *program) *cobra.Command {
	return p.preferDaemon(&cobra.Command{
		Use: "pair [CODE]", Short: "Approve a pairing code, or list the users who wait for approval",
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			as := accessRead
			if len(args) > 0 {
				as = accessChange
			}
			return p.inspect(c.Context(), as, func(b *daemon.Bot) error { return p.pair(c.Context(), b, args) })
		},
	})
}

func (p *program) pair(ctx context.Context, b *daemon.Bot, args []string) error {
	plugin := b.InForce().Pairing()
	if plugin == nil {
		const text = "users need no code: access.private is %q, not %q"
		return daemon.Usagef(text, b.InForce().Config.Access.Private, daemon.PairingName)
	}
	if len(args) == 0 {
		waiting, err := plugin.Waiting(ctx)
		for _, guest := range waiting {
			fmt.Fprintln(p.Out, guest)
		}
		if err == nil && len(waiting) == 0 {
			fmt.Fprintln(p.Err, "nobody waits for approval")
		}
		return err
	}
	guest, err := plugin.Pair(ctx, args[0], core.Path{})
	if err == nil {
		fmt.Fprintf(p.Out, "%s may talk to the bot now\n", guest)
	}
	return err
}

func mcpCommand(p *program) *cobra.Command {
	return p.preferDaemon(&cobra.Command{
		Use: "mcp", Args: cobra.NoArgs,
		Short: "Serve memories, history and messages over the Model Context Protocol (stdio)",
		RunE: func(c *cobra.Command, _ []string) error {
			return p.inspect(c.Context(), accessChange, func(b *daemon.Bot) error { return p.serveMCP(c.Context(), b) })
		},
	})
}

// serveMCP serves until the other program disconnects.
func (p *program) serveMCP(ctx context.Context, b *daemon.Bot) error {
	cfg := b.InForce().Config
	var rights mcp.Serving
	for _, c := range cfg.Chosen {
		if own, ok := c.Own.(*mcp.Config); ok {
			rights = own.Serve
		}
	}
	if rights.As.IsZero() {
		return daemon.Usagef("mcp: the other program acts for a user; set as in [plugins.mcp.serve] to its path")
	}
	return mcp.Serve(ctx, mcp.Options{
		Version: version, Log: p.Logger(cfg, slog.LevelWarn), Clock: cfg.Clock(p.Clock), Rights: rights,
		Facts: b.Data.Store, Reader: b.Data.Store, Relay: b.Relay,
		Admits: func(person core.Path) bool { return !slices.ContainsFunc(cfg.Access.Deny, person.Within) },
	}, io.NopCloser(p.In), nopWriteCloser{p.Out})
}

// nopWriteCloser ignores Close.
type nopWriteCloser struct{ io.Writer }

func (nopWriteCloser) Close() error { return nil }
