// Package speech turns voice messages into text and text into voice messages. The work is done by a server
// with the OpenAI API or by a configured program. The package limits sizes, lengths and times, and does not
// trust what a file says about itself.
//
// # Programs
//
// A program is started without a shell, with the lowest priority. In its arguments, "{file}" is replaced by the name
// of an audio file, "{language}" by a language such as "en" or by "auto", and "{voice}" by the voice. A recogniser
// reads the audio file and writes the text to standard output. A synthesiser reads the text from standard input and
// writes the audio to the file, or to standard output if no argument contains "{file}".
//
// If ffmpeg is installed, a recogniser gets WAV (16 kHz, mono), and the output of a synthesiser is converted
// to Ogg/Opus. Otherwise files are passed on unchanged.
package speech

import (
	"os/exec"
	"slices"
	"strings"
	"time"

	"synthbot/core"
	"synthbot/core/outbound"
	"synthbot/core/secret"
)

// Values of provider.
const (
	byServer  = "openai"
	byProgram = "program"
)

// Config is the table [speech].
type Config struct {
	FFmpeg string `toml:"ffmpeg" default:"ffmpeg" doc:"The ffmpeg program, which converts sounds for programs. It is optional."`
	In     In     `toml:"in" doc:"Speech recognition: what users say in voice messages becomes text."`
	Out    Out    `toml:"out" doc:"Speech synthesis: the bot answers with voice messages, besides the text."`
}

// In is the table [speech.in].
type In struct {
	Provider string        `toml:"provider" default:"" oneof:"|openai|program" doc:"What recognises speech. openai: a server with the OpenAI API (/audio/transcriptions); program: a program; empty: nothing."`
	BaseURL  string        `toml:"base_url" default:"https://api.openai.com/v1" doc:"The address of the API."`
	APIKey   secret.Secret `toml:"api_key" example:"env:SPEECH_KEY" doc:"The server's key."`
	Model    string        `toml:"model" default:"whisper-1" doc:"The server's model."`
	Program  []string      `toml:"program" kind:"program" example:"whisper-cli, --no-prints, --no-timestamps, {file}" doc:"The program, its path relative to the configuration file or its name in PATH, and its arguments. It reads the sound file {file} and writes the words to standard output. {language} is the conversation's language, or auto."`
	Timeout  time.Duration `toml:"timeout" default:"60s" min:"1s" max:"30m" doc:"How long the recognition of one voice message may take."`
	Parallel int           `toml:"parallel" default:"2" min:"1" max:"100" doc:"How many voice messages are recognised at a time."`
	Longest  time.Duration `toml:"longest" default:"10m" min:"1s" max:"4h" doc:"The longest voice message that is recognised."`
	MaxSize  int64         `toml:"max_size" default:"20971520" min:"1024" max:"104857600" doc:"The largest voice message that is recognised, in bytes."`
	Overhear bool          `toml:"overhear" default:"true" doc:"Whether voice messages in groups are recognised if they do not address the bot: they become part of the history, and the bot hears its name in them."`
	Price    float64       `toml:"price" default:"0" min:"0" doc:"The price of a minute, in the currency of your budget. A second also counts as one token."`
}

// Check implements the configuration's own check.
func (c *In) Check(fault func(text string, at ...any)) {
	checkProvider(c.Provider, c.BaseURL, c.Program, fault)
	if c.Provider == byProgram && len(c.Program) > 0 && !slices.ContainsFunc(c.Program[1:], hasFile) {
		fault("no argument is {file}, so the program cannot find the sound", "program")
	}
}

// Out is the table [speech.out].
type Out struct {
	Provider string        `toml:"provider" default:"" oneof:"|openai|program" doc:"What synthesises speech. openai: a server with the OpenAI API (/audio/speech); program: a program; empty: nothing."`
	BaseURL  string        `toml:"base_url" default:"https://api.openai.com/v1" doc:"The address of the API."`
	APIKey   secret.Secret `toml:"api_key" example:"env:SPEECH_KEY" doc:"The server's key."`
	Model    string        `toml:"model" default:"tts-1" doc:"The server's model."`
	Program  []string      `toml:"program" kind:"program" example:"espeak-ng, --stdin, -w, {file}" doc:"The program, its path relative to the configuration file or its name in PATH, and its arguments. It reads the text from standard input and writes a WAV or Ogg file to {file}, or to standard output. {voice} is the voice."`
	Voice    string        `toml:"voice" default:"" doc:"The provider's name of a voice; empty: its usual one. A persona may name its own."`
	When     string        `toml:"when" default:"never" oneof:"never|reply|always" doc:"Which answers are also spoken. reply: those to voice messages. The action speak speaks in any case."`
	Timeout  time.Duration `toml:"timeout" default:"60s" min:"1s" max:"10m" doc:"How long the synthesis of one answer may take."`
	MaxText  int           `toml:"max_text" default:"1500" min:"50" max:"10000" doc:"The longest answer that is spoken, in characters."`
	Price    float64       `toml:"price" default:"0" min:"0" doc:"The price of a million characters, in the currency of your budget. A character also counts as one token."`
}

// Check implements the configuration's own check.
func (c *Out) Check(fault func(text string, at ...any)) {
	checkProvider(c.Provider, c.BaseURL, c.Program, fault)
	if c.Provider == "" && c.When != "never" && c.When != "" {
		fault("has no effect without a provider; set provider", "when")
	}
}

func hasFile(argument string) bool { return strings.Contains(argument, "{file}") }

// checkProvider reports faults that both tables can have.
func checkProvider(provider, url string, argv []string, fault func(text string, at ...any)) {
	_, wrong := outbound.ServerURL(url)
	switch {
	case provider == "" && len(argv) > 0:
		fault(`has no effect unless provider = "program"`, "program")
	case provider == byServer && wrong != "":
		fault(wrong, "base_url")
	case provider == byProgram && (len(argv) == 0 || argv[0] == ""):
		fault("is missing: name the program and its arguments", "program")
	}
}

// Probe reports whether the configured programs are installed. It starts none of them.
func (c *Config) Probe() (list []core.Finding) {
	look := func(what string, argv []string, fix string, fatal bool) {
		path, err := exec.LookPath(argv[0])
		f := core.Finding{What: what, Found: path}
		if err != nil {
			f = core.Finding{What: what, Found: argv[0] + " was not found", Fix: fix, Fatal: fatal}
		}
		list = append(list, f)
	}
	if c.In.Provider == byProgram {
		look("in", c.In.Program, "install it, or set its path in speech.in.program", true)
	}
	if c.Out.Provider == byProgram {
		look("out", c.Out.Program, "install it, or set its path in speech.out.program", true)
	}
	if len(list) > 0 {
		look("ffmpeg", []string{c.FFmpeg}, "install it, so that every format of sound can be converted", false)
	}
	return list
}
