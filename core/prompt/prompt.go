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

// Prompt is the JSON prompt, within its limit.
type Prompt struct {
	preamble
	parts         *Parts
	limits        llm.Limits
	context       []section
	input, system part   // system is the system_message of a Delivery
	text          string // of the user message
	verbose       string // instructions_verbose
	fixed         int    // characters without the context's value and the number at the end
	before        int    // characters before reduction
	limit         int    // of characters, while it is reduced
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
	out := &Prompt{parts: p, limits: l, system: p.system()}
	spared := 0 // characters of example dialogue that was left out
	if p.Chat && !p.Lite {
		out.verbose = rulesChat
	}
	out.preamble = p.preamble(l.Dialect, p.Persona.Dialogue)
	if l.Chars > 0 && out.stays+textSize(out.verbose) > l.Chars/2 {
		spared = out.size
		out.preamble = p.preamble(l.Dialect, "")
		spared -= out.size
	}
	out.write()
	out.fixed = frame + out.input.size + out.actions.size + out.size
	if len(out.system.raw) > 0 {
		out.fixed += len(`"system_message":,`) + out.system.size
	}
	if out.verbose != "" {
		out.fixed += len(`"instructions_verbose":"",`) + textSize(out.verbose)
	}
	out.fixed += spared
	out.before = out.total(0)
	out.fixed -= spared
	if err := out.reduce(reserve); err != nil {
		return Prompt{}, err
	}
	if out.fits(reserve) {
		return *out, nil
	}
	return out.withinTokens(reserve, following)
}

// contextJSON returns the value of the context in the user message.
func (p *Prompt) contextJSON() string {
	return p.text[len(`{"context":`) : len(p.text)-len(`,"input":}`)-len(p.input.raw)]
}

// JSON returns the compact JSON of the prompt. '<', '>' and '&' are not escaped.
func (p *Prompt) JSON() []byte {
	w := new(writer)
	w.open('{')
	w.raw("context", p.contextJSON())
	w.raw("input", p.input.raw)
	if len(p.system.raw) > 0 {
		w.raw("system_message", p.system.raw)
	}
	w.text("instructions", p.instructions)
	w.optional("instructions_verbose", p.verbose)
	w.raw("actions", p.actions.raw)
	w.number("__pre_reduction_size", int64(p.before))
	w.close('}')
	return []byte(w.String())
}

// Sections returns the sizes of the prompt's pieces, the keys of the context first.
func (p *Prompt) Sections() []watch.Section {
	list := make([]watch.Section, 0, 8)
	for i := range p.context {
		s := &p.context[i]
		if s.had > 0 {
			n := len(s.items)
			list = append(list, watch.Section{Name: "context." + s.name, Size: s.cost(), Items: n, Dropped: s.had - n})
		}
	}
	for _, s := range []watch.Section{
		{Name: "input", Size: p.input.size}, {Name: "system_message", Size: p.system.size},
		{Name: "instructions", Size: textSize(p.instructions)},
		{Name: "instructions_verbose", Size: textSize(p.verbose)}, {Name: "actions", Size: p.actions.size},
	} {
		if s.Size > 0 {
			list = append(list, s)
		}
	}
	return list
}

// write writes the user message: the context, and what the turn answers.
func (p *Prompt) write() {
	in := p.parts
	w, texts, guess := &writer{zone: in.Zone, marks: in.Marks()}, 0, 512
	for _, list := range [][]core.Entry{in.Recent, in.History, in.Messages} {
		for i := range list {
			texts += 1 + len(list[i].Message.Foreign)
			guess += len(list[i].Message.Author.Name) + list[i].Message.TextSize()
		}
	}
	for _, value := range slices.Concat(in.Participants, in.Memories, slices.Collect(maps.Values(in.Injections))) {
		guess += 32 + len(value)
	}
	w.Grow(guess + 64*texts)
	w.slots = make([]slot, 0, texts)
	w.open('{')
	w.object("context")
	isPrivate := func(e *core.Entry) bool { return e.Message.Private }
	p.context = make([]section, injected, injected+len(in.Injections)+2)
	p.context[currentChat] = w.history("history_current_chat", spoken(in.History), false)
	p.context[recentElsewhere] = w.history("history_recent", slices.DeleteFunc(spoken(in.Recent), isPrivate), true)
	p.context[participants] = w.values("participants", in.Participants)
	p.context[memories] = w.values("memories", in.Memories, in.Recon.Memories...)
	p.context[state] = w.state(&in.State)
	p.context = append(p.context, w.injections(in.Injections)...)
	orders := in.Recon.Instructions
	p.context = append(p.context, w.recon(in.Kind, &in.Recon),
		w.section("recon_instructions", false, min(len(orders), 1), func(int) { w.items(orders) }))
	w.close('}')
	w.key("input")
	w.begin()
	in.input(w, p.limits)
	p.input = w.done()
	w.close('}')
	p.text = w.String()
}

// frame is the size of a prompt's keys and brackets, without the context's value and the number at the end.
const frame = len(`{"context":,"input":,"instructions":"","actions":,"__pre_reduction_size":}`)
