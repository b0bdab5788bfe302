package prompt

import (
	"encoding/json"

	"synthbot/core"
	"synthbot/core/llm"
)

// Request is the prompt as it travels, what changes least in front and byte-identical from turn to turn:
// instructions, instructions_verbose and actions are the system's, context and input the user's. In the tools dialect
// the actions travel as tools and the history as turns.
func (p *Prompt) Request() llm.Request {
	r := llm.Request{System: []string{p.Instructions}}
	if p.Verbose != "" {
		r.System = append(r.System, p.Verbose)
	}
	ask := llm.Utterance{Role: llm.RoleUser, Text: p.draft.text}
	if p.limits.Dialect == llm.DialectTools {
		r.Tools = p.tools()
		r.Messages = p.draft.context[currentChat].turns()
		ask.Text = p.draft.message(false)
	} else {
		r.System = append(r.System, p.draft.catalogue)
	}
	if p.limits.Vision {
		ask.Pictures = p.parts.attached(core.MediaImage, p.parts.Pictures)
	}
	if p.limits.Hearing {
		ask.Sounds = p.parts.attached(core.MediaAudio, p.parts.Sounds)
	}
	r.Messages = alternate(append(r.Messages, ask))
	switch { // the exchange that follows: what the model asked for, and what came of it
	case p.System == "":
	case p.limits.Dialect == llm.DialectTools:
		r.Messages = append(r.Messages, p.results()...)
	default:
		r.Messages = append(r.Messages, llm.Utterance{Role: llm.RoleModel, Text: p.parts.plan()},
			llm.Utterance{Role: llm.RoleUser, Text: `{"system_message":` + p.System + `}`})
	}
	return r
}

// turns are the history as native turns: the bot's own lines as the plans that
// they came from, all others as the objects that name their authors.
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

// opening precedes a conversation that the bot began: APIs want a person's words first.
const opening = `{"system_message":{"type":"history","message":"You spoke first."}}`

// alternate joins neighbours of one role, line by line: some models' templates
// refuse two in a row. Each line is one JSON object, so none can pass for two.
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

// controls are the built-in actions, which no catalogue shows.
func controls() []llm.Tool {
	nothing := json.RawMessage(`{"type":"object","properties":{}}`)
	return []llm.Tool{
		{Name: "IGNORE", Brief: "Say no more until addressed", Schema: nothing},
		{Name: "NONE", Brief: "Say and do nothing", Schema: nothing},
		{Name: "CONTINUE", Brief: "Take another turn after this one", Schema: nothing},
	}
}

// tools are the actions as an API's tools, under their own names: what an API
// does not take in a name is the engine's to map, there and back.
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
