package botapi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"synthbot/interfaces/telegram/telegramtest"
)

// TestRetarget: when a group became a supergroup, parameters with message or topic ids of the
// group are removed from a request. A request about one message is refused.
func TestRetarget(t *testing.T) {
	c := &Client{}
	r := Request{Chat: -4242, Params: Params{"message_thread_id": "7", "reply_parameters": `{"message_id":3}`, "text": "x"}}
	if err := c.retarget(&r, -1001); err != nil || r.Chat != -1001 || fmt.Sprint(r.Params) != "map[text:x]" {
		t.Errorf("got %v, %v, want only the text", r.Params, err)
	}
	r = Request{Chat: -4242, Params: Params{"message_id": "7"}}
	if err := c.retarget(&r, -1001); err == nil {
		t.Errorf("got %v, want an error", r.Params)
	}
}

// TestOutcomeUnknown: the outcome of a failed call is unknown only if the platform may have
// carried it out.
func TestOutcomeUnknown(t *testing.T) {
	for err, want := range map[error]bool{
		&NetError{Unknown: true}: true, &NetError{}: false,
		&Error{Code: 500}: true, &Error{Code: 502}: false, &Error{Code: 503}: false,
		&Error{Code: 504}: true, &Error{Code: 499}: false, errors.New("something of our own"): false,
	} {
		if got := OutcomeUnknown(err); got != want {
			t.Errorf("OutcomeUnknown(%v) = %v, want %v", err, got, want)
		}
	}
}

// TestWindow: at most 30 calls are made within a second.
func TestWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPacer(true)
		var times []time.Time
		for range 100 {
			if err := p.wait(t.Context(), 0, true); err != nil {
				t.Fatal(err)
			}
			times = append(times, time.Now())
		}
		for i := range times[:70] {
			if times[i+30].Sub(times[i]) < time.Second {
				t.Fatalf("got 31 calls within %v, want at least a second", times[i+30].Sub(times[i]))
			}
		}
	})
}

// newClient returns a client of a server in memory. Its hooks do nothing.
func newClient(t *testing.T, w *telegramtest.Server) *Client {
	t.Helper()
	c, err := New(Options{
		Name: "telegram", URL: w.URL, Token: telegramtest.Token, Timeout: time.Minute, State: emptyState{}, Dial: w.Dial,
		Clock: time.Now, Log: slog.New(slog.DiscardHandler),
		Chat: func(chat int64) int64 { return chat }, Revoked: func(error) {}, Admin: func(string) {},
		Migrated: func(context.Context, int64, int64) {},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// emptyState is a State that stores nothing.
type emptyState struct{}

func (emptyState) Get(context.Context, string) ([]byte, error) { return nil, nil }
func (emptyState) Put(context.Context, string, []byte) error   { return nil }

// readyAfter sleeps and then checks whether the client is ready.
func readyAfter(t *testing.T, c *Client, pause time.Duration, want bool) {
	t.Helper()
	time.Sleep(pause)
	if err := c.Ready(); (err == nil) != want {
		t.Errorf("after %s: got %v, want ready: %v", pause, err, want)
	}
}

// TestReadyByWebhook: with a webhook, a client is ready while the platform reports that it
// can call it.
func TestReadyByWebhook(t *testing.T) {
	const url = "https://bot.example.org/hook"
	for _, set := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			w, stop := telegramtest.InMemory()
			t.Cleanup(stop)
			w.AddPerson(telegramtest.Person{ID: 1000, Name: "Jay"})
			c := newClient(t, w)
			ctx, cancel := context.WithCancel(t.Context())
			if set {
				if err := c.setWebhook(ctx, Webhook{URL: url}, `["message"]`); err != nil {
					t.Fatal(err)
				}
			}
			over := make(chan struct{})
			go func() { c.watchHook(ctx, url); close(over) }()
			if c.Ready() == nil {
				t.Error("ready before the first check")
			}
			readyAfter(t, c, 5*time.Minute, set)
			if set {
				w.Say(1000, 1000, telegramtest.Saying{Text: "hello"})
				w.Unreachable()
				readyAfter(t, c, 10*time.Minute, false)
			}
			cancel()
			<-over
		})
	}
}

// TestResponses: a response is read completely, with or without a declared length. The outcome
// of a call whose response is incomplete or invalid is unknown. A result of an unexpected type
// stays empty.
func TestResponses(t *testing.T) {
	const sent = `{"ok":true,"result":{"message_id":7}}`
	long := `{"ok":true,"result":{"message_id":7,"text":"` + strings.Repeat("x", 5000) + `"}}`
	for name, c := range map[string]struct {
		answer  string
		length  string // the declared length; if empty, the response is sent in pieces
		want    int64
		unknown bool
	}{
		"in one piece":   {sent, strconv.Itoa(len(sent)), 7, false},
		"in pieces":      {long, "", 7, false},
		"without number": {`{"ok":true,"result":true}`, "25", 0, false},
		"another number": {`{"ok":true,"result":{"message_id":"7"}}`, "", 0, false},
		"not ok":         {`{"ok":false,"description":"no"}`, "", 0, true},
		"no JSON":        {`<html>`, "6", 0, true},
		"cut off":        {sent, "100", 0, true},
		"cut in pieces":  {sent[:20], "", 0, true},
		"empty":          {``, "0", 0, true},
		"too long":       {sent, strconv.Itoa(32<<20 + 1), 0, true},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if c.length != "" {
				w.Header().Set("Content-Length", c.length)
			} else {
				w.(http.Flusher).Flush()
			}
			_, _ = io.WriteString(w, c.answer)
		}))
		client, err := New(Options{
			URL: server.URL, Token: telegramtest.Token, Timeout: time.Minute, State: emptyState{}, Clock: time.Now,
		})
		if err != nil {
			t.Fatal(err)
		}
		var m struct {
			Number int64 `json:"message_id"`
		}
		err = client.Try(t.Context(), &Request{Method: "sendMessage", Params: Params{"text": "x"}, Result: &m})
		if m.Number != c.want || (err != nil) != c.unknown || OutcomeUnknown(err) != c.unknown {
			t.Errorf("%s: got %d, %v, want %d, outcome unknown: %v", name, m.Number, err, c.want, c.unknown)
		}
		client.Close()
		server.Close()
	}
}

// TestCredentials: a user name and password in api_url are sent as HTTP basic authentication.
func TestCredentials(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name, password, _ := r.BasicAuth()
		_, _ = fmt.Fprintf(w, `{"ok":true,"result":%q}`, name+":"+password)
	}))
	defer server.Close()
	client, err := New(Options{
		URL: strings.Replace(server.URL, "://", "://jay:s%20t@", 1), Token: telegramtest.Token, Timeout: time.Minute,
		State: emptyState{}, Clock: time.Now,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	var got string
	err = client.Try(t.Context(), &Request{Method: "getMe", Params: Params{}, Result: &got})
	if got != "jay:s t" || err != nil {
		t.Errorf("got %s, %v, want jay:s t", got, err)
	}
	data, err := client.File(t.Context(), "photos/1.jpg", "", 100)
	if !strings.Contains(string(data), `"jay:s t"`) || err != nil {
		t.Errorf("downloading got %s, %v, want jay:s t", data, err)
	}
}
