// Package botapi is a client of Telegram's Bot API. It makes calls within the rate limits, repeats those that may be
// repeated, and receives updates by polling or from a webhook.
//
// The library go-telegram-bot-api builds requests and decodes responses. Nothing else of it is used, and its types do
// not leave this package. It has these problems, which the named code works around:
//
//   - Its network errors may contain the address, and so the token: callTransport.netError.
//   - Calls have no context: Client.call.
//   - The status is lost if a response is not JSON, and always for uploads: callTransport.apiError.
//   - The size of responses is not limited: callTransport.Do.
//   - A redirect would send the token to another server: callTransport.Do.
//   - Polling continues after it was stopped, and stops at an update that it cannot decode: Client.Poll.
//   - The webhook checks no secret, and blocks: Client.Serve.
//   - The address of a file contains the token: Client.File.
//   - The parameters end at version 6 of the Bot API: Params has any names.
//
// The package does not know what updates mean, or what a place is.
package botapi

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	tgbotapi "github.com/go-telegram-bot-api/telegram-bot-api/v5"

	"synthbot/core/driver"
)

// Options configure a Client. All but Dial are required.
type Options struct {
	Name    string // of the interface, for alerts
	URL     string
	Token   string
	Pace    bool          // stay below the published rate limits
	Timeout time.Duration // of one call; calls with files get ten times as long
	Log     *slog.Logger
	Clock   func() time.Time
	State   driver.State
	Dial    func(ctx context.Context, network, address string) (net.Conn, error) // nil: the network

	Chat     func(chat int64) int64                    // returns the supergroup that a chat became, or the chat
	Migrated func(ctx context.Context, from, to int64) // a group became a supergroup
	Sign     func(markup any, from, to int64) any      // signs buttons for another chat
	Revoked  func(err error)                           // Telegram refused the token
	Admin    func(text string)                         // alerts admins
}

// Client makes calls of the Bot API. Its errors never contain the token. Safe for concurrent use.
type Client struct {
	opt              Options
	base             *url.URL    // without a user name and password
	header           http.Header // of every request: that user name and password
	bot              tgbotapi.BotAPI
	http             *http.Transport
	ahead            atomic.Int64 // how far our clock is ahead of Telegram's, in nanoseconds
	pace             *pacer
	health           driver.Health // of updates
	conflictReported time.Time     // when admins last read of another process; of Poll
}

// ParseURL parses the address of a Bot API. The error continues a sentence that begins with its key.
func ParseURL(text string) (*url.URL, error) {
	base, err := url.Parse(strings.TrimSuffix(text, "/"))
	if err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https" {
		return nil, fmt.Errorf("%q is not an http or https address", text)
	}
	return base, nil
}

// New returns a client. It makes no calls.
func New(o Options) (*Client, error) {
	base, err := ParseURL(o.URL)
	if err != nil {
		return nil, fmt.Errorf("api_url: %w", err)
	}
	dial := o.Dial
	if dial == nil {
		dial = (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 15 * time.Second}).DialContext
	}
	// Without HTTP/2, a connection that is silently broken affects only one call.
	c := &Client{opt: o, base: base, header: http.Header{}, pace: newPacer(o.Pace), http: &http.Transport{
		Proxy: http.ProxyFromEnvironment, DialContext: dial, TLSHandshakeTimeout: 10 * time.Second,
		MaxIdleConns: 64, MaxIdleConnsPerHost: 64, IdleConnTimeout: 90 * time.Second,
		DisableCompression: true, // responses are short
	}}
	if base.User != nil {
		r := &http.Request{Header: c.header}
		password, _ := base.User.Password()
		r.SetBasicAuth(base.User.Username(), password)
		base.User = nil
	}
	c.bot = tgbotapi.BotAPI{Token: o.Token}
	c.bot.SetAPIEndpoint(strings.ReplaceAll(base.String(), "%", "%%") + "/bot%s/%s")
	c.loadWaits(context.Background())
	return c, nil
}

// call makes one call, without waiting. Errors are *Error or *NetError.
func (c *Client) call(ctx context.Context, r *Request) error {
	limit := cmp.Or(r.Limit, c.opt.Timeout)
	if len(r.Files) > 0 {
		limit *= 10
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if r.Chat != 0 {
		r.Params["chat_id"] = r.Chat
	}
	w := &callTransport{ctx: ctx, client: c, method: r.Method, body: bodies.Get().(*bytes.Buffer)}
	defer bodies.Put(w.body) // the library copies the result
	bot := c.bot             // the library has no contexts: each call has its own HTTP client with one
	bot.Client = w
	var resp *tgbotapi.APIResponse
	var err error
	if len(r.Files) > 0 {
		resp, err = bot.UploadFiles(r.Method, r.Params.texts(), requestFiles(r.Files))
	} else {
		resp, err = bot.MakeRequest(r.Method, r.Params.texts())
	}
	var api *Error
	var network *NetError
	switch {
	case err == nil:
		if json.Unmarshal(resp.Result, r.Result) != nil && r.Result != nil && r.Repeatable { // else it succeeded
			return &Error{Method: r.Method, Code: http.StatusOK, Text: "not a response of the Bot API"}
		}
		return nil
	case errors.As(err, &api), errors.As(err, &network):
		return err
	}
	return w.netError(err, true)
}

func requestFiles(files []File) (list []tgbotapi.RequestFile) {
	for _, f := range files {
		u := tgbotapi.RequestFile{Name: f.Field, Data: tgbotapi.FileBytes{Name: f.Name, Bytes: f.Data}}
		switch {
		case f.Path != "":
			u.Data = tgbotapi.FilePath(f.Path)
		case f.Ref != "":
			u.Data = tgbotapi.FileID(f.Ref)
		}
		list = append(list, u)
	}
	return list
}

func (c *Client) redact(s string) string {
	return strings.NewReplacer(c.opt.Token, "[secret]", url.PathEscape(c.opt.Token), "[secret]").Replace(s)
}

// callTransport is the library's HTTP client for one call. It uses the call's context, reads the whole response, and
// converts failures to *Error or *NetError, which the library could not.
type callTransport struct {
	ctx    context.Context
	client *Client
	method string
	body   *bytes.Buffer // of the response
}

// bodies holds buffers that calls reuse.
var bodies = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// Do implements the library's HTTPClient.
func (w *callTransport) Do(r *http.Request) (*http.Response, error) {
	const maxAnswer = 32 << 20
	var wrote atomic.Bool
	ctx := httptrace.WithClientTrace(w.ctx, &httptrace.ClientTrace{
		WroteRequest: func(i httptrace.WroteRequestInfo) { wrote.Store(i.Err == nil) },
	})
	state := w.client.opt.State
	if strings.HasPrefix(w.method, "get") {
		state = nil
	}
	r, err := driver.Held(ctx, state, r)
	if err != nil {
		return nil, w.netError(err, false)
	}
	maps.Copy(r.Header, w.client.header)
	resp, err := w.client.http.RoundTrip(r) // without following redirects, which would send the token elsewhere
	if err != nil {
		return nil, w.netError(err, wrote.Load())
	}
	if date, err := http.ParseTime(resp.Header.Get("Date")); err == nil {
		w.client.ahead.Store(int64(w.client.opt.Clock().Sub(date)))
	}
	w.body.Reset()
	_, err = w.body.ReadFrom(io.LimitReader(resp.Body, maxAnswer+1))
	_ = resp.Body.Close()
	if err == nil && w.body.Len() > maxAnswer {
		err = fmt.Errorf("a response of more than %d bytes", maxAnswer)
	}
	switch {
	case resp.StatusCode >= 300:
		return nil, w.apiError(resp.StatusCode, w.body.Bytes())
	case err != nil:
		return nil, w.netError(err, true)
	}
	resp.Body = io.NopCloser(w.body)
	return resp, nil
}

// Ahead returns how far our clock is ahead of Telegram's, to a second or two.
func (c *Client) Ahead() time.Duration { return time.Duration(c.ahead.Load()) }

func (w *callTransport) netError(err error, wrote bool) error {
	e := &NetError{Method: w.method, Text: w.client.redact(err.Error()), Unknown: wrote}
	e.Cause = w.ctx.Err()
	if e.Cause != nil {
		w.client.http.CloseIdleConnections() // they may be broken, too
	}
	return e
}

// apiError returns the error of a response with a status other than success. The response need not be JSON.
func (w *callTransport) apiError(status int, data []byte) error {
	var resp tgbotapi.APIResponse
	e := &Error{Method: w.method, Code: status, Text: http.StatusText(status)}
	if json.Unmarshal(data, &resp) == nil && resp.Description != "" {
		e.Text = w.client.redact(resp.Description)
		if resp.Parameters != nil {
			e.After = time.Duration(resp.Parameters.RetryAfter) * time.Second
			e.Migrate = resp.Parameters.MigrateToChatID
		}
	}
	if status == http.StatusTooManyRequests {
		e.After = cmp.Or(e.After, defaultWait)
	}
	return e
}

// Errors of File.
var (
	ErrNoFile   = errors.New("no such file") // or it cannot be read
	ErrTooLarge = errors.New("the file is too large")
)

// File returns the content of a file that the server named, or ErrTooLarge if it has more than most bytes. A file with
// an absolute path is read from this machine, if it is in dir. Any other is downloaded from the server of the calls.
func (c *Client) File(ctx context.Context, file, dir string, most int64) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*c.opt.Timeout)
	defer cancel()
	body, err := c.open(ctx, file, dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = body.Close() }()
	data, err := io.ReadAll(io.LimitReader(body, most+1))
	switch {
	case err != nil:
		return nil, (&callTransport{ctx: ctx, client: c, method: "file"}).netError(err, false)
	case int64(len(data)) > most:
		return nil, ErrTooLarge
	}
	return data, nil
}

// openLocal opens a file of a Bot API server on this machine, which stores its files in dir.
func (c *Client) openLocal(file, dir string) (io.ReadCloser, error) {
	inside, err := filepath.Rel(dir, file)
	if dir == "" || err != nil || !filepath.IsLocal(inside) {
		return nil, fmt.Errorf("%w: the Bot API server stores files outside of files_dir", ErrNoFile)
	}
	f, err := os.OpenInRoot(dir, inside)
	if err != nil { // the path contains the token
		return nil, fmt.Errorf("%w: %s", ErrNoFile, c.redact(err.Error()))
	}
	return f, nil
}

func (c *Client) open(ctx context.Context, file, dir string) (io.ReadCloser, error) {
	if filepath.IsAbs(file) {
		return c.openLocal(file, dir)
	}
	if !fs.ValidPath(file) {
		return nil, ErrNoFile
	}
	// The library would put the token into an address that may be logged.
	address := c.base.String() + "/file/bot" + c.opt.Token + "/" + (&url.URL{Path: file}).EscapedPath()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, errors.New(c.redact(err.Error()))
	}
	maps.Copy(req.Header, c.header)
	resp, err := c.http.RoundTrip(req) // see callTransport.Do
	switch {
	case err != nil:
		return nil, (&callTransport{ctx: ctx, client: c, method: "file"}).netError(err, false)
	case resp.StatusCode != http.StatusOK:
		_ = resp.Body.Close()
		return nil, fmt.Errorf("%w (%d)", ErrNoFile, resp.StatusCode)
	}
	return resp.Body, nil
}
