package plan

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"synthbot/core"
	"synthbot/core/llm"
	"synthbot/core/txt"
)

// findings are the JSON values of a text that have the shape of a plan.
type findings struct {
	values []found
	other  bool // there is JSON of some other shape

	broken   string // text that was meant to be JSON, from where it begins
	adjacent bool   // nothing is between it and the value before it
}

type found struct {
	raw      json.RawMessage
	shape    shape
	adjacent bool // nothing but white space, commas, fences and tags is between it and the last value
}

// list reports whether the values are adjacent, so that they are one list of actions.
func (f *findings) list() bool {
	alone := func(v found) bool { return v.shape == shapePlan || !v.adjacent }
	return f.values[0].shape != shapePlan && !slices.ContainsFunc(f.values[1:], alone)
}

// find finds the JSON values of a text, up to broken JSON: inner parts of a plan that was cut off are not plans.
func find(text string) findings {
	var f findings
	at, last := 0, 0 // last is the end of the last value
	for range maxStarts {
		i := strings.IndexAny(text[at:], "{[")
		if i < 0 {
			break
		}
		at += i
		adjacent := at-last < 200 && betweenPattern().MatchString(text[last:at])
		raw, n := llm.Decode(text[at:])
		switch {
		case n > 0:
			f.add(raw, adjacent)
			at += n
			last = at
		case asidePattern().MatchString(text[at:]):
			at++
		default:
			f.broken, f.adjacent = brokenPart(text, at), adjacent
			return f
		}
	}
	return f
}

func (f *findings) add(raw json.RawMessage, adjacent bool) {
	v, _ := decode(raw)
	s := v.shape()
	again := func(v found) bool { return s == shapePlan && string(v.raw) == string(raw) }
	switch {
	case s == shapeNone:
		f.other = true
	case !slices.ContainsFunc(f.values, again):
		f.values = append(f.values, found{raw, s, adjacent})
	}
}

// asidePattern matches a pair of brackets in prose: with at most 200 characters inside, none of which
// is a bracket, quote or colon. It is large, and compiled when it is first needed.
var asidePattern = txt.Pattern(`^(?:\[[^\[\]{}"':]{0,200}\]|\{[^\[\]{}"':]{1,200}\})`)

// betweenPattern matches what may separate adjacent values.
var betweenPattern = txt.Pattern("^(?:\\s|[,;]|```[a-zA-Z]*|</?[a-zA-Z_]+>)*$")

// brokenPart returns the text from at, where broken JSON begins, to its end or that of the fenced block around it.
func brokenPart(text string, at int) string {
	if strings.Count(text[:at], "```")%2 == 1 {
		end := strings.LastIndex(text[at:], "\n```")
		if end >= 0 {
			return text[at : at+end]
		}
	}
	return text[at:]
}

// strip removes what surrounds an answer: reasoning, the marks of chat templates, and invalid bytes.
func strip(text string) string {
	if !utf8.ValidString(text) {
		text = strings.ToValidUTF8(text, "\uFFFD")
	}
	text = strings.TrimSpace(strings.Trim(text, "\uFEFF\x00"))
	if isObject([]byte(text)) {
		return text
	}
	return strings.TrimSpace(removeMarks(removeReasoning(text)))
}

var marksPattern = txt.Pattern(`<\|[a-zA-Z_]{1,32}\|>`)

// removeReasoning removes blocks of reasoning. A block that is never closed reaches to the end; one that is
// only closed, because the chat template opened it, starts at the beginning.
func removeReasoning(text string) string {
	for range maxStarts {
		open, end := llm.FindThought(text)
		json := strings.IndexAny(text, "{[")
		switch {
		case end != nil && (open == nil || end[0] < open[0]):
			if open == nil && !outside(text, json, end[0]) {
				return text
			}
			text = text[end[1]:]
		case open == nil || !outside(text, json, open[0]):
			return text
		case end == nil:
			return text[:open[0]]
		default:
			text = text[:open[0]] + text[end[1]:]
		}
	}
	return text
}

// outside reports whether a position is outside of the JSON value that begins at json.
func outside(text string, json, at int) bool {
	if json < 0 || at < json {
		return true
	}
	_, n := llm.Decode(text[json:])
	if n == 0 {
		return !strings.ContainsAny(text[at:], "}]") || strings.ContainsAny(text[at:], "{[")
	}
	return at >= json+n
}

// removeMarks removes marks like <|im_end|>. If a text has several channels, it returns the last one.
func removeMarks(text string) string {
	at := marksPattern().FindStringIndex(text)
	if at == nil {
		return text
	}
	open := strings.IndexAny(text, "{[")
	if open >= 0 && open < at[0] {
		_, n := llm.Decode(text[open:])
		if n > at[0]-open {
			return text // inside of a string
		}
		return text[:at[0]]
	}
	i := strings.LastIndex(text, "<|message|>")
	if i >= 0 {
		text = text[i:]
	}
	return marksPattern().ReplaceAllString(text, "")
}

var (
	// Signs of JSON or a tool call, of a note of the model to itself, and of its final answer.
	machinePattern = txt.Pattern(`(?is)[{\[]\s*["'{\[]|"\s*:\s*["{\[\d]|` +
		`<[|/]?\s*(tool|function|invoke|parameter)|\[/?(tool|inst|function)|` +
		"```\\s*(json|tool|xml|plan)" + `|\bmessage_[a-z0-9]+\b|` +
		`\b(action_input|interface_path|requiresConfirmation|fallbackAction|system_message)\b|<\|`)
	privatePattern = txt.Pattern(`(?im)^\W{0,4}(thought|thoughts|thinking|reasoning|analysis|` +
		`internal|internal note|private note|note to self|scratchpad|` +
		`action|action input|observation|plan|system|assistant|user)\W{0,4}:`)
	finalPattern = txt.Pattern(`(?i)^.*\bfinal answer\s*:\s*`)
)

// Prose returns a model's answer without what surrounds it. ok is false if users must not read
// the answer, because it has parts of JSON, of a tool call or of private reasoning in it.
func Prose(text string) (prose string, ok bool) {
	if len(text) > MaxText {
		return "", false
	}
	text = strip(text)
	i := strings.LastIndex(strings.ToLower(text), "final answer:")
	if i >= 0 {
		text = strings.TrimSpace(finalPattern().ReplaceAllString(text[i:], ""))
	}
	if json.Valid([]byte(text)) { // only a string may be for users
		text = strings.TrimSpace(value{raw: []byte(text)}.text())
	}
	isSaid := func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsSymbol(r) && r > 0xFF }
	switch {
	case text == "", len(text) > maxProse, machinePattern().MatchString(text), privatePattern().MatchString(text),
		text[0] == '<' && text[len(text)-1] == '>', // a page, or a tag of some tool
		llm.Unthink(text) != text, !strings.ContainsFunc(text, isSaid):
		return "", false
	}
	return text, true
}

// dropNestedPlans replaces a plan in the response by the response of that plan, because some models nest them.
// If it has none, or if a message holds a plan, that is a fault, and users do not see it.
func (r *reader) dropNestedPlans() {
	p := &r.plan
	if inner, ok := readInner(p.Response); ok {
		p.Response = llm.Unthink(inner.get("response").text())
		if p.Response == "" {
			r.fault("response", "is a plan itself; write there only what you say to people, and actions beside it")
		}
	}
	steps := p.Steps[:0]
	for i := range p.Steps {
		s := &p.Steps[i]
		if bytes.LastIndexByte(s.Payload, '{') > 0 && isMessageAction(s.Type) && isPlanText(s.Payload) {
			r.fault(fmt.Sprintf("actions[%d].payload.text", i), "is a plan; write there only what you say to people")
			continue
		}
		steps = append(steps, *s)
	}
	p.Steps = steps
}

func isMessageAction(name string) bool {
	return strings.HasPrefix(strings.ToLower(name), strings.TrimSuffix(core.MessagePrefix, "_"))
}

// unthink removes reasoning from all strings of a JSON value.
func unthink(raw json.RawMessage) json.RawMessage {
	clean := make(json.RawMessage, 0, len(raw))
	for {
		from := bytes.IndexByte(raw, '"')
		if from < 0 {
			return append(clean, raw...)
		}
		end := from + txt.StringEnd(raw[from:])
		quoted := raw[from:end]
		var text string
		if json.Unmarshal(quoted, &text) == nil && llm.Unthink(text) != text {
			quoted = core.JSON(llm.Unthink(text))
		}
		clean = append(append(clean, raw[:from]...), quoted...)
		raw = raw[end:]
	}
}

// isPlanText reports whether the text of a message is a plan.
func isPlanText(payload json.RawMessage) bool {
	var said struct{ Text, Message string }
	if json.Unmarshal(payload, &said) != nil {
		return false // the action's schema refuses it
	}
	_, text := readInner(said.Text)
	_, message := readInner(said.Message)
	return text || message
}

// readInner reads a text that is a plan and nothing else, in a fenced block or not.
func readInner(text string) (v value, ok bool) {
	text = strings.TrimSpace(text)
	body, fenced := strings.CutPrefix(text, "```")
	if fenced {
		_, body, _ = strings.Cut(body, "\n")
		text = strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(body), "```"))
	}
	if !isObject([]byte(text)) {
		return v, false
	}
	v, _ = decode([]byte(text))
	isStep := (v.has("type") || v.has("action")) && slices.ContainsFunc(payloadKeys, v.has)
	return v, v.has("response") || v.has("actions") || isStep
}
