package coretest

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"synthbot/core"
)

// testActions checks that the actions are complete and accept their own examples.
func testActions(t *testing.T, w World) {
	d := w.Start(t)
	for _, a := range d.Actions() {
		if a.Do == nil || a.Brief == "" || len(a.Brief) >= 100 || a.Timeout < 0 {
			t.Errorf("%s lacks something: %+v", a.Name, a)
		}
		if a.Effects == 0 {
			t.Errorf("%s declares no effects", a.Name)
		}
		var schema map[string]any
		if err := json.Unmarshal(a.Schema, &schema); err != nil || schema["type"] != "object" {
			t.Errorf("%s has no schema of an object: %v", a.Name, err)
		}
		if len(a.Examples.Examples) == 0 || a.Examples.Instructions.WhenToUse == "" {
			t.Errorf("%s has no examples", a.Name)
		}
		for _, e := range a.Examples.Examples {
			call := core.Call{Path: w.Places()[0].Path, Payload: e.Payload, Deliveries: &Parts{}}
			if a.Check != nil && a.Check(t.Context(), call) != nil {
				t.Errorf("%s refuses its own example %s: %v", a.Name, e.Payload, a.Check(t.Context(), call))
			}
		}
	}
	if m := message(t, d); !m.Essential || !m.Idempotent || m.Allows() != core.PermissionEveryone {
		t.Errorf("%s must be essential, idempotent, and open to everyone", m.Name)
	}
}

// testTakesIn: messages in all places arrive once and in order.
func testTakesIn(t *testing.T, w World) {
	l := listen(t, w, &Inbox{})
	want := map[core.Path][]string{}
	n := 0
	for round := range 3 {
		for _, p := range w.Places() {
			text := fmt.Sprintf("Hello %d, größer als 猫 😀 <b>&amp;", round)
			want[p.Path] = append(want[p.Path], w.Say(t, p, Say{Text: text})+" "+text)
			n++
		}
	}
	got := map[core.Path][]string{}
	for _, e := range l.Inbox.Wait(t, n) {
		m := e.Message
		got[m.Path] = append(got[m.Path], m.ID+" "+m.Text)
		if e.Kind != core.KindMessage || m.Author.ID == "" || m.Author.Name == "" || m.Author.Bot || time.Since(m.Time).Abs() > time.Minute {
			t.Errorf("event %+v", e)
		}
	}
	for p, list := range want {
		if !slices.Equal(got[p], list) {
			t.Errorf("%s: %s, want %s", p, quoted(got[p]), quoted(list))
		}
	}
}

// testAddressing: the driver says how messages address the bot.
func testAddressing(t *testing.T, w World) {
	l := listen(t, w, &Inbox{})
	private, group := pick(t, w, true), pick(t, w, false)
	mine := send(t, l, group, `{"text":"Anybody?"}`, &Parts{})[0].ID
	theirs := w.Say(t, group, Say{Text: "just talk"})
	for _, tc := range []struct {
		place Place
		say   Say
		want  core.Addressed
	}{
		{private, Say{Text: "hi"}, core.AddressedDirect},
		{group, Say{Text: "hi", Mention: true}, core.AddressedMention},
		{group, Say{Text: "me", ReplyTo: mine}, core.AddressedReply},
		{group, Say{Text: "you", ReplyTo: theirs}, ""},
		{group, Say{Text: "hi all"}, ""},
	} {
		before := len(l.Inbox.Wait(t, 1))
		w.Say(t, tc.place, tc.say)
		m := l.Inbox.Wait(t, before+1)[before].Message
		if m.Addressed != tc.want || m.Private != tc.place.Private {
			t.Errorf("%+v came in as %q, private %v; want %q", tc.say, m.Addressed, m.Private, tc.want)
		}
		if tc.say.ReplyTo != "" && (m.ReplyTo == nil || m.ReplyTo.ID != tc.say.ReplyTo || m.ReplyTo.Text == "") {
			t.Errorf("%+v came in with the quote %+v", tc.say, m.ReplyTo)
		}
	}
}

// testConfirms: if Listen stops while the inbox writes, the same events arrive again next time.
func testConfirms(t *testing.T, w World) {
	place := pick(t, w, true)
	began := make(chan struct{})
	stuck := &Inbox{}
	ctx, cancel := context.WithCancel(context.Background())
	stuck.Fail = func([]core.Event) error {
		select {
		case began <- struct{}{}:
		case <-ctx.Done():
		}
		<-ctx.Done()
		return ctx.Err()
	}
	d := w.Start(t)
	done := make(chan error, 1)
	go func() { done <- d.Listen(ctx, stuck) }()
	id := w.Say(t, place, Say{Text: "do not lose me"})
	<-began
	cancel()
	if err := <-done; err != nil {
		t.Errorf("Listen: %v", err)
	}
	l := listen(t, w, &Inbox{})
	if m := l.Inbox.Wait(t, 1)[0].Message; m.ID != id {
		t.Errorf("%q came in, want %q", m.ID, id)
	}
}

// testInboxFails: events that the inbox could not store arrive again, in order.
func testInboxFails(t *testing.T, w World) {
	place := pick(t, w, true)
	failures := make(chan struct{}, 2)
	failures <- struct{}{}
	failures <- struct{}{}
	in := &Inbox{Fail: func([]core.Event) error {
		select {
		case <-failures:
			return errInbox
		default:
			return nil
		}
	}}
	l := listen(t, w, in)
	var want, got []string
	for i := range 4 {
		want = append(want, w.Say(t, place, Say{Text: fmt.Sprint("word ", i)}))
	}
	for _, e := range l.Inbox.Wait(t, 4) {
		got = append(got, e.Message.ID)
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s came in, want %s", quoted(got), quoted(want))
	}
}

// testBadEvent: events that the inbox rejects for good are skipped, and no others are lost.
func testBadEvent(t *testing.T, w World) {
	place := pick(t, w, true)
	l := listen(t, w, &Inbox{Fail: func(events []core.Event) error {
		for _, e := range events {
			if e.Message.Text == "bad" {
				return fmt.Errorf("event: %w", core.ErrBadEvent)
			}
		}
		return nil
	}})
	var want, got []string
	for _, text := range []string{"one", "bad", "two", "bad"} {
		id := w.Say(t, place, Say{Text: text})
		if text != "bad" {
			want = append(want, id)
		}
	}
	want = append(want, w.Say(t, place, Say{Text: "three"}))
	for _, e := range l.Inbox.Wait(t, 3) {
		got = append(got, e.Message.ID)
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s came in, want %s", quoted(got), quoted(want))
	}
}

// testRestart: messages between two runs arrive, and none arrives twice in the same inbox.
func testRestart(t *testing.T, w World) {
	in := &Inbox{}
	l := listen(t, w, in)
	var want []string
	say := func(text string) {
		for _, p := range w.Places() {
			want = append(want, p.Path.String()+" "+w.Say(t, p, Say{Text: text}))
		}
	}
	say("before")
	in.Wait(t, len(want))
	l.stop()
	say("in between")
	listen(t, w, in)
	say("after")
	var got []string
	for _, e := range in.Wait(t, len(want)) {
		got = append(got, e.Message.Path.String()+" "+e.Message.ID)
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("%s came in, want %s", quoted(got), quoted(want))
	}
}

// testEnds: Listen ends soon after its context, also if that had ended before.
func testEnds(t *testing.T, w World) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := w.Start(t).Listen(ctx, &Inbox{}); err != nil {
		t.Errorf("Listen with an ended context: %v", err)
	}
	l := listen(t, w, &Inbox{})
	w.Say(t, w.Places()[0], Say{Text: "are you there?"})
	l.Inbox.Wait(t, 1)
	began := time.Now()
	l.stop()
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("Listen ended after %v", took)
	}
}
