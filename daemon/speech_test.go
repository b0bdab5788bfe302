package daemon

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"synthbot/core"
	"synthbot/core/llm"
	"synthbot/core/recon"
	"synthbot/core/speech"
)

// TestSpokenLanguage checks that the language of a voice message is guessed from earlier messages, not taken
// from the platform's locale of its author.
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
			t.Errorf("%q: got %q, want %q", texts, got, want)
		}
	}
}

// TestActionSpeaks checks that the action speak uses the voice of [speech.out], although answers are not
// spoken, and requires it.
func TestActionSpeaks(t *testing.T) {
	const standard = "[plugins.standard]\nactions = [\"speak\"]\n"
	const voice = "[speech]\nffmpeg = \"\"\n[speech.out]\nprovider = \"program\"\nprogram = [\"sed\", \"s/^/OggS/\"]\n"
	for toml, want := range map[string]string{"": "No voice", voice: "", voice + "max_text = 50\n": "too long"} {
		b := assembled(t, toml)
		f, err := b.host(b.InForce().Config, "standard").Speak(t.Context(), core.MustPath("console/main"), nil,
			"Good **night**, "+strings.Repeat("and sleep well", 4))
		switch {
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%q: got %v, want %q", toml, err, want)
		case want == "" && (err != nil || !strings.HasPrefix(string(f.Data), "OggSGood night, and")):
			t.Errorf("got %q, %v", f.Data, err)
		}
		if b.turnSpeech(b.InForce()).Speak != nil {
			t.Error("turns speak their answers")
		}
	}
	for toml, want := range map[string]string{
		standard: "has no voice; set a provider in [speech.out]", standard + voice: "",
		standard + "speech.command = [\"x\"]\n":  "plugins.standard.speech.command: has moved to speech.out.program",
		standard + "[plugins.standard.speech]\n": "plugins.standard.speech: has moved to speech.out",
		standard + "speech = 5\n":                "plugins.standard.speech: has moved to speech.out",
		standard + "speech.format = \"opus\"\n":  "plugins.standard.speech.format: is unknown",
	} {
		file := filepath.Join(t.TempDir(), "config.toml")
		write(t, file, toml)
		_, err := (&Env{File: file, Getenv: func(string) string { return "" }, Clock: time.Now}).Load()
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: got %v, want %q", toml, err, want)
		}
	}
}

func TestSpeechCost(t *testing.T) {
	var c Config
	c.Speech = speech.Config{In: speech.In{Price: 0.006}, Out: speech.Out{Price: 15}}
	for name, want := range map[string]float64{speechIn: 0.012, speechOut: 0.0018, "home": 0} {
		if got := c.Cost(name, llm.Usage{In: 120}); got < want-1e-9 || got > want+1e-9 {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
	}
}
