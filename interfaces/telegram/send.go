package telegram

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"synthbot/core"
	"synthbot/core/draft"
	"synthbot/core/driver"
	"synthbot/core/markdown"
	"synthbot/core/txt"
	"synthbot/interfaces/telegram/botapi"
	"synthbot/interfaces/telegram/markup"
)

// delivery carries out actions: it sends, edits and deletes the bot's messages. Safe for concurrent use.
type delivery struct {
	opt     *Options
	log     *slog.Logger
	api     *botapi.Client
	places  *places
	keys    *signer
	drafts  *draft.Drafts
	receive func(context.Context, core.Event) // receives the event of an edit or deletion
	noRich  atomic.Bool                       // the server does not know rich messages
}

// addressed holds the properties that the payloads of all actions share.
type addressed struct {
	Path    string `json:"interface_path"`
	ReplyTo anyID  `json:"reply_to_message_id"`
	Silent  bool   `json:"silent"`
	to      chatKey
}

func (a *addressed) address() *addressed { return a }

// anyID is an id that a model may write as a number or as a string.
type anyID string

// UnmarshalJSON implements json.Unmarshaler.
func (n *anyID) UnmarshalJSON(data []byte) error {
	s := strings.Trim(string(data), `" `)
	if s == "" || s == "null" {
		return nil
	}
	v, err := strconv.ParseInt(s, 10, 64)
	if err != nil || v <= 0 {
		return fmt.Errorf("%s is not an id: ids are positive numbers", data)
	}
	*n = anyID(id(v))
	return nil
}

// payload is the payload of an action, a *P. check validates it and fills in its derived fields.
type payload[P any] interface {
	*P
	address() *addressed
	check(d *delivery, call core.Call) error
}

// handle returns an action that decodes and checks its payload. do then carries it out, or returns the messages that
// are to be sent for it.
func handle[P any, T payload[P]](
	d *delivery, a core.Action, do func(ctx context.Context, call core.Call, p T) (outgoing, error),
) core.Action {
	read := func(call core.Call) (p T, err error) {
		p = new(P)
		if err := json.Unmarshal(call.Payload, p); err != nil {
			return p, core.Errorf(core.Invalid, "invalid payload: %v", err)
		}
		to := p.address()
		if to.to, err = d.target(call.Path, to.Path); err == nil {
			err = p.check(d, call)
		}
		return p, err
	}
	a.Check = func(_ context.Context, call core.Call) error {
		_, err := read(call)
		return err
	}
	a.Do = func(ctx context.Context, call core.Call) (r core.Result, err error) {
		p, err := read(call)
		if err != nil {
			return r, err
		}
		o, err := do(ctx, call, p)
		if err == nil {
			err = d.send(ctx, call.Deliveries, o)
		}
		return r, err
	}
	return a
}

// target returns the chat or topic of a path or, if path is "", of here.
func (d *delivery) target(here core.Path, path string) (chatKey, error) {
	if path != "" {
		parsed, err := core.ParsePath(path)
		if err != nil {
			return chatKey{}, &core.Error{Kind: core.Invalid,
				Text: fmt.Sprintf("interface_path %q is not a path: write it like %s/-1001234567890/7, or leave it out",
					path, d.opt.Name), Err: err}
		}
		here = parsed
	}
	to, err := chatKeyOf(d.opt.Name, here)
	if err != nil {
		err = core.Errorf(core.Invalid, "interface_path: %q is not a place of %s; correct or omit it",
			here, d.opt.Name)
	}
	return to, err
}

func (d *delivery) path(to chatKey) core.Path { return place(d.opt.Name, to.chat, to.thread) }

func (d *delivery) isPlace(here core.Path, to chatKey) bool {
	s, _ := chatKeyOf(d.opt.Name, here) // zero for a path of another interface
	return s == to
}

type text struct {
	addressed
	Text      string       `json:"text"`
	Recipient string       `json:"recipient"`
	Priority  string       `json:"priority"`
	Buttons   []button     `json:"buttons"`
	Suggest   []string     `json:"suggestions"`
	keyboard  keyboardRows // of the buttons
}

func (t *text) check(d *delivery, call core.Call) (err error) {
	if !txt.HasVisible(markup.Visible(t.Text)) {
		return core.Errorf(core.Invalid, "text is empty: say something, or leave the action out")
	}
	t.keyboard, err = d.keyboard(call, t.to, suggest(t.Buttons, t.Suggest))
	return err
}

func (d *delivery) composeText(_ context.Context, call core.Call, t *text) (o outgoing, err error) {
	if t.Recipient != "" { // the check of the plan replaces a known one by its path
		return o, core.Errorf(core.Invalid, "recipient: %q is not known here; give interface_path", t.Recipient)
	}
	o = outgoing{
		addressed: t.addressed, here: d.isPlace(call.Path, t.to), parts: markup.Parts(t.Text, markup.MaxText),
		keyboard: t.keyboard, priority: map[string]int{"high": 1, "low": -1}[t.Priority], number: 1, following: 1,
	}
	if len(o.parts) > maxMessages {
		o = d.asFile(o, markup.Visible(t.Text))
	}
	return o, nil
}

// maxMessages is how many messages a text may need. A longer one is sent as a file.
const maxMessages = 10

// asFile returns the messages of a long text: one with its beginning and a file with the whole, or, where files are
// not allowed, the first maxMessages messages.
func (d *delivery) asFile(o outgoing, text string) outgoing {
	cut := o
	cut.number, cut.following = o.number+1, o.following+1 // these follow the refused file
	cut.parts = slices.Clone(o.parts[:maxMessages])
	cut.parts[maxMessages-1] = beginning(cut.parts[maxMessages-1].Source, markup.MaxText)
	o.instead = &cut
	o.method, o.parts = textFile.method, []markup.Part{beginning(text, markup.MaxCaption)}
	o.files = []botapi.File{{Field: textFile.field, Name: "answer.md", Data: []byte(text)}}
	o.what = core.Sent{Path: d.path(o.to), Text: text}
	return o
}

// beginning returns the beginning of a text, with a mark that it goes on.
func beginning(text string, units int) markup.Part {
	const mark = "\n…"
	start := markup.Parts(text, units-markdown.UTF16(mark))[0]
	return markup.Parts(start.Source+mark, units)[0]
}

// outgoing holds the messages of a step: a text, a file with its caption, a question or a poll.
type outgoing struct {
	addressed
	here      bool          // it goes to the place of its turn, whose draft becomes the message
	method    string        // of the first message; "": sendMessage
	params    botapi.Params // of the first message, besides those of the other fields
	files     []botapi.File // of the first message
	parts     []markup.Part // of the text or caption: one for each message
	keyboard  keyboardRows  // below the last message
	priority  int           // of all messages
	what      core.Sent     // the first message in the history; zero: only its text
	number    int           // of the first message in the step
	following int           // a further message parts[i] has the number following+i in the step
	instead   *outgoing     // sent instead if files are not allowed
}

// send sends the messages of a step, in order. Before it repeats a message that may have been sent, it waits until
// Telegram answers.
func (d *delivery) send(ctx context.Context, deliveries core.Deliveries, o outgoing) (failed error) {
	for i, part := range o.parts {
		n, what, r := d.request(&o, i)
		if !deliveries.Since(n).IsZero() {
			if err := d.awaitChat(ctx, d.places.currentChat(r.Chat)); err != nil {
				return errors.Join(failed, err)
			}
		}
		err := deliveries.Send(ctx, n, what, func(ctx context.Context, key string) (string, error) {
			if o.here {
				if message, done, err := d.finishDraft(ctx, o.to, r, part, key); done {
					return message, err
				}
			}
			d.write(r, part)
			var m sentMessage
			r.Result = &m
			err := d.api.Do(ctx, r)
			return d.sentID(o.to, m.Number, err)
		})
		if o.instead != nil && botapi.IsCode(err, 400) && botapi.Says(err, "rights to send", "CHAT_SEND_") {
			return d.send(ctx, deliveries, *o.instead)
		}
		if !core.SendsOn(&failed, err) {
			break
		}
	}
	return failed
}

// request returns the request of the i-th message, its number in the step, and its entry in the history.
func (d *delivery) request(o *outgoing, i int) (n int, what core.Sent, r *botapi.Request) {
	n, what = o.following+i, core.Sent{Path: d.path(o.to), Text: o.parts[i].Source}
	r = &botapi.Request{Method: "sendMessage", Chat: o.to.chat, Priority: o.priority}
	r.Params = botapi.Params{"message_thread_id": o.to.thread, "disable_notification": o.Silent}
	if i == 0 {
		n, r.Files = o.number, o.files
		r.Method = cmp.Or(o.method, r.Method)
		maps.Copy(r.Params, o.params)
		what = cmp.Or(o.what, what)
		reply := d.places.messageNumber(o.to.chat, string(o.ReplyTo))
		if reply != 0 {
			r.Params["reply_parameters"] = map[string]any{"message_id": reply, "allow_sending_without_reply": true}
		}
	}
	if i == len(o.parts)-1 && len(o.keyboard.Rows) > 0 {
		r.Params["reply_markup"] = o.keyboard
	}
	return n, what, r
}

// awaitChat waits until Telegram answers and no longer asks to wait with messages to a chat.
func (d *delivery) awaitChat(ctx context.Context, chat int64) error {
	err := d.api.AwaitChat(ctx, chat)
	switch {
	case err == nil || ctx.Err() != nil:
		return err
	case botapi.IsCode(err, 429):
		return explain(err)
	}
	err = fmt.Errorf("%w: %w", core.ErrAway, err)
	return &core.Error{Kind: core.Temporary, Text: "Telegram cannot be reached", Err: err}
}

// sentID returns the id of the message that a request sent, or the explained error. The id is "" if the group became
// a supergroup meanwhile, in which the number means another message.
func (d *delivery) sentID(to chatKey, number int64, err error) (string, error) {
	if err != nil {
		return "", explain(err)
	}
	if number == 0 {
		return "", core.Errorf(core.Broken, "Telegram did not confirm the message")
	}
	if d.places.currentChat(to.chat) != to.chat {
		return "", nil
	}
	d.places.noteSent(to, number)
	return d.places.messageID(to.chat, number), nil
}

type sentMessage struct {
	Number int64 `json:"message_id"`
}

// noPreview keeps Telegram from fetching the links in a text.
const noPreview = `{"is_disabled":true}`

// write puts a text or a caption into a request as HTML. If Config.RichTables is set and the server knows rich
// messages, a text with a table becomes one. If Telegram refuses the request, rewrite changes it.
func (d *delivery) write(r *botapi.Request, p markup.Part) {
	table := ""
	if r.Rewrite == nil && textField(r) == "text" && d.opt.Config.RichTables && !d.noRich.Load() {
		table = markup.Rich(p.Source)
	}
	r.Rewrite = func(r *botapi.Request, err error) bool { return d.rewrite(r, p, err) }
	delete(r.Params, "rich_message")
	switch {
	case p.Source == "":
	case table == "":
		r.Params[textField(r)], r.Params["parse_mode"] = p.HTML, botapi.HTML
		if !d.opt.Config.Previews {
			r.Params["link_preview_options"] = noPreview
		}
	default:
		r.Params["rich_message"] = map[string]string{"html": table}
		if r.Method == "sendMessage" {
			r.Method = "sendRichMessage"
		}
	}
}

func textField(r *botapi.Request) string {
	if len(r.Files) > 0 || r.Method == "editMessageCaption" {
		return "caption"
	}
	return "text"
}

// rewrite changes a refused request: it drops the table, sends the text as a caption, the file as a document, the text
// without styles, or, as the last resort, drops the buttons. It returns false if nothing of that would help.
func (d *delivery) rewrite(r *botapi.Request, p markup.Part, err error) bool {
	refused, how := refusesText(err), ""
	switch {
	case r.Params["rich_message"] != nil && (refused || botapi.IsCode(err, 404)):
		how = "without its table"
		if !refused { // an older server
			d.noRich.Store(true)
		}
		if r.Method == "sendRichMessage" {
			r.Method = "sendMessage"
		}
		d.write(r, p)
	case r.Method == "editMessageText" && botapi.Says(err, "no text in the message"):
		how, r.Method = "as a caption", "editMessageCaption"
		delete(r.Params, "text")
		d.write(r, p)
	case len(r.Files) > 0 && r.Files[0].Field != "document" && r.Files[0].Ref == "" && refusesFile(err):
		how, r.Method, r.Files[0].Field = "as a document", "sendDocument", "document"
	case refused && r.Params["parse_mode"] != nil:
		how, r.Params[textField(r)] = "as plain text", p.Plain()
		delete(r.Params, "parse_mode")
	case refused && r.Params["reply_markup"] != nil:
		how = "without buttons"
		delete(r.Params, "reply_markup")
	default:
		return false
	}
	d.log.Warn("sent again "+how, "chat", r.Chat, "err", err)
	return true
}

// Link implements core.Linker. Messages of private chats and basic groups have no address.
func (d *Driver) Link(place core.Path, id string) string {
	to, err := chatKeyOf(d.opt.Name, place)
	if err != nil || to.chat > supergroupBase {
		return ""
	}
	return fmt.Sprintf("https://t.me/c/%d/%s", supergroupBase-to.chat, id)
}

// Tell implements core.Teller. A user must have written to the bot before. A message is repeated only after a wait
// that Telegram asked for, or in another form if Telegram refused it.
func (d *Driver) Tell(ctx context.Context, to core.Path, text string) error {
	s, err := chatKeyOf(d.opt.Name, to)
	if err != nil {
		return core.Errorf(core.Invalid, "%q is not a place of %s", to, d.opt.Name)
	}
	if !txt.HasVisible(markup.Visible(text)) {
		return core.Errorf(core.Invalid, "the text is empty")
	}
	ctx = driver.Unheld(ctx)
	for _, p := range markup.Parts(text, markup.MaxText) {
		params := botapi.Params{"message_thread_id": s.thread}
		r := &botapi.Request{Method: "sendMessage", Params: params, Chat: s.chat, Priority: 1, Once: true}
		d.send.write(r, p)
		if err := d.api.Do(ctx, r); err != nil {
			return explain(err)
		}
	}
	return nil
}

// explain converts the error of a call to an error of an action, with a text for users. nil stays nil.
func explain(err error) error {
	var api *botapi.Error
	var network *botapi.NetError
	switch {
	case err == nil, errors.Is(err, context.Canceled),
		errors.Is(err, context.DeadlineExceeded) && !errors.As(err, &network):
		return err
	case errors.Is(err, core.ErrUnknownOutcome):
		return &core.Error{Kind: core.Temporary, Text: "Telegram did not say whether it was done", Err: err}
	case !errors.As(err, &network) && !errors.As(err, &api):
		return err
	}
	e, away := &core.Error{Kind: core.Broken, Text: "Telegram refused it", Err: err}, false
	switch {
	case network != nil:
		e.Kind, e.Text, away = core.Temporary, "Telegram cannot be reached", !network.Unknown
	case api.Code == 429:
		e.Kind, e.After, e.Text, away = core.Temporary, api.After, "Telegram asks to wait", true
	case api.Code >= 500:
		e.Kind, e.Text, away = core.Temporary, "Telegram has trouble", api.Down()
	case botapi.RefusesBot(err):
		e.Text, away = "Telegram does not know this bot any more", true
	case api.Code == 403:
		e.Kind, e.Text = core.Forbidden, "the bot may not write there: it was blocked or removed"
	case botapi.Says(err, "chat not found"):
		e.Kind, e.Text = core.Invalid, "there is no such chat, or the bot has never been there"
	case refusesFile(err):
		e.Kind, e.Text = core.Invalid,
			"Telegram does not accept that file: it is missing, too large, or of the wrong type"
	case botapi.Says(err, "thread not found", "TOPIC_DELETED"):
		e.Kind, e.Text = core.Forbidden, "that topic is gone"
	case botapi.Says(err, "TOPIC_CLOSED"):
		e.Kind, e.Text = core.Forbidden, "that topic is closed"
	case botapi.Says(err, "not found", "can't be edited", "can't be deleted"):
		e.Kind, e.Text = core.Invalid, "that message does not exist, or the bot may not change it"
	case botapi.Says(err, "not enough rights", "CHAT_WRITE_FORBIDDEN", "have no rights"):
		e.Kind, e.Text = core.Forbidden, "the bot lacks the right to do that there"
	}
	if away {
		e.Err = fmt.Errorf("%w: %w", core.ErrAway, err)
	}
	return e
}

// refusesText reports whether Telegram may have refused a message because of its text, styles or buttons.
func refusesText(err error) bool {
	var e *botapi.Error
	return errors.As(err, &e) && e.Code == 400 && e.Migrate == 0 &&
		!botapi.Says(err, "chat not found", "thread not found", "TOPIC_", "rights", "FORBIDDEN", "to edit not found",
			"not modified", "can't be edited", "no text in the message", "no caption in the message",
			"PEER_ID_INVALID", "replied not found") &&
		!refusesFile(err)
}

func refusesFile(err error) bool {
	return botapi.IsCode(err, 400) &&
		botapi.Says(err, "IMAGE_PROCESS_FAILED", "PHOTO_", "VIDEO_", "WEBPAGE_", "VOICE_MESSAGES_FORBIDDEN",
			"wrong type of", "wrong file", "file must be", "file is too big", "failed to get HTTP URL")
}
