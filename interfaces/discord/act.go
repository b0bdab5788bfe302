package discord

import (
	"context"
	"strings"

	"synthbot/core"
	"synthbot/core/driver"
	"synthbot/core/markdown"
	"synthbot/core/txt"
	"synthbot/interfaces/discord/markup"
	"synthbot/interfaces/discord/rest"
)

// do makes a Do of what carries out a payload.
func do[P any](
	d *Driver, carry func(context.Context, core.Call, destination, P) error,
) func(context.Context, core.Call) (core.Result, error) {
	return func(ctx context.Context, call core.Call) (core.Result, error) {
		var p P
		at, err := d.read(ctx, call, &p)
		if err == nil {
			err = carry(ctx, call, at, p)
		}
		return core.Result{}, err
	}
}

// onMessage is the payload of actions that concern a message.
type onMessage struct {
	ID     messageID `json:"message_id"`
	Text   string    `json:"text"`
	Emoji  string    `json:"emoji"`
	Remove bool      `json:"remove"`
}

func (d *Driver) checkEdit(ctx context.Context, call core.Call) error {
	var p onMessage
	_, err := d.read(ctx, call, &p)
	if err == nil {
		_, err = d.edited(p.Text)
	}
	return err
}

// edited writes a text for a message that exists, and may have embeds.
func (d *Driver) edited(text string) (string, error) {
	texts := markup.Writer{Quiet: !d.set.Previews}.Messages(text)
	if len(texts) != 1 {
		return "", core.Errorf(core.Invalid, "text must fit into one message: %d would be needed", len(texts))
	}
	return texts[0], nil
}

// edit changes a message; Discord refuses those of others. The history gets the new
// text, as it does when users edit.
func (d *Driver) edit(ctx context.Context, _ core.Call, at destination, p onMessage) error {
	text, err := d.edited(p.Text)
	if err != nil {
		return err
	}
	err = d.changeMessage(ctx, at.channel, string(p.ID), map[string]any{"content": text}, false)
	if err != nil {
		return rest.Failure("changing the message", err)
	}
	changed := core.Message{Path: at.place, ID: string(p.ID), Text: strings.TrimSpace(p.Text)}
	d.receive(ctx, core.Event{Kind: core.KindEdit, Message: changed})
	return nil
}

// remove deletes a message; other people's only for a moderator.
func (d *Driver) remove(ctx context.Context, call core.Call, at destination, p onMessage) error {
	if call.Author.Rank < core.RankModerator {
		var m message
		err := d.rest.Get(ctx, &m, "/channels/{}/messages/{}", at.channel, string(p.ID))
		switch {
		case rest.NotFound(err):
			return nil
		case err != nil:
			return rest.Failure("finding the message", err)
		case m.Author == nil || m.Author.ID != d.whoAmI(ctx):
			return core.Errorf(core.Forbidden, "only a moderator may have other people's messages deleted")
		}
	}
	return rest.Worded("deleting the message", d.rest.Delete(ctx, "/channels/{}/messages/{}", at.channel, string(p.ID)))
}

// custom is an emoji of a server, in the forms that models write.
var custom = txt.Pattern(`^<?a?:?(\w{2,32}:\d{5,24})>?$`)

func (d *Driver) reactTo(ctx context.Context, _ core.Call, at destination, p onMessage) error {
	sign := strings.TrimSpace(p.Emoji)
	m := custom().FindStringSubmatch(sign)
	if m != nil {
		sign = m[1]
	}
	const route = "/channels/{}/messages/{}/reactions/{}/@me"
	if p.Remove {
		return rest.Worded("reacting", d.rest.Delete(ctx, route, at.channel, string(p.ID), sign))
	}
	q := rest.Request{Method: "PUT", Route: route, IDs: []string{at.channel, string(p.ID), sign}}
	return rest.Worded("reacting", d.rest.Do(ctx, q))
}

type textFile struct {
	Name    string `json:"name"`
	Content string `json:"content"`
	Text    string `json:"text"`
}

func (d *Driver) file(ctx context.Context, call core.Call, at destination, p textFile) error {
	if len(p.Content) > maxFileSize {
		return core.Errorf(core.Invalid, "content is too long: at most %d bytes are allowed", maxFileSize)
	}
	n := len(markup.Messages(p.Text))
	if n > 1 {
		return core.Errorf(core.Invalid, "text must fit into one message: %d would be needed", n)
	}
	list := fileMessages(p.Text, core.Upload{Name: p.Name, Data: []byte(p.Content), Kind: core.MediaFile})
	return d.sender.deliver(ctx, call.Deliveries, at, list, normal)
}

// thread opens a thread, or a post in a forum.
func (d *Driver) thread(ctx context.Context, call core.Call) (core.Result, error) {
	var p struct {
		Name string    `json:"name"`
		Text string    `json:"text"`
		ID   messageID `json:"message_id"`
	}
	at, err := d.read(ctx, call, &p)
	if err != nil {
		return core.Result{}, err
	}
	known, _ := d.cache.place(at.channel)
	e := at.place.Elements()
	if len(e) != 3 || known.thread() || e[1] == me {
		return core.Result{}, core.Errorf(core.Invalid, "threads are opened in channels of a server only")
	}
	q, err := d.threadRequest(at.channel, known, p.Name, p.Text, string(p.ID))
	if err != nil {
		return core.Result{}, err
	}
	var made channel
	q.Out = &made
	if err := d.rest.Do(ctx, q); err != nil {
		return core.Result{}, rest.Failure("opening the thread", err)
	}
	made.Guild, made.Parent = e[1], at.channel
	if made.Type == 0 {
		made.Type = threadPublic
	}
	d.cache.setChannel(made)
	to, err := core.MakePath(d.name, made.Guild, at.channel, made.ID)
	if err != nil {
		return core.Result{}, rest.Failure("opening the thread", err)
	}
	out := core.Result{Output: compact(map[string]string{"interface_path": to.String()})}
	if p.Text != "" && !forum(known) {
		payload := compact(map[string]string{"text": p.Text, "interface_path": to.String()})
		out.Next = []core.Step{{Type: core.MessagePrefix + d.name, Payload: payload, Priority: core.DefaultPriority}}
	}
	return out, nil
}

func forum(p place) bool { return p.Kind == 15 || p.Kind == 16 }

func (d *Driver) threadRequest(channel string, p place, name, text, message string) (rest.Request, error) {
	q := rest.Request{Method: "POST", IDs: []string{channel}, Once: true}
	body := map[string]any{"name": line(name, 100), "auto_archive_duration": 1440}
	switch texts := markup.Messages(text); {
	case forum(p) && len(texts) != 1:
		return q, core.Errorf(core.Invalid, "a post needs a text that fits into one message")
	case forum(p):
		q.Route = "/channels/{}/threads"
		body["message"] = map[string]any{
			"content": texts[0], "allowed_mentions": nobody(), "flags": d.set.plain(nil),
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

type newPoll struct {
	Question string   `json:"question"`
	Answers  []string `json:"answers"`
	Hours    int      `json:"hours"`
	Multiple bool     `json:"multiple"`
}

func (d *Driver) poll(ctx context.Context, call core.Call, at destination, p newPoll) error {
	made := &poll{Hours: min(max(p.Hours, 1), maxPollHours), Multiple: p.Multiple}
	made.Question.Text = line(p.Question, 4*maxQuestion)
	n := markdown.UTF16(made.Question.Text)
	if n < 1 || n > maxQuestion || len(p.Answers) < 1 || len(p.Answers) > maxAnswers {
		return core.Errorf(core.Invalid,
			"a poll needs a question of at most %d characters and 1 to %d answers", maxQuestion, maxAnswers)
	}
	for i, a := range p.Answers {
		a = line(a, 4*maxAnswerText)
		n := markdown.UTF16(a)
		if n < 1 || n > maxAnswerText {
			return core.Errorf(core.Invalid, "answers[%d]: 1 to %d characters are allowed", i, maxAnswerText)
		}
		made.Answers = append(made.Answers, pollAnswer{pollMedia{Text: a}})
	}
	text := "[poll: " + p.Question + " — " + strings.Join(p.Answers, " / ") + "]"
	m := outgoing{Mentions: nobody(), text: text, Poll: made}
	return d.sender.deliver(ctx, call.Deliveries, at, []outgoing{m}, normal)
}

// ShowTyping shows that the bot is typing until ctx ends. Discord removes the sign with the
// next message, or after some seconds.
func (d *Driver) ShowTyping(ctx context.Context, place core.Path) {
	id, err := d.channelOf(place)
	if err != nil {
		<-ctx.Done()
		return
	}
	for {
		if d.closed.refused(id) == nil {
			// It may fail: it is only a sign.
			q := rest.Request{Method: "POST", Route: "/channels/{}/typing", IDs: []string{id}, Once: true}
			_ = d.rest.Do(ctx, q)
		}
		if !driver.Sleep(ctx, d.timings.typing) {
			return
		}
	}
}
