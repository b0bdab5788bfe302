package standard

import (
	"context"
	"encoding/json"
	"strconv"
	"time"

	"synthbot/core"
	"synthbot/core/action"
)

// wait is the action that pauses between two others.
func (p *Plugin) wait() core.Action {
	seconds := func(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }
	most := seconds(p.c.Wait.Seconds())
	return core.Action{
		Name: "wait", Similes: []string{"pause", "sleep"},
		Brief: "Pause a few seconds before the next action",
		Schema: json.RawMessage(`{"type":"object","title":"Wait","properties":{"duration":{"type":"number"` +
			`,"exclusiveMinimum":0,"maximum":` + most +
			`,"title":"seconds","description":"How long, in seconds."}},"required":["duration"],` +
			`"additionalProperties":false}`),
		Examples: core.Examples{
			Description: "Lets a few seconds pass between two actions of a plan.",
			Instructions: core.Instructions{
				WhenToUse: "Between two actions of which the second needs a moment, or for effect: before the" +
					" end of a joke.",
				CommonPitfalls: []string{"The duration is in seconds, and " + most + " at most.",
					"For anything later than that set a reminder."},
				Notes: []string{"Nothing else is answered in this place meanwhile."},
			},
			Examples: []core.Example{
				core.NewExample("A moment of suspense", `{"duration":`+seconds(min(3, p.c.Wait.Seconds()))+`}`)},
		},
		Effects: core.EffectNone, Permission: core.PermissionEveryone, Idempotent: true,
		Timeout:   p.c.Wait + 5*time.Second,
		RateLimit: core.RateLimit{Count: 20, Per: time.Hour},
		Do:        pause,
	}
}

func pause(ctx context.Context, c core.Call) (core.Result, error) {
	q, err := action.Payload[struct{ Duration float64 }](c)
	if err != nil {
		return core.Result{}, err
	}
	timer := time.NewTimer(time.Duration(q.Duration * float64(time.Second)))
	defer timer.Stop()
	select {
	case <-timer.C:
		return core.Result{}, nil
	case <-ctx.Done():
		return core.Result{}, ctx.Err()
	}
}

const confirmSchema = `{
	"type": "object",
	"title": "Please confirm",
	"properties": {
		"message": {"type": "string", "minLength": 1, "maxLength": 300, "title": "Question",
			"description": "What the person is asked: a question that yes or no answers."},
		"then": {
			"type": "array", "maxItems": 10, "title": "Then", "description": "The actions that follow a yes, in order.",
			"items": {
				"type": "object",
				"properties": {
					"type": {"type": "string", "description": "The action's name."},
					"payload": {"type": "object"}, "params": {"type": "object", "description": "The same as payload."},
					"target": {"type": "string"}
				},
				"required": ["type"], "additionalProperties": false
			}
		}
	},
	"required": ["message"],
	"additionalProperties": false
}`

// confirm is the action that asks first.
func (p *Plugin) confirm() core.Action {
	return core.Action{
		Name: "confirm", Similes: []string{"ask_confirmation"},
		Brief:  "Ask the person yes or no, and act on a yes",
		Schema: json.RawMessage(confirmSchema),
		Examples: core.Examples{
			Description: "Puts a question with two buttons to the person who is spoken with. What is in then is" +
				" done on a yes, and on a no nothing is.",
			Instructions: core.Instructions{
				WhenToUse: "Before something that the person might not have meant.",
				CommonPitfalls: []string{
					"Actions beside it do not wait for the answer: what shall wait belongs into then.",
					"One action alone is asked about by its own requiresConfirmation.",
				},
				Notes: []string{"Actions that must be confirmed by themselves ask once more.",
					"A question that nobody answers expires."},
			},
			Examples: []core.Example{
				core.NewExample("Asking before telling everyone",
					`{"message":"Shall I tell the whole group?","then":[{"type":"notify"`+
						`,"payload":{"message":"Dinner is at eight.","to":"here"}}]}`),
				core.NewExample("Only asking", `{"message":"Are you sure?"}`),
			},
		},
		Effects: core.EffectNone, Permission: core.PermissionEveryone, Confirm: true, Idempotent: true,
		Then: thenSteps, Do: confirmed,
	}
}

// thenSteps are the actions that follow a yes.
func thenSteps(payload json.RawMessage) (steps []core.Step) {
	var q struct {
		Then []struct {
			Type, Target    string
			Payload, Params json.RawMessage
		}
	}
	_ = json.Unmarshal(payload, &q) // the schema was checked
	for _, s := range q.Then {
		if len(s.Payload) == 0 {
			s.Payload = s.Params
		}
		steps = append(steps,
			core.Step{Type: s.Type, Payload: s.Payload, Target: s.Target, Priority: core.DefaultPriority})
	}
	return steps
}

// confirmed runs when the person said yes. What follows has its own words.
func confirmed(_ context.Context, c core.Call) (core.Result, error) {
	if _, err := action.Payload[struct{}](c); err != nil {
		return core.Result{}, err
	}
	steps := thenSteps(c.Payload)
	if len(steps) == 0 {
		return core.Result{Output: json.RawMessage(`{"confirmed":true}`)}, nil
	}
	return core.Result{Next: steps}, nil
}
