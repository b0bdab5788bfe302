package telegram

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	tgbotapi "github.com/go-telegram-bot-api/telegram-bot-api/v5"

	"synthbot/core"
)

// maxSkew is how far this machine's clock may be from the platform's.
const maxSkew = 30 * time.Second

// Probe implements core.Prober. It takes no updates, so that a bot that runs with
// the same token is not disturbed.
func (d *Driver) Probe(ctx context.Context) []core.Finding {
	raw, err := d.do(ctx, request{method: "getMe", params: tgbotapi.Params{}})
	if err != nil {
		mend := explain(err).Error()
		if isCode(err, 401, 404) {
			mend = "the token is refused; ask @BotFather for it again, and set it in interfaces." + d.opt.Name + ".token"
		}
		return []core.Finding{{What: "identity", Found: "unknown", Mend: mend, Fatal: true}}
	}
	var me struct {
		Name   string `json:"username"`
		Joins  bool   `json:"can_join_groups"`
		Listen bool   `json:"can_read_all_group_messages"`
	}
	if err := json.Unmarshal(raw, &me); err != nil || me.Name == "" {
		return []core.Finding{{What: "identity", Found: "unknown", Mend: "the server speaks another language; check api_url", Fatal: true}}
	}
	found := []core.Finding{{What: "identity", Found: "@" + me.Name}}
	groups := core.Finding{What: "groups", Found: "may be added to groups"}
	if !me.Joins {
		groups.Found, groups.Mend = "may not be added to groups", "let @BotFather allow it with /setjoingroups, if you want it"
	}
	privacy := core.Finding{What: "privacy", Found: "hears all talk of groups"}
	if !me.Listen {
		privacy.Found = "privacy mode is on: of groups it hears commands, mentions and replies alone"
		privacy.Mend = "make it an administrator there, or turn the mode off with @BotFather's /setprivacy and add it to the group anew"
	}
	return append(found, groups, privacy, d.skew(ctx))
}

// skew compares the clocks.
func (d *Driver) skew(ctx context.Context) core.Finding {
	f := core.Finding{What: "clock", Found: "unknown"}
	req, err := http.NewRequestWithContext(ctx, http.MethodHead, d.api.base.String(), nil)
	if err != nil {
		return f
	}
	resp, err := d.api.http.Do(req)
	if err != nil {
		return f
	}
	_ = resp.Body.Close()
	theirs, err := http.ParseTime(resp.Header.Get("Date"))
	if err != nil {
		return f
	}
	off := d.opt.Clock().Sub(theirs).Round(time.Second)
	if f.Found = fmt.Sprintf("%s from the platform's", off.Abs()); off.Abs() > maxSkew {
		f.Mend = "let this machine's clock be set by the network (timedatectl set-ntp true)"
	}
	return f
}
