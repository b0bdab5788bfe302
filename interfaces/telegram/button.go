package telegram

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"synthbot/core"
)

// A button's callback data has at most 64 bytes:
//
//	kind mac person ":" data
//
// kind is 'c' where data is that of a choice, and else 't': the button's own text is
// meant, and data is its position. ('d', of former versions, is read as 't'.) mac is
// 10 characters of base64url over the rest and the chat. person, in base 36, is the
// only one who may press, or several with commas between them; empty: everybody.
const (
	maxCallback = 64
	macSize     = 10

	kindChoice = 'c'
	kindText   = 't'

	pressMark = "press:" // before a query's id, as the id of an event
)

// signer makes and checks callback data.
type signer struct{ key []byte }

func newSigner(token string) *signer {
	mac := hmac.New(sha256.New, []byte(token))
	mac.Write([]byte("buttons"))
	return &signer{mac.Sum(nil)}
}

// seal returns the callback data of a button.
func (s *signer) seal(chat int64, kind byte, people []int64, data string) (string, bool) {
	who := make([]string, len(people))
	for i, person := range people {
		who[i] = strconv.FormatInt(person, 36)
	}
	body := strings.Join(who, ",") + ":" + data
	out := string(kind) + s.mac(chat, kind, body) + body
	return out, len(out) <= maxCallback
}

// open reads callback data; ok is false unless this bot sealed it for this chat.
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

// moved signs the buttons of a keyboard anew, for what a chat has become.
func (s *signer) moved(markup string, from, to int64) string {
	var k keyboardRows
	if json.Unmarshal([]byte(markup), &k) != nil {
		return markup
	}
	for _, row := range k.Rows {
		for i := range row {
			if row[i].CallbackData == nil {
				continue
			}
			if kind, people, data, ok := s.open(from, *row[i].CallbackData); ok {
				sealed, _ := s.seal(to, kind, people, data) // as long as it was
				row[i].CallbackData = &sealed
			}
		}
	}
	return k.json()
}

func (k keyboardRows) json() string {
	data, _ := json.Marshal(k)
	return string(data)
}

func (s *signer) mac(chat int64, kind byte, body string) string {
	mac := hmac.New(sha256.New, s.key)
	mac.Write([]byte(strconv.FormatInt(chat, 10) + " " + string(kind) + body))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))[:macSize]
}

// What users read whose press does nothing.
const (
	pressOld      = "This button does not work any more."
	pressStranger = "This button is for somebody else."
)

// press converts a press of a button. It counts if the bot signed the button, for this
// user.
func (c *converter) press(q *callback) converted {
	p := &press{query: q.ID}
	if q.ID == "" || q.Message == nil || q.Message.Chat.ID == 0 || q.From.ID == 0 {
		p.refused = pressOld
		return converted{press: p}
	}
	m := q.Message
	p.chat, p.message = m.Chat.ID, m.ID
	kind, only, data, ok := c.keys.open(m.Chat.ID, q.Data)
	if ok && kind != kindChoice {
		keys := m.keys()
		at := slices.IndexFunc(keys, func(b keyboardButton) bool {
			return b.CallbackData != nil && *b.CallbackData == q.Data
		})
		ok = at >= 0
		if ok {
			data = keys[at].Text
		}
	}
	switch {
	case !ok:
		p.refused = pressOld
	case len(only) > 0 && !slices.Contains(only, q.From.ID):
		p.refused = pressStranger
	}
	if p.refused != "" {
		return converted{press: p}
	}
	p.choice = kind == kindChoice
	if !p.choice && !c.presses.first(m.Chat.ID, m.ID, q.ID) {
		p.refused = pressOld // another button of the message, before they could be taken away
		return converted{press: p}
	}
	thread := m.Thread
	if !m.IsTopic {
		thread = c.places.thread(m.Chat.ID, m.ID)
	}
	e := core.Event{Kind: core.KindPress, Target: c.places.messageID(m.Chat.ID, m.ID), Data: cut(data, core.MaxQuote)}
	e.Message = core.Message{
		Path: place(c.name, m.Chat.ID, thread), ID: pressMark + cut(q.ID, 64), Author: person(&q.From),
		Time:    c.now().UTC(),
		Private: m.Chat.Type == "private", Locale: cut(q.From.LanguageCode, 35), Addressed: core.AddressedReply,
	}
	return converted{events: []core.Event{e}, press: p}
}
