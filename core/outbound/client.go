// Package outbound makes HTTP clients for requests that somebody else's text
// leads to: a page that a model wants to read, a server that a blueprint names.
//
// A client refuses private addresses where it dials, after the name was resolved
// and for the very address that is dialled, so that neither a spelling, nor a
// redirect, nor a name that changes its mind leads into the network of the bot.
// It limits bodies, decompressed, and redirects, and has neither proxy nor cookies. Private
// addresses that are allowed are listed as Peers.
//
// It is not for what the configuration alone decides, such as the address of a
// platform or of an engine.
package outbound

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"
)

// What a client refuses.
var (
	// ErrPrivate is what a request to an address that is not public, or that is
	// written in no right way, fails with.
	ErrPrivate = errors.New("not a public address")
	// ErrRedirect is what a request fails with that was sent on too often, or to
	// somewhere else.
	ErrRedirect = errors.New("redirect refused")
)

// Defaults of Options.
const (
	DefaultTimeout = 30 * time.Second
	DefaultBody    = 1 << 20 // bytes
)

const (
	maxAddresses = 8 // of one name that are tried
	dialTimeout  = 5 * time.Second
	maxHeader    = 64 << 10
)

// Options of a client. The zero value is the strictest one: public addresses
// only, no redirects, DefaultTimeout, DefaultBody.
type Options struct {
	Allow     []Peer        // private ones that may be reached
	Timeout   time.Duration // of a request, its body included; 0: DefaultTimeout
	MaxBody   int64         // bytes of a body, decompressed; 0: DefaultBody
	Redirects int           // how many are followed
	// Elsewhere lets redirects lead to other hosts, and lose https. Without it
	// they may not, since a client passes most headers on, secrets too.
	Elsewhere bool
	// Lookup resolves a name, for tests; nil: the system's resolver.
	Lookup func(ctx context.Context, host string) ([]netip.Addr, error)
}

// New makes a client. It is safe for concurrent use, and meant to be kept.
func New(o Options) *http.Client {
	o.Timeout, o.MaxBody = cmp.Or(o.Timeout, DefaultTimeout), cmp.Or(o.MaxBody, DefaultBody)
	if o.Lookup == nil {
		o.Lookup = func(ctx context.Context, host string) ([]netip.Addr, error) {
			return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
		}
	}
	return &http.Client{
		Timeout:       o.Timeout,
		CheckRedirect: o.redirect,
		Transport: &capped{max: o.MaxBody, next: &http.Transport{
			DialContext:            o.dial,
			ForceAttemptHTTP2:      true,
			MaxResponseHeaderBytes: maxHeader,
			MaxIdleConns:           16,
			IdleConnTimeout:        time.Minute,
			TLSHandshakeTimeout:    10 * time.Second,
		}},
	}
}

// redirect is a client's CheckRedirect.
func (o *Options) redirect(r *http.Request, via []*http.Request) error {
	if len(via) > o.Redirects {
		return fmt.Errorf("%w: more than %d", ErrRedirect, o.Redirects)
	}
	from := via[0].URL
	if !o.Elsewhere && !sameSite(from, r.URL) {
		return fmt.Errorf("%w: from %s to %s", ErrRedirect, from.Host, r.URL.Host)
	}
	return nil
}

// sameSite reports whether a redirect stays with who was asked. It may turn http
// into https.
func sameSite(from, to *url.URL) bool {
	if !strings.EqualFold(from.Hostname(), to.Hostname()) {
		return false
	}
	return from.Scheme == to.Scheme && portOf(from) == portOf(to) || from.Scheme == "http" && to.Scheme == "https"
}

// dial connects to the first address of a host that answers, among those that are
// public or listed.
func (o *Options) dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	host = plain(host)
	addrs, err := o.addresses(ctx, host)
	if err != nil {
		return nil, err
	}
	addrs = slices.DeleteFunc(addrs, func(a netip.Addr) bool {
		return !Public(a) && !slices.ContainsFunc(o.Allow, func(p Peer) bool { return p.covers(host, port, a) })
	})
	if len(addrs) == 0 {
		return nil, fmt.Errorf("%w: %s", ErrPrivate, host)
	}
	dialer := net.Dialer{Timeout: dialTimeout}
	for _, a := range addrs {
		var conn net.Conn
		if conn, err = dialer.DialContext(ctx, network, net.JoinHostPort(a.String(), port)); err == nil {
			return conn, nil
		}
	}
	return nil, err
}

// addresses resolves a host; it never returns none without an error.
func (o *Options) addresses(ctx context.Context, host string) ([]netip.Addr, error) {
	if a, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{a}, nil
	}
	switch {
	case host == "" || numeric(host):
		return nil, fmt.Errorf("%w: %q is not a valid host", ErrPrivate, host)
	case host == "localhost", strings.HasSuffix(host, ".localhost"): // whatever a resolver says
		return []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback()}, nil
	}
	addrs, err := o.Lookup(ctx, host)
	if err != nil {
		return nil, err
	}
	if len(addrs) == 0 {
		return nil, &net.DNSError{Err: "no address", Name: host, IsNotFound: true}
	}
	return slices.Clone(addrs[:min(len(addrs), maxAddresses)]), nil
}
