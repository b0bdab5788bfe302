package standard

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"time"

	"synthbot/core"
	"synthbot/core/action"
	"synthbot/core/outbound"
	"synthbot/core/program"
)

// maxSound is the largest sound file, in bytes.
const maxSound = 20 << 20

// speak is the action that says something aloud.
func (p *Plugin) speak() []core.Action {
	return []core.Action{{
		Name: "speak", Similes: []string{"say_aloud", "voice_message"},
		Brief: "Say something aloud, as a voice message",
		Schema: json.RawMessage(`{"type":"object","title":"Speak","properties":{"text":{"type":"string"` +
			`,"minLength":1,"maxLength":` + strconv.Itoa(p.c.Speech.MaxText) +
			`,"title":"text","description":"What to say, as it is spoken: no markup, no emoji."}},` +
			`"required":["text"],"additionalProperties":false}`),
		Examples: core.Examples{
			Description: "Speaks a text and sends it into this place as a voice message.",
			Instructions: core.Instructions{
				WhenToUse: "When somebody asks to hear something, or spoke themselves and would rather listen than" +
					" read.",
				CommonPitfalls: []string{"Write words as they are spoken: no Markdown, links or emoji.",
					"Do not send the same as a message, too."},
				Notes: []string{"It takes a few seconds.", "People see no text with it."},
			},
			Examples: []core.Example{core.NewExample("Wishing a good night", `{"text":"Good night, and sleep well."}`)},
		},
		Effects: core.EffectWrites, Permission: core.PermissionEveryone, Timeout: p.c.Speech.Timeout + 30*time.Second,
		Busy:      core.BusyQueue,
		RateLimit: core.RateLimit{Count: 30, Per: time.Hour},
		Do:        p.spoken,
	}}
}

func (p *Plugin) spoken(ctx context.Context, c core.Call) (core.Result, error) {
	q, err := action.Payload[struct{ Text string }](c)
	if err != nil {
		return core.Result{}, err
	}
	sound, err := p.sound(ctx, q.Text)
	if err != nil {
		return core.Result{}, err
	}
	mime, ending := soundOf(sound)
	if mime == "" {
		return core.Result{}, core.Errorf(core.Broken, "What was to be spoken came back as no sound.")
	}
	file := core.Upload{Name: "voice." + ending, MIME: mime, Data: sound, Alt: q.Text, Kind: core.MediaAudio}
	return core.Result{}, p.h.Messenger.SendFile(ctx, c.Deliveries, 1, core.Sent{Path: c.Path}, file)
}

// sound speaks a text.
func (p *Plugin) sound(ctx context.Context, text string) ([]byte, error) {
	if p.voice == nil {
		return program.Program{Argv: p.c.Speech.Command, Timeout: p.c.Speech.Timeout, MaxOutput: maxSound}.Run(ctx,
			[]byte(text))
	}
	call := outbound.Call{
		Server: "The server", Method: http.MethodPost, URL: p.speech, Accept: "*/*",
		Body: core.JSON(map[string]string{"model": p.c.Speech.Model, "voice": p.c.Speech.Voice,
			"response_format": p.c.Speech.Format, "input": text}),
	}
	if !p.c.Speech.APIKey.IsZero() {
		authorization := core.NewSecret("Bearer " + p.c.Speech.APIKey.Reveal())
		call.Headers = map[string]core.Secret{"Authorization": authorization}
	}
	data, err := call.Send(ctx, p.voice)
	var refused *core.Error
	if data != nil && errors.As(err, &refused) { // the server answered
		return nil, &core.Error{Kind: core.Temporary, Text: "The voice is not available at the moment.",
			After: refused.After, Err: err}
	}
	return data, err
}

// soundOf tells what kind of sound file it is; "" where it is none.
func soundOf(data []byte) (mime, ending string) {
	for _, kind := range []struct{ begin, mime, ending string }{
		{"OggS", "audio/ogg", "ogg"}, {"RIFF", "audio/wav", "wav"}, {"fLaC", "audio/flac", "flac"},
		{"ID3", "audio/mpeg", "mp3"},
	} {
		if bytes.HasPrefix(data, []byte(kind.begin)) {
			return kind.mime, kind.ending
		}
	}
	switch {
	case len(data) > 2 && data[0] == 0xFF && data[1]&0xF6 == 0xF0:
		return "audio/aac", "aac"
	case len(data) > 2 && data[0] == 0xFF && data[1]&0xE0 == 0xE0:
		return "audio/mpeg", "mp3"
	}
	return "", ""
}
