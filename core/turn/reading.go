package turn

import (
	"slices"

	"synthbot/core"
	"synthbot/core/action"
)

// whatWasRead tells what the prompt holds that the people whose turn it is did
// not write. What becomes part of a prompt in another way than through its
// messages, its history, its memories and the outputs of actions comes from the
// configuration or the bot itself.
func (t *turn) whatWasRead() (r action.Reading) {
	for i := range t.messages {
		t.readMessage(&r, &t.messages[i])
	}
	for _, lines := range [][]core.Entry{t.parts.History, t.parts.Recent} {
		for i := range lines {
			t.readLine(&r, &lines[i])
		}
	}
	if !t.who.Private && len(t.parts.Recon.Memories) > 0 {
		r.Line(core.Member)
	}
	if len(t.origins) > 0 { // a decision is no word about anything else
		r.Strangers = true
	}
	for _, d := range t.finished {
		r.Output(t.snapshot, d, t.who.Private)
	}
	return r
}

// readMessage notes a message that the turn answers: what its author said, and what
// came with it from others. A turn that nobody's words caused goes by what was
// planned before.
func (t *turn) readMessage(r *action.Reading, e *core.Entry) {
	m := &e.Message
	switch e.Kind {
	case core.KindBeat: // its data is the configuration's
		return
	case core.KindReminder, core.KindContinue, core.KindBacklog:
		r.Strangers = true
		return
	case core.KindPress:
		if _, _, confirms := parseQuestion(e.Data); confirms {
			r.Strangers = true // what comes next was not asked for in words
			return
		}
	}
	r.Words(m.Text)
	if q := m.ReplyTo; q != nil && q.Text != "" && q.From.ID != m.Author.ID && !t.ours(m, q) {
		r.Strangers = true
		r.Words(q.Text) // pointing at an address is as good as writing it
	}
	for i := range m.Foreign {
		r.Strangers = true
		if f := &m.Foreign[i]; f.Kind == core.Forwarded {
			r.Words(f.Text)
		}
	}
	if slices.ContainsFunc(m.Attachments, func(a core.Attachment) bool { return !m.Voice || a.Kind != core.Audio }) {
		r.Strangers = true
	}
}

// ours reports whether the quote is of something that the bot said.
func (t *turn) ours(m *core.Message, q *core.Quote) bool {
	return m.Addressed == core.Reply || slices.ContainsFunc(t.parts.History, func(e core.Entry) bool {
		return e.Self && e.Message.ID == q.ID
	})
}

// readLine notes a line of a history.
func (t *turn) readLine(r *action.Reading, e *core.Entry) {
	m := e.Message
	if len(m.Foreign) > 0 {
		r.Strangers = true
	}
	switch {
	case e.Self:
	case m.Path.Interface() == t.path.Interface() && t.caused(m.Author.ID):
		r.Words(m.Text)
	default:
		t.with.rank(&m)
		r.Line(m.Author.Rank)
	}
}

// caused reports whether the turn is that person's, or theirs among others.
func (t *turn) caused(id string) bool {
	return slices.ContainsFunc(t.who.Authors, func(a core.Author) bool { return a.ID == id })
}
