package telegram

import (
	"context"
	"slices"
	"sync"

	"synthbot/core"
)

// marks are the reactions that say that a message is being answered.
type marks struct {
	mu   sync.Mutex
	next map[core.Path]candidate                // what a thought in the place would be about
	set  map[core.Path]map[string]chan struct{} // marked messages; closed when that was told
	seen map[string]bool                        // messages of this life
}

// candidate is a message that may be answered.
type candidate struct {
	id        string
	addressed bool
}

// heard takes notice of a message. One that speaks to the bot is what it will
// think about, before one that does not.
func (l *marks) heard(m *core.Message) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.next == nil {
		l.next, l.set, l.seen = map[core.Path]candidate{}, map[core.Path]map[string]chan struct{}{}, map[string]bool{}
	}
	room(l.next, maxPlaces)
	room(l.seen, maxThreads)
	l.seen[m.Path.String()+" "+m.ID] = true
	if addressed := m.Addressed != core.NotAddressed; addressed || !l.next[m.Path].addressed {
		l.next[m.Path] = candidate{m.ID, addressed}
	}
}

// begin returns the message to mark, and what to close when it was told; "" for
// none.
func (l *marks) begin(p core.Path) (message string, told chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c, ok := l.next[p]
	if !ok || l.set[p][c.id] != nil {
		return "", nil
	}
	if l.set[p] == nil {
		room(l.set, maxPlaces)
		l.set[p] = map[string]chan struct{}{}
	}
	told = make(chan struct{})
	l.set[p][c.id] = told
	return c.id, told
}

// over returns what is to be unmarked when a turn is over, with what to wait for
// first. A message of a former life may have been marked by it. A chat command leaves
// the marks of the turn beside it.
func (l *marks) over(end core.TurnEnd) map[string]chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	gone := map[string]chan struct{}{}
	for m, told := range l.set[end.Turn.Path] {
		if !end.Command || slices.Contains(end.Messages, m) {
			gone[m] = told
			delete(l.set[end.Turn.Path], m)
		}
	}
	if len(l.set[end.Turn.Path]) == 0 {
		delete(l.set, end.Turn.Path)
	}
	if slices.Contains(end.Messages, l.next[end.Turn.Path].id) {
		delete(l.next, end.Turn.Path)
	}
	for _, m := range end.Messages {
		if key := end.Turn.Path.String() + " " + m; !l.seen[key] {
			gone[m] = nil
		}
	}
	return gone
}

// acknowledge puts the configured reaction on the message that is being
// answered in a place.
func (d *Driver) acknowledge(p core.Path, s chatKey) {
	if d.opt.Config.Acknowledge == "" {
		return
	}
	message, told := d.marks.begin(p)
	if message == "" {
		return
	}
	if !d.later(func(ctx context.Context) { defer close(told); d.mark(ctx, s, message, d.opt.Config.Acknowledge) }) {
		close(told)
	}
}

// Observe takes away what was shown while a turn ran: the reaction, and a draft
// that became no message.
func (d *Driver) Observe(end core.TurnEnd) {
	s, err := chatKeyOf(d.opt.Name, end.Turn.Path)
	if err != nil || end.Turn.Seq == 0 {
		return
	}
	s.chat = d.places.now(s.chat)
	if !end.Command {
		d.send.drafts.Withdraw(d.send.draftPlace(s))
		d.send.drafts.ClearSoon(d.send.draftPlace(s))
	}
	if d.opt.Config.Acknowledge == "" {
		return
	}
	for message, told := range d.marks.over(end) {
		d.later(func(ctx context.Context) {
			if told != nil {
				<-told
			}
			d.mark(ctx, s, message, "")
		})
	}
}

func (d *Driver) mark(ctx context.Context, s chatKey, message, emoji string) {
	n, err := number(message)
	if n = d.places.messageNumber(s.chat, n); err != nil || n == 0 {
		return
	}
	if err := d.send.setReaction(ctx, s, n, emoji); err != nil && ctx.Err() == nil {
		d.log.Debug("reaction not set", "chat", s.chat, "err", err)
	}
}
