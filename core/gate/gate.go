// Package gate holds what plugins decide about messages before they are stored and
// answered.
package gate

import (
	"synthbot/core"
	"synthbot/core/command"
)

// Admission is what becomes of a message.
type Admission int

// Admissions, from the mildest to the strictest.
const (
	Admit   Admission = iota
	Quiet             // it is context, and gets no answer
	Redact            // it is stored without its content, and gets no answer of a model
	Discard           // it is not stored
)

// Verdict is what a Gate says.
type Verdict struct {
	Admission Admission
	// Reply, where set, is answered to the message, without asking a model.
	Reply string
	// Limited says that Reply mentions a limit: a user sees such a reply at most once
	// an hour.
	Limited bool
}

// Gate is the ability of a plugin to keep messages out, beyond what the
// configuration says. Judge is called for what is about to be received, except from
// admins, and once more before a message is answered (again is true
// then, and nothing is counted); it returns at once. A message that could not be
// stored is delivered and judged again under the same id. Of several gates the
// strictest counts.
type Gate interface {
	Judge(m *core.Message, again bool) Verdict
}

// Counter is the ability of a plugin to count, towards the limits that it sets as a Gate, what users do
// in other processes that use the same store.
type Counter interface {
	// Announce sets a function that is to be called for what users do, so that Used is called in the
	// other processes. It returns at once.
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

// CanReply reports whether a Verdict can have a Reply: a command is carried out, and a
// button or picture has no text to answer to.
func CanReply(m *core.Message) bool { return m.AllText() != "" && command.Called(m.Text) == "" }
