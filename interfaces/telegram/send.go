package telegram

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"

	tgbotapi "github.com/go-telegram-bot-api/telegram-bot-api/v5"

	"synthbot/core"
	"synthbot/core/markdown"
)

// target is where a call goes to.
type target struct {
	path core.Path
	spot spot
}

// target reads where a call wants to go; left out, it is where the turn is.
func (d *Driver) target(call core.Call, path string) (target, error) {
	p := call.Path
	if path != "" {
		parsed, err := core.ParsePath(path)
		if err != nil {
			return target{}, &core.Error{Kind: core.Invalid, Text: fmt.Sprintf("interface_path %q is no path: write it like %s/-1001234567890/7, or leave it out", path, d.opt.Name), Err: err}
		}
		p = parsed
	}
	s, err := spotOf(d.opt.Name, p)
	if err != nil {
		return target{}, core.Errorf(core.Invalid, "interface_path: %q is no place of %s: correct it or leave it out", p, d.opt.Name)
	}
	return target{place(d.opt.Name, s.chat, s.thread), s}, nil
}

// params begins the parameters of a call that sends something.
func (t target) params() tgbotapi.Params {
	p := tgbotapi.Params{"chat_id": id(t.spot.chat)}
	p.AddNonZero64("message_thread_id", t.spot.thread)
	return p
}

// text is what message_telegram sends.
type text struct {
	Text     string   `json:"text"`
	Path     string   `json:"interface_path"`
	Priority string   `json:"priority"`
	ReplyTo  anyID    `json:"reply_to_message_id"`
	Buttons  []button `json:"buttons"`
	Suggest  []string `json:"suggestions"`
	Silent   bool     `json:"silent"`
}

type button struct {
	Text string `json:"text"`
	URL  string `json:"url"`
	Data string `json:"data"`
	For  anyID  `json:"for"`
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
		return fmt.Errorf("%s is no id: ids are positive numbers", data)
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

// message reads a call of the message action.
func (d *Driver) message(call core.Call) (text, target, error) {
	var t text
	if err := payload(call, &t); err != nil {
		return t, target{}, err
	}
	to, err := d.target(call, t.Path)
	if err != nil {
		return t, to, err
	}
	if !speaks(visible(t.Text)) {
		return t, to, core.Errorf(core.Invalid, "text is empty: say something, or leave the action out")
	}
	t.Buttons = suggested(t.Buttons, t.Suggest)
	_, err = d.keyboard(to.spot.chat, t.Buttons)
	return t, to, err
}

// maxSuggestion is the longest suggestion that fits on a button, in UTF-16 units.
const maxSuggestion = 64

// suggested adds a button for each suggestion there is room for; who presses it
// says it.
func suggested(list []button, texts []string) []button {
	for _, s := range texts {
		s = strings.Join(strings.Fields(visible(s)), " ")
		if speaks(s) && markdown.UTF16(s) <= maxSuggestion && len(list) < maxButtons {
			list = append(list, button{Text: s})
		}
	}
	return list
}

// speaks reports whether a text holds anything that a person would see.
func speaks(s string) bool {
	return strings.ContainsFunc(s, func(c rune) bool {
		return unicode.IsGraphic(c) && !unicode.IsSpace(c) && c != '\u2060' && c != '\u3164' && c != '\u2800'
	})
}

func (d *Driver) checkMessage(_ context.Context, call core.Call) error {
	_, _, err := d.message(call)
	return err
}

// sendMessage carries the message action out.
func (d *Driver) sendMessage(ctx context.Context, call core.Call) (core.Result, error) {
	t, to, err := d.message(call)
	if err != nil {
		return core.Result{}, err
	}
	return core.Result{}, d.sendParts(ctx, call, to, t, parts(t.Text, maxText), 1)
}

// sendParts sends the parts of a text as the messages n, n+1, … of a step. The
// first is the reply, the last has the buttons.
func (d *Driver) sendParts(ctx context.Context, call core.Call, to target, t text, list []part, n int) error {
	for i, p := range list {
		params := to.params()
		params.AddBool("disable_notification", t.Silent)
		if !d.opt.Config.Previews {
			params["link_preview_options"] = `{"is_disabled":true}`
		}
		if i == 0 {
			replyTo(params, t.ReplyTo)
		}
		if i == len(list)-1 {
			markup, err := d.keyboard(to.spot.chat, t.Buttons)
			if err != nil {
				return err
			}
			params.AddNonEmpty("reply_markup", markup)
		}
		what := core.Sent{Path: to.path, Text: p.source}
		err := call.Parts.Send(ctx, n+i, what, func(ctx context.Context, _ string) (string, error) {
			r := request{method: "sendMessage", params: params, chat: to.spot.chat, rank: rank(t.Priority)}
			return d.sent(to, r, func(r request) (json.RawMessage, error) { return d.styled(ctx, r, "text", p) })
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// rank turns a priority into a place in what waits.
func rank(priority string) int {
	switch priority {
	case "high":
		return 1
	case "low":
		return -1
	}
	return 0
}

func replyTo(params tgbotapi.Params, message anyID) {
	if message != 0 {
		params["reply_parameters"] = fmt.Sprintf(`{"message_id":%d,"allow_sending_without_reply":true}`, message)
	}
}

// sent carries a sending request out and returns the id of what stands now.
func (d *Driver) sent(to target, r request, do func(request) (json.RawMessage, error)) (string, error) {
	raw, err := do(r)
	if err != nil {
		return "", explain(err)
	}
	var m struct {
		ID int64 `json:"message_id"`
	}
	if err := json.Unmarshal(raw, &m); err != nil || m.ID == 0 {
		return "", &core.Error{Kind: core.Broken, Text: "Telegram did not say what became of it", Err: err}
	}
	d.places.sent(to.spot, m.ID)
	return id(m.ID), nil
}

// styled sends a request with the part as HTML in field. What the platform does
// not take so, it gets again as plain text, and at last without buttons.
func (d *Driver) styled(ctx context.Context, r request, field string, p part) (json.RawMessage, error) {
	r.params[field], r.params["parse_mode"] = p.html, tgbotapi.ModeHTML
	raw, err := d.do(ctx, r)
	if !aboutWords(err) {
		return raw, err
	}
	d.log.Warn("sent again as plain text", "chat", r.chat, "error", err)
	r.params[field] = p.plain()
	delete(r.params, "parse_mode")
	if raw, err = d.do(ctx, r); aboutWords(err) && r.params["reply_markup"] != "" {
		delete(r.params, "reply_markup")
		raw, err = d.do(ctx, r)
	}
	return raw, err
}

// aboutWords reports whether a refusal may be about how a message was written,
// and not about where it was to go.
func aboutWords(err error) bool {
	var e *apiError
	return errors.As(err, &e) && e.code == 400 && e.migrate == 0 &&
		!e.says("chat not found", "thread not found", "TOPIC_", "rights", "FORBIDDEN", "to edit not found", "not modified",
			"can't be edited", "no text in the message", "no caption in the message", "PEER_ID_INVALID", "replied not found")
}

const (
	maxButtons = 40
	rowUnits   = 30 // texts of one row, together
)

// keyboard writes the buttons below a message; "" for none.
func (d *Driver) keyboard(chat int64, list []button) (string, error) {
	if len(list) == 0 {
		return "", nil
	}
	if len(list) > maxButtons {
		return "", core.Errorf(core.Invalid, "buttons: at most %d are possible", maxButtons)
	}
	var rows [][]tgbotapi.InlineKeyboardButton
	width := rowUnits + 1
	for i, b := range list {
		made, err := d.button(chat, i, b)
		if err != nil {
			return "", err
		}
		units := markdown.UTF16(made.Text)
		if width += units; width > rowUnits || len(rows[len(rows)-1]) >= 4 {
			rows, width = append(rows, nil), units
		}
		rows[len(rows)-1] = append(rows[len(rows)-1], made)
	}
	data, err := json.Marshal(tgbotapi.NewInlineKeyboardMarkup(rows...))
	return string(data), err
}

func (d *Driver) button(chat int64, i int, b button) (tgbotapi.InlineKeyboardButton, error) {
	label := strings.Join(strings.Fields(visible(b.Text)), " ")
	made := tgbotapi.InlineKeyboardButton{Text: label}
	switch {
	case !speaks(label) || markdown.UTF16(label) > 128:
		return made, core.Errorf(core.Invalid, "buttons[%d].text: say what the button does, in a few words", i)
	case b.URL != "":
		if !linkable(b.URL) {
			return made, core.Errorf(core.Invalid, "buttons[%d].url: it must be a full https address", i)
		}
		made.URL = &b.URL
		return made, nil
	}
	kind, data := byte(kindData), b.Data
	if data == "" {
		kind, data = kindText, strconv.Itoa(i)
	}
	sealed, ok := d.keys.seal(chat, kind, int64(b.For), data)
	if !ok {
		return made, core.Errorf(core.Invalid, "buttons[%d].data: at most 40 bytes are possible", i)
	}
	made.CallbackData = &sealed
	return made, nil
}
