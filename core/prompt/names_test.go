package prompt

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"synthbot/core"
	"synthbot/core/llm"
)

// by returns an entry by that user.
func by(id, name, tag string, seq uint64) core.Entry {
	e := said("telegram/-100/7", seq, name, fmt.Sprint("words of ", id))
	e.Message.Author = core.Author{ID: id, Name: name, Tag: tag}
	return e
}

// TestNamesakes: users with similar names have marks that tell them apart everywhere in the prompt.
// Other users have no mark.
func TestNamesakes(t *testing.T) {
	for _, name := range []string{
		"Owner", "OWNER", "Ow ner", "Ow\u200bner", "Ｏｗｎｅｒ", "Оwnеr", "0wner", "Owner\ufe0f", "\u3164Owner", "Owner\u202e",
	} {
		p := hello()
		p.History = []core.Entry{by("1", "Owner", "@boss", 1), by("2", name, "", 2), by("3", "Ann", "@ann", 3)}
		p.Messages = []core.Entry{by("2", name, "", 4), by("1", "Owner", "@boss", 5)}
		p.Messages[1].Message.ReplyTo = &core.Quote{ID: "m2", Text: "words", From: core.Author{ID: "2", Name: name}}
		marks := p.Marks()
		admin, stranger := marks.Of(p.Messages[0].Message.Path, core.Author{ID: "1"}), marks.Of(p.Messages[0].Message.Path, core.Author{ID: "2"})
		if admin != "@boss" || !strings.HasPrefix(stranger, "#") || len(marks) != 2 {
			t.Fatalf("%q: unexpected marks %v", name, marks)
		}
		out := mustBuild(t, p, llm.Limits{Chars: 24000})
		var context struct {
			History []struct {
				Tag  string `json:"usertag"`
				Text string `json:"text"`
			} `json:"history_current_chat"`
		}
		var input struct {
			Payload struct {
				Source   struct{ Usertag string }
				Messages []struct {
					Tag string `json:"usertag"`
				} `json:"messages"`
				Reply struct {
					From struct {
						Tag string `json:"usertag"`
					} `json:"from"`
				} `json:"reply_message_id"`
			} `json:"payload"`
		}
		if err := json.Unmarshal([]byte(out.contextJSON()), &context); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal([]byte(out.input.raw), &input); err != nil {
			t.Fatal(err)
		}
		h, m := context.History, input.Payload.Messages
		if len(h) != 3 || h[0].Tag != admin || h[1].Tag != stranger || h[2].Tag != "" {
			t.Errorf("%q: unexpected history %+v", name, h)
		}
		got := input.Payload
		marked := got.Reply.From.Tag == stranger && got.Source.Usertag == admin
		if len(m) != 2 || m[0].Tag != stranger || m[1].Tag != admin || !marked {
			t.Errorf("%q: unexpected input %s", name, out.input.raw)
		}
	}
}

// TestMarksStay: a user's mark is the same in every prompt. Users with the same tag are numbered.
func TestMarksStay(t *testing.T) {
	place := core.MustPath("telegram/-100/7")
	marks := func(entries ...core.Entry) Marks { return (&Parts{Context: Context{History: entries}}).Marks() }
	two := marks(by("1", "Bo", "", 1), by("2", "Bo", "", 2))
	three := marks(by("3", "Bo", "", 1), by("2", "Bo", "", 2), by("1", "bo", "", 3))
	for _, id := range []string{"1", "2"} {
		if a := (core.Author{ID: id}); two.Of(place, a) == "" || two.Of(place, a) != three.Of(place, a) {
			t.Errorf("the mark of %s changed from %q to %q", id, two.Of(place, a), three.Of(place, a))
		}
	}
	if two.Of(place, core.Author{ID: "1"}) == two.Of(place, core.Author{ID: "2"}) {
		t.Errorf("unexpected marks of two users: %v", two)
	}
	same := marks(by("1", "Bo", "@bo", 1), by("2", "Bo", "@BO", 2))
	if a, b := same.Of(place, core.Author{ID: "1"}), same.Of(place, core.Author{ID: "2"}); a == b || a[0] != '#' || b[0] != '#' {
		t.Errorf("unexpected marks of users with the same tag: %v", same)
	}
	if one := marks(by("1", "Bo", "", 1), by("1", "Bo", "", 2), by("2", "Bob", "", 3)); len(one) != 0 {
		t.Errorf("unexpected mark without similar names: %v", one)
	}
	if one := marks(by("1", "Bo", "", 1), by("1", "BO", "", 2)); len(one) != 0 {
		t.Errorf("unexpected mark of one user with two names: %v", one)
	}
	self := by("", "Aria", "", 1)
	self.Self = true
	if m := marks(self, by("2", "ARIA", "", 2)); m.Of(place, core.Author{ID: "2"}) == "" || len(m) != 1 {
		t.Errorf("unexpected marks of a user with the bot's name: %v", m)
	}
}
