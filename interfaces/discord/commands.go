package discord

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"synthbot/core/driver"

	"synthbot/core"
	"synthbot/core/command"
	"synthbot/interfaces/discord/rest"
)

// Kinds of application command.
const (
	commandChat    = 1
	commandMessage = 3
)

// The context menu of a message has a command, and calls it differently.
const (
	menuCommand = "remember"
	menuName    = "Remember this"
)

// Limits of the platform.
const (
	maxCommands = 99 // and the menu
	maxChoices  = 25
	optionText  = 3
)

type appCommand struct {
	Name       string            `json:"name"`
	Brief      string            `json:"description,omitempty"`
	Briefs     map[string]string `json:"description_localizations,omitempty"`
	Type       int               `json:"type"`
	Options    []appOption       `json:"options,omitempty"`
	Permission *string           `json:"default_member_permissions,omitempty"`
	Contexts   []int             `json:"contexts,omitempty"` // guild, direct message, group
}

type appOption struct {
	Type     int         `json:"type"`
	Name     string      `json:"name"`
	Brief    string      `json:"description"`
	Required bool        `json:"required,omitempty"`
	Choices  []appChoice `json:"choices,omitempty"`
	Complete bool        `json:"autocomplete,omitempty"`
}

type appChoice struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type commands struct {
	*account
	specs  []command.Spec
	synced atomic.Bool // the platform has them, or they are being sent
}

// spec returns the command of that name.
func (c *commands) spec(name string) *command.Spec {
	i := slices.IndexFunc(c.specs, func(s command.Spec) bool { return s.Name == name })
	if i < 0 {
		return nil
	}
	return &c.specs[i]
}

// Where a command can be called.
const (
	inGuilds = 0
	inDirect = 1 // messages with the bot
	inGroups = 2
)

// list is what is registered with Discord: for one guild, or with "" for everywhere. A
// command that is answered in private exists in direct messages only. If guilds have
// lists of their own, the one for everywhere is for all other places.
func (c *commands) list(guild string) []appCommand {
	list := []appCommand{}
	for i := range c.specs[:min(len(c.specs), maxCommands)] {
		app := appCommandOf(&c.specs[i])
		switch {
		case guild != "" && !slices.Contains(app.Contexts, inGuilds):
			continue
		case guild != "":
			app.Contexts = nil // allowed only in the list for everywhere
		case len(c.set.CommandGuilds) > 0:
			app.Contexts = slices.DeleteFunc(app.Contexts, func(x int) bool { return x == inGuilds })
		}
		list = append(list, app)
		if app.Name == menuCommand {
			menu := appCommand{Name: menuName, Type: commandMessage, Permission: app.Permission, Contexts: app.Contexts}
			list = append(list, menu)
		}
	}
	slices.SortFunc(list, func(a, b appCommand) int {
		return cmp.Or(cmp.Compare(a.Type, b.Type), strings.Compare(a.Name, b.Name))
	})
	return list
}

func appCommandOf(s *command.Spec) appCommand {
	c := appCommand{
		Name: s.Name, Brief: line(s.Brief, 100), Type: commandChat, Permission: permissionOf(s.Rank),
		Contexts: []int{inGuilds, inDirect, inGroups}, Briefs: make(map[string]string),
	}
	if s.Private {
		c.Contexts = []int{inDirect}
	}
	for tag, brief := range s.Briefs {
		l := locale(tag)
		if l != "" {
			c.Briefs[l] = line(brief, 100)
		}
	}
	var optional []appOption
	for _, a := range s.Args {
		if a.Required {
			c.Options = append(c.Options, appOptionOf(a))
		} else {
			optional = append(optional, appOptionOf(a))
		}
	}
	// Discord wants the required ones first; values are assigned by name.
	c.Options = append(c.Options, optional...)
	return c
}

func appOptionOf(a command.Arg) appOption {
	o := appOption{
		Type: optionText, Name: a.Name, Brief: cmp.Or(line(a.Brief, 100), a.Name), Required: a.Required,
		Complete: len(a.Choices) > maxChoices,
	}
	if !o.Complete {
		o.Choices = choices(a.Choices)
	}
	return o
}

func choices(list []string) []appChoice {
	var out []appChoice
	for _, c := range list {
		if len(out) < maxChoices && c != "" && len([]rune(c)) <= 100 {
			out = append(out, appChoice{c, c})
		}
	}
	return out
}

// permissionOf is who sees a command in a guild. Whether a user may call it is checked
// again at that time.
func permissionOf(r core.Rank) *string {
	switch {
	case r >= core.RankAdmin:
		return new("8") // administrators
	case r == core.RankModerator:
		return new("8192") // members who may manage messages
	}
	return nil
}

// locale is Discord's name of a language; "" if it has none.
func locale(tag string) string {
	names := strings.Fields("en-US en-GB es-ES es-419 pt-BR sv-SE zh-CN zh-TW " +
		"id da de fr hr it lt hu nl no pl ro fi vi tr cs el bg ru uk hi th ja ko")
	if slices.Contains(names, tag) {
		return tag
	}
	base, _, _ := strings.Cut(strings.ReplaceAll(tag, "_", "-"), "-")
	i := slices.IndexFunc(names, func(name string) bool { return name == base || strings.HasPrefix(name, base+"-") })
	if i < 0 {
		return ""
	}
	return names[i]
}

// syncOnce registers the commands in the background when the first session begins. It
// tries again until that works.
func (c *commands) syncOnce(ctx context.Context, jobs *sync.WaitGroup) {
	if c.synced.Swap(true) {
		return
	}
	jobs.Go(func() {
		for wait := c.timings.gateway.Longest; ; wait = min(2*wait, time.Hour) {
			try, cancel := context.WithTimeout(ctx, 5*time.Minute)
			err := c.sync(try)
			cancel()
			if err == nil {
				return
			}
			if ctx.Err() == nil {
				c.log.Error("chat commands not registered", "err", err)
			}
			if !driver.Sleep(ctx, driver.Jitter(wait)) {
				break
			}
		}
		c.synced.Store(false)
	})
}

// syncKey is the State's key of what is registered: for each guild, and for "" everywhere,
// the sum of the commands.
const syncKey = "commands"

// sync registers the commands that changed, and removes those of guilds that have none
// of their own any more.
func (c *commands) sync(ctx context.Context) error {
	sums := make(map[string]string)
	if err := driver.Load(ctx, c.state, syncKey, &sums); err != nil {
		return err
	}
	wanted := append([]string{""}, c.set.CommandGuilds...)
	var faults []error
	for _, guild := range wanted {
		faults = append(faults, c.syncOne(ctx, guild, c.list(guild), sums))
	}
	for guild := range maps.Clone(sums) {
		if !slices.Contains(wanted, guild) {
			faults = append(faults, c.syncOne(ctx, guild, []appCommand{}, sums))
		}
	}
	return errors.Join(faults...)
}

// syncOne registers one list of commands if it changed, and stores its sum.
func (c *commands) syncOne(ctx context.Context, guild string, list []appCommand, sums map[string]string) error {
	if len(list) == 0 && sums[guild] == "" {
		return nil // nothing is registered
	}
	body, err := json.Marshal(list)
	if err != nil {
		return err
	}
	_, app := c.cache.me()
	sum := sha256.Sum256(append(slices.Clip(body), app...))
	mark := hex.EncodeToString(sum[:])
	if sums[guild] == mark {
		return nil
	}
	q := rest.Request{
		Method: "PUT", Route: "/applications/{}/commands", IDs: []string{app}, Body: json.RawMessage(body),
	}
	if guild != "" {
		q.Route, q.IDs = "/applications/{}/guilds/{}/commands", []string{app, guild}
	}
	err = c.rest.Do(ctx, q)
	switch {
	case err != nil && closedTo(err) && len(list) == 0:
		// The bot has left the guild, and its commands are gone.
	case err != nil && closedTo(err):
		c.notices.once("commands "+guild, "the chat commands cannot be offered in "+guild+
			": invite the bot with the scope applications.commands, or take the guild out of command_guilds")
		return err
	case err != nil:
		return err
	}
	sums[guild] = mark
	if len(list) == 0 {
		delete(sums, guild)
	}
	return driver.Save(ctx, c.state, syncKey, sums)
}

// complete suggests values for the argument that a user is typing.
func (r *responder) complete(ctx context.Context, i *interaction) {
	var found []string
	s := r.commands.spec(i.Data.Name)
	for _, o := range i.Data.Options {
		if s == nil || !o.Focused {
			continue
		}
		for _, a := range s.Args {
			if a.Name == o.Name {
				found = matching(a.Choices, o.text())
			}
		}
	}
	r.respond(ctx, i, answerChoices, map[string]any{"choices": append([]appChoice{}, choices(found)...)})
}

// matching lists the choices that begin with a text, then those that contain it.
func matching(choices []string, text string) []string {
	text = strings.ToLower(strings.TrimSpace(text))
	var first, then []string
	for _, c := range choices {
		switch at := strings.Index(strings.ToLower(c), text); {
		case at == 0:
			first = append(first, c)
		case at > 0:
			then = append(then, c)
		}
	}
	return append(first, then...)
}
