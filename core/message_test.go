package core

import "testing"

// TestTextsOfAMessage: AllText includes foreign content, and Transcript marks it.
func TestTextsOfAMessage(t *testing.T) {
	m := Message{Text: "look", Foreign: []Foreign{
		{Kind: ForeignForward, From: Author{Name: "Bob"}, Text: "a tale"}, {Kind: ForeignForward}, {Kind: ForeignEmbed, Text: "a card"},
	}}
	if got := m.AllText(); got != "look\na tale\na card" {
		t.Errorf("AllText: got %q", got)
	}
	if got := m.Transcript(); got != "look\n[forward of Bob] a tale\n[forward]\n[embed] a card" {
		t.Errorf("Transcript: got %q", got)
	}
	if n := m.TextSize(); n != len("looka talea card") {
		t.Errorf("TextSize: got %d, want %d", n, len("looka talea card"))
	}
	bare := Message{Text: "look"}
	if bare.AllText() != "look" || bare.Transcript() != "look" {
		t.Errorf("without foreign content: got %q and %q, want look", bare.AllText(), bare.Transcript())
	}
	for want, e := range map[bool]Entry{
		true:  {Event: Event{Kind: KindMessage, Message: Message{Foreign: m.Foreign}}},
		false: {Event: Event{Kind: KindMessage}},
	} {
		if e.Spoken() != want {
			t.Errorf("%+v: spoken %v, want %v", e.Message, e.Spoken(), want)
		}
	}
}
