package outbound

import (
	"net/netip"
	"strings"
)

// closed are the ranges that no request from outside may lead to, besides all
// of IPv6 that is not 2000::/3: this host, private and shared networks, links,
// groups, documentation, benchmarks and what is reserved.
func closed() []netip.Prefix {
	return []netip.Prefix{
		netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("100.64.0.0/10"),
		netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("169.254.0.0/16"), netip.MustParsePrefix("172.16.0.0/12"),
		netip.MustParsePrefix("192.0.0.0/24"), netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("192.88.99.0/24"),
		netip.MustParsePrefix("192.168.0.0/16"), netip.MustParsePrefix("198.18.0.0/15"), netip.MustParsePrefix("198.51.100.0/24"),
		netip.MustParsePrefix("203.0.113.0/24"), netip.MustParsePrefix("224.0.0.0/4"), netip.MustParsePrefix("240.0.0.0/4"),
		netip.MustParsePrefix("2001::/23"), netip.MustParsePrefix("2001:db8::/32"), netip.MustParsePrefix("2002::/16"), netip.MustParsePrefix("3fff::/20"),
	}
}

// Public reports whether an address lies in the public internet. Of an address
// that carries an IPv4 address (mapped, or through NAT64) that one counts.
func Public(a netip.Addr) bool {
	if !a.IsValid() || a.Zone() != "" {
		return false
	}
	a = a.Unmap()
	nat64 := netip.MustParsePrefix("64:ff9b::/96")
	if nat64.Contains(a) {
		b := a.As16()
		a = netip.AddrFrom4([4]byte(b[12:]))
	}
	if a.Is6() && !netip.MustParsePrefix("2000::/3").Contains(a) {
		return false
	}
	for _, p := range closed() {
		if p.Contains(a) {
			return false
		}
	}
	return true
}

// numeric reports whether a host that is no address looks like one to some
// resolver: its last label is a number, decimal, octal or hexadecimal.
func numeric(host string) bool {
	last := host[strings.LastIndexByte(host, '.')+1:]
	if hex, ok := strings.CutPrefix(strings.ToLower(last), "0x"); ok {
		return strings.Trim(hex, "0123456789abcdef") == ""
	}
	return strings.Trim(last, "0123456789") == ""
}

// local reports whether a name means this host, whatever a resolver says.
func local(host string) bool {
	return host == "localhost" || strings.HasSuffix(host, ".localhost")
}
