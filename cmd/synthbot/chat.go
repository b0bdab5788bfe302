package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os/user"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"synthbot/core"
	"synthbot/interfaces/console"
)

// goodbye is how long a turn may take to finish after the user left.
const goodbye = time.Second

func (p *program) chatCommand() *cobra.Command {
	var name, session string
	c := &cobra.Command{
		Use: "chat", Short: "Talk to the persona in the terminal", Args: cobra.NoArgs,
		Long: "Talk to the persona in the terminal, through the same pipeline as everywhere.\n" +
			"Without a configuration file it runs on the built-in defaults. Where standard\n" +
			"input is no terminal, each line is a message and each message gets one reply.",
		RunE: func(c *cobra.Command, _ []string) error { return p.chat(c.Context(), name, session) },
	}
	c.Flags().StringVar(&name, "user", "", "your `name` (default: your login)")
	c.Flags().StringVar(&session, "session", "main", "the conversation to go on with")
	return atDaemon(p.fileFlag(c))
}

func (p *program) chat(ctx context.Context, name, session string) error {
	cfg, err := p.load()
	if err != nil {
		return err
	}
	if p.host == nil {
		var stop func()
		ctx, stop = p.untilSignal(ctx, goodbye, syscall.SIGHUP)
		defer stop()
	}
	place, err := core.MakePath("console", session)
	if err != nil {
		return usagef("--session: %w", err)
	}
	who := cfg.cast.at(place)
	var b *bot
	o := console.Options{
		In: p.in, Out: p.out, Err: p.errs, User: p.user(name), Session: session, Rank: core.Admin,
		Terminal: console.IsTerminal(p.in) && console.IsTerminal(p.out), NoColor: p.getenv("NO_COLOR") != "" || p.getenv("TERM") == "dumb",
		PersonaName: who.Name, Greeting: who.For(p.user(name)).Greeting, Now: cfg.clock(p.clock), Locale: p.locale(),
		History: func(ctx context.Context) []string { return b.saidBefore(ctx, place) },
	}
	if p.host != nil {
		b = p.host.bot
		return p.host.sit(ctx, o)
	}
	here := console.New(o)
	log := p.logger(cfg, slog.LevelWarn)
	b, err = p.assemble(cfg, log, func() (core.Store, error) { return cfg.openStore(p, log) }, only(here))
	if err != nil {
		return err
	}
	return closing(b, b.live(ctx, goodbye, func(life *lives) {
		select {
		case <-b.find(here).over:
		case <-life.intake.Done():
		}
	}))
}

// sit lets somebody talk to the daemon.
func (b *bot) sit(ctx context.Context, o console.Options) error {
	b.mu.Lock()
	h := b.parts.hall()
	b.mu.Unlock()
	if h == nil {
		return errors.New("the daemon has a console of its own: talk to it there, or take it out of the configuration")
	}
	o.Seated = func(place core.Path) { b.turns.Wake(place) }
	return h.Sit(ctx, o)
}

// only is for a bot whose interfaces need no store.
func only(all ...core.Interface) making {
	return func(maker) ([]core.Interface, error) { return all, nil }
}

// closing closes c after an action that ended with err.
func closing(c io.Closer, err error) error {
	if e := c.Close(); err == nil {
		err = e
	}
	return err
}

// user is who sits at the terminal.
func (p *program) user(name string) string {
	if name != "" {
		return name
	}
	if u, err := user.Current(); err == nil && u.Username != "" {
		return u.Username
	}
	return "you"
}

// saidBefore is what was typed in a session, for the arrow keys.
func (b *bot) saidBefore(ctx context.Context, place core.Path) []string {
	var lines []string
	err := b.store.View(ctx, func(v core.View) error {
		entries, err := v.Last(place, 200)
		for i := range entries {
			if e := &entries[i]; e.Message.Text != "" && e.Spoken() && !e.Self {
				lines = append(lines, e.Message.Text)
			}
		}
		return err
	})
	if err != nil {
		b.log.Warn("history of the terminal", "err", err)
	}
	return lines
}

// locale is the user's language tag, as the environment has it.
func (p *program) locale() string {
	for _, name := range []string{"LC_ALL", "LC_MESSAGES", "LANG"} {
		tag, _, _ := strings.Cut(p.getenv(name), ".")
		if tag != "" {
			if tag == "C" || tag == "POSIX" {
				return ""
			}
			return strings.ReplaceAll(tag, "_", "-")
		}
	}
	return ""
}
