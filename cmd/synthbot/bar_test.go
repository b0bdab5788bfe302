package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"synthbot/core"
	"synthbot/core/coretest"
	"synthbot/interfaces/telegram/telegramtest"
	"synthbot/memory"
)

// slow is a model that answers "ok" after a while, and counts those who wait.
type slow struct {
	*httptest.Server
	takes   time.Duration
	waiting atomic.Int64
}

func newSlow(t testing.TB, takes time.Duration) *slow {
	s := &slow{takes: takes}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.waiting.Add(1)
		defer s.waiting.Add(-1)
		var asked json.RawMessage
		_ = json.NewDecoder(r.Body).Decode(&asked)
		if s.takes > 0 {
			select {
			case <-time.After(s.takes):
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
	model := newSlow(t, 300*time.Millisecond)
	for _, sign := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		t.Run(sign.String(), func(t *testing.T) {
			k := newKilling(t, model.URL)
			for i := range 10 {
				chat := int64(1000 + i)
				k.platform.Say(chat, chat, telegramtest.Saying{Text: "hello"})
			}
			c := exec.Command(k.binary, "run", "-c", k.file)
			c.Stdout, c.Stderr = k.log, k.log
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			until(t, func() bool { return model.waiting.Load() == 10 })
			if err := c.Process.Signal(sign); err != nil {
				t.Fatal(err)
			}
			_ = c.Wait()
			k.life(func() {
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

// until polls for what is to come.
func until(t testing.TB, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		if ok() {
			return
		}
	}
	t.Fatal("it never happened")
}

// TestManyChats: 200 messages over 20 chats, with a model that takes 200 ms. The
// bar is 3 seconds on a quiet machine; here it is held loosely, and logged.
func TestManyChats(t *testing.T) {
	platform, _ := atTelegram(t, echoAfter(t, 200*time.Millisecond), "")
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
	if took > 15*time.Second {
		t.Errorf("it took %v", took)
	}
	for text, n := range replies(platform) {
		if n > 1 {
			t.Errorf("%q stands %d times", text, n)
		}
	}
}

// BenchmarkLatency is the time from an update to the call that answers it, one
// after the other, with a model that takes no time, beside three commits on the
// same disk, by turns. The bars are 2 ms (median) and 4 ms (95th percentile) above
// those. Rounds in which the host of a virtual machine took the processor away
// are left out, as the kernel counts them.
func BenchmarkLatency(b *testing.B) {
	model := newSlow(b, 0)
	platform, _ := atTelegram(b, model.URL, "")
	platform.AddPerson(telegramtest.Person{ID: 1000, Name: "Jay"})
	arrived := make(chan time.Time, 1)
	platform.Delay(func(c telegramtest.Call) time.Duration {
		if c.Method == "sendMessage" {
			arrived <- c.At
		}
		return 0
	})
	threeCommits := commits(b, 3)
	var took, disk []time.Duration
	rounds, quiet := 0, 0
	for b.Loop() {
		before := coretest.Stolen()
		var its, own []time.Duration
		for range 20 {
			began := time.Now()
			platform.Say(1000, 1000, telegramtest.Saying{Text: "hello"})
			its = append(its, (<-arrived).Sub(began))
		}
		for range 20 {
			own = append(own, threeCommits())
		}
		if rounds++; coretest.Stolen() == before {
			quiet++
			took, disk = append(took, its...), append(disk, own...)
		}
	}
	if quiet == 0 {
		b.Skip("no round was quiet")
	}
	slices.Sort(took)
	slices.Sort(disk)
	b.ReportMetric(float64(quiet)/float64(rounds), "quiet")
	for _, percent := range []int{50, 95} {
		its, own := took[len(took)*percent/100], disk[len(disk)*percent/100]
		b.ReportMetric(ms(its), fmt.Sprintf("p%d-ms", percent))
		b.ReportMetric(ms(its-own), fmt.Sprintf("p%d-above-3commits-ms", percent))
	}
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// commits returns what does so many commits of a small entry, and says how long
// they took.
func commits(b *testing.B, so int) func() time.Duration {
	db, err := memory.Open(b.TempDir(), memory.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { db.Close() })
	place, n := core.MustPath("bench/1"), 0
	return func() time.Duration {
		began := time.Now()
		for range so {
			n++
			e := core.Entry{Event: core.Event{Kind: core.KindMessage, Message: core.Message{Path: place, ID: fmt.Sprint(n), Text: "hello", Time: began}}}
			if err := db.Commit(b.Context(), &core.Batch{Append: []core.Entry{e}}); err != nil {
				b.Fatal(err)
			}
		}
		return time.Since(began)
	}
}
