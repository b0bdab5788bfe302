package outbound

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"synthbot/core"
)

// names returns a resolver that only knows the names of table.
func names(t *testing.T, table map[string]string) func(context.Context, string) ([]netip.Addr, error) {
	return func(_ context.Context, host string) (addrs []netip.Addr, err error) {
		list, ok := table[host]
		if !ok {
			t.Errorf("%q was looked up", host)
			return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
		}
		for text := range strings.FieldsSeq(list) {
			addrs = append(addrs, netip.MustParseAddr(text))
		}
		return addrs, nil
	}
}

func get(t *testing.T, c *http.Client, url string) (string, error) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrPrivate, err) // refused before it was sent
	}
	resp, err := c.Do(r)
	if err != nil {
		return "", err
	}
	data, err := Read(resp)
	return string(data), err
}

// private lists URLs of private addresses in different forms. P stands for the port of a server
// that listens on every loopback address.
var private = []string{
	// this host
	"http://127.0.0.1:P/", "http://127.1.2.3:P/", "http://localhost:P/", "http://LOCALHOST:P/", "http://localhost.:P/", "http://a.b.localhost:P/",
	"http://127.0.0.1.:P/", "http://0.0.0.0:P/", "http://0:P/", "http://[::]:P/", "http://[::1]:P/", "http://[0:0:0:0:0:0:0:1]:P/", "http://[0000::0001]:P/",
	"http://user@127.0.0.1:P/", "http://example.com@127.0.0.1:P/", "http://127.0.0.1:P/?http://example.com", "http://127.0.0.1:P#@example.com/",
	// other spellings
	"http://2130706433:P/", "http://0x7f000001:P/", "http://0X7F000001:P/", "http://017700000001:P/", "http://127.1:P/", "http://127.0.1:P/",
	"http://0177.0.0.1:P/", "http://0x7f.0.0.1:P/", "http://0x7f.1:P/", "http://127.0.0.01:P/", "http://00127.0.0.1:P/", "http://127.0.0.0x1:P/",
	"http://3232235777/", "http://192.168.257/", "http://0xa9fea9fe/", "http://4294967296127.0.0.1/",
	"http://１２７.０.０.１:P/", "http://①②⑦.⓪.⓪.①:P/", "http://127。0。0。1:P/", "http://%31%32%37.0.0.1:P/", "http://127%2e0.0.1:P/", "http://ⓛocalhost:P/",
	// IPv4 inside of IPv6
	"http://[::ffff:127.0.0.1]:P/", "http://[::ffff:7f00:1]:P/", "http://[::ffff:0:127.0.0.1]/", "http://[::127.0.0.1]/", "http://[64:ff9b::127.0.0.1]/", "http://[64:ff9b::a00:1]/",
	"http://[64:ff9b:1::a00:1]/", "http://[2002:7f00:1::]/", "http://[2001:0:4136:e378:8000:63bf:80ff:fffe]/",
	// networks
	"http://10.0.0.1/", "http://10.255.255.255/", "http://172.16.0.1/", "http://172.31.255.255/", "http://192.168.1.1/", "http://100.64.0.1/",
	"http://169.254.169.254/latest/meta-data/", "http://192.0.0.192/", "http://198.18.0.1/", "http://192.0.2.1/", "http://198.51.100.1/", "http://203.0.113.1/",
	"http://224.0.0.1/", "http://240.0.0.1/", "http://255.255.255.255/", "http://[fc00::1]/", "http://[fd00:ec2::254]/", "http://[fe80::1]/", "http://[fe80::1%25lo]/",
	"http://[::1%25lo]:P/", "http://[fec0::1]/", "http://[ff02::1]/", "http://[2001:db8::1]/", "http://[3fff::1]/", "http://[100::1]/",
	// names
	"http://inside.example/", "http://INSIDE.example/", "http://inside.example./", "http://six.example/", "http://mapped.example/", "http://metadata.example/",
	"http://both.example/", "http://nat.example/", "https://inside.example/", "http://zone.example/",
}

func TestPrivateAddressesAreRefused(t *testing.T) {
	table := map[string]string{
		"inside.example": "10.1.2.3", "six.example": "fd12::1", "mapped.example": "::ffff:192.168.0.1", "metadata.example": "169.254.169.254",
		"both.example": "127.0.0.1 ::1", "nat.example": "64:ff9b::c0a8:1", "zone.example": "fe80::1%lo",
	}
	var hits atomic.Int32
	srv := everywhere(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { hits.Add(1) }))
	_, port, _ := net.SplitHostPort(srv)
	c := New(Options{Lookup: names(t, table), Redirects: 3, Elsewhere: true})
	defer c.CloseIdleConnections()
	for _, u := range private {
		if _, err := get(t, c, strings.Replace(u, ":P", ":"+port, 1)); !errors.Is(err, ErrPrivate) {
			t.Errorf("%s: unexpected error %v", u, err)
		}
	}
	if hits.Load() > 0 || len(private) < 25 {
		t.Errorf("%d of %d URLs reached a server, want none", hits.Load(), len(private))
	}
	if _, err := get(t, New(Options{Allow: peers(t, "127.0.0.0/8")}), "http://127.1.2.3:"+port); err != nil || hits.Load() != 1 {
		t.Errorf("the test server cannot be reached at all: %v", err)
	}
}

// everywhere serves on every address of this host and returns one of them.
func everywhere(t *testing.T, h http.Handler) string {
	t.Helper()
	l, err := net.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	srv := &httptest.Server{Listener: l, Config: &http.Server{Handler: h}}
	srv.Start()
	t.Cleanup(srv.Close)
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return "127.0.0.1:" + port
}

func peers(t *testing.T, texts ...string) (list []Peer) {
	t.Helper()
	for _, text := range texts {
		p, err := ParsePeer(text)
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		list = append(list, p)
	}
	return list
}

func TestPublic(t *testing.T) {
	for text, want := range map[string]bool{
		"93.184.216.34": true, "8.8.8.8": true, "172.15.255.255": true, "172.32.0.0": true, "100.63.255.255": true, "11.0.0.0": true, "223.255.255.255": true,
		"2606:4700::1111": true, "::ffff:8.8.8.8": true, "64:ff9b::808:808": true, "2a00::1": true,
		"::": false, "::1": false, "::ffff:10.0.0.1": false, "4000::1": false, "64:ff9b::a00:1": false, "2606:4700::1111%eth0": false,
	} {
		if got := Public(netip.MustParseAddr(text)); got != want {
			t.Errorf("%s is public: got %v, want %v", text, got, want)
		}
	}
	if Public(netip.Addr{}) {
		t.Error("an invalid address counts as public")
	}
}

func TestPeers(t *testing.T) {
	for text, want := range map[string]string{
		"10.0.0.0/8": "10.0.0.0/8", "10.1.2.3/8": "10.0.0.0/8", "127.0.0.1": "127.0.0.1", "127.0.0.1:80": "127.0.0.1:80", "::1": "::1", "[::1]:80": "[::1]:80",
		"Search.Lan": "search.lan", "search.lan.:8080": "search.lan:8080", "::ffff:127.0.0.1": "127.0.0.1",
	} {
		var p Peer
		if err := p.UnmarshalText([]byte(text)); err != nil || p.String() != want {
			t.Errorf("%s: unexpected peer %s, %v", text, p, err)
		}
	}
	for _, text := range []string{"", ":80", "a b", "http://x", "x:0", "x:99999", "x:y", "10.0.0.0/99", "127.1", "0x7f.1", "*.lan", "x/y", "[::1"} {
		if p, err := ParsePeer(text); err == nil {
			t.Errorf("%q was parsed as %s, want an error", text, p)
		}
	}
	for text, want := range map[string]string{
		"http://127.0.0.1": "127.0.0.1:80", "https://x.lan/a?b": "x.lan:443", "http://[::1]:8/": "[::1]:8", "file:///x": "", "//": "", "http://0x7f.1/": "",
	} {
		u, err := url.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := PeerOf(u); got.String() != want {
			t.Errorf("%s: unexpected result %s", text, got)
		}
	}
}

func TestListedPeersAreReached(t *testing.T) {
	addr := everywhere(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "here") }))
	_, port, _ := net.SplitHostPort(addr)
	table := map[string]string{"a.lan": "127.0.0.2 127.0.0.1", "b.lan": "127.0.0.1"}
	for _, tc := range []struct {
		allow, url string
		ok         bool
	}{
		{"127.0.0.1", "http://127.0.0.1:P", true},
		{"127.0.0.1", "http://127.0.0.2:P", false},
		{"127.0.0.1:1", "http://127.0.0.1:P", false},
		{addr, "http://127.0.0.1:P", true},
		{"127.0.0.0/8", "http://localhost:P", true},
		{"127.0.0.1", "http://a.lan:P", true}, // at the address that is listed
		{"a.lan", "http://a.lan:P", true},
		{"a.lan:1", "http://a.lan:P", false},
		{"a.lan", "http://b.lan:P", false},
		{"a.lan", "http://127.0.0.1:P", false},
	} {
		c := New(Options{Allow: peers(t, tc.allow), Lookup: names(t, table)})
		got, err := get(t, c, strings.Replace(tc.url, ":P", ":"+port, 1))
		if tc.ok && (err != nil || got != "here") || !tc.ok && !errors.Is(err, ErrPrivate) {
			t.Errorf("%s allowed, %s requested: unexpected body %q, %v", tc.allow, tc.url, got, err)
		}
		c.CloseIdleConnections()
	}
}

func TestNamesThatChangeTheirMind(t *testing.T) {
	addr := everywhere(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	_, port, _ := net.SplitHostPort(addr)
	answers := []string{"127.0.0.1", "127.0.0.2"}
	lookups := 0
	c := New(Options{Allow: peers(t, "127.0.0.1"), Lookup: func(context.Context, string) ([]netip.Addr, error) {
		lookups++
		return []netip.Addr{netip.MustParseAddr(answers[(lookups-1)%2])}, nil
	}})
	if _, err := get(t, c, "http://rebind.example:"+port); err != nil || lookups != 1 {
		t.Fatalf("unexpected: %d lookups for one connection: %v", lookups, err)
	}
	c.CloseIdleConnections()
	if _, err := get(t, c, "http://rebind.example:"+port); !errors.Is(err, ErrPrivate) || lookups != 2 {
		t.Errorf("unexpected: %d lookups: %v", lookups, err)
	}
}

func TestRedirects(t *testing.T) {
	addr := everywhere(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if to := r.URL.Query().Get("to"); to != "" {
			http.Redirect(w, r, to, http.StatusFound)
			return
		}
		_, _ = io.WriteString(w, "end")
	}))
	_, port, _ := net.SplitHostPort(addr)
	loop := "/?to=" + url.QueryEscape("/?to=%2F") // two redirects
	for _, tc := range []struct {
		o    Options
		to   string
		want error
	}{
		{Options{}, "/", ErrRedirect},
		{Options{Redirects: 1}, "/", nil},
		{Options{Redirects: 1}, loop, ErrRedirect},
		{Options{Redirects: 9}, "http://127.0.0.1:1/", ErrRedirect},
		{Options{Redirects: 9}, "http://a.lan:P/", ErrRedirect},
		{Options{Redirects: 9, Elsewhere: true}, "http://a.lan:P/", nil},
		{Options{Redirects: 9, Elsewhere: true}, "http://127.0.0.2:P/", ErrPrivate},
		{Options{Redirects: 9, Elsewhere: true}, "http://localhost.localdomain@[::1]:P/", ErrPrivate},
		{Options{Redirects: 9, Elsewhere: true}, "http://0x7f.2:P/", ErrPrivate},
		{Options{Redirects: 9, Elsewhere: true}, "http://b.lan:P/", ErrPrivate},
		{Options{Redirects: 9, Elsewhere: true}, "//169.254.169.254/", ErrPrivate},
	} {
		tc.o.Allow = peers(t, "127.0.0.1")
		tc.o.Lookup = names(t, map[string]string{"a.lan": "127.0.0.1", "b.lan": "127.0.0.2"})
		c := New(tc.o)
		to := strings.Replace(tc.to, ":P", ":"+port, 1)
		got, err := get(t, c, "http://"+addr+"/?to="+url.QueryEscape(to))
		if !errors.Is(err, tc.want) || tc.want == nil && got != "end" {
			t.Errorf("%+v to %s: unexpected body %q, %v", tc.o, tc.to, got, err)
		}
		c.CloseIdleConnections()
	}
}

func TestSameSite(t *testing.T) {
	for _, tc := range []struct {
		from, to string
		want     bool
	}{
		{"http://a/", "http://A:80/x", true}, {"http://a/", "https://a/", true}, {"http://a:8080/", "https://a/", true},
		{"https://a/", "http://a/", false}, {"https://a/", "https://a:8443/", false}, {"http://a/", "http://a:81/", false}, {"https://a/", "https://b/", false},
	} {
		from, _ := url.Parse(tc.from)
		to, _ := url.Parse(tc.to)
		if got := sameSite(from, to); got != tc.want {
			t.Errorf("%s to %s is the same site: got %v, want %v", tc.from, tc.to, got, tc.want)
		}
	}
}

func TestBodiesAreCapped(t *testing.T) {
	text := strings.Repeat("x", 1000)
	addr := everywhere(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/sized":
			_, _ = io.WriteString(w, text)
		case "/stream":
			w.(http.Flusher).Flush()
			_, _ = io.WriteString(w, text)
		case "/bomb":
			var b bytes.Buffer
			z := gzip.NewWriter(&b)
			_, _ = z.Write(bytes.Repeat([]byte{0}, 10<<20))
			_ = z.Close()
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write(b.Bytes())
		}
	}))
	for _, tc := range []struct {
		max  int64
		path string
		n    int
		over bool
	}{
		{1000, "/sized", 1000, false}, {1000, "/stream", 1000, false},
		{0, "/sized", 1000, false}, {999, "/sized", 0, true}, {999, "/stream", 999, true}, {1, "/stream", 1, true},
		{50_000, "/bomb", 50_000, true}, {0, "/bomb", DefaultBody, true},
	} {
		c := New(Options{MaxBody: tc.max, Allow: peers(t, addr)})
		got, err := get(t, c, "http://"+addr+tc.path)
		var large *http.MaxBytesError
		if len(got) != tc.n || (err != nil) != tc.over || tc.over && !errors.As(err, &large) {
			t.Errorf("at most %d of %s: unexpected %d bytes, %v", tc.max, tc.path, len(got), err)
		}
		c.CloseIdleConnections()
	}
}

func TestSlowServers(t *testing.T) {
	release := make(chan struct{})
	addr := everywhere(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.(http.Flusher).Flush() // sends the header but never the body
		select {
		case <-release:
		case <-r.Context().Done():
		}
	}))
	defer close(release)
	c := New(Options{Timeout: 30 * time.Millisecond, Allow: peers(t, addr)})
	defer c.CloseIdleConnections()
	_, err := get(t, c, "http://"+addr)
	if f := Fault(err); err == nil || f.Kind != core.Temporary || !strings.Contains(f.Text, "too long") {
		t.Errorf("unexpected error %v", err)
	}
}

func TestProxiesAreNotAsked(t *testing.T) {
	// net/http reads the environment once in a process, so a request cannot
	// show here whether a proxy would be used.
	if New(Options{}).Transport.(*limitedBody).next.Proxy != nil {
		t.Error("requests go to a proxy, which could dial any address")
	}
}

func TestFault(t *testing.T) {
	secret := "https://example.org/?key=s3cret"
	for _, tc := range []struct {
		err  error
		kind core.ErrorKind
		text string
	}{
		{ErrPrivate, core.Forbidden, "not a public one"},
		{ErrRedirect, core.Broken, "redirects to another address"},
		{&http.MaxBytesError{}, core.Broken, "too large"},
		{context.DeadlineExceeded, core.Temporary, "too long"},
		{&net.DNSError{IsNotFound: true}, core.Broken, "no server of that name"},
		{&net.OpError{Op: "dial", Err: errors.New("refused")}, core.Temporary, "cannot be reached"},
		{errors.New("odd"), core.Broken, "request to the server failed"},
		{core.Errorf(core.Invalid, "mine"), core.Invalid, "mine"},
	} {
		f := Fault(&url.Error{Op: "Get", URL: secret, Err: fmt.Errorf("x: %w", tc.err)})
		if f.Kind != tc.kind || !strings.Contains(f.Text, tc.text) || strings.Contains(f.Error(), "s3cret") {
			t.Errorf("%v: unexpected fault %v", tc.err, f)
		}
	}
}

// FuzzPeer: a peer is printed as it was written, so that an administrator sees what is allowed.
func FuzzPeer(f *testing.F) {
	for _, text := range []string{"10.0.0.0/8", "[::1]:80", "a.lan:1", "127.0.0.1", "x.:9"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := ParsePeer(text)
		if err != nil {
			return
		}
		if again, err := ParsePeer(p.String()); err != nil || again != p || p == (Peer{}) {
			t.Errorf("%q was parsed as %q, and that as %q: %v", text, p, again, err)
		}
	})
}
