package discord

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

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

// Wrong returns what is wrong with the token; "" if nothing is, or it is empty.
func (c *Config) Wrong() string {
	if strings.ContainsAny(c.Token.Reveal(), " \t\r\n") {
		return "must be the bot's token, as the developer portal gives it"
	}
	return ""
}

func (c Config) check() (settings, error) {
	s := settings{Config: c}
	wrong := c.Wrong()
	if wrong != "" || c.Token.IsZero() {
		return s, errors.New("token: " + cmp.Or(wrong, "it is missing; the developer portal shows it under Bot"))
	}
	var err error
	if s.api, err = parseBase("api_url", s.APIURL); err != nil {
		return s, err
	}
	if s.cdn, err = parseBase("cdn_url", s.CDNURL); err != nil {
		return s, err
	}
	if s.Shards != "auto" {
		s.shards, err = strconv.Atoi(s.Shards)
		if err != nil || s.shards < 1 || s.shards > gateway.MaxShards {
			return s, fmt.Errorf("shards: write auto or a number from 1 to %d, not %q", gateway.MaxShards, s.Shards)
		}
	}
	return s, nil
}

func parseBase(key, text string) (*url.URL, error) {
	u, err := url.Parse(strings.TrimRight(text, "/"))
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.RawQuery != "" || u.User != nil {
		return nil, fmt.Errorf("%s: write an address like https://discord.com", key)
	}
	return u, nil
}
