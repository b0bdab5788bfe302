package discord

import (
	"cmp"
	"context"
	"strings"

	"synthbot/core"
	"synthbot/core/markdown"
	"synthbot/core/txt"
	"synthbot/interfaces/discord/markup"
	"synthbot/interfaces/discord/rest"
)

var _ core.Chooser = (*Driver)(nil)

// Choose sends a question with a button for each choice, or a list of them if they do not fit
// into one row.
func (d *Driver) Choose(ctx context.Context, parts core.Deliveries, what core.Sent, choices []core.Choice) error {
	rows, err := choiceRows(choices)
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

func choiceRows(choices []core.Choice) ([]any, error) {
	if len(choices) > maxButtons {
		return nil, core.Errorf(core.Invalid, "at most %d choices are allowed", maxButtons)
	}
	var list []button
	var options []any
	for _, c := range choices {
		b := button{Label: c.Label, data: c.Data, mark: judged}
		if c.Writes {
			b.mark = opens
		}
		list = append(list, b)
		options = append(options, map[string]any{"label": line(c.Label, 4*maxLabel), "value": c.Data})
	}
	if len(list) <= rowButtons {
		return components(list, judged)
	}
	menu := map[string]any{"type": 3, "custom_id": judged + ":", "options": options}
	return []any{map[string]any{"type": 1, "components": []any{menu}}}, nil
}

// field is what a button opens: a window with one line to write in. The text of the question
// and the label of the button head it.
func field(i *interaction) map[string]any {
	const maxHeading = 45 / 2 // a character has two units at most
	_, data, _ := strings.Cut(i.Data.Custom, ":")
	heading := func(text string) string { return cmp.Or(txt.Clip(text, maxHeading), "…") }
	title, _, _ := strings.Cut(strings.ReplaceAll(i.Message.Content, `\`, ""), "\n")
	input := map[string]any{
		"type": 4, "style": 1, "custom_id": "answer", "max_length": maxAnswer,
		"label": heading(i.Message.label(i.Data.Custom)),
	}
	return map[string]any{
		"custom_id": judged + ":" + data, "title": heading(title),
		"components": []any{map[string]any{"type": 1, "components": []any{input}}},
	}
}

// maxAnswer is how many characters fit into the field.
const maxAnswer = 1000

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
	p, ok := d.responder.presses.Get(press.ID)
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
