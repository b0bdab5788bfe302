package prompt

import (
	"cmp"
	"encoding/json"
	"strings"

	"synthbot/core"
	"synthbot/core/llm"
)

// Bounds of a correction, in characters.
const (
	replyQuote    = 800
	messageQuote  = 400
	faultsQuote   = 1200 // all faults together
	examplesQuote = 700  // the third tier of one action
)

// Correction asks a model to correct its answer to Prompt.
type Correction struct {
	Prompt  *Prompt
	Faults  []core.Fault
	Reply   string
	Calls   []llm.ToolCall // of the reply, in the tools dialect
	Actions []CorrectionAction
}

// CorrectionAction is an action that a fault is about, in its three tiers.
type CorrectionAction struct {
	Name, Brief string
	Schema      json.RawMessage
	Examples    core.Examples
}

// requiredFormat is an example of a plan with all keys.
const requiredFormat = `{"response":"text","intent":"query","confidence":0.9,` +
	`"actions":[{"type":"NAME","payload":{},"priority":5,"requiresConfirmation":false,"confirmationMessage":"text",` +
	`"fallbackAction":{"type":"NAME","payload":{}},` +
	`"conditions":[{"field":"results.NAME.key","operator":"eq","value":"text"}],"unit":""}],` +
	`"context":{"topic":"text","entities":{},"slotsFilled":{},"slotsRequired":["name"]},` +
	`"suggestions":["text"],"metadata":{}}`

// Request returns the prompt again, the model's reply, and the correction as the last user message. The context is
// reduced to make room for them. If that is not enough, the request has only the instructions and the correction.
func (c Correction) Request() llm.Request {
	p, message := c.Prompt, c.message()
	reply := strings.ToValidUTF8(cmp.Or(cut(llm.Unthink(c.Reply), replyQuote), "{}"), "\uFFFD")
	retry := []llm.Utterance{{Role: llm.RoleModel, Text: reply}, {Role: llm.RoleUser, Text: message}}
	reserve := textSize(p.parts.plan()) + textSize(message) + textSize(reply)
	if !p.fits(reserve) {
		smaller, err := Build(p.parts, p.limits, message, reply)
		if err != nil {
			r := p.Request()
			r.Messages = retry[1:]
			return r
		}
		p = &smaller
	}
	r := p.Request()
	r.Messages = append(r.Messages, retry...)
	return r
}

func (c *Correction) message() string {
	asked, _ := c.Prompt.parts.said()
	w := new(writer)
	w.open('{')
	w.object("system_message")
	w.text("type", "error")
	w.text("message", c.faults())
	w.text("your_reply", cut(c.reply(), replyQuote))
	w.text("original_user_message", cut(asked, messageQuote))
	w.object("attempted_actions")
	for i := range c.Actions {
		a := &c.Actions[i]
		w.object(a.Name)
		w.value("schema", a.Schema)
		w.text("brief", a.Brief)
		w.value("examples", examples(a.Examples))
		w.close('}')
	}
	w.close('}')
	w.raw("required_format", requiredFormat)
	w.close('}')
	w.close('}')
	return w.String()
}

// faults returns what was wrong, by field.
func (c *Correction) faults() string {
	lines := make([]string, len(c.Faults))
	for i, f := range c.Faults {
		lines[i] = f.String()
	}
	text := cut(strings.Join(lines, "\n"), faultsQuote)
	return cmp.Or(text, "The reply was no plan.") + "\nSend the whole reply again, corrected, in required_format."
}

// reply returns the model's reply without reasoning, with tool calls as a plan.
func (c *Correction) reply() string {
	if len(c.Calls) == 0 {
		return llm.Unthink(c.Reply)
	}
	return strings.TrimSpace(llm.Unthink(c.Reply) + "\n" + llm.Unthink(planOf(c.Calls)))
}

// examples returns the third tier, shortened to examplesQuote.
func examples(e core.Examples) json.RawMessage {
	e.SideEffects, e.Similar = nil, nil // they help to choose an action, not to write it
	for {
		raw, err := json.Marshal(e)
		switch {
		case err == nil && len(raw) <= len(`{}`):
			return nil
		case err == nil && size(string(raw)) <= examplesQuote:
			return raw
		case len(e.Examples) > 1:
			e.Examples = e.Examples[:len(e.Examples)-1]
		case len(e.Instructions.Notes) > 0:
			e.Instructions.Notes = nil
		case e.Description != "":
			e.Description = ""
		case len(e.Instructions.CommonPitfalls) > 0:
			e.Instructions.CommonPitfalls = nil
		case len(e.Examples) > 0:
			e.Examples = nil
		default:
			return nil
		}
	}
}
