package telegram

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	tgbotapi "github.com/go-telegram-bot-api/telegram-bot-api/v5"

	"synthbot/core"
)

const (
	menuKey      = "menu"
	maxMenu      = 100
	maxMenuBrief = 256
)

// menu is the list of commands that one audience sees in one language.
type menu struct {
	Scope    map[string]any        `json:"scope"`
	Language string                `json:"language,omitempty"`
	Commands []tgbotapi.BotCommand `json:"commands"`
}

// menus lists what is offered to whom: everybody, administrators of groups,
// admins in their private chats; each in each language that somebody wrote.
func (d *Driver) menus() []menu {
	type audience struct {
		scope map[string]any
		rank  core.Rank
	}
	list := []audience{
		{map[string]any{"type": "default"}, core.Member},
		{map[string]any{"type": "all_chat_administrators"}, core.Moderator},
	}
	for _, p := range d.opt.Admins {
		if s, err := spotOf(d.opt.Name, p); err == nil && p.IsPerson() {
			list = append(list, audience{map[string]any{"type": "chat", "chat_id": s.chat}, core.Admin})
		}
	}
	var menus []menu
	for _, a := range list {
		for _, language := range d.languages() {
			menus = append(menus, menu{a.scope, language, d.offered(a.rank, language)})
		}
	}
	return menus
}

// languages lists the languages that commands are told in; "" is all others.
func (d *Driver) languages() []string {
	list := []string{""}
	for _, spec := range d.opt.Commands {
		for tag := range spec.Briefs {
			list = append(list, platformLanguage(tag))
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// platformLanguage is the two letters that the platform knows a language by.
func platformLanguage(tag string) string {
	base, _, _ := strings.Cut(strings.ToLower(tag), "-")
	if len(base) != 2 {
		return ""
	}
	return base
}

func (d *Driver) offered(rank core.Rank, language string) []tgbotapi.BotCommand {
	name := regexp.MustCompile(`^[a-z0-9_]{1,32}$`)
	list := []tgbotapi.BotCommand{}
	for _, spec := range d.opt.Commands {
		brief := spec.Brief
		for tag, text := range spec.Briefs {
			if language != "" && platformLanguage(tag) == language {
				brief = text
			}
		}
		if brief = cut(oneLine(brief), maxMenuBrief); spec.Rank <= rank && name.MatchString(spec.Name) && brief != "" && len(list) < maxMenu {
			list = append(list, tgbotapi.BotCommand{Command: spec.Name, Description: brief})
		}
	}
	return list
}

// offerCommands puts the commands into the platform's menu, unless they are
// there already.
func (d *Driver) offerCommands(ctx context.Context) {
	menus := d.menus()
	data, err := json.Marshal(menus)
	if err != nil || len(d.opt.Commands) == 0 {
		return
	}
	sum := sha256.Sum256(data)
	mark := []byte(hex.EncodeToString(sum[:]))
	if old, err := d.opt.State.Get(ctx, menuKey); err == nil && string(old) == string(mark) {
		return
	}
	for _, m := range menus {
		if err := d.offer(ctx, m); err != nil {
			if ctx.Err() == nil {
				d.log.Warn("commands not offered", "error", err)
			}
			return
		}
	}
	if err := d.opt.State.Put(ctx, menuKey, mark); err != nil && ctx.Err() == nil {
		d.log.Warn("commands offered, but not noted", "error", err)
	}
}

func (d *Driver) offer(ctx context.Context, m menu) error {
	params := tgbotapi.Params{}
	params.AddNonEmpty("language_code", m.Language)
	if err := params.AddInterface("scope", m.Scope); err != nil {
		return err
	}
	if err := params.AddInterface("commands", m.Commands); err != nil {
		return err
	}
	_, err := d.do(ctx, request{method: "setMyCommands", params: params, again: true})
	return err
}
