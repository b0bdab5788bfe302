// Package rest makes requests to Discord's REST API. It waits for rate limits, retries
// after temporary errors, and returns errors that say whether a request may have worked.
//
// It uses the library discordgo only to encode requests with files. The library's own requests
// wait and retry forever, and lose the status of a refusal that is not JSON.
package rest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/bwmarrin/discordgo"

	"synthbot/core"
	"synthbot/core/driver"
	"synthbot/core/loop"
	"synthbot/core/secret"
)

// Bounds of a request.
const (
	MaxTries = 6               // attempts at a request, unless it sets Tries
	NonceAge = 2 * time.Minute // how long Discord remembers a nonce, at least

	maxAnswer  = 16 << 20 // bytes of a response
	maxRefusal = 64 << 10 // bytes of an error response

	requestTime  = 2 * time.Minute
	downloadTime = time.Minute
)

// Dial opens a network connection.
type Dial = func(ctx context.Context, network, address string) (net.Conn, error)

// Options configure a Client. All but State are required.
type Options struct {
	API     *url.URL // scheme and host
	Token   secret.Secret
	Pace    bool          // stay below the published global rate limit
	Retry   time.Duration // the pause before the first retry
	Dial    Dial
	Clock   func() time.Time
	State   driver.State // if it is a driver.Holder, requests that change something are sent only while it holds
	Refused func()       // called when Discord refuses the bot's token
}

// Client makes requests as one bot. Safe for concurrent use.
type Client struct {
	Options
	limits    *limiter
	transport *http.Transport
	offset    atomic.Int64 // how far Discord's clock is ahead of this machine's
}

// New returns a client, which does not connect yet.
func New(o Options) *Client {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := o.Dial(ctx, network, address)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrDial, err)
		}
		return conn, nil
	}
	t.MaxIdleConnsPerHost, t.ResponseHeaderTimeout = 16, 30*time.Second
	return &Client{Options: o, limits: newLimiter(o.Pace), transport: t}
}

// Close closes idle connections.
func (c *Client) Close() { c.transport.CloseIdleConnections() }

// Ahead returns how far Discord's clock is ahead of this machine's, to a second or two.
func (c *Client) Ahead() time.Duration { return time.Duration(c.offset.Load()) }

// ClockAhead returns how far this machine's clock is ahead of Discord's, in whole minutes.
func (c *Client) ClockAhead() time.Duration { return -c.Ahead().Round(time.Minute) }

// Do makes a request. It blocks as long as rate limits require, or until ctx ends. The error
// wraps an *Error if the server refused the request.
func (c *Client) Do(ctx context.Context, q Request) error {
	contentType, body, err := q.encode()
	if err != nil {
		return fmt.Errorf("%s: %w", q.Route, err)
	}
	wait := c.Retry
	var unknownSince time.Time // of the first attempt that may have worked
	for try := 1; ; try++ {
		began := time.Now()
		if err := c.limits.enter(ctx, &q); err != nil {
			return markUnknown(fmt.Errorf("%s: %w: %w", q.Route, errWait, err), unknownSince)
		}
		if q.Search != nil && !unknownSince.IsZero() && time.Since(unknownSince) > NonceAge {
			if found, err := q.Search(ctx, unknownSince); found || err != nil {
				return err
			}
			unknownSince = time.Time{} // none of the attempts worked
		}
		err = c.try(ctx, &q, contentType, body)
		if unknownSince.IsZero() && OutcomeUnknown(err) {
			unknownSince = began
		}
		pause, again := c.again(&q, err, wait)
		again = again && (try < cmp.Or(q.Tries, MaxTries) || Refusal(err).Status == 429)
		if ctx.Err() != nil || !again || !loop.Sleep(ctx, pause) {
			return markAway(&q, markUnknown(err, unknownSince))
		}
		wait = min(2*wait, 20*time.Second)
	}
}

// Get fetches the object of a route into out.
func (c *Client) Get(ctx context.Context, out any, route string, ids ...string) error {
	return c.Do(ctx, Request{Method: "GET", Route: route, IDs: ids, Out: out})
}

// Delete deletes the object of a route. It returns nil if there is none.
func (c *Client) Delete(ctx context.Context, route string, ids ...string) error {
	err := c.Do(ctx, Request{Method: "DELETE", Route: route, IDs: ids})
	if NotFound(err) {
		return nil
	}
	return err
}

// again returns whether to retry after err, and the pause before that. The limiter waits for the end of a rate limit.
func (c *Client) again(q *Request, err error, wait time.Duration) (time.Duration, bool) {
	api := Refusal(err)
	switch {
	case err == nil:
		return 0, false
	case api.Status == 0, api.Status >= 500:
		return driver.Jitter(wait), !q.Once
	case api.Status == 429:
		c.limits.block(q, api)
		return time.Millisecond, !q.Fast
	case api.RefusesBot() && !q.Fast:
		c.Refused()
	}
	return 0, false
}

// try makes one attempt. The error is [ErrDial] if nothing was sent because another process may have taken over.
func (c *Client) try(ctx context.Context, q *Request, contentType string, body []byte) error {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	resp, err := c.send(ctx, q, contentType, body)
	switch {
	case errors.Is(err, driver.ErrNotHeld):
		return fmt.Errorf("%s: %w: %w", q.name(), ErrDial, err)
	case err != nil:
		return fmt.Errorf("%s: %w", q.name(), err)
	}
	defer func() { _ = resp.Body.Close() }()
	c.limits.learn(q, resp.Header)
	if at, err := http.ParseTime(resp.Header.Get("Date")); err == nil {
		c.offset.Store(int64(at.Sub(c.Clock().Truncate(time.Second))))
	}
	if resp.StatusCode >= 300 { // following a redirect would send the token elsewhere
		return refusal(q.name(), resp)
	}
	answer, err := io.ReadAll(http.MaxBytesReader(nil, resp.Body, maxAnswer))
	if err == nil && q.Out != nil {
		err = Decode(answer, q.Out)
	}
	if err != nil {
		return fmt.Errorf("%s: answer: %w", q.name(), err)
	}
	return nil
}

// send sends a request. One that changes something is sent only while the State holds.
func (c *Client) send(ctx context.Context, q *Request, contentType string, body []byte) (*http.Response, error) {
	address := c.API.String() + "/api/v" + discordgo.APIVersion + q.address()
	r, err := http.NewRequestWithContext(ctx, q.Method, address, bytes.NewReader(body))
	if err != nil {
		return nil, errors.New("invalid address") // err may contain a token
	}
	r.Header.Set("Authorization", "Bot "+c.Token.Reveal())
	r.Header.Set("User-Agent", "DiscordBot (synthbot, 1)")
	if body != nil {
		r.Header.Set("Content-Type", contentType)
	}
	if q.Method != http.MethodGet && !q.Fast {
		r, err = driver.Held(ctx, c.State, r)
		if err != nil {
			return nil, err
		}
	}
	return c.transport.RoundTrip(r)
}

// Decode decodes an object of Discord into v, a pointer. It skips fields of the wrong type.
func Decode(data []byte, v any) error {
	err := json.Unmarshal(data, v)
	if _, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return nil
	}
	return err
}

// Download fetches a file without sending the bot's token. It returns at most max+1 bytes.
func (c *Client) Download(ctx context.Context, address string, max int64) (data []byte, status int, err error) {
	ctx, cancel := context.WithTimeout(ctx, downloadTime)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, 0, fmt.Errorf("file: %w", err)
	}
	resp, err := c.transport.RoundTrip(r)
	if err != nil {
		return nil, 0, fmt.Errorf("file: %w", err)
	}
	defer func() { _ = resp.Body.Close() }()
	data, err = io.ReadAll(io.LimitReader(resp.Body, max+1))
	return data, resp.StatusCode, err
}

// Request is a request to the REST API.
type Request struct {
	Method string
	Route  string   // with {} for each ID; rate limits depend on the first one
	IDs    []string // in order
	Query  url.Values
	Body   any
	Files  []core.Upload // of which Name, Data and MIME are used; names have no line breaks
	Out    any           // a pointer for the response; nil: the response is ignored
	Tries  int           // the maximum of attempts, except for rate limits; 0: MaxTries
	Once   bool          // is not retried after an unknown outcome
	Fast   bool          // answers an interaction: has no rate limit and cannot wait
	// Search reports whether an attempt since a time worked. It is called before a retry if the outcome
	// of an attempt older than NonceAge is unknown. Optional.
	Search func(ctx context.Context, since time.Time) (found bool, err error)
}

func (q *Request) address() string {
	address := q.Route
	for _, id := range q.IDs {
		address = strings.Replace(address, "{}", url.PathEscape(id), 1) // {} in an ID is escaped
	}
	if len(q.Query) > 0 {
		address += "?" + q.Query.Encode()
	}
	return address
}

// name identifies the request in errors and, until the server has named a bucket, in
// rate limits. It contains no IDs, because one may be a token.
func (q *Request) name() string { return q.Method + " " + q.Route }

func (q *Request) encode() (contentType string, body []byte, err error) {
	if len(q.Files) == 0 {
		if q.Body != nil {
			body, err = json.Marshal(q.Body)
		}
		return "application/json", body, err
	}
	var files []*discordgo.File
	for _, f := range q.Files {
		kind, _, _ := mime.ParseMediaType(f.MIME) // "" if it is invalid
		files = append(files, &discordgo.File{Name: f.Name, ContentType: kind, Reader: bytes.NewReader(f.Data)})
	}
	return discordgo.MultipartBodyWithJSON(q.Body, files)
}
