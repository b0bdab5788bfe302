package discord

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net"
	"net/http"
	"net/textproto"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/bwmarrin/discordgo"

	"synthbot/core"
)

// Bounds of a request.
const (
	maxAnswer = 16 << 20 // bytes of an answer
	maxRefuse = 64 << 10 // bytes of a refusal
	maxTries  = 6        // of a request that the server cannot take just now
)

// request is one call of the REST interface.
type request struct {
	method string
	route  string   // with {} where an id stands; the first one is the one that limits hang on
	ids    []string // in order
	query  url.Values
	body   any
	files  []upload
	out    any  // where the answer goes; nil: it does not matter
	once   bool // not to be made again when it is unknown whether it worked
	fast   bool // an interaction: no limit holds for it, and it must not wait
}

// upload is a file that goes with a request.
type upload struct {
	name string
	data []byte
	mime string // "": said by the name alone
	alt  string // what a picture shows
}

// address fills the ids into the route.
func (r *request) address() string {
	var b strings.Builder
	rest, i := r.route, 0
	for {
		before, after, found := strings.Cut(rest, "{}")
		b.WriteString(before)
		if !found {
			break
		}
		b.WriteString(url.PathEscape(r.ids[i]))
		rest, i = after, i+1
	}
	if len(r.query) > 0 {
		b.WriteString("?" + r.query.Encode())
	}
	return b.String()
}

// key is what limits hang on before the server has named its bucket.
func (r *request) key() string {
	return r.method + " " + r.route
}

func (r *request) major() string {
	if len(r.ids) > 0 {
		return r.ids[0]
	}
	return ""
}

// encode makes the body.
func (r *request) encode() (contentType string, body []byte, err error) {
	if r.body == nil && len(r.files) == 0 {
		return "", nil, nil
	}
	text, err := json.Marshal(r.body)
	if err != nil || len(r.files) == 0 {
		return "application/json", text, err
	}
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	part, _ := w.CreatePart(textproto.MIMEHeader{"Content-Disposition": {`form-data; name="payload_json"`}, "Content-Type": {"application/json"}})
	_, _ = part.Write(text)
	for i, f := range r.files {
		part, _ := w.CreatePart(f.header(i))
		_, _ = part.Write(f.data) // a buffer takes everything
	}
	_ = w.Close()
	return w.FormDataContentType(), b.Bytes(), nil
}

// header says which file comes next.
func (u *upload) header(i int) textproto.MIMEHeader {
	kind := "application/octet-stream"
	if known, _, err := mime.ParseMediaType(u.mime); err == nil {
		kind = known
	}
	name := fmt.Sprintf(`form-data; name="files[%d]"; filename="%s"`, i, strings.NewReplacer(`"`, "", `\`, "", "\r", "", "\n", "").Replace(u.name))
	return textproto.MIMEHeader{"Content-Disposition": {name}, "Content-Type": {kind}}
}

// apiError is the server's refusal of a request.
type apiError struct {
	route  string
	status int
	code   int    // the platform's own; 0: none
	text   string // the platform's
	after  time.Duration
	global bool
}

func (e *apiError) Error() string {
	return fmt.Sprintf("%s: HTTP %d, code %d: %s", e.route, e.status, e.code, e.text)
}

func notFound(err error) bool {
	var api *apiError
	return errors.As(err, &api) && api.status == 404
}

// rest makes requests, one after the other where limits want that. Safe for
// concurrent use.
type rest struct {
	api    *url.URL
	sess   *discordgo.Session
	limits *limiter
	retry  time.Duration
	dead   func() // told when the token is refused
	files  *http.Transport
	clock  func() time.Time
	offset atomic.Int64 // how far the platform's clock is ahead of ours
}

// ahead is how far the platform's clock is ahead of ours, to a second or two.
func (r *rest) ahead() time.Duration { return time.Duration(r.offset.Load()) }

// clockAhead returns how far our clock is ahead of the platform's, in whole minutes.
func (r *rest) clockAhead() time.Duration { return -r.ahead().Round(time.Minute) }

// heard learns the platform's time from an answer.
func (r *rest) heard(h http.Header) {
	if at, err := http.ParseTime(h.Get("Date")); err == nil {
		r.offset.Store(int64(at.Sub(r.clock().Truncate(time.Second))))
	}
}

func newRest(s settings, t tempo, dial dial, clock func() time.Time, dead func()) *rest {
	sess, _ := discordgo.New("Bot " + s.Token.Reveal())
	sess.LogLevel = -1
	sess.UserAgent = "DiscordBot (synthbot, 1)"
	wires := newTransport(dial)
	sess.Client = &http.Client{
		Transport:     &transport{next: wires},
		Timeout:       2 * time.Minute,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return &rest{api: s.api, sess: sess, limits: newLimiter(s.Pace == "platform"), retry: t.retry, dead: dead, files: wires, clock: clock}
}

// close lets go of connections that nobody uses.
func (r *rest) close() { r.files.CloseIdleConnections() }

func newTransport(dial dial) *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.DialContext = dialing(dial)
	t.MaxIdleConnsPerHost = 16
	t.ResponseHeaderTimeout = 30 * time.Second
	return t
}

// do makes a request and waits as long as the server wants, within ctx. Its
// errors are *apiError where the server answered.
func (r *rest) do(ctx context.Context, q request) error {
	contentType, body, err := q.encode()
	if err != nil {
		return fmt.Errorf("%s: %w", q.route, err)
	}
	wait, doubt := r.retry, false
	for try := 1; ; try++ {
		if err = r.limits.enter(ctx, &q); err != nil {
			return doubted(fmt.Errorf("%s: %w: %w", q.route, errUnsent, err), doubt)
		}
		err = r.try(ctx, &q, contentType, body)
		doubt = doubt || unsure(err)
		pause, again := r.again(&q, err, wait)
		if ctx.Err() != nil || !again || try >= maxTries && !limited(err) || !sleep(ctx, pause) {
			return away(&q, doubted(err, doubt))
		}
		wait = min(2*wait, 20*time.Second)
	}
}

// away marks what the platform would take from nobody now: it refuses the bot, or
// there is no way to it.
func away(q *request, err error) error {
	var api *apiError
	answered := errors.As(err, &api)
	switch {
	case q.fast || !answered && !errors.Is(err, errDial):
		return err
	case !answered, api.refusesBot(), api.status == 502, api.status == 503:
		return fmt.Errorf("%w: %w", core.ErrAway, err)
	}
	return err
}

// Why nothing was sent, or may have been all the same.
var (
	errDial   = errors.New("not connected")
	errUnsent = errors.New("its turn did not come")
	errDoubt  = errors.New("an attempt before may have worked")
)

// doubted marks the error of the last of several attempts.
func doubted(err error, doubt bool) error {
	if err == nil || !doubt || unsure(err) {
		return err
	}
	return fmt.Errorf("%w: %w", errDoubt, err)
}

// unsure reports whether a request that failed may have worked all the same.
func unsure(err error) bool {
	var api *apiError
	switch {
	case err == nil:
		return false
	case errors.Is(err, errDoubt):
		return true
	case errors.As(err, &api):
		return api.status >= 500
	}
	return !errors.Is(err, errDial) && !errors.Is(err, errUnsent)
}

// refuses reports whether an error means that the platform did not take a request,
// and will not.
func refuses(err error) bool {
	var api *apiError
	return errors.As(err, &api) && api.status < 500 && !limited(err) && !unsure(err)
}

// dialing marks the errors of a dial.
func dialing(d dial) dial {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := d(ctx, network, addr)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errDial, err)
		}
		return c, nil
	}
}

// tokenOver is the platform's code for an interaction's token that is over, which it
// refuses as it does a bot's.
const tokenOver = 50027

// refusesBot reports whether the platform refuses the bot's own token.
func (e *apiError) refusesBot() bool { return e.status == 401 && e.code != tokenOver }

func limited(err error) bool {
	var api *apiError
	return errors.As(err, &api) && api.status == 429
}

// again decides whether a request is made once more, and after what pause; the
// limiter knows itself how long a limit lasts.
func (r *rest) again(q *request, err error, wait time.Duration) (time.Duration, bool) {
	var api *apiError
	switch {
	case err == nil:
		return 0, false
	case errors.As(err, &api):
		switch {
		case api.status == 429:
			r.limits.block(q, api)
			return time.Millisecond, !q.fast
		case api.status >= 500:
			return jitter(wait), !q.once
		case api.refusesBot() && !q.fast:
			r.dead()
		}
		return 0, false
	}
	return jitter(wait), !q.once
}

// try makes a request once, through the library but without its waiting: each
// request has a bucket of its own.
func (r *rest) try(ctx context.Context, q *request, contentType string, body []byte) error {
	var head http.Header
	ctx = context.WithValue(ctx, noteKey{}, &note{route: q.method + " " + q.route, head: &head})
	bucket := &discordgo.Bucket{Remaining: 1}
	bucket.Lock()
	answer, err := r.sess.RequestWithLockedBucket(q.method, r.api.String()+"/api/v"+discordgo.APIVersion+q.address(), contentType, body, bucket, 0,
		discordgo.WithContext(ctx), discordgo.WithRetryOnRatelimit(false), discordgo.WithRestRetries(0))
	r.limits.learn(q, head)
	r.heard(head)
	if err != nil {
		return bare(q, err)
	}
	if q.out == nil {
		return nil
	}
	if err := json.Unmarshal(answer, q.out); err != nil {
		return fmt.Errorf("%s: answer: %w", q.route, err)
	}
	return nil
}

// bare takes the address out of an error: it may hold a token.
func bare(q *request, err error) error {
	var api *apiError
	if errors.As(err, &api) {
		return api
	}
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	return fmt.Errorf("%s %s: %w", q.method, q.route, err)
}

// note carries what the transport must know of a request, and what it found.
type note struct {
	route string
	head  *http.Header
}

type noteKey struct{}

// transport makes typed errors of refusals, whatever their body, keeps limits
// from the library, which would wait by itself, and caps answers.
type transport struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := t.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	n, _ := r.Context().Value(noteKey{}).(*note)
	if n == nil {
		n = &note{head: new(http.Header)}
	}
	*n.head = resp.Header.Clone()
	if resp.StatusCode >= 300 {
		defer func() { _ = resp.Body.Close() }()
		return nil, refusal(n.route, resp)
	}
	for name := range resp.Header {
		if strings.HasPrefix(name, "X-Ratelimit-") || name == "Retry-After" {
			delete(resp.Header, name)
		}
	}
	resp.Body = capped{io.LimitReader(resp.Body, maxAnswer), resp.Body}
	return resp, nil
}

type capped struct {
	io.Reader
	io.Closer
}

// refusal reads a refusal; its body may be a page of HTML.
func refusal(route string, resp *http.Response) *apiError {
	e := &apiError{route: route, status: resp.StatusCode}
	text, _ := io.ReadAll(io.LimitReader(resp.Body, maxRefuse))
	var body struct {
		Code    int             `json:"code"`
		Message string          `json:"message"`
		After   float64         `json:"retry_after"`
		Global  bool            `json:"global"`
		Errors  json.RawMessage `json:"errors"`
	}
	if err := json.Unmarshal(text, &body); err != nil {
		// Not the API speaks but what stands before it, and it means everything.
		e.text, e.global = "no JSON", resp.StatusCode == 429
	} else {
		e.code, e.text, e.global = body.Code, short(body.Message+" "+string(body.Errors), 300), body.Global
		e.after = seconds(body.After)
	}
	// The header has whole seconds; the body is exact.
	if s, err := strconv.ParseFloat(resp.Header.Get("Retry-After"), 64); err == nil && e.after == 0 {
		e.after = seconds(s)
	}
	if e.status == 429 && e.after <= 0 {
		e.after = time.Second
	}
	if resp.Header.Get("X-RateLimit-Global") == "true" {
		e.global = true
	}
	return e
}

// seconds reads a duration of a server, which may be any number.
func seconds(s float64) time.Duration {
	const most = 24 * time.Hour
	if !(s > 0) {
		return 0
	}
	if s > most.Seconds() {
		return most
	}
	return time.Duration(s * float64(time.Second))
}

// answer is an answer that no server gave.
func answer(r *http.Request, text []byte) *http.Response {
	return &http.Response{
		StatusCode: http.StatusOK, Status: "200 OK", Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(text)), ContentLength: int64(len(text)), Request: r,
	}
}

// failure is an error of the platform, worded for people.
func failure(what string, err error) *core.Error {
	e := &core.Error{Kind: core.Temporary, Text: what + " did not work just now", Err: err}
	var api *apiError
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		e.Text = what + " took too long"
	case !errors.As(err, &api) || unsure(err):
	case api.status == 429:
		e.Kind, e.After, e.Text = core.Occupied, api.after, what+" must wait: Discord wants fewer requests"
	case api.refusesBot():
		e.Kind, e.Text = core.Broken, what+" is not possible: Discord refuses the bot's token"
	case api.status == 403:
		e.Kind, e.Text = core.Broken, what+" is not allowed to the bot here"
	case api.status == 404:
		e.Kind, e.Text = core.Broken, what+" is not possible: it is not there any more"
	case api.status == 400:
		e.Kind, e.Text = core.Invalid, what+" was refused by Discord: "+api.text
	}
	return e
}
