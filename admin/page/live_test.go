package page

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"synthbot/admin"
	"synthbot/core"
	"synthbot/core/watch"
)

func all(below core.Path) core.FactPage { return core.FactPage{Below: below, N: 100} }

// stream opens the stream of live turns, and waits for its response.
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

// until reads lines until one has the prefix, and returns it.
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

// event reads until an event with that name, and returns its data.
func (w *world) event(lines *bufio.Reader, name string) string {
	w.Helper()
	w.until(lines, "event: "+name+"\n")
	return w.until(lines, "data: ")
}

func TestLive(t *testing.T) {
	w := newWorld(t)
	c := w.in()
	lines, _ := c.stream()
	w.turn(group, 5, "hello\n\ndata: "+canary, false)
	w.turn(direct, 6, private, true)
	row := w.event(lines, "turn")
	if !strings.Contains(row, "seq=5") || strings.Contains(row, "<script") {
		t.Errorf("row: %s", row)
	}
	row = w.event(lines, "turn")
	if !strings.Contains(row, "seq=6") || strings.Contains(row, private) {
		t.Errorf("row of a private turn: %s", row)
	}
	c.post("/sessions/revoke", "csrf", c.csrf(), "all", "yes")
	w.until(lines, "event: over")
	if _, err := io.ReadAll(lines); err != nil {
		t.Errorf("stream of a revoked session: got %v", err)
	}
}

// at moves a place's turn to a stage.
func (w *world) at(place core.Path, stage watch.Stage) {
	w.stages.ObserveStage(watch.TurnStage{
		Turn: core.TurnID{Path: place, Seq: 1}, Stage: stage, Began: w.clock(), Private: place == direct,
		Person: core.MustPath("telegram/@user/7"),
	})
}

// TestLiveStages follows a turn from its start to its end.
func TestLiveStages(t *testing.T) {
	w := newWorld(t)
	w.at(direct, watch.StageWaiting)
	c := w.in()
	if body := c.get("/").body; !strings.Contains(body, `<span class="mark">waiting</span>`) {
		t.Errorf("the page does not show the running turn: %s", body)
	}
	lines, _ := c.stream()
	if rows := w.event(lines, "running"); !strings.Contains(rows, ">waiting<") || !strings.Contains(rows, "telegram/1000") {
		t.Errorf("running turns at the start of the stream: %s", rows)
	}
	for _, stage := range []watch.Stage{watch.StageThinking, watch.StageActing} {
		w.at(direct, stage)
		rows := w.event(lines, "running")
		if strings.Count(rows, "<tr>") != 1 || !strings.Contains(rows, ">"+string(stage)+"<") || !strings.Contains(rows, ">private<") {
			t.Errorf("%s: got %s", stage, rows)
		}
	}
	w.turn(direct, 1, private, true)
	w.at(direct, watch.StageOver)
	if row := w.event(lines, "turn"); !strings.Contains(row, "seq=1") {
		t.Errorf("row: %s", row)
	}
	if rows := w.event(lines, "running"); rows != "data: <tr><td colspan=\"4\">None.</td></tr>\n" {
		t.Errorf("running turns at the end: %s", rows)
	}
}

func TestManyRun(t *testing.T) {
	w := newWorld(t)
	for i := range maxRunning + 3 {
		w.at(core.MustPath("telegram/"+strconv.Itoa(i+1)), watch.StageThinking)
	}
	if r := w.page.running(); len(r.Turns) != maxRunning || r.More != 3 {
		t.Errorf("got %d turns and %d more", len(r.Turns), r.More)
	}
	if body := w.in().get("/").body; !strings.Contains(body, "and 3 more") {
		t.Error("the page does not say that there are more")
	}
}

func TestStreamsAreFew(t *testing.T) {
	w := newWorld(t)
	c := w.in()
	for range maxStreams {
		c.stream()
	}
	if r := c.get("/live"); r.status != http.StatusServiceUnavailable {
		t.Errorf("one stream too many: status %d", r.status)
	}
}

// waitingStore is a store in which n messages wait in a place.
type waitingStore struct{ n *atomic.Int64 }

func (l waitingStore) View(_ context.Context, f func(core.View) error) error {
	return f(waitingView{n: int(l.n.Load())})
}

// waitingView is a view of a waitingStore.
type waitingView struct {
	core.View
	n int
}

func (l waitingView) Waiting() ([]core.Path, error) { return []core.Path{group}, nil }

func (l waitingView) Due(core.Path, int) ([]core.Entry, error) { return make([]core.Entry, l.n), nil }

// recorder is a browser that collects its response until take is called.
type recorder struct {
	mu   sync.Mutex
	text string
}

func (*recorder) Header() http.Header              { return http.Header{} }
func (*recorder) WriteHeader(int)                  {}
func (*recorder) Flush()                           {}
func (*recorder) SetWriteDeadline(time.Time) error { return nil }

func (b *recorder) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.text += string(p)
	return len(p), nil
}

func (b *recorder) take() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	text := b.text
	b.text = ""
	return text
}

// TestLiveWaiting checks that an open page gets the changed number of waiting messages.
func TestLiveWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n atomic.Int64
		n.Store(3)
		p := quiet(new(admin.Traces), new(admin.Running), waitingStore{n: &n})
		w := new(recorder)
		ctx, end := context.WithCancel(t.Context())
		go func() { _ = p.live(&visit{Request: new(http.Request).WithContext(ctx), w: w, session: new(session)}) }()
		told := func() string {
			synctest.Wait()
			return w.take()
		}
		if text := told(); !strings.HasSuffix(text, "event: waiting\ndata: 3\n\n") {
			t.Errorf("at the start: got %q", text)
		}
		time.Sleep(countEvery * turnsEvery)
		if text := told(); text != "" {
			t.Errorf("without a change: got %q", text)
		}
		n.Store(5)
		time.Sleep(countEvery * turnsEvery)
		if text := told(); text != "event: waiting\ndata: 5\n\n" {
			t.Errorf("after a change: got %q", text)
		}
		end()
		synctest.Wait()
	})
}

// deadlineRecorder is a ResponseRecorder that supports write deadlines.
type deadlineRecorder struct{ *httptest.ResponseRecorder }

func (deadlineRecorder) SetWriteDeadline(time.Time) error { return nil }

// TestStreamOfAnIdleSession checks that the stream of an open page ends with its idle session.
func TestStreamOfAnIdleSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := quiet(new(admin.Traces), new(admin.Running), waitingStore{n: new(atomic.Int64)})
		cookie, _ := p.logins.login(p.logins.ticket(), "")
		if cookie == "" {
			t.Fatal("not let in")
		}
		w := deadlineRecorder{httptest.NewRecorder()}
		began := time.Now()
		v := &visit{Request: new(http.Request).WithContext(t.Context()), w: w, session: p.logins.session(cookie)}
		if err := p.live(v); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took < sessionIdle || took > sessionIdle+2*heartbeat {
			t.Errorf("the stream ended after %v", took)
		}
		if !strings.HasSuffix(w.Body.String(), "event: over\ndata: over\n\n") {
			t.Errorf("the stream ended with %q", w.Body.String())
		}
	})
}

// oneListener accepts one connection.
type oneListener struct{ conns chan net.Conn }

func (l oneListener) Accept() (net.Conn, error) {
	if c, ok := <-l.conns; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}

func (l oneListener) Close() error { return nil }

func (l oneListener) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)} }

// TestDeadBrowser opens the stream over a connection that is neither read nor closed. Turns do not wait for it,
// and the stream is ended after a while.
func TestDeadBrowser(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		traces, stages := new(admin.Traces), new(admin.Running)
		p := quiet(traces, stages, waitingStore{n: new(atomic.Int64)})
		cookie, _ := p.logins.login(p.logins.ticket(), "")
		if cookie == "" {
			t.Fatal("not let in")
		}
		dead, conn := net.Pipe() // without a buffer: writers wait for a reader
		listener := oneListener{make(chan net.Conn, 1)}
		listener.conns <- conn
		server := admin.Server(p.Handler())
		go func() { _ = server.Serve(listener) }()
		if _, err := io.WriteString(dead, "GET /live HTTP/1.1\r\nHost: localhost\r\nCookie: "+cookieName+"="+cookie+"\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if len(p.streams) != 1 {
			t.Fatal("the stream is not open")
		}
		began := time.Now()
		for i := range 20000 {
			id := core.TurnID{Path: group, Seq: uint64(i + 1)}
			stages.ObserveStage(watch.TurnStage{Turn: id, Stage: watch.StageThinking, Began: began})
			traces.Observe(watch.TurnEnd{Turn: id, Trace: new(watch.Trace)})
			stages.ObserveStage(watch.TurnStage{Turn: id, Stage: watch.StageOver})
		}
		if took := time.Since(began); took > 0 { // in the bubble, time passes only if a turn waits
			t.Errorf("turns waited %v for a browser that does not read", took)
		}
		time.Sleep(streamWrite + time.Second)
		synctest.Wait()
		if len(p.streams) != 0 {
			t.Error("the stream of a dead browser is still open")
		}
		close(listener.conns)
		_ = server.Close()
		_ = dead.Close()
	})
}

// TestLiveFromTheBeginning checks that the stream begins with a list of the turns that ended before it.
func TestLiveFromTheBeginning(t *testing.T) {
	w := newWorld(t)
	c := w.in()
	c.get("/")
	w.turn(group, 5, "hello", false)
	w.turn(direct, 6, private, true)
	lines, _ := c.stream()
	rows := w.event(lines, "turns")
	if i, j := strings.Index(rows, "seq=6"), strings.Index(rows, "seq=5"); i < 0 || j < i || strings.Contains(rows, private) {
		t.Errorf("the stream begins with %s", rows)
	}
}

// quiet returns a page without a log.
func quiet(turns *admin.Traces, running *admin.Running, reader core.Reader) *Page {
	o := Options{Log: slog.New(slog.DiscardHandler), Clock: time.Now, Turns: turns, Running: running}
	o.Reader, o.Bot = reader, bot{new(world)}
	return New(o)
}
