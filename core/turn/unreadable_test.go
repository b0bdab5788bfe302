package turn_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"synthbot/core"
	"synthbot/core/coretest"
	"synthbot/core/turn"
)

// unreadable is a store of which one in 31 reads fails.
type unreadable struct {
	core.Store
	reads atomic.Int32
	which atomic.Int32 // of 31
}

func (s *unreadable) View(ctx context.Context, f func(core.View) error) error {
	return s.Store.View(ctx, func(v core.View) error { return f(&unreadableView{v, s}) })
}

// unreadableView fails some of its reads.
type unreadableView struct {
	core.View
	*unreadable
}

// fails returns an error if this read must fail.
func (s *unreadable) fails() error {
	if s.reads.Add(1)%31 == s.which.Load() {
		return errUnsure
	}
	return nil
}

func (v *unreadableView) Head(place core.Path) (core.Head, error) {
	if err := v.fails(); err != nil {
		return core.Head{}, err
	}
	return v.View.Head(place)
}

func (v *unreadableView) Places(root core.Path) ([]core.Head, error) {
	if err := v.fails(); err != nil {
		return nil, err
	}
	return v.View.Places(root)
}

func (v *unreadableView) Due(place core.Path, most int) ([]core.Entry, error) {
	if err := v.fails(); err != nil {
		return nil, err
	}
	return v.View.Due(place, most)
}

func (v *unreadableView) Entry(place core.Path, id string) (core.Entry, bool, error) {
	if err := v.fails(); err != nil {
		return core.Entry{}, false, err
	}
	return v.View.Entry(place, id)
}

func (v *unreadableView) After(place core.Path, seq uint64, most int, into []core.Entry) ([]core.Entry, error) {
	if err := v.fails(); err != nil {
		return nil, err
	}
	return v.View.After(place, seq, most, into)
}

func (v *unreadableView) Last(place core.Path, n int) ([]core.Entry, error) {
	if err := v.fails(); err != nil {
		return nil, err
	}
	return v.View.Last(place, n)
}

func (v *unreadableView) Recent(root core.Path, n int, keep func(core.Path) bool) ([]core.Entry, error) {
	if err := v.fails(); err != nil {
		return nil, err
	}
	return v.View.Recent(root, n, keep)
}

func (v *unreadableView) State(place core.Path) (core.State, error) {
	if err := v.fails(); err != nil {
		return core.State{}, err
	}
	return v.View.State(place)
}

func (v *unreadableView) Journal(id core.TurnID) ([]core.Record, error) {
	if err := v.fails(); err != nil {
		return nil, err
	}
	return v.View.Journal(id)
}

// TestReadsThatFail: failing reads lose no message and repeat no action, and the prompts stay the
// same.
func TestReadsThatFail(t *testing.T) {
	var want []string
	for which := int32(-1); which < 31; which++ {
		synctest.Test(t, func(t *testing.T) {
			got := runWithFailingReads(t, which)
			if which < 0 {
				want = got
			}
			for i := range min(len(got), len(want)) {
				unknown := i == 6 && strings.Contains(got[i], `"skipped"`) // an entry that cannot be read is not changed
				if got[i] != want[i] && !unknown {
					t.Errorf("reads %d: prompt %d is %s\n\nwant %s", which, i, got[i], want[i])
				}
			}
		})
	}
}

func runWithFailingReads(t *testing.T, which int32) (prompts []string) {
	s := &unreadable{Store: open(t, t.TempDir())}
	s.which.Store(-1)
	defer s.Close()
	room := coretest.NewRoom("room")
	desk := coretest.NewPlugin("desk",
		core.Action{Name: "pay", Brief: "Pay somebody", Permission: core.PermissionEveryone, Confirm: true, Effects: core.EffectNone},
		core.Action{Name: "amend", Brief: "Amend", Permission: core.PermissionEveryone, Effects: core.EffectRewrites},
		core.Action{Name: "ban", Brief: "Ban", Permission: core.PermissionModerators, Effects: core.EffectNone},
	)
	b := start(t, s, room, coretest.NewAsker(plan("Hello."), pays, plan("Paid."), `{"actions":[{"type":"ban"}]}`, plan("Banned."),
		`{"actions":[{"type":"amend","payload":{"message_id":"room-1"}}]}`, plan("Amended.")), func(o *turn.Options) {
		o.Catalogue, o.Places.Chooser = catalogueOf(t, room, desk), func(core.Path) core.Chooser { return room }
		o.Config.Recent = 10
		setScope(o, "unified")
		o.Prompt.Shares = []turn.Share{{Paths: []core.Path{core.MustPath("room")}}}
	})
	defer b.stop()
	in := func(path string, e core.Event) core.Event {
		e.Message.Path, e.Message.Private, e.Message.Addressed = core.MustPath(path), false, core.AddressedMention
		e.Message.Author.Rank = core.RankModerator
		return e
	}
	deliver := func(e core.Event) {
		t.Helper()
		for b.Receive(t.Context(), e) != nil {
			time.Sleep(time.Second)
		}
		time.Sleep(time.Minute) // longer than the longest pause before a retry
	}
	deliver(in("room/2", said("1", "ann", "hello there")))
	s.reads.Store(0)
	s.which.Store(which)
	deliver(in("room/3", said("1", "jay", "pay Ann")))
	confirm := in("room/3", b.press("p1", "jay", "Confirm"))
	deliver(confirm)
	button := in("room/3", said("p2", "jay", ""))
	button.Kind, button.Target, button.Data = core.KindPress, "room-2", "Ban them"
	deliver(button)
	amend := in("room/3", said("3", "jay", "amend it"))
	amend.Message.ReplyTo = &core.Quote{ID: "room-2", From: core.Author{Bot: true}}
	deliver(amend)
	s.which.Store(-1)
	// an entry that cannot be read is not changed
	if got := strings.Join(did(desk), " "); strings.TrimSuffix(got, ` {"message_id":"room-1"}`) != `{"to":"Ann"} {}` {
		t.Errorf("reads %d: unexpected actions %q", which, got)
	}
	texts := strings.Join(room.Texts(), "|")
	if want := "Hello.|As you wish.|Pay somebody\nto: Ann\n\n✓ Done.|Paid.|Banned.|Amended."; texts != want {
		t.Errorf("reads %d: unexpected texts %q", which, texts)
	}
	if len(b.asker.Asked()) != 7 {
		t.Errorf("reads %d: unexpected: the model was asked %d times", which, len(b.asker.Asked()))
	}
	for i := range b.asker.Asked() {
		prompts = append(prompts, b.input(i))
	}
	for _, c := range desk.Calls()[:2] {
		prompts = append(prompts, fmt.Sprint("a call sees ", c.Sees))
	}
	return prompts
}

// unreadableStart is a store of which one of the first reads fails.
type unreadableStart struct {
	*unreadable
}

func (s *unreadableStart) View(ctx context.Context, f func(core.View) error) error {
	return s.Store.View(ctx, func(v core.View) error { return f(&unreadableWaiting{unreadableView{v, s.unreadable}}) })
}

type unreadableWaiting struct{ unreadableView }

func (v *unreadableWaiting) Waiting() ([]core.Path, error) {
	if err := v.fails(); err != nil {
		return nil, err
	}
	return v.View.Waiting()
}

// TestRunNeedsTheStore: Run fails if it cannot read the waiting messages and open questions.
func TestRunNeedsTheStore(t *testing.T) {
	b, _ := shop(t, true, pays)
	b.receive(said("1", "jay", "pay Ann"))
	b.ended(1)
	b.stop()
	for read, failing := range []bool{false, true, true, true, true, false} {
		o := b.o
		s := &unreadableStart{&unreadable{Store: b.store}}
		s.which.Store(int32(read))
		o.Store = s
		life, end := context.WithCancel(t.Context())
		if !failing {
			time.AfterFunc(50*time.Millisecond, end)
		}
		if err := turn.New(o).Run(life, life); (err != nil) != failing {
			t.Errorf("read %d fails: unexpected error %v", read, err)
		}
		end()
	}
}
