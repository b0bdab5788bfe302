package engine

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"synthbot/core/llm"
	"synthbot/core/secret"
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
			t.Errorf("%s: got %v, want %v", name, got, tc.want)
		}
	}
	s := newServer(t, body(429, `{}`, "Retry-After", "7"))
	if failed := failModel(t, s.model(), hello()); failed.After != 7*time.Second {
		t.Errorf("got %v", failed.After)
	}
}

// TestKeysStayOutOfErrors checks that no error contains a key, in any encoding or in a wrapped error.
func TestKeysStayOutOfErrors(t *testing.T) {
	key := "sk-a/b+c d%e&f="
	s := newServer(t, body(401, `{"error":{"message":"bad key sk-a/b+c d%e&f= or sk-a%2Fb%2Bc+d%25e%26f%3D in the URL"}}`))
	m := s.model(func(c *Config) { c.APIKey = secret.New(key) })
	_, err := m.Generate(bounded(t), hello())
	for e := err; e != nil; e = errors.Unwrap(e) {
		if strings.Contains(e.Error(), "sk-a") {
			t.Errorf("%T: got %v", e, e)
		}
	}
	if !strings.Contains(err.Error(), "[secret]") {
		t.Errorf("got %v", err)
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
		case llm.ErrorRetryLater, llm.ErrorFatal, llm.ErrorRefused, llm.ErrorTooLong:
		default:
			t.Fatalf("kind %q", kindOf(e))
		}
	})
}

func TestKinds(t *testing.T) {
	for name, tc := range map[string]struct {
		status int
		body   string
		want   llm.ErrorKind
	}{
		"timeout":         {408, ``, llm.ErrorRetryLater},
		"conflict":        {409, ``, llm.ErrorRetryLater},
		"too early":       {425, ``, llm.ErrorRetryLater},
		"limited":         {429, ``, llm.ErrorRetryLater},
		"broken":          {500, ``, llm.ErrorRetryLater},
		"not found":       {404, ``, llm.ErrorFatal},
		"teapot":          {418, ``, llm.ErrorFatal},
		"filter":          {400, `{"error":{"code":"content_filter"}}`, llm.ErrorRefused},
		"filter is down":  {500, `{"error":{"message":"the moderation service is down"}}`, llm.ErrorRetryLater},
		"long is down":    {503, `{"error":{"message":"cannot tell the context length"}}`, llm.ErrorRetryLater},
		"no money":        {402, `{"error":{"message":"check your billing"}}`, llm.ErrorFatal},
		"no money, later": {429, `{"error":{"code":"insufficient_quota"}}`, llm.ErrorFatal},
		"a list":          {429, ` [ {"error":{"status":"RESOURCE_EXHAUSTED","message":"later"}}]`, llm.ErrorRetryLater},
	} {
		e := readHTTPError(&http.Response{StatusCode: tc.status}, []byte(tc.body), time.Now())
		if got := kindOf(e); got != tc.want || e.status != tc.status || e.text == "" && e.code == "" {
			t.Errorf("%s: got %s, %+v", name, got, e)
		}
	}
	for said, want := range map[string]httpError{
		`{"code":99,"message":"x"}`:                      {text: "x"},
		`{"code":100,"message":"x"}`:                     {text: "x", status: 100},
		`{"code":599,"message":"x"}`:                     {text: "x", status: 599},
		`{"code":600,"message":"x"}`:                     {text: "x"},
		`{"code":"","type":"t","status":"S"}`:            {code: "t"},
		`{"code":"c","type":"t","status":"S"}`:           {code: "c"},
		`{"status":"S","n_ctx":4096}`:                    {code: "S", sizes: sizes{limit: 4096}},
		`{"n_ctx":4096,"n_prompt_tokens":5000}`:          {sizes: sizes{prompt: 5000, limit: 4096}},
		`{"n_prompt_tokens":5000,"message":"limit 100"}`: {text: "limit 100", sizes: sizes{limit: 100}},
	} {
		if got := parseErrorValue([]byte(said)); *got != want {
			t.Errorf("%s: got %+v, want %+v", said, *got, want)
		}
	}
}

// TestWorst checks which of several failures is reported: the one that may end soonest.
func TestWorst(t *testing.T) {
	e := func(kind llm.ErrorKind, after time.Duration) *llm.Error {
		return &llm.Error{Kind: kind, After: after}
	}
	for _, list := range [][]*llm.Error{
		{e(llm.ErrorRetryLater, 3), e(llm.ErrorFatal, 1)},
		{e(llm.ErrorFatal, 1), e(llm.ErrorRetryLater, 3), e(llm.ErrorRetryLater, 5)},
		{e(llm.ErrorRetryLater, 5), e(llm.ErrorRetryLater, 3)},
		{e(llm.ErrorTooLong, 1), e(llm.ErrorRetryLater, 3), e(llm.ErrorRefused, 2)},
	} {
		got := joinErrors(list)
		if got.Kind != llm.ErrorRetryLater || got.After != 3 || !errors.Is(got, list[0]) || !errors.Is(got, list[1]) {
			t.Errorf("worst: got %+v", got)
		}
	}
	for _, pair := range [][2]llm.ErrorKind{{llm.ErrorTooLong, llm.ErrorRefused}, {llm.ErrorRefused, llm.ErrorFatal}} {
		if got := joinErrors([]*llm.Error{e(pair[1], 0), e(pair[0], 0)}); got.Kind != pair[0] {
			t.Errorf("worst: got %s, want %s", got.Kind, pair[0])
		}
	}
	alone := []*llm.Error{e(llm.ErrorRefused, 2)}
	if joinErrors(alone).Kind != llm.ErrorRefused {
		t.Error("worst of one failure: got another one")
	}
}
