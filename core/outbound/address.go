package outbound

import (
	"net/netip"
	"slices"
	"strings"
)

// blocked are the ranges that requests must not reach, besides all of IPv6 outside of 2000::/3: this host, private,
// shared and link-local networks, multicast, documentation, benchmarks and reserved addresses.
var blocked = prefixes(`
	0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24
	192.0.2.0/24 192.88.99.0/24 192.168.0.0/16 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24
	224.0.0.0/4 240.0.0.0/4 2001::/23 2001:db8::/32 2002::/16 3fff::/20`)

func prefixes(list string) (all []netip.Prefix) {
	for text := range strings.FieldsSeq(list) {
		all = append(all, netip.MustParsePrefix(text))
	}
	return all
}

// Public reports whether an address is in the public internet. If it contains an IPv4
// address (IPv4-mapped or NAT64), that one counts.
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
	return !slices.ContainsFunc(blocked, func(p netip.Prefix) bool { return p.Contains(a) })
}

// numeric reports whether some resolvers may read a host name as an address, because its last
// label is a decimal, octal or hexadecimal number.
func numeric(host string) bool {
	last := host[strings.LastIndexByte(host, '.')+1:]
	if hex, ok := strings.CutPrefix(strings.ToLower(last), "0x"); ok {
		return strings.Trim(hex, "0123456789abcdef") == ""
	}
	return strings.Trim(last, "0123456789") == ""
}
