package turn_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"synthbot/core"
	"synthbot/core/coretest"
	"synthbot/core/turn"
)

// inTopic returns a message in a topic of a group.
func inTopic(topic int, id, author, text string) core.Event {
	e := talk(id, author, text)
	e.Message.Path = core.MustPath(fmt.Sprintf("room/square/%d", topic))
	return e
}

// TestActivations: which messages the bot answers in each activation mode. Each message has its own
// topic, so that it does not join the turn of another.
func TestActivations(t *testing.T) {
	for activation, answered := range map[string][]bool{
		turn.ActivationMention: {false, true, true, true, false, false, true},
		turn.ActivationKeyword: {false, true, true, true, true, false, true},
		turn.ActivationAlways:  {true, true, true, true, true, true, true},
		turn.ActivationNever:   {false, false, false, false, false, false, true},
		turn.ActivationAmbient: {false, true, true, true, false, false, true},
	} {
		t.Run(activation, func(t *testing.T) {
			b, _ := group(t, turn.Settings{Activation: activation, Keywords: []string{"pizza night"}}, slices.Repeat([]any{plan("Yes.")}, 8)...)
			events := []core.Event{
				inTopic(1, "1", "jay", "nothing in particular"), inTopic(2, "2", "jay", "@aria_bot?"), inTopic(3, "3", "jay", "and you?"),
				inTopic(4, "4", "jay", "what does ARIA say?"), inTopic(5, "5", "jay", "is it Pizza Night yet?"),
				inTopic(6, "6", "jay", "pizza nights are long, malaria is worse, aria_2 too"), said("7", "jay", "in private"),
			}
			events[1].Message.Addressed, events[2].Message.Addressed = core.AddressedMention, core.AddressedReply
			want := 0
			for i, e := range events {
				if b.receive(e); answered[i] {
					b.ended(1)
					want++
				}
			}
			b.stop()
			if n := len(b.asker.Asked()); n != want {
				t.Errorf("the model was asked %d times, want %d", n, want)
			}
		})
	}
}

// TestNamesOfScripts: the bot's name is recognised as a word in any script.
func TestNamesOfScripts(t *testing.T) {
	for text, want := range map[string]bool{
		"Привет, АРИЯ!": true, "Ариям не верь": false, "«Ария», сказал он": true, "يا أريا، كيف حالك؟": true, "أرياف": false,
		"αρια;": true, "μαρια": false, "η μαρια και η αρια": true, "(José)": true, "Joséphine": false,
		"Jose\u0301?": true, "Jose\u0301phine": false, "Jose": false, "👋Ария🙂": true, "@Ария_бот": false,
		"アリアさん、おはよう": true, "ねえアリア": true, "小艾你好": true, "你好小艾": true, "小明你好": false, "Арияさん": true, "สวัสดีอารียาครับ": true,
		"राम!": true, "रामा": false,
	} {
		s := open(t, t.TempDir())
		b := start(t, s, coretest.NewRoom("room"), coretest.NewAsker(plan("Yes.")), func(o *turn.Options) {
			o.Names = named("Ария", "أريا", "Αρια", "José", "アリア", "小艾", "อารียา", "राम")
		})
		if b.receive(inTopic(1, "1", "jay", text)); want {
			b.ended(1)
		}
		b.stop()
		if got := len(b.asker.Asked()) == 1; got != want {
			t.Errorf("%q calls the bot: got %v, want %v", text, got, want)
		}
		s.Close()
	}
}

// TestAttentionOfTopics: a user who was answered in one topic can go on without the bot's name only
// there, and nobody else can.
func TestAttentionOfTopics(t *testing.T) {
	b, _ := group(t, turn.Settings{Activation: turn.ActivationMention, Attention: time.Minute}, plan("Here."), plan("Go on."))
	b.receive(inTopic(1, "1", "jay", "Aria?"))
	b.ended(1)
	b.receive(inTopic(2, "2", "jay", "something else"))
	b.receive(inTopic(1, "3", "jay", "and then?"))
	b.ended(1)
	b.receive(inTopic(1, "4", "ann", "how was your day, jay?"))
	b.stop()
	if n := len(b.asker.Asked()); n != 2 {
		t.Errorf("the model was asked %d times, want 2", n)
	}
}
