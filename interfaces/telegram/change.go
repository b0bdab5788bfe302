package telegram

import (
	"context"

	"synthbot/core"
	"synthbot/interfaces/telegram/botapi"
	"synthbot/interfaces/telegram/markup"
)

// about is a message that an action changes.
type about struct {
	Message anyID  `json:"message_id"`
	Path    string `json:"interface_path"`
	Text    string `json:"text"`
	Emoji   string `json:"emoji"`
	number  int64  // of the message, as the platform counts
	part    markup.Part
}

func (c *catalogue) about(call core.Call) (about, target, error) {
	var a about
	if err := payload(call, &a); err != nil {
		return a, target{}, err
	}
	to, err := c.send.target(call, a.Path)
	if err == nil && a.Message == 0 {
		err = core.Errorf(core.Invalid, "message_id: say which message")
	}
	a.number = c.send.places.messageNumber(to.key.chat, int64(a.Message))
	if err == nil && a.number == 0 {
		err = core.Errorf(core.Invalid, "message_id: %d is none of this bot's time", a.Message)
	}
	return a, to, err
}

// edited reads a call that edits. The new text fits into one message.
func (c *catalogue) edited(call core.Call) (about, target, error) {
	a, to, err := c.about(call)
	if err != nil {
		return a, to, err
	}
	if !markup.HasVisible(markup.Visible(a.Text)) {
		return a, to, core.Errorf(core.Invalid, "text is empty: give the new text, or delete the message")
	}
	parts := markup.Parts(a.Text, markup.MaxText)
	if len(parts) > 1 {
		err = core.Errorf(core.Invalid, "text: a message holds %d characters, and an edit cannot make two of one",
			markup.MaxText)
	}
	a.part = parts[0]
	return a, to, err
}

// edit puts a new text in place of an old one of the bot's own.
func (c *catalogue) edit(ctx context.Context, _ core.Call, to target, a about) error {
	if err := c.send.editTo(ctx, to, a.number, botapi.Params{}, a.part); err != nil {
		return explain(err)
	}
	c.receive(ctx, core.Event{Kind: core.KindEdit,
		Message: core.Message{Path: to.path, ID: id(int64(a.Message)), Text: a.part.Source}})
	return nil
}

// editTo changes a message. One that says this already is as it should be; one
// with a file has a caption.
func (d *delivery) editTo(ctx context.Context, to target, message int64, params botapi.Params, p markup.Part) error {
	params["message_id"] = id(message)
	r := botapi.Request{Method: "editMessageText", Params: params, Chat: to.key.chat, Again: true}
	_, err := d.written(ctx, r, p)
	if botapi.Says(err, "no text in the message") {
		delete(params, "text")
		r.Method = "editMessageCaption"
		_, err = d.styled(ctx, r, "caption", p)
	}
	if botapi.Says(err, "not modified") {
		return nil
	}
	return err
}

// remove deletes a message; one that is gone is as it should be.
func (c *catalogue) remove(ctx context.Context, _ core.Call, to target, a about) error {
	r := botapi.Request{Method: "deleteMessage", Params: botapi.Params{"message_id": id(a.number)}, Chat: to.key.chat,
		Again: true}
	if _, err := c.send.api.Do(ctx, r); err != nil && !botapi.Says(err, "to delete not found") {
		return explain(err)
	}
	gone := id(int64(a.Message))
	c.receive(ctx, core.Event{Kind: core.KindDeletion, Target: gone, Message: core.Message{Path: to.path, ID: gone}})
	return nil
}

// react puts an emoji on a message; none takes the bot's away.
func (c *catalogue) react(ctx context.Context, _ core.Call, to target, a about) error {
	err := c.send.setReaction(ctx, to.key, a.number, a.Emoji)
	if botapi.Says(err, "REACTION_INVALID", "REACTION_EMPTY", "parse reaction") {
		return core.Errorf(core.Invalid,
			"emoji: %q cannot be put on messages here; 👍 👎 ❤ 🔥 🎉 😁 🤔 👀 usually can", a.Emoji)
	}
	return explain(err)
}

func (d *delivery) setReaction(ctx context.Context, s chatKey, message int64, emoji string) error {
	list := []map[string]string{}
	if emoji != "" {
		list = append(list, map[string]string{"type": "emoji", "emoji": emoji})
	}
	params := botapi.Params{"message_id": id(message)}
	params.AddJSON("reaction", list)
	r := botapi.Request{Method: "setMessageReaction", Params: params, Chat: s.chat, Again: true, Rank: -1}
	_, err := d.api.Do(ctx, r)
	return err
}
