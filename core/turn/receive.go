package turn

import (
	"context"
	"fmt"
	"slices"

	"synthbot/core"
	"synthbot/core/gate"
	"synthbot/core/watch"
)

// Receive implements core.Inbox for interfaces: what only the bot itself can cause
// is refused.
func (t *Turns) Receive(ctx context.Context, events ...core.Event) error {
	if err := check(events, false); err != nil {
		return err
	}
	return t.receive(ctx, events)
}

// InternalInbox is the inbox of plugins: what they put into places is the bot's own doing.
func (t *Turns) InternalInbox() core.Inbox { return internalInbox{t} }

type internalInbox struct{ turns *Turns }

// Receive implements core.Inbox.
func (o internalInbox) Receive(ctx context.Context, events ...core.Event) error {
	if err := check(events, true); err != nil {
		return err
	}
	events = slices.Clone(events)
	err := o.turns.store.View(ctx, func(v core.View) error { // senders may not know that a place is private
		for i := range events {
			m := &events[i].Message
			h, err := v.Head(m.Path)
			if err != nil {
				return err
			}
			m.Private = m.Private || h.Private
		}
		return nil
	})
	if err != nil {
		return err
	}
	return o.turns.receive(ctx, events)
}

// receive takes in events that were checked.
func (t *Turns) receive(ctx context.Context, events []core.Event) error {
	s := t.setup.Load()
	in := &intake{attention: &t.attention, limiter: &t.limiter, now: s.Clock()}
	var b core.Batch
	var skipped, appended []int // indexes of events: nobody answers them; they are in b.Append, in this order
	for i, e := range events {
		switch e.Kind {
		case core.KindEdit, core.KindDeletion, core.KindReaction, core.KindMigration:
			if s.mayChange(&e) {
				s.dropBlocked(&e.Message)
				b.Change = append(b.Change, e)
			}
			continue
		}
		if err := t.joinThread(ctx, s, &e); err != nil {
			return fmt.Errorf("receive: %w", err)
		}
		in.event = i
		if entry, ok := s.entry(e, in); ok {
			b.Append, appended = append(b.Append, entry), append(appended, i)
		} else {
			skipped = append(skipped, i)
		}
	}
	t.mu.Lock()
	lives := t.life != nil && t.life.Err() == nil
	t.mu.Unlock()
	isOut := func(e core.Entry) bool { return e.Due && !s.reaches(e.Message.Path) }
	b.Begin = lives && !slices.ContainsFunc(b.Append, isOut) // then turns begin as soon as it is stored
	if err := t.store.Commit(ctx, &b); err != nil {
		return fmt.Errorf("receive: %w", err)
	}
	for _, c := range in.counts {
		i := slices.Index(appended, c.event)
		if i < 0 || !b.Known[i] {
			c.apply()
		}
	}
	for i, entry := range b.Append {
		if b.Known[i] {
			entry = t.stored(ctx, &entry)
		}
		if !entry.Due {
			skipped = append(skipped, appended[i])
			continue
		}
		m, begun := &entry.Message, uint64(0)
		if b.Begun[i] {
			begun = m.Seq
		}
		by, _ := m.Path.Person(m.Author.ID) // zero without an author
		t.wake(queue{m.Path, entry.Kind == core.KindCommand}, begun, by)
	}
	for _, i := range skipped {
		s.reportSkipped(&events[i])
	}
	t.changed(ctx, b.Change)
	return nil
}

// reportSkipped tells observers that a private message or a command has no turn: its
// author is blocked, or it was received before.
func (s *setup) reportSkipped(e *core.Event) {
	m := &e.Message
	if m.Private || e.Kind == core.KindCommand {
		s.observe(watch.TurnEnd{Turn: core.TurnID{Path: m.Path}, Messages: []string{m.ID}})
	}
}

// stored returns an entry as the log has it, due only while it waits. The commit that
// added it may have reported a failure, so that no worker was woken.
func (t *Turns) stored(ctx context.Context, e *core.Entry) (there core.Entry) {
	err := t.store.View(ctx, func(v core.View) error {
		head, err := v.Head(e.Message.Path)
		if err != nil {
			return err
		}
		there, _, err = v.Entry(e.Message.Path, e.Message.ID)
		there.Due = there.Due && there.Message.Seq > head.Answered
		return err
	})
	if err != nil {
		return *e // at worst a worker finds nothing
	}
	return there
}

// outsideKinds are what others cause than the bot itself.
var outsideKinds = []core.Kind{
	core.KindMessage, core.KindPress, core.KindCommand, core.KindMembership,
	core.KindEdit, core.KindDeletion, core.KindReaction, core.KindMigration,
}

// check refuses what nobody may deliver, and what only the bot itself can cause. internal says that
// the bot delivers it.
func check(events []core.Event, internal bool) error {
	for i := range events {
		e, m := &events[i], &events[i].Message
		isBots := !slices.Contains(outsideKinds, e.Kind)
		wrong := ""
		switch {
		case m.Path.IsZero() || m.Path.IsPerson():
			wrong = "it has no place"
		case m.ID == "" && e.Target == "":
			wrong = "it has no id"
		case m.TextSize() > core.MaxText || len(m.Foreign) > core.MaxForeign:
			wrong = fmt.Sprintf("%d bytes of text in %d parts, at most %d in %d are allowed",
				m.TextSize(), 1+len(m.Foreign), core.MaxText, 1+core.MaxForeign)
		case m.Author.Rank > core.RankAdmin && e.Kind != core.KindBeat:
			wrong = fmt.Sprintf("an author of rank %d", m.Author.Rank)
		case e.Reply != "" && (!internal || e.Kind != core.KindReminder || len(e.Reply) > core.MaxText):
			wrong = fmt.Sprintf("a reply of %d bytes", len(e.Reply))
		case isBots && !internal:
			wrong = "the bot alone causes it"
		case isBots && (e.Kind == core.KindContinue || e.Kind == core.KindBacklog):
			wrong = "turns alone cause it"
		}
		if wrong != "" {
			return fmt.Errorf("%w: %s %q in %s: %s", core.ErrBadEvent, e.Kind, m.ID, m.Path, wrong)
		}
	}
	return nil
}

// mayChange reports whether a change is taken in: edits and reactions of blocked users are
// not.
func (s *setup) mayChange(e *core.Event) bool {
	m := e.Message
	if e.Kind != core.KindEdit && e.Kind != core.KindReaction || m.Author.ID == "" {
		return true
	}
	s.rank(&m)
	return s.admits(&m) && s.askGates(&m, true).Admission < gate.Redact
}

// entry is what an event becomes in the log. ok is false if it is not stored. The log keeps the platform's rank.
func (s *setup) entry(e core.Event, h *intake) (entry core.Entry, ok bool) {
	if e.Kind == core.KindReminder {
		e.Message.Author.Rank = core.RankMember // it was set long ago, and is looked up again
	}
	platform := e.Message.Author.Rank
	v, ok := s.verdict(&e)
	if !ok {
		return entry, false
	}
	s.dropBlocked(&e.Message)
	if v.Limited && v.Reply != "" && !h.notice(&e.Message) {
		v.Reply = ""
	}
	if v.Admission == gate.Discard && v.Reply == "" {
		return entry, false
	}
	if v.Admission >= gate.Redact {
		dropContent(&e)
	}
	if v.Admission == gate.Admit && v.Reply == "" {
		v.Reply = s.Plugins.Commands.Unknown(&e)
	}
	e.Reply = v.Reply
	answered := v.Admission == gate.Admit || s.isAnsweredWhileQuiet(&e) // without content it is a message
	entry.Due = v.Reply != "" || answered && s.due(&e, h)
	e.Message.Author.Rank = platform
	entry.Event = e
	talk := e.Kind == core.KindMessage || e.Kind == core.KindCommand
	return entry, entry.Due || !talk || !s.Settings(e.Message.Path).Blind
}

// verdict is what access and gates say of an event. ok is false if the event is
// discarded.
func (s *setup) verdict(e *core.Event) (v gate.Verdict, ok bool) {
	m := &e.Message
	switch {
	case e.Kind == core.KindBeat:
		return v, !s.isSuppressed(e) && !s.Access.names(s.Access.Deny, core.Path{}, m)
	case e.Reply != "": // a plugin says it
		return gate.Verdict{Reply: e.Reply}, !s.Access.names(s.Access.Deny, core.Path{}, m)
	}
	s.rank(m)
	if !s.admits(m) {
		return v, false
	}
	switch e.Kind {
	case core.KindMessage:
		s.findName(m)
	case core.KindCommand, core.KindPress, core.KindReminder:
	default:
		return v, true // it asks for nothing
	}
	if e.Command == nil || !s.isOpenCommand(e) {
		v = s.askGates(m, false)
	}
	if v.Admission == gate.Admit && s.Places.Asleep(m.Path) {
		v.Admission = gate.Quiet
	}
	return v, true
}

// isOpenCommand reports whether the event calls a command that anybody may call.
func (s *setup) isOpenCommand(e *core.Event) bool {
	c, ok := s.Plugins.Commands.Find(e.Command.Name)
	return ok && c.Open
}

// isAnsweredWhileQuiet reports whether the event is answered where the bot is quiet: users can still wake it.
func (s *setup) isAnsweredWhileQuiet(e *core.Event) bool {
	switch e.Kind {
	case core.KindCommand:
		return s.isCommand(e)
	case core.KindReminder, core.KindPress:
		return true
	}
	return false
}

// dropBlocked removes the words of blocked users from what others quote and forward.
func (s *setup) dropBlocked(m *core.Message) {
	q := m.ReplyTo
	if q != nil && s.isBlocked(m, q.From) {
		m.ReplyTo = &core.Quote{ID: q.ID, Time: q.Time}
	}
	blocked := func(o core.Foreign) bool { return s.isBlocked(m, o.From) }
	if slices.ContainsFunc(m.Foreign, blocked) {
		m.Foreign = slices.DeleteFunc(slices.Clone(m.Foreign), blocked)
	}
}

// isBlocked reports whether messages of this author are not stored in the place of m.
func (s *setup) isBlocked(m *core.Message, from core.Author) bool {
	if from.ID == "" || from.Bot {
		return false
	}
	theirs := core.Message{Path: m.Path, Private: m.Private, Scopes: m.Scopes, Author: from}
	theirs.Author.Rank = core.RankMember
	s.rank(&theirs)
	return !s.admits(&theirs) || s.askGates(&theirs, true).Admission >= gate.Redact
}

// dropContent removes from an event what its author said: it is stored without its
// content.
func dropContent(e *core.Event) {
	m := &e.Message
	e.Kind, e.Command, e.Data = core.KindMessage, nil, ""
	e.Message = core.Message{
		Path: m.Path, ID: m.ID, Time: m.Time, Ahead: m.Ahead, Private: m.Private, Scopes: m.Scopes, Locale: m.Locale,
		Addressed: m.Addressed,
		Author:    core.Author{ID: m.Author.ID, Rank: m.Author.Rank, Bot: m.Author.Bot},
	}
}
