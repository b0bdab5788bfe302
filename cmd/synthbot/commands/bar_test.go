package commands

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"synthbot/core/coretest"
	"synthbot/interfaces/telegram/telegramtest"
)

// slow is a model that answers "ok" once its gate is open, and counts those who wait.
type slow struct {
	*httptest.Server
	waiting atomic.Int64
}

// newSlow returns a model with a gate that opens when it is closed; nil: it is open.
func newSlow(t testing.TB, gate <-chan struct{}) *slow {
	s := new(slow)
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.waiting.Add(1)
		defer s.waiting.Add(-1)
		var asked json.RawMessage
		_ = json.NewDecoder(r.Body).Decode(&asked)
		if gate != nil {
			select {
			case <-gate:
			case <-r.Context().Done():
				return
			}
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"choices":[{"message":{"role":"assistant","content":"{\"response\":\"ok\"}"},"finish_reason":"stop"}]}`)
	}))
	t.Cleanup(s.Close)
	return s
}

// TestInFlight: ten chats wait for the model when the program is asked to end, or
// killed; after the restart each has its answer, once.
func TestInFlight(t *testing.T) {
	if testing.Short() {
		t.Skip("starts and ends the program")
	}
	for _, sign := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		t.Run(sign.String(), func(t *testing.T) {
			gate := make(chan struct{})
			model := newSlow(t, gate)
			k := newKillTest(t, model.URL)
			for i := range 10 {
				chat := int64(1000 + i)
				k.platform.Say(chat, chat, telegramtest.Saying{Text: "hello"})
			}
			c := synthbotCommand(t, "run", "-c", k.file)
			c.Stdout, c.Stderr = k.log, k.log
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			until(t, func() bool { return model.waiting.Load() == 10 })
			if err := c.Process.Signal(sign); err != nil {
				t.Fatal(err)
			}
			close(gate)
			_ = c.Wait()
			k.runUntil(func() {
				for i := range 10 {
					hears(t, k.platform, int64(1000+i), 1)
				}
			})
			for i := range 10 {
				if texts := hears(t, k.platform, int64(1000+i), 1); len(texts) != 1 {
					t.Errorf("chat %d was answered with %q\n%s", i, texts, k.tail())
				}
			}
		})
	}
}

// until polls for what is to come, mostly asleep: on a slow machine, what it waits for needs the processor.
func until(t testing.TB, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(coretest.Patience); time.Now().Before(end); {
		began := time.Now()
		if ok() {
			return
		}
		time.Sleep(max(2*time.Millisecond, 4*time.Since(began)))
	}
	t.Fatal("it never happened")
}

// TestManyChats: 200 messages over 20 chats, with a model that takes 200 ms and
// answers nobody before all chats wait for it. The time that they take is logged.
func TestManyChats(t *testing.T) {
	var waiting atomic.Int64
	together := make(chan struct{})
	platform, _ := atTelegram(t, newGatedEchoModel(t, func(ctx context.Context) {
		if waiting.Add(1) == killChats {
			close(together)
		}
		select {
		case <-together:
			time.Sleep(200 * time.Millisecond)
		case <-ctx.Done():
		}
	}), "")
	for i := range killChats {
		platform.AddPerson(telegramtest.Person{ID: int64(1000 + i), Name: fmt.Sprint("P", i)})
	}
	began := time.Now()
	for n := range 200 {
		chat := int64(1000 + n%killChats)
		platform.Say(chat, chat, telegramtest.Saying{Text: fmt.Sprintf("m%d", n)})
	}
	until(t, func() bool { return answered(platform, 200) == 200 })
	took := time.Since(began)
	t.Logf("200 messages over 20 chats with a model of 200 ms: %v", took.Round(time.Millisecond))
	for text, n := range replies(platform) {
		if n > 1 {
			t.Errorf("%q stands %d times", text, n)
		}
	}
}
