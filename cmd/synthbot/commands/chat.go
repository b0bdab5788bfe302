package commands

import (
	"context"
	"log/slog"
	"os/user"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"synthbot/core"
	"synthbot/daemon"
	"synthbot/interfaces/console"
)

// chatGrace is how long a turn may take to finish after the user has left.
const chatGrace = time.Second

func chatCommand(p *program) *cobra.Command {
	var name, session string
	c := &cobra.Command{
		Use: "chat", Short: "Talk to the persona in the terminal", Args: cobra.NoArgs,
		Long: "Talk to the persona in the terminal, through the same pipeline as everywhere.\n" +
			"Without a configuration file it runs on the built-in defaults. Without a terminal\n" +
			"that can move the cursor, each line is a message and each message gets one reply.",
		RunE: func(c *cobra.Command, _ []string) error { return p.chat(c.Context(), name, session) },
	}
	c.Flags().StringVar(&name, "user", "", "your `name` (default: your login)")
	c.Flags().StringVar(&session, "session", "main", "name of the conversation to continue")
	return p.preferDaemon(c)
}

func (p *program) chat(ctx context.Context, name, session string) error {
	cfg, err := p.load()
	if err != nil {
		return err
	}
	if p.runningBot == nil {
		var stop func()
		ctx, stop = p.untilSignal(ctx, chatGrace, syscall.SIGHUP)
		defer stop()
	}
	place, err := core.MakePath("console", session)
	if err != nil {
		return daemon.Usagef("--session: %w", err)
	}
	if name == "" {
		name = "you"
		if u, err := user.Current(); err == nil && u.Username != "" {
			name = u.Username
		}
	}
	who := cfg.PersonaAt(place)
	o := console.Options{
		In: p.In, Out: p.Out, Err: p.Err, User: name, Session: session, Rank: core.RankAdmin,
		Terminal:    console.IsTerminal(p.In) && console.IsTerminal(p.Out) && !console.IsDumb(p.Getenv("TERM")),
		NoColor:     p.Getenv("NO_COLOR") != "",
		PersonaName: who.Name, Greeting: who.For(name).Greeting, Now: cfg.Clock(p.Clock), Locale: p.Locale(),
	}
	if p.runningBot != nil {
		return p.runningBot.Attach(ctx, o, place)
	}
	log := p.Logger(cfg, slog.LevelError)
	if o.Terminal && console.IsTerminal(p.Err) {
		o.Err = &console.Rows{Out: p.Err}
		log = p.LoggerTo(o.Err, cfg, slog.LevelError)
	}
	return p.Run(ctx, daemon.RunOptions{
		Config: cfg, Log: log, Interfaces: daemon.Terminal(o, place), Grace: chatGrace,
		Attended: true,
	})
}
