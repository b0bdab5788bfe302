package blueprint

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"synthbot/core"
	"synthbot/core/action"
	"synthbot/core/outbound"
	"synthbot/core/program"
	"synthbot/core/txt"
)

// agent is what carries the tools of one blueprint out.
type agent struct {
	*Source
	blueprint *Blueprint
	client    *http.Client // nil: the program is run
	program   program.Program
	pace      *pace
}

// question is what an agent is asked by the protocol of blueprints.
type question struct {
	Tool    string          `json:"tool"`
	Input   json.RawMessage `json:"input"`
	Context *origin         `json:"context,omitempty"`
}

// origin says who asks, and where.
type origin struct {
	User    string `json:"userId,omitempty"`
	Session string `json:"sessionId"`
}

// call carries a tool out and returns its output.
func (a *agent) call(ctx context.Context, t *Tool, c core.Call) (json.RawMessage, error) {
	var input map[string]json.RawMessage
	if err := json.Unmarshal(c.Payload, &input); err != nil || input == nil {
		return nil, &core.Error{Kind: core.Invalid, Text: "The payload must be an object.", Err: err}
	}
	if err := a.pace.take(); err != nil {
		return nil, err
	}
	switch {
	case a.client == nil:
		return a.run(ctx, t, c)
	case t.Endpoint != (endpoint{}):
		return a.direct(ctx, t, c)
	}
	to, err := a.address(a.blueprint.invoke)
	if err != nil {
		return nil, err
	}
	q, err := request(ctx, a.blueprint.invoke.method(http.MethodPost), to, encode(a.question(t, c)))
	if err != nil {
		return nil, err
	}
	data, err := a.send(q, c.Key)
	return unwrap(a.blueprint.Name, data, err)
}

func (a *agent) question(t *Tool, c core.Call) question {
	q := question{Tool: t.Name, Input: c.Payload}
	if !a.Context {
		return q
	}
	q.Context = &origin{Session: c.Path.String()}
	if person, err := c.Path.Person(c.Author.ID); err == nil && c.Author.ID != "" {
		q.Context.User = person.String()
	}
	return q
}

// run asks the program.
func (a *agent) run(ctx context.Context, t *Tool, c core.Call) (json.RawMessage, error) {
	data, err := a.program.Run(ctx, encode(a.question(t, c)))
	if err != nil && len(data) == 0 {
		return nil, err
	}
	return unwrap(a.blueprint.Name, data, err)
}

// method is an endpoint's method, in capitals.
func (e endpoint) method(otherwise string) string {
	if e.Method == "" {
		return otherwise
	}
	return strings.ToUpper(e.Method)
}

// address is where an endpoint is: at its own URL only if that is below the
// agent's address.
func (a *agent) address(e endpoint) (*url.URL, error) {
	base := a.URL
	if base == "" {
		base = a.blueprint.Endpoint
	}
	u, err := url.Parse(base)
	if err != nil {
		return nil, &core.Error{Kind: core.Broken, Text: "The agent has no right address.", Err: err}
	}
	path := e.Path
	if own, err := url.Parse(e.URL); path == "" && err == nil && own.Host == u.Host {
		path = own.EscapedPath()
	}
	if path == "" {
		return u, nil
	}
	for part := range strings.SplitSeq(path, "/") {
		if plain, err := url.PathUnescape(part); err != nil || plain == ".." || plain == "." {
			return nil, core.Errorf(core.Invalid, "The agent's path is no right one.")
		}
	}
	return u.JoinPath(path), nil
}

// direct asks a tool that has an endpoint of its own.
func (a *agent) direct(ctx context.Context, t *Tool, c core.Call) (json.RawMessage, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(c.Payload, &fields); err != nil {
		return nil, &core.Error{Kind: core.Invalid, Text: "The payload cannot be read.", Err: err}
	}
	e, err := t.Endpoint.filled(fields)
	if err != nil {
		return nil, err
	}
	to, err := a.address(e)
	if err != nil {
		return nil, err
	}
	method, body := e.method(http.MethodPost), json.RawMessage(nil)
	if method == http.MethodGet || method == http.MethodDelete {
		values := to.Query()
		for name, value := range fields {
			values.Set(name, plain(value))
		}
		to.RawQuery = values.Encode()
	} else {
		body = encode(fields)
	}
	q, err := request(ctx, method, to, body)
	if err != nil {
		return nil, err
	}
	data, err := a.send(q, c.Key)
	if err != nil {
		_, err = unwrap(a.blueprint.Name, data, err)
		return nil, err
	}
	return output(data)
}

// filled puts fields into the braces of the path, and takes them out of the rest.
// A part that stays empty would make it the path of something else.
func (e endpoint) filled(fields map[string]json.RawMessage) (endpoint, error) {
	for name, value := range fields {
		place := "{" + name + "}"
		if !strings.Contains(e.Path, place) {
			continue
		}
		text := plain(value)
		if text == "" {
			return e, core.Errorf(core.Invalid, "%s must not be empty: it is a part of the address.", name)
		}
		e.Path = strings.ReplaceAll(e.Path, place, url.PathEscape(text))
		delete(fields, name)
	}
	if _, rest, open := strings.Cut(e.Path, "{"); open {
		name, _, _ := strings.Cut(rest, "}")
		return e, core.Errorf(core.Invalid, "%s is missing: it is a part of the address.", txt.Clip(name, 60))
	}
	return e, nil
}

// plain is a value as a path or a query holds it.
func plain(v json.RawMessage) string {
	var s string
	if json.Unmarshal(v, &s) == nil {
		return s
	}
	return string(v)
}

func request(ctx context.Context, method string, to *url.URL, body json.RawMessage) (*http.Request, error) {
	var r io.Reader
	if body != nil {
		r = bytes.NewReader(body)
	}
	q, err := http.NewRequestWithContext(ctx, method, to.String(), r)
	if err != nil {
		return nil, &core.Error{Kind: core.Broken, Text: "The agent has no right address.", Err: err}
	}
	if body != nil {
		q.Header.Set("Content-Type", "application/json")
	}
	return q, nil
}

// send sends a request and returns what came back. Beside an error stands what
// the agent said of it.
func (a *agent) send(q *http.Request, key core.Key) ([]byte, error) {
	q.Header.Set("Accept", "application/json, text/*;q=0.5")
	q.Header.Set("User-Agent", "synthbot")
	sum := sha256.Sum256([]byte(fmt.Sprint(key)))
	q.Header.Set("Idempotency-Key", hex.EncodeToString(sum[:16])) // the same in every try
	for name, value := range a.Headers {
		q.Header.Set(name, value.Reveal())
	}
	resp, err := a.client.Do(q)
	if err != nil {
		return nil, outbound.Fault(err)
	}
	data, err := outbound.Read(resp)
	if err != nil {
		return nil, outbound.Fault(err)
	}
	data = []byte(core.Conceal(slices.Collect(maps.Values(a.Headers))...).Replace(string(data))) // it may tell what it was told
	return data, status(resp, data)
}

// status is what the HTTP status says, nil where it is good.
func status(resp *http.Response, data []byte) error {
	code := resp.StatusCode
	detail := errors.New(txt.Clip(string(data), 500))
	switch {
	case code < 300:
		return nil
	case code == http.StatusTooManyRequests || code == http.StatusServiceUnavailable:
		return &core.Error{Kind: core.Temporary, Text: "The agent wants to be asked later.", After: after(resp), Err: detail}
	case code >= 500:
		return &core.Error{Kind: core.Temporary, Text: fmt.Sprintf("The agent has a fault of its own (%d).", code), Err: detail}
	case code == http.StatusUnauthorized || code == http.StatusForbidden:
		return &core.Error{Kind: core.Forbidden, Text: fmt.Sprintf("The agent does not permit that (%d).", code), Err: detail}
	}
	return &core.Error{Kind: core.Invalid, Text: fmt.Sprintf("The agent refused that (%d).", code), Err: detail}
}

// after is how long a server asks to be left alone; 0 where it does not say.
func after(resp *http.Response) time.Duration {
	seconds, err := strconv.Atoi(resp.Header.Get("Retry-After"))
	if err != nil || seconds < 0 || seconds > 86400 {
		return 0
	}
	return time.Duration(seconds) * time.Second
}

// output reads what a tool returned: JSON, or text.
func output(data []byte) (json.RawMessage, error) {
	data = bytes.TrimSpace(data)
	switch {
	case action.Nesting(data) > maxDepth:
		return nil, core.Errorf(core.Broken, "What came back is too deep.")
	case len(data) == 0, string(data) == "null":
		return json.RawMessage(`{"done":true}`), nil
	case json.Valid(data):
		return data, nil
	case utf8.Valid(data):
		return encode(string(data)), nil
	}
	return nil, core.Errorf(core.Broken, "What came back is neither JSON nor text.")
}

// unwrap takes the output out of what an agent says by the protocol. What it says
// of an error goes before what the transport says.
func unwrap(name string, data []byte, failed error) (json.RawMessage, error) {
	var said struct {
		Success *bool
		Output  json.RawMessage
		Error   struct{ Code, Message string }
	}
	known := action.Nesting(data) <= maxDepth && json.Unmarshal(data, &said) == nil && said.Success != nil
	switch {
	case known && !*said.Success:
		return nil, complaint(name, said.Error.Code, said.Error.Message, failed)
	case failed != nil:
		return nil, failed
	case known && len(said.Output) > 0:
		return output(said.Output)
	case known:
		return output(nil)
	}
	return output(data)
}

// complaint is an agent's own error. Its kind follows its code; where the
// transport knows it better, that one's.
func complaint(name, code, message string, failed error) error {
	text := strings.Join(strings.Fields(message), " ")
	if text == "" {
		text = strings.ToLower(strings.ReplaceAll(code, "_", " "))
	}
	e := &core.Error{Kind: core.Broken, Text: name + " says: " + txt.Clip(text, 300), Err: failed}
	var known *core.Error
	upper := strings.ToUpper(code)
	switch {
	case errors.As(failed, &known) && known.Kind != core.Broken:
		e.Kind, e.After = known.Kind, known.After
	case strings.Contains(upper, "RATE_LIMIT"), strings.Contains(upper, "UNAVAILABLE"), strings.Contains(upper, "TIMEOUT"):
		e.Kind = core.Temporary
	case strings.Contains(upper, "FORBIDDEN"), strings.Contains(upper, "UNAUTHORIZED"), strings.Contains(upper, "DENIED"):
		e.Kind = core.Forbidden
	case strings.Contains(upper, "INVALID"), strings.Contains(upper, "NOT_FOUND"), strings.Contains(upper, "INSUFFICIENT"):
		e.Kind = core.Invalid
	}
	return e
}
