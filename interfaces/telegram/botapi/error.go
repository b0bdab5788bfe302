package botapi

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Error is a call that the server refused.
type Error struct {
	Method  string
	Code    int
	Text    string
	After   time.Duration // with 429
	Migrate int64         // the supergroup that the group became
}

func (e *Error) Error() string { return fmt.Sprintf("%s: %d %s", e.Method, e.Code, e.Text) }

// Says reports whether the server's words hold one of these, in any case.
func (e *Error) Says(parts ...string) bool {
	text := strings.ToLower(e.Text)
	for _, p := range parts {
		if strings.Contains(text, strings.ToLower(p)) {
			return true
		}
	}
	return false
}

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
	var network *NetError
	if errors.As(err, &network) {
		return network.Unknown
	}
	e := refusal(err)
	return e.Code >= 500 && !e.Down()
}

// Down reports whether nothing reaches the platform at the moment.
func (e *Error) Down() bool { return e.Code == 502 || e.Code == 503 }

// Says reports whether the server refused a call with words that hold one of these.
func Says(err error, parts ...string) bool { return refusal(err).Says(parts...) }

// RetryAfter is how long the server wants to be left alone; 0 unless it said so.
func RetryAfter(err error) time.Duration {
	if !IsCode(err, 429) {
		return 0
	}
	return max(refusal(err).After, defaultWait)
}

// RefusesBot reports whether the server does not know the bot. A wrong token is not
// found, and so is a method that an older server does not know.
func RefusesBot(err error) bool {
	e := refusal(err)
	return e.Code == 401 || e.Code == 404 && (e.Method == "getMe" || e.Method == "sendMessage")
}
