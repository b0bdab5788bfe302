package telegram

import (
	"context"
	"log/slog"
	"net"
	"strings"
	"time"

	"synthbot/core/driver"

	"synthbot/core"
	"synthbot/core/command"
	"synthbot/interfaces/telegram/botapi"
)

// Config is the part of the configuration that the driver reads.
type Config struct {
	Token       core.Secret    `toml:"token" doc:"The bot's token, as @BotFather gives it." required:"true" example:"env:TELEGRAM_TOKEN"`
	APIURL      string         `toml:"api_url" default:"https://api.telegram.org" doc:"The address of the Bot API: the platform's, or that of your own server."`
	Pace        string         `toml:"pace" default:"platform" oneof:"platform|off" doc:"platform: stay below the published limits; off: only obey the server's responses."`
	Timeout     time.Duration  `toml:"timeout" default:"30s" min:"1s" max:"10m" doc:"How long one call may take; uploads and downloads may take ten times as long."`
	Acknowledge string         `toml:"acknowledge" doc:"A reaction to a message while its answer is being made; empty: none." example:"👀"`
	Stream      string         `toml:"stream" default:"auto" oneof:"auto|edit|off" doc:"How an answer is shown while it is written. auto: as Telegram's own draft in private chats, by edits elsewhere; edit: by edits; off: not at all."`
	RichTables  bool           `toml:"rich_tables" default:"false" doc:"Send texts with tables as rich messages, which display them as tables. Old apps and some third-party apps show nothing of such a message."`
	Previews    bool           `toml:"previews" default:"false" doc:"Show previews of links in the bot's messages. The platform fetches such links at once, even those that a user made the bot write."`
	MaxFile     int64          `toml:"max_file" default:"20971520" min:"0" doc:"The largest file that is fetched, in bytes."`
	FilesDir    string         `toml:"files_dir" doc:"The folder in which your own Bot API server keeps files on this machine; empty: files are downloaded from it."`
	Webhook     botapi.Webhook `toml:"webhook" doc:"Receives updates by a webhook instead of polling."`
}

// Wrong tells what is wrong with the token; "" where nothing is, or there is none.
func (c *Config) Wrong() string {
	if strings.ContainsAny(c.Token.Reveal(), "/?#% \t\r\n") {
		return "must look like 123456:ABC-DEF, as @BotFather gives it"
	}
	return ""
}

// Options is what a Driver needs. Name, Config, Log, Clock, State and Admin are required.
type Options struct {
	Name     string // the interface's name
	Config   Config
	Log      *slog.Logger
	Clock    func() time.Time
	State    driver.State
	Commands []command.Spec    // offered in the platform's menu
	Admins   []core.Path       // who sees the commands of admins
	Admin    func(text string) // tells admins what they must know

	// Dial connects to the server; nil: by the network.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}
