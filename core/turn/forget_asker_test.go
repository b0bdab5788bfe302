package turn_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"synthbot/core"
	"synthbot/core/coretest"
	"synthbot/core/turn"
	"synthbot/memory"
)

// decides returns what an admin sends to decide the question of jay in the square: a press of a button or, without
// a label, a yes in reply.
func (b *bot) decides(label string) core.Event {
	b.t.Helper()
	e := talk("p", "boss", "yes")
	e.Message.Addressed = core.AddressedReply
	if label != "" {
		e = b.press("p", "boss", label)
		e.Message.Path, e.Message.Private = square, false
	}
	e.Message.Author.Rank = core.RankAdmin
	for _, s := range b.room.Sent() {
		if label == "" && strings.HasPrefix(s.Text, "Pay") {
			e.Message.ReplyTo = &core.Quote{ID: s.ID, Text: s.Text, From: core.Author{Bot: true}}
		}
	}
	return e
}

// leftOf returns what is stored in the square: texts, quotes and records of turns.
func (b *bot) leftOf() string {
	b.t.Helper()
	left, err := core.Read(context.Background(), b.store, func(v core.View) (left []string, err error) {
		entries, err := v.Last(square, 100)
		for _, e := range entries {
			left = append(left, e.Message.Text)
			if e.Message.ReplyTo != nil {
				left = append(left, e.Message.ReplyTo.Text)
			}
		}
		for seq := range uint64(20) {
			records, err := v.Journal(core.TurnID{Path: square, Seq: seq})
			if err != nil {
				return nil, err
			}
			for _, r := range records {
				left = append(left, string(r.Data))
			}
		}
		return left, err
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return strings.Join(left, "|")
}

// TestForgottenAsker: what the bot says when somebody else decides a user's question, or when it expires, is deleted
// when the user is forgotten.
func TestForgottenAsker(t *testing.T) {
	for _, how := range []string{"Confirm", "Cancel", "a reply", "expired"} {
		t.Run(how, func(t *testing.T) {
			dir := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				db, err := memory.Open(dir, memory.Options{NoSync: true})
				if err != nil {
					t.Fatal(err)
				}
				defer db.Close()
				room := coretest.NewRoom("room")
				asker := coretest.NewAsker(pays, plan("Ann's payment is settled."))
				b := start(t, db, room, asker, payable(t, room, time.Minute))
				defer b.stop()
				b.receive(talk("1", "jay", "Aria, pay Ann"))
				b.ended(1)
				if how != "expired" {
					b.receive(b.decides(strings.TrimPrefix(how, "a reply")))
				}
				b.ended(1)
				if how != "Cancel" && !strings.Contains(b.leftOf(), "settled") {
					t.Fatalf("the bot holds %q, want its answer to the decision", b.leftOf())
				}
				time.Sleep(14 * 24 * time.Hour)
				if err := db.Prune(t.Context(), memory.Config{Journal: time.Hour}); err != nil { // deletes the journal
					t.Fatal(err)
				}
				if err := db.Forget(t.Context(), jay); err != nil {
					t.Fatal(err)
				}
				if left := b.leftOf(); strings.Contains(left, "Ann") {
					t.Errorf("%q is left", left)
				}
			})
		})
	}
}

// TestForgottenWhileDeciding: if a user is forgotten while an admin or they themselves confirm what they asked for,
// neither its result nor the records of its turns stay.
func TestForgottenWhileDeciding(t *testing.T) {
	for _, who := range []string{"boss", "jay"} {
		for _, stage := range []string{"acting", "asking"} {
			t.Run(who+" "+stage, func(t *testing.T) {
				db := open(t, t.TempDir()).(*memory.DB)
				t.Cleanup(func() { db.Close() })
				forget := func() {
					if err := db.Forget(context.Background(), jay); err != nil {
						t.Error(err)
					}
				}
				room := coretest.NewRoom("room")
				bank := coretest.NewPlugin("bank", core.Action{
					Name: "pay", Permission: core.PermissionEveryone, Confirm: true,
					Do: func(context.Context, core.Call) (core.Result, error) {
						if stage == "acting" {
							forget()
						}
						return core.Result{Output: []byte(`"paid Ann"`)}, nil
					},
				})
				asker := coretest.NewAsker(pays, plan("Ann's payment is settled."))
				asker.Hold = make(chan struct{})
				b := start(t, db, room, asker, func(o *turn.Options) {
					o.Catalogue = catalogueOf(t, room, bank)
					o.Places.Chooser = func(core.Path) core.Chooser { return room }
				})
				b.receive(talk("1", "jay", "Aria, pay Ann"))
				b.thinks(1)
				asker.Hold <- struct{}{}
				b.ended(1)
				press := b.decides("Confirm")
				press.Message.Author.ID = who
				b.receive(press)
				b.thinks(1)
				if stage == "asking" {
					forget()
				}
				close(asker.Hold)
				b.ended(1)
				if left := b.leftOf(); strings.Contains(left, "Ann") || strings.Contains(left, "jay") {
					t.Errorf("%q is left", left)
				}
			})
		}
	}
}
