package daemon

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"synthbot/config"
	"synthbot/core"
	"synthbot/core/engine"
	"synthbot/core/secret"
	"synthbot/core/speech"
	"synthbot/core/turn"
	"synthbot/daemon/settings"
	"synthbot/memory"
)

// Config is a configuration, as it was read and checked.
type Config struct {
	Tables

	File     string    // where it was read from; empty for the built-in defaults
	read     time.Time // when it was read
	stamps   stamps    // of its files, before they were read; nil if it was not on disk
	Document *config.Document
	Personas *personas
	Enabled  []enabled         // interfaces, in the order of their names
	kinds    map[string]string // drivers of all interfaces, by the name of the interface
	Chosen   []chosen          // plugins, in the order of availablePlugins
	digest   string            // with [store]: a hash of the file's settings, without those that may differ by machine
}

// Tables are the tables of a configuration file. Most packages define their own.
type Tables struct {
	Bot        BotConfig               `toml:"bot" doc:"The bot's name, its data directory and when it answers."`
	Persona    PersonaConfig           `toml:"persona" doc:"The persona that the bot speaks as."`
	Engines    []engine.Config         `toml:"engine" doc:"A language model. Engines are tried in the order of the file. The built-in offline engine comes last, so that the bot always answers."`
	Interfaces map[string]config.Table `toml:"interfaces" doc:"The platforms that the bot connects to. The table's name is the interface's name and the first element of its paths."`
	Prompt     PromptConfig            `toml:"prompt" doc:"What the prompt for a model contains."`
	Access     turn.Access             `toml:"access" doc:"Who may talk to the bot. deny overrides allow. Admins always have access."`
	Budget     engine.BudgetConfig     `toml:"budget" doc:"Hard limits per day. A day begins at midnight in the bot's time zone."`
	Corrector  Corrector               `toml:"corrector" doc:"How invalid plans are corrected."`
	Shares     []turn.Share            `toml:"share" doc:"Places that may see each other's history and memories. Private chats are never shared."`
	Grants     []Grant                 `toml:"grant" doc:"Lets users in one place make the bot write to another place. Nothing private ever leaves its place."`
	Overrides  []Override              `toml:"override" doc:"The settings of a place and all places below it. For each setting, the longest matching path wins."`
	Plugins    map[string]config.Table `toml:"plugins" doc:"What the bot can do besides talk. Each plugin has a table."`
	Speech     speech.Config           `toml:"speech" doc:"Voice messages: speech recognition and speech synthesis."`
	Memory     memory.Config           `toml:"memory" doc:"How long messages and other records are kept."`
	Store      memory.ServerConfig     `toml:"store" doc:"A database server, instead of a file: see docs/scaling.md. A change applies after a restart."`
	Admin      Listener                `toml:"admin" doc:"The admin page, on a loopback address. synthbot page prints a link that logs you in."`
	Metrics    Listener                `toml:"metrics" doc:"Health checks and metrics (/healthz, /readyz, /metrics), on a loopback address."`
	Log        LogConfig               `toml:"log" doc:"The log, which is written to standard error."`
}

// BotConfig is the table [bot].
type BotConfig struct {
	Name            string            `toml:"name" example:"Aria" doc:"The bot's name. The bot answers group messages that contain it. Default: the persona's name."`
	DataDir         string            `toml:"data_dir" example:"data" doc:"The folder of the database, relative to this file. Default: $STATE_DIRECTORY; without it /var/lib/synthbot, if it exists and this file is /etc/synthbot/config.toml; otherwise the user's state directory."`
	Timezone        Zone              `toml:"timezone" example:"Europe/Rome" doc:"The bot's time zone. Default: the machine's."`
	Language        settings.Language `toml:"language" default:"en" doc:"The language of answers until users write something. Then the bot answers in their language, which it detects or leaves to the model."`
	Activation      string            `toml:"activation" default:"mention" oneof:"mention|keyword|ambient|always|never" doc:"Which group messages the bot answers. mention: messages that mention it; keyword: also messages that contain a keyword; ambient: mentions, and sometimes messages that it overhears; always: all; never: none. Private messages are always answered."`
	Keywords        []string          `toml:"keywords" max:"100" items:"100" visible:"true" example:"help, bot" doc:"With activation = \"keyword\": the words that the bot answers to."`
	AmbientMessages int               `toml:"ambient_messages" default:"20" min:"0" doc:"With activation = \"ambient\": the model may respond after this many overheard messages; 0 turns this off."`
	AmbientEvery    time.Duration     `toml:"ambient_every" default:"30m" min:"0s" doc:"With activation = \"ambient\": the model may respond to the next message this long after its last call; 0s turns this off."`
	Attention       time.Duration     `toml:"attention" default:"0s" min:"0s" max:"1h" doc:"How long after an answer in a group the same user need not address the bot again; 0s turns this off."`
	Observe         bool              `toml:"observe" default:"true" doc:"Whether group messages that are not for the bot are stored, as context for its answers."`
	Bots            bool              `toml:"bots" default:"false" doc:"Whether other bots are answered: at most three messages in a row, until a user writes."`
	Backlog         time.Duration     `toml:"backlog" default:"1h" min:"0s" doc:"After the bot was offline, messages that waited longer than this are acknowledged together instead of answered; 0s turns this off."`
	Admins          []core.Path       `toml:"admins" kind:"user" example:"discord/@user/123456789, telegram/@user/1000" doc:"The users who may do everything."`
	Claim           Claim             `toml:"claim" default:"" doc:"The hash of a code, as synthbot init writes it. The first user who sends /claim and the code in private becomes an admin. Empty: nobody can."`
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

// PersonaConfig is the table [persona].
type PersonaConfig struct {
	Path string `toml:"path" kind:"file" example:"persona/aria.toml" doc:"A persona file (.toml) or character card (.json, .png), relative to this file. Default: the built-in persona."`
}

// PromptConfig is the table [prompt].
type PromptConfig struct {
	Lite  bool   `toml:"lite" default:"false" doc:"Include only essential actions, without their schemas, for small models."`
	Recon string `toml:"recon" example:"small" doc:"The name of an engine that detects language and tone for each turn; if it is slow, its result counts for the next message. Empty: only a small local detector."`
	Scope string `toml:"scope" default:"chat" oneof:"chat|interface|unified" doc:"Which messages of other places a prompt contains, only from places in the same [[share]]. chat: none; interface: those of the same interface; unified: those of all interfaces."`
	turn.Config
}

// Corrector is the table [corrector].
type Corrector struct {
	Attempts int `toml:"attempts" default:"2" min:"0" max:"5" doc:"How often a model may correct an invalid plan."`
}

// Listener is the address that something is served at.
type Listener struct {
	Listen string `toml:"listen" default:"" doc:"The address, such as 127.0.0.1:8787; empty turns this off."`
}

// LogConfig is the table [log].
type LogConfig struct {
	Level  slog.Level            `toml:"level" default:"INFO" doc:"The lowest level that is logged: DEBUG, INFO, WARN or ERROR. Message texts are logged at DEBUG only."`
	Levels map[string]slog.Level `toml:"levels" example:"core/turn=DEBUG, plugins/web=WARN" doc:"The levels of single rooms, as the log calls the parts of the program: core/turn, core/engine, core/action, core/document, memory, admin, cmd, interfaces/NAME, plugins/NAME, or the last part of one. core, interfaces and plugins include all rooms below them. synthbot log shows the levels and changes them in the running daemon."`
	Format string                `toml:"format" default:"auto" oneof:"auto|text|json" doc:"auto: text on a terminal, json otherwise."`
}

// decode reads a document and the files that it names. Its error reports all problems at once.
func (c *Config) decode(d *config.Document) error {
	c.Document = d
	d.Decode(c)
	decodeInterfaces(c)
	c.checkEngines(d)
	c.checkRest(d)
	c.loadPersonas(d)
	decodePlugins(c, d)
	c.checkPaths(d)
	if !c.Store.URL.IsZero() {
		c.digest = c.hash()
	}
	c.Speech.FFmpeg = c.programBeside(c.Speech.FFmpeg)
	for _, argv := range [][]string{c.Speech.In.Program, c.Speech.Out.Program} {
		if len(argv) > 0 {
			argv[0] = c.programBeside(argv[0])
		}
	}
	completePlugins(c, d)
	c.checkFiles(d)
	return d.Err()
}

func (c *Config) checkFiles(d *config.Document) {
	for _, f := range c.Files() {
		_, err := os.Stat(c.Beside(f.Path))
		if failed, ok := errors.AsType[*fs.PathError](err); ok && !d.HasFault(f.Key...) {
			text := fmt.Sprintf("%s cannot be read: %v; correct the path, or create it", failed.Path, failed.Err)
			d.Fault(text, f.Key...)
		}
	}
}

// NamedFile is a file or folder that a configuration names.
type NamedFile struct {
	Key     config.Key
	Path    string // as in the file
	Private bool   // it holds a secret
}

// Files returns the files and folders that the configuration names, except for those of secrets.
func (c *Config) Files() (list []NamedFile) {
	c.Walk(func(s config.Setting) {
		if (s.Kind == "file" || s.Kind == "private file") && s.Value.String() != "" {
			list = append(list, NamedFile{s.Key, s.Value.String(), s.Kind != "file"})
		}
	})
	return list
}

func (c *Config) checkEngines(d *config.Document) {
	names := make(map[string]bool)
	for i := range c.Engines {
		e := &c.Engines[i]
		engineFaults(d, i, e.Check())
		name := cmp.Or(e.Name, e.Provider)
		if names[name] {
			d.Fault("is the name of another engine, too; give each its own name", "engine", i, "name")
		}
		names[name] = true
		if e.Provider == offline && !e.Disabled && i+1 < len(c.Engines) {
			d.Fault("always answers, so engines after it would never be asked; put it last", "engine", i, "provider")
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

// checkRest reports invalid settings that no tag can describe.
func (c *Config) checkRest(d *config.Document) {
	checkListen(d.Fault, c.Admin.Listen, "127.0.0.1:8787, and use an ssh tunnel from elsewhere", "admin", "listen")
	checkListen(d.Fault, c.Metrics.Listen, "127.0.0.1:9787", "metrics", "listen")
	if c.Bot.DataDir == "~" || strings.HasPrefix(c.Bot.DataDir, "~/") {
		d.Fault("begins with ~, which only a shell replaces; write the path of your home folder", "bot", "data_dir")
	}
	if c.Metrics.Listen != "" && c.Metrics.Listen == c.Admin.Listen && !strings.HasSuffix(c.Metrics.Listen, ":0") {
		d.Fault("is the address of the admin page, too; give it another port", "metrics", "listen")
	}
	if err := c.Store.CheckURL(); err != nil && d.Resolved() {
		d.Fault(err.Error(), "store", "url")
	}
	for i, o := range c.Overrides {
		samePath := func(p engine.PlaceBudget) bool { return p.Path == o.Path }
		if o.Tokens != nil && slices.ContainsFunc(c.Budget.Places, samePath) {
			d.Fault("has a budget.place of the same path already; keep one of them", "override", i, "tokens")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Log.Levels)) {
		if _, ok := c.room(name); !ok {
			d.Fault("unknown room; write one of "+strings.Join(c.Rooms(), ", "), "log", "levels", name)
		}
	}
	named := func(e engine.Config) bool { return cmp.Or(e.Name, e.Provider) == c.Prompt.Recon }
	if c.Prompt.Recon != "" && !slices.ContainsFunc(c.Engines, named) {
		d.Fault("unknown engine", "prompt", "recon")
	}
}

// checkListen reports an address at which something cannot be served for this machine alone; "" is allowed.
func checkListen(fault func(text string, at ...any), address, example string, at ...any) {
	if address == "" {
		return
	}
	host, port, err := net.SplitHostPort(address)
	ip := net.ParseIP(host)
	if err != nil || host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		fault("is not a local address; write one like "+example, at...)
	} else if _, err := net.LookupPort("tcp", port); err != nil || port == "" {
		fault("has no port from 0 to 65535; write one like "+example, at...)
	}
}

// engineFaults adds the faults of an engine's table, except for keys that have a fault already.
func engineFaults(d *config.Document, i int, err error) {
	if err == nil {
		return
	}
	for line := range strings.SplitSeq(err.Error(), "\n") {
		key, text, _ := strings.Cut(line, ": ")
		if !d.HasFault("engine", i, key) {
			d.Fault(text, "engine", i, key)
		}
	}
}

// Zone returns the time zone of the bot, in which users read times.
func (c *Config) Zone() *time.Location { return cmp.Or(c.Bot.Timezone.Location, time.Local) }

// Clock returns a clock in the time zone of the bot.
func (c *Config) Clock(now func() time.Time) func() time.Time {
	zone := c.Zone()
	return func() time.Time { return now().In(zone) }
}

// Component is an interface or a plugin that a configuration may have. Into are the structs for its table.
type Component struct {
	Name, Doc string
	Into      []any
}

// Components lists all interfaces and plugins, for the reference of the configuration.
func Components() (interfaces, plugins []Component) {
	for _, d := range drivers {
		interfaces = append(interfaces, Component{d.kind, d.doc, []any{new(anyInterface), d.config()}})
	}
	for _, a := range availablePlugins {
		doc := a.doc
		if a.byDefault {
			doc += " On by default."
		}
		plugins = append(plugins, Component{a.name, doc, []any{new(anyPlugin), a.config()}})
	}
	return interfaces, plugins
}

// checkPaths reports paths of unknown interfaces or of the wrong kind, and empty elements of lists.
func (c *Config) checkPaths(d *config.Document) {
	c.eachPath(func(key config.Key, kind string, p *core.Path) {
		c.checkPath(d, p, key)
		_, inList := key[len(key)-1].(int)
		e := p.Elements()
		switch {
		case inList && p.IsZero():
			d.Fault("is empty; write a path as /id shows it, or take it out", key...)
		case kind == "user" && !p.IsZero() && !p.IsPerson():
			d.Fault(`is not a user; write it like "telegram/@user/1000"`, key...)
		case kind == "place" && len(e) > 1 && e[1] == "@user":
			d.Fault("is the path of a user; write the path of a place, as /id shows it there", key...)
		}
	})
	for i, o := range c.Overrides {
		first := slices.IndexFunc(c.Overrides, func(former Override) bool { return former.Path == o.Path })
		if first < i && !o.Path.IsZero() {
			d.Fault(fmt.Sprintf("is the path of override[%d], too; merge the two", first), "override", i, "path")
		}
	}
}

// checkPath reports an unknown interface in a path. It replaces a name of older versions by the present one.
func (c *Config) checkPath(d *config.Document, p *core.Path, at []any) {
	first := p.Interface()
	_, table := c.kinds[first]
	if _, ok := findDriver(first); ok || table || p.IsZero() {
		return
	}
	now, ok := c.formerly(first)
	if !ok {
		all := slices.Compact(slices.Sorted(slices.Values(slices.AppendSeq(driverNames(), maps.Keys(c.kinds)))))
		d.Fault("begins with "+first+", which is not an interface; there is "+strings.Join(all, ", "), at...)
		return
	}
	if moved, err := core.MakePath(append([]string{now}, p.Elements()[1:]...)...); err == nil {
		*p = moved
	}
}

// formerly returns the present name of an interface that older files call "telegram_bot", "discord_bot" or
// "discord_interface". If the configuration has exactly one interface of that driver, formerly returns its name.
func (c *Config) formerly(name string) (now string, ok bool) {
	stem, cut := strings.CutSuffix(name, "_bot")
	if !cut {
		stem, cut = strings.CutSuffix(name, "_interface")
	}
	if _, ok := findDriver(stem); !cut || !ok {
		return "", false
	}
	if _, ok := c.kinds[stem]; ok {
		return stem, true
	}
	now = stem
	for table, kind := range c.kinds {
		if kind == stem && now != stem {
			return stem, true // there are several
		} else if kind == stem {
			now = table
		}
	}
	return now, true
}

// hash returns a hash of the settings, without those that may differ between machines.
func (c *Config) hash() string {
	ofMachine := []string{"bot.data_dir", "store.worker", "metrics.listen", "admin.listen", "log.level", "log.format"}
	sum := sha256.New()
	c.Walk(func(s config.Setting) {
		path := s.Key.String()
		if slices.Contains(ofMachine, path) {
			return
		}
		text := string(core.JSON(s.Value.Interface()))
		if secret, ok := s.Value.Interface().(secret.Secret); ok {
			text = secret.Reveal()
		}
		fmt.Fprintf(sum, "%s=%s\n", path, text)
	})
	return hex.EncodeToString(sum.Sum(nil))
}

// followMoves replaces the paths of places that have moved since the file was written: groups that became supergroups.
func (c *Config) followMoves(ctx context.Context, r core.Reader, log *slog.Logger) error {
	return r.View(ctx, func(v core.View) (err error) {
		c.eachPath(func(key config.Key, _ string, p *core.Path) {
			if err != nil || p.IsZero() || p.IsPerson() {
				return
			}
			var h core.Head
			h, err = v.Head(*p)
			if err == nil && h.Path != *p && !h.Path.IsZero() {
				const text = "the configuration has a former path of a group; write this one"
				log.Warn(text, "keys", key.String(), "path", h.Path)
				*p = h.Path
			}
		})
		return err
	})
}

// names reports whether the configuration has a path of the place, or of one below it.
func (c *Config) names(place core.Path) bool { return isNamed(c.paths(), place) }

func isNamed(paths []core.Path, place core.Path) bool {
	return slices.ContainsFunc(paths, func(p core.Path) bool { return p.Within(place) })
}

func (c *Config) paths() (list []core.Path) {
	c.eachPath(func(_ config.Key, _ string, p *core.Path) { list = append(list, *p) })
	return list
}

// eachPath calls f with the key, the kind and the address of each path in the configuration.
func (c *Config) eachPath(f func(key config.Key, kind string, p *core.Path)) {
	c.Walk(func(s config.Setting) {
		switch p := s.Value.Addr().Interface().(type) {
		case *core.Path:
			f(s.Key, s.Kind, p)
		case *[]core.Path:
			for i := range *p {
				f(append(slices.Clip(s.Key), i), s.Kind, &(*p)[i])
			}
		}
	})
}

// Walk calls f with each setting of the configuration and of the interfaces and plugins that are on.
func (c *Config) Walk(f func(s config.Setting)) {
	config.Walk(nil, &c.Tables, f)
	for _, e := range c.Enabled {
		config.Walk(config.Key{"interfaces", e.Name}, e.Own, f)
	}
	for _, p := range c.Chosen {
		config.Walk(config.Key{"plugins", p.name}, p.Own, f)
	}
}
