package console

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"testing"
	"time"

	"synthbot/core"
	"synthbot/core/watch"
)

// bot is a small bot. It answers every message through the console's action, with a goroutine
// for each turn.
type bot struct {
	suggest map[string][]string // suggested replies, by a message's text
	more    map[string]string   // the message with which the bot continues its turn, by a message's text
	t       *testing.T
	console *Console
	reply   func(core.Message) []string // if it returns none, the turn ends without an answer
	think   chan struct{}               // if set, turns wait until it is closed
	refuse  error                       // if set, Receive fails

	mu   sync.Mutex
	got  []core.Message
	busy sync.WaitGroup

	finish sync.Once
}

func echo(m core.Message) []string { return []string{"you said: " + m.Text} }

func (b *bot) Receive(_ context.Context, events ...core.Event) error {
	if b.refuse != nil {
		return b.refuse
	}
	for _, e := range events {
		b.mu.Lock()
		b.got = append(b.got, e.Message)
		b.mu.Unlock()
		b.busy.Go(func() { b.turn(e.Message) })
	}
	return nil
}

func (b *bot) turn(m core.Message) {
	if b.think != nil {
		ctx, stop := context.WithCancel(context.Background())
		var shown sync.WaitGroup
		shown.Go(func() { b.console.ShowTyping(ctx, m.Path) })
		<-b.think
		stop()
		shown.Wait()
	}
	replies := b.reply(m)
	for _, r := range replies {
		payload, _ := json.Marshal(map[string]any{"text": r, "suggestions": b.suggest[m.Text]})
		call := core.Call{Path: m.Path, Payload: payload, Deliveries: parts{}}
		if _, err := b.console.Actions()[0].Do(b.t.Context(), call); err != nil {
			b.t.Error(err)
		}
	}
	end := watch.TurnEnd{Turn: core.TurnID{Path: m.Path, Seq: 1}, Messages: []string{m.ID}, Answered: len(replies) > 0}
	text, continues := b.more[m.Text]
	if continues {
		end.GoesOn = m.ID + "+"
	}
	if b.console.Observe(end); continues {
		m.ID, m.Text = end.GoesOn, text
		b.turn(m)
	}
}

// end lets waiting turns continue and waits until all have ended.
func (b *bot) end() {
	if b.think != nil {
		b.finish.Do(func() { close(b.think) })
	}
	b.busy.Wait()
}

func (b *bot) messages() []core.Message {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.got
}

// parts is a core.Deliveries that sends every part and records it if sent is set.
type parts struct{ sent *[]core.Sent }

func (p parts) Since(int) time.Time { return time.Time{} }

func (p parts) Send(
	ctx context.Context, n int, what core.Sent, do func(context.Context, string) (string, error),
) error {
	id, err := do(ctx, "key")
	if err == nil && id == "" {
		err = errors.New("a part was sent without an id")
	}
	if what.ID = id; p.sent != nil {
		*p.sent = append(*p.sent, what)
	}
	return err
}
