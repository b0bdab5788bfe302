package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/http/httptrace"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/tmc/langchaingo/llms"

	"synthbot/core/llm"
	"synthbot/core/secret"
)

// wire encodes requests for one API and decodes its answers.
type wire interface {
	// path is the path of calls, relative to the API's address.
	path() string
	// authorize sets the headers that the API needs. key may be "".
	authorize(h http.Header, key string)
	// write writes the body of a request. What changes least comes first, so that servers can cache it.
	write(b *bytes.Buffer, c *call, messages []llms.MessageContent, o llms.CallOptions) error
	// events returns a reader for an answer.
	events() streamReader
}

// streamReader reads one answer, event by event. An answer that is not streamed is a single event.
type streamReader interface {
	// event reads one event and returns the text that it adds. It returns errStop if the answer is complete.
	event(name string, data []byte) (piece string, err error)
	// reply returns what has arrived so far. finished reports whether the model said why it ended it.
	reply() (r reply, finished bool)
}

type reply struct {
	text  string
	calls []llm.ToolCall
	stop  string // the API's stop reason; "" if it gave none
	usage llm.Usage
}

// pieces is the part of an answer that has arrived. Both APIs use it.
type pieces struct {
	text  strings.Builder
	calls []*callPieces
	stop  string
	usage llm.Usage

	refused bool // the API's refusal field was set
}

type callPieces struct {
	llm.ToolCall
	index int
}

func (p *pieces) reply() (r reply, finished bool) {
	r = reply{text: p.text.String(), stop: p.stop, usage: p.usage}
	for _, c := range p.calls {
		r.calls = append(r.calls, c.ToolCall)
	}
	if r.text == "" && len(r.calls) == 0 && p.refused {
		r.stop = stopFiltered
	}
	return r, p.stop != ""
}

// transport is a connection pool that providers share.
type transport struct {
	base   http.RoundTripper
	clock  func() time.Time
	bodies chan *bytes.Buffer // request buffers for reuse
}

func newTransport(clock func() time.Time) *transport {
	dialer := &net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}
	return &transport{clock: clock, bodies: make(chan *bytes.Buffer, usualCalls), base: &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            dialer.DialContext,
		ForceAttemptHTTP2:      true,
		TLSHandshakeTimeout:    10 * time.Second,
		MaxIdleConns:           usualCalls,
		MaxIdleConnsPerHost:    usualCalls,
		IdleConnTimeout:        90 * time.Second,
		WriteBufferSize:        usualBody, // most requests fit, and need only one write
		MaxResponseHeaderBytes: 64 << 10,
	}}
}

func (t *transport) close() { (&http.Client{Transport: t.base}).CloseIdleConnections() }

// provider is the server of one table of the configuration.
type provider struct {
	cfg       Config
	preset    preset
	endpoint  string
	header    http.Header       // of every request
	redact    *strings.Replacer // removes the key from texts
	transport *transport
}

func newProvider(cfg Config, p preset, t *transport) (provider, error) {
	endpoint, err := cfg.endpoint(p)
	if err != nil {
		return provider{}, fmt.Errorf("base_url: %w", err)
	}
	header := http.Header{"Content-Type": {"application/json"}, "User-Agent": {"synthbot"}}
	p.wire.authorize(header, cfg.APIKey.Reveal())
	return provider{cfg, p, endpoint, header, secret.Conceal(cfg.APIKey), t}, nil
}

const (
	usualCalls = 64       // concurrent calls: many places may ask one server
	usualBody  = 20 << 10 // bytes of a typical request
)

func encode(b *bytes.Buffer, value any) error {
	encoder := json.NewEncoder(b)
	encoder.SetEscapeHTML(false)
	return encoder.Encode(value)
}

// post sends a request and returns the response. Every status but 200 is an error, also a redirect, which
// could send the key to another server. begun reports whether a model may have begun to answer.
func (p *provider) post(
	ctx context.Context, path string, write func(body *bytes.Buffer) error,
) (r *http.Response, begun bool, err error) {
	var sent atomic.Bool
	written := func(info httptrace.WroteRequestInfo) {
		if info.Err == nil { // an error may come late, from a connection that was given up
			sent.Store(true)
		}
	}
	again := func(httptrace.GotConnInfo) { sent.Store(false) } // the transport retries on a new connection
	traced := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: again, WroteRequest: written})
	data := new(bytes.Buffer)
	select {
	case data = <-p.transport.bodies:
		data.Reset()
	default:
		data.Grow(usualBody)
	}
	err = write(data)
	if err != nil {
		return nil, false, fmt.Errorf("request: %w", err)
	}
	request, err := http.NewRequestWithContext(traced, http.MethodPost, p.endpoint+path, bytes.NewReader(data.Bytes()))
	if err != nil {
		return nil, false, fmt.Errorf("request: %w", err)
	}
	request.Header = p.header
	response, err := p.transport.base.RoundTrip(request)
	if err != nil {
		return nil, sent.Load(), fmt.Errorf("connection: %w", err)
	}
	if sent.Load() && data.Cap() <= 4*usualBody { // otherwise it is still being read, or too large to keep
		select {
		case p.transport.bodies <- data:
		default: // the pool is full
		}
	}
	if response.StatusCode == http.StatusOK {
		return response, true, nil
	}
	defer response.Body.Close()
	said, _ := io.ReadAll(io.LimitReader(response.Body, maxErrors))
	failed := readHTTPError(response, said, p.transport.clock())
	return nil, kindOf(failed) == llm.ErrorRefused, failed
}

// readBody reads an answer that is not streamed.
func readBody(response *http.Response) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(response.Body, maxBody+1))
	if err != nil {
		return nil, fmt.Errorf("the answer was cut off: %w", err)
	}
	if len(data) > maxBody {
		return nil, fmt.Errorf("%w: more than %d bytes", errTooLarge, maxBody)
	}
	return data, nil
}

// call is one call of a model. It implements langchaingo's interface, and has fields for what that lacks.
type call struct {
	*provider
	request llm.Request
	form    requestForm
	stream  func(piece string) // nil: do not ask for a stream

	got    reply // the answer, perhaps incomplete
	pieces int   // events of a stream
}

var _ llms.Model = new(call)

// Call implements llms.Model.
func (c *call) Call(ctx context.Context, prompt string, options ...llms.CallOption) (string, error) {
	return llms.GenerateFromSinglePrompt(ctx, c, prompt, options...)
}

// GenerateContent implements llms.Model. The usage is reported even if the call fails, if the model may have begun
// to answer.
func (c *call) GenerateContent(
	ctx context.Context, messages []llms.MessageContent, options ...llms.CallOption,
) (*llms.ContentResponse, error) {
	var o llms.CallOptions
	for _, option := range options {
		option(&o)
	}
	write := func(body *bytes.Buffer) error { return c.preset.wire.write(body, c, messages, o) }
	response, begun, err := c.post(ctx, c.preset.wire.path(), write)
	if begun && c.request.Used != nil {
		defer func() { c.request.Used(c.usage()) }()
	}
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	stream, whole, err := openAnswer(response)
	if err != nil {
		return nil, err
	}
	events, size := c.preset.wire.events(), 0
	if stream == nil {
		_, err = events.event("", whole)
	} else {
		err = readEvents(stream, func(name string, data []byte) error {
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
	}
	got, finished := events.reply()
	c.got = got.cut()
	if err != nil && !finished && !errors.Is(err, errStop) {
		return nil, err
	}
	return &llms.ContentResponse{Choices: []*llms.ContentChoice{{Content: c.got.text, StopReason: c.got.stop}}}, nil
}

// countOrZero returns a count of tokens of a server; 0 if no call can have so many.
func countOrZero(n int) int {
	const most = 100_000_000
	if n < 0 || n > most {
		return 0
	}
	return n
}

// usage returns the tokens that the server counted, or else an estimate. An incomplete answer
// counts at least the tokens that arrived.
func (c *call) usage() llm.Usage {
	u := c.got.usage
	u.In, u.Out = countOrZero(u.In), countOrZero(u.Out)
	u.Cached = min(countOrZero(u.Cached), u.In)
	if u.In == 0 {
		u.In = int(tokensOf(c.request))
	}
	if u.Out == 0 || c.got.stop == "" {
		texts := []string{c.got.text}
		for _, call := range c.got.calls {
			texts = append(texts, string(call.Arguments))
		}
		u.Out = max(u.Out, c.pieces, llm.Tokens(texts...))
	}
	return u
}

// openAnswer returns an answer as a stream of events or, if the server does not stream it, as a whole: one event.
func openAnswer(response *http.Response) (stream io.Reader, whole []byte, err error) {
	kind, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type"))
	if kind == "text/event-stream" {
		return response.Body, nil, nil
	}
	whole, err = readBody(response)
	if err != nil {
		return nil, nil, err
	}
	start := bytes.TrimLeft(whole[:min(len(whole), 64)], " \r\n\t")
	isField := func(name string) bool { return bytes.HasPrefix(start, []byte(name)) }
	if slices.ContainsFunc([]string{"data:", "event:", "error:", ":"}, isField) { // a stream of another Content-Type
		return bytes.NewReader(whole), nil, nil
	}
	if !isObject(whole) {
		return nil, nil, errNoAnswer
	}
	return nil, whole, nil
}

// cut shortens an answer to maxAnswer bytes, and drops its tool calls, if it is longer. Without a
// stop reason it then counts as truncated.
func (r reply) cut() reply {
	size := len(r.text)
	for _, c := range r.calls {
		size += len(c.Arguments)
	}
	if size <= maxAnswer {
		return r
	}
	return reply{text: strings.ToValidUTF8(r.text[:min(len(r.text), maxAnswer)], ""), usage: r.usage}
}
