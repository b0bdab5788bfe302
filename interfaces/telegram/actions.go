package telegram

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"synthbot/core"
	"synthbot/core/action"
	"synthbot/core/markdown"
	"synthbot/core/txt"
	"synthbot/interfaces/telegram/botapi"
	"synthbot/interfaces/telegram/markup"
)

// Properties that several payloads share. Schemas are part of every prompt, so they are short.
const (
	pathProperty   = `"interface_path":{"type":"string","title":"place"}`
	replyProperty  = `"reply_to_message_id":{"type":["string","integer"],"title":"reply to"}`
	silentProperty = `"silent":{"type":"boolean","title":"without a sound"}`
	idProperty     = `"message_id":{"type":["string","integer"],"pattern":"^[1-9][0-9]*$","title":"message"}`
	rankProperty   = `"priority":{"enum":["low","normal","high"],"title":"priority"}`

	buttonsProperty = `"buttons":{"type":"array","maxItems":25,"title":"buttons",` +
		`"items":{"type":"object","required":["label"],` +
		`"properties":{"label":{"type":"string"},"url":{"type":"string"}}}}`

	fileProperties = `"url":{"type":"string","title":"address","description":"A public https address."},` +
		`"ref":{"type":"string","title":"file","description":"Of a file somebody sent."},` +
		`"caption":{"type":"string","title":"caption"}`
)

func object(title, required string, properties ...string) json.RawMessage {
	return json.RawMessage(`{"type":"object","title":"` + title + `","additionalProperties":false,` +
		`"required":[` + required + `],"properties":{` + strings.Join(properties, ",") + `}}`)
}

// Actions implements core.Interface.
func (d *Driver) Actions() []core.Action {
	s := d.send
	list := slices.Concat([]core.Action{s.messageAction()}, s.actionsOnMessages(), s.postingActions())
	for i := range list {
		list[i].Timeout = 10 * time.Minute // leaves time for waits that Telegram asks for
		list[i].Permission = cmp.Or(list[i].Permission, core.PermissionEveryone)
		list[i].Idempotent = true // the journal has each sent message, and other calls can be repeated
	}
	return list
}

// example returns an example whose payload is format, with $at replaced by a place.
func (d *delivery) example(scenario, format string) core.Example {
	at := strconv.Quote(d.opt.Name + "/-1001234567890/7")
	return core.NewExample(scenario, strings.ReplaceAll(format, "$at", at))
}

func (d *delivery) messageAction() core.Action {
	return handle(d, core.Action{
		Name:    core.MessagePrefix + d.opt.Name,
		Similes: []string{"send_message_" + d.opt.Name, d.opt.Name + "_message"},
		Brief:   "Send a message, as Markdown",
		Schema: object("Send a message", `"text"`, `"text":{"type":"string","title":"text"}`,
			`"interface_path":{"type":"string","title":"place","description":"default: here"}`,
			`"recipient":{"type":"string","title":"recipient","description":"#topic or @name"}`,
			`"reply_to_message_id":{"type":["string","integer"],"title":"reply to","description":"message_id"}`,
			buttonsProperty,
			`"suggestions":{"type":"array","items":{"type":"string"},"deprecated":true}`, silentProperty, rankProperty),
		Examples: core.Examples{
			Description: "Says something in a Telegram chat.",
			Instructions: core.Instructions{
				WhenToUse: "To answer, ask or tell: anything that people should read.",
				CommonPitfalls: []string{
					"Put the words into text, and into no other key.", "A path of another interface is refused.",
					"Buttons are answers that people can choose; they are not decoration.",
					"message_id and reply_to_message_id are numbers from the input; never make one up.",
				},
				Notes: []string{
					"Emphasis, lists, quotes, tables and code are shown; HTML is sent as it is.",
					"Long texts are split automatically: do not split them.",
					"An answer goes to the topic of the question: leave interface_path out.",
					"Pressing a button says its label; url opens an address instead.",
					"Only the person who asked may press; for votes there are polls. A press removes the buttons.",
				},
			},
			Examples: []core.Example{
				d.example("Answering the message at hand", `{"text":"Sure. Which one do you mean?"}`),
				d.example("Answering one message among many",
					`{"text":"That one is **done**.","reply_to_message_id":"42"}`),
				d.example("Asking with choices",
					`{"text":"Shall I go on?","buttons":[{"label":"Yes"},{"label":"No"}]}`),
				d.example("Offering an address",
					`{"text":"The menu is out.","buttons":[{"label":"Read it","url":"https://example.org/menu"}]}`),
				d.example("Telling another topic, without a sound",
					`{"text":"Moved here.","interface_path":$at,"silent":true}`),
				d.example("Telling a topic by its name",
					`{"text":"The vote begins at six.","recipient":"#Announcements"}`),
			},
		},
		Essential: true, Effects: core.EffectWrites,
	}, d.composeText)
}

func (d *delivery) actionsOnMessages() []core.Action {
	name := d.opt.Name
	return []core.Action{handle(d, core.Action{
		Name: "edit_" + name, Similes: []string{"edit_message_" + name},
		Brief: "Change the text of one of the bot's own messages",
		Schema: object("Change a message", `"message_id", "text"`, idProperty,
			`"text":{"type":"string","title":"text","description":"The complete new text."}`, pathProperty),
		Examples: action.Guide("Puts a new text in place of the old one.",
			"To correct or update what the bot said, where a new message would only add noise.",
			[]string{"Other people's messages cannot be changed.", "It must fit into one message: 4096 characters.",
				"The new text replaces the old one; it is not added to it. Buttons of the old text go away."},
			d.example("Correcting a number", `{"message_id":"57","text":"The train leaves at 9:40."}`),
			d.example("Updating a list", `{"message_id":57,"text":"- [x] tent\n- [ ] stove"}`)),
		Effects: core.EffectRewrites,
	}, d.edit), handle(d, core.Action{
		Name: "delete_" + name, Similes: []string{"delete_message_" + name},
		Brief:  "Delete a message of the last two days",
		Schema: object("Delete a message", `"message_id"`, idProperty, pathProperty),
		Examples: action.Guide("Deletes a message for everybody.", "When a moderator wants a message gone.",
			[]string{"It cannot be undone.", "Messages older than 48 hours stay.",
				"Other people's messages can be deleted only where the bot is an administrator."},
			d.example("Deleting a message", `{"message_id":"57"}`),
			d.example("Deleting one in another topic", `{"message_id":57,"interface_path":$at}`)),
		Effects:    core.EffectChanges | core.EffectRanked | core.EffectRewrites,
		Permission: core.PermissionModerators, Outside: true,
	}, d.remove), handle(d, core.Action{
		Name: "react_" + name, Similes: []string{"reaction_" + name}, Brief: "Put an emoji on a message",
		Schema: object("React to a message", `"message_id", "emoji"`, idProperty,
			`"emoji":{"type":"string","maxLength":32,"title":"emoji","description":"Empty removes the bot's."}`,
			pathProperty),
		Examples: action.Guide("Reacts to a message without words.",
			"Where a nod says enough: thanks, agreement, a joke that landed.",
			[]string{"Only one emoji at a time.", "Not every emoji can be put on messages; the common ones can.",
				"It does not count as an answer: say something too, where one is expected."},
			d.example("Agreeing", `{"message_id":"42","emoji":"👍"}`),
			d.example("Taking it back", `{"message_id":"42","emoji":""}`)),
		Effects: core.EffectWrites,
	}, d.react)}
}

// postingActions returns the actions that send something other than a text message.
func (d *delivery) postingActions() []core.Action {
	name := d.opt.Name
	return []core.Action{handle(d, core.Action{
		Name: "photo_" + name, Similes: []string{"send_photo_" + name, "image_" + name},
		Brief:  "Send a picture with a caption",
		Schema: object("Send a picture", ``, fileProperties, pathProperty, replyProperty, silentProperty),
		Examples: action.Guide("Shows a picture in a Telegram chat.",
			"To show a picture whose address or ref is known.",
			[]string{"Never make up an address: use one that a tool or a person gave.",
				"Give exactly one of url and ref.", "A long caption continues in further messages."},
			d.example("Showing a picture from the web",
				`{"url":"https://example.org/cat.jpg","caption":"Your *cat*."}`),
			d.example("Showing again what somebody sent",
				`{"ref":"AgACAgIAAxkBAAIB","caption":"This one?","reply_to_message_id":"42"}`)),
		Effects: core.EffectRequests | core.EffectWrites,
	}, d.composeMedia(photo)), handle(d, core.Action{
		Name: "document_" + name, Similes: []string{"send_document_" + name, "file_" + name},
		Brief: "Send a file: a text written now, or one whose address is known",
		Schema: object("Send a file", ``,
			`"content":{"type":"string","title":"text of the file"},"name":{"type":"string","title":"file name"}`,
			fileProperties, pathProperty, replyProperty, silentProperty),
		Examples: action.Guide("Sends a file to a Telegram chat.",
			"When somebody wants something as a file, or it is too long to be read in a chat.",
			[]string{"Give exactly one of content, url and ref.", "Give the file a name with the right ending.",
				"A long caption continues in further messages."},
			d.example("Sending a list as a file",
				`{"content":"a;b\n1;2\n","name":"table.csv","caption":"The table."}`),
			d.example("Sending a file from the web", `{"url":"https://example.org/paper.pdf","name":"paper.pdf"}`)),
		Effects: core.EffectRequests | core.EffectWrites,
	}, d.composeMedia(textFile)), handle(d, core.Action{
		Name: "poll_" + name, Similes: []string{"send_poll_" + name}, Brief: "Ask a group to vote",
		Schema: object("Start a poll", `"question", "options"`,
			`"question":{"type":"string","maxLength":300,"title":"question"}`,
			`"options":{"type":"array","minItems":2,"maxItems":12,`+
				`"items":{"type":"string","maxLength":100},"title":"options"}`,
			`"multiple":{"type":"boolean","title":"several answers"}`,
			`"anonymous":{"type":"boolean","default":true,"title":"anonymous"}`, pathProperty, replyProperty,
			silentProperty),
		Examples: action.Guide("Starts a poll in a Telegram chat.",
			"When a group has to choose, and somebody wants a vote.",
			[]string{"At least two options, at most twelve.", "The question is plain text, without Markdown.",
				"The bot does not learn how people voted."},
			d.example("Finding a day",
				`{"question":"When do we play?","options":["Friday","Saturday"],"multiple":true}`),
			d.example("An open vote in another topic",
				`{"question":"Pizza?","options":["Yes","No"],"anonymous":false,"interface_path":$at}`)),
		Effects: core.EffectWrites,
	}, d.composePoll)}
}

type onMessage struct {
	addressed
	Message anyID  `json:"message_id"`
	Text    string `json:"text"`
	Emoji   string `json:"emoji"`
	number  int64  // of the message on Telegram
}

func (a *onMessage) check(d *delivery, _ core.Call) error {
	if a.Message == "" {
		return core.Errorf(core.Invalid, "message_id: say which message")
	}
	a.number = d.places.messageNumber(a.to.chat, string(a.Message))
	if a.number == 0 {
		return core.Errorf(core.Invalid, "message_id: %s is a message of another bot account", a.Message)
	}
	return nil
}

// edit is the payload of the edit action. The text must fit into one message.
type edit struct {
	onMessage
	part markup.Part
}

func (e *edit) check(d *delivery, call core.Call) error {
	if err := e.onMessage.check(d, call); err != nil {
		return err
	}
	if !txt.HasVisible(markup.Visible(e.Text)) {
		return core.Errorf(core.Invalid, "text is empty: give the new text, or delete the message")
	}
	parts := markup.Parts(e.Text, markup.MaxText)
	if len(parts) > 1 {
		return core.Errorf(core.Invalid, "text: it must fit into one message of %d characters", markup.MaxText)
	}
	e.part = parts[0]
	return nil
}

func (d *delivery) edit(ctx context.Context, _ core.Call, e *edit) (o outgoing, err error) {
	if err := d.editTo(ctx, e.to, id(e.number), nil, e.part); err != nil {
		return o, explain(err)
	}
	said := core.Message{Path: d.path(e.to), ID: string(e.Message), Text: e.part.Source}
	d.receive(ctx, core.Event{Kind: core.KindEdit, Message: said})
	return o, nil
}

// editTo changes a text, or the caption of a file. It returns nil if the message already has this text.
func (d *delivery) editTo(ctx context.Context, to chatKey, message string, buttons any, p markup.Part) error {
	params := botapi.Params{"message_id": message, "reply_markup": buttons}
	r := &botapi.Request{Method: "editMessageText", Params: params, Chat: to.chat, Repeatable: true}
	d.write(r, p)
	err := d.api.Do(ctx, r)
	if botapi.Says(err, "not modified") {
		return nil
	}
	return err
}

// remove deletes a message. It succeeds if the message is already deleted.
func (d *delivery) remove(ctx context.Context, _ core.Call, a *onMessage) (o outgoing, err error) {
	params := botapi.Params{"message_id": a.number}
	err = d.api.Do(ctx, &botapi.Request{Method: "deleteMessage", Params: params, Chat: a.to.chat, Repeatable: true})
	if err != nil && !botapi.Says(err, "to delete not found") {
		return o, explain(err)
	}
	gone := core.Message{Path: d.path(a.to), ID: string(a.Message)}
	d.receive(ctx, core.Event{Kind: core.KindDeletion, Target: gone.ID, Message: gone})
	return o, nil
}

// react puts an emoji on a message; "" removes the bot's emoji.
func (d *delivery) react(ctx context.Context, _ core.Call, a *onMessage) (o outgoing, err error) {
	err = d.setReaction(ctx, a.to, a.number, a.Emoji)
	if botapi.Says(err, "REACTION_INVALID", "REACTION_EMPTY", "parse reaction") {
		return o, core.Errorf(core.Invalid,
			"emoji: %q cannot be put on messages here; 👍 👎 ❤ 🔥 🎉 😁 🤔 👀 usually work", a.Emoji)
	}
	return o, explain(err)
}

func (d *delivery) setReaction(ctx context.Context, to chatKey, message int64, emoji string) error {
	list := []map[string]string{}
	if emoji != "" {
		list = append(list, map[string]string{"type": "emoji", "emoji": emoji})
	}
	params := botapi.Params{"message_id": message, "reaction": list}
	r := &botapi.Request{Method: "setMessageReaction", Params: params, Chat: to.chat, Repeatable: true, Priority: -1}
	return d.api.Do(ctx, r)
}

type question struct {
	addressed
	Question  string   `json:"question"`
	Options   []string `json:"options"`
	Multiple  bool     `json:"multiple"`
	Anonymous *bool    `json:"anonymous"`
}

func (q *question) check(*delivery, core.Call) error {
	fits := func(s string, most int) bool { return txt.HasVisible(s) && markdown.UTF16(s) <= most }
	q.Question = markup.Visible(q.Question)
	if !fits(q.Question, 300) {
		return core.Errorf(core.Invalid, "question: it must have 1 to 300 characters")
	}
	if len(q.Options) < 2 || len(q.Options) > 12 {
		return core.Errorf(core.Invalid, "options: there must be 2 to 12")
	}
	for i, o := range q.Options {
		q.Options[i] = markup.Visible(o)
		if !fits(q.Options[i], 100) {
			return core.Errorf(core.Invalid, "options[%d]: it must have 1 to 100 characters", i)
		}
	}
	return nil
}

func (d *delivery) composePoll(_ context.Context, _ core.Call, q *question) (outgoing, error) {
	var options []map[string]string
	for _, o := range q.Options {
		options = append(options, map[string]string{"text": o})
	}
	params := botapi.Params{"question": q.Question, "options": options, "allows_multiple_answers": q.Multiple}
	if q.Anonymous != nil && !*q.Anonymous {
		params["is_anonymous"] = "false"
	}
	said := "[poll: " + q.Question + ": " + strings.Join(q.Options, " | ") + "]"
	return outgoing{
		addressed: q.addressed, method: "sendPoll", params: params, parts: []markup.Part{{}}, number: 1,
		what: core.Sent{Path: d.path(q.to), Text: said},
	}, nil
}
