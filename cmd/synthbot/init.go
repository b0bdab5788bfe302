package main

import (
	"strings"

	"github.com/spf13/cobra"

	"synthbot/core/engine"
	"synthbot/daemon"
	"synthbot/setup"
)

func initCommand(p *program) *cobra.Command {
	var i setup.Init
	c := &cobra.Command{
		Use: "init", Short: "Ask a few questions and write the configuration, or change the existing one",
		Args: cobra.NoArgs,
		Long: "Asks who the bot is, which language model it uses and on which platforms users meet it, and\n" +
			"writes the configuration (config.toml, unless -c or $SYNTHBOT_CONFIG says otherwise).\n" +
			"What a flag answers is not asked. An existing file is changed in place: everything else in\n" +
			"it stays as it is, and a copy of the former one is kept beside it (.bak).\n\n" +
			"Secrets are given as env:NAME, file:PATH (relative to the configuration, or a credential\n" +
			"of systemd), or - for a line of standard input, which gets a file of its own (mode 0600).\n" +
			"none is without, keep is the value of the file.",
		RunE: func(c *cobra.Command, _ []string) error { return i.Run(c.Context(), p.Env) },
	}
	fs := c.Flags()
	fs.BoolVarP(&i.Yes, "yes", "y", false, "ask nothing: questions without a flag get the usual answer")
	fs.BoolVar(&i.NoCheck, "no-check", false,
		"do not ask platforms and engines whether they know tokens, keys and models")
	fs.StringVar(&i.Persona, "persona", "", "a persona `file` (.toml) or character card (.json, .png), or built-in")
	fs.StringVar(&i.PersonaName, "persona-name", "", "the `name` of a new persona, which is written into persona/")
	fs.StringVar(&i.PersonaText, "persona-text", "", "who the new persona is, in a few `sentences`")
	fs.StringVar(&i.Engine, "engine", "", "the language model's `provider`: "+strings.Join(engine.Providers(), ", "))
	fs.StringVar(&i.Model, "model", "", "the model's `name`, as the provider spells it")
	fs.StringVar(&i.BaseURL, "base-url", "", "the `address` of the engine, if it is not the usual one")
	fs.StringVar(&i.APIKey, "api-key", "", "the engine's key, as a `secret`")
	fs.StringVar(&i.TelegramToken, "telegram-token", "", "the bot's token on Telegram, as a `secret`")
	fs.StringVar(&i.TelegramURL, "telegram-api-url", "", "the `address` of a Bot API server of your own")
	fs.StringVar(&i.DiscordToken, "discord-token", "", "the bot's token on Discord, as a `secret`")
	fs.StringVar(&i.DiscordURL, "discord-api-url", "", "the `address` of another server than Discord's")
	fs.StringSliceVar(&i.Admins, "admin", nil, "the `path` of a user who may do everything, like telegram/@user/1000")
	fs.StringVar(&i.Claim, "claim", "", "code: make a code that makes its first sender an admin; none; keep")
	fs.StringVar(&i.DataDir, "data-dir", "", "the `folder` of the database")
	fs.StringVar(&i.Timezone, "timezone", "", "the bot's time `zone`, like Europe/Rome")
	fs.StringVar(&i.Language, "language", "", "the `language` to answer in until somebody writes words")
	file := p.fileFlag(c).Flags().Lookup("config")
	file.Usage = "the configuration `file`, made if it is missing (default $SYNTHBOT_CONFIG, ./config.toml)"
	return c
}

func serviceCommand(p *program) *cobra.Command {
	c := group(&cobra.Command{Use: "service", Short: "Let systemd run the daemon"})
	var s setup.Service
	install := &cobra.Command{
		Use: "install", Short: "Write the unit, the user and the modes of files, and print the next commands",
		Args: cobra.NoArgs,
		Long: "Writes a hardened unit, a file for systemd-sysusers with the user, one for systemd-tmpfiles\n" +
			"with the modes of the configuration and the secrets, and passes secrets as credentials.\n" +
			"A configuration from elsewhere is copied to /etc/synthbot, with its personas and secrets;\n" +
			"existing files are not overwritten. Nothing is started.",
		RunE: func(*cobra.Command, []string) error { return s.Install(p.Env) },
	}
	fs := install.Flags()
	fs.StringVar(&s.User, "user", "synthbot", "the `name` of the user that the daemon runs as")
	fs.StringVar(&s.Root, "root", "", "a `folder` to write below, instead of this machine's root")
	fs.BoolVar(&s.Tools, "tools", false, "let the bot start programs, such as tool servers, by a drop-in")
	fs.BoolVar(&s.DryRun, "dry-run", false, "write nothing; show what would be written")
	c.AddCommand(p.fileFlag(install))
	file := install.Flags().Lookup("config")
	file.Usage = "configuration `file` (default " + daemon.ServiceConfig + ", $SYNTHBOT_CONFIG, ./config.toml)"
	return c
}
