package telegram

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"synthbot/core"
	"synthbot/core/coretest"
	"synthbot/interfaces/telegram/telegramtest"
)

// echo is an inbox that answers each message, in order within a place, with
// many places at once: a core without a model.
type echo struct {
	coretest.Inbox
	d      *Driver
	t      testing.TB
	ctx    context.Context
	mu     sync.Mutex
	lanes  map[core.Path]chan core.Message
	known  map[string]bool
	group  sync.WaitGroup
	failed func() bool
}

func newEcho(ctx context.Context, t testing.TB) *echo {
	return &echo{t: t, ctx: ctx, lanes: map[core.Path]chan core.Message{}, known: map[string]bool{}}
}

// Receive implements core.Inbox.
func (e *echo) Receive(_ context.Context, events ...core.Event) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.failed != nil && e.failed() {
		return context.DeadlineExceeded
	}
	for _, ev := range events {
		m := ev.Message
		key := m.Path.String() + " " + m.ID
		if ev.Kind != core.KindMessage || e.known[key] {
			continue
		}
		e.known[key] = true
		lane := e.lanes[m.Path]
		if lane == nil {
			lane = make(chan core.Message, 1024)
			e.lanes[m.Path] = lane
			e.group.Go(func() { e.answer(lane) })
		}
		lane <- m
	}
	return nil
}

func (e *echo) answer(lane <-chan core.Message) {
	for {
		select {
		case m := <-lane:
			payload := fmt.Sprintf(`{"text":"re: **%s**"}`, m.Text)
			for e.ctx.Err() == nil {
				if err := doCtx(e.ctx, e.t, e.d, "message_telegram", m.Path, payload, &coretest.Parts{}); err == nil {
					break
				} else if e.ctx.Err() == nil {
					e.t.Errorf("%s: %v", m.Text, err)
					return
				}
			}
		case <-e.ctx.Done():
			return
		}
	}
}

// faults fails 1 of 20 calls, in every way. A message is hit in flight once at
// most; hit tells which ones were.
type faults struct {
	mu     sync.Mutex
	random *rand.Rand
	hit    map[string]bool
	done   map[string]bool // hit after it was sent
}

func (f *faults) decide(c telegramtest.Call) telegramtest.Fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.random.IntN(20) != 0 {
		return telegramtest.Fault{}
	}
	kinds := []telegramtest.FaultKind{telegramtest.Limited, telegramtest.Internal, telegramtest.BadGateway, telegramtest.Unavailable,
		telegramtest.Reset, telegramtest.Cut, telegramtest.Hang, telegramtest.ResetAfter, telegramtest.CutAfter, telegramtest.HangAfter, telegramtest.Refused}
	fault := telegramtest.Fault{Kind: kinds[f.random.IntN(len(kinds))], RetryAfter: 1, Text: "Bad Request: can't parse entities: at a whim"}
	key := fmt.Sprint(c.Chat, strings.NewReplacer("<b>", "", "</b>", "").Replace(c.Params["text"]))
	switch fault.Kind {
	case telegramtest.Reset, telegramtest.Cut, telegramtest.Hang, telegramtest.ResetAfter, telegramtest.CutAfter, telegramtest.HangAfter:
		if f.hit[key] {
			return telegramtest.Fault{}
		}
		f.hit[key] = c.Method != "getUpdates"
		f.done[key] = f.done[key] || fault.Kind >= telegramtest.ResetAfter
	case telegramtest.Refused:
		if c.Method != "sendMessage" || c.Params["parse_mode"] == "" {
			return telegramtest.Fault{}
		}
	}
	return fault
}

// soak lets n messages come in over chats and looks at what stands.
func soak(t *testing.T, w *world, n, chats int, strict bool) {
	for i := range chats {
		w.AddPerson(telegramtest.Person{ID: int64(5000 + i), Name: "P"})
	}
	f := &faults{random: rand.New(rand.NewPCG(1, 2)), hit: map[string]bool{}, done: map[string]bool{}}
	w.Fail(f.decide)
	if strict {
		w.Strict()
	}
	ctx, cancel := context.WithCancel(context.Background())
	e := newEcho(ctx, t)
	storeFaults := rand.New(rand.NewPCG(3, 4))
	e.failed = func() bool { return storeFaults.IntN(50) == 0 }
	d, stop := w.run(t, e)
	e.d = d
	for i := range n {
		w.Say(int64(5000+i%chats), int64(5000+i%chats), telegramtest.Saying{Text: fmt.Sprintf("m%05d", i)})
	}
	standing := func() (all int) {
		for i := range chats {
			all += len(w.Messages(int64(5000 + i)))
		}
		return all
	}
	for last, same := -1, 0; same < 3; time.Sleep(2 * time.Minute) {
		now := standing()
		if same++; now != last {
			last, same = now, 0
		}
	}
	grown := runtime.NumGoroutine()
	cancel()
	e.group.Wait()
	if err := stop(); err != nil {
		t.Error(err)
	}
	for i := range chats {
		f.check(t, w.Messages(int64(5000+i)), i, n, chats)
	}
	if w.Early() > len(f.hit)/50+chats {
		t.Errorf("%d calls came early", w.Early())
	}
	if grown > chats+20 {
		t.Errorf("%d goroutines are left over %d chats", grown, chats)
	}
	t.Logf("%d messages stand for %d, %d hit in flight, %d early, %d goroutines at rest, lanes %d", standing(), n, len(f.hit), w.Early(), grown, len(d.pace.lanes))
}

// check holds what stands in a chat against what was said there.
func (f *faults) check(t *testing.T, list []telegramtest.Message, chat, n, chats int) {
	t.Helper()
	next := chat
	for i := 0; i < len(list); i++ {
		want := fmt.Sprintf("re: m%05d", next)
		if list[i].Text != want {
			t.Fatalf("chat %d: %q stands where %q should", chat, list[i].Text, want)
		}
		if i+1 < len(list) && list[i+1].Text == want {
			if !f.done[fmt.Sprint(5000+chat, want)] {
				t.Fatalf("chat %d: %q stands twice without a reason", chat, want)
			}
			i++
		}
		next += chats
	}
	if next < n {
		t.Fatalf("chat %d: nothing stands for m%05d", chat, next)
	}
}

func TestSoak(t *testing.T) {
	n := 10000
	if testing.Short() {
		n = 1000
	}
	bubble(t, nil, func(t *testing.T, w *world) { soak(t, w, n, 50, false) })
}

// TestSoakPaced is the same within the platform's limits, which it enforces.
func TestSoakPaced(t *testing.T) {
	bubble(t, paced, func(t *testing.T, w *world) { soak(t, w, 2000, 50, true) })
}

// BenchmarkLatency is the driver alone, from an update to sendMessage, one after
// the other; the store takes no time.
func BenchmarkLatency(b *testing.B) {
	w := newWorld(b, nil)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	e := newEcho(ctx, b)
	e.d = w.driver(b)
	done := make(chan error, 1)
	go func() { done <- e.d.Listen(ctx, e) }()
	sent := make(chan time.Time, 1)
	w.Fail(func(c telegramtest.Call) telegramtest.Fault {
		if c.Method == "sendMessage" {
			sent <- time.Now()
		}
		return telegramtest.Fault{}
	})
	var all []time.Duration
	for b.Loop() {
		began := time.Now()
		w.Say(jay, jay, telegramtest.Saying{Text: "hello"})
		all = append(all, (<-sent).Sub(began))
	}
	report(b, all)
	cancel()
	if err := <-done; err != nil {
		b.Error(err)
	}
	e.group.Wait()
}

// report gives the median and the 95th percentile.
func report(b *testing.B, all []time.Duration) {
	slices.Sort(all)
	b.ReportMetric(float64(all[len(all)/2].Microseconds()), "p50-µs")
	b.ReportMetric(float64(all[len(all)*95/100].Microseconds()), "p95-µs")
}
