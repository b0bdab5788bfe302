package discord

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"synthbot/core"
	"synthbot/core/watch"
	"synthbot/interfaces/discord/rest"
)

// Kinds of response to an interaction.
const (
	answerNow      = 4 // a message
	answerLater    = 5 // a message that follows; until then, Discord shows that the bot is thinking
	answerSilently = 6 // acknowledges a press
	answerChoices  = 8 // suggestions for an argument
	answerField    = 9 // a window with a text field
)

// ephemeral is the flag of messages that only one user sees.
const ephemeral = 1 << 6

// arrival is an interaction that was just received. Discord requires a response within three seconds.
type arrival struct {
	pending
	decided      chan bool     // whether it is refused because it makes no sense here, or is on disk
	acknowledged chan struct{} // closed when it was acknowledged, or could not be
}

// decide reports that the interaction is on disk, or refused. The arrival may be nil.
func (a *arrival) decide(refused bool) {
	if a != nil {
		select {
		case a.decided <- refused:
		default: // it was decided before
		}
	}
}

// maxArrivals is how many interactions are remembered.
const maxArrivals = 4000

// responder responds to interactions, and registers the chat commands.
type responder struct {
	*account
	changed chan struct{} // holds a token if the commands may have changed
}

// handleArrival responds to interactions that the inbox does not need, such as completions and presses
// of other users' buttons, and returns nil. All others are acknowledged when they are on disk, or
// a little before Discord would show them as failed.
func (r *responder) handleArrival(ctx context.Context, data []byte) *arrival {
	i := decode[interaction](data)
	who := i.person()
	known, _ := r.replies.arrived.Get(i.ID)
	if i.ID == "" || i.Token == "" || who == nil || known != nil {
		return nil
	}
	c := &arrival{pending: i.pending(), decided: make(chan bool, 1), acknowledged: make(chan struct{})}
	r.replies.arrived.Put(i.ID, c)
	switch {
	case i.Type == interactComplete:
		r.background(ctx, func(ctx context.Context) { r.complete(ctx, &i) })
	case i.Type == interactPress && !r.mayPress(i.Data.Custom, who.ID):
		r.background(ctx, func(ctx context.Context) { r.whisper(ctx, &i, "These buttons are for somebody else.") })
	case i.Type == interactPress && i.Message != nil && strings.HasPrefix(i.Data.Custom, pressField+":"):
		r.background(ctx, func(ctx context.Context) { r.respond(ctx, &i, answerField, fieldWindow(&i)) })
	case i.Type == interactPress || i.Type == interactFilled || i.Type == interactCommand:
		if !r.background(ctx, func(ctx context.Context) { r.acknowledge(ctx, &i, c) }) {
			close(c.acknowledged)
		}
		return c
	}
	return nil
}

// acknowledge responds to an interaction when it is on disk or refused, or when time is running out. It also removes
// pressed buttons that only one user may press.
func (r *responder) acknowledge(ctx context.Context, i *interaction, c *arrival) {
	defer close(c.acknowledged)
	select {
	case refused := <-c.decided:
		if refused {
			r.whisper(ctx, i, "That does not work here.")
			return
		}
	case <-time.After(r.timings.acknowledge):
	case <-ctx.Done():
	}
	if i.Type == interactCommand {
		r.respond(ctx, i, answerLater, nil)
		return
	}
	r.respond(ctx, i, answerSilently, nil)
	whom, _, _ := strings.Cut(i.Data.Custom, ":")
	if whom == pressAnyone || whom == pressCore || strings.Contains(whom, ",") {
		return
	}
	err := r.rest.Do(ctx, rest.Request{
		Method: "PATCH", Route: original, IDs: []string{i.App, i.Token}, Fast: true,
		Body: map[string]any{"components": []any{}, "allowed_mentions": noMentions()},
	})
	if err != nil {
		r.log.Warn("pressed buttons not removed", "err", err)
	}
}

// whisper responds to an interaction with a text that only its user sees.
func (r *responder) whisper(ctx context.Context, i *interaction, text string) {
	r.respond(ctx, i, answerNow, map[string]any{"content": text, "flags": ephemeral, "allowed_mentions": noMentions()})
}

// background runs f, which takes seconds at most, in a goroutine. It returns false if
// Listen has ended. f goes on when ctx ends, because Discord waits for a response.
func (r *responder) background(ctx context.Context, f func(context.Context)) bool {
	return r.tasks.Go(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.timings.respond)
		defer cancel()
		f(ctx)
	})
}

func (i *interaction) person() *user {
	if i.Member != nil && i.Member.User != nil {
		return i.Member.User
	}
	return i.User
}

// mayPress reports whether a user may press a button, according to its id. Admins may press any button.
func (r *responder) mayPress(custom, who string) bool {
	whom, _, found := strings.Cut(custom, ":")
	person, err := core.MakePath(r.opt.Name, "@user", who)
	return !found || slices.Contains([]string{pressAnyone, pressCore, pressField}, whom) ||
		slices.Contains(strings.Split(whom, ","), who) || err == nil && slices.Contains(r.opt.Admins(), person)
}

func (t *intake) takeInteraction(f gatewayEvent, p place) {
	i := decode[interaction](f.Data)
	e, ok := t.interactionEvent(&i, p)
	if !ok {
		f.call.decide(true)
		return
	}
	t.batch = append(t.batch, e)
	// After a command in private, missed messages there can be found.
	t.d.cursors.expect(i.Channel, p, i.ID, t.d.opt.Clock())
	if i.Type == interactCommand {
		t.d.replies.add(i.pending()) // before the event is on disk, because its turn may begin at once
	}
	t.after = append(t.after, func() { f.call.decide(false) })
}

func (r *responder) respond(ctx context.Context, i *interaction, kind int, data any) {
	body := map[string]any{"type": kind}
	if data != nil {
		body["data"] = data
	}
	err := r.rest.Do(ctx, rest.Request{
		Method: "POST", Route: "/interactions/{}/{}/callback", IDs: []string{i.ID, i.Token}, Body: body, Fast: true,
	})
	if err != nil {
		r.log.Warn("interaction not answered", "err", err)
	}
}

// interactionEvent converts an interaction; ok is false if it makes no sense here.
func (t *intake) interactionEvent(i *interaction, p place) (e core.Event, ok bool) {
	m, ok := t.eventMessage(i.Channel, p, i.ID)
	who := i.person()
	if !ok || who == nil {
		return e, false
	}
	m.Locale, m.Author, m.Addressed = line(i.Locale, 35), t.d.cache.author(who, i.Member, p), core.AddressedMention
	t.d.cache.locales.Put(strings.Clone(who.ID), m.Locale)
	if m.Private {
		m.Addressed = core.AddressedDirect
	}
	made := idTime(i.ID)
	if !made.IsZero() {
		m.Time, m.Ahead = made, t.d.rest.ClockAhead()
	}
	e.Message = m
	switch {
	case i.Type != interactCommand:
		ok = i.fillPress(&e)
	case i.Data.Type == typeMessage:
		ok = t.d.responder.fillMenu(&e, i)
	default:
		ok = t.d.responder.fillCommand(&e, i)
	}
	return e, ok
}

// fillPress fills the event of a pressed button, of a choice from a select menu, or of a text that was
// written into the field of a button. If the core does not decide on it, the press says the button's label.
func (i *interaction) fillPress(e *core.Event) bool {
	if i.Message == nil {
		return false
	}
	whom, data, _ := strings.Cut(i.Data.Custom, ":")
	switch {
	case whom != pressCore:
		data = i.Message.label(i.Data.Custom)
	case len(i.Data.Values) > 0:
		data = i.Data.Values[0]
	case i.Type == interactFilled && len(i.Data.Rows) > 0 && len(i.Data.Rows[0].Fields) > 0:
		e.Message.Text = short(i.Data.Rows[0].Fields[0].Value, 4*maxAnswer)
	}
	e.Kind, e.Target, e.Data = core.KindPress, i.Message.ID, short(data, 4096)
	return data != ""
}

// label returns the label of the button with an id; "" if there is none.
func (m *message) label(id string) string {
	for _, row := range m.Rows {
		for _, c := range row.Buttons {
			if c.Custom == id {
				return c.Label
			}
		}
	}
	return ""
}

func (r *responder) fillCommand(e *core.Event, i *interaction) bool {
	var args []string
	given := make(map[string]string, len(i.Data.Options))
	for _, o := range i.Data.Options {
		given[o.Name] = short(o.text(), core.MaxQuote)
		args = append(args, given[o.Name])
	}
	spec := r.spec(i.Data.Name)
	if spec.Name != "" {
		args = nil
		for _, a := range spec.Args {
			args = append(args, given[a.Name])
		}
	}
	for len(args) > 0 && args[len(args)-1] == "" {
		args = args[:len(args)-1]
	}
	e.Kind, e.Command = core.KindCommand, &core.Command{Name: i.Data.Name, Args: args}
	e.Message.Text = strings.TrimSpace("/" + i.Data.Name + " " + strings.Join(args, " "))
	return i.Data.Name != ""
}

// fillMenu fills the event of the command in the context menu of a message, which becomes a foreign text with
// its author.
func (r *responder) fillMenu(e *core.Event, i *interaction) bool {
	m := i.Data.Resolved.Messages[i.Data.Target] // zero if it is missing
	m.Channel = i.Channel
	said := core.Foreign{Kind: core.ForeignForward, Text: r.cache.reader(&m, i.Guild).fullText(&m), Time: m.Time.Time}
	if m.Author != nil {
		said.From = core.Author{ID: m.Author.ID, Name: displayName(m.Author, m.Member), Bot: m.Author.Bot}
	}
	e.Kind, e.Target = core.KindCommand, i.Data.Target
	e.Command = &core.Command{Name: menuCommand}
	e.Message.Text, e.Message.Foreign = "/"+menuCommand, []core.Foreign{said}
	return said.Text != ""
}

func (o *option) text() string {
	var s string
	if json.Unmarshal(o.Value, &s) == nil {
		return s
	}
	return string(o.Value)
}

// Observe implements watch.Observer. At the end of a turn, it removes an unfinished draft. When the turn of a command
// has ended, the command accepts no further answers. If it got none, Discord's sign that the bot is thinking is
// removed, unless Listen has ended.
func (d *Driver) Observe(end watch.TurnEnd) {
	channel, err := d.channelOf(end.Turn.Path)
	if err == nil && end.Turn.Seq != 0 && !end.Command {
		d.drafts.Withdraw(channel)
	}
	for _, p := range d.replies.list(func(p pending) bool { return slices.Contains(end.Messages, p.ID) }) {
		if p.Answered {
			d.replies.drop(p)
			continue
		}
		r := d.responder
		r.background(context.Background(), func(ctx context.Context) { r.removeThinking(ctx, p) })
	}
}

// removeThinking removes the sign that the bot is thinking, but not a message that has replaced it: an
// answer with an unknown outcome.
func (r *responder) removeThinking(ctx context.Context, p pending) {
	if !r.replies.acknowledged(ctx, p.ID) {
		return
	}
	var there message
	at := rest.Request{Method: "GET", Route: original, IDs: []string{p.App, p.Token}, Fast: true, Out: &there}
	err := r.rest.Do(ctx, at)
	if err == nil && there.Flags&flagLoading != 0 {
		at.Method, at.Out = "DELETE", nil
		err = r.rest.Do(ctx, at)
	}
	if err != nil && !rest.NotFound(err) {
		r.log.Warn("sign of thinking not removed", "err", err)
	}
	r.replies.drop(p)
}
