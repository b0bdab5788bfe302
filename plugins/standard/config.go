package standard

import (
	"regexp"
	"slices"
	"time"

	"synthbot/core"
	"synthbot/core/outbound"
)

// Config is the table [plugins.standard].
type Config struct {
	Actions []string      `toml:"actions" default:"display" oneof:"display|notify|wait|confirm|api_call|speak" doc:"The enabled actions. api_call needs an api, speak needs speech."`
	Wait    time.Duration `toml:"longest_wait" default:"20s" min:"1s" max:"5m" doc:"How long wait may pause; the conversation waits meanwhile."`
	Admins  string        `toml:"notify_admins" default:"moderators" oneof:"everyone|moderators|admins|nobody" doc:"Who may use notify to send something to the admins."`
	Notices int           `toml:"notices" default:"10" min:"1" max:"1000" doc:"How many notices per hour one user may cause."`
	APIs    []API         `toml:"api" doc:"An HTTP API that api_call may call."`
	Speech  Speech        `toml:"speech" doc:"The speech synthesis of speak: a command, or a server with the OpenAI API."`
}

// API is one HTTP API. Requests go nowhere but below its URL.
type API struct {
	Name       string                 `toml:"name" required:"true" example:"bank" doc:"Its name for the model: a-z, 0-9, - and _."`
	URL        string                 `toml:"url" required:"true" example:"https://bank.example.org/v1" doc:"The base address of all requests."`
	About      string                 `toml:"about" example:"Accounts and transactions" doc:"Its purpose, in a few words for the model."`
	Methods    []string               `toml:"methods" default:"GET" oneof:"GET|POST|PUT|PATCH|DELETE" doc:"The allowed methods."`
	Headers    map[string]core.Secret `toml:"headers" example:"Authorization=env:BANK_AUTHORIZATION" doc:"Headers of every request."`
	Permission string                 `toml:"permission" default:"admins" oneof:"everyone|moderators|admins" doc:"Who may use it."`
	Confirm    bool                   `toml:"confirm" default:"true" doc:"Whether the user must confirm requests with other methods than GET."`
	Allow      []outbound.Peer        `toml:"allow" example:"127.0.0.1:8080" doc:"Private addresses, ranges or hosts that may be called."`
	Timeout    time.Duration          `toml:"timeout" default:"20s" min:"1s" max:"5m" doc:"How long a request may take."`
	MaxBody    int64                  `toml:"max_body" default:"262144" min:"1024" max:"16777216" doc:"The maximum size of an answer, in bytes."`
}

// Speech says how a voice is made. One of Command and URL is set, or neither.
type Speech struct {
	Command []string      `toml:"command" example:"piper, --model, en.onnx, --output_file, -" doc:"A program that reads text from standard input and writes a sound file to standard output; or set url."`
	URL     string        `toml:"url" example:"https://api.openai.com/v1" doc:"The address of the API, below which /audio/speech is called; or set command."`
	APIKey  core.Secret   `toml:"api_key" example:"env:OPENAI_API_KEY" doc:"The server's key."`
	Model   string        `toml:"model" default:"tts-1" doc:"The server's model."`
	Voice   string        `toml:"voice" default:"alloy" doc:"The server's name for the voice."`
	Format  string        `toml:"format" default:"opus" oneof:"opus|mp3|aac|flac|wav" doc:"The format that is requested from the server; voice messages need opus."`
	Timeout time.Duration `toml:"timeout" default:"60s" min:"1s" max:"10m" doc:"How long speech synthesis may take."`
	MaxText int           `toml:"max_text" default:"1000" min:"50" max:"10000" doc:"The maximum length of a text, in characters."`
}

var apiName = regexp.MustCompile(`^[a-z0-9_-]{1,32}$`)

// Check implements the configuration's own check.
func (c *Config) Check(fault func(text string, at ...any)) {
	for i, name := range c.Actions {
		switch {
		case slices.Contains(c.Actions[:i], name):
			fault("it is named twice", "actions", i)
		case name == "api_call" && len(c.APIs) == 0:
			fault("api_call has nothing to ask; add an api", "actions", i)
		case name == "speak" && len(c.Speech.Command) == 0 && c.Speech.URL == "":
			fault("speak has no voice; give speech a command or a url", "actions", i)
		}
	}
	for i := range c.APIs {
		for k := range i {
			if c.APIs[k].Name == c.APIs[i].Name {
				fault("another api is called so", "api", i, "name")
			}
		}
	}
}

// Check implements the configuration's own check.
func (a *API) Check(fault func(text string, at ...any)) {
	if a.Name != "" && !apiName.MatchString(a.Name) {
		fault("write a-z, 0-9, - and _, at most 32 letters", "name")
	}
	_, wrong := outbound.ServerURL(a.URL)
	if a.URL != "" && wrong != "" {
		fault(wrong, "url")
	}
	outbound.CheckHeaders(a.Headers, fault)
}

// Check implements the configuration's own check.
func (s *Speech) Check(fault func(text string, at ...any)) {
	_, wrong := outbound.ServerURL(s.URL)
	switch {
	case len(s.Command) > 0 && s.URL != "":
		fault("it has a command already; give one of them", "url")
	case len(s.Command) > 0 && s.Command[0] == "":
		fault("the program has no name", "command", 0)
	case s.URL != "" && wrong != "":
		fault(wrong, "url")
	}
}
