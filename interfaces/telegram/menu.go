package telegram

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"synthbot/core"
	"synthbot/core/driver"
	"synthbot/core/loop"
	"synthbot/interfaces/telegram/botapi"
)

const menuKey = "menu"

// menu is the list of commands that one audience sees in one language.
type menu struct {
	Scope    map[string]any `json:"scope"`
	Language string         `json:"language,omitempty"`
	Commands []menuCommand  `json:"commands,omitempty"`
}

type menuCommand struct {
	Command     string `json:"command"`
	Description string `json:"description"`
}

// offeredMenus records which menus are set: a hash of them all, and each menu without its commands.
type offeredMenus struct {
	Mark  string `json:"mark"`
	Lists []menu `json:"lists"`
}

// audience is who sees a menu. Telegram shows each user the menu with the narrowest scope.
type audience struct {
	scope   map[string]any
	rank    core.Rank
	private bool // include commands for private chats
}

func (d *Driver) audiences() []audience {
	list := []audience{
		{map[string]any{"type": "default"}, core.RankMember, false},
		{map[string]any{"type": "all_private_chats"}, core.RankMember, true},
		{map[string]any{"type": "all_chat_administrators"}, core.RankModerator, false},
	}
	for _, p := range d.opt.Admins() {
		if s, err := chatKeyOf(d.opt.Name, p); err == nil && p.IsPerson() {
			list = append(list, audience{map[string]any{"type": "chat", "chat_id": s.chat}, core.RankAdmin, true})
		}
	}
	return list
}

// languages lists the languages of the commands' descriptions; "" stands for all others. It is empty without commands.
func (d *Driver) languages() (list []string) {
	for _, spec := range d.opt.Commands() {
		list = append(list, "")
		for tag := range spec.Briefs {
			list = append(list, platformLanguage(tag))
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// platformLanguage returns the two letters by which Telegram knows a language; "" if there are none.
func platformLanguage(tag string) string {
	base, _, _ := strings.Cut(strings.ToLower(tag), "-")
	if len(base) != 2 {
		return ""
	}
	return base
}

func (d *Driver) menuFor(to audience, language string) []menuCommand {
	const maxMenu, maxBrief = 100, 256
	list := []menuCommand{}
	for _, spec := range d.opt.Commands() {
		if spec.Rank > to.rank || spec.Private && !to.private {
			continue
		}
		brief := spec.Brief
		for tag, text := range spec.Briefs {
			if language != "" && platformLanguage(tag) == language {
				brief = text
			}
		}
		brief = cut(oneLine(brief), maxBrief)
		if brief != "" && len(list) < maxMenu {
			list = append(list, menuCommand{Command: spec.Name, Description: brief})
		}
	}
	return list
}

// CommandsChanged updates the command menus in the background, if Listen runs.
func (d *Driver) CommandsChanged() { d.background(d.updateMenus) }

// updateMenus sets the command menus. If that fails, it retries after growing pauses.
func (d *Driver) updateMenus(ctx context.Context) {
	for pause := time.Minute; pause <= 256*time.Minute; pause *= 4 {
		err := d.setMenus(ctx)
		if err == nil || ctx.Err() != nil {
			return
		}
		d.log.Warn("command menus not set", "err", err)
		if !loop.Sleep(ctx, driver.Jitter(pause)) {
			return
		}
	}
}

// setMenus sets the command menus, unless they are up to date, and removes old ones.
func (d *Driver) setMenus(ctx context.Context) error {
	d.menus.Lock()
	defer d.menus.Unlock()
	var menus []menu
	var now offeredMenus
	for _, a := range d.audiences() {
		for _, language := range d.languages() {
			menus = append(menus, menu{a.scope, language, d.menuFor(a, language)})
			now.Lists = append(now.Lists, menu{Scope: a.scope, Language: language})
		}
	}
	data, _ := json.Marshal(menus)
	sum := sha256.Sum256(append(data, d.account()...)) // each bot account has its own menus
	now.Mark = hex.EncodeToString(sum[:])
	var was offeredMenus
	_ = driver.Load(ctx, d.opt.State, menuKey, &was) // if that fails, the menus are set again
	if was.Mark == now.Mark || len(was.Lists)+len(menus) == 0 {
		return nil
	}
	gone := slices.DeleteFunc(was.Lists, func(m menu) bool {
		return slices.ContainsFunc(now.Lists, func(x menu) bool { return bytes.Equal(core.JSON(x), core.JSON(m)) })
	})
	unreached, err := d.sendMenus(ctx, menus, gone)
	if err != nil {
		return err
	}
	if unreached { // the next start tries again
		now.Mark = ""
	}
	if err := driver.Save(ctx, d.opt.State, menuKey, now); err != nil && ctx.Err() == nil {
		d.log.Warn("command menus set, but not recorded", "err", err)
	}
	return nil
}

// sendMenus sets menus and removes those that are gone. unreached is true if an admin never wrote to the bot: Telegram
// refuses a menu for such a chat.
func (d *Driver) sendMenus(ctx context.Context, menus, gone []menu) (unreached bool, err error) {
	for _, m := range menus {
		switch err := d.callMenu(ctx, "setMyCommands", m); {
		case err != nil && m.Scope["chat_id"] != nil && botapi.IsCode(err, 400, 403):
			unreached = true
			d.log.Info("command menu not set: the admin has not written to the bot yet", "chat", m.Scope["chat_id"])
		case err != nil:
			return unreached, err
		}
	}
	for _, m := range gone {
		err := d.callMenu(ctx, "deleteMyCommands", m)
		if err != nil && !botapi.IsCode(err, 400, 403) { // these mean that the chat no longer exists
			return unreached, err
		}
	}
	return unreached, nil
}

func (d *Driver) callMenu(ctx context.Context, method string, m menu) error {
	params := botapi.Params{"commands": m.Commands, "language_code": m.Language, "scope": m.Scope}
	return d.api.Do(ctx, &botapi.Request{Method: method, Params: params, Repeatable: true})
}
