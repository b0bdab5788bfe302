// Package outbound makes HTTP clients for requests to addresses from other people's
// texts: a page that a model wants to read, a server that a blueprint names.
//
// A client checks the resolved address that it is about to dial, and refuses private
// ones. So neither unusual spellings, nor redirects, nor names that resolve differently
// later (DNS rebinding) lead into the bot's network. It limits redirects and decompressed
// bodies, and has no proxy and no cookies. Peers are private addresses that are allowed.
//
// It is not for addresses that only the configuration decides, such as those of platforms and engines.
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

// Errors of requests that a client refuses.
var (
	// ErrPrivate is the error for an address that is not public or not valid.
	ErrPrivate = errors.New("not a public address")
	// ErrRedirect is the error for too many redirects, or one to another host.
	ErrRedirect = errors.New("redirect refused")
)

// Defaults of Options.
const (
	DefaultTimeout = 30 * time.Second
	DefaultBody    = 1 << 20 // bytes
)

const (
	maxAddresses = 8 // how many addresses of a name are tried
	dialTimeout  = 5 * time.Second
	maxHeader    = 64 << 10
)

// Options of a client. The zero value allows only public addresses and no
// redirects, with DefaultTimeout and DefaultBody.
type Options struct {
	Allow     []Peer        // private addresses that may be reached
	Timeout   time.Duration // of a request, including its body; 0: DefaultTimeout
	MaxBody   int64         // bytes of a body, decompressed; 0: DefaultBody
	Redirects int           // how many are followed
	// Elsewhere allows redirects to other hosts, and from https to http. This is not
	// safe if headers contain secrets, because a client passes on most headers.
	Elsewhere bool
	// Lookup resolves a name, for tests; nil: the system's resolver.
	Lookup func(ctx context.Context, host string) ([]netip.Addr, error)
}

// New makes a client, which should be reused. It is safe for concurrent use.
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
		Transport: &limitedBody{max: o.MaxBody, next: &http.Transport{
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

// sameSite reports whether a redirect stays on the same host. It may change http to https.
func sameSite(from, to *url.URL) bool {
	if !strings.EqualFold(from.Hostname(), to.Hostname()) {
		return false
	}
	return from.Scheme == to.Scheme && portOf(from) == portOf(to) || from.Scheme == "http" && to.Scheme == "https"
}

// dial connects to the first address of a host that answers, among those that are public or allowed.
func (o *Options) dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	host = normalHost(host)
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

// addresses resolves a host. Without an error it returns at least one address.
func (o *Options) addresses(ctx context.Context, host string) ([]netip.Addr, error) {
	if a, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{a}, nil
	}
	switch {
	case host == "" || numeric(host):
		return nil, fmt.Errorf("%w: %q is not a valid host", ErrPrivate, host)
	case host == "localhost", strings.HasSuffix(host, ".localhost"): // regardless of the resolver
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
