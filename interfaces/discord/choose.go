package discord

import (
	"context"

	"synthbot/core"
	"synthbot/core/markdown"
	"synthbot/interfaces/discord/markup"
	"synthbot/interfaces/discord/rest"
)

var _ core.Chooser = (*Driver)(nil)

// Choose sends a question with a button for each choice.
func (d *Driver) Choose(ctx context.Context, parts core.Deliveries, what core.Sent, choices []core.Choice) error {
	var list []button
	for _, c := range choices {
		list = append(list, button{Label: c.Label, data: c.Data})
	}
	rows, err := components(list, judged)
	if err != nil {
		return err
	}
	if markdown.UTF16(markup.Literal(what.Text)) > markup.MaxContent {
		return core.Errorf(core.Invalid, "the question is too long")
	}
	channel, err := d.finder.channelOf(what.Path)
	if err != nil {
		return err
	}
	m := outgoing{Content: markup.Literal(what.Text), Components: rows, Mentions: nobody(), text: what.Text}
	at := destination{channel: channel, place: what.Path}
	return d.sender.deliver(ctx, parts, at, []outgoing{m}, high)
}

// Settle replaces a question with its outcome, without buttons.
func (d *Driver) Settle(ctx context.Context, m core.Sent) error {
	channel, err := d.finder.channelOf(m.Path)
	if err != nil {
		return err
	}
	fields := map[string]any{"content": markup.Literal(m.Text), "components": []any{}}
	return rest.Worded("changing the question", d.changeMessage(ctx, channel, m.ID, fields, false))
}

// Whisper sends a text that only the user who pressed a button sees.
func (d *Driver) Whisper(ctx context.Context, press core.Message, text string) error {
	d.responder.mu.Lock()
	p, ok := d.responder.presses.Get(press.ID)
	d.responder.mu.Unlock()
	if !ok || p.over() {
		return core.Errorf(core.Invalid, "%q is not a press, or an old one", press.ID)
	}
	if !p.ready(ctx) {
		return ctx.Err()
	}
	return rest.Worded("telling that person", d.rest.Do(ctx, rest.Request{
		Method: "POST", Route: "/webhooks/{}/{}", IDs: []string{p.App, p.Token},
		Body: &outgoing{Content: markup.Single(text), Flags: ephemeral | d.set.plain(nil), Mentions: nobody()},
	}))
}
