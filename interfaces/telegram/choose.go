package telegram

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"synthbot/core"
	"synthbot/core/txt"
	"synthbot/interfaces/telegram/botapi"
	"synthbot/interfaces/telegram/markup"
)

var _ core.Chooser = (*Driver)(nil)

// whisperWait is how long a pressed choice waits for a Whisper.
const whisperWait = 3 * time.Second

// rowChoices is how many choices a row has.
const rowChoices = 2

// Choose sends a question with a button for each choice.
func (d *Driver) Choose(ctx context.Context, parts core.Deliveries, what core.Sent, choices []core.Choice) error {
	to, err := d.send.target(core.Call{Path: what.Path}, "")
	if err != nil {
		return err
	}
	var buttons []keyboardButton
	for _, c := range choices {
		if c.Writes { // people reply
			continue
		}
		sealed, ok := d.send.keys.seal(to.key.chat, kindChoice, nil, c.Data)
		if !ok || !markup.HasVisible(c.Label) {
			return core.Errorf(core.Invalid, "choice %q cannot be made a button", c.Label)
		}
		buttons = append(buttons, keyboardButton{Text: c.Label, CallbackData: &sealed})
	}
	rows := slices.Collect(slices.Chunk(buttons, rowChoices))
	params := to.params()
	params["reply_markup"] = keyboardRows{rows}.json()
	p := shortened(txt.Literal(what.Text))
	return d.send.part(ctx, parts, 1, what, func(ctx context.Context, key string) (string, error) {
		r := botapi.Request{Method: "sendMessage", Params: params, Chat: to.key.chat, Rank: 1}
		return d.send.say(ctx, to, r, p, true, key)
	})
}

// shortened returns a text as one message, visibly shortened if necessary.
func shortened(text string) markup.Part {
	list := markup.Parts(text, markup.MaxText-2)
	switch len(list) {
	case 0:
		return markup.Part{Source: "…", HTML: "…"}
	case 1:
		return list[0]
	}
	source := list[0].Source + " …"
	return markup.Part{Source: source, HTML: list[0].HTML + " …"}
}

// Settle replaces a question by its outcome, without buttons.
func (d *Driver) Settle(ctx context.Context, m core.Sent) error {
	to, err := d.send.target(core.Call{Path: m.Path}, "")
	if err != nil {
		return err
	}
	message, err := number(m.ID)
	message = d.places.messageNumber(to.key.chat, message)
	if err != nil || message == 0 {
		return core.Errorf(core.Invalid, "%q is not a message", m.ID)
	}
	return explain(d.send.editTo(ctx, to, message, botapi.Params{}, shortened(txt.Literal(m.Text))))
}

// Whisper shows a text to the user who pressed, in a window that nobody else sees.
func (d *Driver) Whisper(ctx context.Context, press core.Message, text string) error {
	query, ok := strings.CutPrefix(press.ID, pressMark)
	if !ok {
		return core.Errorf(core.Invalid, "%q is not a button press", press.ID)
	}
	d.presses.answer(query)
	return explain(d.presses.reply(ctx, query, text))
}

const maxWhisper = 200 // bytes; the platform counts characters

func (p *presses) reply(ctx context.Context, query, text string) error {
	params := botapi.Params{"callback_query_id": query}
	params.AddNonEmpty("text", cut(text, maxWhisper))
	params.AddTrue("show_alert", text != "")
	_, err := p.api.Do(ctx, botapi.Request{Method: "answerCallbackQuery", Params: params, Again: true})
	return err
}

// presses knows which queries are not answered yet.
type presses struct {
	api     *botapi.Client
	log     *slog.Logger
	mu      sync.Mutex
	waiting map[string]chan struct{}
	used    map[[2]int64]string // the query that pressed a message's button first
}

// first reports whether a query is the first press of a message's buttons. The same
// query comes again if it could not be taken in.
func (p *presses) first(chat, message int64, query string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	at := [2]int64{chat, message}
	if was, ok := p.used[at]; ok {
		return was == query
	}
	room(p.used, maxPlaces)
	p.used[at] = query
	return true
}

// expect notes a query; the channel is closed when it is answered.
func (p *presses) expect(query string) <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	room(p.waiting, maxPlaces)
	c := make(chan struct{})
	p.waiting[query] = c
	return c
}

// answer takes over a query. It returns false if that was done before.
func (p *presses) answer(query string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	c, ok := p.waiting[query]
	if ok {
		delete(p.waiting, query)
		close(c)
	}
	return ok
}

// end tells the platform that a press is handled. A choice may get a Whisper first, and
// keeps its buttons until it is settled. Other buttons are removed by a valid press.
func (p *presses) end(ctx context.Context, q *press) {
	if q.choice && q.refused == "" {
		select {
		case <-q.answered:
		case <-ctx.Done():
		case <-time.After(whisperWait):
		}
		if !p.answer(q.query) || ctx.Err() != nil {
			return
		}
	}
	if err := p.reply(ctx, q.query, q.refused); err != nil && ctx.Err() == nil {
		p.log.Debug("press not answered", "err", err)
	}
	if q.choice || q.refused != "" {
		return
	}
	gone := botapi.Params{"message_id": id(q.message)}
	r := botapi.Request{Method: "editMessageReplyMarkup", Params: gone, Chat: q.chat, Again: true}
	if _, err := p.api.Do(ctx, r); err != nil && ctx.Err() == nil {
		p.log.Debug("buttons not removed", "chat", q.chat, "err", err)
	}
}
