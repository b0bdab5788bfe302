package core

import "encoding/json"

// DefaultPriority is a step's priority where the model names none.
const DefaultPriority = 5

// Plan is what a model wants done, read from its answer and normalised.
// The JSON form is the one of the reply contract.
type Plan struct {
	Response    string          `json:"response,omitempty"` // one message to the current path
	Intent      string          `json:"intent,omitempty"`
	Confidence  *float64        `json:"confidence,omitempty"`
	Steps       []Step          `json:"actions,omitempty"`
	Context     State           `json:"context,omitzero"`
	Suggestions []string        `json:"suggestions,omitempty"`
	Metadata    json.RawMessage `json:"metadata,omitempty"`
	// Extra holds the top-level keys that nobody registered.
	Extra map[string]json.RawMessage `json:"extra,omitempty"`
	// Repaired is set where the text was not JSON before it was repaired. Of such a plan only messages may run.
	Repaired bool `json:"repaired,omitempty"`
}

// Step is one action that a plan asks for.
type Step struct {
	Type        string          `json:"type"`
	Payload     json.RawMessage `json:"payload,omitempty"` // an object
	Target      string          `json:"target,omitempty"`  // a value of the payload, until the plan is checked
	Priority    int             `json:"priority"`          // 0 to 10, higher first
	Confirm     bool            `json:"requiresConfirmation,omitempty"`
	ConfirmText string          `json:"confirmationMessage,omitempty"`
	Fallback    *Step           `json:"fallbackAction,omitempty"`
	Conditions  []Condition     `json:"conditions,omitempty"`
	Unit        string          `json:"unit,omitempty"`    // steps of the same unit succeed or are undone together
	Missing     []string        `json:"missing,omitempty"` // of a checked plan: what the payload needs, and a user is asked for
}

// Condition must hold when its step's time comes, or the step does not run.
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

// Fault is one thing that is wrong with a plan, for the model that made it.
type Fault struct {
	Field  string // where, as a dotted path ("actions[0].payload.text"); empty: the whole
	Text   string // what is wrong, and what would be right
	Action string // the action concerned, canonical where it is known
}

func (f Fault) String() string {
	if f.Field == "" {
		return f.Text
	}
	return f.Field + ": " + f.Text
}
