package discord

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"time"

	"synthbot/core"
	"synthbot/core/command"
)

// Kinds of application command.
const (
	commandChat    = 1
	commandMessage = 3
)

// menuName is what the context menu of a message says.
const menuName = "Remember this"

// Bounds of the platform.
const (
	maxCommands = 99 // and the menu
	maxChoices  = 25
	optionText  = 3
)

type appCommand struct {
	Name       string            `json:"name"`
	Names      map[string]string `json:"name_localizations,omitempty"`
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

// spec returns the command of that name.
func (d *Driver) spec(name string) *command.Spec {
	for i := range d.specs {
		if d.specs[i].Name == name {
			return &d.specs[i]
		}
	}
	return nil
}

// commands is what the platform is told of the registry.
func (d *Driver) commands() []appCommand {
	var list []appCommand
	for i := range d.specs[:min(len(d.specs), maxCommands)] {
		list = append(list, appCommandOf(&d.specs[i]))
	}
	if s := d.spec(d.remember); s != nil {
		list = append(list, appCommand{Name: menuName, Type: commandMessage, Permission: permissionOf(s.Rank), Contexts: []int{0, 1, 2}})
	}
	slices.SortFunc(list, func(a, b appCommand) int { return cmp.Or(cmp.Compare(a.Type, b.Type), strings.Compare(a.Name, b.Name)) })
	return list
}

func appCommandOf(s *command.Spec) appCommand {
	c := appCommand{Name: s.Name, Brief: line(s.Brief, 100), Type: commandChat, Permission: permissionOf(s.Rank), Contexts: []int{0, 1, 2}}
	for tag, brief := range s.Briefs {
		if l := locale(tag); l != "" {
			if c.Briefs == nil {
				c.Briefs = make(map[string]string)
			}
			c.Briefs[l] = line(brief, 100)
		}
	}
	for _, a := range s.Args {
		c.Options = append(c.Options, appOptionOf(a))
	}
	// The platform wants the required ones first; the order of Args is kept by name.
	slices.SortStableFunc(c.Options, func(a, b appOption) int {
		return cmp.Compare(index(!a.Required), index(!b.Required))
	})
	return c
}

func index(b bool) int {
	if b {
		return 1
	}
	return 0
}

func appOptionOf(a command.Arg) appOption {
	o := appOption{Type: optionText, Name: a.Name, Brief: line(a.Brief, 100), Required: a.Required, Complete: len(a.Choices) > maxChoices}
	if o.Brief == "" {
		o.Brief = a.Name
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

// permissionOf is who sees a command in a guild; whether he may is asked anew
// when it is called.
func permissionOf(r core.Rank) *string {
	power := ""
	switch {
	case r >= core.Admin:
		power = "8" // administrators
	case r == core.Moderator:
		power = "8192" // who may manage messages
	default:
		return nil
	}
	return &power
}

// locale is the platform's name of a language; "" where it has none.
func locale(tag string) string {
	base, _, _ := strings.Cut(strings.ReplaceAll(tag, "_", "-"), "-")
	switch tag {
	case "en-GB", "en-US", "es-ES", "es-419", "pt-BR", "sv-SE", "zh-CN", "zh-TW":
		return tag
	}
	full := map[string]string{"en": "en-US", "es": "es-ES", "pt": "pt-BR", "sv": "sv-SE", "zh": "zh-CN"}
	if l, ok := full[base]; ok {
		return l
	}
	if slices.Contains([]string{"id", "da", "de", "fr", "hr", "it", "lt", "hu", "nl", "no", "pl", "ro", "fi", "vi", "tr", "cs", "el", "bg", "ru", "uk", "hi", "th", "ja", "ko"}, base) {
		return base
	}
	return ""
}

// syncOnce tells the platform of the commands, in the background, the first time
// a session begins.
func (d *Driver) syncOnce(ctx context.Context, jobs *sync.WaitGroup) {
	d.mu.Lock()
	begun := d.synced
	d.synced = true
	d.mu.Unlock()
	if begun || len(d.specs) == 0 {
		return
	}
	jobs.Go(func() {
		ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
		defer cancel()
		if err := d.sync(ctx); err != nil && ctx.Err() == nil {
			d.log.Error("the chat commands are not up to date", "error", err)
		}
	})
}

// sync writes the commands where they differ from what was written last.
func (d *Driver) sync(ctx context.Context) error {
	body, err := json.Marshal(d.commands())
	if err != nil {
		return err
	}
	_, app := d.book.me()
	guilds := d.set.CommandGuilds
	if len(guilds) == 0 {
		guilds = []string{""}
	}
	for _, g := range guilds {
		sum := sha256.Sum256(append(body, app...))
		mark := []byte(hex.EncodeToString(sum[:]))
		key := "commands/" + g
		if old, err := d.state.Get(ctx, key); err == nil && bytes.Equal(old, mark) {
			continue
		}
		q := request{method: "PUT", route: "/applications/{}/commands", ids: []string{app}, body: json.RawMessage(body)}
		if g != "" {
			q.route, q.ids = "/applications/{}/guilds/{}/commands", []string{app, g}
		}
		if err := d.rest.do(ctx, q); err != nil {
			return err
		}
		if err := d.state.Put(ctx, key, mark); err != nil {
			return err
		}
	}
	return nil
}

// complete suggests values of the argument that is being written.
func (d *Driver) complete(ctx context.Context, i *interaction) {
	var found []string
	if s := d.spec(i.Data.Name); s != nil {
		for _, o := range i.Data.Options {
			if !o.Focused {
				continue
			}
			for _, a := range s.Args {
				if a.Name == o.Name {
					found = matching(a.Choices, o.text())
				}
			}
		}
	}
	list := choices(found)
	if list == nil {
		list = []appChoice{}
	}
	d.respond(ctx, i, answerChoices, map[string]any{"choices": list})
}

// matching lists the choices that begin with a text, then those that hold it.
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
