package engine

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"synthbot/core/llm"
	"synthbot/core/txt"
)

// Reasons why a call failed.
var (
	errEmptyAnswer = errors.New("the answer is empty")
	errNoAnswer    = errors.New("the body is not an answer of this API")
	errTooLarge    = errors.New("the answer is too large")
	errPaused      = errors.New("not asked: the server asked for a pause")
	errPanic       = errors.New("asking panicked")
	errTripped     = errors.New("not asked: it failed too often in a row")
	errTimeout     = errors.New("no answer in time")
)

// httpError is a response with a status other than 200, or an error in an answer with status 200.
type httpError struct {
	status int
	after  time.Duration
	code   string // the provider's name for the error
	text   string // the provider's message, for the log
	sizes  sizes
}

func (e *httpError) Error() string {
	if e.code != "" {
		return e.code + ": " + e.text
	}
	return e.text
}

func readHTTPError(r *http.Response, body []byte, now time.Time) *httpError {
	e := cmp.Or(parseErrorBody(body), plainError(string(body)))
	e.text = cmp.Or(e.text, http.StatusText(r.StatusCode))
	e.status, e.after = r.StatusCode, retryAfter(r.Header, now)
	return e
}

// parseErrorBody reads {"error": …} and similar bodies. It returns nil if there is no error in the body.
func parseErrorBody(body []byte) *httpError {
	var outer struct {
		Error   json.RawMessage `json:"error"`
		Message string          `json:"message"`
		Detail  json.RawMessage `json:"detail"`
	}
	body = bytes.Trim(bytes.TrimSpace(body), "[]") // Gemini wraps errors in a list
	if json.Unmarshal(body, &outer) != nil {
		return nil
	}
	switch {
	case isPresent(outer.Error):
		return parseErrorValue(outer.Error)
	case outer.Message != "":
		return plainError(outer.Message)
	case len(outer.Detail) > 0:
		return plainError(string(outer.Detail))
	}
	return nil
}

// plainError makes an httpError of a message without further fields.
func plainError(said string) *httpError {
	p, long := patterns(), txt.Clip(txt.Line(said), 1000)
	return &httpError{text: txt.Clip(txt.Line(said), 300), sizes: sizes{
		prompt: firstSize(p.prompt, long), answer: firstSize(p.answer, long), limit: firstSize(p.limit, long),
	}}
}

func parseErrorValue(value json.RawMessage) *httpError {
	var inner struct {
		Message string `json:"message"`
		Type    string `json:"type"`
		Status  string `json:"status"`
		Code    any    `json:"code"`
		Prompt  int    `json:"n_prompt_tokens"`
		Window  int    `json:"n_ctx"`
	}
	if json.Unmarshal(value, &inner) != nil {
		return plainError(strings.Trim(string(value), `"`))
	}
	e := plainError(inner.Message)
	e.code = inner.Type
	if inner.Window > 0 {
		e.sizes = sizes{prompt: inner.Prompt, limit: inner.Window}
	}
	switch code := inner.Code.(type) {
	case float64:
		if code >= 100 && code < 600 {
			e.status = int(code)
		}
	case string:
		e.code = cmp.Or(code, e.code)
	}
	e.code = txt.Clip(txt.Line(cmp.Or(e.code, inner.Status)), 60)
	return e
}

// retryAfter reads how long to wait before the next request: seconds, a date (compared with the Date header if there is
// one), or milliseconds in OpenAI's own header. It returns 0 to 24 hours.
func retryAfter(h http.Header, now time.Time) time.Duration {
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil {
		return clampAfter(ms * float64(time.Millisecond))
	}
	value := strings.TrimSpace(h.Get("Retry-After"))
	if seconds, err := strconv.ParseFloat(value, 64); err == nil {
		return clampAfter(seconds * float64(time.Second))
	}
	at, err := http.ParseTime(value)
	if err != nil {
		return 0
	}
	if date, err := http.ParseTime(h.Get("Date")); err == nil {
		now = date
	}
	return clampAfter(float64(at.Sub(now)))
}

func clampAfter(d float64) time.Duration {
	if math.IsNaN(d) || d <= 0 {
		return 0
	}
	return time.Duration(min(d, float64(24*time.Hour)))
}

// kindOf classifies an httpError by its status and its words.
func kindOf(e *httpError) llm.ErrorKind {
	said := strings.ToLower(e.code + " " + e.text)
	has := func(words ...string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(said, w) })
	}
	tooLong := tooLongWords
	if e.status == http.StatusTooManyRequests || has("rate limit", "rate_limit") { // perhaps of tokens per minute
		tooLong = tooLongDespiteRate
	}
	switch {
	case e.status == http.StatusRequestEntityTooLarge, e.status <= 500 && has(tooLong...):
		return llm.ErrorTooLong
	case e.status < 500 && has("content_filter", "content policy", "content_policy", "content management policy",
		"moderation", "flagged", "safety", "prohibited_content"):
		return llm.ErrorRefused
	case has("insufficient_quota", "billing"):
		return llm.ErrorFatal
	case e.status == http.StatusRequestTimeout, e.status == http.StatusConflict, e.status == http.StatusTooEarly,
		e.status == http.StatusTooManyRequests, e.status >= 500:
		return llm.ErrorRetryLater
	case e.status == 0 && !has("invalid_request", "authentication", "permission", "not_found"): // within an answer
		return llm.ErrorRetryLater
	}
	return llm.ErrorFatal
}

// failure makes a *llm.Error of any error of a call. call is the context of the call with its timeout,
// caller the one of the caller. The result never contains the API key.
func (p *provider) failure(call, caller context.Context, err error) *llm.Error {
	e := &llm.Error{Kind: llm.ErrorRetryLater, Engine: p.cfg.Name, Err: err}
	var known *llm.Error
	var status *httpError
	switch {
	case errors.As(err, &known):
		e = known
	case caller.Err() != nil:
		e.Err = context.Cause(caller)
	case errors.As(err, &status):
		e.Kind, e.Status, e.After = kindOf(status), status.status, status.after
	case call.Err() != nil:
		e.Err = fmt.Errorf("%w: %w", errTimeout, context.Cause(call))
	}
	text := e.Err.Error()
	clean := p.redact.Replace(text)
	if clean != text {
		e.Err = &redacted{clean, e.Err}
	}
	return e
}

// redacted is an error whose text contained the API key. errors.Is still finds what it
// wraps, but unwrapping does not, so that the text cannot reach a log.
type redacted struct {
	text string
	err  error
}

func (c *redacted) Error() string        { return c.text }
func (c *redacted) Is(target error) bool { return errors.Is(c.err, target) }

// isPresent reports whether a value was sent and is not null.
func isPresent(value json.RawMessage) bool { return len(value) > 0 && string(value) != "null" }

// sizes are the numbers of the server's tokens in an error about a prompt that is too long. 0 is unknown.
type sizes struct {
	prompt int
	answer int // requested for the answer; counts against limit
	limit  int
}

var tooLongWords = []string{
	"context_length", "context length", "maximum context", "context size", "context window", "context limit",
	"prompt is too long", "too many tokens", "exceed_context", "input length", "input token", "reduce the length",
	"request too large", "maximum prompt length", "maximum model length",
	"maximum number of tokens", "number of tokens to keep", "max_new_tokens` must be",
}

// tooLongDespiteRate are such words in an error that also mentions a rate limit.
var tooLongDespiteRate = []string{"request too large", "context_length", "exceed_context"}

// sizePatterns find the numbers for sizes in error messages.
type sizePatterns struct{ limit, prompt, answer []*regexp.Regexp }

// patterns compiles the patterns on first use. N stands for a number.
var patterns = sync.OnceValue(func() sizePatterns {
	return sizePatterns{
		limit: sizePattern(
			`maximum context length (?:is|of) N`, `N maximum context length`, `> N maximum`,
			`maximum (?:prompt|model) length (?:is|of) N`, `context limit: N \+ N > N`, `context size \(N`,
			`context (?:window|length) (?:is|of) (?:only )?N`,
			`tokens allowed \(N`, `limit of N`, `limit N`, `must be <= N`,
		),
		prompt: sizePattern(
			`N in the messages`, `N of text input`, `resulted in N`, `prompt is too long: N`, `first N tokens`,
			`given: N`, `contains (?:at least )?N (?:input )?tokens`, `request has N input tokens`,
			`context limit: N`, `\(N tokens\) exceeds`,
			`token count \(N\)`, `\(length N\)`, `requested (?:about )?N,? `, `requested N(?: tokens)?[.,]`,
		),
		answer: sizePattern(
			`N in the (?:completion|output)`, `requested N output tokens`, `context limit: N \+ N`,
			`max_completion_tokens' is too large: N`, "and N `max_new_tokens`",
		),
	}
})

// sizePattern compiles these forms. The last N of each is the size.
func sizePattern(forms ...string) []*regexp.Regexp {
	list := make([]*regexp.Regexp, len(forms))
	for i, form := range forms {
		last := strings.LastIndex(form, "N")
		form = strings.ReplaceAll(form[:last], "N", `[\d,]+`) + `(\d[\d,]*)` + form[last+1:]
		list[i] = regexp.MustCompile(`(?i)` + form)
	}
	return list
}

func firstSize(patterns []*regexp.Regexp, text string) int {
	for _, p := range patterns {
		found := p.FindStringSubmatch(text)
		if found == nil {
			continue
		}
		n, err := strconv.Atoi(strings.ReplaceAll(found[1], ",", ""))
		if err == nil && n > 0 && n <= math.MaxInt32 {
			return n
		}
	}
	return 0
}
