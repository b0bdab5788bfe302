package console

import (
	"context"
	"encoding/json"

	"synthbot/core"
)

// schema of the message action's payload.
const schema = `{
	"type": "object",
	"properties": {
		"text": {"type": "string", "minLength": 1, "title": "text", "description": "What to say, as Markdown."},
		"interface_path": {"type": "string", "title": "place", "description": "Where to say it; left out: here."},
		"priority": {"type": "string", "enum": ["low", "normal", "high"], "default": "normal", "title": "priority"}
	},
	"required": ["text"],
	"additionalProperties": false
}`

// Actions lists the one action: to say something.
func (c *Console) Actions() []core.Action {
	path, _ := json.Marshal(c.place)
	return []core.Action{{
		Name:   core.MessagePrefix + c.opt.Name,
		Brief:  "Send a message to the person at the console",
		Schema: json.RawMessage(schema),
		Examples: core.Examples{
			Description: "Says something to the person who sits at this terminal.",
			Instructions: core.Instructions{
				WhenToUse:      "To answer, to ask, to tell: whatever you want the person to read.",
				CommonPitfalls: []string{"The words belong into text, and no other key.", "A path of another interface is refused."},
				Notes:          []string{"Markdown is shown: emphasis, lists, quotes, code.", "Several messages are several actions."},
			},
			Examples: []core.Example{
				{Scenario: "Answering the message at hand", Payload: json.RawMessage(`{"text":"Sure. Which one do you mean?"}`)},
				{Scenario: "The same, with the place named", Payload: json.RawMessage(`{"text":"Here is the list:\n- one\n- two","interface_path":` + string(path) + `}`)},
			},
		},
		Essential: true,
		Effects:   core.EffectNone, Permission: core.PermissionEveryone,
		Idempotent: true, // each part that was sent is journalled
		Check:      func(_ context.Context, call core.Call) error { _, err := c.message(call); return err },
		Do:         c.send,
	}}
}

// message reads a call's payload.
func (c *Console) message(call core.Call) (core.Sent, error) {
	var p struct {
		Text string `json:"text"`
		Path string `json:"interface_path"`
	}
	if err := json.Unmarshal(call.Payload, &p); err != nil {
		return core.Sent{}, &core.Error{Kind: core.Invalid, Text: "the payload must be an object with text", Err: err}
	}
	to := call.Path
	if p.Path != "" {
		parsed, err := core.ParsePath(p.Path)
		if err != nil {
			return core.Sent{}, &core.Error{Kind: core.Invalid, Text: "interface_path is no path: write " + c.place.String(), Err: err}
		}
		to = parsed
	}
	if !c.owns(to) {
		return core.Sent{}, core.Errorf(core.Invalid, "%s%s writes to %s only, not to %q: correct or leave out interface_path",
			core.MessagePrefix, c.opt.Name, c.place, to)
	}
	text := clean(p.Text, true)
	if trim(text, len(text)) == "" {
		return core.Sent{}, core.Errorf(core.Invalid, "text is empty: say something, or leave the action out")
	}
	return core.Sent{Path: to, Text: text}, nil
}

// send carries the message action out.
func (c *Console) send(ctx context.Context, call core.Call) (core.Result, error) {
	what, err := c.message(call)
	if err != nil {
		return core.Result{}, err
	}
	err = call.Deliveries.Send(ctx, 1, what, func(context.Context, string) (string, error) {
		if err := c.say(what.Text); err != nil {
			return "", &core.Error{Kind: core.Broken, Text: "the console cannot be written to", Err: err}
		}
		return c.nextID(), nil
	})
	return core.Result{}, err
}
