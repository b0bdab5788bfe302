package discord

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"synthbot/core"
	"synthbot/core/action"
	"synthbot/core/loop"
	"synthbot/core/markdown"
	"synthbot/core/txt"
	"synthbot/interfaces/discord/markup"
	"synthbot/interfaces/discord/rest"
)

// sendTime is the timeout of actions that send. They may wait in the send queue, and for a rate limit.
const sendTime = 15 * time.Minute

const (
	pathProperty = `"interface_path":{"type":"string","title":"place","description":"Where; left out: here."}`
	idProperty   = `"message_id":{"type":["string","integer"],"pattern":"^[1-9][0-9]{0,19}$","title":"message",` +
		`"description":"The message's id."}`
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

func object(title, required string, properties ...string) json.RawMessage {
	return json.RawMessage(`{"type":"object","title":"` + title + `","properties":{` + strings.Join(properties, ",") +
		`},"required":[` + required + `],"additionalProperties":false}`)
}

// Actions returns the actions for the model. The message action can send to other places. The others
// work in the place of the turn and below it.
func (d *Driver) Actions() []core.Action {
	list := slices.Concat([]core.Action{d.messageAction()}, d.actionsOnMessages(), d.postingActions())
	for i := range list {
		list[i].Permission, list[i].Timeout = core.PermissionEveryone, cmp.Or(list[i].Timeout, time.Minute)
	}
	return list
}

func (d *Driver) messageAction() core.Action {
	guide := action.Guide("Says something in a channel, a thread or a direct message.",
		"To answer, to ask, to tell: whatever people shall read.",
		[]string{"The words belong into text.", "Leave interface_path out to answer where you were asked.",
			"A message pings nobody but the person it replies to: writing @everyone has no effect."},
		core.NewExample("Answering where you were asked", `{"text":"Sure. Which one do you mean?"}`),
		core.NewExample("Replying to a message, with two buttons",
			`{"text":"Shall I?","reply_to_message_id":"1043221189",`+
				`"buttons":[{"label":"Yes"},{"label":"Rules","url":"https://example.org/rules"}]}`),
		core.NewExample("An embed with fields",
			`{"embeds":[{"title":"Tomorrow","fields":[{"name":"Rome","value":"19 °C","inline":true}]}]}`))
	guide.Instructions.Notes = []string{
		"Markdown is shown; tables become code blocks. Long texts are cut into several messages by themselves.",
		"A button says its label, or opens its url; it is for the person you answer.",
		"An embed has title, description, url, color and fields of name, value and inline.",
		"To write to another channel of this server, give recipient: its name, like #plans.",
	}
	return core.Action{
		Name: core.MessagePrefix + d.opt.Name, Brief: "Send a message, as Markdown",
		Schema: json.RawMessage(messageSchema), Examples: guide,
		Essential: true, Effects: core.EffectWrites, Timeout: sendTime,
		Idempotent: true, // each part is journalled and carries a nonce
		Check:      d.checkMessage, Do: actionOf(d, d.sendMessage),
	}
}

func (d *Driver) actionsOnMessages() []core.Action {
	return []core.Action{{
		Name: "edit_" + d.opt.Name, Brief: "Change the text of one of your own Discord messages",
		Schema: object("Change a message", `"message_id","text"`, idProperty,
			`"text":{"type":"string","minLength":1,"title":"text","description":"The new text, as Markdown."}`,
			pathProperty),
		Examples: action.Guide("Replaces the text of a message that you wrote.",
			"To correct yourself, or to bring a list up to date, where a new message would be noise.",
			[]string{"Only your own messages can be changed.", "The new text replaces all of the old one."},
			core.NewExample("Correcting a date", `{"message_id":"1043221190","text":"The meeting is on Friday."}`)),
		Effects: core.EffectRewrites, Idempotent: true, Check: d.checkEdit, Do: actionOf(d, d.edit),
	}, {
		Name: "delete_" + d.opt.Name, Brief: "Delete a Discord message: your own, or for moderators any",
		Schema: object("Delete a message", `"message_id"`, idProperty, pathProperty),
		Examples: action.Guide("Deletes a message for everybody.",
			"When you are asked to take back what you said, or a moderator asks you to remove a message.",
			[]string{"It cannot be undone.", "Other people's messages only for a moderator."},
			core.NewExample("Taking back your last message", `{"message_id":"1043221190"}`)),
		Effects: core.EffectChanges | core.EffectRanked | core.EffectRewrites, Idempotent: true,
		Do: actionOf(d, d.remove),
	}, {
		Name: "react_" + d.opt.Name, Brief: "React to a Discord message with an emoji",
		Schema: object("React to a message", `"message_id","emoji"`, idProperty,
			`"emoji":{"type":"string","minLength":1,"maxLength":64,"title":"emoji",`+
				`"description":"One emoji, or name:id of one of the server's."}`,
			`"remove":{"type":"boolean","description":"Take it back."}`, pathProperty),
		Examples: action.Guide("Puts an emoji under a message, or takes it back.",
			"When a word would be too much: thanks, agreement, a laugh.",
			[]string{"One emoji at a time.", "An emoji of the server is written name:id."},
			core.NewExample("Agreeing", `{"message_id":"1043221189","emoji":"👍"}`),
			core.NewExample("An emoji of the server",
				`{"message_id":"1043221189","emoji":"blobwave:771234567890123456"}`)),
		Effects: core.EffectWrites, Idempotent: true, Do: actionOf(d, d.reactTo),
	}}
}

// postingActions returns the actions that post something other than a text message.
func (d *Driver) postingActions() []core.Action {
	return []core.Action{{
		Name: "file_" + d.opt.Name, Brief: "Send a text file to a Discord channel",
		Schema: object("Send a file", `"name","content"`,
			`"name":{"type":"string","minLength":1,"maxLength":100,"title":"file name"}`,
			`"content":{"type":"string","minLength":1,"title":"content","description":"The file's text."}`,
			`"text":{"type":"string","description":"What to say with it."}`, pathProperty),
		Examples: action.Guide("Sends a file made of text: code, a list, a document.",
			"When somebody wants something to keep, or it is too long to read in a chat.",
			[]string{"name needs an ending (.md, .py, .csv).", "content is the whole file."},
			core.NewExample("A script", `{"name":"hello.py","content":"print('hello')\n","text":"Here it is."}`)),
		Effects: core.EffectWrites, Idempotent: true, Timeout: sendTime,
		RateLimit: core.RateLimit{Count: 10, Per: time.Hour}, Do: actionOf(d, d.file),
	}, {
		Name: "thread_" + d.opt.Name, Brief: "Open a Discord thread or forum post",
		Schema: object("Open a thread", `"name"`,
			`"name":{"type":"string","minLength":1,"maxLength":100,"title":"title"}`,
			`"text":{"type":"string","title":"text","description":"The first message; needed in a forum."}`,
			`"message_id":{"type":["string","integer"],"maxLength":32,"description":"The message to begin it from."}`,
			pathProperty),
		Examples: action.Guide("Opens a thread in this channel, from a message of it, or a post in this forum.",
			"When somebody asks for a thread, or a talk deserves a place of its own.",
			[]string{"Threads have no threads.", "A post in a forum needs text."},
			core.NewExample("A thread from a message", `{"name":"Summer trip","message_id":"1043221189"}`),
			core.NewExample("A post in a forum", `{"name":"Rules","text":"Be kind."}`)),
		Output: json.RawMessage(
			`{"type":"object","properties":{"interface_path":{"type":"string"}},"required":["interface_path"]}`),
		Effects:   core.EffectWrites,
		RateLimit: core.RateLimit{Count: 3, Per: 10 * time.Minute}, Do: actionOf(d, d.thread),
	}, {
		Name: "poll_" + d.opt.Name, Brief: "Start a poll in a Discord channel",
		Schema: object("Start a poll", `"question","answers"`,
			`"question":{"type":"string","minLength":1,"maxLength":300,"title":"question"}`,
			`"answers":{"type":"array","minItems":1,"maxItems":10,`+
				`"items":{"type":"string","minLength":1,"maxLength":55}}`,
			`"hours":{"type":"integer","minimum":1,"maximum":768,"default":24}`,
			`"multiple":{"type":"boolean","description":"Several answers are allowed."}`, pathProperty),
		Examples: action.Guide("Asks everybody in the channel to choose.",
			"When several people have to decide something.",
			[]string{"At most 10 answers of at most 55 characters.", "A poll cannot be changed later."},
			core.NewExample("Choosing a day", `{"question":"Which day?","answers":["Friday","Saturday"],"hours":24}`)),
		Effects: core.EffectWrites, Idempotent: true, Timeout: sendTime,
		RateLimit: core.RateLimit{Count: 3, Per: 10 * time.Minute}, Do: actionOf(d, d.poll),
	}}
}

// messageCall is the payload of actions on an existing message.
type messageCall struct {
	ID     messageID `json:"message_id"`
	Text   string    `json:"text"`
	Emoji  string    `json:"emoji"`
	Remove bool      `json:"remove"`
}

func (d *Driver) checkEdit(ctx context.Context, call core.Call) error {
	p, _, err := readCall[messageCall](ctx, d, call)
	if err == nil {
		_, err = d.singleMessage(p.Text)
	}
	return err
}

func (a *account) singleMessage(text string) (string, error) {
	texts := markup.Writer{Quiet: !a.set.Previews}.Messages(text)
	if len(texts) != 1 {
		return "", core.Errorf(core.Invalid, "text must fit into one message: %d would be needed", len(texts))
	}
	return texts[0], nil
}

// edit changes a message of the bot; Discord refuses those of others. The history gets the new
// text, as it does when users edit.
func (d *Driver) edit(ctx context.Context, _ core.Call, p messageCall, at destination) (r core.Result, err error) {
	text, err := d.singleMessage(p.Text)
	if err != nil {
		return r, err
	}
	err = d.changeMessage(ctx, at.channel, string(p.ID), map[string]any{"content": text}, false)
	if err != nil {
		return r, rest.Failure("changing the message", err)
	}
	changed := core.Message{Path: at.place, ID: string(p.ID), Text: strings.TrimSpace(p.Text)}
	d.receive(ctx, core.Event{Kind: core.KindEdit, Message: changed})
	return r, nil
}

// remove deletes a message. Other users' messages are deleted only for moderators. The history learns of it even if
// Listen has ended.
func (d *Driver) remove(ctx context.Context, call core.Call, p messageCall, at destination) (r core.Result, err error) {
	if call.Author.Rank < core.RankModerator {
		var m message
		err := d.rest.Get(ctx, &m, "/channels/{}/messages/{}", at.channel, string(p.ID))
		switch {
		case rest.NotFound(err):
			return r, nil
		case err != nil:
			return r, rest.Failure("finding the message", err)
		case m.Author == nil || m.Author.ID != d.selfID(ctx):
			return r, core.Errorf(core.Forbidden, "only a moderator may have other people's messages deleted")
		}
	}
	if err := d.rest.Delete(ctx, "/channels/{}/messages/{}", at.channel, string(p.ID)); err != nil {
		return r, rest.Failure("deleting the message", err)
	}
	gone := core.Message{Path: at.place, ID: "deleted-" + string(p.ID)}
	d.receive(ctx, core.Event{Kind: core.KindDeletion, Target: string(p.ID), Message: gone})
	return r, nil
}

// customEmoji matches an emoji of a server, in the forms that models write.
var customEmoji = txt.Pattern(`^<?a?:?(\w{2,32}:\d{5,24})>?$`)

func (d *Driver) reactTo(ctx context.Context, _ core.Call, p messageCall, at destination) (r core.Result, err error) {
	sign := strings.TrimSpace(p.Emoji)
	m := customEmoji().FindStringSubmatch(sign)
	if m != nil {
		sign = m[1]
	}
	const route = "/channels/{}/messages/{}/reactions/{}/@me"
	if p.Remove {
		return r, rest.FailureOrNil("reacting", d.rest.Delete(ctx, route, at.channel, string(p.ID), sign))
	}
	q := rest.Request{Method: "PUT", Route: route, IDs: []string{at.channel, string(p.ID), sign}}
	return r, rest.FailureOrNil("reacting", d.rest.Do(ctx, q))
}

type fileCall struct {
	Name    string `json:"name"`
	Content string `json:"content"`
	Text    string `json:"text"`
}

func (d *Driver) file(ctx context.Context, call core.Call, p fileCall, at destination) (r core.Result, err error) {
	if len(p.Content) > maxFileSize {
		return r, core.Errorf(core.Invalid, "content is too long: at most %d bytes are allowed", maxFileSize)
	}
	n := len(markup.Messages(p.Text))
	if n > 1 {
		return r, core.Errorf(core.Invalid, "text must fit into one message: %d would be needed", n)
	}
	list := fileMessages(p.Text, core.Upload{Name: p.Name, Data: []byte(p.Content), Kind: core.MediaFile})
	return r, d.deliver(ctx, call.Deliveries, at, list, priorityNormal)
}

type threadCall struct {
	Name string    `json:"name"`
	Text string    `json:"text"`
	ID   messageID `json:"message_id"`
}

func (d *Driver) thread(ctx context.Context, _ core.Call, p threadCall, at destination) (out core.Result, err error) {
	known, err := d.locate(ctx, at.channel, rest.MaxTries)
	if err != nil {
		return out, rest.Failure("opening the thread", err)
	}
	e := at.place.Elements()
	if len(e) != 3 || known.thread() || e[1] == me {
		return out, core.Errorf(core.Invalid, "threads are opened in channels of a server only")
	}
	q, err := d.threadRequest(at.channel, known, p.Name, p.Text, string(p.ID))
	if err != nil {
		return out, err
	}
	var made channel
	q.Out = &made
	if err := d.rest.Do(ctx, q); err != nil {
		return out, rest.Failure("opening the thread", err)
	}
	made.Guild, made.Parent, made.Type = e[1], at.channel, cmp.Or(made.Type, threadPublic)
	d.cache.setChannel(made)
	to, err := core.MakePath(d.opt.Name, made.Guild, at.channel, made.ID)
	if err != nil {
		return out, rest.Failure("opening the thread", err)
	}
	out = core.Output(map[string]string{"interface_path": to.String()})
	if p.Text != "" && !isForum(known) {
		payload := core.JSON(map[string]string{"text": p.Text, "interface_path": to.String()})
		message := core.MessagePrefix + d.opt.Name
		out.Next = []core.Step{{Type: message, Payload: payload, Priority: core.DefaultPriority}}
	}
	return out, nil
}

func isForum(p place) bool { return p.Kind == 15 || p.Kind == 16 }

func (a *account) threadRequest(channel string, p place, name, text, message string) (rest.Request, error) {
	q := rest.Request{Method: "POST", IDs: []string{channel}, Once: true}
	body := map[string]any{"name": line(name, 100), "auto_archive_duration": 1440}
	switch texts := markup.Messages(text); {
	case isForum(p) && len(texts) != 1:
		return q, core.Errorf(core.Invalid, "a post needs a text that fits into one message")
	case isForum(p):
		q.Route = "/channels/{}/threads"
		body["message"] = map[string]any{
			"content": texts[0], "allowed_mentions": noMentions(), "flags": a.set.previewFlag(nil),
		}
	case message != "":
		q.Route, q.IDs = "/channels/{}/messages/{}/threads", []string{channel, message}
	default:
		q.Route = "/channels/{}/threads"
		body["type"] = threadPublic
		if p.Kind == channelNews {
			body["type"] = threadNews
		}
	}
	q.Body = body
	return q, nil
}

const (
	maxQuestion   = 300
	maxAnswers    = 10
	maxAnswerText = 55
	maxPollHours  = 768
)

type pollCall struct {
	Question string   `json:"question"`
	Answers  []string `json:"answers"`
	Hours    int      `json:"hours"`
	Multiple bool     `json:"multiple"`
}

func (d *Driver) poll(ctx context.Context, call core.Call, p pollCall, at destination) (r core.Result, err error) {
	made := &poll{Hours: min(max(p.Hours, 1), maxPollHours), Multiple: p.Multiple}
	made.Question.Text = line(p.Question, 4*maxQuestion)
	n := markdown.UTF16(made.Question.Text)
	if n < 1 || n > maxQuestion || len(p.Answers) < 1 || len(p.Answers) > maxAnswers {
		return r, core.Errorf(core.Invalid,
			"a poll needs a question of at most %d characters and 1 to %d answers", maxQuestion, maxAnswers)
	}
	for i, a := range p.Answers {
		a = line(a, 4*maxAnswerText)
		n := markdown.UTF16(a)
		if n < 1 || n > maxAnswerText {
			return r, core.Errorf(core.Invalid, "answers[%d]: 1 to %d characters are allowed", i, maxAnswerText)
		}
		made.Answers = append(made.Answers, pollAnswer{pollMedia{Text: a}})
	}
	text := "[poll: " + p.Question + " — " + strings.Join(p.Answers, " / ") + "]"
	m := outgoing{Mentions: noMentions(), text: text, Poll: made}
	return r, d.deliver(ctx, call.Deliveries, at, []outgoing{m}, priorityNormal)
}

// ShowTyping shows that the bot is typing until ctx ends. Discord removes the indicator with the
// next message, or after some seconds.
func (d *Driver) ShowTyping(ctx context.Context, place core.Path) {
	id, err := d.channelOf(place)
	if err != nil {
		<-ctx.Done()
		return
	}
	for {
		if d.closed.refused(id) == nil {
			// An error does not matter.
			q := rest.Request{Method: "POST", Route: "/channels/{}/typing", IDs: []string{id}, Once: true}
			_ = d.rest.Do(ctx, q)
		}
		if !loop.Sleep(ctx, d.timings.typing) {
			return
		}
	}
}
