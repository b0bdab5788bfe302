// Package setup prepares a machine for the bot: `synthbot init` asks questions and writes the
// answers into the configuration, `synthbot service install` writes the files that systemd
// needs. It also finds what is wrong on the machine and can be fixed, for `synthbot check`. It does not run the bot.
//
// # How a configuration file is changed
//
// The value of an existing key is replaced; the rest of its line stays. A key that exists only in a comment, as in the
// example file ("#name = …" in its table), takes the place of that line. Any other key is added at the end of its
// table. A table that exists only in a comment ("#[interfaces.telegram]") is uncommented; any other is added at the end
// of the file. No other byte changes.
package setup

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"unicode"

	"synthbot/core"
	"synthbot/core/engine"
	"synthbot/daemon"
	"synthbot/interfaces/console"
)

var errCancelled = errors.New("cancelled: no file was changed; `synthbot init` starts again")

// Init implements `synthbot init`. Its fields are the flags.
type Init struct {
	Answers      // Word of a secret is an argument of ReadSecret
	Yes, NoCheck bool
	Runs         bool // the bot starts afterwards, so that no next commands are printed
}

// Run asks the questions that the flags do not answer, and writes the configuration.
func (i *Init) Run(ctx context.Context, env *daemon.Env) error {
	c, err := openConfig(env)
	if err != nil {
		return err
	}
	atTerminal := console.IsTerminal(env.In) && console.IsTerminal(env.Out) && !i.Yes
	if err := i.readSecrets(env.In, atTerminal); err != nil {
		return err
	}
	w := &Wizard{Answers: &i.Answers, Probes: newProbes(env, c), Current: c.current()}
	w.Found = make(map[string][]core.Finding)
	i.Telegram.APIURL = cmp.Or(i.Telegram.APIURL, w.Current.Servers[Telegram])
	i.Discord.APIURL = cmp.Or(i.Discord.APIURL, w.Current.Servers[Discord])
	w.Defaults = newDefaults(env)
	if i.NoCheck {
		w.Probes.Identify = nil
	}
	if atTerminal {
		plain := console.IsDumb(env.Getenv("TERM")) || env.Getenv("ACCESSIBLE") != ""
		form := console.NewForm(env.In, env.Out, plain)
		w.Terminal = form
		err = w.Ask(ctx)
		form.Close()
	} else {
		err = w.Fill(ctx, i.Yes)
	}
	if errors.Is(err, console.ErrLeft) {
		return errCancelled
	}
	if err != nil {
		return daemon.Usagef("init: %w", err)
	}
	return i.finish(ctx, env, c, w)
}

// readSecrets reads the secrets that the flags name. At a terminal, a question replaces "-".
func (i *Init) readSecrets(in io.Reader, atTerminal bool) error {
	lines := bufio.NewScanner(in)
	next := func() (string, error) {
		lines.Scan()
		return lines.Text(), lines.Err()
	}
	if (i.PersonaName != "" || i.PersonaText != "") && i.Persona == "" {
		i.Persona = New
	}
	for _, s := range []struct {
		flag   string
		secret *Secret
	}{{"api-key", &i.Key}, {"telegram-token", &i.Telegram.Token}, {"discord-token", &i.Discord.Token}} {
		if s.secret.Word == "-" && atTerminal {
			s.secret.Word = ""
		}
		var err error
		if *s.secret, err = ReadSecret(s.secret.Word, next); err != nil {
			return daemon.Usagef("init: --%s: %w", s.flag, err)
		}
	}
	return nil
}

// finish applies the answers, checks the new configuration, and only then writes files.
func (i *Init) finish(ctx context.Context, env *daemon.Env, c *configFile, w *Wizard) error {
	w.Persona = c.personaPath(w.Persona)
	out, err := w.Apply(c.text)
	if err != nil {
		return daemon.Usagef("%s: %w", c.file, err)
	}
	next, err := env.Parse(c.file, c.text.String())
	if err := ignoreMissingPersona(err, out.Persona); err != nil {
		return err
	}
	if err := c.apply(out); err != nil {
		return fmt.Errorf("init: %w", err)
	}
	summarize(ctx, env, c, w, next)
	if out.Code != "" {
		const text = "\nTo become its admin, send this to the bot in a private chat, once:\n  /claim %s\n"
		fmt.Fprintf(env.Out, text, out.Code)
	}
	if !i.Runs {
		fmt.Fprintf(env.Out, "\nNext:\n%s", nextCommands(env, c.file, len(next.Enabled) > 0))
	}
	return nil
}

// summarize prints what the platforms and the engine report, and whether anything was written.
func summarize(ctx context.Context, env *daemon.Env, c *configFile, w *Wizard, next *daemon.Config) {
	if c.written == 0 {
		fmt.Fprintf(env.Out, "nothing to change in %s\n", c.file)
	}
	for _, platform := range platforms() {
		for _, f := range w.Found[platform] {
			daemon.PrintFinding(env.Out, platform, f)
		}
		if w.account(platform).Token.Word == Keep {
			daemon.PrintFinding(env.Out, platform, core.Finding{What: "token", Found: "(kept)"})
		}
		left := c.tokenFile(platform)
		if left != "" && w.account(platform).Token.Word == None {
			f := core.Finding{What: "token", Found: "no longer used", Fix: "it is still in " + left}
			daemon.PrintFinding(env.Out, platform, f)
		}
		if _, err := w.token(platform); err != nil {
			daemon.PrintFinding(env.Out, platform, uncheckedFinding("token", err))
		}
	}
	if _, err := w.resolve(w.Key); err != nil {
		daemon.PrintFinding(env.Out, "engine", uncheckedFinding("key", err))
	}
	if w.Probes.Identify != nil && w.Engine != Keep && len(next.Engines) > 0 && !next.Engines[0].Disabled {
		for _, f := range probeEngine(ctx, env, next.File, next.Engines[0]) {
			f.Fatal = false // the engine may be off for now
			daemon.PrintFinding(env.Out, "engine", f)
		}
	}
	if w.Timezone != "" || w.Language != "" {
		zone := shownDefault(w.Timezone, w.Current.Timezone, "of the machine")
		found := "time zone " + zone + ", language " + shownDefault(w.Language, w.Current.Language, "en")
		daemon.PrintFinding(env.Out, "bot", core.Finding{What: "defaults", Found: found})
	}
}

func shownDefault(answer, current, usual string) string {
	if answer == "" && current != "" {
		return "kept"
	}
	return cmp.Or(answer, usual)
}

func uncheckedFinding(what string, err error) core.Finding {
	return core.Finding{What: what, Found: "written unchecked", Fix: err.Error()}
}

func nextCommands(env *daemon.Env, file string, platforms bool) string {
	suffix := " -c " + file
	special := func(r rune) bool {
		return !strings.ContainsRune("/._-", r) && !unicode.IsLetter(r) && !unicode.IsDigit(r)
	}
	if strings.ContainsFunc(file, special) { // quoted for a shell
		suffix = " -c '" + strings.ReplaceAll(file, "'", `'\''`) + "'"
	}
	if (&daemon.Env{Getenv: env.Getenv}).ConfigFile() == file {
		suffix = "" // the commands find the file by themselves
	}
	switch {
	case !platforms:
		return "  synthbot chat" + suffix + "\n"
	case file != daemon.ServiceConfig:
		return "  synthbot run" + suffix + "\n"
	case !exists("/etc/systemd/system/synthbot.service") && !exists("/usr/lib/systemd/system/synthbot.service"):
		return "  sudo synthbot service install\n  sudo systemctl enable --now synthbot\n"
	}
	return "  sudo systemctl enable --now synthbot\n"
}

// probeEngine reports whether an engine answers. Ctrl-C skips that.
func probeEngine(ctx context.Context, env *daemon.Env, file string, e engine.Config) []core.Finding {
	reference := e.APIKey.Reveal()
	if reference != "" {
		key, err := resolve(env, file, reference)
		if err != nil {
			return []core.Finding{{What: cmp.Or(e.Name, e.Provider), Found: "has no key yet", Fix: err.Error()}}
		}
		e.APIKey = key
	}
	o := engine.Options{Log: slog.New(slog.DiscardHandler), Clock: env.Clock}
	chain, err := engine.New([]engine.Config{e}, o)
	if err != nil {
		return []core.Finding{{What: e.Provider, Found: "cannot be used", Fix: err.Error()}}
	}
	defer chain.Close()
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt)
	defer stop()
	limited, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	name := cmp.Or(e.Name, e.Provider)
	const waiting = "Asking %s whether it answers, for up to %.0f seconds (Ctrl-C skips this)…\n"
	fmt.Fprintf(env.Out, waiting, name, probeTime.Seconds())
	found := daemon.ProbeEngines(limited, chain)
	if ctx.Err() != nil {
		return []core.Finding{{What: name, Found: "not checked", Fix: "`synthbot check --online` does that"}}
	}
	return found
}
