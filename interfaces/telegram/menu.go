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

	"synthbot/core/driver"

	"synthbot/core"
	"synthbot/interfaces/telegram/botapi"
)

const (
	menuKey      = "menu"
	maxMenu      = 100
	maxMenuBrief = 256
)

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

// offeredMenus is what was offered: its mark, and which menus there are, without commands.
type offeredMenus struct {
	Mark  string `json:"mark"`
	Lists []menu `json:"lists"`
}

// audience is who sees a list: the platform shows each person the narrowest one.
type audience struct {
	scope   map[string]any
	rank    core.Rank
	private bool // commands for private places are of use there
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

// languages lists the languages that commands are described in; "" is all others. Without
// commands there are none.
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

// platformLanguage is the two letters that the platform knows a language by.
func platformLanguage(tag string) string {
	base, _, _ := strings.Cut(strings.ToLower(tag), "-")
	if len(base) != 2 {
		return ""
	}
	return base
}

func (d *Driver) menuFor(to audience, language string) []menuCommand {
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
		brief = cut(oneLine(brief), maxMenuBrief)
		if brief != "" && len(list) < maxMenu {
			list = append(list, menuCommand{Command: spec.Name, Description: brief})
		}
	}
	return list
}

// CommandsChanged updates the platform's menus in the background, if Listen runs.
func (d *Driver) CommandsChanged() { d.background(d.updateMenus) }

const (
	menusAfter     = 100 * time.Millisecond // the start: first come the first poll and what it brings
	maxMenuTries   = 5
	firstMenuPause = time.Minute
)

// updateMenus sets the platform's menus. Where that fails, it tries again, after longer and longer pauses.
func (d *Driver) updateMenus(ctx context.Context) {
	pause := firstMenuPause
	for range maxMenuTries {
		err := d.setMenus(ctx)
		if err == nil || ctx.Err() != nil {
			return
		}
		d.log.Warn("commands not offered", "err", err)
		if !driver.Sleep(ctx, driver.Jitter(pause)) {
			return
		}
		pause *= 4
	}
}

// setMenus sets the platform's menus, unless they are up to date, and removes old ones.
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
	sum := sha256.Sum256(append(data, d.account()...)) // another bot has none yet
	now.Mark = hex.EncodeToString(sum[:])
	var was offeredMenus
	_ = driver.Load(ctx, d.opt.State, menuKey, &was) // what cannot be read is offered again
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
	if unreached { // the next life tries again
		now.Mark = ""
	}
	if err := driver.Save(ctx, d.opt.State, menuKey, now); err != nil && ctx.Err() == nil {
		d.log.Warn("commands offered, but not noted", "err", err)
	}
	return nil
}

// sendMenus reports whether there are lists for admins who never wrote to the bot. The
// platform does not take those.
func (d *Driver) sendMenus(ctx context.Context, menus, gone []menu) (unreached bool, err error) {
	for _, m := range menus {
		switch err := d.callMenu(ctx, "setMyCommands", m); {
		case err != nil && m.Scope["chat_id"] != nil && botapi.IsCode(err, 400, 403):
			unreached = true
			d.log.Info("commands not offered to an admin who has not written yet", "chat", m.Scope["chat_id"])
		case err != nil:
			return unreached, err
		}
	}
	for _, m := range gone {
		err := d.callMenu(ctx, "deleteMyCommands", m)
		if err != nil && !botapi.IsCode(err, 400, 403) { // of a chat that is gone nothing is left
			return unreached, err
		}
	}
	return unreached, nil
}

func (d *Driver) callMenu(ctx context.Context, method string, m menu) error {
	params := botapi.Params{"commands": m.Commands, "language_code": m.Language, "scope": m.Scope}
	return d.api.Do(ctx, &botapi.Request{Method: method, Params: params, Repeatable: true})
}
