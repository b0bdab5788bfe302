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

// faults fails 1 of 20 calls, in every way. A message is left in doubt once at most,
// since the driver gives up after the third doubt; hit has those that were.
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
	early int
}

// soak lets n messages come in over chats, in two halves, and looks at what
// is there and at what the second half left behind: no memory, no goroutines.
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
	if after > before+256<<10 { // about 50 bytes a message: none of them is kept
		t.Errorf("the second half left %d bytes behind", after-before)
	}
	if more > goroutines+2 || more > chats+20 {
		t.Errorf("%d goroutines are left, %d after the first half, over %d chats", more, goroutines, chats)
	}
	cancel()
	s.e.group.Wait()
	if err := stop(); err != nil {
		t.Error(err)
	}
	t.Logf("%d messages in %v of their time; %d early; %d and %d goroutines at rest; %d KiB, then %d KiB", n, took, s.early, goroutines, more, before>>10, after>>10)
}

// half lets the messages from..to come in; it returns what is left behind when
// all is quiet.
func (s *soaking) half(t *testing.T, from, to int) (bytes int64, goroutines int) {
	s.f.reset()
	early := s.Early()
	for i := from; i < to; i++ {
		chat := int64(5000 + i%s.chats)
		s.Say(chat, chat, telegramtest.Saying{Text: fmt.Sprintf("m%05d", i)})
	}
	for last, same := -1, 0; same < 3; time.Sleep(2 * time.Minute) {
		now := s.standing()
		if same++; now != last {
			last, same = now, 0
		}
	}
	for i := range s.chats {
		s.f.check(t, s.Messages(int64(5000+i)), i, from, to, s.chats)
	}
	if s.early += s.Early() - early; s.Early()-early > len(s.f.hit)/50+s.chats {
		t.Errorf("%d calls came early", s.Early()-early)
	}
	s.f.reset()
	s.e.forget()
	s.Forget()
	s.log.forget()
	for range 3 { // what a sync.Pool holds outlives the first
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc), runtime.NumGoroutine()
}

func (s *soaking) standing() (all int) {
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

// check compares the messages of a chat with what was said there.
func (f *faults) check(t *testing.T, list []telegramtest.Message, chat, from, to, chats int) {
	t.Helper()
	next := from + chat
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
	if next < to {
		t.Fatalf("chat %d: nothing stands for m%05d", chat, next)
	}
}

// soaked is how many updates a soak takes.
func soaked() int {
	if testing.Short() || watched {
		return 1000
	}
	return coretest.Sample(10_000, 2000)
}

func TestSoak(t *testing.T) {
	bubble(t, nil, func(t *testing.T, w *world) { soak(t, w, soaked(), 50, false) })
}

// TestSoakPaced is the same within the platform's limits, which it enforces.
func TestSoakPaced(t *testing.T) {
	bubble(t, paced, func(t *testing.T, w *world) { soak(t, w, soaked(), 50, true) })
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
