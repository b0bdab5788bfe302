package turn

import (
	"context"
	"fmt"
	"slices"

	"synthbot/core"
	"synthbot/core/gate"
	"synthbot/core/watch"
)

// Inbox returns the inbox of interfaces. It refuses events that only the bot can cause.
func (t *Turns) Inbox() core.Inbox { return inbox{t, false} }

// InternalInbox returns the inbox of plugins. The bot itself causes their events.
func (t *Turns) InternalInbox() core.Inbox { return inbox{t, true} }

type inbox struct {
	turns    *Turns
	internal bool // of plugins
}

// Receive implements core.Inbox.
func (b inbox) Receive(ctx context.Context, events ...core.Event) error {
	if err := check(events, b.internal); err != nil {
		return err
	}
	s := b.turns.setup.Load()
	in := &intake{inbox: b, setup: s, events: events, now: s.Clock()}
	moves, err := b.turns.findMoves(ctx, events)
	if err != nil {
		return fmt.Errorf("receive: %w", err)
	}
	b.turns.follow(moves) // further events are judged so, and a sweep may wake the new paths after the commit at once
	if err := in.enterEvents(ctx); err != nil {
		return fmt.Errorf("receive: %w", err)
	}
	if err := b.turns.store.Commit(ctx, &in.batch); err != nil {
		return fmt.Errorf("receive: %w", err)
	}
	b.turns.follow(moves) // workers may have begun meanwhile
	in.wake(ctx)
	if s.Places.Received != nil {
		s.Places.Received(ctx, events) // before a place that moved wakes, so that its settings apply
	}
	for _, m := range moves {
		b.turns.Wake(m.to)
	}
	b.turns.endDeleted(in.batch.Change)
	return nil
}

// enterEvents decides which events become entries, and which ones change entries.
func (in *intake) enterEvents(ctx context.Context) error {
	s, b := in.setup, &in.batch
	if in.internal { // plugins may not know that a place is private
		in.events = slices.Clone(in.events)
		for i := range in.events {
			m := &in.events[i].Message
			h, err := core.Read(ctx, in.turns.store, func(v core.View) (core.Head, error) { return v.Head(m.Path) })
			if err != nil {
				return err
			}
			m.Private = m.Private || h.Private
		}
	}
	b.Append, in.appended = make([]core.Entry, 0, len(in.events)), make([]int, 0, len(in.events))
	for i := range in.events {
		switch in.events[i].Kind {
		case core.KindEdit, core.KindDeletion, core.KindReaction, core.KindMigration:
			e, place := in.events[i], in.events[i].Message.Path
			e.Message.Path = in.turns.judgedAs(s, place)
			if s.mayChange(&e) {
				s.dropBlocked(&e)
				e.Message.Path = place
				b.Change = append(b.Change, e)
			}
			continue
		}
		b.Append, in.event = append(b.Append, core.Entry{Event: in.events[i]}), i
		entry := &b.Append[len(b.Append)-1]
		place := entry.Message.Path
		entry.Message.Path = in.turns.judgedAs(s, place)
		if err := in.turns.joinThread(ctx, s, &entry.Event); err != nil {
			return err
		}
		answers, err := in.turns.answersQuestion(ctx, s, *entry)
		if err != nil {
			return err
		}
		stays := s.enter(entry, answers, in)
		entry.Message.Path = place // under which the store knows its ids
		if stays {
			in.appended = append(in.appended, i)
		} else {
			b.Append, in.skipped = b.Append[:len(b.Append)-1], append(in.skipped, i)
		}
	}
	in.turns.mu.Lock()
	lives := in.turns.life != nil && in.turns.life.Err() == nil
	in.turns.mu.Unlock()
	isUnreachable := func(e core.Entry) bool { return e.Due && !s.reaches(e.Message.Path) }
	b.Begin = lives && !slices.ContainsFunc(b.Append, isUnreachable) // turns begin as soon as the batch is stored
	return nil
}

// wake counts the new events, wakes the places of due entries, and tells observers of messages without a turn.
func (in *intake) wake(ctx context.Context) {
	b := &in.batch
	for _, c := range in.counts {
		i := slices.Index(in.appended, c.event)
		if i < 0 || !b.Known[i] {
			c.apply()
		}
	}
	for i := range b.Append {
		entry := &b.Append[i]
		if b.Known[i] {
			entry = in.turns.stored(ctx, entry)
		}
		if !entry.Due {
			in.skipped = append(in.skipped, in.appended[i])
			continue
		}
		m, begun := &entry.Message, uint64(0)
		if b.Begun[i] {
			begun = m.Seq
		}
		by, _ := m.Path.Person(m.Author.ID) // zero without an author
		in.turns.wake(queue{m.Path, entry.Kind == core.KindCommand}, begun, by)
	}
	in.reportSkipped()
}

// reportSkipped ends the turns that a user waits for, but that never begin.
func (in *intake) reportSkipped() {
	for _, i := range in.skipped { // their authors are blocked, or they were received before
		m := &in.events[i].Message
		if m.Private || in.events[i].Kind == core.KindCommand {
			in.setup.observe(watch.TurnEnd{Turn: core.TurnID{Path: m.Path}, Messages: []string{m.ID}})
		}
	}
}

// stored returns the log's version of an entry that was received before. It is due if it still waits:
// the commit that added it may have reported a failure, so that no worker was woken.
func (t *Turns) stored(ctx context.Context, e *core.Entry) *core.Entry {
	var there core.Entry
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
		return e // at worst a worker finds nothing
	}
	return &there
}

// outsideKinds are the kinds of events that others than the bot can cause.
var outsideKinds = []core.Kind{
	core.KindMessage, core.KindPress, core.KindCommand, core.KindMembership,
	core.KindEdit, core.KindDeletion, core.KindReaction, core.KindMigration,
}

// check refuses invalid events and, unless internal, those that only the bot can cause.
func check(events []core.Event, internal bool) error {
	for i := range events {
		e, m := &events[i], &events[i].Message
		onlyBot := !slices.Contains(outsideKinds, e.Kind)
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
		case onlyBot && !internal:
			wrong = "only the bot can cause it"
		case e.Kind == core.KindContinue:
			wrong = "only turns can cause it"
		}
		if wrong != "" {
			return fmt.Errorf("%w: %s %q in %s: %s", core.ErrBadEvent, e.Kind, m.ID, m.Path, wrong)
		}
	}
	return nil
}

// mayChange reports whether a change is accepted: edits and reactions of blocked users are not.
func (s *setup) mayChange(e *core.Event) bool {
	m := e.Message
	if e.Kind != core.KindEdit && e.Kind != core.KindReaction || m.Author.ID == "" {
		return true
	}
	s.raiseRank(&m)
	return s.admits(&m) && s.askGates(&m, true).Admission < gate.Redact
}

// answersQuestion reports whether a message that is not stored yet is a plain yes or no to an open question. Then it
// counts as a press of a button, which has no text to judge.
func (t *Turns) answersQuestion(ctx context.Context, s *setup, e core.Entry) (answers bool, err error) {
	m := &e.Message
	if e.Kind != core.KindMessage || !t.attention.mayAsk(m.Path, s.Clock()) {
		return false, nil
	}
	_, plain := s.yesOrNo(m)
	if !plain {
		return false, nil
	}
	s.findName(m)
	err = t.store.View(ctx, func(v core.View) error {
		q, err := s.lookUp(v, &e, true)
		if err != nil || q == (question{}) {
			return err
		}
		held, err := q.waiting(v, m.Path)
		answers = held != nil && held.MayDecide(m.Author)
		return err
	})
	return answers, err
}

// enter changes an event into the form that the log stores, and decides whether it is due. answers says that it
// answers a question. It returns false if the event is not stored. The log keeps the platform's rank.
func (s *setup) enter(entry *core.Entry, answers bool, in *intake) bool {
	e := &entry.Event
	if e.Kind == core.KindReminder {
		e.Message.Author.Rank = core.RankMember // it may have changed since, and is looked up again
	}
	platform := e.Message.Author.Rank
	v, ok := s.verdict(e, answers)
	if !ok {
		return false
	}
	s.dropBlocked(e)
	if v.Limited && v.Reply != "" && !in.claimNotice(&e.Message) {
		v.Reply = ""
	}
	if v.Admission == gate.Discard && v.Reply == "" {
		return false
	}
	if v.Admission >= gate.Redact {
		dropContent(e)
	}
	if v.Admission == gate.Admit && v.Reply == "" {
		v.Reply = s.Plugins.Commands.Unknown(e)
	}
	e.Reply = v.Reply
	quietly := s.isAnsweredWhileQuiet(e) || answers && v.Admission == gate.Quiet // not without its content
	answered := v.Admission == gate.Admit || quietly
	entry.Due = v.Reply != "" || answered && s.due(e, in)
	e.Message.Author.Rank = platform
	talk := e.Kind == core.KindMessage || e.Kind == core.KindCommand
	return entry.Due || !talk || !s.Settings(e.Message.Path).Blind
}

// verdict returns what access and gates decide. ok is false if the event is discarded. answers is as in enter.
func (s *setup) verdict(e *core.Event, answers bool) (v gate.Verdict, ok bool) {
	m := &e.Message
	switch {
	case e.Kind == core.KindBeat:
		return v, !s.isSuppressed(e) && !isListed(s.Access.Deny, core.Path{}, m)
	case e.Reply != "": // of a plugin
		return gate.Verdict{Reply: e.Reply}, !isListed(s.Access.Deny, core.Path{}, m)
	}
	switch e.Kind {
	case core.KindMessage:
		s.findName(m)
	case core.KindCommand, core.KindPress, core.KindReminder:
	default: // it wants no answer
		s.raiseRank(m)
		return v, s.admits(m)
	}
	return s.judge(e, answers, false)
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

// dropBlocked removes the words of blocked users from quotes and forwards. A command may still be about them.
func (s *setup) dropBlocked(e *core.Event) {
	m := &e.Message
	q := m.ReplyTo
	if q != nil && s.isBlocked(m, q.From) {
		m.ReplyTo = &core.Quote{ID: q.ID, Time: q.Time}
		if e.Kind == core.KindCommand {
			m.ReplyTo.From.ID = q.From.ID
		}
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
	s.raiseRank(&theirs)
	return !s.admits(&theirs) || s.askGates(&theirs, true).Admission >= gate.Redact
}

// dropContent removes from an event what its author said.
func dropContent(e *core.Event) {
	m := &e.Message
	e.Kind, e.Command, e.Data = core.KindMessage, nil, ""
	e.Message = core.Message{
		Path: m.Path, ID: m.ID, Time: m.Time, Ahead: m.Ahead, Private: m.Private, Scopes: m.Scopes, Locale: m.Locale,
		Addressed: m.Addressed,
		Author:    core.Author{ID: m.Author.ID, Rank: m.Author.Rank, Bot: m.Author.Bot},
	}
}
