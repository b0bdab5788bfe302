package outbound

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"synthbot/core"
	"synthbot/core/secret"
)

// TestCall: the request has everything of the call, and the response hides the secrets of its
// headers.
func TestCall(t *testing.T) {
	var got *http.Request
	var body []byte
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r
		body, _ = io.ReadAll(r.Body)
		_, _ = io.WriteString(w, `{"key":"s3cret"}`)
	}))
	defer server.Close()
	address, _ := url.Parse(server.URL + "/x?a=1")
	call := Call{
		Server: "The agent", Method: http.MethodPost, URL: address, Body: []byte(`{"b":2}`),
		Headers: map[string]secret.Secret{"X-Key": secret.New("s3cret")},
		Key:     core.Key{Turn: core.TurnID{Path: core.MustPath("room/1"), Seq: 1}, Round: 1, Step: 1},
	}
	data, err := call.Send(t.Context(), server.Client())
	if err != nil || strings.Contains(string(data), "s3cret") {
		t.Fatalf("unexpected response %s, %v", data, err)
	}
	for name, want := range map[string]string{
		"Content-Type": "application/json", "X-Key": "s3cret", "Accept": "application/json, text/*;q=0.5",
	} {
		if v := got.Header.Get(name); v != want {
			t.Errorf("%s: got %q, want %q", name, v, want)
		}
	}
	if got.Method != http.MethodPost || got.URL.RequestURI() != "/x?a=1" || string(body) != `{"b":2}` {
		t.Errorf("unexpected request %s %s %s", got.Method, got.URL, body)
	}
	key := got.Header.Get("Idempotency-Key")
	if _, err := call.Send(t.Context(), server.Client()); err != nil || got.Header.Get("Idempotency-Key") != key || key == "" {
		t.Errorf("the key of the retry: got %q, %v, want %q", got.Header.Get("Idempotency-Key"), err, key)
	}
	call.Body, call.Key, call.Method, call.Accept = nil, core.Key{}, http.MethodGet, "text/html"
	if _, err := call.Send(t.Context(), server.Client()); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"Content-Type": "", "Idempotency-Key": "", "Accept": "text/html"} {
		if v := got.Header.Get(name); v != want {
			t.Errorf("without a body: %s: got %q, want %q", name, v, want)
		}
	}
	call.Method = "no method"
	var e *core.Error
	if _, err := call.Send(t.Context(), server.Client()); !errors.As(err, &e) || e.Kind != core.Broken {
		t.Errorf("an invalid request: unexpected error %v", err)
	}
}

// TestCallRefused: each status gives an error of its kind, together with the body.
func TestCallRefused(t *testing.T) {
	for status, kind := range map[int]core.ErrorKind{
		400: core.Invalid, 401: core.Forbidden, 403: core.Forbidden, 404: core.Invalid, 429: core.Temporary,
		500: core.Temporary, 503: core.Temporary,
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "7")
			w.WriteHeader(status)
			_, _ = io.WriteString(w, "why\xff")
		}))
		address, _ := url.Parse(server.URL)
		call := Call{Server: "The agent", Method: http.MethodGet, URL: address}
		data, err := call.Send(t.Context(), server.Client())
		var e *core.Error
		if !errors.As(err, &e) || e.Kind != kind || !strings.HasPrefix(e.Text, "The agent ") || e.After != 7*time.Second ||
			e.Err == nil || e.Err.Error() != "why" || string(data) != "why\xff" {
			t.Errorf("status %d: unexpected body %q or error %+v", status, data, err)
		}
		server.Close()
		if _, err := call.Send(t.Context(), server.Client()); !errors.As(err, &e) {
			t.Errorf("a server that is gone: unexpected error %v", err)
		}
	}
}

func TestValuesOfCalls(t *testing.T) {
	for body, want := range map[string]string{"": `{"done":true}`, " \n": `{"done":true}`, ` {"a":1} `: `{"a":1}`, "hi": `"hi"`} {
		if v, err := Value([]byte(body)); err != nil || string(v) != want {
			t.Errorf("%q: unexpected value %s, %v", body, v, err)
		}
	}
	if v, err := Value([]byte("\xff\xfe")); err == nil {
		t.Errorf("unexpected value of bytes that are not text: %s", v)
	}
	for value, want := range map[string]string{`"a b"`: "a b", `7`: "7", `true`: "true"} {
		if p := Parameter([]byte(value)); p != want {
			t.Errorf("%s: got %q, want %q", value, p, want)
		}
	}
}

func TestConfiguredServers(t *testing.T) {
	var faults []string
	CheckHeaders(map[string]secret.Secret{
		"X-Good": secret.New("x"), "a b": secret.New("x"), "X-Break": secret.New("x\ny"),
	}, func(text string, at ...any) { faults = append(faults, at[1].(string)+" "+text) })
	all := strings.Join(faults, "; ")
	if len(faults) != 2 || !strings.Contains(all, "a b is not a valid header name") || !strings.Contains(all, "X-Break must not contain a line break") {
		t.Errorf("unexpected faults %q", faults)
	}
	for text, ok := range map[string]bool{
		"https://example.org/x": true, "http://10.0.0.1:80": true, "ftp://example.org": false, "example.org": false,
		"https://u:p@example.org": false, "https://example.org?x=1": false,
		"https://example.org#x": false, "https://": false, ":": false,
	} {
		if _, wrong := ServerURL(text); ok != (wrong == "") {
			t.Errorf("%s: unexpected faults %q", text, wrong)
		}
	}
}
