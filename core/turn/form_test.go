package turn_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"synthbot/core"
	"synthbot/core/coretest"
	"synthbot/core/llm"
	"synthbot/core/turn"
)

// formed starts a bot whose action needs two values and a confirmation.
func formed(t *testing.T, s core.Store, room *coretest.Room, asker core.Asker) (*bot, *coretest.Plugin) {
	bank := coretest.NewPlugin("bank", core.Action{
		Name: "pay", Brief: "Pay somebody", Permission: core.PermissionEveryone, Confirm: true, Idempotent: true,
		Schema: json.RawMessage(`{"type":"object","required":["to","amount"],"properties":{` +
			`"to":{"type":"string"},"amount":{"type":"integer","maximum":9}}}`),
	})
	return start(t, s, room, asker, func(o *turn.Options) { o.Catalogue = catalogueOf(t, room, bank) }), bank
}

// payer is a model that leaves both values of the payment open.
type payer struct{ asked atomic.Int32 }

func (p *payer) Ask(_ context.Context, q core.Question) (llm.Answer, error) {
	r, err := q.Build(llm.Limits{Engine: "payer"})
	if p.asked.Add(1); strings.Contains(fmt.Sprintf("%+v", r), `"type":"output"`) {
		return llm.Answer{Text: says}, err
	}
	return llm.Answer{Text: paysSomebody}, err
}

const paysSomebody = `{"actions":[{"type":"pay","payload":{"to":null,"amount":null}}]}`

// formTalk holds the user's messages that fill in the form of paysSomebody.
var formTalk = []string{"pay", "Ann", "70", "7", "yes"}

// TestFormCrashes kills the bot around each commit while a form is filled in, and restarts it. Each
// question is asked once, each answer is taken once, and the model is not asked for them.
func TestFormCrashes(t *testing.T) {
	for _, after := range []bool{false, true} {
		for n := 1; n <= 24; n += coretest.Sample(1, 2) {
			t.Run(fmt.Sprintf("after=%t/commits=%d", after, n), func(t *testing.T) {
				t.Parallel()
				checkFormCrash(t, n, after)
			})
		}
	}
}

func checkFormCrash(t *testing.T, n int, after bool) {
	s := open(t, t.TempDir())
	defer s.Close()
	room := coretest.NewRoom("room")
	dead := make(chan struct{})
	var once sync.Once
	m := &mortal{Store: s, left: n, after: after, die: func() { once.Do(func() { close(dead) }) }}
	b, first := formed(t, m, room, &payer{})
	talk := func(text string) core.Event { return said(text, "jay", text) }
talking:
	for _, text := range formTalk {
		if b.Receive(t.Context(), talk(text)) != nil {
			break
		}
		select {
		case <-room.Ends():
		case <-dead:
			break talking
		case <-time.After(coretest.Patience):
			t.Fatalf("%q was not answered", text)
		}
	}
	b.kill()
	model := &payer{}
	b, last := formed(t, s, room, model)
	b.quiet()
	for _, text := range formTalk { // delivers unacknowledged messages again
		b.receive(talk(text))
		b.quiet()
	}
	b.stop()
	if n := model.asked.Load(); n > 2 { // the plan and its output
		t.Errorf("the model was asked %d times after the restart, want at most 2", n)
	}
	calls := append(first.Calls(), last.Calls()...)
	if len(calls) == 0 || len(calls) > 2 {
		t.Errorf("paid %d times, want once or twice", len(calls))
	}
	for _, c := range calls {
		if string(c.Payload) != `{"amount":7,"to":"Ann"}` {
			t.Errorf("paid %s, want 7 to Ann", c.Payload)
		}
	}
	want := []string{
		"Pay somebody – to?\n(“cancel” ends this)", "Pay somebody – amount?\n(“cancel” ends this)",
		"“70” should be at most 9\nPay somebody – amount?\n(“cancel” ends this)",
		"Pay somebody\namount: 7\nto: Ann (yes/no)", "✓ Done.",
	}
	if got := strings.Join(room.Texts(), "\n"); got != strings.Join(want, "\n") {
		t.Errorf("the room holds\n%s\nwant\n%s", got, strings.Join(want, "\n"))
	}
}

// TestFormAfterCommand: a command between a form's question and the answer does not end the form.
func TestFormAfterCommand(t *testing.T) {
	s := open(t, t.TempDir())
	defer s.Close()
	b, bank := formed(t, s, coretest.NewRoom("room"), &payer{})
	b.receive(said("1", "jay", "pay"))
	b.ended(1)
	b.receive(called("2", "jay", "unknown"))
	b.ended(1)
	for _, text := range formTalk[1:] {
		b.receive(said("m"+text, "jay", text))
		b.ended(1)
	}
	if len(bank.Calls()) != 1 {
		t.Errorf("paid %d times, want once; the room holds %q", len(bank.Calls()), b.room.Texts())
	}
	b.stop()
}

// TestFormNeedsWords: a message without words of its author does not answer a form.
func TestFormNeedsWords(t *testing.T) {
	forward, picture, unheard := said("2", "jay", ""), said("2", "jay", ""), voice("2", "jay", "broken", true)
	sticker := said("2", "jay", core.StickerText("👍"))
	forward.Message.Foreign = []core.Foreign{{Text: "Eve", From: core.Author{ID: "eve"}}}
	picture.Message.Attachments = []core.Attachment{{Kind: core.MediaImage}}
	sticker.Message.Attachments = picture.Message.Attachments
	for name, tc := range map[string]struct {
		event core.Event
		reply string
	}{
		"forward": {forward, "Well?"},
		"picture": {picture, "Well?"},
		"sticker": {sticker, "Well?"},
		"unheard": {unheard, "I'm sorry, I couldn't listen to your voice message just now. Could you write it, or try again later?"},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, t.TempDir())
			defer s.Close()
			b, bank := formed(t, s, coretest.NewRoom("room"), coretest.NewAsker(paysSomebody, plan("Well?"), says))
			b.Reconfigure(b.options(withSpeech))
			b.receive(said("1", "jay", "pay"))
			b.ended(1)
			b.receive(tc.event)
			b.ended(1)
			if texts := b.room.Texts(); texts[len(texts)-1] != tc.reply {
				t.Errorf("the room holds %q, want %q last", texts, tc.reply)
			}
			for i, text := range formTalk[1:] {
				e := said("m"+text, "jay", text)
				if i == 0 {
					e.Message.ReplyTo = &core.Quote{ID: b.room.Sent()[0].ID, From: core.Author{Bot: true}}
				}
				b.receive(e)
				b.ended(1)
			}
			if calls := bank.Calls(); len(calls) != 1 || string(calls[0].Payload) != `{"amount":7,"to":"Ann"}` {
				t.Errorf("paid %d times; the room holds %q", len(calls), b.room.Texts())
			}
			b.stop()
		})
	}
}
