package offline

import (
	"encoding/json"
	"slices"
	"strings"

	"synthbot/core"
)

// plan holds the keys of a plan that this engine uses.
type plan struct {
	Response string `json:"response,omitempty"`
	Intent   string `json:"intent,omitempty"`
	Actions  []step `json:"actions"`
}

type step struct {
	Type       string           `json:"type"`
	Payload    json.RawMessage  `json:"payload,omitempty"`
	Conditions []core.Condition `json:"conditions,omitempty"`
}

func newStep(action string, values map[string]any) step {
	data, _ := json.Marshal(values)
	return step{Type: action, Payload: data}
}

func act(intent string, steps ...step) plan { return plan{Intent: intent, Actions: steps} }

// speak returns a plan that sends one text after the further steps. The text goes into `response` if the interface has
// no message action, or if the last plan was invalid.
func (s *speaker) speak(intent, text string, further ...step) plan {
	text = join(s.greeting, text, s.other)
	p := plan{Intent: intent, Actions: further}
	name := s.messageAction()
	if name == "" || s.notice != nil && s.notice.Type == "error" {
		p.Response = text
		return p
	}
	values := map[string]any{"text": text}
	if s.payload.Source.Path != "" {
		values["interface_path"] = s.payload.Source.Path
	}
	p.Actions = append(p.Actions, newStep(name, values))
	return p
}

type output struct {
	Action  string          `json:"action"`
	Outcome string          `json:"outcome"`
	Output  json.RawMessage `json:"output"`
	Error   string          `json:"error"`
}

// answerNotice answers a notice of the bot: an error in the last plan, or the outputs of its
// actions. It understands the user's message again.
func (s *speaker) answerNotice() plan {
	m := s.meaning()
	k := s.kinds[m.topic]
	switch {
	case s.notice.Type != "error":
		return s.answerOutputs(m)
	case m.topic == "", k.acts():
		return s.speak("", s.say("failed"))
	}
	return s.speak(k.intent, s.answer(m))
}

// answerOutputs puts the outputs of actions into words, unless the plan has already sent an answer.
func (s *speaker) answerOutputs(m understood) plan {
	var d struct {
		Outputs []output `json:"outputs"`
		Said    []string `json:"already_sent"`
	}
	_ = json.Unmarshal(s.notice.Raw, &d)
	i := slices.IndexFunc(d.Outputs, func(o output) bool {
		progress := core.Progress(o.Outcome)
		return o.Error != "" || progress == core.ProgressFailed || progress == core.ProgressSkipped
	})
	if i >= 0 {
		if d.Outputs[i].Action == actionRemind {
			return s.speak("", s.say("remindrefused"))
		}
		return s.speak("", s.say("failed"))
	}
	var found []string
	for _, o := range slices.Backward(d.Outputs) {
		switch {
		case o.Action == actionList && d.Outputs[0].Action != actionSearch:
			return reminderReplies{s}.listed(m, o.Output)
		case o.Action == actionList, o.Action == actionSearch:
			return noteReplies{s}.found(m, d.Outputs)
		case o.Action == actionRemind:
			return s.speak("", reminderReplies{s}.reminded(o.Output))
		case o.Action == actionCancel:
			set := slices.IndexFunc(d.Outputs, func(o output) bool { return o.Action == actionRemind })
			if set >= 0 { // the reminder was moved
				return s.speak("", reminderReplies{s}.reminded(d.Outputs[set].Output))
			}
			return reminderReplies{s}.cancelled(d.Outputs)
		}
		found = append(found, textsIn(o.Output, 6)...)
	}
	switch {
	case len(d.Said) > 0:
		return plan{Actions: []step{{Type: "NONE"}}}
	case len(d.Outputs) > 0 && d.Outputs[0].Action == actionDice && len(found) == 0:
		return s.speak("", chanceReplies{s}.rolled(d.Outputs[0].Output))
	case joinFound(found) != "":
		return s.speak("", s.say("done", "found", joinFound(found)))
	}
	return s.speak("", s.say("donenothing"))
}

// textsIn collects the texts for users in a JSON value of any form, down to a depth.
func textsIn(raw json.RawMessage, depth int) []string {
	var value any
	_ = json.Unmarshal(raw, &value)
	return textsOf(value, depth)
}

// textKeys are the keys of objects that are searched for texts, in this order.
const textKeys = "text content memory fact summary note value title message" +
	" output outputs result results memories items found data actions"

func textsOf(value any, depth int) (all []string) {
	if depth == 0 {
		return nil
	}
	switch v := value.(type) {
	case string:
		if strings.TrimSpace(v) != "" {
			return []string{v}
		}
	case []any:
		for _, item := range v {
			all = append(all, textsOf(item, depth-1)...)
		}
	case map[string]any:
		for key := range strings.FieldsSeq(textKeys) {
			all = textsOf(v[key], depth-1)
			if len(all) > 0 {
				return all
			}
		}
	}
	return all
}
