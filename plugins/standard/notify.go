package standard

import (
	"cmp"
	"context"
	"time"

	"synthbot/core"
	"synthbot/core/action"
)

type notice struct {
	_ struct{} `title:"Send a notice"`

	Message string `json:"message" title:"message" min:"1" max:"2000" doc:"What to tell, as Markdown."`
	Type    string `json:"type" title:"kind" oneof:"info|success|warning|error" default:"info"`
	To      string `json:"to" title:"to" oneof:"person|here|admins" default:"person" doc:"person: who is spoken with, in private; here: everyone in this place; admins: those who run the bot."`
}

// notify is the action that tells somebody something on the side.
func (p *Plugin) notify() core.Action {
	return action.Typed(core.Action{
		Name: "notify", Similes: []string{"send_notification", "alert"},
		Brief: "Tell the person in private, or the admins, something short",
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
		Check: func(_ context.Context, c core.Call) error {
			n, err := action.Payload[notice](c)
			return cmp.Or(err, p.refuse(c, n))
		},
	}, p.tell)
}

// refuse returns why a notice may not be sent.
func (p *Plugin) refuse(c core.Call, n notice) error {
	switch {
	case n.To == "admins" && !permits(p.c.Admins, c.Author.Rank):
		return core.Errorf(core.Forbidden, "Whoever asked may not notify the admins.")
	case n.To == "person" && c.Author.ID == "":
		return core.Errorf(core.Invalid, "There is no one person who could be told.")
	}
	return nil
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

func (p *Plugin) tell(ctx context.Context, c core.Call, n notice) (core.Result, error) {
	if err := p.refuse(c, n); err != nil {
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
