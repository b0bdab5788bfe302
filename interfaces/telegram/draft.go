package telegram

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"sync/atomic"
	"time"

	"synthbot/core"
	"synthbot/core/command"
	"synthbot/core/draft"
	"synthbot/core/txt"
	"synthbot/interfaces/telegram/botapi"
	"synthbot/interfaces/telegram/markup"
)

// In private chats, drafts are Telegram's own, which disappear by themselves. Elsewhere, and if the server does not
// know those, a draft is a message that is edited until it is the answer. If the response to the request that sends
// such a message is lost, the message stays, because bots cannot search for messages.
const (
	draftKey     = "drafts"
	draftDelay   = 700 * time.Millisecond // an answer finished by then needs no draft
	draftLeft    = 5 * time.Minute        // then drafts of an earlier process are deleted
	draftSilence = 15 * time.Second       // while no text is shown for so long, the bot is shown as typing
	draftBytes   = 8 * markup.MaxText     // certainly hold the first message of a text

	// Pauses between two texts of a draft.
	draftPrivate = 1500 * time.Millisecond
	draftGroup   = 5 * time.Second
	draftUnpaced = 300 * time.Millisecond // if Config.Pace is off
)

type draftPlatform struct {
	d              *delivery
	noNativeDrafts atomic.Bool // the server does not know sendMessageDraft
}

func newDrafts(d *delivery, start func(func(context.Context)) bool) *draft.Drafts {
	p := &draftPlatform{d: d}
	key := draftKey
	if d.places.account != 0 { // each bot account can delete only its own messages
		key += "." + id(d.places.account)
	}
	return draft.New(draft.Options{
		Platform: p, State: d.opt.State, Key: key, Log: d.log, Start: start, First: draftDelay, Every: p.every,
		Left: draftLeft,
	})
}

// Draft implements core.Drafter. It shows an answer that is being written, as often as the rate limits allow.
func (d *Driver) Draft(p core.Path, text string) {
	s, err := chatKeyOf(d.opt.Name, p)
	switch {
	case err != nil || d.opt.Config.Stream == "off":
	case text == "":
		d.send.drafts.Withdraw(d.send.draftPlace(s))
	default:
		d.send.drafts.Show(d.send.draftPlace(s), text, false)
	}
}

func (d *delivery) draftPlace(to chatKey) string {
	to.chat = d.places.currentChat(to.chat)
	return d.path(to).String()
}

func (p *draftPlatform) chatOf(place string) chatKey {
	path, _ := core.ParsePath(place)
	s, _ := chatKeyOf(p.d.opt.Name, path)
	return s
}

func (p *draftPlatform) every(place string) time.Duration {
	switch {
	case p.d.opt.Config.Pace == "off":
		return draftUnpaced
	case p.chatOf(place).chat > 0:
		return draftPrivate
	}
	return draftGroup
}

// Enter implements draft.Platform.
func (p *draftPlatform) Enter(_ context.Context, place, _ string) (leave func(), ok bool) {
	return func() {}, p.d.api.TakeSpare(p.chatOf(place).chat)
}

// Fit implements draft.Platform. It returns the first message of a text.
func (p *draftPlatform) Fit(text string) string {
	list := markup.Parts(text[:min(len(text), draftBytes)], markup.MaxText)
	if len(list) == 0 || !txt.HasVisible(list[0].Source) {
		return ""
	}
	return list[0].Source
}

// Post implements draft.Platform. It shows a text as one of Telegram's own drafts, or else as a message.
func (p *draftPlatform) Post(ctx context.Context, post draft.Post) (string, error) {
	s := p.chatOf(post.Place)
	request := func(method string) *botapi.Request {
		return &botapi.Request{Method: method, Params: botapi.Params{"message_thread_id": s.thread}, Chat: s.chat}
	}
	if s.chat > 0 && p.d.opt.Config.Stream != "edit" && !p.noNativeDrafts.Load() {
		sum := fnv.New32a()
		_, _ = sum.Write([]byte(post.Nonce))
		own := request("sendMessageDraft")
		own.Params["draft_id"] = sum.Sum32()>>2 + 1
		err := p.showText(ctx, own, post.Text)
		switch {
		case botapi.IsCode(err, 404):
			p.noNativeDrafts.Store(true)
		case botapi.IsCode(err, 403):
			return "", err
		case !botapi.IsCode(err, 400):
			return "", nil // even if this text was not shown, the next one replaces it
		}
	}
	var m sentMessage
	message := request("sendMessage")
	message.Result = &m
	if err := p.showText(ctx, message, post.Text); err != nil {
		return "", err
	}
	if m.Number == 0 {
		return "", &botapi.NetError{Method: "sendMessage", Text: "the response has no message", Unknown: true}
	}
	p.d.places.noteSent(s, m.Number)
	return id(m.Number), nil
}

// Edit implements draft.Platform.
func (p *draftPlatform) Edit(ctx context.Context, place, message, text string) error {
	params := botapi.Params{"message_id": message}
	r := &botapi.Request{Method: "editMessageText", Params: params, Chat: p.chatOf(place).chat}
	return p.showText(ctx, r, text)
}

func (p *draftPlatform) showText(ctx context.Context, r *botapi.Request, text string) error {
	list := markup.Parts(text, markup.MaxText)
	if len(list) > 0 {
		r.Params["text"] = list[0].HTML
	}
	r.Params["parse_mode"] = botapi.HTML
	if !p.d.opt.Config.Previews && r.Method != "sendMessageDraft" {
		r.Params["link_preview_options"] = noPreview
	}
	err := p.d.api.Try(ctx, r)
	switch {
	case botapi.Says(err, "not modified"):
		return nil
	case err != nil:
		p.d.log.Debug("draft not shown", "chat", r.Chat, "err", err)
	}
	return err
}

// Delete implements draft.Platform.
func (p *draftPlatform) Delete(ctx context.Context, place, message string) error {
	params, chat := botapi.Params{"message_id": message}, p.chatOf(place).chat
	err := p.d.api.Do(ctx, &botapi.Request{Method: "deleteMessage", Params: params, Chat: chat, Repeatable: true})
	if botapi.IsCode(err, 400) && !botapi.Says(err, "TOPIC_CLOSED") { // there is no such message, or it is too old
		return nil
	}
	return err
}

// Outcome implements draft.Platform.
func (p *draftPlatform) Outcome(err error) draft.Outcome {
	var api *botapi.Error
	switch {
	case botapi.OutcomeUnknown(err):
		return draft.Unknown
	case errors.As(err, &api) && api.Code < 500 && api.Code != 429 && api.Code != 401:
		return draft.Refused
	}
	return draft.NotDone
}

// finishDraft turns the draft of a place into the message of a request, which is the part with this key. If done is
// false, the caller must send the message: there is no draft, it cannot become that message, or the caller is a chat
// command, which must not use the draft of a turn.
func (d *delivery) finishDraft(ctx context.Context, to chatKey, r *botapi.Request, p markup.Part, key string) (
	message string, done bool, err error) {
	if command.IsContext(ctx) {
		return "", false, nil
	}
	place := d.draftPlace(to)
	answer := draft.Answer{Key: key, Text: p.Source}
	if r.Params["reply_parameters"] == nil && r.Method == "sendMessage" {
		answer.Edit = func(ctx context.Context, message string) error {
			return d.editTo(ctx, to, message, r.Params["reply_markup"], p)
		}
	}
	d.drafts.Clear(ctx, place)
	message, done, err = d.drafts.Resume(ctx, place, answer)
	if !done {
		message, done, err = d.drafts.Finish(ctx, place, answer)
	}
	if err != nil {
		if botapi.OutcomeUnknown(err) {
			err = fmt.Errorf("%w: %w", core.ErrUnknownOutcome, err)
		}
		return "", done, explain(err)
	}
	n := number(message)
	if n != 0 {
		message = d.places.messageID(d.places.currentChat(to.chat), n)
	}
	return message, done, nil
}
