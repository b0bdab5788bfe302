package driver

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// leasedState is a State whose lease can be lost.
type leasedState struct {
	State
	lost  atomic.Bool
	asked atomic.Int32
	most  int32 // the number of calls of Holds before the lease is lost; 0 for no limit
}

func (h *leasedState) Holds() bool {
	n := h.asked.Add(1)
	return !h.lost.Load() && (h.most == 0 || n <= h.most)
}

// TestHeld: a request is sent only while the process holds its lease, also if it loses the lease after
// the first check. Unheld requests are always sent.
func TestHeld(t *testing.T) {
	var arrived atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if _, err := io.ReadAll(r.Body); err == nil {
			arrived.Add(1)
		}
	}))
	defer server.Close()
	send := func(ctx context.Context, s State, body string) error {
		t.Helper()
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if r, err = Held(ctx, s, r); err != nil {
			return err
		}
		resp, err := http.DefaultClient.Do(r)
		if err == nil {
			_ = resp.Body.Close()
		}
		return err
	}
	lost := &leasedState{}
	lost.lost.Store(true)
	soon, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	for _, c := range []struct {
		name  string
		ctx   context.Context
		state State
		body  string
		sent  bool
	}{
		{"a state without a lease", t.Context(), nil, "x", true},
		{"lease held", t.Context(), &leasedState{}, "x", true},
		{"lease held, without a body", t.Context(), &leasedState{}, "", true},
		{"lease lost until the deadline", soon, lost, "x", false},
		{"unheld", Unheld(t.Context()), lost, "x", true},
		{"lease lost after the first check", t.Context(), &leasedState{most: 1}, "x", false},
	} {
		before := arrived.Load()
		err := send(c.ctx, c.state, c.body)
		if (err == nil) != c.sent || err != nil && !errors.Is(err, ErrNotHeld) || (arrived.Load() > before) != c.sent {
			t.Errorf("%s: got %v, %d requests, want it sent: %v", c.name, err, arrived.Load()-before, c.sent)
		}
	}
	time.AfterFunc(20*time.Millisecond, func() { lost.lost.Store(false) })
	if err := send(t.Context(), lost, "x"); err != nil {
		t.Errorf("lease held again: %v", err)
	}
}
