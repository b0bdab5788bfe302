package discord

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"synthbot/core"
	"synthbot/core/markdown"
	"synthbot/core/txt"
	"synthbot/interfaces/discord/markup"
	"synthbot/interfaces/discord/rest"
)

// Limits of buttons.
const (
	maxButtons    = 25
	rowButtons    = 5
	maxLabel      = 80 // this and the following ones are in UTF-16 units
	maxSuggestion = 75
	maxCustom     = 100
	maxAddress    = 512
)

// A button's id begins with who may press it: the ids of users, or one of these.
const (
	pressAnyone = "*"
	pressCore   = "?" // the core decides; its own data follows
	pressField  = "!" // the same, with what is written in the field that the button opens
)

// button is a button below a message. It opens the URL or, if that is empty, says the label in the
// name of the user who presses it.
type button struct {
	Label string `json:"label"`
	URL   string `json:"url"`

	id string // "": composed of who may press it and its position
}

// pressers returns who may press the buttons of a message: the users who caused it, or everyone
// if the bot itself did, or if the message goes to another place than theirs.
func (s *messagePayload) pressers(call core.Call) string {
	here := cmp.Or(s.Path, call.Path) == call.Path
	var ids []string
	for _, a := range call.Authors {
		if a.ID != "" && a.Rank < core.RankBot && here {
			ids = append(ids, a.ID)
		}
	}
	if len(ids) == 0 {
		return pressAnyone
	}
	return strings.Join(ids, ",")
}

// buttons returns the buttons of the payload, and one for each suggestion, as far as there is room.
func (s *messagePayload) buttons() []button {
	list := s.Buttons
	for _, text := range s.Suggest {
		text = strings.Join(strings.Fields(text), " ")
		known := slices.ContainsFunc(list, func(b button) bool { return b.Label == text })
		if text != "" && markdown.UTF16(text) <= maxSuggestion && len(list) < maxButtons && !known {
			list = append(slices.Clip(list), button{Label: text})
		}
	}
	return list
}

func buttonRows(list []button, whom string) ([]any, error) {
	if len(list) > maxButtons {
		return nil, core.Errorf(core.Invalid, "buttons: at most %d are allowed", maxButtons)
	}
	var all []any
	for i, b := range list {
		c, err := buttonComponent(b, whom, i)
		if err != nil {
			return nil, core.Errorf(core.Invalid, "buttons[%d]: %v", i, err)
		}
		if c != nil {
			all = append(all, c)
		}
	}
	var rows []any
	for row := range slices.Chunk(all, rowButtons) {
		rows = append(rows, map[string]any{"type": 1, "components": row})
	}
	return rows, nil
}

// buttonComponent returns the i-th button; nil if the ids of all users who may press it do not fit into
// the button's id.
func buttonComponent(b button, whom string, i int) (map[string]any, error) {
	label := line(b.Label, 4*maxLabel)
	if label == "" || markdown.UTF16(label) > maxLabel {
		return nil, fmt.Errorf("label must have 1 to %d characters", maxLabel)
	}
	if b.URL != "" {
		if !webAddress(b.URL) || markdown.UTF16(b.URL) > maxAddress {
			return nil, fmt.Errorf("url must begin with https:// and have at most %d characters", maxAddress)
		}
		return map[string]any{"type": 2, "style": 5, "label": label, "url": b.URL}, nil
	}
	id := cmp.Or(b.id, whom+":"+strconv.Itoa(i))
	if len(id) > maxCustom {
		return nil, nil
	}
	return map[string]any{"type": 2, "style": 2, "label": label, "custom_id": id}, nil
}

// Choose implements core.Chooser. If the buttons do not fit into one row, it sends a select menu instead.
func (d *Driver) Choose(ctx context.Context, parts core.Deliveries, what core.Sent, choices []core.Choice) error {
	rows, err := choiceRows(choices)
	if err != nil {
		return err
	}
	if markdown.UTF16(markup.Literal(what.Text)) > markup.MaxContent {
		return core.Errorf(core.Invalid, "the question is too long")
	}
	channel, err := d.channelOf(what.Path)
	if err != nil {
		return err
	}
	m := outgoing{Content: markup.Literal(what.Text), Components: rows, Mentions: noMentions(), text: what.Text}
	at := destination{channel: channel, place: what.Path}
	return d.deliver(ctx, parts, at, []outgoing{m}, priorityHigh)
}

func choiceRows(choices []core.Choice) ([]any, error) {
	if len(choices) > maxButtons {
		return nil, core.Errorf(core.Invalid, "at most %d choices are allowed", maxButtons)
	}
	var list []button
	var options []any
	for _, c := range choices {
		mark := pressCore
		if c.Writes {
			mark = pressField
		}
		list = append(list, button{Label: c.Label, id: mark + ":" + c.Data})
		options = append(options, map[string]any{"label": line(c.Label, 4*maxLabel), "value": c.Data})
	}
	if len(list) <= rowButtons {
		return buttonRows(list, pressCore)
	}
	menu := map[string]any{"type": 3, "custom_id": pressCore + ":", "options": options}
	return []any{map[string]any{"type": 1, "components": []any{menu}}}, nil
}

// fieldWindow is the window that a button opens, with a field for one line of text. Its title is from the
// question, and the field's label is the button's.
func fieldWindow(i *interaction) map[string]any {
	const maxHeading = 45 / 2 // a character has two units at most
	_, data, _ := strings.Cut(i.Data.Custom, ":")
	heading := func(text string) string { return cmp.Or(txt.Clip(text, maxHeading), "…") }
	title, _, _ := strings.Cut(strings.ReplaceAll(i.Message.Content, `\`, ""), "\n")
	input := map[string]any{
		"type": 4, "style": 1, "custom_id": "answer", "max_length": maxAnswer,
		"label": heading(i.Message.label(i.Data.Custom)),
	}
	return map[string]any{
		"custom_id": pressCore + ":" + data, "title": heading(title),
		"components": []any{map[string]any{"type": 1, "components": []any{input}}},
	}
}

// maxAnswer is how many characters a user can write into the field.
const maxAnswer = 1000

// Settle implements core.Chooser: it replaces a question with its outcome, without buttons.
func (d *Driver) Settle(ctx context.Context, m core.Sent) error {
	channel, err := d.channelOf(m.Path)
	if err != nil {
		return err
	}
	fields := map[string]any{"content": markup.Literal(m.Text), "components": []any{}}
	return rest.FailureOrNil("changing the question", d.changeMessage(ctx, channel, m.ID, fields, false))
}

// Whisper implements core.Chooser: it sends a text that only the user who pressed a button sees.
func (d *Driver) Whisper(ctx context.Context, press core.Message, text string) error {
	p, _ := d.replies.arrived.Get(press.ID)
	if p == nil || p.over() {
		return core.Errorf(core.Invalid, "%q is not a press of a button, or it is too old", press.ID)
	}
	if !d.replies.acknowledged(ctx, p.ID) {
		return ctx.Err()
	}
	flags := ephemeral | d.set.previewFlag(nil)
	return rest.FailureOrNil("answering that person", d.rest.Do(ctx, rest.Request{
		Method: "POST", Route: webhook, IDs: []string{p.App, p.Token},
		Body: &outgoing{Content: markup.Single(text), Flags: flags, Mentions: noMentions()},
	}))
}
