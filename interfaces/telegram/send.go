package telegram

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"strconv"
	"strings"
	"sync/atomic"

	"synthbot/core"
	"synthbot/core/draft"
	"synthbot/interfaces/telegram/botapi"
	"synthbot/interfaces/telegram/markup"
)

// delivery sends what the bot says, and changes it. Safe for concurrent use.
type delivery struct {
	opt    *Options
	log    *slog.Logger
	api    *botapi.Client
	places *places
	keys   *signer
	drafts *draft.Drafts
	noRich atomic.Bool // the server knows no rich messages
}

// target is where a call goes to.
type target struct {
	path core.Path
	key  chatKey
}

// target reads where a call wants to go; left out, it is where the turn is.
func (d *delivery) target(call core.Call, path string) (target, error) {
	p := call.Path
	if path != "" {
		parsed, err := core.ParsePath(path)
		if err != nil {
			return target{}, &core.Error{Kind: core.Invalid,
				Text: fmt.Sprintf("interface_path %q is not a path: write it like %s/-1001234567890/7, or leave it out",
					path, d.opt.Name), Err: err}
		}
		p = parsed
	}
	s, err := chatKeyOf(d.opt.Name, p)
	if err != nil {
		return target{}, core.Errorf(core.Invalid, "interface_path: %q is not a place of %s; correct or omit it",
			p, d.opt.Name)
	}
	return target{place(d.opt.Name, s.chat, s.thread), s}, nil
}

// params begins the parameters of a call that sends something.
func (t target) params() botapi.Params {
	p := botapi.Params{"chat_id": id(t.key.chat)}
	p.AddNonZero("message_thread_id", t.key.thread)
	return p
}

// text is what message_telegram sends.
type text struct {
	Text      string   `json:"text"`
	Path      string   `json:"interface_path"`
	Recipient string   `json:"recipient"`
	Priority  string   `json:"priority"`
	ReplyTo   anyID    `json:"reply_to_message_id"`
	Suggest   []string `json:"suggestions"`
	Silent    bool     `json:"silent"`
	buttons
	markup string // of the buttons
}

// anyID is an id that a model may write as a number or as a text.
type anyID int64

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
	*n = anyID(v)
	return nil
}

func payload(call core.Call, into any) error {
	if err := json.Unmarshal(call.Payload, into); err != nil {
		return &core.Error{Kind: core.Invalid, Text: "the payload cannot be read: " + err.Error(), Err: err}
	}
	return nil
}

func (c *catalogue) message(call core.Call) (text, target, error) {
	var t text
	if err := payload(call, &t); err != nil {
		return t, target{}, err
	}
	to, err := c.send.target(call, t.Path)
	if err != nil {
		return t, to, err
	}
	if !markup.HasVisible(markup.Visible(t.Text)) {
		return t, to, core.Errorf(core.Invalid, "text is empty: say something, or leave the action out")
	}
	t.suggest(t.Suggest)
	t.markup, err = c.send.keyboard(call, to, t.buttons)
	return t, to, err
}

func (c *catalogue) sendMessage(ctx context.Context, call core.Call, to target, t text) error {
	if t.Recipient != "" { // checking the plan replaces it by a path
		return core.Errorf(core.Invalid, "recipient: %q is nobody known here; give interface_path", t.Recipient)
	}
	list := markup.Parts(t.Text, markup.MaxText)
	return core.SendAll(len(list), func(i int) error {
		return c.send.sendPart(ctx, call, to, t, list, i, 1+i)
	})
}

// sendPart sends one of the parts of a text as the n-th message of a step. The first is
// the reply, the last has the buttons.
func (d *delivery) sendPart(
	ctx context.Context, call core.Call, to target, t text, list []markup.Part, i, n int,
) error {
	params := to.params()
	params.AddTrue("disable_notification", t.Silent)
	if i == 0 {
		d.replyTo(params, to, t.ReplyTo)
	}
	if i == len(list)-1 {
		params.AddNonEmpty("reply_markup", t.markup)
	}
	ranks := map[string]int{"high": 1, "low": -1}
	what := core.Sent{Path: to.path, Text: list[i].Source}
	return d.part(ctx, call.Deliveries, n, what, func(ctx context.Context, key string) (string, error) {
		r := botapi.Request{Method: "sendMessage", Params: params, Chat: to.key.chat, Rank: ranks[t.Priority]}
		return d.say(ctx, to, r, list[i], d.same(call.Path, to), key)
	})
}

// sender makes the call that sends a part; key is the part's.
type sender func(ctx context.Context, key string) (id string, err error)

// part sends one message as the n-th part of a step. One that may have arrived already is
// sent again only once the platform answers.
func (d *delivery) part(ctx context.Context, parts core.Deliveries, n int, what core.Sent, send sender) error {
	if parts.Since(n).IsZero() {
		return parts.Send(ctx, n, what, send)
	}
	s, _ := chatKeyOf(d.opt.Name, what.Path) // something was sent there before
	err := d.api.Reaches(ctx, d.places.now(s.chat))
	switch {
	case err == nil:
		return parts.Send(ctx, n, what, send)
	case ctx.Err() != nil:
		return err
	case botapi.IsCode(err, 429):
		return explain(err)
	}
	return &core.Error{Kind: core.Temporary, Text: "Telegram cannot be reached",
		Err: fmt.Errorf("%w: %w", core.ErrAway, err)}
}

// same reports whether a message of a turn in that place goes to it.
func (d *delivery) same(here core.Path, to target) bool {
	s, _ := chatKeyOf(d.opt.Name, here) // elsewhere it is none that a message goes to
	return s == to.key
}

// say sends one message of text, the part with this key. In the place of its turn (here)
// its draft becomes the message.
func (d *delivery) say(ctx context.Context, to target, r botapi.Request, p markup.Part, here bool, key string) (
	string, error) {
	if here {
		if message, done, err := d.finish(ctx, to, r, p, key); done {
			return message, err
		}
	}
	raw, err := d.written(ctx, r, p)
	return d.sent(to, raw, err)
}

func (d *delivery) replyTo(params botapi.Params, to target, message anyID) {
	number := d.places.messageNumber(to.key.chat, int64(message))
	if number != 0 {
		params["reply_parameters"] = fmt.Sprintf(`{"message_id":%d,"allow_sending_without_reply":true}`, number)
	}
}

// sent returns the id of the message that a request sent. It returns none if the group
// became a supergroup meanwhile: there the number means another message.
func (d *delivery) sent(to target, raw json.RawMessage, err error) (string, error) {
	if err != nil {
		return "", explain(err)
	}
	number := numberOf(raw)
	if number == 0 {
		return "", core.Errorf(core.Broken, "Telegram did not say what became of it")
	}
	if d.places.now(to.key.chat) != to.key.chat {
		return "", nil
	}
	d.places.sent(to.key, number)
	return d.places.messageID(to.key.chat, number), nil
}

// numberOf is the number of a message that the platform returned; 0 if it is none.
func numberOf(raw json.RawMessage) int64 {
	var m message
	_ = json.Unmarshal(raw, &m)
	return m.ID
}

// noPreview keeps the platform from fetching what a text links to.
const noPreview = `{"is_disabled":true}`

// styled sends a request with the part as HTML in field. If the platform does not take
// that, it gets plain text, and in the end no buttons.
func (d *delivery) styled(ctx context.Context, r botapi.Request, field string, p markup.Part) (json.RawMessage, error) {
	r.Params[field], r.Params["parse_mode"] = p.HTML, botapi.HTML
	if !d.opt.Config.Previews {
		r.Params["link_preview_options"] = noPreview
	}
	raw, err := d.api.Do(ctx, r)
	if !aboutWords(err) {
		return raw, err
	}
	d.log.Warn("sent again as plain text", "chat", r.Chat, "err", err)
	r.Params[field] = p.Plain()
	delete(r.Params, "parse_mode")
	if raw, err = d.api.Do(ctx, r); aboutWords(err) && r.Params["reply_markup"] != "" {
		delete(r.Params, "reply_markup")
		raw, err = d.api.Do(ctx, r)
	}
	return raw, err
}

// aboutWords reports whether a refusal may be about how a message is written, and not
// about where it goes.
func aboutWords(err error) bool {
	var e *botapi.Error
	return errors.As(err, &e) && e.Code == 400 && e.Migrate == 0 &&
		!e.Says("chat not found", "thread not found", "TOPIC_", "rights", "FORBIDDEN", "to edit not found",
			"not modified", "can't be edited", "no text in the message", "no caption in the message",
			"PEER_ID_INVALID", "replied not found") &&
		!aboutFile(err)
}

// written sends a text: one with a table as a rich message, where that is
// wanted and the server knows how; everything else with styles.
func (d *delivery) written(ctx context.Context, r botapi.Request, p markup.Part) (json.RawMessage, error) {
	html := ""
	if d.opt.Config.RichTables && !d.noRich.Load() {
		html = markup.Rich(p.Source)
	}
	if html == "" {
		return d.styled(ctx, r, "text", p)
	}
	rich := r
	rich.Params = maps.Clone(r.Params)
	rich.Params.AddJSON("rich_message", map[string]string{"html": html})
	if r.Method == "sendMessage" {
		rich.Method = "sendRichMessage"
	}
	raw, err := d.api.Do(ctx, rich)
	switch {
	case botapi.IsCode(err, 404): // an older server
		d.noRich.Store(true)
	case !aboutWords(err) || botapi.Says(err, "not modified"):
		return raw, err
	}
	d.log.Warn("sent again without its table", "chat", r.Chat, "err", err)
	return d.styled(ctx, r, "text", p)
}
