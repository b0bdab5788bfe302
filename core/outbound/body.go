package outbound

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"

	"synthbot/core"
)

// limitedBody limits the size of response bodies. Its error is a *http.MaxBytesError.
type limitedBody struct {
	next *http.Transport
	max  int64
}

// RoundTrip implements http.RoundTripper.
func (t *limitedBody) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := t.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if resp.ContentLength > t.max && r.Method != http.MethodHead {
		_ = resp.Body.Close()
		return nil, &http.MaxBytesError{Limit: t.max}
	}
	resp.Body = http.MaxBytesReader(nil, resp.Body, t.max)
	return resp, nil
}

// CloseIdleConnections is called by http.Client.CloseIdleConnections.
func (t *limitedBody) CloseIdleConnections() { t.next.CloseIdleConnections() }

// Read reads and closes a response's body. It returns what it has read even with an error.
func Read(resp *http.Response) ([]byte, error) {
	data, err := io.ReadAll(resp.Body)
	return data, errors.Join(err, resp.Body.Close())
}

// Fault converts an error of a request to one with a text for users. It removes the URL, which may
// contain a secret, from the error that is logged.
func Fault(err error) *core.Error {
	if already, ok := errors.AsType[*core.Error](err); ok {
		return already
	}
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err
	}
	kind, text := core.Broken, "The request to the server failed."
	var dns *net.DNSError
	var timeout net.Error
	var large *http.MaxBytesError
	switch {
	case errors.Is(err, ErrPrivate):
		kind, text = core.Forbidden, "That address is not a public one, so I may not open it."
	case errors.Is(err, ErrRedirect):
		text = "The server redirects to another address, which is not allowed."
	case errors.As(err, &large):
		text = "The server's answer is too large."
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		kind, text = core.Temporary, "The server took too long to answer."
	case errors.As(err, &dns) && dns.IsNotFound:
		text = "There is no server of that name."
	case errors.As(err, &timeout):
		kind, text = core.Temporary, "The server cannot be reached."
	}
	return &core.Error{Kind: kind, Text: text, Err: err}
}
