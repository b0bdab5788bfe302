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
)

// HTML is the parse_mode of texts in HTML.
const HTML = tgbotapi.ModeHTML

// Params are the parameters of a call: texts, and what JSON can express. Empty texts, 0,
// false and nil are left out.
type Params map[string]any

// texts are the parameters as the library takes them.
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

// File is a file of a call: its content, a file on this machine, or what the platform
// finds it by.
type File struct {
	Field string
	Name  string // with Data
	Data  []byte
	Path  string
	Ref   string // an address or the id of a file
}

// maxTries is how often a failing call is tried.
const maxTries = 7

// Request is a call that is paced, kept in order within its chat, and repeated.
type Request struct {
	Method     string
	Params     Params
	Files      []File
	Chat       int64         // 0: of no chat
	Priority   int           // higher ones overtake what waits for the same chat
	Repeatable bool          // doing it twice does no harm
	Once       bool          // it is repeated only if certainly nothing was done
	Fatal      []int         // it is repeated until it works or fails with one of these statuses; none: a few times
	Limit      time.Duration // of one call; 0: Options.Timeout
	// Result is a pointer, what the result is decoded into. One of another type is an error with Again, and else
	// leaves it as it is. Nil: the result is not read.
	Result any
	// Other changes a request that failed into another one that may work, which is then made in its
	// place. It returns false if there is none. Optional.
	Rewrite func(r *Request, err error) bool
}

// Do carries a request out. Its error is one that more tries would not change.
func (c *Client) Do(ctx context.Context, r *Request) error {
	if r.Chat != 0 {
		if err := c.retarget(r, c.opt.Hooks.Chat(r.Chat)); err != nil {
			return err
		}
		leave, err := c.pace.queue.Enter(ctx, r.Chat, r.Priority)
		if err != nil {
			return c.outOfTime(r, err)
		}
		defer leave()
	}
	failure, level := "call failed", slog.LevelDebug
	if r.Fatal != nil {
		failure, level = "the platform cannot be reached", slog.LevelWarn
	}
	delay := newBackoff(500*time.Millisecond, 30*time.Second)
	for tries := 1; ; tries++ {
		if err := c.pace.wait(ctx, r.Chat, true); err != nil {
			return c.outOfTime(r, err)
		}
		err := c.call(ctx, r)
		if err == nil {
			return nil
		}
		c.noteRefusal(ctx, r, err)
		api := refusal(err)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case api.Code == 429:
			tries-- // it was not looked at
			until := time.Now().Add(c.pace.waitLeft(r.Chat))
			c.opt.Log.Warn("the platform asked to wait", "method", r.Method, "chat", r.Chat, "until", until)
			if deadline, ok := ctx.Deadline(); ok && until.After(deadline) {
				return err
			}
			continue
		case api.Migrate != 0 && r.Chat != api.Migrate && tries < maxTries:
			c.opt.Hooks.Migrated(ctx, r.Chat, api.Migrate)
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
		if !driver.Sleep(ctx, delay.NextBackOff()) {
			return ctx.Err()
		}
	}
}

// outOfTime is the error of a request whose time ended before its turn came.
func (c *Client) outOfTime(r *Request, err error) error {
	if !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	const text = "no time is left to wait as the platform asked"
	return &Error{Method: r.Method, Code: 429, Text: text, After: c.pace.waitLeft(r.Chat)}
}

// retarget points a request to a chat. If that is another one than before, a group became a
// supergroup: numbers of messages mean others there, and buttons are signed again.
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
		r.Params["reply_markup"] = c.opt.Hooks.Sign(r.Params["reply_markup"], r.Chat, chat)
	}
	r.Chat = chat
	return nil
}

// Try makes the call of a request one time, and does not wait before it.
func (c *Client) Try(ctx context.Context, r *Request) error {
	err := c.call(ctx, r)
	c.noteRefusal(ctx, r, err)
	return err
}

// noteRefusal takes note of a refusal that is about more than its request. If the server wants to be
// left alone, further calls wait.
func (c *Client) noteRefusal(ctx context.Context, r *Request, err error) {
	if RefusesBot(err) {
		c.opt.Hooks.Revoked(err)
	}
	if IsCode(err, 429) {
		c.pace.block(r.Chat, refusal(err).After)
		c.saveWaits(ctx)
	}
}

// AwaitChat waits until the platform answers and takes messages to a chat.
func (c *Client) AwaitChat(ctx context.Context, chat int64) error {
	if err := c.pace.wait(ctx, chat, false); err != nil {
		return c.outOfTime(&Request{Method: "sendMessage", Chat: chat}, err)
	}
	return c.Do(ctx, &Request{Method: "getMe", Repeatable: true})
}

// Close closes connections that are idle.
func (c *Client) Close() { c.http.CloseIdleConnections() }

const waitsKey = "waits"

// minSaved is the shortest wait that is kept over a restart.
const minSaved = 3 * time.Second

// saveWaits keeps for the next process which chats must wait.
func (c *Client) saveWaits(ctx context.Context) {
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

// loadWaits takes over the waits of an earlier process. One that is longer than the platform
// ever asks for comes from a wrong clock.
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

// newBackoff returns growing pauses between two tries.
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

// NetError is a call without an answer.
type NetError struct {
	Method  string
	Text    string
	Unknown bool  // the server may have done it
	Cause   error // the context's, where that ended it
}

func (e *NetError) Error() string { return e.Method + ": " + e.Text }

// Unwrap returns the context's error. The network's own error is not kept, since it may
// hold the address, and so the token.
func (e *NetError) Unwrap() error { return e.Cause }

// IsCode reports whether the server answered with one of these statuses.
func IsCode(err error, codes ...int) bool { return slices.Contains(codes, refusal(err).Code) }

// refusal is the server's refusal; the zero value if err is none.
func refusal(err error) *Error {
	e := &Error{}
	_ = errors.As(err, &e)
	return e
}

// OutcomeUnknown reports whether a call that failed may have been carried out.
// A proxy that cannot reach the platform passes nothing on.
func OutcomeUnknown(err error) bool {
	if network, ok := errors.AsType[*NetError](err); ok {
		return network.Unknown
	}
	e := refusal(err)
	return e.Code >= 500 && !e.Down()
}

// Down reports whether nothing reaches the platform at the moment.
func (e *Error) Down() bool { return e.Code == 502 || e.Code == 503 }

// Says reports whether the server refused a call with words that hold one of these,
// in any case.
func Says(err error, parts ...string) bool {
	text := strings.ToLower(refusal(err).Text)
	return slices.ContainsFunc(parts, func(p string) bool { return strings.Contains(text, strings.ToLower(p)) })
}

// RefusesBot reports whether the server does not know the bot. A wrong token is not
// found, and so is a method that an older server does not know.
func RefusesBot(err error) bool {
	e := refusal(err)
	return e.Code == 401 || e.Code == 404 && (e.Method == "getMe" || e.Method == "sendMessage")
}
