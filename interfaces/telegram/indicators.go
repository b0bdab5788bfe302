package telegram

import (
	"context"
	"slices"
	"sync"
	"time"

	"synthbot/core"
	"synthbot/core/loop"
	"synthbot/core/watch"
	"synthbot/interfaces/telegram/botapi"
)

const (
	typingInterval = 4500 * time.Millisecond // Telegram shows it for five seconds
	maxTyping      = 5 * time.Minute
)

// ShowTyping implements core.TypingIndicator. It shows that the bot is typing until ctx ends, or for 5 minutes at most.
// It also acknowledges the message. It pauses while the rate limits leave little room, and while a draft changes.
func (d *Driver) ShowTyping(ctx context.Context, p core.Path) {
	d.acknowledge(p)
	d.showAction(ctx, p, "typing")
}

// ShowRecording implements core.RecordingIndicator, like ShowTyping.
func (d *Driver) ShowRecording(ctx context.Context, p core.Path) {
	d.showAction(ctx, p, "record_voice")
}

func (d *Driver) showAction(ctx context.Context, p core.Path, action string) {
	defer func() { <-ctx.Done() }()
	s, err := chatKeyOf(d.opt.Name, p)
	if err != nil {
		return
	}
	for end := time.Now().Add(maxTyping); time.Now().Before(end); {
		s.chat = d.places.currentChat(s.chat)
		if time.Since(d.send.drafts.Shown(d.send.draftPlace(s))) >= draftSilence && d.api.TakeSpare(s.chat) {
			params := botapi.Params{"message_thread_id": s.thread, "action": action}
			if s.thread == 0 && d.places.isForum(s.chat) {
				params["message_thread_id"] = general
			}
			err := d.api.Try(ctx, &botapi.Request{Method: "sendChatAction", Params: params, Chat: s.chat})
			if err != nil && ctx.Err() == nil {
				d.log.Debug("typing not shown", "chat", s.chat, "err", err)
				if botapi.IsCode(err, 400, 401, 403, 404) && d.places.currentChat(s.chat) == s.chat {
					return
				}
			}
		}
		if !loop.Sleep(ctx, typingInterval) {
			return
		}
	}
}

// marks are the acknowledging reactions on messages that are being answered.
type marks struct {
	mu   sync.Mutex
	next map[core.Path]candidate      // the message that the next turn in a place would answer
	all  map[messageKey]chan struct{} // messages of this process; nil: not marked, else closed once the mark is set
}

type candidate struct {
	id        string
	addressed bool
}

// noteCandidate records a message. The next turn marks the newest message that addresses the bot, or else the newest.
func (l *marks) noteCandidate(m *core.Message) {
	l.mu.Lock()
	defer l.mu.Unlock()
	makeRoom(l.next, maxPlaces)
	makeRoom(l.all, maxThreads)
	key := messageKey{m.Path, m.ID}
	if _, ok := l.all[key]; !ok {
		l.all[key] = nil
	}
	addressed := m.Addressed != ""
	if addressed || !l.next[m.Path].addressed {
		l.next[m.Path] = candidate{m.ID, addressed}
	}
}

// beginMark returns the message to mark, and a channel to close once it is marked. The message is "" if there is none.
func (l *marks) beginMark(p core.Path) (message string, marked chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c, ok := l.next[p]
	if !ok || l.all[messageKey{p, c.id}] != nil {
		return "", nil
	}
	marked = make(chan struct{})
	l.all[messageKey{p, c.id}] = marked
	return c.id, marked
}

// endTurn returns the messages to unmark at the end of a turn. Each has a channel to wait for first, or nil. Messages
// that this process did not see may have been marked by an earlier one. A chat command keeps the marks of the turn that
// runs at the same time.
func (l *marks) endTurn(end watch.TurnEnd) map[string]chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	gone := map[string]chan struct{}{}
	for _, m := range end.Messages {
		key := messageKey{end.Turn.Path, m}
		if _, ok := l.all[key]; !ok {
			gone[m] = nil
		}
	}
	for key, marked := range l.all {
		if marked != nil && key.path == end.Turn.Path && (!end.Command || slices.Contains(end.Messages, key.id)) {
			gone[key.id] = marked
			l.all[key] = nil
		}
	}
	if slices.Contains(end.Messages, l.next[end.Turn.Path].id) {
		delete(l.next, end.Turn.Path)
	}
	return gone
}

func (d *Driver) acknowledge(p core.Path) {
	message, marked := d.marks.beginMark(p)
	if message == "" {
		return
	}
	s, _ := chatKeyOf(d.opt.Name, p) // the path of a received message is valid
	started := d.background(func(ctx context.Context) {
		defer close(marked)
		d.mark(ctx, s, message, d.opt.Config.Acknowledge)
	})
	if !started {
		close(marked)
	}
}

// Observe implements watch.Observer. At the end of a turn, it removes the reaction and an unfinished draft.
func (d *Driver) Observe(end watch.TurnEnd) {
	s, err := chatKeyOf(d.opt.Name, end.Turn.Path)
	if err != nil || end.Turn.Seq == 0 {
		return
	}
	s.chat = d.places.currentChat(s.chat)
	if !end.Command {
		d.send.drafts.Withdraw(d.send.draftPlace(s))
		d.send.drafts.ClearSoon(d.send.draftPlace(s))
	}
	if d.opt.Config.Acknowledge == "" {
		return
	}
	for message, marked := range d.marks.endTurn(end) {
		d.background(func(ctx context.Context) {
			if marked != nil {
				<-marked
			}
			d.mark(ctx, s, message, "")
		})
	}
}

// mark sets the bot's reaction on a message; an empty one removes it.
func (d *Driver) mark(ctx context.Context, s chatKey, message, emoji string) {
	n := d.places.messageNumber(s.chat, message)
	if n == 0 {
		return
	}
	if err := d.send.setReaction(ctx, s, n, emoji); err != nil && ctx.Err() == nil {
		d.log.Debug("reaction not set", "chat", s.chat, "err", err)
	}
}
