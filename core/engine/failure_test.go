package engine

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"synthbot/core"
)

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		header []string
		want   time.Duration
	}{
		"none":          {nil, 0},
		"seconds":       {[]string{"Retry-After", "9"}, 9 * time.Second},
		"fraction":      {[]string{"Retry-After", " 1.5 "}, 1500 * time.Millisecond},
		"milliseconds":  {[]string{"Retry-After-Ms", "250", "Retry-After", "9"}, 250 * time.Millisecond},
		"date":          {[]string{"Retry-After", "Fri, 20 Nov 2026 12:01:00 GMT"}, time.Minute},
		"server's date": {[]string{"Retry-After", "Fri, 20 Nov 2026 15:01:00 GMT", "Date", "Fri, 20 Nov 2026 15:00:00 GMT"}, time.Minute},
		"past":          {[]string{"Retry-After", "Fri, 20 Nov 2020 12:01:00 GMT"}, 0},
		"negative":      {[]string{"Retry-After", "-5"}, 0},
		"far too long":  {[]string{"Retry-After", "1e300"}, 24 * time.Hour},
		"no number":     {[]string{"Retry-After", "NaN"}, 0},
		"words":         {[]string{"Retry-After", "soon"}, 0},
	} {
		h := make(http.Header)
		for i := 0; i+1 < len(tc.header); i += 2 {
			h.Set(tc.header[i], tc.header[i+1])
		}
		if got := retryAfter(h, now); got != tc.want {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
	s := newServer(t, body(429, `{}`, "Retry-After", "7"))
	if failed := fail(t, s.model(), hello()); failed.After != 7*time.Second {
		t.Errorf("%v", failed.After)
	}
}

// No key in an error, in whatever form it comes back, and none to be unwrapped.
func TestKeysStayOutOfErrors(t *testing.T) {
	key := "sk-a/b+c d%e&f="
	s := newServer(t, body(401, `{"error":{"message":"bad key sk-a/b+c d%e&f= or sk-a%2Fb%2Bc+d%25e%26f%3D in the URL"}}`))
	m := s.model(func(c *Config) { c.APIKey = core.NewSecret(key) })
	_, err := m.Generate(bounded(t), hello())
	for e := err; e != nil; e = errors.Unwrap(e) {
		if strings.Contains(e.Error(), "sk-a") {
			t.Errorf("%T: %v", e, e)
		}
	}
	if !strings.Contains(err.Error(), "[secret]") {
		t.Errorf("%v", err)
	}
}

func FuzzFailure(f *testing.F) {
	f.Add([]byte(`[{"error":{"code":400,"message":"x"}}]`), "12", 400)
	f.Add([]byte(`{"error":"text"}`), "Fri, 20 Nov 2026 12:01:00 GMT", 503)
	f.Add([]byte(`{"detail":[{"msg":"x"}]}`), "1e9", 422)
	f.Fuzz(func(t *testing.T, body []byte, after string, status int) {
		h := http.Header{"Retry-After": {after}}
		e := readHTTPError(&http.Response{StatusCode: status, Header: h}, body, time.Now())
		text := e.Error()
		if e.after < 0 || e.after > 24*time.Hour || !utf8.ValidString(text) || utf8.RuneCountInString(text) > 400 || strings.ContainsAny(text, "\r\n") {
			t.Fatalf("%v: %q", e.after, text)
		}
		switch kindOf(e) {
		case core.RetryLater, core.Fatal, core.Refused, core.TooLong:
		default:
			t.Fatalf("kind %q", kindOf(e))
		}
	})
}
