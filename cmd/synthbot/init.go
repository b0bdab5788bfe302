package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"synthbot/core"
	"synthbot/core/engine"
	"synthbot/daemon"
	"synthbot/interfaces/console"
	"synthbot/setup"
)

// initFlags answer the questions of `synthbot init` before they are asked.
type initFlags struct {
	setup.Answers
	key, telegram, discord string // where secrets are
	telegramURL            string
	discordURL             string
	yes, unchecked         bool
}

func initCommand(p *program) *cobra.Command {
	var f initFlags
	c := &cobra.Command{
		Use: "init", Short: "Ask a few questions and write the configuration, or change the one that is there",
		Args: cobra.NoArgs,
		Long: "Asks who the bot is, which language model speaks for it and where people meet it, and\n" +
			"writes the configuration (config.toml, unless -c or $SYNTHBOT_CONFIG says otherwise).\n" +
			"What a flag answers is not asked. A file that is there is changed in place: what is not\n" +
			"asked about stays as it is, and a copy of the former one is kept beside it (.bak).\n\n" +
			"Secrets are given as env:NAME, file:PATH (relative to the configuration, or a credential\n" +
			"of systemd), or - for a line of standard input, which gets a file of its own (mode 0600).\n" +
			"none is without, keep is what the file says.",
		RunE: func(c *cobra.Command, _ []string) error { return (&initializer{p}).run(c.Context(), &f) },
	}
	fs := c.Flags()
	fs.BoolVarP(&f.yes, "yes", "y", false, "ask nothing: what no flag says is as usual")
	fs.BoolVar(&f.unchecked, "no-check", false,
		"do not ask platforms and engines whether they know tokens, keys and models")
	fs.StringVar(&f.Persona, "persona", "", "a persona `file` (.toml) or character card (.json, .png), or built-in")
	fs.StringVar(&f.PersonaName, "persona-name", "", "the `name` of a new persona, which is written into persona/")
	fs.StringVar(&f.PersonaText, "persona-text", "", "who the new persona is, in a few `sentences`")
	fs.StringVar(&f.Engine, "engine", "", "the language model's `provider`: "+strings.Join(engine.Providers(), ", "))
	fs.StringVar(&f.Model, "model", "", "the model's `name`, as the provider spells it")
	fs.StringVar(&f.BaseURL, "base-url", "", "the `address` of the engine, where it is not the usual one")
	fs.StringVar(&f.key, "api-key", "", "the engine's key, as a `secret`")
	fs.StringVar(&f.telegram, "telegram-token", "", "the bot's token on Telegram, as a `secret`")
	fs.StringVar(&f.telegramURL, "telegram-api-url", "", "the `address` of a Bot API server of your own")
	fs.StringVar(&f.discord, "discord-token", "", "the bot's token on Discord, as a `secret`")
	fs.StringVar(&f.discordURL, "discord-api-url", "", "the `address` of another server than Discord's")
	fs.StringSliceVar(&f.Admins, "admin", nil, "a `path` of somebody who may do everything, like telegram/@user/1000")
	fs.StringVar(&f.Claim, "claim", "", "code: make a code that makes its first sender an admin; none; keep")
	fs.StringVar(&f.DataDir, "data-dir", "", "the `folder` of the database")
	fs.StringVar(&f.Timezone, "timezone", "", "the bot's time `zone`, like Europe/Rome")
	fs.StringVar(&f.Language, "language", "", "the `language` to answer in where none was recognised")
	file := p.fileFlag(c).Flags().Lookup("config")
	file.Usage = "the configuration `file`, made where there is none (default $SYNTHBOT_CONFIG, ./config.toml)"
	return c
}

// probing is how long platforms and engines may take to say what they know.
const probing = 15 * time.Second

// initializer carries out `synthbot init`.
type initializer struct{ *program }

// run asks what is not answered yet, and writes the answers down.
func (p *initializer) run(ctx context.Context, f *initFlags) error {
	draft, err := p.draft()
	if err != nil {
		return err
	}
	atTerminal := console.IsTerminal(p.In) && console.IsTerminal(p.Out) && !f.yes
	if err := f.secrets(p.In, atTerminal); err != nil {
		return err
	}
	talk := &setup.Talk{Answers: &f.Answers, World: p.world(draft, f.unchecked), Known: draft.known()}
	if atTerminal {
		plain := p.Getenv("TERM") == "dumb" || p.Getenv("ACCESSIBLE") != ""
		talk.Terminal = setup.Form{In: p.In, Out: p.Out, Plain: plain}
		err = talk.Ask(ctx)
	} else {
		err = talk.Fill(ctx, f.yes)
	}
	if errors.Is(err, setup.ErrLeft) {
		return err
	}
	if err != nil {
		return daemon.Usagef("init: %w", err)
	}
	return p.settle(ctx, draft, talk)
}

// secrets reads where secrets are; at a terminal, those on standard input are
// asked for.
func (f *initFlags) secrets(in io.Reader, atTerminal bool) error {
	var lines *bufio.Reader
	next := func() (string, error) {
		if lines == nil && in == nil {
			return "", io.ErrUnexpectedEOF
		} else if lines == nil {
			lines = bufio.NewReader(in)
		}
		line, err := lines.ReadString('\n')
		if errors.Is(err, io.EOF) {
			err = nil
		}
		return line, err
	}
	if (f.PersonaName != "" || f.PersonaText != "") && f.Persona == "" {
		f.Persona = setup.New
	}
	f.Accounts = make(map[string]*setup.Account)
	for _, x := range []struct{ flag, value, platform, url string }{
		{"api-key", f.key, "", ""},
		{"telegram-token", f.telegram, setup.Telegram, f.telegramURL},
		{"discord-token", f.discord, setup.Discord, f.discordURL},
	} {
		if x.value == "-" && atTerminal {
			x.value = ""
		}
		s, err := setup.ReadSecret(x.value, next)
		if err != nil {
			return daemon.Usagef("init: --%s: %w", x.flag, err)
		}
		if x.platform == "" {
			f.Key = s
		} else {
			f.Accounts[x.platform] = &setup.Account{Token: s, APIURL: x.url}
		}
	}
	return nil
}

// settle puts the answers into the file, checks what came of it, and only then
// writes.
func (p *initializer) settle(ctx context.Context, d *draft, t *setup.Talk) error {
	t.Persona = d.personaPath(t.Persona)
	out, err := t.Apply(d.text)
	if err != nil {
		return daemon.Usagef("%s: %w", d.file, err)
	}
	c, err := p.Parse(d.file, d.text.String())
	if err := besides(err, out.Persona); err != nil {
		return err
	}
	for _, write := range []func() error{
		func() error { return d.persona(out) }, func() error { return d.secrets(out) }, d.save,
	} {
		if err := write(); err != nil {
			return fmt.Errorf("init: %w", err)
		}
	}
	p.summarize(ctx, d, t, c, out)
	return nil
}

// summarize says what was done, what was found, and what comes next.
func (p *initializer) summarize(ctx context.Context, d *draft, t *setup.Talk, c *daemon.Config, out setup.Outcome) {
	for _, file := range d.written {
		fmt.Fprintf(p.Out, "written  %s\n", file)
	}
	if len(d.written) == 0 {
		fmt.Fprintf(p.Out, "nothing to change in %s\n", d.file)
	}
	for _, platform := range []string{setup.Telegram, setup.Discord} {
		for _, f := range t.Found[platform] {
			printFinding(p.Out, platform, f)
		}
		if t.Accounts[platform].Token.Word == setup.Keep {
			printFinding(p.Out, platform, core.Finding{What: "token", Found: "(kept)"})
		}
	}
	if t.World.Identify != nil && t.Engine != setup.Keep {
		p.engineFound(ctx, c)
	}
	fmt.Fprintf(p.Out, "\nNext:\n  synthbot check --online -c %s\n", d.file)
	if len(c.Enabled) > 0 {
		fmt.Fprintf(p.Out, "  synthbot run -c %s\n", d.file)
	} else {
		fmt.Fprintf(p.Out, "  synthbot chat -c %s\n", d.file)
	}
	if out.Code != "" {
		fmt.Fprintf(p.Out, "\nTo be its admin, say this to the bot in a private chat, once:\n  /claim %s\n", out.Code)
	}
}

// engineFound tells whether the first engine can be used. It may be off for now.
func (p *initializer) engineFound(ctx context.Context, c *daemon.Config) {
	if len(c.Engines) == 0 || c.Engines[0].Disabled {
		return
	}
	e := c.Engines[0]
	reference := e.APIKey.Reveal()
	if reference != "" {
		key, err := p.resolve(c.File, reference)
		if err != nil {
			name := cmp.Or(e.Name, e.Provider)
			printFinding(p.Out, "engine", core.Finding{What: name, Found: "has no key yet", Fix: err.Error()})
			return
		}
		e.APIKey = key
	}
	chain, err := engine.New([]engine.Config{e}, engine.Options{Log: slog.New(slog.DiscardHandler), Clock: p.Clock})
	if err != nil {
		printFinding(p.Out, "engine", core.Finding{What: e.Provider, Found: "cannot be used", Fix: err.Error()})
		return
	}
	ctx, cancel := context.WithTimeout(ctx, probing)
	defer cancel()
	for _, f := range daemon.ProbeEngines(ctx, chain) {
		f.Fatal = false
		printFinding(p.Out, "engine", f)
	}
	_ = chain.Close()
}
