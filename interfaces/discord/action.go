package discord

import (
	"encoding/json"
	"slices"
	"time"

	"synthbot/core"
	"synthbot/core/action"
)

// sendTime is how long a message may wait for its turn and for Discord, which may be as
// long as a rate limit lasts.
const sendTime = 15 * time.Minute

const (
	pathProperty = `"interface_path":{"type":"string","title":"place","description":"Where; left out: here."}`
	idProperty   = `"message_id":{"type":["string","integer"],"pattern":"^[1-9][0-9]{0,19}$","title":"message",
"description":"The message's id."}`
)

const messageSchema = `{"type":"object","title":"Send a message","properties":{
"text":{"type":"string","title":"text"},
"interface_path":{"type":"string","title":"place","description":"default: here"},
"reply_to_message_id":{"type":["string","integer"],"title":"reply to","description":"message_id"},
"embeds":{"type":"array","items":{"type":"object"}},
"buttons":{"type":"array","maxItems":25,"items":{"type":"object","properties":{
"label":{"type":"string"},"url":{"type":"string"}},"required":["label"]}},
"suggestions":{"type":"array","items":{"type":"string"},"deprecated":true},
"silent":{"type":"boolean"},
"priority":{"enum":["low","normal","high"]}
},"additionalProperties":false}`

const editSchema = `{"type":"object","title":"Change a message","properties":{` + idProperty + `,
"text":{"type":"string","minLength":1,"title":"text","description":"The new text, as Markdown."},` + pathProperty + `
},"required":["message_id","text"],"additionalProperties":false}`

const deleteSchema = `{"type":"object","title":"Delete a message","properties":{` + idProperty + `,` + pathProperty + `
},"required":["message_id"],"additionalProperties":false}`

const reactSchema = `{"type":"object","title":"React to a message","properties":{` + idProperty + `,
"emoji":{"type":"string","minLength":1,"maxLength":64,"title":"emoji",
"description":"One emoji, or name:id of one of the server's."},
"remove":{"type":"boolean","description":"Take it back."},` + pathProperty + `
},"required":["message_id","emoji"],"additionalProperties":false}`

const fileSchema = `{"type":"object","title":"Send a file","properties":{
"name":{"type":"string","minLength":1,"maxLength":100,"title":"file name"},
"content":{"type":"string","minLength":1,"title":"content","description":"The file's text."},
"text":{"type":"string","description":"What to say with it."},` + pathProperty + `
},"required":["name","content"],"additionalProperties":false}`

const threadSchema = `{"type":"object","title":"Open a thread","properties":{
"name":{"type":"string","minLength":1,"maxLength":100,"title":"title"},
"text":{"type":"string","title":"text","description":"The first message; needed in a forum."},
"message_id":{"type":["string","integer"],"maxLength":32,
"description":"The message to begin it from."},` + pathProperty + `
},"required":["name"],"additionalProperties":false}`

const threadOutput = `{"type":"object","properties":{"interface_path":{"type":"string"}},"required":["interface_path"]}`

const pollSchema = `{"type":"object","title":"Start a poll","properties":{
"question":{"type":"string","minLength":1,"maxLength":300,"title":"question"},
"answers":{"type":"array","minItems":1,"maxItems":10,"items":{"type":"string","minLength":1,"maxLength":55}},
"hours":{"type":"integer","minimum":1,"maximum":768,"default":24},
"multiple":{"type":"boolean","description":"Several answers are allowed."},` + pathProperty + `
},"required":["question","answers"],"additionalProperties":false}`

// Actions lists what the model can do here. The message action reaches other places,
// the others the place of the turn and below.
func (d *Driver) Actions() []core.Action {
	list := slices.Concat([]core.Action{d.messageAction()}, d.actionsOnMessages(), d.postingActions())
	for i := range list {
		list[i].Permission = core.PermissionEveryone
	}
	return list
}

func example(scenario, payload string) core.Example {
	return core.Example{Scenario: scenario, Payload: json.RawMessage(payload)}
}

func (d *Driver) messageAction() core.Action {
	return core.Action{
		Name: core.MessagePrefix + d.name, Brief: "Send a message, as Markdown",
		Schema: json.RawMessage(messageSchema),
		Examples: core.Examples{
			Description: "Says something in a channel, a thread or a direct message.",
			Instructions: core.Instructions{
				WhenToUse: "To answer, to ask, to tell: whatever people shall read.",
				CommonPitfalls: []string{
					"The words belong into text.", "Leave interface_path out to answer where you were asked.",
					"A message pings nobody but the person it replies to: writing @everyone has no effect.",
				},
				Notes: []string{
					"Markdown is shown; tables become code blocks. " +
						"Long texts are cut into several messages by themselves.",
					"A button says its label, or opens its url; it is for the person you answer.",
					"An embed has title, description, url, color and fields of name, value and inline.",
					"To write to another channel of this server, give recipient: its name, like #plans.",
				},
			},
			Examples: []core.Example{
				example("Answering where you were asked", `{"text":"Sure. Which one do you mean?"}`),
				example("Replying to a message, with two buttons",
					`{"text":"Shall I?","reply_to_message_id":"1043221189",`+
						`"buttons":[{"label":"Yes"},{"label":"Rules","url":"https://example.org/rules"}]}`),
				example("An embed with fields",
					`{"embeds":[{"title":"Tomorrow","fields":[{"name":"Rome","value":"19 °C","inline":true}]}]}`),
			},
		},
		Essential: true, Effects: core.EffectWrites, Timeout: sendTime,
		Idempotent: true, // each part is journalled and carries a nonce
		Check:      d.checkMessage, Do: do(d, d.sendMessage),
	}
}

func (d *Driver) actionsOnMessages() []core.Action {
	list := []core.Action{{
		Name: "edit_" + d.name, Brief: "Change the text of one of your own Discord messages",
		Schema: json.RawMessage(editSchema),
		Examples: action.Guide("Replaces the text of a message that you wrote.",
			"To correct yourself, or to bring a list up to date, where a new message would be noise.",
			[]string{"Only your own messages can be changed.", "The new text replaces all of the old one."},
			example("Correcting a date", `{"message_id":"1043221190","text":"The meeting is on Friday."}`)),
		Effects: core.EffectRewrites, Check: d.checkEdit, Do: do(d, d.edit),
	}, {
		Name: "delete_" + d.name, Brief: "Delete a Discord message: your own, or for moderators any",
		Schema: json.RawMessage(deleteSchema),
		Examples: action.Guide("Deletes a message for everybody.",
			"When you are asked to take back what you said, or a moderator asks you to remove a message.",
			[]string{"It cannot be undone.", "Other people's messages only for a moderator."},
			example("Taking back your last message", `{"message_id":"1043221190"}`)),
		Effects: core.EffectChanges | core.EffectRanked | core.EffectRewrites, Do: do(d, d.remove),
	}, {
		Name: "react_" + d.name, Brief: "React to a Discord message with an emoji",
		Schema: json.RawMessage(reactSchema),
		Examples: action.Guide("Puts an emoji under a message, or takes it back.",
			"When a word would be too much: thanks, agreement, a laugh.",
			[]string{"One emoji at a time.", "An emoji of the server is written name:id."},
			example("Agreeing", `{"message_id":"1043221189","emoji":"👍"}`),
			example("An emoji of the server", `{"message_id":"1043221189","emoji":"blobwave:771234567890123456"}`)),
		Effects: core.EffectWrites, Do: do(d, d.reactTo),
	}}
	for i := range list {
		list[i].Idempotent, list[i].Timeout = true, time.Minute
	}
	return list
}

// postingActions are the actions that post something else than a message of text.
func (d *Driver) postingActions() []core.Action {
	return []core.Action{{
		Name: "file_" + d.name, Brief: "Send a text file to a Discord channel", Schema: json.RawMessage(fileSchema),
		Examples: action.Guide("Sends a file made of text: code, a list, a document.",
			"When somebody wants something to keep, or it is too long to read in a chat.",
			[]string{"name needs an ending (.md, .py, .csv).", "content is the whole file."},
			example("A script", `{"name":"hello.py","content":"print('hello')\n","text":"Here it is."}`)),
		Effects: core.EffectWrites, Idempotent: true, Timeout: sendTime,
		RateLimit: core.RateLimit{Count: 10, Per: time.Hour}, Do: do(d, d.file),
	}, {
		Name: "thread_" + d.name, Brief: "Open a Discord thread or forum post", Schema: json.RawMessage(threadSchema),
		Examples: action.Guide("Opens a thread in this channel, from a message of it, or a post in this forum.",
			"When somebody asks for a thread, or a talk deserves a place of its own.",
			[]string{"Threads have no threads.", "A post in a forum needs text."},
			example("A thread from a message", `{"name":"Summer trip","message_id":"1043221189"}`),
			example("A post in a forum", `{"name":"Rules","text":"Be kind."}`)),
		Output: json.RawMessage(threadOutput), Effects: core.EffectWrites, Timeout: time.Minute,
		RateLimit: core.RateLimit{Count: 3, Per: 10 * time.Minute}, Do: d.thread,
	}, {
		Name: "poll_" + d.name, Brief: "Start a poll in a Discord channel", Schema: json.RawMessage(pollSchema),
		Examples: action.Guide("Asks everybody in the channel to choose.",
			"When several people have to decide something.",
			[]string{"At most 10 answers of at most 55 characters.", "A poll cannot be changed later."},
			example("Choosing a day", `{"question":"Which day?","answers":["Friday","Saturday"],"hours":24}`)),
		Effects: core.EffectWrites, Idempotent: true, Timeout: sendTime,
		RateLimit: core.RateLimit{Count: 3, Per: 10 * time.Minute}, Do: do(d, d.poll),
	}}
}
