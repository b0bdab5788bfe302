package progress

import (
	"context"
	"errors"
	"testing"
	"time"

	"synthbot/interfaces/discord/gateway"
)

// state is a driver.State in memory that counts writes and can be made to fail.
type state struct {
	values map[string][]byte
	fails  error
	puts   int
}

func (s *state) Get(_ context.Context, key string) ([]byte, error) { return s.values[key], s.fails }

func (s *state) Put(_ context.Context, key string, value []byte) error {
	s.puts++
	if s.fails != nil {
		return s.fails
	}
	if s.values == nil {
		s.values = make(map[string][]byte)
	}
	s.values[key] = value
	return nil
}

// TestNote: the stored time is the one until which the slowest shard has received everything.
func TestNote(t *testing.T) {
	at := func(minute int) time.Time { return time.Date(2026, 11, 20, 12, minute, 0, 0, time.UTC) }
	var s state
	a := New(&s)
	until := a.Until(0)
	a.Touch(0, at(1))
	if !until.IsZero() || !a.ReceivedUntil(2).IsZero() {
		t.Errorf("nothing stored: got %v and %v, want zero times", until, a.ReceivedUntil(2))
	}
	a.Touch(1, at(2))
	a.Touch(0, at(3))
	if got := a.ReceivedUntil(2); got != at(2) {
		t.Errorf("got %v, want %v", got, at(2))
	}
	if err := a.Store(t.Context(), a.ReceivedUntil(2), false); err != nil {
		t.Fatal(err)
	}
	next := New(&s)
	if err := next.Load(t.Context()); err != nil || next.Until(0) != at(2) || next.ReceivedUntil(2) != at(2) {
		t.Errorf("next process: got %v, %v, want %v", next.ReceivedUntil(2), err, at(2))
	}
	next.Touch(0, at(20))
	next.Touch(1, at(21))
	if got := next.ReceivedUntil(2); got != at(20) {
		t.Errorf("after both shards: got %v, want %v", got, at(20))
	}
	if until := next.Until(0); until != at(20) {
		t.Errorf("a new session of the shard: got %v, want %v", until, at(20))
	}
}

// TestSessions: a new session is stored at once, its later progress with the time. The next process has it
// as long as Discord may know it.
func TestSessions(t *testing.T) {
	var s state
	p := New(&s)
	if err := p.Load(t.Context()); err != nil || len(p.Sessions()) > 0 {
		t.Fatalf("nothing stored: got %v, %v", p.Sessions(), err)
	}
	setSessions := func(seq int64, shards ...int) error {
		all := make(map[int]gateway.Session)
		for _, shard := range shards {
			all[shard] = gateway.Session{ID: "s", Seq: seq}
		}
		return p.SetSessions(t.Context(), all)
	}
	next := func() map[int]gateway.Session {
		n := New(&s)
		if err := n.Load(t.Context()); err != nil {
			t.Error(err)
		}
		return n.Sessions()
	}
	s.fails = errors.New("full")
	if err := setSessions(1, 0); err == nil {
		t.Error("got no error of a full store")
	}
	s.fails = nil
	if err := setSessions(2, 0, 1); err != nil || next()[1].Seq != 2 {
		t.Errorf("got %v, %v, want both sessions", next(), err)
	}
	puts := s.puts
	if err := setSessions(9, 1); err != nil || s.puts != puts {
		t.Errorf("progress of a session: got %d writes, %v, want none", s.puts-puts, err)
	}
	if err := p.Store(t.Context(), time.Now(), false); err != nil || next()[1].Seq != 9 || next()[0].Seq != 2 {
		t.Errorf("got %v, %v, want the progress of shard 1", next(), err)
	}
	for value, want := range map[string]int{
		`{"at":"2020-01-01T00:00:00Z","shards":{"0":{"id":"old","seq":1}}}`: 0, "damaged": 0, "": 0,
		`{"at":"` + time.Now().Add(-time.Minute).Format(time.RFC3339) + `","shards":{"0":{"id":"new","seq":1}}}`: 1,
	} {
		s.values[SessionsKey] = []byte(value)
		if got := next(); len(got) != want {
			t.Errorf("%s: got %v, want %d sessions", value, got, want)
		}
	}
}
