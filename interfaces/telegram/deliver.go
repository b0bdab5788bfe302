package telegram

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/cenkalti/backoff/v5"
	tgbotapi "github.com/go-telegram-bot-api/telegram-bot-api/v5"

	"synthbot/core"
)

// maxTries is how often a call is tried that fails.
const maxTries = 7

// request is a call that is paced, kept in order within its chat, and repeated.
type request struct {
	method string
	params tgbotapi.Params
	files  []tgbotapi.RequestFile
	chat   int64 // 0: of no chat
	rank   int   // urgent ones overtake what waits for the same chat
	again  bool  // doing it twice is doing it once
	once   bool  // it is not repeated unless nothing can have come of it
}

// do carries a request out. It returns the server's result, or an error that
// more tries would not mend.
func (d *Driver) do(ctx context.Context, r request) (json.RawMessage, error) {
	if r.chat != 0 {
		chat := d.places.now(r.chat)
		if err := d.into(&r, chat); err != nil {
			return nil, err
		}
		r.chat = chat
		if err := d.pace.enter(ctx, r.chat, r.rank); err != nil {
			return nil, d.overdue(&r, err)
		}
		defer d.pace.leave(r.chat)
	}
	t := attempts{d: d, r: &r, delay: newBackoff(500*time.Millisecond, 30*time.Second)}
	for {
		if err := d.pace.wait(ctx, r.chat); err != nil {
			return nil, d.overdue(&r, err)
		}
		result, err := d.once(ctx, &r)
		if err == nil {
			return result, nil
		}
		if err = t.after(ctx, err); err != nil {
			return nil, err
		}
	}
}

// overdue is the error of a request whose time was over before its turn came: the
// platform wanted quiet for longer.
func (d *Driver) overdue(r *request, err error) error {
	if !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return &apiError{method: r.method, code: 429, text: "no time is left to wait as the platform asked", after: d.pace.left(r.chat)}
}

// into points the request to a chat. Where that is not the one it was made for,
// a group became a supergroup: numbers of messages mean others there, and buttons
// are signed for it.
func (d *Driver) into(r *request, chat int64) error {
	if chat != r.chat {
		if r.params["message_id"] != "" {
			return &apiError{method: r.method, code: 400, text: "message to edit not found: its group became a supergroup"}
		}
		delete(r.params, "message_thread_id")
		delete(r.params, "reply_parameters")
		if markup := r.params["reply_markup"]; markup != "" {
			r.params["reply_markup"] = d.keys.moved(markup, r.chat, chat)
		}
	}
	r.params["chat_id"] = strconv.FormatInt(chat, 10)
	return nil
}

// once makes the call one time.
func (d *Driver) once(ctx context.Context, r *request) (json.RawMessage, error) {
	limit := d.opt.Config.Timeout
	if len(r.files) > 0 {
		limit *= 10
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	raw, err := d.api.call(ctx, r.method, r.params, r.files...)
	if disowned(err) {
		d.unauthorised(err)
	}
	return raw, err
}

// disowned reports whether the server does not know the bot: a token that is none
// is not found, and so is a method that an older server does not know.
func disowned(err error) bool {
	var e *apiError
	return errors.As(err, &e) && (e.code == 401 || e.code == 404 && (e.method == "getMe" || e.method == "sendMessage"))
}

// attempts counts the tries of one request.
type attempts struct {
	d     *Driver
	r     *request
	delay *backoff.ExponentialBackOff
	tries int
}

// after waits as long as a failure demands; an error ends the request.
func (t *attempts) after(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var api *apiError
	errors.As(err, &api)
	switch {
	case api != nil && api.code == 429:
		return t.limited(ctx, api)
	case api != nil && api.migrate != 0 && t.r.chat != api.migrate:
		t.d.migrated(ctx, t.r.chat, api.migrate)
		if err := t.d.into(t.r, api.migrate); err != nil {
			return err
		}
		return t.count(err)
	case !t.r.again && unsure(err):
		return fmt.Errorf("%w: %w", core.ErrUnknownOutcome, err)
	case api != nil && api.code < 500, t.r.once:
		return err
	}
	if err := t.count(err); err != nil {
		return err
	}
	t.d.log.Debug("call failed", "method", t.r.method, "chat", t.r.chat, "try", t.tries, "err", err)
	return sleep(ctx, t.delay.NextBackOff())
}

// unsure reports whether a call that failed may have been carried out all the same.
// What stands before the platform and cannot reach it passes nothing on.
func unsure(err error) bool {
	var api *apiError
	var network *netError
	if errors.As(err, &network) {
		return network.unknown
	}
	return errors.As(err, &api) && api.code >= 500 && !api.down()
}

// down reports whether nothing reaches the platform now.
func (e *apiError) down() bool { return e.code == 502 || e.code == 503 }

func (t *attempts) count(err error) error {
	if t.tries++; t.tries >= maxTries {
		return err
	}
	return nil
}

// limited obeys a 429, if the caller has that much time.
func (t *attempts) limited(ctx context.Context, api *apiError) error {
	until := t.d.pace.block(t.r.chat, api.after)
	t.d.log.Warn("the platform asked to wait", "method", t.r.method, "chat", t.r.chat, "until", until)
	t.d.saveWaits(ctx)
	if deadline, ok := ctx.Deadline(); ok && until.After(deadline) {
		return api
	}
	return nil // pacer.wait waits
}

const waitsKey = "waits"

// minSaved is the shortest wait that is worth remembering over a restart.
const minSaved = 3 * time.Second

func (d *Driver) saveWaits(ctx context.Context) {
	waits := d.pace.waits()
	for chat, until := range waits {
		if time.Until(until) < minSaved {
			delete(waits, chat)
		}
	}
	if len(waits) == 0 {
		return
	}
	data, err := json.Marshal(waits)
	if err == nil {
		err = d.opt.State.Put(ctx, waitsKey, data)
	}
	if err != nil {
		d.log.Warn("waits not saved", "err", err)
	}
}

func (d *Driver) loadWaits(ctx context.Context) {
	data, err := d.opt.State.Get(ctx, waitsKey)
	waits := map[int64]time.Time{}
	if data != nil {
		err = json.Unmarshal(data, &waits)
	}
	if err != nil {
		d.log.Warn("waits not read", "err", err)
	}
	d.pace.restore(waits)
}

func newBackoff(first, most time.Duration) *backoff.ExponentialBackOff {
	b := backoff.NewExponentialBackOff()
	b.InitialInterval, b.MaxInterval = first, most
	b.Reset()
	return b
}

// explain makes a call's failure an action's error, with words for people.
func explain(err error) error {
	var api *apiError
	var network *netError
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded) && !errors.As(err, &network):
		return err
	case errors.Is(err, core.ErrUnknownOutcome):
		return &core.Error{Kind: core.Temporary, Text: "Telegram did not say whether it was done", Err: err}
	case errors.As(err, &network):
		if !network.unknown { // there is no way to the platform now, for nothing of what waits
			err = fmt.Errorf("%w: %w", core.ErrAway, err)
		}
		return &core.Error{Kind: core.Temporary, Text: "Telegram cannot be reached", Err: err}
	case !errors.As(err, &api):
		return err
	}
	e := &core.Error{Kind: core.Broken, Text: "Telegram refused it", Err: err}
	switch {
	case api.code == 429:
		e.Kind, e.After, e.Text = core.Temporary, api.after, "Telegram asks to wait"
		e.Err = fmt.Errorf("%w: %w", core.ErrAway, err)
	case api.code >= 500:
		e.Kind, e.Text = core.Temporary, "Telegram has trouble"
		if api.down() {
			e.Err = fmt.Errorf("%w: %w", core.ErrAway, err)
		}
	case disowned(err):
		e.Text, e.Err = "Telegram does not know this bot any more", fmt.Errorf("%w: %w", core.ErrAway, err)
	case api.code == 403:
		e.Text = "the bot may not write there: it was blocked or removed"
	case api.says("chat not found"):
		e.Kind, e.Text = core.Invalid, "there is no such chat, or the bot has never been there"
	case aboutFile(err):
		e.Kind, e.Text = core.Invalid, "Telegram does not take that file: it is not there, too large, or no such kind of file"
	case api.says("thread not found", "TOPIC_DELETED"):
		e.Text = "that topic is gone"
	case api.says("TOPIC_CLOSED"):
		e.Text = "that topic is closed"
	case api.says("not found", "can't be edited", "can't be deleted"):
		e.Kind, e.Text = core.Invalid, "that message is not there, or is not the bot's to change"
	case api.says("not enough rights", "CHAT_WRITE_FORBIDDEN", "have no rights"):
		e.Text = "the bot lacks the right to do that there"
	}
	return e
}
