package telegram

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"slices"
	"strconv"
	"strings"
	"time"

	"synthbot/core"
	"synthbot/core/loop"
	"synthbot/core/markdown"
	"synthbot/core/txt"
	"synthbot/interfaces/telegram/botapi"
	"synthbot/interfaces/telegram/markup"
)

// A button's callback data has at most 64 bytes:
//
//	kind mac users ":" data
//
// kind is 'c' for a core.Choice, whose data follows. Otherwise it is 't': a press says the button's label, and data is
// the button's position. ('d', of earlier versions, is read as 't'.) mac, 10 characters of base64url, signs the rest
// and the chat. users lists the ids, in base 36 and separated by commas, of those who may press; empty: everybody.
const (
	maxCallback = 64
	macSize     = 10

	kindChoice = 'c'
	kindText   = 't'

	// The id of an event: of a pressed choice with the callback query's id; of the first press of another button with
	// the message's id, so that further presses are known, even after a restart.
	pressMark, oncePrefix = "press:", "pressed:"
)

type signer struct{ key []byte }

func newSigner(token string) *signer {
	mac := hmac.New(sha256.New, []byte(token))
	mac.Write([]byte("buttons"))
	return &signer{mac.Sum(nil)}
}

// seal returns the callback data of a button. ok is false if it is too long.
func (s *signer) seal(chat int64, kind byte, people []int64, data string) (sealed string, ok bool) {
	who := make([]string, len(people))
	for i, person := range people {
		who[i] = strconv.FormatInt(person, 36)
	}
	body := strings.Join(who, ",") + ":" + data
	out := string(kind) + s.mac(chat, kind, body) + body
	return out, len(out) <= maxCallback
}

// open reads callback data. ok is false unless this bot sealed it for this chat.
func (s *signer) open(chat int64, data string) (kind byte, people []int64, content string, ok bool) {
	if len(data) < 1+macSize+1 {
		return 0, nil, "", false
	}
	kind, mac, body := data[0], data[1:1+macSize], data[1+macSize:]
	if !hmac.Equal([]byte(mac), []byte(s.mac(chat, kind, body))) {
		return 0, nil, "", false
	}
	who, content, _ := strings.Cut(body, ":")
	for one := range strings.SplitSeq(who, ",") {
		if person, err := strconv.ParseInt(one, 36, 64); err == nil {
			people = append(people, person)
		}
	}
	return kind, people, content, true
}

// resignKeyboard signs the buttons of a keyboard again for the supergroup that a group became.
func (s *signer) resignKeyboard(markup any, from, to int64) any {
	k, _ := markup.(keyboardRows)
	for _, row := range k.Rows {
		for i := range row {
			if kind, people, data, ok := s.open(from, row[i].CallbackData); ok {
				row[i].CallbackData, _ = s.seal(to, kind, people, data) // the length stays the same
			}
		}
	}
	return k
}

func (s *signer) mac(chat int64, kind byte, body string) string {
	mac := hmac.New(sha256.New, s.key)
	mac.Write([]byte(strconv.FormatInt(chat, 10) + " " + string(kind) + body))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))[:macSize]
}

// Texts for users whose press has no effect.
const (
	pressOld      = "This button does not work any more."
	pressStranger = "This button is for somebody else."
)

// press converts a press of a button. It is valid if this bot signed the button for this user, and if it is the first
// press of a button of the message. A core.Choice may be pressed several times.
func (c *converter) press(q *callback) converted {
	p := &press{query: q.ID, refused: pressOld}
	if q.ID == "" || q.Message == nil || q.Message.Chat.ID == 0 || q.From.ID == 0 {
		return converted{press: p}
	}
	m := q.Message
	p.chat, p.message = m.Chat.ID, m.ID
	kind, only, data, ok := c.keys.open(m.Chat.ID, q.Data)
	choice := kind == kindChoice
	if ok && !choice {
		keys := m.buttons()
		at := slices.IndexFunc(keys, func(b keyboardButton) bool { return b.CallbackData == q.Data })
		ok = at >= 0
		if ok {
			data = keys[at].Text
		}
	}
	switch {
	case !ok:
		return converted{press: p}
	case len(only) > 0 && !slices.Contains(only, q.From.ID):
		p.refused = pressStranger
		return converted{press: p}
	}
	p.choice = choice
	first := q.ID // a query that could not be stored arrives again
	if !choice {
		first = c.pressed.Ensure([2]int64{m.Chat.ID, m.ID}, func() string { return q.ID })
	}
	if first != q.ID { // another button was pressed before
		return converted{press: p}
	}
	p.refused = ""
	thread := m.Thread
	if !m.IsTopic {
		thread = c.places.thread(m.Chat.ID, m.ID)
	}
	e := core.Event{Kind: core.KindPress, Target: c.places.messageID(m.Chat.ID, m.ID), Data: cut(data, core.MaxQuote)}
	e.Message = core.Message{
		Path: place(c.name, m.Chat.ID, thread), ID: oncePrefix + e.Target, Author: person(&q.From), Time: c.now().UTC(),
		Private: m.Chat.Type == "private", Locale: cut(q.From.LanguageCode, 35), Addressed: core.AddressedReply,
	}
	if choice {
		e.Message.ID = pressMark + cut(q.ID, 64)
	}
	return converted{events: []core.Event{e}, press: p}
}

// button is a button of a payload. A press says its label, or opens its address.
type button struct {
	Label string `json:"label"`
	URL   string `json:"url"`
}

const (
	maxButtons = 25
	rowUnits   = 36 // UTF-16 units of the labels in a row, so that they are fully visible

	maxSuggestion = 64 // UTF-16 units of a suggestion that becomes a button
)

func suggest(list []button, texts []string) []button {
	for _, s := range texts {
		s = strings.Join(strings.Fields(markup.Visible(s)), " ")
		if txt.HasVisible(s) && markdown.UTF16(s) <= maxSuggestion && len(list) < maxButtons {
			list = append(list, button{Label: s})
		}
	}
	return list
}

// pressers returns the users who may press the buttons of a message: the authors that it answers, in their own
// place. None means everybody.
func (d *delivery) pressers(call core.Call, to chatKey) (ids []int64) {
	for _, a := range call.Authors {
		id := number(a.ID)
		if id > 0 && a.Rank < core.RankBot && d.isPlace(call.Path, to) {
			ids = append(ids, id)
		}
	}
	return ids
}

// keyboard arranges the buttons below a message: one in a row for up to 3 buttons, three for up to 15, else five.
func (d *delivery) keyboard(call core.Call, to chatKey, list []button) (k keyboardRows, err error) {
	n, across := len(list), 1
	if n > maxButtons {
		return k, core.Errorf(core.Invalid, "buttons: there may be %d at most", maxButtons)
	}
	switch {
	case n > 15:
		across = 5
	case n > 3:
		across = 3
	}
	width, pressers := 0, d.pressers(call, to)
	for i, b := range list {
		made, ok, err := d.button(to.chat, i, b, pressers)
		if err != nil {
			return k, err
		}
		if !ok {
			continue
		}
		units := markdown.UTF16(made.Text)
		width += units
		last := len(k.Rows) - 1
		if last < 0 || width > rowUnits || len(k.Rows[last]) >= across {
			k.Rows, last, width = append(k.Rows, nil), last+1, units
		}
		k.Rows[last] = append(k.Rows[last], made)
	}
	return k, nil
}

// button returns the i-th button. ok is false if the ids of those who may press it do not fit into its callback data.
func (d *delivery) button(chat int64, i int, b button, pressers []int64) (made keyboardButton, ok bool, err error) {
	made.Text = strings.Join(strings.Fields(markup.Visible(b.Label)), " ")
	switch {
	case !txt.HasVisible(made.Text) || markdown.UTF16(made.Text) > 128:
		return made, false, core.Errorf(core.Invalid, "buttons[%d].label: say what the button does, in a few words", i)
	case b.URL != "" && !markup.Linkable(b.URL):
		return made, false, core.Errorf(core.Invalid, "buttons[%d].url: it must be a full https address", i)
	case b.URL != "":
		made.URL = b.URL
		return made, true, nil
	}
	made.CallbackData, ok = d.keys.seal(chat, kindText, pressers, strconv.Itoa(i))
	return made, ok, nil
}

// Choose sends a question with a button for each choice.
func (d *Driver) Choose(ctx context.Context, parts core.Deliveries, what core.Sent, choices []core.Choice) error {
	to, err := d.send.target(what.Path, "")
	if err != nil {
		return err
	}
	var buttons []keyboardButton
	for _, c := range choices {
		if c.Writes { // users answer it with a reply
			continue
		}
		sealed, ok := d.send.keys.seal(to.chat, kindChoice, nil, c.Data)
		if !ok || !txt.HasVisible(c.Label) {
			return core.Errorf(core.Invalid, "choice %q does not fit on a button", c.Label)
		}
		buttons = append(buttons, keyboardButton{Text: c.Label, CallbackData: sealed})
	}
	return d.send.send(ctx, parts, outgoing{
		addressed: addressed{to: to}, here: true, parts: []markup.Part{shortened(txt.Literal(what.Text))},
		what: what, number: 1, priority: 1, keyboard: keyboardRows{slices.Collect(slices.Chunk(buttons, 2))},
	})
}

// shortened returns a text as one message. A longer text ends with "…".
func shortened(text string) markup.Part {
	list := markup.Parts(text, markup.MaxText-2)
	switch len(list) {
	case 0:
		return markup.Part{Source: "…", HTML: "…"}
	case 1:
		return list[0]
	}
	return markup.Part{Source: list[0].Source + " …", HTML: list[0].HTML + " …"}
}

// Settle replaces a question by its outcome, without buttons.
func (d *Driver) Settle(ctx context.Context, m core.Sent) error {
	to, err := d.send.target(m.Path, "")
	if err != nil {
		return err
	}
	message := d.places.messageNumber(to.chat, m.ID)
	if message == 0 {
		return core.Errorf(core.Invalid, "%q is not a message", m.ID)
	}
	return explain(d.send.editTo(ctx, to, id(message), nil, shortened(txt.Literal(m.Text))))
}

// Whisper shows a text to the user who pressed, in a window that nobody else sees.
func (d *Driver) Whisper(ctx context.Context, press core.Message, text string) error {
	query, ok := strings.CutPrefix(press.ID, pressMark)
	if !ok {
		return core.Errorf(core.Invalid, "%q is not a button press", press.ID)
	}
	d.choices.Take(query)
	return explain(d.answerPress(ctx, query, text))
}

func (d *Driver) answerPress(ctx context.Context, query, text string) error {
	const maxWhisper = 200 // bytes; Telegram allows as many characters
	params := botapi.Params{"callback_query_id": query, "text": cut(text, maxWhisper), "show_alert": text != ""}
	return d.api.Do(ctx, &botapi.Request{Method: "answerCallbackQuery", Params: params, Repeatable: true})
}

// endPress tells Telegram that a press is handled. It waits for a Whisper if the press is a choice, whose buttons stay
// until Settle. Any other valid press removes the buttons.
func (d *Driver) endPress(ctx context.Context, q *press) {
	if q.choice && q.refused == "" {
		const whisperWait = 3 * time.Second
		if !loop.Sleep(ctx, whisperWait) {
			return
		}
		if _, ok := d.choices.Take(q.query); !ok {
			return
		}
	}
	if err := d.answerPress(ctx, q.query, q.refused); err != nil && ctx.Err() == nil {
		d.log.Debug("press not answered", "err", err)
	}
	if q.choice || q.refused != "" {
		return
	}
	params := botapi.Params{"message_id": q.message}
	r := &botapi.Request{Method: "editMessageReplyMarkup", Params: params, Chat: q.chat, Repeatable: true}
	if err := d.api.Do(ctx, r); err != nil && ctx.Err() == nil {
		d.log.Debug("buttons not removed", "chat", q.chat, "err", err)
	}
}
