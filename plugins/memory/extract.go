package memory

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"synthbot/core"
)

// Times of the work in the background.
const (
	breath  = 10 * time.Second // between those that a former life left
	again   = time.Hour        // after a reading that no engine answered
	lastly  = 5 * time.Second  // for writing down what a reading came to when the bot stops
	freshly = 48 * time.Hour   // how old an unread conversation may be when the bot starts
)

// waiting are the places that will be looked at, and when.
type waiting struct {
	mu   sync.Mutex
	due  map[core.Path]time.Time
	wake chan struct{} // one token
}

func newWaiting() waiting {
	return waiting{due: make(map[core.Path]time.Time), wake: make(chan struct{}, 1)}
}

// at says when a place is looked at next.
func (w *waiting) at(place core.Path, due time.Time) {
	w.mu.Lock()
	w.due[place] = due
	w.mu.Unlock()
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// next is the place that is due first.
func (w *waiting) next() (place core.Path, due time.Time, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for p, t := range w.due {
		if !ok || t.Before(due) || t.Equal(due) && p.String() < place.String() {
			place, due, ok = p, t, true
		}
	}
	return place, due, ok
}

// take takes a place out, unless it was put off meanwhile.
func (w *waiting) take(place core.Path, due time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.due[place] != due {
		return false
	}
	delete(w.due, place)
	return true
}

// Observe implements core.Observer: a turn is a sign of life, and its place is
// looked at when it has been silent for long enough.
func (p *Plugin) Observe(end core.TurnEnd) {
	if p.config.Extract && end.Turn.Seq != 0 {
		p.waiting.at(end.Turn.Path, p.host.Clock().Add(p.config.ExtractAfter))
	}
}

// Run implements core.Runner: it reads conversations again, one at a time.
func (p *Plugin) Run(ctx context.Context) error {
	if !p.config.Extract {
		<-ctx.Done()
		return nil
	}
	if err := p.resume(ctx); err != nil && ctx.Err() == nil {
		p.host.Log.Warn("unread conversations not found", "err", err)
	}
	for ctx.Err() == nil {
		place, due, ok := p.waiting.next()
		if !p.sleep(ctx, due, ok) || !p.waiting.take(place, due) {
			continue
		}
		next, err := p.reread(ctx, place)
		if err != nil && ctx.Err() == nil {
			p.host.Log.Warn("conversation not read", "path", place, "err", err)
		}
		if !next.IsZero() {
			p.waiting.at(place, next)
		}
	}
	return nil
}

// sleep waits until something is due; it returns false when it was woken before.
func (p *Plugin) sleep(ctx context.Context, due time.Time, ok bool) bool {
	var alarm <-chan time.Time
	if ok {
		timer := time.NewTimer(due.Sub(p.host.Clock()))
		defer timer.Stop()
		alarm = timer.C
	}
	select {
	case <-ctx.Done():
		return false
	case <-p.waiting.wake:
		return false
	case <-alarm:
		return true
	}
}

// resume looks for what a former life left unread: where a place was read
// before, or was talked in lately.
func (p *Plugin) resume(ctx context.Context) error {
	heads, err := p.places(ctx)
	if err != nil {
		return err
	}
	items, err := p.host.Items.List(ctx, core.Path{})
	if err != nil {
		return fmt.Errorf("marks: %w", err)
	}
	marks := make(map[core.Path]mark)
	for _, item := range items {
		var m mark
		if item.Key == markKey && json.Unmarshal(item.Value, &m) == nil {
			marks[item.Path] = m
		}
	}
	at := p.host.Clock()
	for _, h := range heads {
		m, read := marks[h.Path]
		if h.Last <= m.reached() || !read && at.Sub(h.Time) > freshly {
			continue
		}
		due := h.Time.Add(p.config.ExtractAfter)
		if due.Before(at) || due.Sub(at) > p.config.ExtractAfter { // the platform's clock is not ours
			due, at = at, at.Add(breath)
		}
		p.waiting.at(h.Path, due)
	}
	return nil
}

// markKey is where the mark of a place is kept, under its path.
const markKey = "read"

// mark says how far a place has been read.
type mark struct {
	Seq   uint64 `json:"seq"`             // everything up to here was read
	Begun uint64 `json:"begun,omitempty"` // a reading up to here was begun
	Day   string `json:"day,omitempty"`
	Runs  int    `json:"runs,omitempty"` // of that day

	version uint64
}

// reached is how far it was read, or was to be read by a life that ended in the
// middle: no part is read twice.
func (m *mark) reached() uint64 { return max(m.Seq, m.Begun) }

func (p *Plugin) mark(ctx context.Context, place core.Path) (m mark, err error) {
	item, ok, err := p.host.Items.Get(ctx, place, markKey)
	if ok && err == nil {
		err = json.Unmarshal(item.Value, &m)
	}
	if err != nil {
		return mark{}, fmt.Errorf("mark: %w", err)
	}
	m.Seq, m.Begun, m.version = m.reached(), 0, item.Version
	return m, nil
}

func (p *Plugin) put(ctx context.Context, place core.Path, m *mark) error {
	value, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("mark: %w", err)
	}
	if m.version, err = p.host.Items.Put(ctx,
		core.Item{Path: place, Key: markKey, Version: m.version, Value: value}); err != nil {
		return fmt.Errorf("mark: %w", err)
	}
	return nil
}

// reread reads the new part of a place, if it is over, and keeps what it finds.
// next is when the place is to be looked at again; zero: when it is talked in.
func (p *Plugin) reread(ctx context.Context, place core.Path) (next time.Time, err error) {
	ctx, now := core.WithEpoch(ctx, p.host.Facts.Epoch()), p.host.Clock()
	m, err := p.mark(ctx, place)
	if err != nil {
		return next, err
	}
	part, err := p.part(ctx, place, m.Seq)
	if err != nil || part.mine == 0 {
		return next, err
	}
	over := part.last.Add(p.config.ExtractAfter)
	if over.After(now) && !part.full {
		return over, nil
	}
	if part.theirs < p.config.ExtractMin {
		return next, nil
	}
	today := now.Format(dateLayout)
	if m.Day != today {
		m.Day, m.Runs = today, 0
	}
	if m.Runs >= p.config.ExtractDaily {
		year, month, day := now.Date()
		return time.Date(year, month, day+1, 0, 0, 0, 0, now.Location()).Add(p.config.ExtractAfter), nil
	}
	m.Begun, m.Runs = part.to, m.Runs+1
	if err := p.put(ctx, place, &m); err != nil {
		return next, err
	}
	notes, err := p.ask(ctx, part)
	if err == nil {
		err = p.keep(ctx, part, notes)
	}
	next = p.settle(ctx, &m, err)
	if errors.Is(err, core.ErrNoEngine) {
		err = nil
	}
	return next, errors.Join(err, p.finish(ctx, place, &m))
}

// settle notes in the mark what a reading came to. What an engine could not
// answer is tried again later; what it answered wrongly is not, nor what was
// kept in part.
func (p *Plugin) settle(ctx context.Context, m *mark, err error) (next time.Time) {
	failed := (*unanswered)(nil)
	switch {
	case errors.Is(err, core.ErrNoEngine), errors.As(err, &failed) && ctx.Err() != nil:
		m.Runs-- // nothing was asked, or the answer came to nobody
	case failed != nil:
		next = p.host.Clock().Add(again)
	default:
		m.Seq = m.Begun
	}
	m.Begun = 0
	return next
}

// unanswered is what asking failed with.
type unanswered struct{ error }

func (u *unanswered) Unwrap() error { return u.error }

// finish writes the mark, even if the bot is about to stop.
func (p *Plugin) finish(ctx context.Context, place core.Path, m *mark) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastly)
	defer cancel()
	return p.put(ctx, place, m)
}

// keep saves what was found. What concerns somebody who was forgotten meanwhile
// is left out.
func (p *Plugin) keep(ctx context.Context, part *part, notes []note) error {
	kept := 0
	for _, n := range notes {
		f := core.Fact{
			Text: n.Text, Tags: n.Tags, Topic: n.Topic, Importance: n.Importance, Language: p.language(n.Language),
			Origin: part.place,
		}
		if n.told { // else it is what the bot makes of the talk
			f.By = part.people[n.By-1].path
		}
		for _, about := range n.About {
			f.About = append(f.About, part.people[about-1].path)
		}
		if _, err := p.host.Facts.SaveFact(ctx, f); errors.Is(err, core.ErrForgotten) {
			continue
		} else if err != nil {
			return fmt.Errorf("keep: %w", err)
		}
		kept++
	}
	p.host.Log.Info("conversation read", "path", part.place, "messages", len(part.lines), "kept", kept)
	return nil
}
