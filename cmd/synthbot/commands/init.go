package commands

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
		Use: "init", Short: "Set up the bot: answer a few questions to write or change the configuration",
		Args: cobra.NoArgs,
		Long: "Asks for the bot's persona, its language model and its platforms, and writes the\n" +
			"configuration (config.toml, or the file given by -c or $SYNTHBOT_CONFIG). Questions that a\n" +
			"flag answers are skipped. In an existing file only the answers change, and a copy of the\n" +
			"old file is kept beside it (.bak).\n\n" +
			"A secret is given as env:NAME (environment variable), file:PATH (relative to the\n" +
			"configuration, or a systemd credential), or - (read a line from standard input, store it in\n" +
			"a file with mode 0600). none removes a secret, keep leaves it as it is.",
		RunE: func(c *cobra.Command, _ []string) error { return i.Run(c.Context(), p.Env) },
	}
	fs := c.Flags()
	fs.BoolVarP(&i.Yes, "yes", "y", false, "ask no questions: use the default where no flag is given")
	fs.BoolVar(&i.NoCheck, "no-check", false,
		"do not verify tokens, keys and models with platforms and engines")
	fs.StringVar(&i.Persona, "persona", "", "a persona `file` (.toml) or character card (.json, .png), or built-in")
	fs.StringVar(&i.PersonaName, "persona-name", "", "`name` of a new persona, stored in persona/")
	fs.StringVar(&i.PersonaText, "persona-text", "", "description of the new persona in a few `sentences`")
	fs.StringVar(&i.Engine, "engine", "", "`provider` of the language model: "+strings.Join(engine.Providers(), ", "))
	fs.StringVar(&i.Model, "model", "", "`name` of the model, as the provider spells it")
	fs.StringVar(&i.BaseURL, "base-url", "", "`address` of the engine (default: the address of the provider)")
	fs.StringVar(&i.Key.Word, "api-key", "", "API key of the engine, as a `secret`")
	fs.StringVar(&i.Telegram.Token.Word, "telegram-token", "", "Telegram bot token, as a `secret`")
	fs.StringVar(&i.Telegram.APIURL, "telegram-api-url", "", "`address` of your own Bot API server")
	fs.StringVar(&i.Discord.Token.Word, "discord-token", "", "Discord bot token, as a `secret`")
	fs.StringVar(&i.Discord.APIURL, "discord-api-url", "", "`address` of a server to use instead of Discord's")
	fs.StringSliceVar(&i.Admins, "admin", nil, "`path` of an admin, for example telegram/@user/1000")
	fs.StringVar(&i.Claim, "claim", "", "code (the first user who sends the code becomes an admin), none or keep")
	fs.StringVar(&i.DataDir, "data-dir", "", "`folder` of the database")
	fs.StringVar(&i.Timezone, "timezone", "", "time `zone` of the bot, for example Europe/Rome")
	fs.StringVar(&i.Language, "language", "", "`language` of the bot's first words; later it follows the users")
	file := p.addConfigFlag(c).Flags().Lookup("config")
	file.Usage = "configuration `file`, created if it does not exist (default $SYNTHBOT_CONFIG, ./config.toml)"
	return c
}

func serviceCommand(p *program) *cobra.Command {
	c := group(&cobra.Command{Use: "service", Short: "Run the bot as a systemd service"})
	var s setup.Service
	install := &cobra.Command{
		Use: "install", Short: "Install the systemd unit and the user, set file modes, and print the next commands",
		Args: cobra.NoArgs,
		Long: "Writes a hardened unit, a systemd-sysusers file for the user and a systemd-tmpfiles file for\n" +
			"the modes of the configuration and secrets. Secrets are passed as systemd credentials. A\n" +
			"configuration outside of /etc/synthbot is copied there with its personas and secrets.\n" +
			"Existing files are not overwritten, and nothing is started. If the bot cannot start yet with\n" +
			"what was installed, for example because a folder must be copied first, the exit status is 2.",
		RunE: func(*cobra.Command, []string) error { return s.Install(p.Env) },
	}
	fs := install.Flags()
	fs.StringVar(&s.User, "user", "synthbot", "`name` of the user that runs the bot")
	fs.StringVar(&s.Root, "root", "", "write below this `folder` instead of /")
	fs.BoolVar(&s.Tools, "tools", false, "allow the bot to start programs such as tool servers (adds a drop-in)")
	fs.BoolVar(&s.DryRun, "dry-run", false, "print what would be written, and write nothing")
	c.AddCommand(p.addConfigFlag(install))
	file := install.Flags().Lookup("config")
	file.Usage = "configuration `file` (default " + daemon.ServiceConfig + ", $SYNTHBOT_CONFIG, ./config.toml)"
	return c
}
