package turn

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"synthbot/core"
	"synthbot/core/plan"
	"synthbot/core/prompt"
)

// read takes from the store what the prompt will tell of the past.
func (t *turn) read(v core.View) error {
	o := &t.with.Options
	start := prompt.WindowStart(t.last, o.Config.History)
	window, err := v.After(t.path, start, int(t.last-start))
	if err != nil {
		return err
	}
	t.who.Continued = max(t.who.Continued, t.inARow(window))
	t.parts.History = slices.DeleteFunc(window, func(e core.Entry) bool {
		return !e.Spoken() || e.Message.Seq > t.last || t.answers(e.Message.Seq)
	})
	if err := t.meanwhile(v); err != nil {
		return err
	}
	if err := t.findPointed(v); err != nil {
		return err
	}
	state, err := v.State(t.path)
	if err != nil {
		return err
	}
	t.parts.State = plan.Merge(state, t.since(), o.Clock(), stateAge, core.State{})
	if t.who.Sees, err = t.sees(v); err != nil || t.who.Private {
		return err
	}
	t.here = o.Settings(t.path)
	if t.here.Scope == "" {
		t.here.Scope = o.Scope
	}
	if t.here.Scope == scopeChat || o.Config.Recent == 0 {
		return nil
	}
	var unread error
	recent, err := v.Recent(t.reach(), o.Config.Recent, func(other core.Path) bool {
		h, err := v.Head(other)
		unread = errors.Join(unread, err)
		return !h.Private && t.shared(other)
	})
	t.parts.Recent = slices.DeleteFunc(recent, func(e core.Entry) bool {
		return !e.Spoken()
	})
	return errors.Join(err, unread)
}

// meanwhile adds what the bot said since the newest entry that the turn answers: it
// waited while others were answered, and they are not to be answered again.
func (t *turn) meanwhile(v core.View) error {
	later, err := v.After(t.path, t.last, mergeMax)
	for i := range later {
		if e := &later[i]; e.Self && e.Spoken() {
			t.parts.History = append(t.parts.History, *e)
		}
	}
	return err
}

// inARow is how often the model has asked to go on since a person said something:
// another bot's message does not let it begin anew.
func (t *turn) inARow(window []core.Entry) int {
	if !t.messages[0].Message.Author.Bot {
		return 0
	}
	for i := range slices.Backward(window) {
		e := &window[i]
		switch {
		case e.Kind == core.KindContinue:
			return e.Count
		case !e.Self && !e.Message.Author.Bot && (e.Kind == core.KindMessage || e.Kind == core.KindPress || e.Kind == core.KindCommand):
			return 0
		}
	}
	return 0
}

// stateAge is the silence after which a conversation is about nothing any more.
const stateAge = 6 * time.Hour

// since is when something was last said here before this turn.
func (t *turn) since() time.Time {
	if n := len(t.parts.History); n > 0 {
		return t.parts.History[n-1].Message.SentAt()
	}
	return t.messages[0].Message.SentAt()
}

// answers reports whether the turn answers the entry.
func (t *turn) answers(seq uint64) bool {
	return slices.ContainsFunc(t.messages, func(e core.Entry) bool { return e.Message.Seq == seq })
}

// Scopes of history_recent.
const (
	scopeChat      = "chat"
	scopeInterface = "interface"
)

// reach is the subtree that the scope opens.
func (t *turn) reach() core.Path {
	if t.here.Scope == scopeInterface {
		if root, err := core.MakePath(t.path.Interface()); err == nil {
			return root
		}
	}
	return core.Path{}
}

// shared reports whether the admin lists both places together in one share.
func (t *turn) shared(other core.Path) bool {
	if other == t.path {
		return false
	}
	return slices.ContainsFunc(t.with.Shares, func(s Share) bool {
		return within(t.path, s.Paths) && within(other, s.Paths)
	})
}

// seenMax is how many places a place may see besides itself.
const seenMax = 100

// sees lists this place and those that share what they know with it. What is
// said in private is seen in its own place alone.
func (t *turn) sees(v core.View) ([]core.Path, error) {
	all := []core.Path{t.path}
	if t.who.Private {
		return all, nil
	}
	for _, s := range t.with.Shares {
		if !within(t.path, s.Paths) {
			continue
		}
		for _, root := range s.Paths {
			heads, err := v.Places(root)
			if err != nil {
				return nil, err
			}
			for _, h := range heads {
				if open, err := public(v, h); err != nil {
					return nil, err
				} else if open && !slices.Contains(all, h.Path) && len(all) <= seenMax {
					all = append(all, h.Path)
				}
			}
		}
	}
	return all, nil
}

// publicDepth is how many entries of a place are looked at to tell whether others
// have spoken there.
const publicDepth = 50

// public reports whether others can read along in the place: somebody but the bot
// has spoken there, and nobody ever in private.
func public(v core.View, h core.Head) (bool, error) {
	if h.Private {
		return false, nil
	}
	last, err := v.Last(h.Path, publicDepth)
	return slices.ContainsFunc(last, func(e core.Entry) bool { return !e.Self }), err
}

// private reports whether something was ever said in private in the place.
func private(v core.View, place core.Path) (bool, error) {
	h, err := v.Head(place)
	return h.Private, err
}

func within(p core.Path, roots []core.Path) bool {
	return slices.ContainsFunc(roots, p.Within)
}

// gather completes what the model is told.
func (t *turn) gather(ctx context.Context) {
	o := &t.with.Options
	last := &t.messages[len(t.messages)-1].Message
	iface := t.path.Interface()
	_, chat := t.snapshot.Message(iface)
	t.parts.Interface, t.parts.Chat = iface, chat
	user := "" // in a group, the instructions stay the same whoever speaks
	if t.who.Private {
		user = last.Author.Name
	}
	t.parts.Persona = o.Persona(t.path, user)
	t.parts.Zone = o.Clock().Location()
	t.parts.Messages = t.messages
	t.parts.Lite, t.parts.Scope = o.Lite, t.here.Scope
	if t.who.Mute {
		t.parts.Chat = false
	}
	s := core.Scene{
		Path: t.path, Private: t.who.Private, Text: t.words(),
		Locale: last.Locale, Now: o.Clock(), Recent: t.parts.History, Sees: t.who.Sees,
	}
	if len(t.who.Authors) == 1 {
		s.Author = t.who.Authors[0]
	}
	t.contribute(ctx, s)
	t.parts.Recon.Instructions = append(t.parts.Recon.Instructions, t.occasion()...)
}

// words are all that is said in what the turn answers.
func (t *turn) words() string {
	var texts []string
	for i := range t.messages {
		if text := t.messages[i].Message.Text; text != "" {
			texts = append(texts, text)
		}
	}
	return strings.Join(texts, "\n")
}

// occasion words what is special about the moment.
func (t *turn) occasion() []string {
	first := &t.messages[0]
	switch {
	case first.Kind == core.KindMessage && t.with.late(first):
		waited := t.with.waited(first).Round(time.Minute)
		return []string{"You were away: these messages have waited for " + waited.String() + ". Acknowledge them together in one short message."}
	case first.Kind == core.KindReminder && t.with.waited(first) >= remindedLate:
		return []string{"This reminder could not be told in time: that was " + t.with.waited(first).Round(time.Minute).String() + " ago. Say that it comes late."}
	case t.unasked() && first.Kind != core.KindBeat:
		return []string{"Nobody spoke to you: you overheard this. Say something only if it truly helps or amuses those who talk; else IGNORE."}
	}
	return nil
}

// people are those of the window, newest first.
func (t *turn) people() []core.Author {
	var people []core.Author
	seen := make(map[string]bool)
	for _, list := range [][]core.Entry{t.messages, t.parts.History} {
		for i := range slices.Backward(list) {
			a := list[i].Message.Author
			if list[i].Self || a.ID == "" || seen[a.ID] {
				continue
			}
			seen[a.ID] = true
			people = append(people, a)
		}
	}
	return people
}

// participants tell of people: in a group of everybody, in private only what
// there is to tell.
func (t *turn) participants(people []core.Author, bios map[string]json.RawMessage) []json.RawMessage {
	var list []json.RawMessage
	marks := t.parts.Marks()
	for _, a := range people {
		if t.who.Private && bios[a.ID] == nil {
			continue
		}
		raw, err := json.Marshal(participant{a.Name, cmp.Or(marks.Of(t.path, a), a.Tag), a.Bot, bios[a.ID]})
		if err == nil {
			list = append(list, raw)
		}
	}
	return list
}

// participant is how a prompt tells of a person.
type participant struct {
	Name string          `json:"username"`
	Tag  string          `json:"usertag,omitempty"`
	Bot  bool            `json:"bot,omitempty"`
	Bio  json.RawMessage `json:"bio,omitempty"`
}

// offer is the catalogue as this person sees it here, in a round: first all of
// it, then what was not called yet, and in the last one only ways to speak.
func (t *turn) offer(round uint16) []prompt.Action {
	definitions := t.snapshot.Offer(t.who)
	actions := make([]prompt.Action, 0, len(definitions))
	for _, d := range definitions {
		if !d.IsMessage() && (round == lastRound || t.called(d.Name)) {
			continue
		}
		actions = append(actions, prompt.Action{Name: d.Name, Brief: d.Brief, Schema: d.Shown, Essential: d.Essential || d.IsMessage()})
	}
	return actions
}
