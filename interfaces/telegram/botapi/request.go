package botapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"synthbot/core/driver"

	"github.com/cenkalti/backoff/v5"

	"synthbot/core"
)

// maxTries is how often a failing call is tried.
const maxTries = 7

// Request is a call that is paced, kept in order within its chat, and repeated.
type Request struct {
	Method string
	Params Params
	Files  []File
	Chat   int64 // 0: of no chat
	Rank   int   // higher ones overtake what waits for the same chat
	Again  bool  // doing it twice does no harm
	Once   bool  // it is repeated only if certainly nothing was done
}

// Do carries a request out. It returns the server's result, or an error that more tries
// would not change.
func (c *Client) Do(ctx context.Context, r Request) (json.RawMessage, error) {
	if r.Chat != 0 {
		chat := c.opt.Hooks.Chat(r.Chat)
		if err := c.into(&r, chat); err != nil {
			return nil, err
		}
		r.Chat = chat
		leave, err := c.pace.queue.Enter(ctx, r.Chat, r.Rank)
		if err != nil {
			return nil, c.overdue(&r, err)
		}
		defer leave()
	}
	t := attempts{c: c, r: &r, delay: NewBackoff(500*time.Millisecond, 30*time.Second)}
	for {
		if err := c.pace.wait(ctx, r.Chat); err != nil {
			return nil, c.overdue(&r, err)
		}
		result, err := c.Try(ctx, &r)
		if err == nil {
			return result, nil
		}
		if err = t.after(ctx, err); err != nil {
			return nil, err
		}
	}
}

// overdue is the error of a request whose time ended before its turn came.
func (c *Client) overdue(r *Request, err error) error {
	if !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	const text = "no time is left to wait as the platform asked"
	return &Error{Method: r.Method, Code: 429, Text: text, After: c.pace.left(r.Chat)}
}

// into points a request to a chat. If that is another one than before, a group became a
// supergroup: numbers of messages mean others there, and buttons are signed again.
func (c *Client) into(r *Request, chat int64) error {
	if chat != r.Chat {
		if r.Params["message_id"] != "" {
			return &Error{Method: r.Method, Code: 400, Text: "message to edit not found: its group became a supergroup"}
		}
		delete(r.Params, "message_thread_id")
		delete(r.Params, "reply_parameters")
		markup := r.Params["reply_markup"]
		if markup != "" {
			r.Params["reply_markup"] = c.opt.Hooks.Sign(markup, r.Chat, chat)
		}
	}
	r.Params["chat_id"] = strconv.FormatInt(chat, 10)
	return nil
}

// Try makes the call of a request one time.
func (c *Client) Try(ctx context.Context, r *Request) (json.RawMessage, error) {
	limit := c.opt.Timeout
	if len(r.Files) > 0 {
		limit *= 10
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	raw, err := c.Call(ctx, r.Method, r.Params, r.Files...)
	if RefusesBot(err) {
		c.opt.Hooks.Revoked(err)
	}
	return raw, err
}

// attempts counts the tries of one request.
type attempts struct {
	c     *Client
	r     *Request
	delay *backoff.ExponentialBackOff
	tries int
}

// after waits as long as a failure demands. An error ends the request.
func (t *attempts) after(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var api *Error
	errors.As(err, &api)
	switch {
	case api != nil && api.Code == 429:
		return t.limited(ctx, api)
	case api != nil && api.Migrate != 0 && t.r.Chat != api.Migrate:
		t.c.opt.Hooks.Migrated(ctx, t.r.Chat, api.Migrate)
		if err := t.c.into(t.r, api.Migrate); err != nil {
			return err
		}
		return t.count(err)
	case !t.r.Again && OutcomeUnknown(err):
		return fmt.Errorf("%w: %w", core.ErrUnknownOutcome, err)
	case api != nil && api.Code < 500, t.r.Once:
		return err
	}
	if err := t.count(err); err != nil {
		return err
	}
	t.c.opt.Log.Debug("call failed", "method", t.r.Method, "chat", t.r.Chat, "attempt", t.tries, "err", err)
	driver.Sleep(ctx, t.delay.NextBackOff())
	return ctx.Err()
}

func (t *attempts) count(err error) error {
	if t.tries++; t.tries >= maxTries {
		return err
	}
	return nil
}

// limited obeys a 429, if the caller has that much time.
func (t *attempts) limited(ctx context.Context, api *Error) error {
	until := t.c.pace.block(t.r.Chat, api.After)
	t.c.opt.Log.Warn("the platform asked to wait", "method", t.r.Method, "chat", t.r.Chat, "until", until)
	t.c.saveWaits(ctx)
	if deadline, ok := ctx.Deadline(); ok && until.After(deadline) {
		return api
	}
	return nil // pacer.wait waits
}

// Reaches waits until the platform answers and takes messages to a chat.
func (c *Client) Reaches(ctx context.Context, chat int64) error {
	if err := c.pace.open(ctx, chat); err != nil {
		return c.overdue(&Request{Method: "sendMessage", Chat: chat}, err)
	}
	_, err := c.Do(ctx, Request{Method: "getMe", Params: Params{}, Again: true})
	return err
}

// Close closes connections that are idle.
func (c *Client) Close() { c.http.CloseIdleConnections() }

const waitsKey = "waits"

// minSaved is the shortest wait that is kept over a restart.
const minSaved = 3 * time.Second

func (c *Client) saveWaits(ctx context.Context) {
	waits := c.pace.waits()
	for chat, until := range waits {
		if time.Until(until) < minSaved {
			delete(waits, chat)
		}
	}
	if len(waits) == 0 {
		return
	}
	if err := driver.Save(ctx, c.opt.State, waitsKey, waits); err != nil {
		c.opt.Log.Warn("waits not saved", "err", err)
	}
}

func (c *Client) loadWaits(ctx context.Context) {
	waits := map[int64]time.Time{}
	if err := driver.Load(ctx, c.opt.State, waitsKey, &waits); err != nil {
		c.opt.Log.Warn("waits not read", "err", err)
	}
	c.pace.restore(waits)
}

// NewBackoff returns growing pauses between two tries.
func NewBackoff(first, most time.Duration) *backoff.ExponentialBackOff {
	b := backoff.NewExponentialBackOff()
	b.InitialInterval, b.MaxInterval = first, most
	b.Reset()
	return b
}
