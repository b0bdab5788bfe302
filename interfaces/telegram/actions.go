package telegram

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"synthbot/core"
)

// sendTimeout leaves time to wait out what the platform asks for.
const sendTimeout = 10 * time.Minute

// Properties that several payloads share.
const (
	pathProperty   = `"interface_path": {"type": "string", "title": "place", "description": "Where to; left out: here."}`
	replyProperty  = `"reply_to_message_id": {"type": ["string", "integer"], "title": "reply to", "description": "The message that this answers, by its message_id."}`
	silentProperty = `"silent": {"type": "boolean", "default": false, "title": "silent", "description": "Deliver without a sound."}`
	idProperty     = `"message_id": {"type": ["string", "integer"], "title": "message", "description": "Which message, by its message_id."}`
	rankProperty   = `"priority": {"type": "string", "enum": ["low", "normal", "high"], "default": "normal", "title": "priority"}`

	buttonsProperty = `"buttons": {"type": "array", "maxItems": 40, "title": "buttons", "description": "Choices below the message.", "items": {
		"type": "object", "additionalProperties": false, "required": ["text"], "properties": {
			"text": {"type": "string", "minLength": 1, "maxLength": 64, "description": "What stands on it, and what the person says by pressing it."},
			"url": {"type": "string", "description": "Opens this address instead."},
			"data": {"type": "string", "maxLength": 40, "description": "Is said instead of text."},
			"for": {"type": ["string", "integer"], "description": "The only person who may press it, by id."}}}}`

	suggestionsProperty = `"suggestions": {"type": "array", "items": {"type": "string"}}`

	fileProperties = `"url": {"type": "string", "description": "A public https address."},
		"ref": {"type": "string", "description": "A file that somebody sent, by its ref."},
		"data": {"type": "string", "contentEncoding": "base64", "description": "The file itself; for programs."},
		"name": {"type": "string", "maxLength": 128, "description": "The file's name."},
		"caption": {"type": "string", "title": "caption", "description": "Words below it, as Markdown."}`
)

func object(required string, properties ...string) json.RawMessage {
	return json.RawMessage(`{"type": "object", "additionalProperties": false, "required": [` + required + `], "properties": {` +
		strings.Join(properties, ", ") + `}}`)
}

// Actions lists what the bot can do on this platform.
func (d *Driver) Actions() []core.Action {
	list := []core.Action{d.messageAction(), d.editAction(), d.deleteAction(), d.reactAction(), d.photoAction(), d.documentAction(), d.pollAction()}
	for i := range list {
		list[i].Timeout = sendTimeout
		list[i].Idempotent = true // what was sent is journalled part by part; the rest can be done twice
	}
	return list
}

// example is a right payload; at stands for a place.
func (d *Driver) example(scenario, format string) core.Example {
	at := fmt.Sprintf(`%q`, d.opt.Name+"/-1001234567890/7")
	return core.Example{Scenario: scenario, Payload: json.RawMessage(strings.ReplaceAll(format, "$at", at))}
}

func (d *Driver) messageAction() core.Action {
	return core.Action{
		Name:    core.MessagePrefix + d.opt.Name,
		Similes: []string{"send_message_" + d.opt.Name, d.opt.Name + "_message"},
		Brief:   "Send a message to a chat or topic, as Markdown",
		Schema: object(`"text"`, `"text": {"type": "string", "minLength": 1, "title": "text", "description": "What to say, as Markdown."}`,
			pathProperty, rankProperty, replyProperty, buttonsProperty, suggestionsProperty, silentProperty),
		Examples: core.Examples{
			Description: "Says something in a Telegram chat.",
			Instructions: core.Instructions{
				WhenToUse: "To answer, to ask, to tell: whatever people shall read.",
				CommonPitfalls: []string{
					"The words belong into text, and no other key.", "A path of another interface is refused.",
					"Buttons are answers that people can choose; they are no decoration.",
				},
				Notes: []string{
					"Emphasis, lists, quotes, tables and code are shown; HTML is not, it is told as it is.",
					"Long texts are split by themselves: do not split them.", "An answer goes to the topic that it came from: leave interface_path out.",
				},
			},
			Examples: []core.Example{
				d.example("Answering the message at hand", `{"text":"Sure. Which one do you mean?"}`),
				d.example("Answering one message among many", `{"text":"That one is **done**.","reply_to_message_id":"42"}`),
				d.example("Asking with choices", `{"text":"Shall I go on?","buttons":[{"text":"Yes"},{"text":"No"}]}`),
				d.example("Telling another topic, without a sound", `{"text":"Moved here.","interface_path":$at,"silent":true}`),
			},
		},
		Essential: true, Permission: core.Everyone, Check: d.checkMessage, Do: d.sendMessage,
	}
}

func (d *Driver) editAction() core.Action {
	return core.Action{
		Name: "edit_" + d.opt.Name, Similes: []string{"edit_message_" + d.opt.Name},
		Brief: "Change the text of one of the bot's own messages",
		Schema: object(`"message_id", "text"`, idProperty,
			`"text": {"type": "string", "minLength": 1, "title": "text", "description": "The new text, whole, as Markdown."}`, pathProperty),
		Examples: core.Examples{
			Description: "Puts a new text in place of the old one.",
			Instructions: core.Instructions{
				WhenToUse:      "To mend or update what the bot said, where a new message would only add noise.",
				CommonPitfalls: []string{"Messages of people cannot be changed.", "The new text replaces the old one; it is not added to it."},
				Notes:          []string{"People are not notified of it."},
			},
			Examples: []core.Example{d.example("Mending a number", `{"message_id":"57","text":"The train leaves at 9:40."}`)},
		},
		Permission: core.Everyone, Check: d.checkEdit, Do: d.edit,
	}
}

func (d *Driver) deleteAction() core.Action {
	return core.Action{
		Name: "delete_" + d.opt.Name, Similes: []string{"delete_message_" + d.opt.Name},
		Brief:  "Delete a message of the last two days",
		Schema: object(`"message_id"`, idProperty, pathProperty),
		Examples: core.Examples{
			Description: "Takes a message away, for everybody.",
			Instructions: core.Instructions{
				WhenToUse:      "When a moderator wants a message gone.",
				CommonPitfalls: []string{"It cannot be taken back.", "Messages of people can be deleted only where the bot is an administrator."},
				Notes:          []string{"Messages older than 48 hours stay."},
			},
			Examples: []core.Example{d.example("Taking a message away", `{"message_id":"57"}`)},
		},
		Permission: core.Moderators, Outside: true, Check: d.checkAbout, Do: d.remove,
	}
}

func (d *Driver) reactAction() core.Action {
	return core.Action{
		Name: "react_" + d.opt.Name, Similes: []string{"reaction_" + d.opt.Name},
		Brief: "Put an emoji on a message",
		Schema: object(`"message_id", "emoji"`, idProperty,
			`"emoji": {"type": "string", "maxLength": 32, "title": "emoji", "description": "One emoji; empty takes the bot's away."}`, pathProperty),
		Examples: core.Examples{
			Description: "Reacts to a message without words.",
			Instructions: core.Instructions{
				WhenToUse:      "Where a nod says enough: thanks, agreement, a joke that landed.",
				CommonPitfalls: []string{"Only one emoji at a time.", "Not every emoji can be put on messages; the common ones can."},
				Notes:          []string{"It does not count as an answer: say something too, where one is expected."},
			},
			Examples: []core.Example{d.example("Agreeing", `{"message_id":"42","emoji":"👍"}`)},
		},
		Permission: core.Everyone, Check: d.checkAbout, Do: d.react,
	}
}

func (d *Driver) photoAction() core.Action {
	return core.Action{
		Name: "photo_" + d.opt.Name, Similes: []string{"send_photo_" + d.opt.Name, "image_" + d.opt.Name},
		Brief:  "Send a picture with a caption",
		Schema: object(``, fileProperties, pathProperty, rankProperty, replyProperty, buttonsProperty, silentProperty),
		Examples: core.Examples{
			Description: "Shows a picture in a Telegram chat.",
			Instructions: core.Instructions{
				WhenToUse:      "To show a picture whose address or ref is known.",
				CommonPitfalls: []string{"Addresses that were made up lead nowhere: use what a tool or a person gave.", "Give exactly one of url, ref and data."},
				Notes:          []string{"A long caption goes on as messages."},
			},
			Examples: []core.Example{d.example("Showing a picture of the web", `{"url":"https://example.org/cat.jpg","caption":"Your *cat*."}`)},
		},
		Permission: core.Everyone, Check: d.checkMedia, Do: d.sendPhoto,
	}
}

func (d *Driver) documentAction() core.Action {
	return core.Action{
		Name: "document_" + d.opt.Name, Similes: []string{"send_document_" + d.opt.Name, "file_" + d.opt.Name},
		Brief: "Send a file: a text written now, or one whose address is known",
		Schema: object(``, `"content": {"type": "string", "title": "content", "description": "The file's text."}`,
			fileProperties, pathProperty, rankProperty, replyProperty, buttonsProperty, silentProperty),
		Examples: core.Examples{
			Description: "Sends a file to a Telegram chat.",
			Instructions: core.Instructions{
				WhenToUse:      "When somebody wants something as a file, or it is too long to be read in a chat.",
				CommonPitfalls: []string{"Give exactly one of content, url, ref and data.", "Give the file a name with the right ending."},
				Notes:          []string{"A long caption goes on as messages."},
			},
			Examples: []core.Example{d.example("Sending a list as a file", `{"content":"a;b\n1;2\n","name":"table.csv","caption":"The table."}`)},
		},
		Permission: core.Everyone, Check: d.checkMedia, Do: d.sendDocument,
	}
}

func (d *Driver) pollAction() core.Action {
	return core.Action{
		Name: "poll_" + d.opt.Name, Similes: []string{"send_poll_" + d.opt.Name},
		Brief: "Ask a group to vote",
		Schema: object(`"question", "options"`,
			`"question": {"type": "string", "minLength": 1, "maxLength": 300, "title": "question"}`,
			`"options": {"type": "array", "minItems": 2, "maxItems": 12, "items": {"type": "string", "minLength": 1, "maxLength": 100}, "title": "options"}`,
			`"multiple": {"type": "boolean", "default": false, "title": "several answers"}`,
			`"anonymous": {"type": "boolean", "default": true, "title": "anonymous"}`, pathProperty, replyProperty, silentProperty),
		Examples: core.Examples{
			Description: "Starts a poll in a Telegram chat.",
			Instructions: core.Instructions{
				WhenToUse:      "When a group has to choose, and somebody wants a vote.",
				CommonPitfalls: []string{"At least two options, at most twelve.", "The question is plain text, without Markdown."},
				Notes:          []string{"The bot does not learn how people voted."},
			},
			Examples: []core.Example{d.example("Finding a day", `{"question":"When do we play?","options":["Friday","Saturday"],"multiple":true}`)},
		},
		Permission: core.Everyone, Check: d.checkPoll, Do: d.sendPoll,
	}
}
