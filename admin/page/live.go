package page

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"synthbot/core"
	"synthbot/core/loop"
	"synthbot/core/watch"
)

// Limits of a live stream. A browser that takes longer is disconnected.
const (
	streamWrite = 5 * time.Second
	heartbeat   = 15 * time.Second
)

// How often the stream of turns looks for changes.
const (
	turnsEvery     = 250 * time.Millisecond
	countEvery     = 8  // waiting messages are counted every 8th time
	stateEvery     = 20 // the state of the bot is read every 20th time
	maxStreamTurns = 20 // turns at once
)

// follow sends the events that look returns at an interval, until the browser disconnects or its session ends.
func (p *Page) follow(v *visit, every time.Duration, look func() (events string)) error {
	select {
	case p.streams <- struct{}{}:
		defer func() { <-p.streams }()
	default:
		return userError{http.StatusServiceUnavailable, "Too many live pages are open."}
	}
	c := http.NewResponseController(v.w)
	write := func(text string) error {
		err := c.SetWriteDeadline(time.Now().Add(streamWrite))
		if err == nil {
			_, err = fmt.Fprint(v.w, text)
		}
		if err == nil {
			err = c.Flush()
		}
		return err
	}
	_ = c.SetReadDeadline(time.Time{}) // the stream has no time limit
	v.w.Header().Set("Content-Type", "text/event-stream")
	tick, beat := time.NewTicker(every), time.NewTicker(heartbeat)
	defer tick.Stop()
	defer beat.Stop()
	err := write(": welcome\nretry: 3000\n\n" + look())
	for err == nil {
		select {
		case <-v.Context().Done():
			return nil
		case <-v.session.over:
			_ = write("event: over\ndata: over\n\n")
			return nil
		case <-beat.C:
			p.logins.expireNow() // an open stream does not keep a session alive
			err = write(": still here\n\n")
		case <-tick.C:
			events := look()
			if events != "" {
				err = write(events)
			}
		}
	}
	return nil // the browser is gone
}

// event returns a server-sent event whose data is a rendered template; "" if it cannot be rendered.
func (p *Page) event(ctx context.Context, page, name, template string, data any) string {
	var b bytes.Buffer
	if err := p.execute(ctx, &b, page, template, data); err != nil {
		p.Log.Error("live event not rendered", "name", name, "err", err)
		return ""
	}
	line := strings.NewReplacer("\r", "", "\n", " ").Replace(b.String())
	return fmt.Sprintf("event: %s\ndata: %s\n\n", name, line)
}

// live sends the latest turns, and then each change.
func (p *Page) live(v *visit) error {
	l := &liveTurns{Page: p, visit: v, waits: -1}
	return p.follow(v, turnsEvery, l.look)
}

// liveTurns is an open stream of turns, with what it sent last.
type liveTurns struct {
	*Page
	visit *visit
	looks int    // how often look was called
	last  uint64 // the number of the latest turn
	runs  []watch.TurnStage
	state string // as an event
	waits int    // messages
}

// look returns events about changes: of ended and running turns, the bot's state, and the number of waiting messages.
func (l *liveTurns) look() (events string) {
	ctx, first := l.visit.Context(), l.looks == 0
	if first {
		var rows []row
		rows, l.last = l.latest()
		events = l.event(ctx, "now", "turns", "rows", rows) // includes turns that ended before the connection
	}
	ends, last := l.Turns.After(l.last, maxStreamTurns)
	for _, e := range ends {
		events += l.event(ctx, "now", "turn", "row", rowOf(e))
	}
	l.last = last
	now := l.Running.Now()
	if first || !slices.Equal(now, l.runs) {
		l.runs, events = now, events+l.event(ctx, "now", "running", "running", l.running())
	}
	if l.looks%stateEvery == 0 {
		events += l.stateChange(ctx)
	}
	if l.looks%countEvery == 0 {
		events += l.countChange(ctx)
	}
	l.looks++
	return events
}

// stateChange returns an event with the state of the bot; "" if it has not changed.
func (l *liveTurns) stateChange(ctx context.Context) string {
	state, err := l.status(ctx)
	if err != nil {
		l.Log.Warn("the state is not shown", "err", err)
		return ""
	}
	data := pageData{CSRF: l.visit.session.csrf, Data: map[string]any{"State": state}}
	event := l.event(ctx, "now", "state", "state", data)
	if event == l.state {
		return ""
	}
	l.state = event
	return event
}

// countChange returns an event with the number of waiting messages; "" if it has not changed.
func (l *liveTurns) countChange(ctx context.Context) string {
	n, err := l.Page.waiting(ctx)
	if err != nil || n == l.waits {
		return ""
	}
	l.waits = n
	return fmt.Sprintf("event: waiting\ndata: %d\n\n", n)
}

// Limits of the samples of the queue.
const (
	queueEvery = 10 * time.Second
	maxSamples = 360 // samples
	queuePlace = 100 // at most so many entries are counted in one place
)

type queueSample struct {
	Time    time.Time
	Entries int
}

type queue struct {
	mu   sync.Mutex
	list []queueSample
}

func (q *queue) add(d queueSample) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.list = append(q.list[max(len(q.list)+1-maxSamples, 0):], d)
}

func (q *queue) samples() []queueSample {
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.Clone(q.list)
}

// Run samples the queue until ctx ends.
func (p *Page) Run(ctx context.Context) {
	loop.Repeat(ctx, nil, func() time.Duration {
		if n, err := p.waiting(ctx); err == nil {
			p.queue.add(queueSample{p.Clock(), n})
		}
		return queueEvery
	})
}

// waiting counts the entries that wait for an answer.
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
