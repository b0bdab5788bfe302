package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"synthbot/core"
	"synthbot/daemon"
)

func runCommand(p *program) *cobra.Command {
	return p.fileFlag(&cobra.Command{
		Use: "run", Short: "Run the bot until SIGINT or SIGTERM; SIGHUP reloads the configuration", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return p.daemon(c.Context()) },
	})
}

// daemon runs the bot until ctx or a signal ends it.
func (p *program) daemon(ctx context.Context) error {
	ctx, stop := p.untilSignal(ctx, p.grace)
	defer stop()
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP)
	defer signal.Stop(hup)
	cfg, err := p.MustLoad()
	if err != nil {
		return err
	}
	if len(cfg.Enabled) == 0 {
		return cfg.NoInterface()
	}
	return p.Run(ctx, daemon.Life{
		Config: cfg, Log: p.Logger(cfg, slog.LevelDebug), Interfaces: daemon.ReachableInterfaces, Grace: p.grace,
		Carry: p.carry, Reload: hup,
	})
}

func reloadCommand(p *program) *cobra.Command {
	return p.onlyAtDaemon(&cobra.Command{
		Use: "reload", Short: "Make the running bot reload its configuration", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return p.host.Reload() },
	})
}

func pageCommand(p *program) *cobra.Command {
	return p.onlyAtDaemon(&cobra.Command{
		Use: "page", Short: "Print a one-time link to the admin page, valid for ten minutes", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			link, err := p.host.PageLink()
			if err == nil {
				_, err = fmt.Fprintln(p.Out, link)
			}
			return err
		},
	})
}

func logCommand(p *program) *cobra.Command {
	return p.onlyAtDaemon(&cobra.Command{
		Use: "log [ROOM [LEVEL]]", Short: "Show or change the log levels of the running bot",
		Args: cobra.MaximumNArgs(2),
		Long: "Shows the log level of each package of the running bot (ROOM), or changes it until the bot\n" +
			"stops. Levels are debug, info, warn, error, and default for the level in the configuration.\n" +
			"ROOM \"all\" sets every room that has no level of its own. At level debug, the log\n" +
			"contains what users write.",
		RunE: func(_ *cobra.Command, args []string) error {
			args = append(args, "", "")
			text, err := p.host.SetLog(args[0], args[1])
			if said, ok := errors.AsType[*core.Error](err); ok {
				return daemon.Usagef("%s", said.Text)
			}
			_, err = fmt.Fprintln(p.Out, text)
			return err
		},
	})
}

// pdfTextCommand reads a PDF on standard input and prints its text. It is not
// for people: the daemon starts it for each PDF, so that a file made to hang its
// parser, or to take all memory, ends this process and nothing else.
func pdfTextCommand(p *program) *cobra.Command {
	return &cobra.Command{
		Use: daemon.PdfCommand, Hidden: true, Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return daemon.ServePDF(p.In, p.Out) },
	}
}
