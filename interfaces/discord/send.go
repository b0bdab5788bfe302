package discord

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"strings"

	"synthbot/core"
	"synthbot/core/driver"
	"synthbot/core/txt"
	"synthbot/interfaces/discord/markup"
	"synthbot/interfaces/discord/rest"
)

// Priorities of what waits to be sent.
const (
	priorityLow    = -1
	priorityNormal = 0
	priorityHigh   = 1
)

// maxMessages is how many messages one answer may have.
const maxMessages = 50

// Flags of messages that are sent.
const (
	flagNoPreviews    = 1 << 2 // no previews of links, nor any embeds
	flagSilentMessage = 1 << 12
)

// previewFlag returns the flag that suppresses previews, unless it would also hide embeds.
func (s *settings) previewFlag(embeds []embedPayload) int {
	if s.Previews || len(embeds) > 0 {
		return 0
	}
	return flagNoPreviews
}

// noMentions returns the allowed_mentions that notify nobody.
func noMentions() map[string]any { return map[string]any{"parse": []string{}} }

// outgoing is a message in the form that Discord expects.
type outgoing struct {
	Content    string           `json:"content,omitempty"`
	Nonce      string           `json:"nonce,omitempty"`
	Enforce    bool             `json:"enforce_nonce,omitempty"`
	Embeds     []embedPayload   `json:"embeds,omitempty"`
	Components []any            `json:"components,omitempty"`
	Mentions   map[string]any   `json:"allowed_mentions"`
	Reference  map[string]any   `json:"message_reference,omitempty"`
	Flags      int              `json:"flags,omitempty"`
	Poll       *poll            `json:"poll,omitempty"`
	Files      []map[string]any `json:"attachments,omitempty"`

	number  int // of the part of the step; 0: the next one
	files   []core.Upload
	text    string     // for the history
	instead []outgoing // sent instead if files are not allowed
}

// readCall decodes a call's payload, and returns it with the destination.
func readCall[P any](ctx context.Context, d *Driver, call core.Call) (p P, at destination, err error) {
	var to struct {
		Path core.Path `json:"interface_path"`
	}
	if err := errors.Join(json.Unmarshal(call.Payload, &p), json.Unmarshal(call.Payload, &to)); err != nil {
		return p, at, &core.Error{Kind: core.Invalid, Text: "the payload does not fit the schema", Err: err}
	}
	if m, ok := any(&p).(*messageCall); ok && m.ID == "" {
		return p, at, core.Errorf(core.Invalid, "message_id must be a message's id, which is a number")
	}
	at = destination{place: cmp.Or(to.Path, call.Path), answers: call.Answers}
	if at.place == call.Path {
		at.channel, err = d.channelOf(at.place)
	} else {
		at.channel, err = d.checkedChannel(ctx, at.place)
	}
	if err != nil {
		return p, at, err
	}
	err = d.closed.refused(at.channel)
	if err != nil && len(d.replies.list(at.answersCommand)) > 0 {
		err = nil // a command can be answered even there
	}
	return p, at, err
}

// actionOf returns a Do of an action, which calls do with the payload and the destination of a call.
func actionOf[P any](
	d *Driver, do func(context.Context, core.Call, P, destination) (core.Result, error),
) func(context.Context, core.Call) (core.Result, error) {
	return func(ctx context.Context, call core.Call) (core.Result, error) {
		p, at, err := readCall[P](ctx, d, call)
		if err != nil {
			return core.Result{}, err
		}
		return do(ctx, call, p, at)
	}
}

// messageID is a message's id. It is empty if the payload has something else, because that would
// become part of the address of a request.
type messageID string

// UnmarshalJSON accepts a string or, because models sometimes write one, a number.
func (m *messageID) UnmarshalJSON(text []byte) error {
	*m = messageID(snowflake().FindString(strings.Trim(string(text), `" `)))
	return nil
}

var snowflake = txt.Pattern(`^[0-9]{1,20}$`)

func (d *Driver) checkMessage(ctx context.Context, call core.Call) error {
	s, _, err := readCall[messagePayload](ctx, d, call)
	if err == nil {
		_, err = d.compose(call, &s)
	}
	return err
}

func (d *Driver) sendMessage(
	ctx context.Context, call core.Call, s messagePayload, at destination,
) (r core.Result, err error) {
	list, err := d.compose(call, &s)
	if err != nil {
		return r, err
	}
	priorities := map[string]int{"high": priorityHigh, "low": priorityLow}
	return r, d.deliver(ctx, call.Deliveries, at, list, priorities[s.Priority])
}

// Link implements core.Linker.
func (d *Driver) Link(place core.Path, id string) string {
	e := place.Elements()
	if len(e) < 3 || e[0] != d.opt.Name {
		return ""
	}
	return "https://discord.com/channels/" + e[1] + "/" + e[len(e)-1] + "/" + id
}

// Tell sends a text to a place, or to a user in private, even if another process may have taken over. It blocks for
// rate limits. It does not retry if the message may have been sent.
func (d *Driver) Tell(ctx context.Context, to core.Path, text string) error {
	texts := markup.Messages(text)
	if !txt.HasVisible(text) || len(texts) > maxMessages {
		return core.Errorf(core.Invalid, "the text is empty, or too long")
	}
	ctx = driver.Unheld(ctx)
	channel, err := d.channelFor(ctx, to)
	if err != nil {
		return err
	}
	if err := d.closed.refused(channel); err != nil {
		return err
	}
	leave, err := d.sendQueue.Enter(ctx, channel, priorityNormal)
	if err != nil {
		return rest.Failure("the message", err)
	}
	defer leave()
	d.drafts.Clear(ctx, channel)
	for _, t := range texts {
		m := &outgoing{Content: t, Mentions: noMentions(), Flags: d.set.previewFlag(nil)}
		id, err := d.requestID(ctx, sendRequest(channel, m, true))
		if err != nil {
			d.markClosed(channel, to, m, err)
			return rest.Failure("sending a message", err)
		}
		if to.IsPerson() { // a reply can be fetched from now on, even if it arrives while the bot is disconnected
			d.cursors.expect(channel, place{Kind: channelDirect}, id, d.opt.Clock())
		}
		d.cursors.recordSent(channel, id, d.opt.Clock())
	}
	return nil
}
