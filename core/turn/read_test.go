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

// counted is a store that counts its views, but for those that only look whether
// anything waits, and find nothing.
type counted struct {
	core.Store
	views atomic.Int64
}

func (c *counted) View(ctx context.Context, f func(core.View) error) error {
	return c.Store.View(ctx, func(v core.View) error {
		l := &look{View: v}
		err := f(l)
		if !l.idle {
			c.views.Add(1)
		}
		return err
	})
}

// look notices that nothing waits.
type look struct {
	core.View
	idle bool
}

func (l *look) Waiting() ([]core.Path, error) {
	l.idle = true
	return l.View.Waiting()
}

func (l *look) Due(place core.Path, max int) ([]core.Entry, error) {
	due, err := l.View.Due(place, max)
	l.idle = len(due) == 0
	return due, err
}

// TestOneRead: what a prompt tells of the past is read in one view.
func TestOneRead(t *testing.T) {
	s := &counted{Store: open(t, t.TempDir())}
	t.Cleanup(func() { s.Close() })
	asker := coretest.NewAsker(plan("Hello."))
	asker.Hold = make(chan struct{}, 1)
	b := start(t, s, coretest.NewRoom("room"), asker)
	for i, id := range []string{"0", "1", "2", "3"} {
		before := s.views.Load()
		b.receive(said(id, "jay", "hi"))
		b.thinks(1)
		if n := s.views.Load() - before; n != 1 && i > 0 { // the start may still read
			t.Errorf("message %d: the store was read %d times for its prompt, want 1", i, n)
		}
		asker.Hold <- struct{}{}
		b.ended(1)
	}
}

// TestHistoryIsTalk: of its place and of others the prompt holds what was said there,
// and neither of commands nor of what was taken back, which nothing is asked about.
func TestHistoryIsTalk(t *testing.T) { synctest.Test(t, historyIsTalk) }

func historyIsTalk(t *testing.T) {
	s := open(t, t.TempDir())
	defer s.Close()
	room, desk := coretest.NewRoom("room"), office()
	b := start(t, s, room, coretest.NewAsker(plan("Hello."), plan("What?"), doing("erase", stupid), plan("Done.")), officed(t, room, desk), func(o *turn.Options) {
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
		t.Errorf("the model is not told what was said: %s", told)
	}
	for _, secret := range []string{"my words", "counted words", "taken back", "eve", "not shared"} {
		if strings.Contains(told, secret) {
			t.Errorf("the model is told %q: %s", secret, told)
		}
	}
	if strings.Count(told, "what is new?") != 1 {
		t.Errorf("the model is told more than once: %s", told)
	}
	chat := b.options(func(o *turn.Options) { setScope(o, "chat") })
	synctest.Wait() // no turn begins with the settings of before
	b.Reconfigure(chat)
	b.receive(in("room/3", said("2", "jay", "and now?")))
	b.ended(1)
	if asked := len(b.asker.Asked()); strings.Contains(b.input(asked-1), "hello there") {
		t.Errorf("where nothing of other places is told: %s", b.input(asked-1))
	}
	for i, scope := range []string{"unified", "chat"} {
		if text := b.input(2 + i*(len(b.asker.Asked())-3)); !strings.Contains(text, `"scope":"`+scope+`"`) {
			t.Errorf("the scope is %s, and the model is told %s", scope, text)
		}
	}
	if len(did(desk)) != 1 || len(room.Choices()) > 0 {
		t.Errorf("it did %q, and asks %v", did(desk), room.Choices())
	}
}
