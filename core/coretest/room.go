package coretest

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	"synthbot/core"
	"synthbot/core/watch"
)

// Room is a small interface in memory: a test can read what is sent through its message action.
type Room struct {
	Forgets bool // it does not recognise idempotency keys
	Looks   bool // it searches its messages for what an earlier attempt may have sent
	// Fail, if set, is called before each message is sent, which fails with its error.
	Fail func(text string) error
	// Refuse, if set, is called before a message is journalled as begun, and refuses it with its error.
	Refuse func(c core.Call) error
	// Lose, if set, is called after each message was sent. Its error replaces the platform's reply.
	Lose func(text string) error

	name  string
	mu    sync.Mutex
	keys  map[string]string // key → message id
	sent  []core.Sent
	sends int
	ends  chan watch.TurnEnd

	choices  map[string][]core.Choice // by message id, until it is settled
	whispers []string
}

// NewRoom returns an empty Room with a name.
func NewRoom(name string) *Room {
	return &Room{
		name: name, keys: make(map[string]string), choices: make(map[string][]core.Choice),
		ends: make(chan watch.TurnEnd, 4096),
	}
}

// Name implements core.Plugin.
func (r *Room) Name() string { return r.name }

// Actions implements core.Plugin. Each line of a text is sent as a part.
func (r *Room) Actions() []core.Action {
	return []core.Action{{
		Name: core.MessagePrefix + r.name, Brief: "Send a message to a place of this room",
		Schema:     json.RawMessage(`{"type":"object","properties":{"text":{"type":"string","minLength":1},"interface_path":{"type":"string"}},"required":["text"]}`),
		Examples:   core.Examples{Description: "Says something.", Examples: []core.Example{{Scenario: "Say hello", Payload: json.RawMessage(`{"text":"Hello!"}`)}}},
		Idempotent: true, Essential: true, Do: r.do, Check: func(_ context.Context, c core.Call) error {
			if r.Refuse == nil {
				return nil
			}
			return r.Refuse(c)
		},
	}}
}

func (r *Room) do(ctx context.Context, c core.Call) (core.Result, error) {
	var p struct {
		Text string    `json:"text"`
		Path core.Path `json:"interface_path"`
	}
	if err := json.Unmarshal(c.Payload, &p); err != nil {
		return core.Result{}, &core.Error{Kind: core.Invalid, Text: "the payload does not fit the schema", Err: err}
	}
	if p.Path.IsZero() {
		p.Path = c.Path
	}
	parts := strings.Split(p.Text, "\n")
	var failed error
	for i, text := range parts {
		began := c.Deliveries.Since(i + 1)
		what := core.Sent{Path: p.Path, Text: text, Repeatable: r.repeatable()}
		err := c.Deliveries.Send(ctx, i+1, what, func(_ context.Context, key string) (string, error) {
			if id := r.look(text, began); id != "" {
				return id, nil
			}
			return r.send(key, core.Sent{Path: p.Path, Text: text})
		})
		if !core.SendsOn(&failed, err) {
			break
		}
	}
	return core.Result{}, failed
}

// repeatable reports whether a message that is sent again appears only once.
func (r *Room) repeatable() bool { return !r.Forgets || r.Looks }

// look returns the id of a message with a text that was sent since then; "" if there is none.
func (r *Room) look(text string, since time.Time) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.sent {
		if r.Looks && !since.IsZero() && s.Text == text && !s.Time.Before(since) {
			return s.ID
		}
	}
	return ""
}

func (r *Room) send(key string, s core.Sent) (string, error) {
	if r.Fail != nil {
		if err := r.Fail(s.Text); err != nil {
			return "", err
		}
	}
	id := r.put(key, s)
	if r.Lose != nil {
		return id, r.Lose(s.Text)
	}
	return id, nil
}

func (r *Room) put(key string, s core.Sent) (id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sends++
	if id, known := r.keys[key]; known && !r.Forgets {
		return id
	}
	s.ID, s.Time = fmt.Sprintf("%s-%d", r.name, r.sends), time.Now()
	r.keys[key] = s.ID
	r.sent = append(r.sent, s)
	return s.ID
}

// Listen implements core.Interface. It receives no events.
func (r *Room) Listen(ctx context.Context, _ core.Inbox) error {
	<-ctx.Done()
	return nil
}

// Sent returns the messages in the room.
func (r *Room) Sent() []core.Sent {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]core.Sent(nil), r.sent...)
}

// Texts returns the texts of the messages in the room.
func (r *Room) Texts() []string {
	var texts []string
	for _, s := range r.Sent() {
		texts = append(texts, s.Text)
	}
	return texts
}

// Observe implements watch.Observer.
func (r *Room) Observe(e watch.TurnEnd) { r.ends <- e }

// Ends returns a channel with the ends of turns.
func (r *Room) Ends() <-chan watch.TurnEnd { return r.ends }

// Choose implements core.Chooser.
func (r *Room) Choose(ctx context.Context, parts core.Deliveries, what core.Sent, choices []core.Choice) error {
	began := parts.Since(1)
	what.Repeatable = r.repeatable()
	return parts.Send(ctx, 1, what, func(_ context.Context, key string) (string, error) {
		id, err := r.look(what.Text, began), error(nil)
		if id == "" {
			id, err = r.send(key, what)
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.choices[id] = choices
		return id, err
	})
}

// Settle implements core.Chooser.
func (r *Room) Settle(_ context.Context, m core.Sent) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.choices, m.ID)
	for i := range r.sent {
		if r.sent[i].ID == m.ID {
			r.sent[i].Text = m.Text
		}
	}
	return nil
}

// Whisper implements core.Chooser.
func (r *Room) Whisper(_ context.Context, _ core.Message, text string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.whispers = append(r.whispers, text)
	return nil
}

// Whispers returns the texts of Whisper.
func (r *Room) Whispers() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.whispers...)
}

// Choices returns the buttons that can be pressed now, by message id.
func (r *Room) Choices() map[string][]core.Choice {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.choices)
}
