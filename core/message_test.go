package core

import "testing"

// TestMessageTexts: AllText includes forwarded and quoted text, and Transcript marks it.
func TestMessageTexts(t *testing.T) {
	m := Message{Text: "look", Foreign: []Foreign{
		{Kind: ForeignForward, From: Author{Name: "Bob"}, Text: "a tale"}, {Kind: ForeignForward}, {Kind: ForeignEmbed, Text: "a card"},
	}}
	if got := m.AllText(); got != "look\na tale\na card" {
		t.Errorf("unexpected AllText: %q", got)
	}
	if got := m.Transcript(); got != "look\n[forward of Bob] a tale\n[forward]\n[embed] a card" {
		t.Errorf("unexpected Transcript: %q", got)
	}
	if n := m.TextSize(); n != len("looka talea card") {
		t.Errorf("unexpected TextSize: %d", n)
	}
	bare := Message{Text: "look"}
	if bare.AllText() != "look" || bare.Transcript() != "look" {
		t.Errorf("unexpected AllText %q or Transcript %q", bare.AllText(), bare.Transcript())
	}
	for says, e := range map[bool]Entry{
		true:  {Event: Event{Kind: KindMessage, Message: Message{Foreign: m.Foreign}}},
		false: {Event: Event{Kind: KindMessage}},
	} {
		if e.Spoken() != says {
			t.Errorf("%+v: unexpected Spoken: %v", e.Message, e.Spoken())
		}
	}
}
