package console

import (
	"context"
	"encoding/json"
	"strings"

	"synthbot/core"
)

// schema describes the payload of the message action.
const schema = `{
	"type": "object",
	"title": "Send a message",
	"properties": {
		"text": {"type": "string", "minLength": 1, "title": "text", "description": "What to say, as Markdown."},
		"interface_path": {"type": "string", "title": "place", "description": "Where to say it; left out: here."},
		"suggestions": {"type": "array", "items": {"type": "string"}, "deprecated": true},
		"priority": {"type": "string", "enum": ["low", "normal", "high"], "default": "normal", "title": "priority"}
	},
	"required": ["text"],
	"additionalProperties": false
}`

// Actions implements core.Interface: its one action sends a message.
func (c *Console) Actions() []core.Action {
	path, _ := json.Marshal(c.place)
	const answer = `{"text":"Sure. Which one do you mean?"}`
	elsewhere := `{"text":"Here is the list:\n- one\n- two","interface_path":` + string(path) + `}`
	return []core.Action{{
		Name:   core.MessagePrefix + c.opt.Name,
		Brief:  "Send a message to the person at the console",
		Schema: json.RawMessage(schema),
		Examples: core.Examples{
			Description: "Says something to the person who sits at this terminal.",
			Instructions: core.Instructions{
				WhenToUse: "To answer, to ask, to tell: whatever you want the person to read.",
				CommonPitfalls: []string{
					"The words belong into text, and no other key.", "A path of another interface is refused.",
				},
				Notes: []string{
					"Markdown is shown: emphasis, lists, quotes, code.", "Several messages are several actions.",
				},
			},
			Examples: []core.Example{
				{Scenario: "Answering the message at hand", Payload: json.RawMessage(answer)},
				{Scenario: "The same, with the place named", Payload: json.RawMessage(elsewhere)},
			},
		},
		Essential: true,
		Effects:   core.EffectWrites, Permission: core.PermissionEveryone,
		Idempotent: true, // each message that was sent is in the journal
		Check:      func(_ context.Context, call core.Call) error { _, _, err := c.message(call); return err },
		Do:         c.send,
	}}
}

// message returns what is said, and the replies that are suggested.
func (c *Console) message(call core.Call) (sent core.Sent, choices []string, err error) {
	var p struct {
		Text        string    `json:"text"`
		Path        core.Path `json:"interface_path"`
		Suggestions []string  `json:"suggestions"`
	}
	if err := json.Unmarshal(call.Payload, &p); err != nil {
		text := "the payload must be an object with text; interface_path, if any, is " + c.place.String()
		return sent, nil, &core.Error{Kind: core.Invalid, Text: text, Err: err}
	}
	to := p.Path
	if to.IsZero() {
		to = call.Path
	}
	if to.IsZero() || to != c.place {
		const text = "%s%s writes to %s only, not to %q: correct or leave out interface_path"
		return sent, nil, core.Errorf(core.Invalid, text, core.MessagePrefix, c.opt.Name, c.place, to)
	}
	text := clean(p.Text)
	if strings.TrimSpace(text) == "" {
		return sent, nil, core.Errorf(core.Invalid, "text is empty: say something, or leave the action out")
	}
	for _, s := range p.Suggestions {
		choices = append(choices, strings.Join(strings.Fields(clean(s)), " "))
	}
	return core.Sent{Path: to, Text: text}, choices, nil
}

func (c *Console) send(ctx context.Context, call core.Call) (core.Result, error) {
	sent, choices, err := c.message(call)
	if err != nil {
		return core.Result{}, err
	}
	err = call.Deliveries.Send(ctx, 1, sent, func(context.Context, string) (string, error) {
		if err := c.say(sent.Text + c.offer(choices)); err != nil {
			return "", &core.Error{Kind: core.Broken, Text: "cannot write to the console", Err: err}
		}
		return c.nextID(), nil
	})
	return core.Result{}, err
}
