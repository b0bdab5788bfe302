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
	"synthbot/core/action"
	"synthbot/core/plan"
	"synthbot/core/prompt"
)

// input is what the model is told.
type input struct {
	turn      *turn
	settings  Settings // that hold in the place
	parts     prompt.Parts
	gathered  bool
	reading   action.Reading // what of it others wrote
	strangers bool           // the latest plan was made after reading what strangers wrote
	points    bool           // a message points at something that the bot said so
}

// load takes from the store what the prompt will tell of the past.
func (in *input) load(v core.View) error {
	o := &in.turn.setup.Options
	start := prompt.WindowStart(in.turn.last, o.Config.History)
	window, err := v.After(in.turn.path, start, int(in.turn.last-start))
	if err != nil {
		return err
	}
	in.turn.who.Continued = max(in.turn.who.Continued, in.timesContinued(window))
	in.parts.History = slices.DeleteFunc(window, func(e core.Entry) bool {
		return !e.Spoken() || e.Message.Seq > in.turn.last || in.answers(e.Message.Seq)
	})
	if err := in.addLater(v); err != nil {
		return err
	}
	if err := in.findPointed(v); err != nil {
		return err
	}
	state, err := v.State(in.turn.path)
	if err != nil {
		return err
	}
	in.parts.State = plan.Merge(state, in.lastSaid(), o.Clock(), stateAge, core.State{})
	if in.turn.who.Sees, err = in.seen(v); err != nil || in.turn.who.Private {
		return err
	}
	in.settings = o.Settings(in.turn.path)
	if in.settings.Scope == "" {
		in.settings.Scope = o.Prompt.Scope
	}
	if in.settings.Scope == scopeChat || o.Config.Recent == 0 {
		return nil
	}
	var unread error
	recent, err := v.Recent(in.reach(), o.Config.Recent, func(other core.Path) bool {
		h, err := v.Head(other)
		unread = errors.Join(unread, err)
		return !h.Private && in.shared(other)
	})
	in.parts.Recent = slices.DeleteFunc(recent, func(e core.Entry) bool {
		return !e.Spoken()
	})
	return errors.Join(err, unread)
}

// addLater adds what the bot said since the newest entry that the turn answers: it
// waited while others were answered, and they are not to be answered again.
func (in *input) addLater(v core.View) error {
	later, err := v.After(in.turn.path, in.turn.last, maxMerged)
	for i := range later {
		if e := &later[i]; e.Self && e.Spoken() {
			in.parts.History = append(in.parts.History, *e)
		}
	}
	return err
}

// timesContinued is how often the model has asked to go on since a person said something:
// another bot's message does not let it begin anew.
func (in *input) timesContinued(window []core.Entry) int {
	if !in.turn.messages[0].Message.Author.Bot {
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

// lastSaid is when something was last said here before this turn.
func (in *input) lastSaid() time.Time {
	if n := len(in.parts.History); n > 0 {
		return in.parts.History[n-1].Message.SentAt()
	}
	return in.turn.messages[0].Message.SentAt()
}

// answers reports whether the turn answers the entry.
func (in *input) answers(seq uint64) bool {
	return slices.ContainsFunc(in.turn.messages, func(e core.Entry) bool { return e.Message.Seq == seq })
}

// Scopes of history_recent.
const (
	scopeChat      = "chat"
	scopeInterface = "interface"
)

// reach is the subtree that the scope opens.
func (in *input) reach() core.Path {
	if in.settings.Scope == scopeInterface {
		if root, err := core.MakePath(in.turn.path.Interface()); err == nil {
			return root
		}
	}
	return core.Path{}
}

// shared reports whether the admin lists both places together in one share.
func (in *input) shared(other core.Path) bool {
	if other == in.turn.path {
		return false
	}
	return slices.ContainsFunc(in.turn.setup.Prompt.Shares, func(s Share) bool {
		return within(in.turn.path, s.Paths) && within(other, s.Paths)
	})
}

// maxSeen is how many places a place may see besides itself.
const maxSeen = 100

// seen lists this place and those that share what they know with it. What is
// said in private is seen in its own place alone.
func (in *input) seen(v core.View) ([]core.Path, error) {
	all := []core.Path{in.turn.path}
	if in.turn.who.Private {
		return all, nil
	}
	for _, s := range in.turn.setup.Prompt.Shares {
		if !within(in.turn.path, s.Paths) {
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
				} else if open && !slices.Contains(all, h.Path) && len(all) <= maxSeen {
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

// gather completes what the model is told, once in a turn.
func (in *input) gather(ctx context.Context) {
	if in.gathered {
		return
	}
	in.gathered = true
	o := &in.turn.setup.Options
	last := &in.turn.messages[len(in.turn.messages)-1].Message
	iface := in.turn.path.Interface()
	_, chat := in.turn.snapshot.Message(iface)
	in.parts.Interface, in.parts.Chat = iface, chat
	user := "" // in a group, the instructions stay the same whoever speaks
	if in.turn.who.Private {
		user = last.Author.Name
	}
	in.parts.Persona = o.Prompt.Persona(in.turn.path, user)
	in.parts.Zone = o.Clock().Location()
	in.parts.Messages = in.turn.messages
	in.parts.Lite, in.parts.Scope = o.Prompt.Lite, in.settings.Scope
	if in.turn.who.Mute {
		in.parts.Chat = false
	}
	s := core.Scene{
		Path: in.turn.path, Private: in.turn.who.Private, Text: in.text(),
		Locale: last.Locale, Now: o.Clock(), Recent: in.parts.History, Sees: in.turn.who.Sees,
	}
	if len(in.turn.who.Authors) == 1 {
		s.Author = in.turn.who.Authors[0]
	}
	in.contribute(ctx, s)
	in.parts.Recon.Instructions = append(in.parts.Recon.Instructions, in.occasion()...)
}

// text is all that is said in what the turn answers.
func (in *input) text() string {
	var texts []string
	for i := range in.turn.messages {
		if text := in.turn.messages[i].Message.Text; text != "" {
			texts = append(texts, text)
		}
	}
	return strings.Join(texts, "\n")
}

// occasion words what is special about the moment.
func (in *input) occasion() []string {
	first := &in.turn.messages[0]
	switch {
	case first.Kind == core.KindMessage && in.turn.setup.late(first):
		waited := in.turn.setup.waited(first).Round(time.Minute)
		return []string{"You were away: these messages have waited for " + waited.String() + ". Acknowledge them together in one short message."}
	case first.Kind == core.KindReminder && in.turn.setup.waited(first) >= remindedLate:
		return []string{"This reminder could not be told in time: that was " + in.turn.setup.waited(first).Round(time.Minute).String() + " ago. Say that it comes late."}
	case in.turn.unasked() && first.Kind != core.KindBeat:
		return []string{"Nobody spoke to you: you overheard this. Say something only if it truly helps or amuses those who talk; else IGNORE."}
	}
	return nil
}

// people are those of the window, newest first.
func (in *input) people() []core.Author {
	var people []core.Author
	seen := make(map[string]bool)
	for _, list := range [][]core.Entry{in.turn.messages, in.parts.History} {
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
func (in *input) participants(people []core.Author, bios map[string]json.RawMessage) []json.RawMessage {
	var list []json.RawMessage
	marks := in.parts.Marks()
	for _, a := range people {
		if in.turn.who.Private && bios[a.ID] == nil {
			continue
		}
		raw, err := json.Marshal(participant{a.Name, cmp.Or(marks.Of(in.turn.path, a), a.Tag), a.Bot, bios[a.ID]})
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
func (in *input) offer(round uint16) []prompt.Action {
	definitions := in.turn.snapshot.Offer(in.turn.who)
	actions := make([]prompt.Action, 0, len(definitions))
	for _, d := range definitions {
		if !d.IsMessage() && (round == lastRound || in.turn.results.called(d.Name)) {
			continue
		}
		actions = append(actions, prompt.Action{Name: d.Name, Brief: d.Brief, Schema: d.Shown, Essential: d.Essential || d.IsMessage()})
	}
	return actions
}
