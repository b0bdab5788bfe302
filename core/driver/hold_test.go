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

// holding is a State that another process may take over.
type holding struct {
	State
	lost  atomic.Bool
	asked atomic.Int32
	most  int32 // how often it holds; 0: always
}

func (h *holding) Holds() bool {
	n := h.asked.Add(1)
	return !h.lost.Load() && (h.most == 0 || n <= h.most)
}

// TestHeld: what changes something is sent only while the process holds what it served, also when it is
// stopped after it had looked.
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
	lost := &holding{}
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
		{"a state of one process alone", t.Context(), nil, "x", true},
		{"it holds", t.Context(), &holding{}, "x", true},
		{"it holds, without a body", t.Context(), &holding{}, "", true},
		{"it does not hold in time", soon, lost, "x", false},
		{"in any case", Unheld(t.Context()), lost, "x", true},
		{"stopped behind the first look", t.Context(), &holding{most: 1}, "x", false},
	} {
		before := arrived.Load()
		err := send(c.ctx, c.state, c.body)
		if (err == nil) != c.sent || err != nil && !errors.Is(err, ErrNotHeld) || (arrived.Load() > before) != c.sent {
			t.Errorf("%s: %v, %d arrived", c.name, err, arrived.Load()-before)
		}
	}
	time.AfterFunc(20*time.Millisecond, func() { lost.lost.Store(false) })
	if err := send(t.Context(), lost, "x"); err != nil {
		t.Errorf("it holds again: %v", err)
	}
}
