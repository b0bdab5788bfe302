package people

import (
	"context"

	"synthbot/core"
	"synthbot/core/txt"
)

type requestPayload struct {
	_ struct{} `title:"Look up a bio"`

	Who string `json:"who,omitempty" title:"person" doc:"Whose bio, by name, tag or id; left out: of who speaks." max:"256"`
}

var requestAction = core.Action{
	Name: "bio_request", Similes: []string{"get_bio", "bio_get"},
	Brief: "Look up all that you know of a person who talks here",
	Examples: core.Examples{
		Description: "Tells the whole bio; participants hold the beginning of it only.",
		Instructions: core.Instructions{
			WhenToUse: "When you are asked what you know of somebody, and participants do not say it.",
			CommonPitfalls: []string{"Only people who talk here can be looked up.",
				"What others say of somebody is hearsay: tell it as that, or not at all."},
			Notes: []string{"It holds only what may be said in this place.",
				"The result comes back to you."},
		},
		Similar:  []string{"bio_update adds to it"},
		Examples: []core.Example{core.NewExample("Ann asks what Jay likes", `{"who":"Jay"}`)},
	},
	Effects: core.EffectReadsChat, Permission: core.PermissionEveryone, Idempotent: true,
}

const hearsayMax = 20 // lines of hearsay that a model reads

func (p *Plugin) request(ctx context.Context, c core.Call, r requestPayload) (core.Result, error) {
	who, err := p.subject(ctx, &c, r.Who)
	if err != nil {
		return core.Result{}, err
	}
	b, err := p.visible(ctx, who.path, c.Sees)
	if err != nil {
		return core.Result{}, err
	}
	answer := map[string]any{"person": txt.ClipLine(who.Author.Name, valueMax), "bio": b.whole()}
	if who.Tag != "" {
		answer["tag"] = who.Tag
	}
	if len(b.others) > 0 {
		answer["others_say"] = b.others[:min(len(b.others), hearsayMax)]
	}
	return core.Output(answer), nil
}
