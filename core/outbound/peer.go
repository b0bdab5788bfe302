package outbound

import (
	"cmp"
	"errors"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
)

// Peer may be reached though it is private: an address ("10.0.0.5"), a range ("10.0.0.0/8"),
// or a name ("search.lan"); an address and a name also with a port ("127.0.0.1:8080",
// "[::1]:8080"), which is then the only one. A range covers what a name resolves to, a name
// itself alone. The zero Peer covers nothing.
type Peer struct {
	prefix netip.Prefix
	name   string
	port   string
}

// ParsePeer reads a Peer.
func ParsePeer(text string) (Peer, error) {
	if p, err := netip.ParsePrefix(text); err == nil {
		return Peer{prefix: p.Masked()}, nil
	}
	host, port := text, ""
	if h, p, err := net.SplitHostPort(text); err == nil {
		host, port = h, p
	}
	if n, err := strconv.ParseUint(port, 10, 16); port != "" && (err != nil || n == 0) {
		return Peer{}, errors.New("the port must be a number from 1 to 65535")
	}
	if a, err := netip.ParseAddr(host); err == nil {
		a = a.Unmap()
		return Peer{prefix: netip.PrefixFrom(a, a.BitLen()), port: port}, nil
	}
	host = plain(host)
	if host == "" || strings.ContainsAny(host, "/:@?#[] \t\n*") || numeric(host) {
		return Peer{}, errors.New("write an address, a range like 10.0.0.0/8, or a host; a range has no port")
	}
	return Peer{name: host, port: port}, nil
}

// PeerOf is the host and port of a URL of the configuration; the zero Peer if it has none.
func PeerOf(u *url.URL) Peer {
	port := portOf(u)
	if u.Hostname() == "" || port == "" {
		return Peer{}
	}
	p, _ := ParsePeer(net.JoinHostPort(u.Hostname(), port))
	return p
}

// portOf is the port of a URL, or that of its scheme; "" if there is none.
func portOf(u *url.URL) string {
	return cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443"}[u.Scheme])
}

// plain is a host as names are compared.
func plain(host string) string { return strings.ToLower(strings.TrimSuffix(host, ".")) }

// covers reports whether a connection to addr, dialled as host, is one to p.
func (p Peer) covers(host, port string, addr netip.Addr) bool {
	switch {
	case p.port != "" && p.port != port:
		return false
	case p.prefix.IsValid():
		return p.prefix.Contains(addr.Unmap().WithZone(""))
	}
	return p.name != "" && p.name == host
}

// String writes the peer as ParsePeer reads it.
func (p Peer) String() string {
	host := p.name
	if p.prefix.IsValid() {
		host = p.prefix.String()
		if p.prefix.IsSingleIP() {
			host = p.prefix.Addr().String()
		}
	}
	if p.port == "" {
		return host
	}
	return net.JoinHostPort(host, p.port)
}

// MarshalText implements encoding.TextMarshaler.
func (p Peer) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (p *Peer) UnmarshalText(text []byte) (err error) {
	*p, err = ParsePeer(string(text))
	return err
}
