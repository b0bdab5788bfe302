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
	"synthbot/core/epochs"
	"synthbot/core/hint"
	"synthbot/core/plan"
	"synthbot/core/prompt"
	"synthbot/core/txt"
)

const (
	stateAge    = 6 * time.Hour // the silence after which the state of a conversation expires
	maxSeen     = 100           // places that a place may see besides itself
	publicDepth = 50            // entries of a place that are searched for messages of users
)

// input collects what the prompt holds.
type input struct {
	turn     *turn
	settings Settings // of the place
	parts    prompt.Parts
	window   *[]core.Entry // holds the history until the turn is over; nil: it must not be reused
	gathered bool
	unheard  string                     // why a voice message has no text; "": all have one
	said     *core.Entry                // what the message replies to, if the turn answers only one; nil: nothing
	tainted  bool                       // a message replies to one that afterStrangers reports, or presses its button
	foreign  bool                       // plugins added what strangers wrote
	hints    []hint.Hint                // of plugins
	bios     map[string]json.RawMessage // of plugins, by the ids of users
	withheld []string                   // actions that the prompt does not show
	patience time.Duration              // how long plugins may take; 0: contributionTime
}

// load reads what the prompt shows from the store.
func (in *input) load(v core.View) error {
	t := in.turn
	in.settings = t.setup.Settings(t.path)
	start := prompt.WindowStart(t.last, t.setup.Config.History)
	in.window = t.turns.windows.Get().(*[]core.Entry)
	entries, err := v.After(t.path, start, int(t.last-start)+maxMerged, *in.window)
	if err != nil {
		return err
	}
	*in.window = entries
	if t.messages[0].Message.Author.Bot {
		t.who.Continued = max(t.who.Continued, timesContinued(entries, t.last))
	}
	in.parts.History = slices.DeleteFunc(entries, func(e core.Entry) bool {
		answered := slices.ContainsFunc(t.messages, func(m core.Entry) bool { return m.Message.Seq == e.Message.Seq })
		// Later messages of the bot were sent while the turn waited; the model must not repeat them.
		return !e.Spoken() || answered || !e.Self && e.Message.Seq > t.last
	})
	if err := in.findReplied(v); err != nil {
		return err
	}
	state, err := v.State(t.path)
	if err != nil {
		return err
	}
	in.parts.State = plan.Merge(state, in.lastSaid(), t.setup.Clock(), stateAge, core.State{})
	t.who.Sees = []core.Path{t.path}
	if t.who.Private {
		in.settings.Scope = "" // it sees no other place
		return nil
	}
	if err := in.loadSeen(v); err != nil {
		return err
	}
	return in.loadRecent(v)
}

// release empties the window and lets other turns use it.
func (in *input) release() {
	if in.window != nil {
		clear((*in.window)[:cap(*in.window)])
		in.turn.turns.windows.Put(in.window)
	}
}

// loadRecent reads what was said in other places, as far as scope and shares allow.
func (in *input) loadRecent(v core.View) error {
	t := in.turn
	most := t.setup.Config.Recent
	var below core.Path
	switch in.settings.Scope {
	case "unified":
	case "interface":
		below, _ = core.MakePath(t.path.Interface()) // it comes from a path
	default:
		return nil
	}
	if most == 0 {
		return nil
	}
	var unread error
	recent, err := v.Recent(below, most, func(other core.Path) bool {
		h, err := v.Head(other)
		unread = errors.Join(unread, err)
		isShare := func(s Share) bool { return within(t.path, s.Paths) && within(other, s.Paths) }
		return !h.Private && other != t.path && slices.ContainsFunc(t.setup.Prompt.Shares, isShare)
	})
	in.parts.Recent = slices.DeleteFunc(recent, func(e core.Entry) bool { return !e.Spoken() })
	return errors.Join(err, unread)
}

// timesContinued is how often the model has asked to go on since a user, not another bot, said something.
func timesContinued(entries []core.Entry, last uint64) int {
	for _, e := range slices.Backward(entries) {
		switch {
		case e.Message.Seq > last:
		case e.Kind == core.KindContinue:
			return e.Count
		case e.Self || e.Message.Author.Bot:
		case e.Kind == core.KindMessage, e.Kind == core.KindPress, e.Kind == core.KindCommand:
			return 0
		}
	}
	return 0
}

// lastSaid returns when the last message before this turn was sent here.
func (in *input) lastSaid() time.Time {
	n := len(in.parts.History)
	if n > 0 {
		return in.parts.History[n-1].Message.SentAt()
	}
	return in.turn.messages[0].Message.SentAt()
}

// loadSeen adds the places that are shared with this one.
func (in *input) loadSeen(v core.View) error {
	t := in.turn
	for _, s := range t.setup.Prompt.Shares {
		if !within(t.path, s.Paths) {
			continue
		}
		for _, root := range s.Paths {
			heads, err := v.Places(root)
			if err != nil {
				return err
			}
			for _, h := range heads {
				open, err := public(v, h)
				if err != nil {
					return err
				}
				if open && !slices.Contains(t.who.Sees, h.Path) && len(t.who.Sees) <= maxSeen {
					t.who.Sees = append(t.who.Sees, h.Path)
				}
			}
		}
	}
	return nil
}

// public reports whether users have written in the place and it is not private.
func public(v core.View, h core.Head) (bool, error) {
	if h.Private {
		return false, nil
	}
	last, err := v.Last(h.Path, publicDepth)
	return slices.ContainsFunc(last, func(e core.Entry) bool { return !e.Self }), err
}

func within(p core.Path, roots []core.Path) bool {
	return slices.ContainsFunc(roots, p.Within)
}

// gather completes the input, once in a turn. It asks all plugins that contribute, and reads attachments, at the same
// time. Contributions are added in the order of the list. Those that are late, fail or are too long are left out.
func (in *input) gather(ctx context.Context) {
	if in.gathered {
		return
	}
	in.gathered = true
	t, s, people := in.turn, in.scene(), in.people()
	in.parts.Injections, in.bios = make(map[string]json.RawMessage), make(map[string]json.RawMessage)
	soon, cancel := context.WithTimeout(ctx, cmp.Or(in.patience, contributionTime))
	defer cancel()
	list := in.contributions(soon, s, people)
	files := in.attachments()
	if len(files) > 0 {
		later, cancel := context.WithTimeout(ctx, openTime)
		defer cancel()
		list = append(list, contribution{"attachments", later.Done(), func() (func(), error) {
			contents := t.setup.Prompt.Open(later, t.path, files)
			return func() { in.parts.Contents = contents }, nil
		}})
	}
	answers := make([]chan func(), len(list))
	for i, c := range list {
		answers[i] = make(chan func(), 1)
		go func() {
			take, err := func() {}, errors.New("it panicked")
			guard(t.log, c.plugin, func() { take, err = c.ask() })
			if err != nil {
				t.log.Warn("contribution left out", "plugin", c.plugin, "err", err)
				take = func() {}
			}
			answers[i] <- take
		}()
	}
	for i, c := range list {
		select {
		case take := <-answers[i]:
			take()
		case <-c.late:
			if len(answers[i]) > 0 { // it was in time, though an earlier one was not
				(<-answers[i])()
				continue
			}
			in.window = nil // the plugin may still read it
			t.log.Warn("contribution left out: it is late", "plugin", c.plugin)
		}
	}
	for _, w := range t.setup.Plugins.Withholders {
		guard(t.log, "actions", func() { in.withheld = append(in.withheld, w.Withhold(s)...) })
	}
	epoch, _, _ := epochs.Of(ctx)
	in.parts.Cache = t.setup.cache.In(epoch)
	in.describe(people)
}

// describe adds the bot, the place, the messages and what plugins contributed to the prompt.
func (in *input) describe(people []core.Author) {
	t, o := in.turn, &in.turn.setup.Options
	iface := t.path.Interface()
	_, chat := t.snapshot.Message(iface)
	in.parts.Interface, in.parts.Chat = iface, chat && !t.who.Mute
	user := "" // in a group, the instructions stay the same for all authors
	if t.who.Private {
		user = t.messages[len(t.messages)-1].Message.Author.Name
	}
	in.parts.Persona = o.Prompt.Persona(t.path, user)
	in.parts.Zone = o.Clock().Location()
	in.parts.Messages = t.messages
	in.parts.Lite, in.parts.Scope = o.Prompt.Lite, in.settings.Scope
	in.parts.Participants = in.participants(people)
	r := prompt.Merge(in.hints, in.settings.Language, o.Prompt.Language)
	r.Instructions = append(r.Instructions, in.occasion()...)
	if in.unheard != "" {
		r.Instructions = append(r.Instructions,
			"You could not hear one of these voice messages. Say that, too, in words like: "+in.unheard)
	}
	in.parts.Recon = r
}

// scene returns what plugins see of the messages and their place.
func (in *input) scene() core.Scene {
	t := in.turn
	var texts []string
	for i := range t.messages {
		if t.messages[i].Message.Text != "" {
			texts = append(texts, t.messages[i].Message.Text)
		}
	}
	s := core.Scene{
		Path: t.path, Private: t.who.Private, Text: strings.Join(texts, "\n"),
		Locale: t.messages[len(t.messages)-1].Message.Locale,
		Now:    t.setup.Clock(), Recent: in.parts.History, Sees: t.who.Sees,
	}
	s.Author, _ = t.who.Author()
	return s
}

// occasion returns instructions for late and overheard messages.
func (in *input) occasion() []string {
	first, s := &in.turn.messages[0], in.turn.setup
	waited := s.waited(first)
	minutes := txt.SpanWords(waited.Round(time.Minute))
	switch {
	case first.Kind == core.KindMessage && s.isLate(waited):
		return []string{"You were away: these messages have waited for " + minutes +
			". Acknowledge them together in one short message."}
	case first.Kind == core.KindReminder && waited >= remindedLate:
		minutes = txt.SpanWords((lateBy(first) + waited).Round(time.Minute))
		return []string{"This reminder could not be sent in time: that was " + minutes +
			" ago. Say that it comes late."}
	case in.turn.unasked() && first.Kind != core.KindBeat:
		return []string{"Nobody spoke to you: you overheard this. " +
			"Say something only if it truly helps or amuses those who talk; else NONE."}
	}
	return nil
}

// people returns the authors of the messages and the history, newest first.
func (in *input) people() (people []core.Author) {
	for _, list := range [][]core.Entry{in.turn.messages, in.parts.History} {
		for i := range slices.Backward(list) {
			a := list[i].Message.Author
			isSame := func(other core.Author) bool { return other.ID == a.ID }
			if !list[i].Self && a.ID != "" && !slices.ContainsFunc(people, isSame) {
				people = append(people, a)
			}
		}
	}
	return people
}

// offer returns the actions of the prompt in a round: in the first, all that are available to
// these users here; then those that were not called yet; in the last, message actions only.
func (in *input) offer(round uint16) []prompt.Action {
	definitions := in.turn.snapshot.Offer(in.turn.who)
	actions := make([]prompt.Action, 0, len(definitions))
	for _, d := range definitions {
		isSame := func(done action.StepResult) bool { return done.Action == d.Name }
		done := round == lastRound || slices.ContainsFunc(in.turn.results.all, isSame)
		if !d.IsMessage() && (done || slices.Contains(in.withheld, d.Name)) {
			continue
		}
		actions = append(actions, prompt.Action{
			Name: d.Name, Brief: d.Brief, Schema: d.PromptSchema(), Essential: d.Essential || d.IsMessage(),
		})
	}
	return actions
}
