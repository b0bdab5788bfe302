package standard

import (
	"cmp"
	"context"
	"encoding/json"
	"time"

	"synthbot/core"
	"synthbot/core/action"
)

const notifySchema = `{
	"type": "object",
	"title": "Send a notice",
	"properties": {
		"message": {"type": "string", "minLength": 1, "maxLength": 2000, "title": "message",
			"description": "What to tell, as Markdown."},
		"type": {"type": "string", "enum": ["info", "success", "warning", "error"], "default": "info", "title": "kind"},
		"to": {"type": "string", "enum": ["person", "here", "admins"], "default": "person", "title": "to",
			"description":
				"person: who is spoken with, in private; here: everyone in this place; admins: those who run the bot."}
	},
	"required": ["message"],
	"additionalProperties": false
}`

type notice struct{ Message, Type, To string }

// notify is the action that tells somebody something on the side.
func (p *Plugin) notify() []core.Action {
	return []core.Action{{
		Name: "notify", Similes: []string{"send_notification", "alert"},
		Brief:  "Tell the person in private, or the admins, something short",
		Schema: json.RawMessage(notifySchema),
		Examples: core.Examples{
			Description: "Sends a short notice: to the person who is spoken with in private, to everyone in this" +
				" place, or to the admins of the bot.",
			Instructions: core.Instructions{
				WhenToUse: "For what is not part of the talk: a result, a warning, a failure; for the admins" +
					" only what they must act on.",
				CommonPitfalls: []string{"It is not an answer: answers are messages.",
					"Nobody else than the three can be notified."},
				Notes: []string{"Notices are counted for each person.",
					"Who is not allowed to may not notify the admins."},
			},
			Examples: []core.Example{
				core.NewExample("What else is to be done when a payment is not possible",
					`{"message":"Insufficient funds for this payment","type":"error"}`),
				core.NewExample("Calling for help",
					`{"message":"Ann reports that somebody posts spam.","type":"warning","to":"admins"}`),
			},
		},
		Effects: core.EffectWrites, Permission: core.PermissionEveryone,
		RateLimit: core.RateLimit{Count: p.c.Notices, Per: time.Hour},
		Check:     func(_ context.Context, c core.Call) error { _, err := p.notice(c); return err },
		Do:        p.tell,
	}}
}

// notice reads a call, and refuses it where it may not be carried out.
func (p *Plugin) notice(c core.Call) (n notice, err error) {
	n, err = action.Payload[notice](c)
	switch {
	case err != nil:
		return n, err
	case n.To == "admins" && !permits(p.c.Admins, c.Author.Rank):
		return n, core.Errorf(core.Forbidden, "Whoever asked may not notify the admins.")
	case n.To == "person" && c.Author.ID == "":
		return n, core.Errorf(core.Invalid, "There is no one person who could be told.")
	}
	return n, nil
}

// permits reports whether a rank is enough for a permission as it is configured.
func permits(permission string, rank core.Rank) bool {
	switch core.Permission(permission) {
	case core.PermissionEveryone:
		return true
	case core.PermissionModerators:
		return rank >= core.RankModerator
	case core.PermissionAdmins:
		return rank >= core.RankAdmin
	}
	return false
}

func (p *Plugin) tell(ctx context.Context, c core.Call) (core.Result, error) {
	n, err := p.notice(c)
	if err != nil {
		return core.Result{}, err
	}
	signs := map[string]string{"success": "✅", "warning": "⚠️", "error": "❌"}
	text := cmp.Or(signs[n.Type], "ℹ️") + " " + n.Message
	person, err := c.Path.Person(c.Author.ID)
	switch {
	case n.To == "admins":
		who := c.Path.String()
		if c.Author.ID == "" {
			who = "nobody in particular, in " + who
		} else if err == nil {
			who = person.String() + " in " + who
		}
		p.h.Messenger.NotifyAdmins(text + "\n(for " + who + ")")
		return core.Result{}, nil
	case n.To == "here" || c.Private:
		return core.Result{Next: []core.Step{c.Say(text)}}, nil
	case err != nil:
		return core.Result{}, &core.Error{Kind: core.Broken, Text: "The person cannot be found.", Err: err}
	}
	return core.Result{Shown: true}, p.h.Messenger.Tell(ctx, person, text)
}
