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

// capped refuses bodies over a limit, with a *http.MaxBytesError.
type capped struct {
	next *http.Transport
	max  int64
}

// RoundTrip implements http.RoundTripper.
func (t *capped) RoundTrip(r *http.Request) (*http.Response, error) {
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

// CloseIdleConnections lets http.Client.CloseIdleConnections through.
func (t *capped) CloseIdleConnections() { t.next.CloseIdleConnections() }

// Read reads and closes a response's body. It returns what it read beside an
// error.
func Read(resp *http.Response) ([]byte, error) {
	data, err := io.ReadAll(resp.Body)
	return data, errors.Join(err, resp.Body.Close())
}

// Fault says what went wrong with a request, in words for users. It leaves the URL, which may
// hold a secret, out of what is logged.
func Fault(err error) *core.Error {
	if already, ok := errors.AsType[*core.Error](err); ok {
		return already
	}
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err
	}
	kind, text := core.Broken, "The server could not be asked."
	var dns *net.DNSError
	var timeout net.Error
	var large *http.MaxBytesError
	switch {
	case errors.Is(err, ErrPrivate):
		kind, text = core.Forbidden, "That address is not a public one, and may not be asked."
	case errors.Is(err, ErrRedirect):
		text = "The server wants to send the request elsewhere, which is not allowed."
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
