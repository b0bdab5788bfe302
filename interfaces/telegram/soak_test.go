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

// echo is an inbox that answers each message. Messages of a chat are answered in order,
// and chats at the same time.
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
			payload, parts := fmt.Sprintf(`{"text":"re: **%s**"}`, m.Text), &coretest.Parts{}
			send := func() error { return doCtx(e.ctx, e.t, e.d, "message_telegram", m.Path, payload, parts) }
			if err := coretest.Again(e.ctx, send); err != nil && e.ctx.Err() == nil {
				e.t.Errorf("%s: %v", m.Text, err)
			}
		case <-e.ctx.Done():
			return
		}
	}
}

// faults makes 1 of 20 calls fail, in every way. The outcome of a message becomes unknown
// once at most, because the driver gives up after the third time.
type faults struct {
	mu     sync.Mutex
	random *rand.Rand
	hit    map[string]bool // calls that failed with an unknown outcome
	done   map[string]bool // those of hit that the platform had carried out
}

func (f *faults) decide(c telegramtest.Call) telegramtest.Fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.random.IntN(20) != 0 {
		return telegramtest.Fault{}
	}
	kinds := []telegramtest.FaultKind{telegramtest.Limited, telegramtest.Internal, telegramtest.BadGateway,
		telegramtest.Unavailable,
		telegramtest.Reset, telegramtest.Cut, telegramtest.Hang, telegramtest.ResetAfter, telegramtest.CutAfter,
		telegramtest.HangAfter, telegramtest.Refused}
	fault := telegramtest.Fault{Kind: kinds[f.random.IntN(len(kinds))], RetryAfter: 1, Text: "Bad Request: can't parse entities: at a whim"}
	key := fmt.Sprint(c.Chat, strings.NewReplacer("<b>", "", "</b>", "").Replace(c.Params["text"]))
	switch fault.Kind {
	case telegramtest.Internal, telegramtest.BadGateway, telegramtest.Unavailable,
		telegramtest.Reset, telegramtest.Cut, telegramtest.Hang, telegramtest.ResetAfter, telegramtest.CutAfter,
		telegramtest.HangAfter:
		if f.hit[key] {
			return telegramtest.Fault{}
		}
		f.hit[key] = c.Method != "getUpdates"
		f.done[key] = f.done[key] || fault.Kind >= telegramtest.ResetAfter
	case telegramtest.Refused:
		if c.Method == "getUpdates" {
			return telegramtest.Fault{Kind: telegramtest.Refused, Code: 409, Text: "Conflict: terminated by other getUpdates request"}
		}
		if c.Method != "sendMessage" || c.Params["parse_mode"] == "" {
			return telegramtest.Fault{}
		}
	}
	return fault
}

// soaking is a driver under load.
type soaking struct {
	*world
	chats int
	f     *faults
	e     *echo
	d     *Driver
	early int // calls before the end of a rate limit
}

// soak sends n messages over a number of chats, in two halves. It checks the answers, and
// that the second half left no memory and no goroutines behind.
func soak(t *testing.T, w *world, n, chats int, strict bool) {
	ctx, cancel := context.WithCancel(context.Background())
	s := &soaking{world: w, chats: chats, e: newEcho(ctx, t), f: &faults{random: rand.New(rand.NewPCG(1, 2))}}
	for i := range chats {
		w.AddPerson(telegramtest.Person{ID: int64(5000 + i), Name: "P"})
	}
	w.Fail(s.f.decide)
	if strict {
		w.Strict()
	}
	storeFaults := rand.New(rand.NewPCG(3, 4))
	s.e.failed = func() bool { return storeFaults.IntN(50) == 0 }
	var stop func() error
	s.d, stop = w.run(t, s.e)
	s.e.d = s.d
	began := time.Now()
	before, goroutines := s.half(t, 0, n/2)
	after, more := s.half(t, n/2, n)
	took := time.Since(began)
	if after > before+256<<10 { // about 50 bytes a message
		t.Errorf("the second half left %d bytes behind, want at most %d", after-before, 256<<10)
	}
	if more > goroutines+2 || more > chats+20 {
		t.Errorf("got %d goroutines at the end and %d after the first half, for %d chats", more, goroutines, chats)
	}
	cancel()
	s.e.group.Wait()
	if err := stop(); err != nil {
		t.Error(err)
	}
	t.Logf("%d messages in %v of fake time; %d early calls; %d and %d goroutines at rest; %d KiB, then %d KiB", n, took, s.early, goroutines, more, before>>10, after>>10)
}

// half sends the messages from..to and waits for the answers. It returns the heap size and
// the number of goroutines afterwards.
func (s *soaking) half(t *testing.T, from, to int) (bytes int64, goroutines int) {
	s.f.reset()
	early := s.Early()
	for i := from; i < to; i++ {
		chat := int64(5000 + i%s.chats)
		s.Say(chat, chat, telegramtest.Saying{Text: fmt.Sprintf("m%05d", i)})
	}
	for last, same := -1, 0; same < 3; time.Sleep(2 * time.Minute) {
		now := s.messageCount()
		if same++; now != last {
			last, same = now, 0
		}
	}
	for i := range s.chats {
		s.f.check(t, s.Messages(int64(5000+i)), i, from, to, s.chats)
	}
	if s.early += s.Early() - early; s.Early()-early > len(s.f.hit)/50+s.chats {
		t.Errorf("got %d calls before the end of a rate limit, want at most %d", s.Early()-early, len(s.f.hit)/50+s.chats)
	}
	s.f.reset()
	s.e.forget()
	s.Forget()
	s.log.forget()
	for range 3 { // what a sync.Pool holds survives the first collection
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc), runtime.NumGoroutine()
}

func (s *soaking) messageCount() (all int) {
	for i := range s.chats {
		all += len(s.Messages(int64(5000 + i)))
	}
	return all
}

func (f *faults) reset() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.hit, f.done = map[string]bool{}, map[string]bool{}
}

func (e *echo) forget() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.known = map[string]bool{}
}

// check compares the messages of a chat with the expected answers.
func (f *faults) check(t *testing.T, list []telegramtest.Message, chat, from, to, chats int) {
	t.Helper()
	next := from + chat
	for i := 0; i < len(list); i++ {
		want := fmt.Sprintf("re: m%05d", next)
		if list[i].Text != want {
			t.Fatalf("chat %d: got %q, want %q", chat, list[i].Text, want)
		}
		if i+1 < len(list) && list[i+1].Text == want {
			if !f.done[fmt.Sprint(5000+chat, want)] {
				t.Fatalf("chat %d: got %q twice, though its outcome was never unknown", chat, want)
			}
			i++
		}
		next += chats
	}
	if next < to {
		t.Fatalf("chat %d: no answer to m%05d", chat, next)
	}
}

// soakSize returns how many messages a soak test sends.
func soakSize() int {
	if testing.Short() || raceEnabled {
		return 1000
	}
	return coretest.Sample(10_000, 2000)
}

// TestSoak: under load and with failing calls, every message is answered, in order.
func TestSoak(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, w *world) { soak(t, w, soakSize(), 50, false) })
}

// TestSoakPaced is TestSoak on a platform that enforces its rate limits.
func TestSoakPaced(t *testing.T) {
	inBubble(t, paced, func(t *testing.T, w *world) { soak(t, w, soakSize(), 50, true) })
}

// BenchmarkLatency measures the time from an update to sendMessage, one after the other,
// without a store.
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

// report reports the median and the 95th percentile.
func report(b *testing.B, all []time.Duration) {
	slices.Sort(all)
	b.ReportMetric(float64(all[len(all)/2].Microseconds()), "p50-µs")
	b.ReportMetric(float64(all[len(all)*95/100].Microseconds()), "p95-µs")
}
