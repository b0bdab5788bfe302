package turn

import (
	"encoding/json"

	"synthbot/core"
	"synthbot/core/prompt"
)

// beat is what the Data of an event of core.KindBeat says, as JSON.
type beat struct {
	Name    string   `json:"beat"`
	Quiet   bool     `json:"quiet,omitempty"`   // nothing is said, whatever the model wants
	Actions []string `json:"actions,omitempty"` // patterns of the only actions that it may take; none: all
}

// impulse prepares a turn that nobody spoke for.
func (t *turn) impulse() {
	e := &t.messages[0]
	if e.Kind != core.KindBeat {
		return
	}
	t.parts.Kind = prompt.Beat
	var b beat
	if err := json.Unmarshal([]byte(e.Data), &b); e.Data != "" && err != nil {
		t.log.Error("beat cannot be read", "err", err)
		b = beat{Quiet: true}
	}
	t.who.Only, t.who.Mute = b.Actions, b.Quiet
}

// unasked reports whether nobody waits for a word: the bot may keep silent.
func (t *turn) unasked() bool {
	for i := range t.messages {
		e := &t.messages[i]
		if e.Kind != core.KindBeat && e.Message.Addressed != core.Overheard {
			return false
		}
	}
	return true
}

// speechless is what is done when no engine answered: a reminder is said in its
// own words, those who spoke get an excuse, and nobody is bothered unasked.
func (t *turn) speechless(err error) core.Plan {
	e := &t.messages[0]
	switch {
	case t.unasked():
		return core.Plan{}
	case e.Kind == core.KindReminder && e.Message.Text != "":
		return t.say("⏰ " + e.Message.Text)
	}
	return t.say(trouble(err))
}
