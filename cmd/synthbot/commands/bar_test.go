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

// gatedModel is a model that answers "ok" once its gate is closed, and counts the requests that wait.
type gatedModel struct {
	*httptest.Server
	waiting atomic.Int64
}

// newGatedModel starts a gated model. With a nil gate it answers at once.
func newGatedModel(t testing.TB, gate <-chan struct{}) *gatedModel {
	s := new(gatedModel)
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

// TestInFlight ends or kills the program while ten chats wait for the model. After the restart, each chat has
// exactly one answer.
func TestInFlight(t *testing.T) {
	if testing.Short() {
		t.Skip("starts and ends the program")
	}
	for _, sign := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		t.Run(sign.String(), func(t *testing.T) {
			gate := make(chan struct{})
			model := newGatedModel(t, gate)
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
					awaitReplies(t, k.platform, int64(1000+i), 1)
				}
			})
			for i := range 10 {
				if texts := awaitReplies(t, k.platform, int64(1000+i), 1); len(texts) != 1 {
					t.Errorf("chat %d: got %q, want one answer\n%s", i, texts, k.tail())
				}
			}
		})
	}
}

// until polls until ok returns true. It sleeps most of the time to leave the processor to the work that it
// waits for.
func until(t testing.TB, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(coretest.Patience); time.Now().Before(end); {
		began := time.Now()
		if ok() {
			return
		}
		time.Sleep(max(2*time.Millisecond, 4*time.Since(began)))
	}
	t.Fatal("timed out waiting for a condition")
}

// TestManyChats checks that 20 chats are answered in parallel: the model answers none before all of them wait
// for it. It logs how long 200 messages take.
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
			t.Errorf("%q was sent %d times, want once", text, n)
		}
	}
}
