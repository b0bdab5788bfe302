package discord

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"synthbot/core"
	"synthbot/core/coretest"
	"synthbot/interfaces/discord/discordtest"
)

// echo answers every message with the message action, in order within a place.
type echo struct {
	t    *testing.T
	d    *Driver
	mu   sync.Mutex
	wait map[core.Path]chan core.Event
	all  sync.WaitGroup
	done sync.WaitGroup
}

func (e *echo) take(event core.Event) {
	if event.Kind != core.KindMessage {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	c := e.wait[event.Message.Path]
	if c == nil {
		c = make(chan core.Event, 256)
		e.wait[event.Message.Path] = c
		e.all.Go(func() {
			for event := range c {
				e.answer(event)
			}
		})
	}
	c <- event
}

func (e *echo) answer(event core.Event) {
	defer e.done.Done()
	raw, _ := json.Marshal(map[string]string{"text": "re: " + event.Message.Text, "reply_to_message_id": event.Message.ID})
	m := &event.Message
	call := core.Call{Path: m.Path, Author: m.Author, Payload: raw, Deliveries: &journal{base: m.ID}}
	// Like a turn, it retries temporary errors.
	for try := 0; ; try++ {
		_, err := actionOf(e.d, e.d.sendMessage)(context.Background(), call)
		if err == nil {
			return
		}
		if kind(err) != core.Temporary || try == 5 {
			e.t.Errorf("%s: %v", event.Message.Text, err)
			return
		}
	}
}

func (e *echo) close() {
	e.mu.Lock()
	for _, c := range e.wait {
		close(c)
	}
	e.mu.Unlock()
	e.all.Wait()
}

// breakGateway interrupts the gateway connection in every way in turn until stop is closed. It returns the
// number of interruptions.
func (s *server) breakGateway(stop <-chan struct{}) (times int) {
	ways := []func(){
		s.Drop,
		func() { s.Send(discordtest.Payload{Op: discordtest.OpReconnect}) },
		func() { s.Forget(); s.Send(discordtest.Payload{Op: discordtest.OpInvalid, Data: false}) },
		func() { s.Close(4009, "Session timed out.") },
		func() { s.Forget(); s.Drop() },
		func() { s.Send(discordtest.Payload{Op: discordtest.OpInvalid, Data: true}) },
	}
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-stop:
			return times
		case <-tick.C:
			if s.Live() > 0 {
				ways[times%len(ways)]()
				times++
			}
		}
	}
}

// failRequests makes one request in twenty fail, in every way in turn.
func (s *server) failRequests() {
	kinds := []discordtest.Fault{
		{Kind: discordtest.ResetAfter}, {Kind: discordtest.Broken}, {Kind: discordtest.Broken, Status: 500},
		{Kind: discordtest.Refused, Status: 503},
		{Kind: discordtest.Shared}, {Kind: discordtest.Limited}, {Kind: discordtest.Reset},
	}
	n := 0
	s.Fail(func(c discordtest.Call) discordtest.Fault {
		n++
		switch {
		case n%20 != 0 || c.Is("GET /gateway"):
			return discordtest.Fault{}
		case n%1500 == 0:
			return discordtest.Fault{Kind: discordtest.Cloudflare} // delays all requests for a second
		case n%1000 == 0:
			return discordtest.Fault{Kind: discordtest.Global}
		}
		return kinds[n/20%len(kinds)]
	})
}

// TestSoak: under load, with failing requests and interrupted connections, every message is answered once
// and in order, and neither memory nor goroutines are left behind.
func TestSoak(t *testing.T) {
	messages, rooms := coretest.Sample(10_000, 2000), 200
	if testing.Short() {
		messages, rooms = 600, 20
	}
	s := newServer(t)
	s.Forgetful()
	ids := s.addChannels(rooms)
	d := s.bot(t, func(o *Options) { o.Config.BackfillCount = 10_000 })
	e := &echo{t: t, d: d, wait: map[core.Path]chan core.Event{}}
	in := newInbox()
	in.answer = e.take
	s.listen(t, e.d, in)
	until(t, "connected", func() bool { return e.d.cache.known(guildID) })
	s.failRequests()
	stop, stopped := make(chan struct{}), make(chan int)
	go func() { stopped <- s.breakGateway(stop) }()
	e.done.Add(len(ids))
	for _, id := range ids {
		s.Say(id, annID, "first")
	}
	e.done.Wait()
	goroutines, heap := runtime.NumGoroutine(), heapSize()
	e.done.Add(messages)
	begun := time.Now()
	for i := range messages {
		s.Say(ids[rand.N(len(ids))], annID, strconv.Itoa(i))
		if i%10 == 0 {
			time.Sleep(3 * time.Millisecond) // limits the message rate
		}
	}
	close(stop)
	interruptions := <-stopped
	until(t, "a session", func() bool { return s.Live() > 0 })
	answered := make(chan struct{})
	go func() { e.done.Wait(); close(answered) }()
	select {
	case <-answered:
	case <-time.After(coretest.Patience):
		t.Fatalf("some of %d events were not answered", len(in.all()))
	}
	took := time.Since(begun)
	s.Fail(nil)
	s.checkEchoes(t, ids, messages)
	// The test's own memory does not count. Events that are repeated from here on are not
	// known any more.
	in.mu.Lock()
	in.events, in.known, in.answer = nil, map[string]bool{}, nil
	in.mu.Unlock()
	for _, id := range ids {
		s.Clear(id)
	}
	s.Forget()
	after := heapSize()
	if after > heap+16<<20 {
		t.Errorf("the heap grew from %d kB to %d kB, want at most 16 MB more", heap>>10, after>>10)
	}
	t.Logf("%d messages in %v, %d interruptions, goroutines %d then %d, heap %d kB then %d kB",
		messages, took.Round(time.Millisecond), interruptions, goroutines, runtime.NumGoroutine(), heap>>10, after>>10)
	until(t, "goroutines are gone", func() bool { return runtime.NumGoroutine() < goroutines+30 })
	e.close()
}

// checkEchoes compares the answers in the channels with the messages there.
func (s *server) checkEchoes(t *testing.T, ids []string, messages int) {
	t.Helper()
	total := 0
	for _, id := range ids {
		var said, echoed []string
		for _, m := range s.Everything(id) {
			if rest, ok := strings.CutPrefix(m.Text, "re: "); ok {
				echoed = append(echoed, rest)
			} else {
				said = append(said, m.Text)
			}
		}
		if got, want := strings.Join(echoed, " "), strings.Join(said, " "); got != want {
			t.Errorf("%s: got answers to\n%s\nwant\n%s", id, got, want)
		}
		total += len(echoed)
	}
	if total != messages+len(ids) {
		t.Errorf("got %d answers, want %d", total, messages+len(ids))
	}
}

// addChannels adds n channels to the guild and returns their ids.
func (s *server) addChannels(n int) []string {
	var ids []string
	for i := range n {
		id := fmt.Sprint(811000000000000000 + i)
		s.AddChannel(discordtest.Channel{ID: id, Guild: guildID, Name: "room " + id})
		ids = append(ids, id)
	}
	return ids
}

// heapSize returns the size of the live heap.
func heapSize() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// TestMemoryOfManyGuilds: the cache of 2,500 large guilds, which a large bot receives when it connects, stays
// small. The guilds are sent one after the other, so that waiting ones are not counted.
func TestMemoryOfManyGuilds(t *testing.T) {
	guilds, most := coretest.Sample(2500, 250), uint64(150<<20)
	if testing.Short() || raceEnabled || guilds == 250 {
		guilds, most = 250, 30<<20
	}
	s := newServer(t)
	last, large := fmt.Sprint(uint64(guilds)<<22), largeGuild()
	s.Gateway(func(g *discordtest.Settings) {
		g.Interval = 30 * time.Second
		g.Script = func(_ int, c *discordtest.Conn) bool {
			c.Read()
			c.Send(discordtest.Payload{Seq: 1, Type: "READY", Data: map[string]any{"user": map[string]any{"id": botID}, "session_id": "x"}})
			for i := range guilds {
				c.Send(discordtest.Payload{Seq: i + 2, Type: "GUILD_CREATE", Data: large(fmt.Sprint(uint64(i+1) << 22))})
				c.Flush()
			}
			return c.Read() && !c.Read()
		}
	})
	before := heapSize()
	d, in := s.bot(t), newInbox()
	s.listen(t, d, in)
	begun := time.Now()
	until(t, "all guilds", func() bool { return d.cache.known(last) })
	took := time.Since(begun)
	in.mu.Lock()
	in.events, in.known = nil, map[string]bool{}
	in.mu.Unlock()
	grown := heapSize() - before
	t.Logf("%d guilds take %d MB of heap and %v", guilds, grown>>20, took.Round(time.Millisecond))
	if grown > most {
		t.Errorf("%d guilds take %d MB, want at most %d", guilds, grown>>20, most>>20)
	}
}

// largeGuild returns a function that returns guilds with 60 channels, 40 roles and 50 members.
func largeGuild() func(id string) json.RawMessage {
	const id = "@@"
	g := map[string]any{"id": id, "name": "Guild " + id, "owner_id": "1", "description": strings.Repeat("x", 500)}
	var channels, roles, members []any
	for i := range 60 {
		channels = append(channels, map[string]any{
			"id": id + strconv.Itoa(100+i), "type": 0, "name": fmt.Sprintf("channel-number-%d", i), "topic": strings.Repeat("t", 200),
			"permission_overwrites": []any{map[string]any{"id": id, "type": 0, "allow": "1024", "deny": "8192"}},
		})
	}
	for i := range 40 {
		roles = append(roles, map[string]any{"id": id + strconv.Itoa(200+i), "name": fmt.Sprintf("role number %d", i), "permissions": "104324673"})
	}
	for i := range 50 {
		members = append(members, map[string]any{"user": map[string]any{"id": fmt.Sprint(i), "username": "somebody"}, "roles": []string{id}, "nick": "nick"})
	}
	g["channels"], g["roles"], g["members"], g["emojis"] = channels, roles, members, members
	raw, _ := json.Marshal(g)
	return func(to string) json.RawMessage { return bytes.ReplaceAll(raw, []byte(id), []byte(to)) }
}
