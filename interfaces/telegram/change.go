package telegram

import (
	"context"
	"strings"

	"synthbot/core"
	"synthbot/core/markdown"
	"synthbot/interfaces/telegram/botapi"
	"synthbot/interfaces/telegram/markup"
)

// about is a message that an action changes.
type about struct {
	addressed
	Message anyID  `json:"message_id"`
	Text    string `json:"text"`
	Emoji   string `json:"emoji"`
	number  int64  // of the message, as the platform counts
	part    markup.Part
}

func (d *delivery) checkAbout(_ core.Call, to chatKey, a *about) error {
	if a.Message == "" {
		return core.Errorf(core.Invalid, "message_id: say which message")
	}
	a.number = d.places.messageNumber(to.chat, string(a.Message))
	if a.number == 0 {
		return core.Errorf(core.Invalid, "message_id: %s is none of this bot's time", a.Message)
	}
	return nil
}

// checkEdit reads the new text, which fits into one message.
func (d *delivery) checkEdit(call core.Call, to chatKey, a *about) error {
	if err := d.checkAbout(call, to, a); err != nil {
		return err
	}
	if !markup.HasVisible(markup.Visible(a.Text)) {
		return core.Errorf(core.Invalid, "text is empty: give the new text, or delete the message")
	}
	parts := markup.Parts(a.Text, markup.MaxText)
	if len(parts) > 1 {
		return core.Errorf(core.Invalid, "text: a message holds %d characters, and an edit cannot make two of one",
			markup.MaxText)
	}
	a.part = parts[0]
	return nil
}

// edit puts a new text in place of an old one of the bot's own.
func (d *delivery) edit(ctx context.Context, _ core.Call, to chatKey, a *about) error {
	if err := d.editTo(ctx, to, a.number, keyboardRows{}, a.part); err != nil {
		return explain(err)
	}
	d.receive(ctx, core.Event{Kind: core.KindEdit,
		Message: core.Message{Path: d.path(to), ID: string(a.Message), Text: a.part.Source}})
	return nil
}

// editTo changes a message. One that says this already is as it should be; one
// with a file has a caption.
func (d *delivery) editTo(ctx context.Context, to chatKey, message int64, k keyboardRows, p markup.Part) error {
	params := botapi.Params{"message_id": message}
	if len(k.Rows) > 0 {
		params["reply_markup"] = k
	}
	r := botapi.Request{Method: "editMessageText", Params: params, Chat: to.chat, Again: true}
	_, err := d.write(ctx, r, p)
	if botapi.Says(err, "no text in the message") {
		delete(params, "text")
		r.Method = "editMessageCaption"
		_, err = d.write(ctx, r, p)
	}
	if botapi.Says(err, "not modified") {
		return nil
	}
	return err
}

// remove deletes a message; one that is gone is as it should be.
func (d *delivery) remove(ctx context.Context, _ core.Call, to chatKey, a *about) error {
	params := botapi.Params{"message_id": a.number}
	_, err := d.api.Do(ctx, botapi.Request{Method: "deleteMessage", Params: params, Chat: to.chat, Again: true})
	if err != nil && !botapi.Says(err, "to delete not found") {
		return explain(err)
	}
	gone := core.Message{Path: d.path(to), ID: string(a.Message)}
	d.receive(ctx, core.Event{Kind: core.KindDeletion, Target: gone.ID, Message: gone})
	return nil
}

// react puts an emoji on a message; none takes the bot's away.
func (d *delivery) react(ctx context.Context, _ core.Call, to chatKey, a *about) error {
	err := d.setReaction(ctx, to, a.number, a.Emoji)
	if botapi.Says(err, "REACTION_INVALID", "REACTION_EMPTY", "parse reaction") {
		return core.Errorf(core.Invalid,
			"emoji: %q cannot be put on messages here; 👍 👎 ❤ 🔥 🎉 😁 🤔 👀 usually can", a.Emoji)
	}
	return explain(err)
}

func (d *delivery) setReaction(ctx context.Context, to chatKey, message int64, emoji string) error {
	list := []map[string]string{}
	if emoji != "" {
		list = append(list, map[string]string{"type": "emoji", "emoji": emoji})
	}
	params := botapi.Params{"message_id": message, "reaction": list}
	r := botapi.Request{Method: "setMessageReaction", Params: params, Chat: to.chat, Again: true, Rank: -1}
	_, err := d.api.Do(ctx, r)
	return err
}

// question is what the poll action sends.
type question struct {
	addressed
	Question  string   `json:"question"`
	Options   []string `json:"options"`
	Multiple  bool     `json:"multiple"`
	Anonymous *bool    `json:"anonymous"`
}

func (d *delivery) checkPoll(_ core.Call, _ chatKey, q *question) error {
	fits := func(s string, most int) bool { return markup.HasVisible(s) && markdown.UTF16(s) <= most }
	q.Question = markup.Visible(q.Question)
	if !fits(q.Question, 300) {
		return core.Errorf(core.Invalid, "question: between 1 and 300 characters are possible")
	}
	if len(q.Options) < 2 || len(q.Options) > 12 {
		return core.Errorf(core.Invalid, "options: between 2 and 12 are possible")
	}
	for i, o := range q.Options {
		q.Options[i] = markup.Visible(o)
		if !fits(q.Options[i], 100) {
			return core.Errorf(core.Invalid, "options[%d]: between 1 and 100 characters are possible", i)
		}
	}
	return nil
}

func (d *delivery) sendPoll(ctx context.Context, call core.Call, to chatKey, q *question) error {
	var options []map[string]string
	for _, o := range q.Options {
		options = append(options, map[string]string{"text": o})
	}
	params := botapi.Params{"question": q.Question, "options": options, "allows_multiple_answers": q.Multiple}
	if q.Anonymous != nil && !*q.Anonymous {
		params["is_anonymous"] = "false"
	}
	said := "[poll: " + q.Question + ": " + strings.Join(q.Options, " | ") + "]"
	return d.send(ctx, call.Deliveries, outgoing{
		addressed: q.addressed, to: to, method: "sendPoll", params: params, parts: []markup.Part{{}}, number: 1,
		what: core.Sent{Path: d.path(to), Text: said},
	})
}
