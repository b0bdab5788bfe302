package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net"
	"net/http"
	"net/http/httptrace"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"synthbot/core/llm"
)

// wire is one API in bytes.
type wire interface {
	// amend makes of a body what the API wants, besides what amend changes in every
	// body.
	amend(body map[string]json.RawMessage, c *call) error
	// order lists the fields of a body: what changes least first.
	order() []string
	// whole reads an answer that came in one piece.
	whole(data []byte) (reply, error)
	// events returns a reader for an answer that comes as a stream.
	events() streamReader
}

// streamReader reads one streamed answer, event by event.
type streamReader interface {
	// event takes one event in and returns the text that it adds. errStop says
	// that the answer is complete.
	event(name string, data []byte) (piece string, err error)
	// reply is what came so far; finished tells whether the model ended it.
	reply() (r reply, finished bool)
}

// reply is a model's answer, whatever the API.
type reply struct {
	text  string
	calls []llm.ToolCall
	stop  string // in the API's own words; "" where it did not say
	usage llm.Usage

	vectors [][]float32 // of an embedding
}

// tokens estimates what the answer took.
func (r *reply) tokens() int {
	texts := []string{r.text}
	for _, c := range r.calls {
		texts = append(texts, string(c.Arguments))
	}
	return llm.Tokens(texts...)
}

// call is one call's passage through the transport. It travels in the context
// of the request.
type call struct {
	cfg    Config
	preset preset
	form   requestForm
	system []string
	tools  bool
	schema json.RawMessage
	stream func(piece string) // nil: the answer comes in one piece

	err    error  // why it failed, typed; the library would make a string of it
	answer *reply // nil: there is none
	sent   atomic.Bool
	got    reply // as far as it came
	pieces int   // of a stream
}

type callKey struct{}

func (c *call) in(ctx context.Context) context.Context {
	return context.WithValue(ctx, callKey{}, c)
}

// callOf is the call that in put into the context.
func callOf(ctx context.Context) *call {
	c, _ := ctx.Value(callKey{}).(*call)
	return c
}

// result is the answer, or why there is none. err is the library's.
func (c *call) result(err error) (reply, error) {
	switch {
	case c.err != nil:
		return reply{}, c.err
	case c.answer == nil: // the library refused the request
		return reply{}, fmt.Errorf("%w: %w", errNoAnswer, err)
	}
	return *c.answer, nil
}

// transport connects the library with the network. It is the only place where bytes
// of a provider are read.
type transport struct {
	base  http.RoundTripper
	clock func() time.Time
}

// newTransport makes a pool of connections.
func newTransport(clock func() time.Time) *transport {
	dialer := &net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}
	return &transport{clock: clock, base: &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            dialer.DialContext,
		ForceAttemptHTTP2:      true,
		TLSHandshakeTimeout:    10 * time.Second,
		MaxIdleConns:           64,
		MaxIdleConnsPerHost:    64, // many places may ask one server at once
		IdleConnTimeout:        90 * time.Second,
		WriteBufferSize:        32 << 10, // most requests are one write, and need no further buffer
		MaxResponseHeaderBytes: 64 << 10,
	}}
}

func (t *transport) close() { (&http.Client{Transport: t.base}).CloseIdleConnections() }

// RoundTrip implements http.RoundTripper for the library, which gets a fixed answer.
func (t *transport) RoundTrip(request *http.Request) (*http.Response, error) {
	written, err := io.ReadAll(request.Body)
	request.Body.Close()
	if err != nil {
		return nil, fmt.Errorf("request: %w", err)
	}
	body := make(map[string]json.RawMessage)
	if err := json.Unmarshal(written, &body); err != nil {
		return nil, fmt.Errorf("request: %w", err)
	}
	if _, err := t.post(request.Context(), request.URL.String(), request.Header, body); err != nil {
		return nil, err
	}
	return &http.Response{
		Status: "200 OK", StatusCode: http.StatusOK, Request: request,
		Header: http.Header{"Content-Type": {"application/json"}},
		Body:   io.NopCloser(strings.NewReader(forLibrary)),
	}, nil
}

// post sends the body, amended, as the call of its context wants, and reads the answer.
// The call keeps the answer, or the error. Every status but 200 is an error: a redirect
// would take the key elsewhere.
func (t *transport) post(
	ctx context.Context, address string, header http.Header, body map[string]json.RawMessage,
) (answer reply, err error) {
	c := callOf(ctx)
	defer func() { c.answer, c.err = &answer, err }()
	c.amend(body)
	if err := c.preset.wire.amend(body, c); err != nil {
		return reply{}, fmt.Errorf("request: %w", err)
	}
	data := writeFields(body, c.preset.wire.order())
	written := func(info httptrace.WroteRequestInfo) {
		if info.Err == nil {
			c.sent.Store(true)
		}
	}
	traced := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteRequest: written})
	request, err := http.NewRequestWithContext(traced, http.MethodPost, address, bytes.NewReader(data))
	if err != nil {
		return reply{}, fmt.Errorf("request: %w", err)
	}
	maps.Copy(request.Header, header)
	request.Header.Set("User-Agent", "synthbot")
	if c.cfg.APIKey.IsZero() {
		request.Header.Del("Authorization")
		request.Header.Del("X-Api-Key")
	}
	response, err := t.base.RoundTrip(request)
	if err != nil {
		return reply{}, fmt.Errorf("connection: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		said, _ := io.ReadAll(io.LimitReader(response.Body, maxErrors))
		failed := readHTTPError(response, said, t.clock())
		c.sent.Store(kindOf(failed) == llm.ErrorRefused) // any other model has not begun
		return reply{}, failed
	}
	c.sent.Store(true)
	return read(response, c)
}

// amend writes the fields that all APIs have in common.
func (c *call) amend(body map[string]json.RawMessage) {
	set(body, "model", c.cfg.Model)
	delete(body, "temperature")
	if c.cfg.Temperature >= 0 {
		set(body, "temperature", c.cfg.Temperature)
	}
	if c.cfg.TopP > 0 {
		set(body, "top_p", c.cfg.TopP)
	}
	if c.stream != nil {
		set(body, "stream", true)
	}
}

// read reads the answer, in one piece or as a stream, as the server sends it.
func read(response *http.Response, c *call) (reply, error) {
	kind, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type"))
	if kind == "text/event-stream" {
		return readStream(response.Body, c)
	}
	data, err := io.ReadAll(io.LimitReader(response.Body, maxBody+1))
	if err != nil {
		return reply{}, fmt.Errorf("%w: %w", errCut, err)
	}
	if len(data) > maxBody {
		return reply{}, fmt.Errorf("%w: more than %d bytes", errTooLarge, maxBody)
	}
	if isStream(data) {
		return readStream(bytes.NewReader(data), c)
	}
	r, err := c.preset.wire.whole(data)
	if err != nil {
		return reply{}, err
	}
	c.got = r
	r.cut()
	if c.stream != nil && r.text != "" {
		c.stream(r.text)
	}
	return r, nil
}

// isStream finds an event stream that was sent under another name.
func isStream(data []byte) bool {
	start := strings.TrimLeft(string(data[:min(len(data), 64)]), " \r\n\t")
	fields := []string{"data:", "event:", "error:", ":"}
	return slices.ContainsFunc(fields, func(f string) bool { return strings.HasPrefix(start, f) })
}

func readStream(body io.Reader, c *call) (reply, error) {
	events := c.preset.wire.events()
	size := 0
	err := readEvents(body, func(name string, data []byte) error {
		piece, err := events.event(name, data)
		size += len(piece)
		c.pieces++
		if piece != "" && size <= maxAnswer && c.stream != nil {
			c.stream(piece)
		}
		if err == nil && size > maxAnswer {
			return errStop
		}
		return err
	})
	r, finished := events.reply()
	c.got = r
	if err != nil && !finished {
		if _, ok := errors.AsType[*httpError](err); ok {
			return reply{}, err
		}
		return reply{}, fmt.Errorf("%w: %w", errCut, err)
	}
	r.cut()
	return r, nil
}

// cut shortens an answer that is longer than anything a plan may be. It then
// counts as truncated.
func (r *reply) cut() {
	size := len(r.text)
	for _, c := range r.calls {
		size += len(c.Arguments)
	}
	if size > maxAnswer {
		r.text = strings.ToValidUTF8(r.text[:min(len(r.text), maxAnswer)], "")
		r.calls, r.stop = nil, ""
	}
}
