// Package gate lets plugins decide whether messages are stored and answered.
package gate

import (
	"synthbot/core"
	"synthbot/core/command"
)

// Admission says whether a message is stored and answered.
type Admission int

// Admissions, from the mildest to the strictest.
const (
	Admit   Admission = iota
	Quiet             // it is stored as context, and not answered
	Redact            // it is stored without its content, and no model answers it
	Discard           // it is not stored
)

// Verdict is the decision of a Gate.
type Verdict struct {
	Admission Admission
	// Reply, if set, is sent in reply to the message, without asking a model.
	Reply string
	// Limited says that Reply mentions a limit: a user sees such a reply at most once an hour.
	Limited bool
}

// Gate is the ability of a plugin to keep messages out, in addition to what the configuration says. Judge is called
// before a message is stored, except for those of admins, and again before it is answered (again is true then, and
// Judge counts nothing). It returns at once. A message that could not be stored is delivered and judged again under
// the same id. Presses of buttons have no text, nor has a plain yes or no to a question of the bot. Of several gates
// the strictest counts.
type Gate interface {
	Judge(m *core.Message, again bool) Verdict
}

// Counter is the ability of a Gate with limits to count, too, what users do in other processes that use the same store.
type Counter interface {
	// Announce sets the function that the plugin calls when a user does something that counts. It leads
	// to calls of Used in the other processes, and returns at once.
	Announce(f func(by core.Path, what string))
	// Used counts what a user did in another process. It returns at once.
	Used(by core.Path, what string)
}

// Delivery identifies a message, which a platform may deliver twice.
type Delivery struct {
	Place core.Path
	ID    string
}

// DeliveryOf returns the identity of a message.
func DeliveryOf(m *core.Message) Delivery { return Delivery{m.Path, m.ID} }

// CanReply reports whether a Verdict can have a Reply: the message must have a text, and must not
// call a command, which is carried out instead.
func CanReply(m *core.Message) bool { return m.AllText() != "" && command.Called(m.Text) == "" }
