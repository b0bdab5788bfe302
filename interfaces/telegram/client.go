package telegram

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	tgbotapi "github.com/go-telegram-bot-api/telegram-bot-api/v5"
)

// maxAnswer is the longest answer of the server, in bytes.
const maxAnswer = 32 << 20

// client makes calls of the Bot API. No error of it holds the token.
type client struct {
	base  *url.URL
	token string
	bot   tgbotapi.BotAPI
	http  *http.Client
	clock func() time.Time
	ahead atomic.Int64 // how far our clock is ahead of the platform's, in nanoseconds
}

func newClient(o *Options) (*client, error) {
	base, err := url.Parse(strings.TrimSuffix(o.Config.APIURL, "/"))
	if err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https" {
		return nil, fmt.Errorf("api_url: %q is no http or https address", o.Config.APIURL)
	}
	token := o.Config.Token.Reveal()
	if wrong := o.Config.Wrong(); wrong != "" || token == "" {
		return nil, errors.New("token: " + cmp.Or(wrong, "there is none; @BotFather gives one"))
	}
	dial := o.Dial
	if dial == nil {
		dial = (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 15 * time.Second}).DialContext
	}
	// HTTP/1.1: a connection that died in silence takes no more than one call with it.
	c := &client{base: base, token: token, clock: o.Clock, http: &http.Client{
		Transport: &http.Transport{
			Proxy: http.ProxyFromEnvironment, DialContext: dial, TLSHandshakeTimeout: 10 * time.Second,
			MaxIdleConns: 64, MaxIdleConnsPerHost: 64, IdleConnTimeout: 90 * time.Second,
		},
		// An answer that leads elsewhere would carry the token there.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	c.bot = tgbotapi.BotAPI{Token: token}
	c.bot.SetAPIEndpoint(strings.ReplaceAll(base.String(), "%", "%%") + "/bot%s/%s")
	return c, nil
}

// call makes one call and returns its result. Errors are *apiError or
// *netError.
func (c *client) call(ctx context.Context, method string, params tgbotapi.Params, files ...tgbotapi.RequestFile) (json.RawMessage, error) {
	bot := c.bot
	bot.Client = &wire{ctx: ctx, client: c, method: method}
	var resp *tgbotapi.APIResponse
	var err error
	if len(files) > 0 {
		resp, err = bot.UploadFiles(method, params, files)
	} else {
		resp, err = bot.MakeRequest(method, params)
	}
	if err != nil {
		return nil, c.failed(method, err)
	}
	return resp.Result, nil
}

// failed makes one of our errors of what the library returns.
func (c *client) failed(method string, err error) error {
	var api *apiError
	var network *netError
	var theirs *tgbotapi.Error
	switch {
	case errors.As(err, &api), errors.As(err, &network):
		return err
	case errors.As(err, &theirs):
		return &apiError{
			method: method, code: theirs.Code, text: theirs.Message,
			after: time.Duration(theirs.RetryAfter) * time.Second, migrate: theirs.MigrateToChatID,
		}
	}
	return &netError{method: method, text: c.redact(err.Error()), unknown: true}
}

func (c *client) redact(s string) string {
	return strings.NewReplacer(c.token, "[secret]", url.PathEscape(c.token), "[secret]").Replace(s)
}

// wire carries the context that the library does not know, reads answers whole,
// and sorts failures while the status is still known.
type wire struct {
	ctx    context.Context
	client *client
	method string
}

// Do implements the library's HTTPClient.
func (w *wire) Do(r *http.Request) (*http.Response, error) {
	var wrote atomic.Bool
	ctx := httptrace.WithClientTrace(w.ctx, &httptrace.ClientTrace{
		WroteRequest: func(i httptrace.WroteRequestInfo) { wrote.Store(i.Err == nil) },
	})
	resp, err := w.client.http.Do(r.WithContext(ctx))
	if err != nil {
		return nil, w.broken(err, wrote.Load())
	}
	w.client.learnClock(resp.Header)
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	_ = resp.Body.Close()
	if err == nil && len(data) > maxAnswer {
		err = fmt.Errorf("an answer of more than %d bytes", maxAnswer)
	}
	if resp.StatusCode >= 300 {
		return nil, w.refused(resp.StatusCode, data)
	}
	if err != nil {
		return nil, w.broken(err, true)
	}
	resp.Body = io.NopCloser(bytes.NewReader(data))
	return resp, nil
}

// learnClock compares our clock with the date of an answer that has just arrived.
func (c *client) learnClock(h http.Header) {
	if date, err := http.ParseTime(h.Get("Date")); err == nil {
		c.ahead.Store(int64(c.clock().Sub(date)))
	}
}

// clockAhead returns how far our clock is ahead of the platform's, in whole minutes:
// dates of answers are not more exact than their way is fast.
func (c *client) clockAhead() time.Duration {
	return time.Duration(c.ahead.Load()).Round(time.Minute)
}

func (w *wire) broken(err error, wrote bool) error {
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	e := &netError{method: w.method, text: w.client.redact(err.Error()), unknown: wrote}
	if cause := w.ctx.Err(); cause != nil {
		e.cause = cause
		w.client.http.CloseIdleConnections() // they may be as dead as this one
	}
	return e
}

// refused reads an answer that says no; one that is no JSON keeps its status.
func (w *wire) refused(status int, data []byte) error {
	var resp tgbotapi.APIResponse
	e := &apiError{method: w.method, code: status, text: http.StatusText(status)}
	if json.Unmarshal(data, &resp) == nil && resp.Description != "" {
		e.text = w.client.redact(resp.Description)
		if resp.Parameters != nil {
			e.after = time.Duration(resp.Parameters.RetryAfter) * time.Second
			e.migrate = resp.Parameters.MigrateToChatID
		}
	}
	return e
}

// apiError is a call that the server refused.
type apiError struct {
	method  string
	code    int
	text    string
	after   time.Duration // with 429
	migrate int64         // the supergroup that the group became
}

func (e *apiError) Error() string { return fmt.Sprintf("%s: %d %s", e.method, e.code, e.text) }

// says reports whether the server's words hold one of these, in any case.
func (e *apiError) says(parts ...string) bool {
	text := strings.ToLower(e.text)
	for _, p := range parts {
		if strings.Contains(text, strings.ToLower(p)) {
			return true
		}
	}
	return false
}

// netError is a call without an answer.
type netError struct {
	method  string
	text    string
	unknown bool  // the server may have done it
	cause   error // the context's, where that ended it
}

func (e *netError) Error() string { return e.method + ": " + e.text }

// Unwrap gives the context's error; the network's own is not kept, since it may
// hold the address and so the token.
func (e *netError) Unwrap() error { return e.cause }

// isCode reports whether the server answered with one of these statuses.
func isCode(err error, codes ...int) bool {
	var e *apiError
	if !errors.As(err, &e) {
		return false
	}
	for _, c := range codes {
		if e.code == c {
			return true
		}
	}
	return false
}
