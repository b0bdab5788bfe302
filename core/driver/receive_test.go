package driver

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"synthbot/core"
)

// picky is an inbox that refuses the events with some texts.
type picky struct {
	refused map[string]error
	texts   []string
}

func (p *picky) Receive(_ context.Context, events ...core.Event) error {
	for _, e := range events {
		if err := p.refused[e.Message.Text]; err != nil {
			return fmt.Errorf("event: %w", err)
		}
	}
	for _, e := range events {
		if !slices.Contains(p.texts, e.Message.Text) { // like the real one, it takes each event once
			p.texts = append(p.texts, e.Message.Text)
		}
	}
	return nil
}

// TestReceiver: a bad event is skipped at once, a damaged one after MaxDamaged times in which others were stored. Later
// events of its place wait for it.
func TestReceiver(t *testing.T) {
	said := func(place, text string) []core.Event {
		return []core.Event{{Message: core.Message{Path: core.MustPath("chat/" + place), ID: text, Text: text}}}
	}
	in := &picky{refused: map[string]error{"bad": core.ErrBadEvent, "damaged": core.ErrDamaged}}
	var skipped []string
	r := Receiver{Inbox: in, Skip: func(e *core.Event, _ error) { skipped = append(skipped, e.Message.Text) }}
	receive := func(want error, groups ...[]core.Event) {
		t.Helper()
		if err := r.Receive(t.Context(), groups); !errors.Is(err, want) {
			t.Errorf("got error %v, want %v", err, want)
		}
	}
	receive(nil, said("1", "bad"))
	receive(nil, said("3", "bad"), said("3", "fine"))
	for range 10 { // perhaps nothing can be stored
		receive(core.ErrDamaged, said("1", "damaged"), said("1", "later"))
	}
	for range MaxDamaged {
		receive(core.ErrDamaged, said("1", "damaged"), said("1", "later"), said("2", "bad"), said("2", "elsewhere"))
	}
	receive(nil, said("1", "damaged"), said("1", "later"), said("2", "bad"), said("2", "elsewhere"))
	if want := []string{"bad", "bad", "bad", "damaged"}; !slices.Equal(skipped, want) {
		t.Errorf("skipped %q, want %q", skipped, want)
	}
	if want := []string{"fine", "elsewhere", "later"}; !slices.Equal(in.texts, want) {
		t.Errorf("stored %q, want %q", in.texts, want)
	}
	in.refused = map[string]error{"late": core.ErrFull}
	receive(core.ErrFull, said("1", "late"), said("2", "waits"))
	if slices.Contains(in.texts, "waits") {
		t.Error("with a full disk, events were stored one by one")
	}
	in.refused = nil
	receive(nil, said("1", "damaged"))
	if !slices.Contains(in.texts, "damaged") {
		t.Error("an event is skipped although everything was stored since its faults")
	}
}
