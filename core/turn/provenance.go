package turn

import (
	"slices"

	"synthbot/core"
	"synthbot/core/action"
)

// provenance tells which of the prompt's messages, history, memories and outputs of actions were not written by the
// users who caused the turn. It does not count what the bot stored before: the state of the conversation and, in
// private, memories. All else in a prompt comes from the configuration.
func (in *input) provenance() (r action.Provenance) {
	for i := range in.turn.messages {
		in.readMessage(&r, &in.turn.messages[i])
	}
	for _, lines := range [][]core.Entry{in.parts.History, in.parts.Recent} {
		for i := range lines {
			in.readLine(&r, &lines[i])
		}
	}
	if !in.turn.who.Private && len(in.parts.Recon.Memories) > 0 {
		r.AddLine(core.RankMember)
	}
	if in.tainted || len(in.turn.decided) > 0 { // a decision asks for nothing else
		r.Own = true
	}
	r.Strangers = r.Strangers || in.foreign
	for _, d := range in.turn.results.all {
		r.AddOutput(in.turn.snapshot, d, in.turn.who.Private)
	}
	return r
}

// readMessage adds what the author of an answered message wrote, and what it quotes, forwards or attaches.
func (in *input) readMessage(r *action.Provenance, e *core.Entry) {
	m := &e.Message
	switch e.Kind {
	case core.KindBeat, core.KindPress: // the text comes from the configuration, or is the bot's label of a button
		return
	case core.KindReminder:
		r.Strangers = true
		return
	case core.KindContinue:
		r.Own = true
		return
	}
	r.AddWords(m.Text)
	q := m.ReplyTo
	isQuoted := func(e core.Entry) bool { return e.Self && e.Message.ID == q.ID }
	isOthers := q != nil && q.From.ID != m.Author.ID && m.Addressed != core.AddressedReply
	if isOthers && q.Text != "" && !slices.ContainsFunc(in.parts.History, isQuoted) {
		r.Strangers = true
		r.AddWords(q.Text) // quoting an address counts as writing it
	}
	for i := range m.Foreign {
		if m.Foreign[i].Kind != core.ForeignEmbed {
			r.AddWords(m.Foreign[i].Text)
		}
	}
	isOther := func(a core.Attachment) bool { return !m.Voice || a.Kind != core.MediaAudio }
	r.Strangers = r.Strangers || len(m.Foreign) > 0 || slices.ContainsFunc(m.Attachments, isOther)
}

// readLine adds an entry of the history.
func (in *input) readLine(r *action.Provenance, e *core.Entry) {
	m := e.Message
	if len(m.Foreign) > 0 {
		r.Strangers = true
	}
	switch {
	case e.Self:
		r.Own = r.Own || afterStrangers(e)
	case e.Kind == core.KindPress && in.isCauser(m.Author.ID): // the bot wrote the label
	case m.Path.Interface() == in.turn.path.Interface() && in.isCauser(m.Author.ID):
		r.AddWords(m.Text)
	default:
		in.turn.setup.raiseRank(&m)
		r.AddLine(m.Author.Rank)
	}
}

// afterStrangers reports whether a message of the bot was written after reading what strangers
// wrote. An edited one may have been: it is not known what was read before the edit.
func afterStrangers(e *core.Entry) bool { return e.Strangers || e.Rev > 0 }

// findReplied looks up the messages that the turn's messages reply to or whose buttons they press. It sets
// tainted if afterStrangers reports one, or if the message of a button is not found.
func (in *input) findReplied(v core.View) error {
	for i := range in.turn.messages {
		e := &in.turn.messages[i]
		id := e.Target
		if e.Message.ReplyTo != nil {
			id = e.Message.ReplyTo.ID
		}
		if id == "" && e.Kind != core.KindPress {
			continue
		}
		said, ok, err := entryNear(v, in.turn.path, id)
		if err != nil {
			return err
		}
		if len(in.turn.messages) == 1 {
			in.said = &said
		}
		in.tainted = in.tainted || said.Self && afterStrangers(&said) || !ok && e.Kind == core.KindPress
	}
	return nil
}

// isCauser reports whether this user caused the turn, alone or with others.
func (in *input) isCauser(id string) bool {
	return slices.ContainsFunc(in.turn.who.Authors, func(a core.Author) bool { return a.ID == id })
}
