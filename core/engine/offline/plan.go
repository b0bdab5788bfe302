package offline

import (
	"encoding/json"
	"slices"

	"synthbot/core"
	"synthbot/core/engine/offline/outputs"
)

// plan is the reply contract's object, as far as this engine uses it.
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

// speak is a plan that says one text, after the further steps. Where the interface has no message action, or this is
// a second try, the text travels as `response`.
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

// output is what came of one action.
type output struct {
	Action  string          `json:"action"`
	Outcome string          `json:"outcome"`
	Output  json.RawMessage `json:"output"`
	Error   string          `json:"error"`
}

// notified answers a notice of the bot itself: an error in the last plan, or what
// came of its actions. What was asked is understood anew.
func (s *speaker) notified() plan {
	m := s.understand(s.message())
	s.use(m.book)
	s.other = s.ofOther(m)
	if s.notice.Type == "error" {
		switch m.topic {
		case "", "remind", "timeleft", "remindlist", "remindcancel", "remember", "forget", "nolonger", "dice",
			"recall", "recallme", "mylikes", "mydislikes", "whois":
			return s.speak("", s.say("failed"))
		}
		return s.speak(intents()[m.topic], s.chat(m))
	}
	return s.delivered(m)
}

// delivered words the outputs of actions. Where that was said already, it says no more.
func (s *speaker) delivered(m understood) plan {
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
		switch o.Action {
		case actionList:
			if d.Outputs[0].Action != actionSearch {
				return reminding{s}.listed(m, o.Output)
			}
			return noting{s}.found(m, d.Outputs)
		case actionSearch:
			return noting{s}.found(m, d.Outputs)
		case actionRemind:
			return s.speak("", reminding{s}.reminded(o.Output))
		case actionCancel:
			set := slices.IndexFunc(d.Outputs, func(o output) bool { return o.Action == actionRemind })
			if set >= 0 { // another time
				return s.speak("", reminding{s}.reminded(d.Outputs[set].Output))
			}
			return reminding{s}.cancelled(d.Outputs)
		}
		found = append(found, outputs.Texts(o.Output, 6)...)
	}
	switch {
	case len(d.Said) > 0:
		return plan{Actions: []step{{Type: "NONE"}}}
	case len(d.Outputs) > 0 && d.Outputs[0].Action == actionDice && len(found) == 0:
		return s.speak("", s.rolled(d.Outputs[0].Output))
	case joinFound(found) != "":
		return s.speak("", s.with("done", "found", joinFound(found)))
	}
	return s.speak("", s.say("donenothing"))
}
