package memory

import (
	"context"
	"time"

	"synthbot/core"
	"synthbot/core/action"
	"synthbot/core/txt"
)

type updatePayload struct {
	_ struct{} `title:"Change a memory"`

	ID    string `json:"id" title:"memory" doc:"The id behind the memory." min:"1" max:"16"`
	Text  string `json:"text" title:"new text" doc:"All that is true now, in one sentence." min:"3" max:"1000"`
	Topic string `json:"topic,omitempty" title:"topic" max:"64"`
}

func (p *Plugin) updateAction() core.Action {
	return action.Typed(core.Action{
		Name: "memory_update", Similes: []string{"update_memory", "memory_change"},
		Brief: "Change a memory that is not true any more",
		Examples: core.Examples{
			Description: "Puts a new text in place of a memory's old one, which stays as its history.",
			Instructions: core.Instructions{
				WhenToUse: "When somebody corrects what you remember of them or of what they said.",
				CommonPitfalls: []string{
					"The id is behind the memory in memories, and in what memory_search finds: do not make one up.",
					"The new text replaces the old one; it is not added to it.",
					"A memory can be changed only where it was said.",
				},
				Notes: []string{"Who it is about stays as it was."},
			},
			Similar: []string{"memory_forget takes one away", "memory_save keeps a new one"},
			Examples: []core.Example{core.NewExample(
				"Jay, of whom you remember (id 3f) that he lives in Rome, says that he moved",
				`{"id":"3f","text":"Jay lives in Oslo","topic":"home"}`)},
		},
		Effects: core.EffectRanked | core.EffectWrites, Permission: core.PermissionEveryone, Idempotent: true,
		RateLimit: core.RateLimit{Count: 30, Per: time.Hour},
	}, p.update)
}

// allowed returns the fact that a call names, if the caller may do away with it.
func (p *Plugin) allowed(ctx context.Context, c *core.Call, id string) (core.Fact, core.Path, error) {
	person, err := c.Person()
	if err != nil {
		return core.Fact{}, person, err
	}
	f, err := p.fact(ctx, id, c.Sees, person)
	if err == nil && !mayChange(&f, c.Path, person, c.Author.Rank) {
		err = errNotTheirs
	}
	return f, person, err
}

func (p *Plugin) update(ctx context.Context, c core.Call, u updatePayload) (core.Result, error) {
	f, person, err := p.allowed(ctx, &c, u.ID)
	if err != nil {
		return core.Result{}, err
	}
	if f.Origin != c.Path {
		return core.Result{}, core.Errorf(core.Forbidden,
			"that was said in another place, and can be changed only there; a new memory can be saved here")
	}
	f = core.Fact{
		ID: f.ID, Text: txt.ClipLine(u.Text, textMax), About: f.About, Topic: label(u.Topic),
		Language: f.Language, Origin: f.Origin, By: person,
	}
	if f.Text == "" {
		return core.Result{}, core.Errorf(core.Invalid, "there is nothing to remember in it")
	}
	_, err = p.host.Facts.SaveFact(ctx, f)
	return core.Result{}, worded(u.ID, err)
}

type forgetPayload struct {
	_ struct{} `title:"Forget a memory"`

	ID string `json:"id" title:"memory" doc:"The id behind the memory." min:"1" max:"16"`
}

func (p *Plugin) forgetAction() core.Action {
	return action.Typed(core.Action{
		Name: "memory_forget", Similes: []string{"forget", "forget_memory", "memory_delete"},
		Brief: "Forget a memory for good",
		Examples: core.Examples{
			Description: "Takes one memory away, with what it said before.",
			Instructions: core.Instructions{
				WhenToUse: "When somebody wants something that you remember gone.",
				CommonPitfalls: []string{
					"The id is behind the memory in memories, and in what memory_search finds: do not make one up.",
					"It cannot be taken back.",
				},
				Notes: []string{"Who wants everything about themselves gone uses the command /forgetme."},
			},
			Similar: []string{"memory_update puts another text in its place"},
			Examples: []core.Example{core.NewExample(
				"Jay asks you to forget that he had an accident, which you remember (id 3f)", `{"id":"3f"}`)},
		},
		Effects: core.EffectChanges | core.EffectRanked, Permission: core.PermissionEveryone, Idempotent: true,
		RateLimit: core.RateLimit{Count: 30, Per: time.Hour},
		Check: func(ctx context.Context, c core.Call) error {
			f, err := action.Payload[forgetPayload](c)
			if err == nil {
				_, _, err = p.allowed(ctx, &c, f.ID)
			}
			return err
		},
	}, p.forget)
}

func (p *Plugin) forget(ctx context.Context, c core.Call, f forgetPayload) (core.Result, error) {
	if _, _, err := p.allowed(ctx, &c, f.ID); err != nil {
		return core.Result{}, err
	}
	return core.Result{}, worded(f.ID, p.host.Facts.DropFact(ctx, f.ID, c.Sees...))
}
