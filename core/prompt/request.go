package prompt

import (
	"encoding/json"

	"synthbot/core"
	"synthbot/core/llm"
)

// Request returns the prompt as a request. What changes least comes first, byte-identical from turn to turn:
// instructions, instructions_verbose and actions are system messages; context and input are the user message. In the
// tools dialect the actions are tools, and each entry of the history is a message.
func (p *Prompt) Request() llm.Request {
	r := llm.Request{System: []string{p.instructions}}
	if p.verbose != "" {
		r.System = append(r.System, p.verbose)
	}
	ask := llm.Utterance{Role: llm.RoleUser, Text: p.text}
	if p.limits.Dialect == llm.DialectTools {
		r.Tools = p.tools()
		r.Messages = p.context[currentChat].turns()
		ask.Text = p.message(false)
	} else {
		r.System = append(r.System, p.catalogue)
	}
	if p.limits.Vision {
		ask.Pictures = p.parts.attached(core.MediaImage, p.parts.Pictures)
	}
	if p.limits.Hearing {
		ask.Sounds = p.parts.attached(core.MediaAudio, p.parts.Sounds)
	}
	r.Messages = alternate(append(r.Messages, ask))
	switch { // the model's plan and its results
	case p.system.raw == "":
	case p.limits.Dialect == llm.DialectTools:
		r.Messages = append(r.Messages, p.results()...)
	default:
		r.Messages = append(r.Messages, llm.Utterance{Role: llm.RoleModel, Text: p.parts.plan()},
			llm.Utterance{Role: llm.RoleUser, Text: `{"system_message":` + p.system.raw + `}`})
	}
	return r
}

// turns returns the history as native messages: the bot's as plans, others as objects that name their authors.
func (s *section) turns() []llm.Utterance {
	list := make([]llm.Utterance, len(s.items))
	for i := range s.items {
		p := &s.items[i]
		list[i] = llm.Utterance{Role: llm.RoleUser, Text: p.raw}
		if s.lines[i].Self {
			text := p.raw[p.slots[0].from:p.slots[0].to]
			list[i] = llm.Utterance{Role: llm.RoleModel, Text: `{"response":` + text + `}`}
		}
	}
	return list
}

// opening precedes a conversation that the bot began: APIs require a user message first.
const opening = `{"system_message":{"type":"history","message":"You spoke first."}}`

// alternate joins adjacent messages of one role, a line each, because some models'
// templates refuse two in a row. Each line is one JSON object, so none can pass for two.
func alternate(list []llm.Utterance) []llm.Utterance {
	var out []llm.Utterance
	if len(list) > 0 && list[0].Role == llm.RoleModel {
		out = append(out, llm.Utterance{Role: llm.RoleUser, Text: opening})
	}
	for _, u := range list {
		n := len(out)
		if n == 0 || out[n-1].Role != u.Role {
			out = append(out, u)
			continue
		}
		out[n-1].Text += "\n" + u.Text
		out[n-1].Pictures = append(out[n-1].Pictures, u.Pictures...)
		out[n-1].Sounds = append(out[n-1].Sounds, u.Sounds...)
	}
	return out
}

// controls returns the built-in actions, which no catalogue holds.
func controls() []llm.Tool {
	nothing := json.RawMessage(`{"type":"object","properties":{}}`)
	return []llm.Tool{
		{Name: "IGNORE", Brief: "Say no more until addressed", Schema: nothing},
		{Name: "NONE", Brief: "Say and do nothing", Schema: nothing},
		{Name: "CONTINUE", Brief: "Take another turn after this one", Schema: nothing},
	}
}

// tools returns the actions under their own names: the engine maps those that its API does not accept.
func (p *Prompt) tools() []llm.Tool {
	list := controls()
	for i := range p.parts.Actions {
		a := &p.parts.Actions[i]
		if p.parts.Lite && !a.Essential {
			continue
		}
		t := llm.Tool{Name: a.Name, Brief: a.Brief, Schema: json.RawMessage(`{"type":"object","properties":{}}`)}
		if len(a.Schema) > 0 && !p.parts.Lite {
			t.Schema = a.Schema
		}
		list = append(list, t)
	}
	return list
}
