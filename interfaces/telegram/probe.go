package telegram

import (
	"context"
	"encoding/json"

	"synthbot/core/driver"

	"synthbot/core"
	"synthbot/interfaces/telegram/botapi"
)

// Probe implements core.Prober. It takes no updates, so that a bot that runs with
// the same token is not disturbed.
func (d *Driver) Probe(ctx context.Context) []core.Finding {
	raw, err := d.api.Do(ctx, botapi.Request{Method: "getMe"})
	if err != nil {
		fix := explain(err).Error()
		if botapi.IsCode(err, 401, 404) {
			fix = "the token is refused; ask @BotFather for it again, and set it in interfaces." + d.opt.Name +
				".token"
		}
		return []core.Finding{{What: "identity", Found: "unknown", Fix: fix, Fatal: true}}
	}
	var me struct {
		Name   string `json:"username"`
		Joins  bool   `json:"can_join_groups"`
		Listen bool   `json:"can_read_all_group_messages"`
	}
	if err := json.Unmarshal(raw, &me); err != nil || me.Name == "" {
		return []core.Finding{{What: "identity", Found: "unknown",
			Fix: "the server speaks another language; check api_url", Fatal: true}}
	}
	found := []core.Finding{{What: "identity", Found: "@" + me.Name}}
	groups := core.Finding{What: "groups", Found: "may be added to groups"}
	if !me.Joins {
		groups.Found, groups.Fix = "may not be added to groups",
			"let @BotFather allow it with /setjoingroups, if you want it"
	}
	privacy := core.Finding{What: "privacy", Found: "hears all talk of groups"}
	if !me.Listen {
		privacy.Found = "privacy mode is on: of groups it hears commands, mentions and replies alone"
		privacy.Fix = "make it an administrator there, or turn the mode off with @BotFather's /setprivacy " +
			"and add it to the group again"
	}
	return append(found, groups, privacy, driver.ClockFinding(d.api.Ahead()))
}
