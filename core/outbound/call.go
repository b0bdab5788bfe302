package outbound

import (
	"bytes"
	"cmp"
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
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"synthbot/core"
	"synthbot/core/secret"
)

// Call is a request to a server that the configuration names.
type Call struct {
	Server  string // its name in errors ("The agent")
	Method  string
	URL     *url.URL
	Body    []byte                   // nil: none
	Type    string                   // of the body; "": JSON
	Accept  string                   // "": JSON or text
	Headers map[string]secret.Secret // their values are removed from the server's answer
	Key     core.Key                 // idempotency key of the step, the same in every attempt; zero: none
}

// request makes the HTTP request of the call.
func (c *Call) request(ctx context.Context) (*http.Request, error) {
	var body io.Reader
	if c.Body != nil {
		body = bytes.NewReader(c.Body)
	}
	r, err := http.NewRequestWithContext(ctx, c.Method, c.URL.String(), body)
	if err != nil {
		return nil, &core.Error{Kind: core.Broken, Text: c.Server + " has an invalid address.", Err: err}
	}
	r.Header.Set("Accept", cmp.Or(c.Accept, "application/json, text/*;q=0.5"))
	r.Header.Set("User-Agent", "synthbot")
	if c.Body != nil {
		r.Header.Set("Content-Type", cmp.Or(c.Type, "application/json"))
	}
	if c.Key != (core.Key{}) {
		sum := sha256.Sum256([]byte(fmt.Sprint(c.Key)))
		r.Header.Set("Idempotency-Key", hex.EncodeToString(sum[:16]))
	}
	for name, value := range c.Headers {
		r.Header.Set(name, value.Reveal())
	}
	return r, nil
}

// Send sends the call and returns the body of the response, also if the status is an error. Errors are a *core.Error.
func (c *Call) Send(ctx context.Context, client *http.Client) ([]byte, error) {
	r, err := c.request(ctx)
	if err != nil {
		return nil, err
	}
	resp, err := client.Do(r)
	if err != nil {
		return nil, Fault(err)
	}
	data, err := Read(resp)
	if err != nil {
		return nil, Fault(err)
	}
	if len(c.Headers) > 0 {
		data = []byte(secret.Conceal(slices.Collect(maps.Values(c.Headers))...).Replace(string(data)))
	}
	if resp.StatusCode < 300 {
		return data, nil
	}
	return data, c.refusal(resp, data)
}

// refusal returns the error for a status that is not a success.
func (c *Call) refusal(resp *http.Response, data []byte) *core.Error {
	code := resp.StatusCode
	kind, text := core.Invalid, fmt.Sprintf("%s refused that (%d).", c.Server, code)
	switch {
	case code == http.StatusTooManyRequests || code == http.StatusServiceUnavailable:
		kind, text = core.Temporary, c.Server+" is busy."
	case code >= 500:
		kind, text = core.Temporary, fmt.Sprintf("%s has an internal error (%d).", c.Server, code)
	case code == http.StatusUnauthorized || code == http.StatusForbidden:
		kind, text = core.Forbidden, fmt.Sprintf("%s does not permit that (%d).", c.Server, code)
	}
	const maxDetail = 500
	detail := strings.ToValidUTF8(string(data[:min(len(data), maxDetail)]), "")
	e := &core.Error{Kind: kind, Text: text, Err: errors.New(detail)}
	seconds, err := strconv.Atoi(resp.Header.Get("Retry-After"))
	if err == nil && seconds > 0 && seconds <= 86400 {
		e.After = time.Duration(seconds) * time.Second
	}
	return e
}

// Value returns a body as JSON: JSON unchanged, text as a string, and {"done":true} if it is empty.
func Value(body []byte) (json.RawMessage, error) {
	body = bytes.TrimSpace(body)
	switch {
	case len(body) == 0:
		return json.RawMessage(`{"done":true}`), nil
	case json.Valid(body):
		return body, nil
	case utf8.Valid(body):
		return core.JSON(string(body)), nil
	}
	return nil, core.Errorf(core.Broken, "The answer is neither JSON nor text.")
}

// Parameter returns a JSON value as text for a path or a query: a string without quotes.
func Parameter(v json.RawMessage) string {
	var s string
	if json.Unmarshal(v, &s) == nil {
		return s
	}
	return string(v)
}

var headerName = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")

// CheckHeaders reports the faults of headers in a configuration.
func CheckHeaders(headers map[string]secret.Secret, fault func(text string, at ...any)) {
	for name, value := range headers {
		switch {
		case !headerName.MatchString(name):
			fault("is not a valid header name", "headers", name)
		case strings.ContainsAny(value.Reveal(), "\r\n\x00"):
			fault("must not contain a line break", "headers", name)
		}
	}
}

// ServerURL parses the address of a server in a configuration. wrong says what is wrong with it; "" if it is valid.
func ServerURL(text string) (u *url.URL, wrong string) {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https":
		return nil, "is not an address; write it as https://host/path"
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return nil, "must not have a user name, password, query or fragment; put keys into headers"
	}
	return u, ""
}
