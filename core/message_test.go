package core

import "testing"

// TestWordsOfAMessage: what others wrote is searched with the author's words, and marked
// wherever people read a log.
func TestWordsOfAMessage(t *testing.T) {
	m := Message{Text: "look", Foreign: []Foreign{
		{Kind: ForeignForward, From: Author{Name: "Bob"}, Text: "a tale"}, {Kind: ForeignForward}, {Kind: ForeignEmbed, Text: "a card"},
	}}
	if got := m.AllText(); got != "look\na tale\na card" {
		t.Errorf("AllText: %q", got)
	}
	if got := m.Transcript(); got != "look\n[forward of Bob] a tale\n[forward]\n[embed] a card" {
		t.Errorf("Transcript: %q", got)
	}
	if n := m.TextSize(); n != len("looka talea card") {
		t.Errorf("TextSize: %d", n)
	}
	bare := Message{Text: "look"}
	if bare.AllText() != "look" || bare.Transcript() != "look" {
		t.Errorf("%q, %q", bare.AllText(), bare.Transcript())
	}
	for says, e := range map[bool]Entry{
		true:  {Event: Event{Kind: KindMessage, Message: Message{Foreign: m.Foreign}}},
		false: {Event: Event{Kind: KindMessage}},
	} {
		if e.Spoken() != says {
			t.Errorf("%+v: spoken %v", e.Message, e.Spoken())
		}
	}
}
