package console_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"synthbot/core"
	"synthbot/core/coretest"
	"synthbot/core/watch"
	"synthbot/interfaces/console"
)

// inbox sends received events to a channel.
type inbox chan core.Event

func (i inbox) Receive(_ context.Context, events ...core.Event) error {
	for _, e := range events {
		i <- e
	}
	return nil
}

// newTestServer returns a server that listens, and its inbox.
func newTestServer(t *testing.T) (*console.Server, inbox) {
	t.Helper()
	h, in := console.NewServer("console"), make(inbox, 16)
	ctx, stop := context.WithCancel(t.Context())
	over := make(chan error, 1)
	go func() { over <- h.Listen(ctx, in) }()
	t.Cleanup(func() {
		stop()
		if err := <-over; err != nil {
			t.Error(err)
		}
	})
	if err := h.Attach(ctx, console.Options{In: strings.NewReader(""), Out: io.Discard, Session: "probe"}); err != nil {
		t.Fatal(err)
	}
	return h, in
}

// TestServer: an attached terminal sends messages and commands and receives answers. A session has one
// terminal at a time. A message to a session without a terminal fails as unreachable.
func TestServer(t *testing.T) {
	h, in := newTestServer(t)
	r, w := io.Pipe()
	var out bytes.Buffer
	over := make(chan error, 1)
	go func() {
		over <- h.Attach(t.Context(), console.Options{In: r, Out: &out, Session: "kitchen", User: "jay"})
	}()
	if _, err := io.WriteString(w, "hello\n"); err != nil {
		t.Fatal(err)
	}
	e := <-in
	if e.Message.Path != core.MustPath("console/kitchen") || e.Message.Text != "hello" || e.Kind != core.KindMessage {
		t.Errorf("got %+v", e)
	}
	err := h.Attach(t.Context(), console.Options{In: strings.NewReader(""), Out: io.Discard, Session: "kitchen"})
	if err == nil || !strings.Contains(err.Error(), "another terminal uses this session") {
		t.Errorf("got %v, want that another terminal uses the session", err)
	}
	say := h.Actions()[0]
	call := core.Call{Path: e.Message.Path, Payload: []byte(`{"text":"Hello, Jay."}`), Deliveries: new(coretest.Parts)}
	if err := say.Check(t.Context(), call); err != nil {
		t.Error(err)
	}
	if _, err := say.Do(t.Context(), call); err != nil {
		t.Error(err)
	}
	h.Observe(watch.TurnEnd{Turn: core.TurnID{Path: e.Message.Path}, Messages: []string{e.Message.ID}})
	if _, err := io.WriteString(w, "/help me now\n"); err != nil {
		t.Fatal(err)
	}
	if e = <-in; e.Kind != core.KindCommand || e.Command.Name != "help" || len(e.Command.Args) != 2 {
		t.Errorf("got %+v", e)
	}
	h.Observe(watch.TurnEnd{Turn: core.TurnID{Path: e.Message.Path}, Messages: []string{e.Message.ID}})
	w.Close()
	if err := <-over; err != nil || out.String() != "Hello, Jay.\n" {
		t.Errorf("got output %q, %v, want the answer", out.String(), err)
	}
	if _, err := say.Do(t.Context(), call); !errors.Is(err, core.ErrAway) {
		t.Error("a message to a detached session did not fail as unreachable")
	}
}

// TestPathsAreNoCommands: a line that begins with a file path is a message.
func TestPathsAreNoCommands(t *testing.T) {
	h, in := newTestServer(t)
	over := make(chan error, 1)
	go func() {
		over <- h.Attach(t.Context(), console.Options{In: strings.NewReader("/etc/passwd is a file\n"), Out: io.Discard, Session: "x"})
	}()
	e := <-in
	if e.Kind != core.KindMessage {
		t.Errorf("got %+v", e)
	}
	h.Observe(watch.TurnEnd{Turn: core.TurnID{Path: e.Message.Path}, Messages: []string{e.Message.ID}})
	<-over
}
