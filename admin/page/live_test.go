package page

import (
	"bufio"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"synthbot/admin"
	"synthbot/core"
	"synthbot/memory"
)

func all(below core.Path) memory.Listing { return memory.Listing{Below: below, N: 100} }

// stream opens the live turns, and waits until they flow.
func (c *client) stream() (*bufio.Reader, io.Closer) {
	c.w.Helper()
	r, err := c.Do(c.request(http.MethodGet, "/live", nil))
	if err != nil {
		c.w.Fatal(err)
	}
	c.w.Cleanup(func() { _ = r.Body.Close() })
	if r.StatusCode != http.StatusOK || r.Header.Get("Content-Type") != "text/event-stream" {
		c.w.Fatalf("stream: %d %s", r.StatusCode, r.Header)
	}
	lines := bufio.NewReader(r.Body)
	c.w.until(lines, ": welcome")
	return lines, r.Body
}

// until reads lines until one has the beginning, and returns that.
func (w *world) until(lines *bufio.Reader, beginning string) string {
	w.Helper()
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			w.Fatalf("waiting for %q: %v", beginning, err)
		}
		if strings.HasPrefix(line, beginning) {
			return line
		}
	}
}

func TestLive(t *testing.T) {
	w := newWorld(t)
	c := w.in()
	lines, _ := c.stream()
	w.turn(group, 5, "hello\n\ndata: "+canary, false)
	w.turn(direct, 6, private, true)
	row := w.until(lines, "data: <tr>")
	if !strings.Contains(row, "seq=5") || strings.Contains(row, "<script") {
		t.Errorf("row: %s", row)
	}
	row = w.until(lines, "data: <tr>")
	if !strings.Contains(row, "seq=6") || strings.Contains(row, private) {
		t.Errorf("row of a private turn: %s", row)
	}
	c.post("/sessions/revoke", "csrf", c.csrf(), "all", "yes")
	w.until(lines, "event: over")
	if _, err := io.ReadAll(lines); err != nil {
		t.Errorf("the end of a revoked session's stream: %v", err)
	}
}

func TestStreamsAreFew(t *testing.T) {
	w := newWorld(t)
	c := w.in()
	for range maxStreams {
		c.stream()
	}
	if r := c.get("/live"); r.status != http.StatusServiceUnavailable {
		t.Errorf("one too many: %d", r.status)
	}
}

// patient is a browser that can be written to.
type patient struct{ *httptest.ResponseRecorder }

func (patient) SetWriteDeadline(time.Time) error { return nil }

// TestStreamOfAnIdleSession leaves a page open, and does nothing there.
func TestStreamOfAnIdleSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &Page{doors: doors{clock: time.Now}}
		cookie, ok := p.doors.enter(p.doors.ticket(), "", "")
		if !ok {
			t.Fatal("not let in")
		}
		w := patient{httptest.NewRecorder()}
		began := time.Now()
		p.flow(t.Context(), p.doors.session(cookie).over, nil, &stream{w: w, c: http.NewResponseController(w)})
		if took := time.Since(began); took < sessionIdle || took > sessionIdle+2*streamBeat {
			t.Errorf("it ended after %v", took)
		}
		if !strings.HasSuffix(w.Body.String(), "event: over\ndata: over\n\n") {
			t.Errorf("it ended with %q", w.Body.String())
		}
	})
}

// TestDeadBrowser lets a browser read nothing while many turns end.
func TestDeadBrowser(t *testing.T) {
	w := newWorld(t)
	_, body := w.in().stream()
	began := time.Now()
	const many = 20000
	for i := range many {
		w.turn(group, uint64(i+1), "x", false)
	}
	if took := time.Since(began); took > 3*time.Second {
		t.Errorf("%d turns took %v with a browser that reads nothing", many, took)
	}
	if err := body.Close(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(5 * time.Second); len(w.page.streams) > 0; {
		if time.Now().After(deadline) {
			t.Fatal("the stream of a browser that went is still open")
		}
		w.turn(group, 1, "x", false)
		w.in().get("/") // goes by the same server, and gives it time
	}
}

// BenchmarkObserve measures what an open page costs a turn.
func BenchmarkObserve(b *testing.B) {
	e := core.TurnEnd{Turn: core.TurnID{Path: group, Seq: 1}, Trace: new(core.Trace)}
	for name, subs := range map[string]int{"no page": 0, "one page": 1, "sixteen pages": maxStreams} {
		b.Run(name, func(b *testing.B) {
			traces := new(admin.Traces)
			for range subs {
				_, done := traces.Subscribe(streamRoom)
				defer done()
			}
			for b.Loop() {
				traces.Observe(e)
			}
		})
	}
}
