package discord

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"synthbot/core/driver"
	"synthbot/core/secret"
	"synthbot/interfaces/discord/gateway"
)

// Config is the configuration of an interface of type "discord".
type Config struct {
	Token          secret.Secret `toml:"token" doc:"The bot's token." required:"true" example:"file:discord_token"`
	APIURL         string        `toml:"api_url" doc:"The address of the REST API, which also returns the gateway's address." default:"https://discord.com"`
	CDNURL         string        `toml:"cdn_url" doc:"The address of attached files; none are fetched from anywhere else." default:"https://cdn.discordapp.com"`
	Pace           string        `toml:"pace" doc:"platform: stay below the published limits; off: only obey the server's responses." default:"platform" oneof:"platform|off"`
	Shards         string        `toml:"shards" doc:"The number of gateway connections, or auto for what Discord recommends. Several workers share an account only if this is a number." default:"auto"`
	MessageContent bool          `toml:"message_content" doc:"Request the message content intent, which must be enabled in the developer portal." default:"true"`
	Previews       bool          `toml:"previews" default:"false" doc:"Show previews of links in the bot's messages. The platform fetches such links at once, even those that a user made the bot write."`
	LongAnswers    string        `toml:"long_answers" doc:"What happens to an answer that needs more than long_parts messages. split: all are sent; file: it is attached as a file." default:"split" oneof:"split|file"`
	LongParts      int           `toml:"long_parts" doc:"How many messages an answer may need before it counts as long." default:"4" min:"1" max:"50"`
	CommandGuilds  []string      `toml:"command_guilds" doc:"Guilds that get the chat commands as their own, at once; empty: all guilds get them." example:"81384788765712384"`
	BackfillCount  int           `toml:"backfill_messages" doc:"How many missed messages are fetched per channel." default:"500" min:"0" max:"10000"`
	BackfillAge    time.Duration `toml:"backfill_age" doc:"The maximum age of missed messages that are fetched." default:"24h" min:"1m" max:"720h"`
}

// settings is a checked Config.
type settings struct {
	Config
	api, cdn *url.URL
	shards   int // 0: as recommended
}

// Check implements the configuration's own check.
func (c *Config) Check(fault func(text string, at ...any)) { c.parse(fault) }

// CheckSecrets is Check for secrets. The token may be empty.
func (c *Config) CheckSecrets(fault func(text string, at ...any)) {
	if strings.ContainsAny(c.Token.Reveal(), " \t\r\n") {
		fault("must be the bot's token, as the developer portal gives it", "token")
	}
}

func (c Config) check() (s settings, err error) {
	err = driver.FirstFault(func(fault func(string, ...any)) {
		if c.Token.IsZero() {
			fault("it is missing; the developer portal shows it under Bot", "token")
		}
		c.CheckSecrets(fault)
		s = c.parse(fault)
	})
	return s, err
}

func (c Config) parse(fault func(text string, at ...any)) settings {
	s := settings{Config: c}
	s.api, s.cdn = parseBase(s.APIURL, fault, "api_url"), parseBase(s.CDNURL, fault, "cdn_url")
	if s.Shards == "auto" {
		return s
	}
	var err error
	s.shards, err = strconv.Atoi(s.Shards)
	if err != nil || s.shards < 1 || s.shards > gateway.MaxShards {
		fault(fmt.Sprintf("write auto or a number from 1 to %d, not %q", gateway.MaxShards, s.Shards), "shards")
	}
	return s
}

func parseBase(text string, fault func(text string, at ...any), key string) *url.URL {
	u, err := url.Parse(strings.TrimRight(text, "/"))
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.RawQuery != "" || u.User != nil {
		fault("write an address like https://discord.com", key)
	}
	return u
}
