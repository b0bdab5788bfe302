package daemon

import (
	"testing"
	"time"

	"synthbot/core"
	"synthbot/core/llm"
	"synthbot/core/recon"
	"synthbot/core/speech"
)

// TestSpokenLanguage: the language of a voice message is that of what was written before, and
// not what a platform says of its author.
func TestSpokenLanguage(t *testing.T) {
	for want, texts := range map[string][]string{
		"":   {"ok"},
		"it": {"ciao, come stai oggi?", "domani andiamo al mare con la macchina", "sono molto contento che ci siamo tutti"},
		"de": {"guten Morgen, wie geht es dir heute?", "wir fahren morgen mit dem Auto ans Meer", "ich freue mich schon sehr darauf"},
	} {
		s := core.Scene{Path: core.MustPath("telegram/1"), Locale: "fr", Now: time.Now()}
		for _, text := range texts {
			s.Recent = append(s.Recent, core.Entry{Event: core.Event{Kind: core.KindMessage, Message: core.Message{
				Author: core.Author{ID: "1"}, Text: text, Locale: "fr"}}})
		}
		if got := spokenLanguage(t.Context(), recon.New(), s); got != want {
			t.Errorf("%q: %q, want %q", texts, got, want)
		}
	}
}

func TestSpeechCost(t *testing.T) {
	c := speech.Config{In: speech.In{Price: 0.006}, Out: speech.Out{Price: 15}}
	for name, want := range map[string]float64{speechIn: 0.012, speechOut: 0.0018, "home": 0} {
		if got := speechCost(&c, name, llm.Usage{In: 120}); got < want-1e-9 || got > want+1e-9 {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}
