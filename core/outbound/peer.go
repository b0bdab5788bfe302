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

// Peer is a private destination that is allowed: an address ("10.0.0.5"), a range ("10.0.0.0/8")
// or a name ("search.lan"). An address or name may have a port ("127.0.0.1:8080",
// "[::1]:8080"), which is then the only one allowed. Addresses and ranges also cover names that
// resolve to them; a name covers only itself. The zero Peer covers nothing.
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
	host = normalHost(host)
	if host == "" || strings.ContainsAny(host, "/:@?#[] \t\n*") || numeric(host) {
		return Peer{}, errors.New("write an address, a range like 10.0.0.0/8, or a host; a range has no port")
	}
	return Peer{name: host, port: port}, nil
}

// PeerOf returns the host and port of a URL, or the zero Peer if it has none.
func PeerOf(u *url.URL) Peer {
	port := portOf(u)
	if u.Hostname() == "" || port == "" {
		return Peer{}
	}
	p, _ := ParsePeer(net.JoinHostPort(u.Hostname(), port))
	return p
}

// portOf returns the port of a URL, or the default one of its scheme, or "".
func portOf(u *url.URL) string {
	return cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443"}[u.Scheme])
}

// normalHost normalises a host name for comparison.
func normalHost(host string) string { return strings.ToLower(strings.TrimSuffix(host, ".")) }

// covers reports whether p allows a connection to addr, to which host was resolved.
func (p Peer) covers(host, port string, addr netip.Addr) bool {
	switch {
	case p.port != "" && p.port != port:
		return false
	case p.prefix.IsValid():
		return p.prefix.Contains(addr.Unmap().WithZone(""))
	}
	return p.name != "" && p.name == host
}

// String returns the peer in the form that ParsePeer reads.
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
