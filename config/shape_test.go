package config

import (
	"errors"
	"io"
	"io/fs"
	"strings"
	"time"

	"synthbot/core"
	"synthbot/core/secret"
)

// The types below form the configuration of a whole bot.
type botConfig struct {
	Bot struct {
		Name     string      `toml:"name" doc:"What people call it." default:"Aria" min:"1" max:"64"`
		DataDir  string      `toml:"data_dir" doc:"Where the database lies; by default the state directory." example:"data"`
		Timezone zone        `toml:"timezone" doc:"Where the bot lives." default:"UTC" example:"Europe/Rome"`
		Language string      `toml:"language" doc:"Spoken when nothing else is known." default:"en"`
		Admins   []core.Path `toml:"admins" doc:"People who may do everything." example:"discord/@user/123456789, telegram/@user/1000"`
	} `toml:"bot" doc:"The bot itself."`
	Persona struct {
		Path string `toml:"path" doc:"A persona file or a character card." example:"persona/aria.toml"`
	} `toml:"persona" doc:"Who speaks."`
	Engines    []engineConfig   `toml:"engine" doc:"The language models, tried in order: the first is used, the next ones are fallbacks."`
	Interfaces map[string]Table `toml:"interfaces" doc:"Where people talk to it. The table's name is the first element of its paths."`
	Prompt     struct {
		Lite  bool   `toml:"lite" doc:"Fewer actions and shorter rules."`
		Scope string `toml:"scope" doc:"How far the recent history reaches." default:"chat" oneof:"chat|interface|unified"`
	} `toml:"prompt" doc:"What a model gets."`
	Access struct {
		Private string   `toml:"private" doc:"Who may talk to it alone." default:"open" oneof:"open|pairing|allow"`
		Allow   []string `toml:"allow" doc:"Paths and people that may."`
	} `toml:"access" doc:"Who may talk to it at all."`
	Budget struct {
		Person int64   `toml:"person_tokens" doc:"Tokens of one person by day; 0: no limit." default:"1000000" min:"0"`
		Cost   float64 `toml:"cost" doc:"Money by day." default:"0.5" min:"0" max:"100"`
	} `toml:"budget" doc:"Hard limits."`
	Shares    []shareConfig    `toml:"share" doc:"Places that may see each other's history and facts; private chats never can."`
	Plugins   map[string]Table `toml:"plugins" doc:"One table a plugin."`
	Overrides []overrideConfig `toml:"override" doc:"The settings of a subtree: the longest matching path wins."`
}

type engineConfig struct {
	Name     string            `toml:"name" doc:"How it is called." example:"home" required:"true"`
	Provider string            `toml:"provider" doc:"What it speaks." default:"offline" example:"ollama" oneof:"offline|openai|ollama"`
	Model    string            `toml:"model" doc:"The model's own name." example:"llama3.1"`
	BaseURL  string            `toml:"base_url" doc:"Where it listens." example:"http://127.0.0.1:11434"`
	Key      secret.Secret     `toml:"api_key" doc:"Its key." example:"env:OPENAI_API_KEY"`
	Timeout  time.Duration     `toml:"timeout" doc:"How long an answer may take." default:"2m" example:"120s" min:"1s" max:"1h"`
	Chars    int               `toml:"max_prompt_chars" doc:"How much it can read; 0: no limit." default:"24000" min:"0"`
	Headers  map[string]string `toml:"headers" doc:"Sent with each request." example:"X-Title=synthbot"`
}

type shareConfig struct {
	Paths []core.Path `toml:"paths" doc:"The places." example:"discord/81384788765712384, telegram/-1001234567890" required:"true"`
}

type overrideConfig struct {
	Path       core.Path `toml:"path" doc:"The top of the subtree." example:"discord/81384788765712384" required:"true"`
	Engine     *string   `toml:"engine" doc:"The engine to ask." example:"home"`
	Lite       *bool     `toml:"lite" doc:"As in [prompt]." example:"true"`
	Activation *string   `toml:"activation" doc:"What wakes the bot." oneof:"mention|always|never" example:"mention"`
	Deny       []string  `toml:"actions_deny" doc:"Actions that are not offered." example:"web_*"`
}

// commonConfig has the keys of all interfaces.
type commonConfig struct {
	Type    string `toml:"type" doc:"What kind it is; by default the table's name." example:"telegram"`
	Enabled bool   `toml:"enabled" doc:"Whether it is started." default:"true"`
}

type telegramConfig struct {
	Token secret.Secret `toml:"token" doc:"The bot's token." example:"env:TELEGRAM_TOKEN" required:"true"`
	URL   string        `toml:"api_url" doc:"The server." default:"https://api.telegram.org"`
	Pace  string        `toml:"pace" doc:"How fast it sends." default:"platform" oneof:"platform|off"`
}

func (c *telegramConfig) Check(fault func(text string, at ...any)) {
	if c.Pace == "off" && strings.Contains(c.URL, "telegram.org") {
		fault("is for servers of your own", "pace")
	}
}

type diceConfig struct {
	Sides int `toml:"sides" doc:"How many." default:"6" min:"2" max:"100"`
}

// zone is a type that implements encoding.TextUnmarshaler.
type zone struct{ *time.Location }

func (z *zone) UnmarshalText(text []byte) (err error) {
	z.Location, err = time.LoadLocation(string(text))
	return err
}

func page() Page {
	return Page{
		Intro: "All that can be set.",
		Tables: map[string][]Component{
			"interfaces": {{Name: "telegram", Doc: "A Telegram bot.", Into: []any{new(commonConfig), new(telegramConfig)}}},
			"plugins":    {{Name: "dice", Doc: "Throws dice.", Into: []any{new(commonConfig), new(diceConfig)}}},
		},
	}
}

// world is a machine with an environment and files.
type world struct{ env, files map[string]string }

func (w world) options() Options {
	return Options{
		Getenv: func(name string) string { return w.env[name] },
		Open: func(name string) (io.ReadCloser, error) {
			text, ok := w.files[name]
			if !ok {
				return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
			}
			if text == "locked" {
				return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
			}
			return io.NopCloser(strings.NewReader(text)), nil
		},
	}
}

// readBot reads a file and all its components.
func readBot(text string, w world) (bot *botConfig, telegram map[string]*telegramConfig, err error) {
	bot, telegram = new(botConfig), make(map[string]*telegramConfig)
	d := Parse("/etc/bot/config.toml", []byte(text), w.options())
	d.Decode(bot)
	for name, t := range bot.Interfaces {
		common := new(commonConfig)
		telegram[name] = new(telegramConfig)
		if t.Peek(common); !common.Enabled {
			t = t.Unresolved()
		}
		t.Decode(common, telegram[name])
	}
	for _, t := range bot.Plugins {
		t.Decode(new(commonConfig), new(diceConfig))
	}
	return bot, telegram, d.Err()
}

// lines returns the faults without the file's name.
func lines(err error) string {
	var faults Faults
	if !errors.As(err, &faults) {
		return ""
	}
	return strings.ReplaceAll(faults.Error(), "/etc/bot/config.toml:", "")
}
