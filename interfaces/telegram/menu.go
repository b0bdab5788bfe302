package telegram

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"log/slog"
	"regexp"
	"slices"
	"strings"

	"synthbot/core/driver"

	"synthbot/core"
	"synthbot/interfaces/telegram/botapi"
)

const (
	menuKey      = "menu"
	maxMenu      = 100
	maxMenuBrief = 256
)

// commandMenus keep the platform's menus of commands up to date.
type commandMenus struct {
	opt     *Options
	log     *slog.Logger
	api     *botapi.Client
	account string
}

// menu is the list of commands that one audience sees in one language.
type menu struct {
	listed
	Commands []menuCommand `json:"commands"`
}

type menuCommand struct {
	Command     string `json:"command"`
	Description string `json:"description"`
}

// audience is who sees a list: the platform shows each person the narrowest one.
type audience struct {
	scope   map[string]any
	rank    core.Rank
	private bool // commands for private places are of use there
}

func (c *commandMenus) audiences() []audience {
	list := []audience{
		{map[string]any{"type": "default"}, core.RankMember, false},
		{map[string]any{"type": "all_private_chats"}, core.RankMember, true},
		{map[string]any{"type": "all_chat_administrators"}, core.RankModerator, false},
	}
	for _, p := range c.opt.Admins {
		if s, err := chatKeyOf(c.opt.Name, p); err == nil && p.IsPerson() {
			list = append(list, audience{map[string]any{"type": "chat", "chat_id": s.chat}, core.RankAdmin, true})
		}
	}
	return list
}

// languages lists the languages that commands are described in; "" is all others. Without
// commands there are none.
func (c *commandMenus) languages() (list []string) {
	for _, spec := range c.opt.Commands {
		list = append(list, "")
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

func (c *commandMenus) offered(to audience, language string) []menuCommand {
	name := regexp.MustCompile(`^[a-z0-9_]{1,32}$`)
	list := []menuCommand{}
	for _, spec := range c.opt.Commands {
		if spec.Rank > to.rank || spec.Private && !to.private {
			continue
		}
		brief := spec.Brief
		for tag, text := range spec.Briefs {
			if language != "" && platformLanguage(tag) == language {
				brief = text
			}
		}
		brief = cut(oneLine(brief), maxMenuBrief)
		if name.MatchString(spec.Name) && brief != "" && len(list) < maxMenu {
			list = append(list, menuCommand{Command: spec.Name, Description: brief})
		}
	}
	return list
}

// update sets the platform's menus, unless they are up to date, and removes old ones.
func (c *commandMenus) update(ctx context.Context) {
	var menus []menu
	var now offering
	for _, a := range c.audiences() {
		for _, language := range c.languages() {
			l := listed{a.scope, language}
			menus = append(menus, menu{l, c.offered(a, language)})
			now.Lists = append(now.Lists, l)
		}
	}
	data, _ := json.Marshal(menus)
	sum := sha256.Sum256(append(data, c.account...)) // another bot has none yet
	now.Mark = hex.EncodeToString(sum[:])
	var was offering
	_ = driver.Load(ctx, c.opt.State, menuKey, &was) // what cannot be read is offered again
	if was.Mark == now.Mark || len(was.Lists)+len(menus) == 0 {
		return
	}
	gone := slices.DeleteFunc(slices.Clone(was.Lists), func(l listed) bool {
		return slices.ContainsFunc(now.Lists, func(x listed) bool { return bytes.Equal(core.JSON(x), core.JSON(l)) })
	})
	unreached, err := c.offerAll(ctx, menus, gone)
	if err != nil {
		if ctx.Err() == nil {
			c.log.Warn("commands not offered", "err", err)
		}
		return
	}
	if unreached { // the next life tries again
		now.Mark = ""
	}
	if err := driver.Save(ctx, c.opt.State, menuKey, now); err != nil && ctx.Err() == nil {
		c.log.Warn("commands offered, but not noted", "err", err)
	}
}

// offering is what was offered: its mark, and which lists there are.
type offering struct {
	Mark  string   `json:"mark"`
	Lists []listed `json:"lists"`
}

type listed struct {
	Scope    map[string]any `json:"scope"`
	Language string         `json:"language,omitempty"`
}

// offerAll reports whether there are lists for admins who never wrote to the bot. The
// platform does not take those.
func (c *commandMenus) offerAll(ctx context.Context, menus []menu, gone []listed) (unreached bool, err error) {
	for _, m := range menus {
		switch err := c.call(ctx, "setMyCommands", m.listed, m.Commands); {
		case err != nil && m.Scope["chat_id"] != nil && botapi.IsCode(err, 400, 403):
			unreached = true
			c.log.Info("commands not offered to an admin who has not written yet", "chat", m.Scope["chat_id"])
		case err != nil:
			return unreached, err
		}
	}
	for _, l := range gone {
		err := c.call(ctx, "deleteMyCommands", l, nil)
		if err != nil && !botapi.IsCode(err, 400, 403) { // of a chat that is gone nothing is left
			return unreached, err
		}
	}
	return unreached, nil
}

func (c *commandMenus) call(ctx context.Context, method string, l listed, commands []menuCommand) error {
	params := botapi.Params{"commands": commands, "language_code": l.Language, "scope": l.Scope}
	_, err := c.api.Do(ctx, botapi.Request{Method: method, Params: params, Again: true})
	return err
}
