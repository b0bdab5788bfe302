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

// TestInto: what a group's numbers meant does not go with a message to the supergroup
// that it became.
func TestInto(t *testing.T) {
	c := &Client{}
	r := Request{Chat: -4242, Params: Params{"message_thread_id": "7", "reply_parameters": `{"message_id":3}`, "text": "x"}}
	if err := c.retarget(&r, -1001); err != nil || r.Chat != -1001 || fmt.Sprint(r.Params) != "map[text:x]" {
		t.Errorf("%v, %v", r.Params, err)
	}
	r = Request{Chat: -4242, Params: Params{"message_id": "7"}}
	if err := c.retarget(&r, -1001); err == nil {
		t.Errorf("%v", r.Params)
	}
}

// TestUnsure: only what may have reached the platform is in doubt.
func TestUnsure(t *testing.T) {
	for err, want := range map[error]bool{
		&NetError{Unknown: true}: true, &NetError{}: false,
		&Error{Code: 500}: true, &Error{Code: 502}: false, &Error{Code: 503}: false,
		&Error{Code: 504}: true, &Error{Code: 499}: false, errors.New("something of our own"): false,
	} {
		if got := OutcomeUnknown(err); got != want {
			t.Errorf("%v is in doubt: %v", err, got)
		}
	}
}

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
				t.Fatalf("31 calls within %v", times[i+30].Sub(times[i]))
			}
		}
	})
}

// newClient makes a client of a server in memory. Its hooks do nothing.
func newClient(t *testing.T, w *telegramtest.Server) *Client {
	t.Helper()
	c, err := New(Options{
		Name: "telegram", URL: w.URL, Token: telegramtest.Token, Timeout: time.Minute, State: nothing{}, Dial: w.Dial,
		Clock: time.Now, Log: slog.New(slog.DiscardHandler),
		Hooks: Hooks{
			Chat: func(chat int64) int64 { return chat }, Revoked: func(error) {}, Admin: func(string) {},
			Migrated: func(context.Context, int64, int64) {},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// nothing is a State that forgets.
type nothing struct{}

func (nothing) Get(context.Context, string) ([]byte, error) { return nil, nil }
func (nothing) Put(context.Context, string, []byte) error   { return nil }

// readyAfter lets time pass and checks whether the client is ready then.
func readyAfter(t *testing.T, c *Client, pause time.Duration, want bool) {
	t.Helper()
	time.Sleep(pause)
	if err := c.Ready(); (err == nil) != want {
		t.Errorf("after %s: %v", pause, err)
	}
}

// TestReadyByWebhook: the platform is asked whether it can call.
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
				t.Error("ready before it is connected")
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

// TestAnswers: an answer is read whole, however long it is said to be, and tells of success or failure.
// A result of another type than expected stays empty.
func TestAnswers(t *testing.T) {
	const sent = `{"ok":true,"result":{"message_id":7}}`
	long := `{"ok":true,"result":{"message_id":7,"text":"` + strings.Repeat("x", 5000) + `"}}`
	for name, c := range map[string]struct {
		answer  string
		length  string // that the server announces; "": it sends the answer in pieces
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
		"too long":       {sent, strconv.Itoa(maxAnswer + 1), 0, true},
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
			URL: server.URL, Token: telegramtest.Token, Timeout: time.Minute, State: nothing{}, Clock: time.Now,
		})
		if err != nil {
			t.Fatal(err)
		}
		var m struct {
			Number int64 `json:"message_id"`
		}
		err = client.Try(t.Context(), &Request{Method: "sendMessage", Params: Params{"text": "x"}, Result: &m})
		if m.Number != c.want || (err != nil) != c.unknown || OutcomeUnknown(err) != c.unknown {
			t.Errorf("%s: %d, %v", name, m.Number, err)
		}
		client.Close()
		server.Close()
	}
}

// TestCredentials: what api_url names before the host is sent as HTTP expects it.
func TestCredentials(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name, password, _ := r.BasicAuth()
		_, _ = fmt.Fprintf(w, `{"ok":true,"result":%q}`, name+":"+password)
	}))
	defer server.Close()
	client, err := New(Options{
		URL: strings.Replace(server.URL, "://", "://jay:s%20t@", 1), Token: telegramtest.Token, Timeout: time.Minute,
		State: nothing{}, Clock: time.Now,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	var got string
	err = client.Try(t.Context(), &Request{Method: "getMe", Params: Params{}, Result: &got})
	if got != "jay:s t" || err != nil {
		t.Errorf("%s, %v", got, err)
	}
}
