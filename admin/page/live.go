package page

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"synthbot/core"
	"synthbot/core/watch"
)

// Limits of a live stream. A browser that takes longer is disconnected.
const (
	streamRoom  = 256 // turns that may wait for it; others are dropped
	streamPause = 250 * time.Millisecond
	streamWrite = 5 * time.Second
	streamBeat  = 15 * time.Second
	streamCount = 2 * time.Second // how often what waits is counted
	streamMost  = 20              // turns at once
)

// live sends the stages of running turns, and finished turns, by server-sent events, until the
// browser disconnects or its session ends.
func (p *Page) live(v *visit) error {
	select {
	case p.streams <- struct{}{}:
		defer func() { <-p.streams }()
	default:
		return userError{http.StatusServiceUnavailable, "Too many pages are open that show turns live."}
	}
	ends, done := p.Turns.Subscribe(streamRoom)
	defer done()
	changes, quit := p.Running.Changes()
	defer quit()
	s := &stream{w: v.w, c: http.NewResponseController(v.w), ends: ends, changes: changes}
	_ = s.c.SetReadDeadline(time.Time{}) // the stream has no time limit
	v.w.Header().Set("Content-Type", "text/event-stream")
	p.flow(v.Context(), v.session, s)
	return nil
}

// flow collects the events of a pause and sends them.
func (p *Page) flow(ctx context.Context, of *session, s *stream) {
	beat, count, state := time.NewTicker(streamBeat), time.NewTicker(streamCount), time.NewTicker(stateEvery)
	defer beat.Stop()
	defer state.Stop()
	defer count.Stop()
	s.say(": welcome\nretry: 3000\n\n")
	var b bytes.Buffer
	rows := p.rows(ctx, p.Turns.Recent(shown)...)
	p.event(&b, "now", "turns", "rows", rows) // those that ended while there was no connection
	s.say(b.String())
	p.tell(ctx, s, nil)
	waited := p.count(ctx, s, -1)
	for s.err == nil {
		select {
		case <-ctx.Done():
			return
		case <-of.over:
			s.say("event: over\ndata: over\n\n")
			return
		case <-beat.C:
			p.logins.tidy() // an open stream does not keep a session alive
			s.say(": still here\n\n")
		case <-state.C:
			overviewPage{p}.tellState(ctx, of, s)
		case <-count.C:
			waited = p.count(ctx, s, waited)
		case e := <-s.ends:
			p.tell(ctx, s, s.gather(ctx, e))
		case <-s.changes:
			p.tell(ctx, s, s.gather(ctx))
		}
	}
}

// count sends how many messages wait, if that has changed.
func (p *Page) count(ctx context.Context, s *stream, before int) int {
	n, err := p.waiting(ctx)
	if err != nil || n == before {
		return before
	}
	s.say(fmt.Sprintf("event: waiting\ndata: %d\n\n", n))
	return n
}

// tellState sends how the bot is, if that has changed.
func (p overviewPage) tellState(ctx context.Context, of *session, s *stream) {
	o, err := p.overview(ctx)
	if err != nil {
		p.Log.Warn("the state is not shown", "err", err)
		return
	}
	var b bytes.Buffer
	p.event(&b, "now", "state", "state", sheet{CSRF: of.csrf, Data: map[string]any{"State": o}})
	if b.String() != s.state {
		s.state = b.String()
		s.say(s.state)
	}
}

// gather adds the turns that end within a pause. It keeps the newest turns.
func (s *stream) gather(ctx context.Context, list ...watch.TurnEnd) []watch.TurnEnd {
	pause := time.NewTimer(streamPause)
	defer pause.Stop()
	for {
		select {
		case e := <-s.ends:
			list = append(list, e)
			list = list[max(0, len(list)-streamMost):]
		case <-pause.C:
			return list
		case <-ctx.Done():
			return list
		}
	}
}

// tell sends rows of finished turns, and all running turns.
func (p *Page) tell(ctx context.Context, s *stream, ends []watch.TurnEnd) {
	select {
	case <-s.changes: // they are sent now
	default:
	}
	var b bytes.Buffer
	for _, row := range p.rows(ctx, ends...) {
		p.event(&b, "now", "turn", "row", row)
	}
	p.event(&b, "now", "running", "running", p.running(ctx))
	s.say(b.String())
}

// event renders data as one event.
func (p *Page) event(b *bytes.Buffer, page, name, sheet string, data any) {
	var line bytes.Buffer
	if err := p.sheets[page].Execute(&line, sheet, data); err != nil {
		p.Log.Error("a turn cannot be shown", "err", err)
		return
	}
	text := bytes.ReplaceAll(bytes.ReplaceAll(line.Bytes(), []byte("\r"), nil), []byte("\n"), []byte(" "))
	fmt.Fprintf(b, "event: %s\ndata: %s\n\n", name, text)
}

// stream writes to a browser that may be slow or disconnected.
type stream struct {
	w       http.ResponseWriter
	c       *http.ResponseController
	ends    <-chan watch.TurnEnd
	changes <-chan struct{}
	state   string // that was sent last
	err     error
}

func (s *stream) say(text string) {
	s.err = s.c.SetWriteDeadline(time.Now().Add(streamWrite))
	if s.err == nil {
		_, s.err = fmt.Fprint(s.w, text)
	}
	if s.err == nil {
		s.err = s.c.Flush()
	}
}

// Limits of the samples of the queue.
const (
	queueEvery = 10 * time.Second
	queueMost  = 360 // samples
	queuePlace = 100 // entries that are counted in one place
)

// depth is how many entries waited at a time.
type depth struct {
	Time    time.Time
	Entries int
}

// queue stores how many entries waited.
type queue struct {
	mu   sync.Mutex
	list []depth
}

func (q *queue) add(d depth) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.list) >= queueMost {
		q.list = q.list[1:]
	}
	q.list = append(q.list, d)
}

func (q *queue) samples() []depth {
	q.mu.Lock()
	defer q.mu.Unlock()
	return append([]depth(nil), q.list...)
}

// Run samples the queue until ctx ends.
func (p *Page) Run(ctx context.Context) {
	tick := time.NewTicker(queueEvery)
	defer tick.Stop()
	for {
		if n, err := p.waiting(ctx); err == nil {
			p.queue.add(depth{p.Clock(), n})
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// waiting counts the messages that wait for an answer.
func (p *Page) waiting(ctx context.Context) (n int, err error) {
	err = p.Reader.View(ctx, func(v core.View) error {
		places, err := v.Waiting()
		for _, place := range places {
			due, err := v.Due(place, queuePlace)
			if err != nil {
				return err
			}
			n += len(due)
		}
		return err
	})
	return n, err
}
