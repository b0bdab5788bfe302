package turn

import (
	"encoding/json"
	"time"

	"synthbot/core"
	"synthbot/core/gate"
	"synthbot/core/prompt"
)

// beat is the Data of an event of core.KindBeat, as JSON.
type beat struct {
	Quiet   bool     `json:"quiet,omitempty"`   // the turn may send nothing
	Actions []string `json:"actions,omitempty"` // patterns of the only actions that it may use; none: all
}

// readBeat prepares the turn of a beat, which no user caused.
func (t *turn) readBeat() {
	e := &t.messages[0]
	t.input.parts.Kind = prompt.Beat
	var b beat
	err := json.Unmarshal([]byte(e.Data), &b)
	if err != nil && e.Data != "" {
		t.log.Error("beat cannot be read", "err", err)
		b = beat{Quiet: true}
	}
	t.who.Only, t.who.Mute = b.Actions, b.Quiet
}

const (
	beatLasts    = 10 * time.Minute // how long a beat may wait for its turn before it is dropped
	remindedLate = 2 * time.Minute  // how long a reminder may wait before it says that it is late
)

// waited is how long an entry has waited for its turn.
func (s *setup) waited(e *core.Entry) time.Duration { return s.Clock().Sub(e.Message.SentAt()) }

// lateBy is how late a reminder was when it was received.
func lateBy(e *core.Entry) time.Duration {
	var data struct {
		Seconds int `json:"late_seconds"`
	}
	_ = json.Unmarshal([]byte(e.Data), &data) // other reminders have other data
	return time.Duration(data.Seconds) * time.Second
}

// isSuppressed reports whether a beat is dropped: the bot is asleep in its place, or a gate keeps the bot quiet in a
// group to which the beat may send messages.
func (s *setup) isSuppressed(e *core.Event) bool {
	m := &e.Message
	if s.Places.Asleep(m.Path) {
		return true
	}
	var b beat
	if m.Private || json.Unmarshal([]byte(e.Data), &b) == nil && b.Quiet {
		return false
	}
	nobody := core.Message{Path: m.Path, Scopes: m.Scopes, Time: m.Time}
	return s.askGates(&nobody, true).Admission != gate.Admit
}

// unasked reports whether nobody waits for a reply: the bot may keep silent.
func (t *turn) unasked() bool {
	for i := range t.messages {
		e := &t.messages[i]
		if e.Kind != core.KindBeat && e.Message.Addressed != core.AddressedOverheard {
			return false
		}
	}
	return true
}
