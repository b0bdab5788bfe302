package standard

import (
	"context"
	"errors"
	"time"

	"synthbot/core"
	"synthbot/core/action"
)

// speakTime is longer than [speech.out] lets the synthesis of a text take.
const speakTime = 10*time.Minute + 30*time.Second

type speakPayload struct {
	_ struct{} `title:"Speak"`

	Text string `json:"text" title:"text" min:"1" max:"10000" doc:"What to say, as it is spoken: no markup, no emoji."`
}

// speak is the action that says something aloud.
func (p *Plugin) speak() core.Action {
	return action.Typed(core.Action{
		Name: "speak", Similes: []string{"say_aloud", "voice_message"},
		Brief: "Say something aloud, as a voice message",
		Examples: core.Examples{
			Description: "Speaks a text and sends it into this place as a voice message.",
			Instructions: core.Instructions{
				WhenToUse: "When somebody asks to hear something, or spoke themselves and would rather listen than" +
					" read.",
				CommonPitfalls: []string{"Write words as they are spoken: no Markdown, links or emoji.",
					"Do not send the same as a message, too."},
				Notes: []string{"It takes a few seconds.", "People see no text with it."},
			},
			Examples: []core.Example{core.NewExample("Wishing a good night", `{"text":"Good night, and sleep well."}`)},
		},
		Effects: core.EffectWrites, Permission: core.PermissionEveryone, Timeout: speakTime,
		Busy:      core.BusyQueue,
		RateLimit: core.RateLimit{Count: 30, Per: time.Hour},
	}, p.spoken)
}

func (p *Plugin) spoken(ctx context.Context, c core.Call, q speakPayload) (core.Result, error) {
	var people []core.Path
	for _, a := range c.Authors {
		if person, err := c.Path.Person(a.ID); err == nil {
			people = append(people, person)
		}
	}
	file, err := p.h.Speak(ctx, c.Path, people, q.Text)
	var refused *core.Error
	switch {
	case errors.As(err, &refused) && refused.Kind == core.Invalid:
		return core.Result{}, err
	case err != nil:
		const away = "The voice is not available at the moment."
		return core.Result{}, &core.Error{Kind: core.Temporary, Text: away, Err: err}
	}
	file.Alt = q.Text
	return core.Result{}, p.h.Messenger.SendFile(ctx, c.Deliveries, 1, core.Sent{Path: c.Path}, file)
}
