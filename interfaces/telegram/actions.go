package telegram

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"synthbot/core"
)

// sendTimeout leaves time to wait out what the platform asks for.
const sendTimeout = 10 * time.Minute

// Properties that several payloads share. A schema is part of every prompt, so
// it says no more than a model must know to write a payload.
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

func object(required string, properties ...string) json.RawMessage {
	return json.RawMessage(`{"type":"object","additionalProperties":false,"required":[` + required +
		`],"properties":{` + strings.Join(properties, ",") + `}}`)
}

// catalogue holds the actions of a driver.
type catalogue struct {
	send    *delivery
	receive func(context.Context, core.Event) // takes what an action changed
}

// Actions lists what the bot can do on this platform.
func (d *Driver) Actions() []core.Action {
	c := d.actions
	list := []core.Action{
		c.messageAction(), c.editAction(), c.deleteAction(), c.reactAction(), c.photoAction(), c.documentAction(),
		c.pollAction(),
	}
	for i := range list {
		list[i].Timeout = sendTimeout
		list[i].Idempotent = true // what was sent is journalled part by part; the rest can be done twice
	}
	return list
}

// example is a valid payload, in which $at means a place.
func (c *catalogue) example(scenario, format string) core.Example {
	at := fmt.Sprintf(`%q`, c.send.opt.Name+"/-1001234567890/7")
	return core.Example{Scenario: scenario, Payload: json.RawMessage(strings.ReplaceAll(format, "$at", at))}
}

func (c *catalogue) messageAction() core.Action {
	return core.Action{
		Name:    core.MessagePrefix + c.send.opt.Name,
		Similes: []string{"send_message_" + c.send.opt.Name, c.send.opt.Name + "_message"},
		Brief:   "Send a message, as Markdown",
		Schema: object(`"text"`, `"text":{"type":"string","title":"text"}`, pathProperty,
			`"recipient":{"type":"string","title":"recipient","description":"#topic or @name"}`, replyProperty,
			buttonsProperty,
			`"suggestions":{"type":"array","items":{"type":"string"},"deprecated":true}`, silentProperty, rankProperty),
		Examples: core.Examples{
			Description: "Says something in a Telegram chat.",
			Instructions: core.Instructions{
				WhenToUse: "To answer, to ask, to tell: whatever people shall read.",
				CommonPitfalls: []string{
					"The words belong into text, and no other key.", "A path of another interface is refused.",
					"Buttons are answers that people can choose; they are no decoration.",
					"message_id and reply_to_message_id are numbers that the input gave; never make one up.",
				},
				Notes: []string{
					"Emphasis, lists, quotes, tables and code are shown; HTML is not, it is told as it is.",
					"Long texts are split by themselves: do not split them.",
					"An answer goes to the topic that it came from: leave interface_path out.",
					"Pressing a button says its label; url opens an address instead.",
					"Only who asked may press; for a vote of many there are polls. A press takes the buttons away.",
				},
			},
			Examples: []core.Example{
				c.example("Answering the message at hand", `{"text":"Sure. Which one do you mean?"}`),
				c.example("Answering one message among many",
					`{"text":"That one is **done**.","reply_to_message_id":"42"}`),
				c.example("Asking with choices",
					`{"text":"Shall I go on?","buttons":[{"label":"Yes"},{"label":"No"}]}`),
				c.example("Offering an address",
					`{"text":"The menu is out.","buttons":[{"label":"Read it","url":"https://example.org/menu"}]}`),
				c.example("Telling another topic, without a sound",
					`{"text":"Moved here.","interface_path":$at,"silent":true}`),
				c.example("Telling a topic by its name",
					`{"text":"The vote begins at six.","recipient":"#Announcements"}`),
			},
		},
		Essential: true, Effects: core.EffectNone, Permission: core.Everyone, Check: c.checkMessage, Do: c.sendMessage,
	}
}

func (c *catalogue) editAction() core.Action {
	return core.Action{
		Name: "edit_" + c.send.opt.Name, Similes: []string{"edit_message_" + c.send.opt.Name},
		Brief: "Change the text of one of the bot's own messages",
		Schema: object(`"message_id", "text"`, idProperty,
			`"text":{"type":"string","title":"text","description":"The new one, whole."}`, pathProperty),
		Examples: core.Examples{
			Description: "Puts a new text in place of the old one.",
			Instructions: core.Instructions{
				WhenToUse: "To mend or update what the bot said, where a new message would only add noise.",
				CommonPitfalls: []string{"Messages of people cannot be changed.",
					"The new text replaces the old one; it is not added to it.",
					"It must fit into one message: 4096 characters."},
				Notes: []string{"People are not notified of it.", "Buttons of the old text go away."},
			},
			Examples: []core.Example{
				c.example("Mending a number", `{"message_id":"57","text":"The train leaves at 9:40."}`),
				c.example("Bringing a list up to date", `{"message_id":57,"text":"- [x] tent\n- [ ] stove"}`),
			},
		},
		Effects: core.EffectRewrites, Permission: core.Everyone, Check: c.checkEdit, Do: c.edit,
	}
}

func (c *catalogue) deleteAction() core.Action {
	return core.Action{
		Name: "delete_" + c.send.opt.Name, Similes: []string{"delete_message_" + c.send.opt.Name},
		Brief:  "Delete a message of the last two days",
		Schema: object(`"message_id"`, idProperty, pathProperty),
		Examples: core.Examples{
			Description: "Takes a message away, for everybody.",
			Instructions: core.Instructions{
				WhenToUse: "When a moderator wants a message gone.",
				CommonPitfalls: []string{"It cannot be taken back.",
					"Messages of people can be deleted only where the bot is an administrator."},
				Notes: []string{"Messages older than 48 hours stay."},
			},
			Examples: []core.Example{
				c.example("Taking a message away", `{"message_id":"57"}`),
				c.example("Taking one away in another topic", `{"message_id":57,"interface_path":$at}`),
			},
		},
		Effects:    core.EffectChanges | core.EffectRanked | core.EffectRewrites,
		Permission: core.Moderators, Outside: true, Check: c.checkAbout, Do: c.remove,
	}
}

func (c *catalogue) reactAction() core.Action {
	return core.Action{
		Name: "react_" + c.send.opt.Name, Similes: []string{"reaction_" + c.send.opt.Name},
		Brief: "Put an emoji on a message",
		Schema: object(`"message_id", "emoji"`, idProperty,
			`"emoji":{"type":"string","maxLength":32,"title":"emoji","description":"Empty takes the bot's away."}`,
			pathProperty),
		Examples: core.Examples{
			Description: "Reacts to a message without words.",
			Instructions: core.Instructions{
				WhenToUse: "Where a nod says enough: thanks, agreement, a joke that landed.",
				CommonPitfalls: []string{"Only one emoji at a time.",
					"Not every emoji can be put on messages; the common ones can."},
				Notes: []string{"It does not count as an answer: say something too, where one is expected."},
			},
			Examples: []core.Example{
				c.example("Agreeing", `{"message_id":"42","emoji":"👍"}`),
				c.example("Taking it back", `{"message_id":"42","emoji":""}`),
			},
		},
		Effects: core.EffectNone, Permission: core.Everyone, Check: c.checkAbout, Do: c.react,
	}
}

func (c *catalogue) photoAction() core.Action {
	return core.Action{
		Name:    "photo_" + c.send.opt.Name,
		Similes: []string{"send_photo_" + c.send.opt.Name, "image_" + c.send.opt.Name},
		Brief:   "Send a picture with a caption",
		Schema:  object(``, fileProperties, pathProperty, replyProperty, silentProperty),
		Examples: core.Examples{
			Description: "Shows a picture in a Telegram chat.",
			Instructions: core.Instructions{
				WhenToUse: "To show a picture whose address or ref is known.",
				CommonPitfalls: []string{"Addresses that were made up lead nowhere: use what a tool or a person gave.",
					"Give exactly one of url and ref."},
				Notes: []string{"A long caption goes on as messages."},
			},
			Examples: []core.Example{
				c.example("Showing a picture of the web",
					`{"url":"https://example.org/cat.jpg","caption":"Your *cat*."}`),
				c.example("Showing again what somebody sent",
					`{"ref":"AgACAgIAAxkBAAIB","caption":"This one?","reply_to_message_id":"42"}`),
			},
		},
		Effects: core.EffectRequests, Permission: core.Everyone, Check: c.checkMedia, Do: c.sendPhoto,
	}
}

func (c *catalogue) documentAction() core.Action {
	return core.Action{
		Name:    "document_" + c.send.opt.Name,
		Similes: []string{"send_document_" + c.send.opt.Name, "file_" + c.send.opt.Name},
		Brief:   "Send a file: a text written now, or one whose address is known",
		Schema: object(``,
			`"content":{"type":"string","title":"text of the file"},"name":{"type":"string","title":"file name"}`,
			fileProperties, pathProperty, replyProperty, silentProperty),
		Examples: core.Examples{
			Description: "Sends a file to a Telegram chat.",
			Instructions: core.Instructions{
				WhenToUse: "When somebody wants something as a file, or it is too long to be read in a chat.",
				CommonPitfalls: []string{"Give exactly one of content, url and ref.",
					"Give the file a name with the right ending."},
				Notes: []string{"A long caption goes on as messages."},
			},
			Examples: []core.Example{
				c.example("Sending a list as a file",
					`{"content":"a;b\n1;2\n","name":"table.csv","caption":"The table."}`),
				c.example("Sending a file of the web", `{"url":"https://example.org/paper.pdf","name":"paper.pdf"}`),
			},
		},
		Effects: core.EffectRequests, Permission: core.Everyone, Check: c.checkMedia, Do: c.sendDocument,
	}
}

func (c *catalogue) pollAction() core.Action {
	return core.Action{
		Name: "poll_" + c.send.opt.Name, Similes: []string{"send_poll_" + c.send.opt.Name},
		Brief: "Ask a group to vote",
		Schema: object(`"question", "options"`,
			`"question":{"type":"string","maxLength":300,"title":"question"}`,
			`"options":{"type":"array","minItems":2,"maxItems":12,`+
				`"items":{"type":"string","maxLength":100},"title":"options"}`,
			`"multiple":{"type":"boolean","title":"several answers"}`,
			`"anonymous":{"type":"boolean","default":true,"title":"anonymous"}`, pathProperty, replyProperty,
			silentProperty),
		Examples: core.Examples{
			Description: "Starts a poll in a Telegram chat.",
			Instructions: core.Instructions{
				WhenToUse: "When a group has to choose, and somebody wants a vote.",
				CommonPitfalls: []string{"At least two options, at most twelve.",
					"The question is plain text, without Markdown."},
				Notes: []string{"The bot does not learn how people voted."},
			},
			Examples: []core.Example{
				c.example("Finding a day",
					`{"question":"When do we play?","options":["Friday","Saturday"],"multiple":true}`),
				c.example("An open vote in another topic",
					`{"question":"Pizza?","options":["Yes","No"],"anonymous":false,"interface_path":$at}`),
			},
		},
		Effects: core.EffectNone, Permission: core.Everyone, Check: c.checkPoll, Do: c.sendPoll,
	}
}
