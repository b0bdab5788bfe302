package plan

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"synthbot/core"
	"synthbot/core/llm"
	"synthbot/core/txt"
)

// maxProse is how much of a model's own words is passed on, in bytes.
const maxProse = 4000

var (
	// What gives away JSON, a call of a tool, or a note of the model to itself.
	machine = txt.Pattern(`(?is)[{\[]\s*["'{\[]|"\s*:\s*["{\[\d]|` +
		`<[|/]?\s*(tool|function|invoke|parameter)|\[/?(tool|inst|function)|` +
		"```\\s*(json|tool|xml|plan)" + `|\bmessage_[a-z0-9]+\b|` +
		`\b(action_input|interface_path|requiresConfirmation|fallbackAction|system_message)\b|<\|`)
	private = txt.Pattern(`(?im)^\W{0,4}(thought|thoughts|thinking|reasoning|analysis|` +
		`internal|internal note|private note|note to self|scratchpad|` +
		`action|action input|observation|plan|system|assistant|user)\W{0,4}:`)
	final = txt.Pattern(`(?i)^.*\bfinal answer\s*:\s*`)
)

// Prose returns a model's answer without what surrounds it. ok is false if the answer is not
// prose for users: if it has anything of JSON, of a tool call or of private reasoning in it.
func Prose(text string) (prose string, ok bool) {
	if len(text) > MaxText {
		return "", false
	}
	text = strip(text)
	i := strings.LastIndex(strings.ToLower(text), "final answer:")
	if i >= 0 {
		text = strings.TrimSpace(final().ReplaceAllString(text[i:], ""))
	}
	if json.Valid([]byte(text)) { // a string may be for users, no other value is
		var inner string
		if json.Unmarshal([]byte(text), &inner) != nil {
			return "", false
		}
		text = strings.TrimSpace(inner)
	}
	isSaid := func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsSymbol(r) && r > 0xFF }
	switch {
	case text == "" || len(text) > maxProse || machine().MatchString(text) || private().MatchString(text):
		return "", false
	case text[0] == '<' && text[len(text)-1] == '>': // a page, or a tag of some tool
		return "", false
	case llm.Unthink(text) != text, !strings.ContainsFunc(text, isSaid):
		return "", false
	}
	return text, true
}

// words keeps plans out of what is said to users: some models write one into the other. It
// takes the text of the inner plan; without one, it is a fault, and not said.
func (r *reader) words() {
	p := &r.plan
	if inner, ok := inside(p.Response); ok {
		p.Response = llm.Unthink(inner.text("response"))
		if p.Response == "" {
			r.fault("response", "is a plan itself; write what you say to people there, and actions beside it")
		}
	}
	steps := p.Steps[:0]
	for i := range p.Steps {
		if speaks(p.Steps[i].Type) && speaksAPlan(p.Steps[i].Payload) {
			r.fault(fmt.Sprintf("actions[%d].payload.text", i), "is a plan; write what you say to people there")
			continue
		}
		steps = append(steps, p.Steps[i])
	}
	p.Steps = steps
}

// speaks reports whether the action of that name sends a message.
func speaks(name string) bool {
	return strings.HasPrefix(strings.ToLower(name), strings.TrimSuffix(core.MessagePrefix, "_"))
}

var jsonString = txt.Pattern(`"(?:[^"\\]|\\.)*"`)

// unthink removes thoughts from all strings of a JSON value.
func unthink(raw json.RawMessage) json.RawMessage {
	return jsonString().ReplaceAllFunc(raw, func(quoted []byte) []byte {
		var text string
		if json.Unmarshal(quoted, &text) != nil {
			return quoted
		}
		words := llm.Unthink(text)
		if words == text {
			return quoted
		}
		clean, err := json.Marshal(words)
		if err != nil {
			return quoted
		}
		return clean
	})
}

// speaksAPlan reports whether the text of a message is a plan.
func speaksAPlan(payload json.RawMessage) bool {
	var said struct{ Text, Message string }
	if json.Unmarshal(payload, &said) != nil {
		return false // its schema will refuse it
	}
	_, text := inside(said.Text)
	_, message := inside(said.Message)
	return text || message
}

// inside reads a text that is a plan as a whole, in a fence or not.
func inside(text string) (f fields, ok bool) {
	text = strings.TrimSpace(text)
	body, fenced := strings.CutPrefix(text, "```")
	if fenced {
		_, body, _ = strings.Cut(body, "\n")
		text = strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(body), "```"))
	}
	f, err := object([]byte(text))
	if err != nil {
		return f, false
	}
	isStep := (f.has("type") || f.has("action")) && slices.ContainsFunc(payloadKeys, f.has)
	return f, f.has("response") || f.has("actions") || isStep
}
