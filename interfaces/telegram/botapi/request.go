package botapi

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v5"
	tgbotapi "github.com/go-telegram-bot-api/telegram-bot-api/v5"

	"synthbot/core"
	"synthbot/core/driver"
	"synthbot/core/loop"
)

// HTML is a parse_mode.
const HTML = tgbotapi.ModeHTML

// Params are the parameters of a call: strings, and values to encode as JSON. Zero values are left out.
type Params map[string]any

func (p Params) texts() tgbotapi.Params {
	texts := tgbotapi.Params{}
	for key, value := range p {
		text, ok := value.(string)
		switch {
		case value == nil || reflect.ValueOf(value).IsZero():
		case ok:
			texts[key] = text
		default:
			_ = texts.AddInterface(key, value)
		}
	}
	return texts
}

// File is a file of a call. One of Data, Path and Ref is set.
type File struct {
	Field string // the parameter
	Name  string // with Data
	Data  []byte
	Path  string // of a file on this machine
	Ref   string // an address, or the id of a file on Telegram
}

// Request is a call for Do or Try.
type Request struct {
	Method     string
	Params     Params
	Files      []File
	Chat       int64         // 0: none
	Priority   int           // requests with a higher one overtake others to the same chat
	Repeatable bool          // doing it twice is harmless
	Once       bool          // it is not repeated after a network or server error
	Fatal      []int         // repeat until it works or fails with one of these statuses; none: up to 7 times
	Limit      time.Duration // of one call; 0: Options.Timeout
	// Result points to a variable for the result; nil: the result is ignored. If the result has another type, that is
	// an error of a Repeatable request. Otherwise the variable is unchanged.
	Result any
	// Rewrite changes a failed request into one that may work, which is then tried. It returns false if there is
	// none. Optional.
	Rewrite func(r *Request, err error) bool
}

// Do makes the call of a request when the rate limits allow it and those before it in its chat have ended. It repeats
// a failed call if that may help.
func (c *Client) Do(ctx context.Context, r *Request) error {
	if r.Chat != 0 {
		if err := c.retarget(r, c.opt.Chat(r.Chat)); err != nil {
			return err
		}
		leave, err := c.pace.queue.Enter(ctx, r.Chat, r.Priority)
		if err != nil {
			return c.outOfTime(r, err)
		}
		defer leave()
	}
	const maxTries = 7
	failure, level := "call failed", slog.LevelDebug
	if r.Fatal != nil {
		failure, level = "Telegram cannot be reached", slog.LevelWarn
	}
	delay := newBackoff(500*time.Millisecond, 30*time.Second)
	for tries := 1; ; tries++ {
		if err := c.pace.wait(ctx, r.Chat, true); err != nil {
			return c.outOfTime(r, err)
		}
		err := c.Try(ctx, r)
		if err == nil {
			return nil
		}
		api := refusal(err)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case api.Code == 429:
			tries-- // the server did not process it
			until := time.Now().Add(c.pace.waitLeft(r.Chat))
			c.opt.Log.Warn("Telegram asked to wait", "method", r.Method, "chat", r.Chat, "until", until)
			if deadline, ok := ctx.Deadline(); ok && until.After(deadline) {
				return err
			}
			continue
		case api.Migrate != 0 && r.Chat != api.Migrate && tries < maxTries:
			if err := c.retarget(r, api.Migrate); err != nil {
				return err
			}
			continue
		case r.Rewrite != nil && r.Rewrite(r, err):
			tries = 0
			continue
		case r.Fatal != nil && !IsCode(err, r.Fatal...):
		case !r.Repeatable && OutcomeUnknown(err):
			return fmt.Errorf("%w: %w", core.ErrUnknownOutcome, err)
		case api.Code > 0 && api.Code < 500, r.Once, tries >= maxTries:
			return err
		}
		c.opt.Log.Log(ctx, level, failure, "method", r.Method, "chat", r.Chat, "attempt", tries, "err", err)
		if !loop.Sleep(ctx, delay.NextBackOff()) {
			return ctx.Err()
		}
	}
}

// outOfTime returns the error of a request whose deadline is before it may be made.
func (c *Client) outOfTime(r *Request, err error) error {
	if !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	const text = "no time is left to wait as Telegram asked"
	return &Error{Method: r.Method, Code: 429, Text: text, After: c.pace.waitLeft(r.Chat)}
}

// retarget changes the chat of a request, after a group became a supergroup. Ids of messages and topics are not valid
// there, and buttons are signed again.
func (c *Client) retarget(r *Request, chat int64) error {
	if chat == r.Chat {
		return nil
	}
	if r.Params["message_id"] != nil {
		return &Error{Method: r.Method, Code: 400, Text: "message to edit not found: its group became a supergroup"}
	}
	delete(r.Params, "message_thread_id")
	delete(r.Params, "reply_parameters")
	if r.Params["reply_markup"] != nil {
		r.Params["reply_markup"] = c.opt.Sign(r.Params["reply_markup"], r.Chat, chat)
	}
	r.Chat = chat
	return nil
}

// Try makes the call of a request once, without waiting. It handles what concerns more than the request: a refused
// token, a group that became a supergroup, and a wait that the server asks for.
func (c *Client) Try(ctx context.Context, r *Request) error {
	err := c.call(ctx, r)
	if err == nil {
		return nil
	}
	api := refusal(err)
	if RefusesBot(err) {
		c.opt.Revoked(err)
	}
	if api.Migrate != 0 && api.Migrate != r.Chat {
		c.opt.Migrated(ctx, r.Chat, api.Migrate)
	}
	if api.Code == 429 {
		c.pace.block(r.Chat, api.After)
		c.saveWaits(ctx)
	}
	return err
}

// AwaitChat blocks until Telegram answers and no longer asks to wait with messages to a chat.
func (c *Client) AwaitChat(ctx context.Context, chat int64) error {
	if err := c.pace.wait(ctx, chat, false); err != nil {
		return c.outOfTime(&Request{Method: "sendMessage", Chat: chat}, err)
	}
	return c.Do(ctx, &Request{Method: "getMe", Repeatable: true})
}

// Close closes idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

const waitsKey = "waits"

// saveWaits stores for the next process which chats must wait.
func (c *Client) saveWaits(ctx context.Context) {
	const minSaved = 3 * time.Second // a shorter wait is over after a restart
	waits := map[int64]time.Time{}
	c.pace.mu.Lock()
	for chat, l := range c.pace.lanes {
		if time.Until(l.until) >= minSaved {
			waits[chat] = l.until
		}
	}
	c.pace.mu.Unlock()
	if len(waits) == 0 {
		return
	}
	if err := driver.Save(ctx, c.opt.State, waitsKey, waits); err != nil {
		c.opt.Log.Warn("waits not saved", "err", err)
	}
}

// loadWaits loads the waits of an earlier process. It ignores those of more than a day, which come from a wrong clock.
func (c *Client) loadWaits(ctx context.Context) {
	waits := map[int64]time.Time{}
	if err := driver.Load(ctx, c.opt.State, waitsKey, &waits); err != nil {
		c.opt.Log.Warn("waits not read", "err", err)
	}
	c.pace.mu.Lock()
	defer c.pace.mu.Unlock()
	for chat, until := range waits {
		left := time.Until(until)
		if left > 0 && left <= 24*time.Hour {
			c.pace.lane(chat).until = until
		}
	}
}

func newBackoff(first, most time.Duration) *backoff.ExponentialBackOff {
	b := backoff.NewExponentialBackOff()
	b.InitialInterval, b.MaxInterval = first, most
	b.Reset()
	return b
}

// Error is a call that the server refused.
type Error struct {
	Method  string
	Code    int
	Text    string
	After   time.Duration // with 429
	Migrate int64         // the supergroup that the group became
}

func (e *Error) Error() string { return fmt.Sprintf("%s: %d %s", e.Method, e.Code, e.Text) }

// NetError is a call without a response.
type NetError struct {
	Method  string
	Text    string
	Unknown bool  // the server may have carried it out
	Cause   error // of the context, if that ended the call
}

func (e *NetError) Error() string { return e.Method + ": " + e.Text }

// Unwrap returns Cause. The network error is not kept, because it may contain the address, and so the token.
func (e *NetError) Unwrap() error { return e.Cause }

// IsCode reports whether the server answered with one of these statuses.
func IsCode(err error, codes ...int) bool { return slices.Contains(codes, refusal(err).Code) }

// refusal returns the *Error in err, or an empty one if there is none.
func refusal(err error) *Error {
	e := &Error{}
	_ = errors.As(err, &e)
	return e
}

// OutcomeUnknown reports whether a call that failed may have been carried out. It was not if a proxy could not reach
// Telegram.
func OutcomeUnknown(err error) bool {
	if network, ok := errors.AsType[*NetError](err); ok {
		return network.Unknown
	}
	e := refusal(err)
	return e.Code >= 500 && !e.Down()
}

// Down reports whether a proxy could not reach Telegram.
func (e *Error) Down() bool { return e.Code == 502 || e.Code == 503 }

// Says reports whether the server refused a call with a text that contains one of the parts, ignoring case.
func Says(err error, parts ...string) bool {
	text := strings.ToLower(refusal(err).Text)
	return slices.ContainsFunc(parts, func(p string) bool { return strings.Contains(text, strings.ToLower(p)) })
}

// RefusesBot reports whether the server refused the token. 404 means a wrong token or, except for methods that every
// server has, an unknown method.
func RefusesBot(err error) bool {
	e := refusal(err)
	return e.Code == 401 || e.Code == 404 && (e.Method == "getMe" || e.Method == "sendMessage")
}
