package moderation

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"synthbot/core"
	"synthbot/core/command"
	"synthbot/core/epochs"
	"synthbot/core/gate"
	"synthbot/plugins/limits"
	"synthbot/plugins/plugintest"
)

// TestForgotten checks that a block remains after its user is forgotten, but nothing that names or quotes them,
// also not with the moderator who set it. It is lifted by the mark in the list, or by the user's id once the
// user is back.
func TestForgotten(t *testing.T) {
	for name, act := range map[string]func(*Plugin) *actor{"an admin": boss, "a moderator": mia} {
		for _, byID := range []bool{true, false} {
			t.Run(fmt.Sprint(name, byID), func(t *testing.T) { testForgotten(t, act, byID) })
		}
	}
}

func testForgotten(t *testing.T, act func(*Plugin) *actor, byID bool) {
	s := plugintest.NewHarness(t, "moderation")
	p := gated(t, s, limits.Config{Private: limits.Rate{Count: 1, Per: time.Hour}})
	m := says("1", "jay", "hi")
	m.ID = "1"
	if err := s.DB.Commit(t.Context(),
		&core.Batch{Append: []core.Entry{{Event: core.Event{Kind: core.KindMessage, Message: *m}}}}); err != nil {
		t.Fatal(err)
	}
	if p.Judge(says("jay", "jay", "one"), false); p.Judge(says("jay", "jay", "two"), false).Reply == "" {
		t.Fatal("no limit was reached")
	}
	if _, err := p.holdUser(t.Context(), act(p), blocked, holdRequest{name: "room/@user/jay", reason: "canary-reason", span: day}); err != nil {
		t.Fatal(err)
	}
	jay := command.Call{Path: core.MustPath("room/jay"), Private: true, Author: core.Author{ID: "jay", Name: "Canary-Jay"}}
	jay.Args = map[string]string{"text": "canary-text"}
	if _, err := call(t, p, "appeal", jay); err != nil {
		t.Fatal(err)
	}
	run(t, p)
	p.LogAuthor(m, "flooding", "", time.Time{}) // waits in the queue
	if before := disk(t, s); strings.Count(before, "canary") < 3 || !strings.Contains(before, "Canary-Jay") {
		t.Fatalf("too little is stored: %s", before)
	}
	if kept, err := p.Kept(t.Context(), jayPath); err != nil || len(kept) != 1 || !strings.Contains(string(kept[0]), `"kind":"block"`) {
		t.Errorf("export of the user: got %s, %v", kept, err)
	}
	if err := errors.Join(p.Erase(t.Context(), jayPath), s.DB.Forget(t.Context(), jayPath)); err != nil {
		t.Fatal(err)
	}
	run(t, p)
	left := strings.ToLower(disk(t, s))
	for _, word := range []string{"canary", "jay", "mia", "boss"} {
		if strings.Contains(left, word) {
			t.Errorf("%q is still stored: %s", word, left)
		}
	}
	for _, q := range []*Plugin{p, made(t, s, Config{})} {
		if v := q.Judge(says("1", "jay", "hello"), false); v.Admission != gate.Discard {
			t.Errorf("the forgotten user is let in: %+v", v)
		}
		if list := q.records.active(blocked, func(*hold) bool { return true }); len(list) != 1 || !list[0].user.IsZero() || list[0].name != "" {
			t.Fatalf("list: got %+v", list)
		}
		if kept, err := q.Kept(t.Context(), jayPath); err != nil || len(kept) != 1 {
			t.Errorf("export of the user: got %s, %v", kept, err)
		}
	}
	lift(t, p, act(p), byID)
}

// lift lifts the only block.
func lift(t *testing.T, p *Plugin, a *actor, byID bool) {
	t.Helper()
	name := p.records.active(blocked, func(*hold) bool { return true })[0].mark()
	if byID {
		name = "jay"
	}
	if _, _, err := p.release(t.Context(), a, blocked, "nobody"); err == nil {
		t.Error("a block that does not exist was lifted")
	}
	if _, _, err := p.release(t.Context(), a, blocked, name); err != nil {
		t.Fatalf("the block of %s is not lifted: %v", name, err)
	}
	if v := p.Judge(says("1", "jay", "hello"), false); v.Admission != gate.Admit {
		t.Errorf("after the lift by %s: got %+v", name, v)
	}
	if _, _, err := p.release(t.Context(), a, blocked, name); err == nil {
		t.Errorf("the block of %s can be lifted twice", name)
	}
}

// forgetting forgets a user when an item is written under a user's path.
type forgetting struct {
	core.Items
	prefix string
	forget func()
}

func (f *forgetting) Put(ctx context.Context, item core.Item) (uint64, error) {
	if strings.HasPrefix(item.Key, f.prefix) && item.Value != nil && item.Path.IsPerson() && f.forget != nil {
		forget := f.forget
		f.forget = nil
		forget()
	}
	return f.Items.Put(ctx, item)
}

// TestForgottenMeanwhile checks that nothing names a user or a moderator who is forgotten while it is written,
// and that the block applies. The store rejects items that name them.
func TestForgottenMeanwhile(t *testing.T) {
	forgottenMeanwhile(t, epochs.With(t.Context(), 0))
	forgottenMeanwhile(t, epochs.WithTurn(t.Context(), core.TurnID{Path: group, Seq: 1}, 0))
}

func forgottenMeanwhile(t *testing.T, ctx context.Context) {
	t.Helper()
	for _, prefix := range []string{holdKey, logKey, didKey} {
		for _, whom := range []core.Path{jayPath, bossPath} {
			s := plugintest.NewHarness(t, "moderation")
			f := &forgetting{Items: s.Items, prefix: prefix}
			s.Items = f
			p := made(t, s, Config{})
			f.forget = func() {
				if err := s.DB.Forget(context.Background(), whom); err != nil {
					t.Error(err)
				}
			}
			if _, err := p.holdUser(ctx, boss(p), blocked, holdRequest{name: jayPath.String(), reason: "canary"}); err != nil {
				t.Fatal(err)
			}
			if f.forget != nil {
				t.Fatalf("nothing was written under %s", prefix)
			}
			if left := disk(t, s); whom == jayPath && (strings.Contains(left, "jay") || strings.Contains(left, "canary")) || whom == bossPath && strings.Contains(strings.ToLower(left), "boss") {
				t.Errorf("%s was forgotten while %s was written, but is named: %s", whom, prefix, left)
			}
			for _, q := range []*Plugin{p, made(t, s, Config{})} {
				if v := q.Judge(says("1", "jay", "hello"), false); v.Admission != gate.Discard {
					t.Errorf("the block does not apply: %+v", v)
				}
			}
		}
	}
}

// TestModeratorForgottenMeanwhile checks that a mute does not name a moderator who is forgotten while it is
// written.
func TestModeratorForgottenMeanwhile(t *testing.T) {
	s := plugintest.NewHarness(t, "moderation")
	f := &forgetting{Items: s.Items, prefix: didKey}
	s.Items = f
	p := made(t, s, Config{})
	f.forget = func() {
		if err := s.DB.Forget(context.Background(), miaPath); err != nil {
			t.Error(err)
		}
	}
	if _, err := p.mute(epochs.With(t.Context(), 0), mia(p), holdRequest{span: time.Hour}); err != nil {
		t.Fatal(err)
	}
	if left := strings.ToLower(disk(t, s)); f.forget != nil || strings.Contains(left, "mia") {
		t.Errorf("the moderator is still named: %s", left)
	}
	if e := p.records.log.events[0]; !e.by.IsZero() || e.byName != "" {
		t.Errorf("got %+v", e)
	}
	if v := p.Judge(says("1", "jay", "hi"), false); v.Admission != gate.Quiet {
		t.Errorf("the mute does not apply: %+v", v)
	}
}

// FuzzHoldKey checks that an invalid key is rejected and a valid one is read unchanged.
func FuzzHoldKey(f *testing.F) {
	f.Add("hold 00112233445566778899aabbccddeeff block room/1")
	f.Add("hold 00112233445566778899aabbccddeeff mute ")
	f.Add("hold  block ")
	f.Fuzz(func(t *testing.T, key string) {
		h, ok := parseHoldKey(key)
		if ok && strings.HasPrefix(key, holdKey) && h.key() != key {
			t.Errorf("%q is read as %q", key, h.key())
		}
	})
}
