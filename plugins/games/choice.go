package games

import (
	"context"
	"slices"

	"synthbot/core"
)

const maxThing = 200 // bytes

type choicePayload struct {
	_ struct{} `title:"Choose at random"`

	Options []string `json:"options" doc:"The things to choose from; one that is there twice is twice as likely." min:"1" max:"100"`
	Count   int      `json:"count" doc:"How many to choose, in random order; as many as there are: a shuffle." default:"1" min:"1" max:"100"`
}

var choiceAction = core.Action{
	Name: "random_choice", Similes: []string{"choose_random", "pick_random", "flip_coin", "shuffle"},
	Brief: "Choose one or several of the given things at random",
	Examples: core.Examples{
		Description: "Picks without any preference, and gives what it picked back, in the order in which it picked.",
		Instructions: core.Instructions{
			WhenToUse: "When people leave something to chance: a winner, who begins, heads or tails, an order.",
			CommonPitfalls: []string{
				"Never choose by yourself when chance was asked for: you have favourites.",
				"Give the things themselves, not a text that lists them.",
			},
			Notes: []string{"To let a group decide instead, use poll_create."},
		},
		Similar: []string{"dice_roll", "poll_create"},
		Examples: []core.Example{
			core.NewExample("Heads or tails", `{"options":["heads","tails"]}`),
			core.NewExample("An order of play", `{"options":["Ann","Ben","Jay"],"count":3}`),
		},
	},
	Effects: core.EffectNone, Permission: core.PermissionEveryone, Idempotent: true,
}

func (p *Plugin) choose(_ context.Context, _ core.Call, payload choicePayload) (core.Result, error) {
	left := slices.Clone(payload.Options)
	for _, thing := range left {
		if thing == "" || len(thing) > maxThing {
			return core.Result{}, core.Errorf(core.Invalid, "Each thing must have between 1 and %d letters.", maxThing)
		}
	}
	if payload.Count < 1 || payload.Count > len(left) {
		return core.Result{}, core.Errorf(core.Invalid, "Of %d things between 1 and %d can be chosen.", len(left),
			len(left))
	}
	chosen := make([]string, payload.Count)
	for n := range chosen {
		i := p.pick(len(left))
		chosen[n] = left[i]
		left = slices.Delete(left, i, i+1)
	}
	return core.Output(map[string]any{"chosen": chosen, "of": len(payload.Options)}), nil
}
