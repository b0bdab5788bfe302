package turn

import (
	"context"
	"fmt"
	"strings"

	"synthbot/core"
)

// followerOf returns the plugin that sent a message and answers replies to it; nil if there is none.
func (s *setup) followerOf(said *core.Entry) core.Follower {
	if said == nil || !said.Self {
		return nil
	}
	name, _, _ := strings.Cut(said.Data, ":")
	return s.Plugins.Followers[name]
}

// entryNear returns an entry of a place, or the message from which the place was started as a thread:
// the path of such a thread ends with the id of that message.
func entryNear(v core.View, place core.Path, id string) (e core.Entry, ok bool, err error) {
	e, ok, err = v.Entry(place, id)
	elements := place.Elements()
	if err != nil || ok || id != elements[len(elements)-1] {
		return e, ok, err
	}
	return v.Entry(place.Parent(), id)
}

// joinThread makes the first message of a thread a reply to the message that began the thread, if a plugin sent that.
func (t *Turns) joinThread(ctx context.Context, s *setup, e *core.Event) error {
	m := &e.Message
	elements := m.Path.Elements()
	if len(s.Plugins.Followers) == 0 || len(elements) < 4 || e.Kind != core.KindMessage ||
		m.Author.Bot || m.ReplyTo != nil {
		return nil
	}
	return t.store.View(ctx, func(v core.View) error {
		head, err := v.Head(m.Path)
		if err != nil || head.Count > 0 {
			return err
		}
		said, _, err := v.Entry(m.Path.Parent(), elements[len(elements)-1])
		if s.followerOf(&said) != nil {
			m.ReplyTo, m.Addressed = &core.Quote{ID: said.Message.ID, Text: said.Message.Text}, core.AddressedReply
		}
		return err
	})
}

// separateReply shortens the waiting entries so that a reply to a plugin's message is answered alone.
func (s *setup) separateReply(v core.View, waiting []core.Entry) ([]core.Entry, error) {
	for i := range waiting {
		m := &waiting[i].Message
		if len(s.Plugins.Followers) == 0 || m.ReplyTo == nil {
			continue
		}
		said, _, err := entryNear(v, m.Path, m.ReplyTo.ID)
		if err != nil {
			return nil, err
		}
		if s.followerOf(&said) != nil {
			return waiting[:max(i, 1)], nil
		}
	}
	return waiting, nil
}

// follow lets a plugin answer a reply to its message. If the plan has no steps, the model answers.
func (in *input) follow(ctx context.Context) (a accepted, err error) {
	t := in.turn
	said := in.said
	f := t.setup.followerOf(said)
	if f == nil || len(t.messages) != 1 {
		return a, nil
	}
	answer, err := f.Follow(ctx, t.messages[0].Message, *said)
	if err != nil {
		return a, fmt.Errorf("reply to %q: %w", said.Data, err)
	}
	if answer.Text != "" {
		a.Plan = t.planText(answer.Text, answer.Suggestions...)
		a.Data, a.Read.Strangers = said.Data, true
	}
	return a, nil
}
