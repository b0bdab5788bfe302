package discord

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"synthbot/core"
	"synthbot/core/command"
	"synthbot/core/driver"
	"synthbot/core/loop"
	"synthbot/core/sorting"
	"synthbot/interfaces/discord/rest"
)

// Kinds of application command.
const (
	typeChat    = 1
	typeMessage = 3
)

// The command that is also in the context menu of messages, and its name there.
const (
	menuCommand = "remember"
	menuName    = "Remember this"
)

// Limits of the platform.
const (
	maxCommands = 100 // of typeChat
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

func (r *responder) spec(name string) command.Spec {
	for _, s := range r.opt.Commands() {
		if s.Name == name {
			return s
		}
	}
	return command.Spec{}
}

// Where a command can be called.
const (
	inGuilds = 0
	inDirect = 1 // in direct messages with the bot
	inGroups = 2
)

// list returns the commands that are registered for a guild or, with "", globally. Private commands exist only in
// direct messages. If guilds have lists of their own, the global commands exist only outside of guilds.
func (r *responder) list(guild string) []appCommand {
	list := []appCommand{}
	specs := r.opt.Commands()
	for _, spec := range specs[:min(len(specs), maxCommands)] {
		app := appCommandOf(spec)
		switch {
		case guild != "" && !slices.Contains(app.Contexts, inGuilds):
			continue
		case guild != "":
			app.Contexts = nil // Discord allows them only for global commands
		case len(r.set.CommandGuilds) > 0:
			app.Contexts = slices.DeleteFunc(app.Contexts, func(x int) bool { return x == inGuilds })
		}
		list = append(list, app)
		if app.Name == menuCommand {
			menu := appCommand{Name: menuName, Type: typeMessage, Permission: app.Permission, Contexts: app.Contexts}
			list = append(list, menu)
		}
	}
	sorting.Sort(list, func(a, b appCommand) int {
		return cmp.Or(cmp.Compare(a.Type, b.Type), strings.Compare(a.Name, b.Name))
	})
	return list
}

func appCommandOf(s command.Spec) appCommand {
	c := appCommand{
		Name: s.Name, Brief: line(s.Brief, 100), Type: typeChat,
		Contexts: []int{inGuilds, inDirect, inGroups}, Briefs: make(map[string]string),
	}
	if s.Private {
		c.Contexts = []int{inDirect}
	}
	// Discord shows it only to members with this permission. The rank is checked again when it is called.
	switch {
	case s.Rank >= core.RankAdmin:
		c.Permission = new("8") // administrators
	case s.Rank == core.RankModerator:
		c.Permission = new("8192") // members who may manage messages
	}
	for tag, brief := range s.Briefs {
		l := locale(tag)
		if l != "" {
			c.Briefs[l] = line(brief, 100)
		}
	}
	var optional []appOption
	for _, a := range s.Args {
		o := appOption{Type: optionText, Name: a.Name, Brief: cmp.Or(line(a.Brief, 100), a.Name), Required: a.Required}
		o.Complete = len(a.Choices) > maxChoices
		if !o.Complete {
			o.Choices = choices(a.Choices)
		}
		if o.Required {
			c.Options = append(c.Options, o)
		} else {
			optional = append(optional, o)
		}
	}
	// Discord requires this order. Values have names, so it does not matter.
	c.Options = append(c.Options, optional...)
	return c
}

func choices(list []string) (out []appChoice) {
	for _, c := range list {
		if len(out) < maxChoices && c != "" && len([]rune(c)) <= 100 {
			out = append(out, appChoice{c, c})
		}
	}
	return out
}

// locale returns Discord's name of a language; "" if it has none.
func locale(tag string) string {
	names := strings.Fields("en-US en-GB es-ES es-419 pt-BR sv-SE zh-CN zh-TW " +
		"id da de fr hr it lt hu nl no pl ro fi vi tr cs el bg ru uk hi th ja ko")
	if slices.Contains(names, tag) {
		return tag
	}
	base, _, _ := strings.Cut(strings.ReplaceAll(tag, "_", "-"), "-")
	for _, name := range names {
		if name == base || strings.HasPrefix(name, base+"-") {
			return name
		}
	}
	return ""
}

// CommandsChanged registers the commands again if they changed, in the background and once there is a session.
func (d *Driver) CommandsChanged() { loop.Notify(d.responder.changed) }

// keepSynced registers the commands now and whenever they change, until ctx ends. It retries after errors.
func (r *responder) keepSynced(ctx context.Context) {
	wait := r.timings.gateway.Longest
	loop.Repeat(ctx, r.changed, func() time.Duration {
		try, cancel := context.WithTimeout(ctx, 5*time.Minute)
		defer cancel()
		err := r.sync(try)
		if err == nil {
			wait = r.timings.gateway.Longest
			return -1
		}
		if ctx.Err() == nil {
			r.log.Error("chat commands not registered", "err", err)
		}
		again := driver.Jitter(wait)
		wait = min(2*wait, time.Hour)
		return again
	})
}

// syncKey is the State's key of what is registered: a checksum of the commands for each guild, and
// for "", which means globally.
const syncKey = "commands"

// sync registers the lists of commands that have changed, and removes those of guilds that are no longer
// in command_guilds.
func (r *responder) sync(ctx context.Context) error {
	sums := make(map[string]string)
	if err := driver.Load(ctx, r.opt.State, syncKey, &sums); err != nil && !errors.Is(err, core.ErrDamaged) {
		return err
	}
	extra := len(r.opt.Commands()) - maxCommands
	if extra > 0 {
		r.log.Warn("chat commands left out, because Discord allows 100", "count", extra)
	}
	wanted := append([]string{""}, r.set.CommandGuilds...)
	var faults []error
	for _, guild := range wanted {
		faults = append(faults, r.syncOne(ctx, guild, r.list(guild), sums))
	}
	for guild := range maps.Clone(sums) {
		if !slices.Contains(wanted, guild) {
			faults = append(faults, r.syncOne(ctx, guild, []appCommand{}, sums))
		}
	}
	return errors.Join(faults...)
}

// syncOne registers one list of commands if it has changed, and stores its checksum.
func (r *responder) syncOne(ctx context.Context, guild string, list []appCommand, sums map[string]string) error {
	if len(list) == 0 && sums[guild] == "" {
		return nil // nothing is registered
	}
	body, _ := json.Marshal(list)
	_, app := r.cache.bot()
	mark := fmt.Sprintf("%x", sha256.Sum256(append(slices.Clip(body), app...)))
	if sums[guild] == mark {
		return nil
	}
	q := rest.Request{Method: "PUT", Route: "/applications/{}/commands", IDs: []string{app}, Body: list}
	if guild != "" {
		q.Route, q.IDs = "/applications/{}/guilds/{}/commands", []string{app, guild}
	}
	switch err := r.rest.Do(ctx, q); {
	case closedTo(err) && len(list) == 0:
		// The bot has left the guild, and its commands are gone.
	case closedTo(err):
		r.notifyOnce("commands "+guild, "the chat commands cannot be registered in the guild "+guild+
			": invite the bot with the scope applications.commands, or remove the guild from command_guilds")
		return err
	case err != nil:
		return err
	}
	sums[guild] = mark
	if len(list) == 0 {
		delete(sums, guild)
	}
	return driver.Save(ctx, r.opt.State, syncKey, sums)
}

// complete suggests values for the argument that a user is typing.
func (r *responder) complete(ctx context.Context, i *interaction) {
	var found []string
	for _, o := range i.Data.Options {
		for _, a := range r.spec(i.Data.Name).Args {
			if o.Focused && a.Name == o.Name {
				found = matching(a.Choices, o.text())
			}
		}
	}
	r.respond(ctx, i, answerChoices, map[string]any{"choices": append([]appChoice{}, choices(found)...)})
}

// matching returns the choices that begin with a text, then those that contain it elsewhere.
func matching(choices []string, text string) []string {
	text = strings.ToLower(strings.TrimSpace(text))
	at := func(choice string) int { return strings.Index(strings.ToLower(choice), text) }
	found := slices.DeleteFunc(slices.Clone(choices), func(c string) bool { return at(c) < 0 })
	sorting.SortStable(found, func(a, b string) int { return min(at(a), 1) - min(at(b), 1) })
	return found
}
