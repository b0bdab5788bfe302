package discord

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"synthbot/core"
	"synthbot/core/coretest"
	"synthbot/core/driver"
	"synthbot/core/secret"
	"synthbot/interfaces/discord/discordtest"
	"synthbot/interfaces/discord/gateway"
)

// Ids of the fake platform.
const (
	botID   = discordtest.BotID
	appID   = discordtest.AppID
	guildID = discordtest.GuildID
	hallID  = discordtest.HallID
	roomID  = discordtest.RoomID
	topicID = discordtest.TopicID
	forumID = discordtest.ForumID
	catID   = discordtest.CategoryID
	dmID    = discordtest.DirectID
	groupID = discordtest.GroupID
	annID   = discordtest.AnnID
	bobID   = discordtest.BobID
	modRole = discordtest.KeeperRole
	botRole = discordtest.BotRole
)

// server is the fake platform, with the timings of its drivers.
type server struct {
	*discordtest.Server
	timings timings
}

func newServer(t testing.TB) *server { return &server{discordtest.New(t), fastTimings} }

// inBubble runs a test in fake time, with a platform in memory and the driver's real timings.
func inBubble(t *testing.T, f func(t *testing.T, s *server)) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(27 * 365 * 24 * time.Hour) // the platform's ids begin in 2015
		platform, end := discordtest.InMemory()
		t.Cleanup(end)
		t.Cleanup(func() {
			for _, b := range platform.Breaches() {
				t.Errorf("the driver broke a rule of the platform: %s", b)
			}
		})
		platform.Gateway(func(g *discordtest.Settings) {
			g.Interval, g.Between = 41250*time.Millisecond, 5*time.Second
		})
		f(t, &server{platform, defaultTimings})
	})
}

func TestMain(m *testing.M) {
	flag.Parse()
	if flag.Lookup("test.fuzz").Value.String() == "" {
		// Tests wait more than they compute.
		_ = flag.Set("test.parallel", "24")
	}
	goleak.VerifyTestMain(m)
}

// fastTimings are for tests in real time.
var fastTimings = timings{
	gateway: gateway.Timings{
		Patience: time.Minute, Identify: 30 * time.Millisecond, Invalid: 5 * time.Millisecond,
		Backoff: 10 * time.Millisecond, Longest: 200 * time.Millisecond,
	},
	retry: 5 * time.Millisecond, guilds: time.Minute, flush: 20 * time.Millisecond, typing: 20 * time.Millisecond,
	acknowledge: time.Minute, respond: time.Minute, draft: 20 * time.Millisecond, leftover: 20 * time.Millisecond,
}

func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// inbox records events. Like the real one, it takes each pair of place and id once.
type inbox struct {
	mu      sync.Mutex
	events  []core.Event
	known   map[string]bool
	batches int
	fail    int // how many more batches are refused
	stir    chan struct{}
	answer  func(core.Event)

	patience time.Duration
}

func newInbox() *inbox {
	return &inbox{known: map[string]bool{}, stir: make(chan struct{}, 1), patience: coretest.Patience}
}

func (i *inbox) Receive(_ context.Context, events ...core.Event) error {
	i.mu.Lock()
	if i.fail > 0 {
		i.fail--
		i.mu.Unlock()
		return errors.New("the disk is full")
	}
	i.batches++
	var fresh []core.Event
	for _, e := range events {
		key := e.Message.Path.String() + " " + e.Message.ID
		if e.Kind == core.KindMessage || e.Kind == core.KindCommand || e.Kind == core.KindPress {
			if i.known[key] {
				continue
			}
			i.known[key] = true
		}
		fresh = append(fresh, e)
	}
	i.events = append(i.events, fresh...)
	answer := i.answer
	i.mu.Unlock()
	signal(i.stir)
	if answer != nil {
		for _, e := range fresh {
			answer(e)
		}
	}
	return nil
}

// refuse makes the inbox refuse the next n batches.
func (i *inbox) refuse(n int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.fail = n
}

func (i *inbox) all() []core.Event {
	i.mu.Lock()
	defer i.mu.Unlock()
	return append([]core.Event(nil), i.events...)
}

// wait waits until n events of a kind have arrived and returns all of that kind.
func (i *inbox) wait(t testing.TB, kind core.Kind, n int) []core.Event {
	t.Helper()
	limit := time.NewTimer(i.patience)
	defer limit.Stop()
	for {
		var found []core.Event
		for _, e := range i.all() {
			if e.Kind == kind {
				found = append(found, e)
			}
		}
		if len(found) >= n {
			return found
		}
		select {
		case <-i.stir:
		case <-limit.C:
			t.Fatalf("got %d events of kind %s, want %d: %v", len(found), kind, n, i.all())
		}
	}
}

func (i *inbox) texts() []string {
	var texts []string
	for _, e := range i.all() {
		if e.Kind == core.KindMessage {
			texts = append(texts, e.Message.Text)
		}
	}
	return texts
}

// until polls a condition until it is true.
func until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	within(t, coretest.Patience, what, ok)
}

// within polls a condition until it is true, at most for a time limit.
func within(t testing.TB, limit time.Duration, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(limit); !ok(); {
		if time.Now().After(end) {
			t.Fatalf("timeout while waiting for: %s", what)
		}
		select {
		case <-time.After(max(2*time.Millisecond, limit/100_000)): // hours pass in a bubble
		case <-t.Context().Done():
			t.Fatalf("the test ended while waiting for: %s", what)
		}
	}
}

// defaultConfig returns the defaults of a configuration that is read from a file.
func defaultConfig(token string) Config {
	return Config{
		Token: secret.New(token), APIURL: "https://discord.com", CDNURL: "https://cdn.discordapp.com", Pace: "platform",
		Shards: "auto", MessageContent: true, LongAnswers: "split", LongParts: 4, BackfillAge: 24 * time.Hour,
	}
}

// memoryState is a State that lives in memory.
type memoryState struct {
	mu     sync.Mutex
	values map[string][]byte
}

func (b *memoryState) Get(_ context.Context, key string) ([]byte, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.values[key], nil
}

func (b *memoryState) Put(_ context.Context, key string, value []byte) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.values[key] = value
	return nil
}

// bot returns a driver that uses the server.
func (s *server) bot(t testing.TB, change ...func(*Options)) *Driver {
	t.Helper()
	o := Options{Name: "discord", Log: slog.New(slog.DiscardHandler), Clock: time.Now, State: newState(), Dial: s.Dial}
	o.Config = defaultConfig(discordtest.Token)
	o.Config.APIURL, o.Config.CDNURL, o.Config.Pace, o.Config.BackfillCount = s.URL, s.URL, "off", 500
	if os.Getenv("DISCORD_TEST_LOG") != "" {
		o.Log = slog.New(slog.NewTextHandler(os.Stderr, nil)).With("test", t.Name())
	}
	for _, f := range change {
		f(&o)
	}
	d, err := newDriver(o, s.timings)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// listen runs a driver until stop is called or the test ends. It stops within the patience of tests.
func (s *server) listen(t testing.TB, d *Driver, in core.Inbox) (stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- d.Listen(ctx, in) }()
	var once sync.Once
	var err error
	stop = func() error {
		once.Do(func() {
			cancel()
			select {
			case err = <-ended:
			case <-time.After(coretest.Patience):
				err = errors.New("Listen did not end")
			}
		})
		return err
	}
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
	return stop
}

// up starts a bot and waits until it is connected and knows its guild.
func (s *server) up(t testing.TB, change ...func(*Options)) (*Driver, *inbox) {
	t.Helper()
	d, in := s.bot(t, change...), newInbox()
	s.listen(t, d, in)
	until(t, "connected", func() bool { return s.Live() > 0 && d.cache.known(guildID) })
	return d, in
}

// journal is a core.Deliveries in memory. A part that was sent is not sent again.
type journal struct {
	mu   sync.Mutex
	base string
	done map[int]core.Sent
}

func (j *journal) Since(int) time.Time { return time.Time{} }

func (j *journal) Send(
	ctx context.Context, n int, what core.Sent, do func(context.Context, string) (string, error),
) error {
	j.mu.Lock()
	_, sent := j.done[n]
	j.mu.Unlock()
	if sent {
		return nil
	}
	id, err := do(ctx, fmt.Sprintf("%sx%d", j.base, n))
	if err != nil {
		return err
	}
	what.ID = id
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.done == nil {
		j.done = map[int]core.Sent{}
	}
	j.done[n] = what
	return nil
}

// calls makes the delivery keys of calls differ.
var calls atomic.Int64

// act runs an action for Ann in #hall.
func act(t testing.TB, d *Driver, name string, payload any, change ...func(*core.Call)) (core.Result, error) {
	t.Helper()
	raw, err := json.Marshal(payload)
	if err != nil {
		t.Fatal(err)
	}
	call := core.Call{
		Path: core.MustPath("discord/" + guildID + "/" + hallID), Author: core.Author{ID: annID}, Authors: []core.Author{{ID: annID}}, Payload: raw,
		Deliveries: &journal{base: "k" + strconv.FormatInt(calls.Add(1), 36)},
	}
	for _, f := range change {
		f(&call)
	}
	for _, a := range d.Actions() {
		if a.Name != name {
			continue
		}
		if a.Check != nil {
			if err := a.Check(t.Context(), call); err != nil {
				return core.Result{}, err
			}
		}
		return a.Do(t.Context(), call)
	}
	t.Fatalf("no action %s", name)
	return core.Result{}, nil
}

// stoppableState is a State that loses what is written after stop, like a process that crashed.
type stoppableState struct {
	driver.State
	mu      sync.Mutex
	stopped bool
}

func (f *stoppableState) stop() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stopped = true
}

func (f *stoppableState) isStopped() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.stopped
}

func (f *stoppableState) Put(ctx context.Context, key string, value []byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.stopped {
		return nil
	}
	return f.State.Put(ctx, key, value)
}
