package turn_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"synthbot/core"
	"synthbot/core/coretest"
	"synthbot/core/turn"
)

// countedViews is a store that counts its views, except those that only find that no message waits.
type countedViews struct {
	core.Store
	views atomic.Int64
}

func (c *countedViews) View(ctx context.Context, f func(core.View) error) error {
	return c.Store.View(ctx, func(v core.View) error {
		l := &idleView{View: v}
		err := f(l)
		if !l.idle {
			c.views.Add(1)
		}
		return err
	})
}

// idleView is a view that notes whether it only found that no message waits.
type idleView struct {
	core.View
	idle bool
}

func (l *idleView) Waiting() ([]core.Path, error) {
	l.idle = true
	return l.View.Waiting()
}

func (l *idleView) Due(place core.Path, max int) ([]core.Entry, error) {
	due, err := l.View.Due(place, max)
	l.idle = len(due) == 0
	return due, err
}

// TestOneRead: a turn reads everything for its prompt in one view.
func TestOneRead(t *testing.T) {
	s := &countedViews{Store: open(t, t.TempDir())}
	t.Cleanup(func() { s.Close() })
	asker := coretest.NewAsker(plan("Hello."))
	asker.Hold = make(chan struct{}, 1)
	b := start(t, s, coretest.NewRoom("room"), asker)
	for i, id := range []string{"0", "1", "2", "3"} {
		before := s.views.Load()
		b.receive(said(id, "jay", "hi"))
		b.thinks(1)
		if n := s.views.Load() - before; n != 1 && i > 0 { // the bot may still be starting
			t.Errorf("message %d: the store was read %d times for its prompt, want 1", i, n)
		}
		asker.Hold <- struct{}{}
		b.ended(1)
	}
}

// TestHistoryIsTalk: the prompt holds what was said in its place and, if the scope allows, in
// others; no commands and no deleted messages.
func TestHistoryIsTalk(t *testing.T) { synctest.Test(t, checkHistoryIsTalk) }

func checkHistoryIsTalk(t *testing.T) {
	s := open(t, t.TempDir())
	defer s.Close()
	room, desk := coretest.NewRoom("room"), office()
	b := start(t, s, room, coretest.NewAsker(plan("Hello."), plan("What?"), doing("erase", stupid), plan("Done.")), withOffice(t, room, desk), func(o *turn.Options) {
		o.Config.Recent = 10
		setScope(o, "unified")
		o.Prompt.Shares = []turn.Share{{Paths: []core.Path{core.MustPath("room/2"), core.MustPath("room/3")}}, {Paths: []core.Path{core.MustPath("room/4"), core.MustPath("room/5")}}}
		o.Plugins.Commands = registry(t, map[string]commandFunc{"count": func(context.Context, call) (string, error) { return "counted words", nil }})
	})
	in := func(path string, e core.Event) core.Event {
		e.Message.Path, e.Message.Private, e.Message.Addressed = core.MustPath(path), false, core.AddressedMention
		return e
	}
	apart := in("room/4", said("9", "jay", "not shared"))
	apart.Message.Addressed = ""
	b.receive(apart)
	for _, e := range []core.Event{
		in("room/2", said("1", "jay", "hello there")), in("room/2", said("2", "eve", "taken back")), in("room/2", called("c", "eve", "count", "my words")),
		in("room/3", called("c", "eve", "count", "my words")),
	} {
		b.receive(e)
		b.ended(1)
	}
	b.receive(core.Event{Kind: core.KindDeletion, Target: "2", Message: core.Message{Path: core.MustPath("room/2")}})
	b.receive(in("room/3", said("1", "jay", "what is new?")))
	b.ended(1)
	told := b.input(2)
	if !strings.Contains(told, "hello there") {
		t.Errorf("the prompt lacks what was said: %s", told)
	}
	for _, secret := range []string{"my words", "counted words", "taken back", "eve", "not shared"} {
		if strings.Contains(told, secret) {
			t.Errorf("the prompt holds %q: %s", secret, told)
		}
	}
	if strings.Count(told, "what is new?") != 1 {
		t.Errorf("the prompt holds the message more than once: %s", told)
	}
	chat := b.options(func(o *turn.Options) { setScope(o, "chat") })
	synctest.Wait() // no turn may begin with the old options
	b.Reconfigure(chat)
	b.receive(in("room/3", said("2", "jay", "and now?")))
	b.ended(1)
	if asked := len(b.asker.Asked()); strings.Contains(b.input(asked-1), "hello there") {
		t.Errorf("the prompt of scope chat holds another place's message: %s", b.input(asked-1))
	}
	for i, scope := range []string{"unified", "chat"} {
		if text := b.input(2 + i*(len(b.asker.Asked())-3)); !strings.Contains(text, `"scope":"`+scope+`"`) {
			t.Errorf("the prompt lacks the scope %s: %s", scope, text)
		}
	}
	if len(did(desk)) != 1 || len(room.Choices()) > 0 {
		t.Errorf("actions %q and questions %v, want one and none", did(desk), room.Choices())
	}
}
