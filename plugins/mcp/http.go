package mcp

import (
	"context"
	"io"
	"net/http"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"synthbot/core"
)

// reach makes the connection to a server that serves HTTP. The address is the
// configuration's own, so that it may be a private one; a redirect is the
// server's, and is not followed: it would take the headers along.
func (s *server) reach() (*link, error) {
	l := newLink()
	base, _ := http.DefaultTransport.(*http.Transport)
	next := base.Clone()
	l.transport = &mcp.StreamableClientTransport{
		Endpoint: s.conf.URL, MaxEventSize: maxFrame, MaxRetries: 1,
		HTTPClient: &http.Client{
			Transport:     &carrier{next: next, link: l, headers: s.conf.Headers},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
	l.work.Go(func() { <-l.ctx.Done(); next.CloseIdleConnections() })
	return l, nil
}

// carrier carries requests while the link lasts.
type carrier struct {
	next    http.RoundTripper
	link    *link
	headers map[string]core.Secret
}

// RoundTrip implements http.RoundTripper.
func (c *carrier) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(r.Context())
	unlink := context.AfterFunc(c.link.ctx, func() { cancel(context.Cause(c.link.ctx)) })
	done := func() { unlink(); cancel(nil) }
	r = r.Clone(ctx)
	for name, value := range c.headers {
		r.Header.Set(name, value.Reveal())
	}
	resp, err := c.next.RoundTrip(r)
	if err != nil {
		done()
		return nil, err
	}
	most := maxFrame // a message, or anything where it is a stream
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		most = -1
	}
	resp.Body = &released{&gauge{resp.Body, c.link, most}, done}
	return resp, nil
}

// released is a body that lets go of what it holds when it is closed.
type released struct {
	io.ReadCloser
	release func()
}

// Close implements io.Closer.
func (r *released) Close() error {
	defer r.release()
	return r.ReadCloser.Close()
}
