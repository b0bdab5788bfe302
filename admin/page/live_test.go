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

// event reads until an event of that name, and returns its data.
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
		t.Errorf("the end of a revoked session's stream: %v", err)
	}
}

// at moves the turn of a place on.
func (w *world) at(place core.Path, stage watch.Stage) {
	w.stages.ObserveStage(watch.TurnStage{
		Turn: core.TurnID{Path: place, Seq: 1}, Stage: stage, Began: w.clock(), Private: place == direct,
		Person: core.MustPath("telegram/@user/7"),
	})
}

// TestLiveStages follows a turn from its beginning to its end.
func TestLiveStages(t *testing.T) {
	w := newWorld(t)
	w.at(direct, watch.StageWaiting)
	c := w.in()
	if body := c.get("/").body; !strings.Contains(body, `<span class="mark">waiting</span>`) {
		t.Errorf("the page tells nothing of a turn that runs: %s", body)
	}
	lines, _ := c.stream()
	if rows := w.event(lines, "running"); !strings.Contains(rows, ">waiting<") || !strings.Contains(rows, "telegram/1000") {
		t.Errorf("what runs already: %s", rows)
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
		t.Errorf("what runs in the end: %s", rows)
	}
}

func TestManyRun(t *testing.T) {
	w := newWorld(t)
	for i := range maxRunning + 3 {
		w.at(core.MustPath("telegram/"+strconv.Itoa(i+1)), watch.StageThinking)
	}
	if r := w.page.running(); len(r.Turns) != maxRunning || r.More != 3 {
		t.Errorf("%d are listed, and %d more", len(r.Turns), r.More)
	}
	if body := w.in().get("/").body; !strings.Contains(body, "and 3 more") {
		t.Error("the page does not tell that there are more")
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

// line is a store in which so many messages wait in a place.
type line struct{ n *atomic.Int64 }

func (l line) View(_ context.Context, f func(core.View) error) error {
	return f(looked{n: int(l.n.Load())})
}

// looked is a state of it.
type looked struct {
	core.View
	n int
}

func (l looked) Waiting() ([]core.Path, error) { return []core.Path{group}, nil }

func (l looked) Due(core.Path, int) ([]core.Entry, error) { return make([]core.Entry, l.n), nil }

// tape is a browser that keeps what it is sent until it is taken.
type tape struct {
	mu   sync.Mutex
	text string
}

func (*tape) Header() http.Header              { return http.Header{} }
func (*tape) WriteHeader(int)                  {}
func (*tape) Flush()                           {}
func (*tape) SetWriteDeadline(time.Time) error { return nil }

func (b *tape) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.text += string(p)
	return len(p), nil
}

func (b *tape) took() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	text := b.text
	b.text = ""
	return text
}

// TestLiveWaiting lets the count of what waits change while a page is open.
func TestLiveWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n atomic.Int64
		n.Store(3)
		p := quiet(new(admin.Traces), new(admin.Running), line{n: &n})
		w := new(tape)
		ctx, end := context.WithCancel(t.Context())
		go func() { _ = p.live(&visit{Request: new(http.Request).WithContext(ctx), w: w, session: new(session)}) }()
		told := func() string {
			synctest.Wait()
			return w.took()
		}
		if text := told(); !strings.HasSuffix(text, "event: waiting\ndata: 3\n\n") {
			t.Errorf("at the beginning: %q", text)
		}
		time.Sleep(countEvery * turnsEvery)
		if text := told(); text != "" {
			t.Errorf("nothing has changed: %q", text)
		}
		n.Store(5)
		time.Sleep(countEvery * turnsEvery)
		if text := told(); text != "event: waiting\ndata: 5\n\n" {
			t.Errorf("after a change: %q", text)
		}
		end()
		synctest.Wait()
	})
}

// patient is a browser that can be written to.
type patient struct{ *httptest.ResponseRecorder }

func (patient) SetWriteDeadline(time.Time) error { return nil }

// TestStreamOfAnIdleSession leaves a page open, and does nothing there.
func TestStreamOfAnIdleSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := quiet(new(admin.Traces), new(admin.Running), line{n: new(atomic.Int64)})
		cookie, _ := p.logins.login(p.logins.ticket(), "")
		if cookie == "" {
			t.Fatal("not let in")
		}
		w := patient{httptest.NewRecorder()}
		began := time.Now()
		v := &visit{Request: new(http.Request).WithContext(t.Context()), w: w, session: p.logins.session(cookie)}
		if err := p.live(v); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took < sessionIdle || took > sessionIdle+2*heartbeat {
			t.Errorf("it ended after %v", took)
		}
		if !strings.HasSuffix(w.Body.String(), "event: over\ndata: over\n\n") {
			t.Errorf("it ended with %q", w.Body.String())
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

// TestDeadBrowser opens the live turns over a connection that is then neither
// read nor closed: turns go on at once, and after a while the stream is ended.
func TestDeadBrowser(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		traces, stages := new(admin.Traces), new(admin.Running)
		p := quiet(traces, stages, line{n: new(atomic.Int64)})
		cookie, _ := p.logins.login(p.logins.ticket(), "")
		if cookie == "" {
			t.Fatal("not let in")
		}
		dead, conn := net.Pipe() // has no buffer: a writer waits for a reader
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
		if took := time.Since(began); took > 0 { // by the clock of the bubble: somebody slept
			t.Errorf("turns waited %v for a browser that reads nothing", took)
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

// TestLiveFromTheBeginning: what ended before the stream began is in the list that
// it begins with.
func TestLiveFromTheBeginning(t *testing.T) {
	w := newWorld(t)
	c := w.in()
	c.get("/")
	w.turn(group, 5, "hello", false)
	w.turn(direct, 6, private, true)
	lines, _ := c.stream()
	rows := w.event(lines, "turns")
	if i, j := strings.Index(rows, "seq=6"), strings.Index(rows, "seq=5"); i < 0 || j < i || strings.Contains(rows, private) {
		t.Errorf("it begins with %s", rows)
	}
}

// quiet makes a page without a log.
func quiet(turns *admin.Traces, running *admin.Running, reader core.Reader) *Page {
	o := Options{Log: slog.New(slog.DiscardHandler), Clock: time.Now, Turns: turns, Running: running}
	o.Reader, o.Bot = reader, bot{new(world)}
	return New(o)
}
