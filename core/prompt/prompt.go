package prompt

import (
	"encoding/json"
	"maps"
	"slices"
	"time"

	"synthbot/core"
	"synthbot/core/llm"
	"synthbot/core/watch"
)

// Kind is what a prompt is for.
type Kind string

// Kinds of prompt. Corrections are made of a Prompt, by a Correction.
const (
	Chat     Kind = ""         // answers messages and other events
	Delivery Kind = "delivery" // gives outputs of actions back to the model
	Beat     Kind = "beat"     // on the bot's own initiative
)

// Parts is everything that a prompt is made of. Build does not change it.
type Parts struct {
	Kind      Kind
	Interface string // the name of the interface that serves the place
	Persona   core.Persona
	Standing  []string     // further hints before the rules, for this place
	Messages  []core.Entry // what the turn answers, in order; at least one
	Context
	llm.Contents // of attachments

	Actions []Action // in the order in which they are shown
	Cache   *Cache   // required
	Chat    bool     // the interface owns a message action
	Lite    bool
	Scope   string
	Zone    *time.Location // of all times; nil: they stay in their own

	Outputs []Output // of a Delivery
	Said    []string // of a Delivery: what this turn sent already
}

// Context is what is known when the turn begins.
type Context struct {
	History      []core.Entry      // the place's window, oldest first, without Parts.Messages
	Recent       []core.Entry      // of other places, oldest first; private ones are left out in any case
	Participants []json.RawMessage // people of the window, one object each
	Memories     []json.RawMessage // best first
	State        core.State
	Recon        Recon
	Injections   map[string]json.RawMessage // by their keys in the context
}

// Action is an action as a prompt shows it.
type Action struct {
	Name, Brief string
	Schema      json.RawMessage // as schema.MinifyForPrompt makes it
	Essential   bool            // stays in a lite prompt
}

// Output is the result of one action of the plan that a Delivery follows.
type Output struct {
	Action   string
	Payload  json.RawMessage
	Progress core.Progress
	Output   json.RawMessage
	Text     string // of its error
}

// Recon holds the hints about the message; Merge makes it.
type Recon struct {
	Language         string // BCP 47
	MessageTone      string
	ConversationTone string
	Snippets         []string
	Instructions     []string
	Memories         []string // after those of the Context
}

// Prompt is the JSON prompt, within its limit. Context, Input and Actions are compact JSON objects.
type Prompt struct {
	Context, Input, Actions string
	System                  string   // the system_message of a Delivery; else ""
	Offered                 []string // names of the actions
	Instructions, Verbose   string
	Before                  int // characters before reduction
	Size                    int // characters now

	parts  *Parts
	limits llm.Limits
	draft  *draft
}

// Build makes the prompt for an engine with these limits: it writes and measures every part once, and reduces what is
// too long. It leaves room for the messages that follow the prompt: the model's plan, if there is one, and further
// texts. It includes example dialogue only if the texts that stay the same in every turn take at most half of the
// limit, so that it does not come and go. It keeps p, which must not change as long as the prompt is used. The error is
// a *llm.Error of kind llm.ErrorTooLong that names the sizes.
func Build(p *Parts, l llm.Limits, following ...string) (Prompt, error) {
	reserve := textSize(p.plan())
	for _, text := range following {
		reserve += textSize(text)
	}
	d, spared := &draft{system: p.system()}, 0 // characters of example dialogue that was left out
	if p.Chat && !p.Lite {
		d.verbose = rulesChat
	}
	d.preamble = p.preamble(l.Dialect, p.Persona.Dialogue)
	if l.Chars > 0 && d.stays+textSize(d.verbose) > l.Chars/2 {
		spared = d.size
		d.preamble = p.preamble(l.Dialect, "")
		spared -= d.size
	}
	d.write(p, l)
	d.fixed = frame + d.input.size + d.actions.size + d.size
	if len(d.system.raw) > 0 {
		d.fixed += len(`"system_message":,`) + d.system.size
	}
	if d.verbose != "" {
		d.fixed += len(`"instructions_verbose":"",`) + textSize(d.verbose)
	}
	d.fixed += spared
	d.before = d.total(0)
	d.fixed -= spared
	if err := d.reduce(reserve, l); err != nil {
		return Prompt{}, err
	}
	context := d.text[len(`{"context":`) : len(d.text)-len(`,"input":}`)-len(d.input.raw)]
	out := Prompt{
		Context: context, Input: d.input.raw, System: d.system.raw,
		Instructions: d.instructions, Verbose: d.verbose, Actions: d.actions.raw, Offered: d.offered,
		Before: d.before, Size: d.total(d.before), parts: p, limits: l, draft: d,
	}
	if out.fits(reserve) {
		return out, nil
	}
	return out.withinTokens(reserve, following)
}

// JSON returns the compact JSON of the prompt, of Size characters. '<', '>' and '&' are not escaped.
func (p *Prompt) JSON() []byte {
	w := new(writer)
	w.Grow(p.Size + p.Size/8)
	w.open('{')
	w.raw("context", p.Context)
	w.raw("input", p.Input)
	if len(p.System) > 0 {
		w.raw("system_message", p.System)
	}
	w.text("instructions", p.Instructions)
	w.optional("instructions_verbose", p.Verbose)
	w.raw("actions", p.Actions)
	w.number("__pre_reduction_size", int64(p.Before))
	w.close('}')
	return []byte(w.String())
}

// Sections returns the sizes of the prompt's pieces, the keys of the context first.
func (p *Prompt) Sections() []watch.Section {
	list := make([]watch.Section, 0, 8)
	for i := range p.draft.context {
		s := &p.draft.context[i]
		if s.had > 0 {
			n := len(s.items)
			list = append(list, watch.Section{Name: "context." + s.name, Size: s.cost(), Items: n, Dropped: s.had - n})
		}
	}
	for _, s := range []watch.Section{
		{Name: "input", Size: p.draft.input.size}, {Name: "system_message", Size: p.draft.system.size},
		{Name: "instructions", Size: textSize(p.Instructions)},
		{Name: "instructions_verbose", Size: textSize(p.Verbose)}, {Name: "actions", Size: p.draft.actions.size},
	} {
		if s.Size > 0 {
			list = append(list, s)
		}
	}
	return list
}

// write writes the user message: the context, and what the turn answers.
func (d *draft) write(p *Parts, l llm.Limits) {
	w, texts, guess := &writer{zone: p.Zone, marks: p.Marks()}, 0, 512
	for _, list := range [][]core.Entry{p.Recent, p.History, p.Messages} {
		for i := range list {
			texts += 1 + len(list[i].Message.Foreign)
			guess += len(list[i].Message.Author.Name) + list[i].Message.TextSize()
		}
	}
	for _, value := range slices.Concat(p.Participants, p.Memories, slices.Collect(maps.Values(p.Injections))) {
		guess += 32 + len(value)
	}
	w.Grow(guess + 64*texts)
	w.slots = make([]slot, 0, texts)
	w.open('{')
	w.object("context")
	isPrivate := func(e *core.Entry) bool { return e.Message.Private }
	d.context = make([]section, injected, injected+len(p.Injections)+2)
	d.context[currentChat] = w.history("history_current_chat", spoken(p.History), false)
	d.context[recentElsewhere] = w.history("history_recent", slices.DeleteFunc(spoken(p.Recent), isPrivate), true)
	d.context[participants] = w.values("participants", p.Participants)
	d.context[memories] = w.values("memories", p.Memories, p.Recon.Memories...)
	d.context[state] = w.state(&p.State)
	d.context = append(d.context, w.injections(p.Injections)...)
	orders := p.Recon.Instructions
	d.context = append(d.context, w.recon(p.Kind, &p.Recon),
		w.section("recon_instructions", false, min(len(orders), 1), func(int) { w.items(orders) }))
	w.close('}')
	w.key("input")
	w.begin()
	p.input(w, l)
	d.input = w.done()
	w.close('}')
	d.text = w.String()
}

// frame is the size of a prompt's keys and brackets, without the context's value and the number at the end.
const frame = len(`{"context":,"input":,"instructions":"","actions":,"__pre_reduction_size":}`)
