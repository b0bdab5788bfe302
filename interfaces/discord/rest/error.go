package rest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"synthbot/core"
	"synthbot/core/txt"
)

// Error is an error response to a request.
type Error struct {
	Route  string
	Status int
	Code   int    // Discord's error code; 0: none
	Text   string // Discord's message
	After  time.Duration
	Global bool
}

func (e *Error) Error() string {
	return fmt.Sprintf("%s: HTTP %d, code %d: %s", e.Route, e.Status, e.Code, e.Text)
}

// tokenExpired is the error code if an interaction's token has expired. The status is the
// same as for an invalid bot token.
const tokenExpired = 50027

// RefusesBot reports whether the bot's own token is refused.
func (e *Error) RefusesBot() bool { return e.Status == 401 && e.Code != tokenExpired }

// Refusal returns the *Error that err wraps; one with Status 0 if there is none.
func Refusal(err error) *Error {
	api, _ := errors.AsType[*Error](err)
	return cmp.Or(api, &Error{})
}

// NotFound reports whether a request failed because its object does not exist.
func NotFound(err error) bool { return Refusal(err).Status == 404 }

// With the first two of these errors, nothing was sent.
var (
	ErrDial          = errors.New("not connected")
	errWait          = errors.New("waiting for the rate limit ended")
	errMayHaveWorked = errors.New("an earlier attempt may have worked")
)

// markUnknown marks the error of the last attempt if the outcome of an earlier one, made at since, is unknown.
func markUnknown(err error, since time.Time) error {
	if err == nil || since.IsZero() || OutcomeUnknown(err) {
		return err
	}
	return fmt.Errorf("%w: %w", errMayHaveWorked, err)
}

// OutcomeUnknown reports whether a request may have worked although it returned err.
func OutcomeUnknown(err error) bool {
	status := Refusal(err).Status
	switch {
	case err == nil:
		return false
	case errors.Is(err, errMayHaveWorked):
		return true
	case status > 0:
		return status >= 500
	}
	return !errors.Is(err, ErrDial) && !errors.Is(err, errWait)
}

// Refused reports whether Discord refused a request for good.
func Refused(err error) bool {
	status := Refusal(err).Status
	return status > 0 && status < 500 && status != 429 && !OutcomeUnknown(err)
}

// markAway marks errors that any request would get now, because Discord refuses the bot or cannot be reached.
func markAway(q *Request, err error) error {
	api := Refusal(err)
	switch {
	case q.Fast || api.Status == 0 && !errors.Is(err, ErrDial):
		return err
	case api.Status == 0, api.RefusesBot(), api.Status == 502, api.Status == 503:
		return fmt.Errorf("%w: %w", core.ErrAway, err)
	}
	return err
}

// refusal reads an error response. Its body may be an HTML page.
func refusal(route string, resp *http.Response) *Error {
	e := &Error{Route: route, Status: resp.StatusCode}
	text, _ := io.ReadAll(io.LimitReader(resp.Body, maxRefusal))
	var body struct {
		Code    int             `json:"code"`
		Message string          `json:"message"`
		After   float64         `json:"retry_after"`
		Global  bool            `json:"global"`
		Errors  json.RawMessage `json:"errors"`
	}
	if err := json.Unmarshal(text, &body); err != nil {
		// A proxy in front of the API answers. Its rate limit is for all requests.
		e.Text, e.Global = "no JSON", resp.StatusCode == 429
	} else {
		e.Code, e.Global, e.After = body.Code, body.Global, Seconds(body.After)
		e.Text = txt.ClipBytes(strings.TrimSpace(body.Message+" "+string(body.Errors)), 300)
	}
	// The header has only whole seconds, so the body's value is preferred.
	if s, err := strconv.ParseFloat(resp.Header.Get("Retry-After"), 64); err == nil && e.After == 0 {
		e.After = Seconds(s)
	}
	if e.Status == 429 && e.After <= 0 {
		e.After = time.Second
	}
	if resp.Header.Get("X-RateLimit-Global") == "true" {
		e.Global = true
	}
	return e
}

// Seconds converts a duration that a server sent, which may be any number, to one of at most a day.
func Seconds(s float64) time.Duration {
	if !(s > 0) {
		return 0
	}
	return time.Duration(min(s, 24*60*60) * float64(time.Second))
}

// FailureOrNil is Failure, but returns nil if err is nil.
func FailureOrNil(what string, err error) error {
	if err == nil {
		return nil
	}
	return Failure(what, err)
}

// Failure describes a request's error for users and the model. what is what was tried, such as "reacting".
func Failure(what string, err error) *core.Error {
	e := &core.Error{Kind: core.Temporary, Text: what + " did not work; it may work later", Err: err}
	api := Refusal(err)
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		e.Text = what + " took too long"
	case OutcomeUnknown(err):
	case api.Status == 429:
		e.Kind, e.After, e.Text = core.Occupied, api.After, what+" must wait because of Discord's rate limit"
	case api.RefusesBot():
		e.Kind, e.Text = core.Broken, what+" is not possible: Discord refuses the bot's token"
	case api.Status == 403:
		e.Kind, e.Text = core.Broken, what+" is something that the bot may not do here"
	case api.Status == 404:
		e.Kind, e.Text = core.Broken, what+" is not possible: it no longer exists"
	case api.Status == 400:
		e.Kind, e.Text = core.Invalid, what+" was refused by Discord: "+api.Text
	}
	return e
}
