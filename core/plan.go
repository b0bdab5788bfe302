package core

import "encoding/json"

// DefaultPriority is a step's priority if the model gives none.
const DefaultPriority = 5

// Plan is what a model wants to do, read from its answer and normalised. Its JSON form is the one that prompts ask for.
type Plan struct {
	Response    string          `json:"response,omitempty"` // one message to the current path
	Intent      string          `json:"intent,omitempty"`
	Confidence  *float64        `json:"confidence,omitempty"`
	Steps       []Step          `json:"actions,omitempty"`
	Context     State           `json:"context,omitzero"`
	Suggestions []string        `json:"suggestions,omitempty"`
	Metadata    json.RawMessage `json:"metadata,omitempty"`
	// Extra holds the unknown top-level keys.
	Extra map[string]json.RawMessage `json:"extra,omitempty"`
	// Repaired means that the answer was invalid JSON and was repaired. Such a plan may only send messages.
	Repaired bool `json:"repaired,omitempty"`
}

// Step is one action that a plan asks for.
type Step struct {
	Type        string          `json:"type"`
	Payload     json.RawMessage `json:"payload,omitempty"` // an object
	Target      string          `json:"target,omitempty"`  // a value that the check moves into the payload
	Priority    int             `json:"priority"`          // 0 to 10, higher first
	Confirm     bool            `json:"requiresConfirmation,omitempty"`
	ConfirmText string          `json:"confirmationMessage,omitempty"`
	Fallback    *Step           `json:"fallbackAction,omitempty"`
	Conditions  []Condition     `json:"conditions,omitempty"`
	Unit        string          `json:"unit,omitempty"`    // steps of the same unit succeed or are undone together
	Missing     []string        `json:"missing,omitempty"` // set by the check: properties that the user is asked for
}

// Condition must hold when its step would run; otherwise the step is skipped.
type Condition struct {
	Field    string          `json:"field"`    // dotted
	Operator string          `json:"operator"` // eq, neq, gt, gte, lt, lte, contains, exists
	Value    json.RawMessage `json:"value,omitempty"`
}

// State is what a conversation is about, carried from turn to turn.
type State struct {
	Topic         string                     `json:"topic,omitempty"`
	Entities      map[string]json.RawMessage `json:"entities,omitempty"`
	SlotsFilled   map[string]json.RawMessage `json:"slotsFilled,omitempty"`
	SlotsRequired []string                   `json:"slotsRequired,omitempty"`
	Status        string                     `json:"status,omitempty"` // "" or StatusCompleted
}

// StatusCompleted is the status of a conversation that the bot left with IGNORE. It ends when
// the bot is addressed again.
const StatusCompleted = "completed"

// IsZero reports whether nothing is known.
func (s State) IsZero() bool {
	return s.Topic == "" && s.Status == "" &&
		len(s.Entities) == 0 && len(s.SlotsFilled) == 0 && len(s.SlotsRequired) == 0
}

// Fault describes one mistake in a plan, for the model that made it.
type Fault struct {
	Field  string // where, as a dotted path ("actions[0].payload.text"); empty: the whole plan
	Text   string // what is wrong, and what would be right
	Action string // the action concerned, by its own name if it is known
}

func (f Fault) String() string {
	if f.Field == "" {
		return f.Text
	}
	return f.Field + ": " + f.Text
}
