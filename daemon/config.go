package daemon

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"slices"
	"strings"
	"time"

	"synthbot/config"
	"synthbot/core"
	"synthbot/core/engine"
	"synthbot/core/turn"
	"synthbot/daemon/settings"
	"synthbot/memory"
)

// Config is a configuration, as it was read and checked.
type Config struct {
	Tables

	File     string    // it was read from; empty for the built-in defaults
	read     time.Time // when it was read
	Document *config.Document
	Personas *personas
	Enabled  []enabled         // interfaces, in the order of their names
	kinds    map[string]string // drivers of all interfaces, by the name of the interface
	Chosen   []chosen          // plugins, in the order of availablePlugins
}

// Tables are the tables of a configuration file. Most packages bring their own.
type Tables struct {
	Bot        BotConfig               `toml:"bot" doc:"Who the bot is called, and where it runs."`
	Persona    PersonaConfig           `toml:"persona" doc:"Who the bot is."`
	Engines    []engine.Config         `toml:"engine" doc:"A language model. They are tried in the order written; the built-in offline engine comes last, so that the bot always answers."`
	Interfaces map[string]config.Table `toml:"interfaces" doc:"The platforms that the bot lives on. The table's name is the interface's name and the first element of its paths."`
	Prompt     PromptConfig            `toml:"prompt" doc:"What a model is told."`
	Access     turn.Access             `toml:"access" doc:"Who may talk to the bot at all; deny wins, and admins cannot be shut out."`
	Budget     engine.BudgetConfig     `toml:"budget" doc:"Hard limits by day; a day begins at midnight in the bot's time zone."`
	Corrector  Corrector               `toml:"corrector" doc:"What happens to a plan that is wrong."`
	Shares     []turn.Share            `toml:"share" doc:"Places that may see each other's history and facts; private chats never can."`
	Grants     []Grant                 `toml:"grant" doc:"Lets what is said in one place make the bot write to another one; nothing private ever leaves its place."`
	Overrides  []Override              `toml:"override" doc:"The settings of a subtree; of each setting, the longest matching path wins."`
	Plugins    map[string]config.Table `toml:"plugins" doc:"What the bot can do besides talk, one table a plugin."`
	Memory     memory.Config           `toml:"memory" doc:"How long what was said is kept."`
	Admin      Listener                `toml:"admin" doc:"The admin's page, on an address of this machine alone; synthbot page prints a link that lets you in."`
	Metrics    Listener                `toml:"metrics" doc:"Health and metrics: /healthz, /readyz and /metrics, on an address of this machine alone."`
	Log        LogConfig               `toml:"log" doc:"The log, which goes to standard error."`
}

// BotConfig is the table [bot].
type BotConfig struct {
	Name            string            `toml:"name" example:"Aria" doc:"What people call it; a word of a group message that wakes it. Default: the persona's name."`
	DataDir         string            `toml:"data_dir" example:"data" doc:"The folder of the database, relative to this file. Default: $STATE_DIRECTORY, then /var/lib/synthbot where this is /etc/synthbot/config.toml and there is one, then the user's state directory."`
	Timezone        Zone              `toml:"timezone" example:"Europe/Rome" doc:"The bot's time zone. Default: the machine's."`
	Language        settings.Language `toml:"language" default:"en" doc:"The language to answer in where none was recognised."`
	Activation      string            `toml:"activation" default:"mention" oneof:"mention|keyword|ambient|always|never" doc:"What the bot answers in groups: what mentions it, what holds a keyword as well, what mentions it and now and then what it overhears, everything, or nothing. What is written in private is always answered."`
	Keywords        []string          `toml:"keywords" example:"help, bot" doc:"The words that wake it, with activation = \"keyword\"."`
	AmbientMessages int               `toml:"ambient_messages" default:"20" min:"0" doc:"With activation = \"ambient\": after how many overheard messages the model may say something; 0: never for that reason."`
	AmbientEvery    time.Duration     `toml:"ambient_every" default:"30m" min:"0s" doc:"With activation = \"ambient\": how long after it was last asked the model may say something to the next message; 0s: never for that reason."`
	Attention       time.Duration     `toml:"attention" default:"0s" min:"0s" max:"1h" doc:"How long after an answer in a group the same person may go on without addressing the bot again; 0s: not at all."`
	Observe         bool              `toml:"observe" default:"true" doc:"Whether talk of groups that is not for the bot is kept, as context for its answers."`
	Bots            bool              `toml:"bots" default:"false" doc:"Whether other bots are answered: three messages in a row at most, until a person speaks."`
	Backlog         time.Duration     `toml:"backlog" default:"1h" min:"0s" doc:"What waited longer than this for an answer, after the bot was away, is acknowledged together; 0s: nothing is."`
	Admins          []Person          `toml:"admins" example:"discord/@user/123456789, telegram/@user/1000" doc:"The people who may do everything."`
	Claim           Claim             `toml:"claim" default:"" doc:"The hash of a code, as synthbot init notes it: who first says /claim and the code in private becomes an admin, too. Empty: nobody does."`
}

// Zone is a time zone by its name.
type Zone struct{ *time.Location }

// UnmarshalText implements encoding.TextUnmarshaler.
func (z *Zone) UnmarshalText(text []byte) error {
	zone, err := time.LoadLocation(string(text))
	if err != nil || len(text) == 0 {
		return errors.New(`is not a time zone; write one like "Europe/Rome"`)
	}
	z.Location = zone
	return nil
}

// Person is the path of a person.
type Person struct{ core.Path }

const notAPerson = `is not a person; write it like "telegram/@user/1000"`

// UnmarshalText implements encoding.TextUnmarshaler.
func (p *Person) UnmarshalText(text []byte) error {
	if err := p.Path.UnmarshalText(text); err != nil || !p.IsPerson() {
		return errors.New(notAPerson)
	}
	return nil
}

func paths(people []Person) []core.Path {
	list := make([]core.Path, len(people))
	for i, p := range people {
		list[i] = p.Path
	}
	return list
}

// PersonaConfig is the table [persona].
type PersonaConfig struct {
	Path string `toml:"path" example:"persona/aria.toml" doc:"A persona file (.toml), or a character card (.json, .png), relative to this file. Default: the persona that is built in."`
}

// PromptConfig is the table [prompt].
type PromptConfig struct {
	Lite  bool   `toml:"lite" default:"false" doc:"Essential actions only, without their schemas, for small models."`
	Recon string `toml:"recon" example:"small" doc:"An engine, by its name, that is asked beside each turn for language and tone; empty: a small local detector alone."`
	Scope string `toml:"scope" default:"chat" oneof:"chat|interface|unified" doc:"How far history_recent reaches, always within one [[share]]."`
	turn.Config
}

// Corrector is the table [corrector].
type Corrector struct {
	Attempts int `toml:"attempts" default:"2" min:"0" max:"5" doc:"How often a model may correct a plan that is wrong."`
}

// Listener is the address that something is served at.
type Listener struct {
	Listen string `toml:"listen" default:"" doc:"The address, like 127.0.0.1:8787; empty: nowhere."`
}

// LogConfig is the table [log].
type LogConfig struct {
	Level  slog.Level            `toml:"level" default:"INFO" doc:"DEBUG, INFO, WARN or ERROR. Message texts are logged at DEBUG only."`
	Levels map[string]slog.Level `toml:"levels" example:"core/turn=DEBUG, plugins/web=WARN" doc:"The level of single rooms: core/turn, core/engine, core/action, core/document, memory, admin, cmd, interfaces/NAME, plugins/NAME, or the last part of one; core, interfaces and plugins are all below them. The log names the room of each line. synthbot log shows them, and changes them in the running daemon."`
	Format string                `toml:"format" default:"auto" oneof:"auto|text|json" doc:"auto is text on a terminal and json elsewhere."`
}

// decode reads a document and the files that it names. It returns all faults at once.
func (c *Config) decode(d *config.Document) error {
	c.Document = d
	d.Decode(c)
	decodeInterfaces(c)
	c.checkEngines(d)
	c.checkRest(d)
	c.checkPaths(d)
	c.loadPersonas(d)
	decodePlugins(c, d)
	return d.Err()
}

// checkEngines finds faults of the engines taken together.
func (c *Config) checkEngines(d *config.Document) {
	names := make(map[string]bool)
	for i := range c.Engines {
		e := &c.Engines[i]
		engineFaults(d, i, e.Check())
		name := cmp.Or(e.Name, e.Provider)
		if names[name] {
			d.Fault("is the name of another engine; give each its own", "engine", i, "name")
		}
		names[name] = true
		if e.Provider == offline && !e.Disabled && i+1 < len(c.Engines) {
			d.Fault("always answers, so that no engine behind it would be asked; put it last", "engine", i, "provider")
		}
	}
	for i := range c.Overrides {
		name := c.Overrides[i].Engine
		if name != "" && !names[name] && name != offline {
			d.Fault("unknown engine; there is "+known(names), "override", i, "engine")
		}
	}
}

const offline = "offline"

func known(names map[string]bool) string {
	list := slices.Sorted(maps.Keys(names))
	if !names[offline] {
		list = append(list, offline)
	}
	return strings.Join(list, ", ")
}

// checkRest finds faults of settings that no tag describes.
func (c *Config) checkRest(d *config.Document) {
	if c.Admin.Listen != "" && !loopback(c.Admin.Listen) {
		const text = "is not a local address; write one like 127.0.0.1:8787, and use an ssh tunnel from elsewhere"
		d.Fault(text, "admin", "listen")
	}
	if c.Metrics.Listen != "" && !loopback(c.Metrics.Listen) {
		d.Fault("is not a local address; write one like 127.0.0.1:9787", "metrics", "listen")
	}
	if c.Metrics.Listen != "" && c.Metrics.Listen == c.Admin.Listen && !strings.HasSuffix(c.Metrics.Listen, ":0") {
		d.Fault("is the address of the admin's page, too; give it a port of its own", "metrics", "listen")
	}
	for i, o := range c.Overrides {
		samePath := func(p engine.PlaceBudget) bool { return p.Path == o.Path }
		if o.Tokens != nil && slices.ContainsFunc(c.Budget.Places, samePath) {
			d.Fault("has a budget.place of the same path already; keep one of them", "override", i, "tokens")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Log.Levels)) {
		if _, ok := c.room(name); !ok {
			d.Fault("unknown room; write one of "+strings.Join(c.rooms(), ", "), "log", "levels", name)
		}
	}
	named := func(e engine.Config) bool { return cmp.Or(e.Name, e.Provider) == c.Prompt.Recon }
	if c.Prompt.Recon != "" && !slices.ContainsFunc(c.Engines, named) {
		d.Fault("unknown engine", "prompt", "recon")
	}
}

// loopback reports whether only this machine can reach the address.
func loopback(address string) bool {
	host, port, err := net.SplitHostPort(address)
	if err != nil || port == "" {
		return false
	}
	if _, err := net.LookupPort("tcp", port); err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// engineFaults reports the faults of an engine's table, except for keys that have a fault
// already.
func engineFaults(d *config.Document, i int, err error) {
	if err == nil {
		return
	}
	var known config.Faults
	errors.As(d.Err(), &known)
	for line := range strings.SplitSeq(err.Error(), "\n") {
		key, text, _ := strings.Cut(line, ": ")
		full := fmt.Sprintf("engine[%d].%s", i, key)
		if !slices.ContainsFunc(known, func(f config.Fault) bool { return f.Key == full }) {
			d.Fault(text, "engine", i, key)
		}
	}
}

// Clock returns a clock in the time zone of the bot.
func (c *Config) Clock(now func() time.Time) func() time.Time {
	zone := c.Bot.Timezone.Location
	if zone == nil {
		zone = time.Local
	}
	return func() time.Time { return now().In(zone) }
}

func (c *Config) turnConfig() turn.Config {
	t := c.Prompt.Config
	t.Attempts, t.Backlog = c.Corrector.Attempts, c.Bot.Backlog
	return t
}

// engines makes the chain of language models.
func (c *Config) engines(o engine.Options) (*engine.Chain, error) {
	chain, err := engine.New(c.Engines, o)
	if err != nil {
		return nil, UsageError{err}
	}
	return chain, nil
}

// Page renders the example file and the reference.
func Page() config.Page {
	tables := map[string][]config.Component{"plugins": pluginTables()}
	for _, d := range drivers {
		table := config.Component{Name: d.kind, Doc: d.doc, Into: []any{new(anyInterface), d.config()}}
		tables["interfaces"] = append(tables["interfaces"], table)
	}
	return config.Page{
		Title: "Configuration",
		Intro: "The configuration of synthbot: one TOML file. Unknown keys are errors. " +
			"`synthbot check` reports all problems at once.",
		Tables: tables,
	}
}
