package daemon

import (
	"context"
	"errors"
	"slices"

	"synthbot/core"
	"synthbot/core/engine"
	"synthbot/core/hint"
	"synthbot/core/recon"
	"synthbot/core/speech"
	"synthbot/core/turn"
	"synthbot/daemon/logs"
)

// Names of speech recognition and speech synthesis in budgets.
const (
	speechIn  = "speech.in"
	speechOut = "speech.out"
)

func (b *Bot) turnSpeech(p *parts) turn.Speech {
	hears := func(e engine.Config) bool { return e.Hearing && !e.Disabled }
	s := turn.Speech{Deaf: !slices.ContainsFunc(p.Config.Engines, hears), Overhears: p.Config.Speech.In.Overhear}
	if p.speaker != nil && p.Config.Speech.Out.When != "never" {
		s.Always = p.Config.Speech.Out.When == "always"
		s.Speak = func(ctx context.Context, place core.Path, people []core.Path, text string) (core.Upload, error) {
			f, err := b.speakWith(ctx, p, place, people, text)
			if errors.Is(err, speech.ErrUnspeakable) { // the answer stays text only
				return core.Upload{}, nil
			}
			return f, err
		}
	}
	if p.listener == nil {
		return s
	}
	local := recon.New()
	s.Hear = func(ctx context.Context, scene core.Scene, sound core.Attachment) (string, int, error) {
		fetch := func(ctx context.Context, max int64) ([]byte, error) {
			return host{b}.Fetch(ctx, scene.Path, sound, max)
		}
		q := core.Question{Path: scene.Path, Unshown: !scene.Private}
		if person, err := scene.Path.Person(scene.Author.ID); err == nil {
			q.People = []core.Path{person}
		}
		t, err := p.listener.Hear(ctx, sound, spokenLanguage(ctx, local, scene), b.meter(p, speechIn, q), fetch)
		return t.Text, t.Percent, err
	}
	return s
}

// speak implements core.Host.Speak.
func (b *Bot) speak(ctx context.Context, place core.Path, people []core.Path, text string) (core.Upload, error) {
	p := b.InForce()
	if p.speaker == nil {
		return core.Upload{}, core.Errorf(core.Broken, "No voice is configured.")
	}
	return b.speakWith(ctx, p, place, people, text)
}

// speakWith speaks with the voice of the place's persona, within the budget.
func (b *Bot) speakWith(
	ctx context.Context, p *parts, place core.Path, people []core.Path, text string,
) (core.Upload, error) {
	meter := b.meter(p, speechOut, core.Question{Path: place, People: people})
	return p.speaker.Speak(ctx, text, p.personaAt(place).For("").Voice, meter)
}

func spokenLanguage(ctx context.Context, local *recon.Local, scene core.Scene) string {
	hints, _ := local.Recon(ctx, scene) // it never fails
	for _, h := range hints {
		if h.Kind == hint.Language && h.Priority >= recon.HeardPriority {
			return h.Text
		}
	}
	return ""
}

// meter returns a function that runs speech work within the budgets, while the interface shows that the bot works.
func (b *Bot) meter(p *parts, name string, q core.Question) speech.Meter {
	return func(ctx context.Context, do func(context.Context) (tokens int, err error)) error {
		return p.budget.Meter(ctx, q, name, func(ctx context.Context) (int, error) {
			if !q.Unshown {
				defer turn.ShowTyping(ctx, p.workIndicator(name, q.Path), q.Path, logs.Room(b.log, "core/speech"))()
			}
			return do(ctx)
		})
	}
}

// recording shows that the bot records a voice message, in place of the typing indicator.
type recording struct{ core.RecordingIndicator }

func (r recording) ShowTyping(ctx context.Context, place core.Path) { r.ShowRecording(ctx, place) }

// workIndicator returns how the interface of a place shows the named work; nil if it cannot.
func (p *parts) workIndicator(name string, place core.Path) core.TypingIndicator {
	r, ok := p.interfaceAt(place).(core.RecordingIndicator)
	if ok && name == speechOut {
		return recording{r}
	}
	return interfaceAs[core.TypingIndicator](p)(place)
}
