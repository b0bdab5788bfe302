package speech

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"synthbot/core"
	"synthbot/core/markdown"
	"synthbot/core/outbound"
	"synthbot/core/program"
)

// maxSpoken is the maximum size of synthesised speech, in bytes.
const maxSpoken = 20 << 20

// ErrUnspeakable means that a text cannot be spoken: it is too long, or has no words.
var ErrUnspeakable = core.Errorf(core.Invalid, "This is too long to be spoken, or has no words.")

// Speaker synthesises speech. Safe for concurrent use.
type Speaker struct {
	c      Out
	ffmpeg string
	url    *url.URL
	client *http.Client
}

// NewSpeaker returns a Speaker for a checked configuration; nil if there is no provider.
func NewSpeaker(c *Config) *Speaker {
	if c.Out.Provider == "" {
		return nil
	}
	s := &Speaker{c: c.Out, ffmpeg: c.FFmpeg}
	if c.Out.Provider == byServer {
		s.url, s.client = server(c.Out.BaseURL, "audio/speech", c.Out.Timeout, maxSpoken)
	}
	return s
}

// Speak synthesises a Markdown text and returns it as a voice message. voice may be "". The format is Ogg/Opus if the
// provider or ffmpeg supports it, otherwise that of the provider. Speak calls meter with the number of characters,
// and blocks until the provider has answered. The error is ErrUnspeakable if the text cannot be spoken.
func (s *Speaker) Speak(ctx context.Context, text, voice string, meter Meter) (f core.Upload, err error) {
	text = strings.TrimSpace(markdown.Plain(markdown.Parse(text)))
	length := utf8.RuneCountInString(text)
	if !hasWords(text) || length > s.c.MaxText {
		return f, ErrUnspeakable
	}
	var data []byte
	err = meter(ctx, func(ctx context.Context) (int, error) {
		var err error
		if s.client != nil {
			data, err = s.ask(ctx, text, cmp.Or(voice, s.c.Voice, "alloy"))
		} else {
			data, err = s.run(ctx, text, cmp.Or(voice, s.c.Voice))
		}
		return length, err
	})
	if err != nil {
		return f, err
	}
	kind, ok := formatOf(data)
	if !ok || len(data) > maxSpoken {
		return f, core.Errorf(core.Broken, "The speech synthesis did not return an audio file of an allowed size.")
	}
	return core.Upload{
		Name: "voice." + kind.ending, MIME: kind.mime, Data: data, Kind: core.MediaAudio,
		Length: lengthOf(data), Waveform: waveform(data),
	}, nil
}

// ask has the server synthesise a text.
func (s *Speaker) ask(ctx context.Context, text, voice string) ([]byte, error) {
	call := outbound.Call{
		Server: "The server", Method: http.MethodPost, URL: s.url, Accept: "*/*", Headers: bearer(s.c.APIKey),
		Body: core.JSON(map[string]string{
			"model": s.c.Model, "voice": voice, "input": text, "response_format": "opus",
		}),
	}
	return call.Send(ctx, s.client)
}

// run has the program synthesise a text.
func (s *Speaker) run(ctx context.Context, text, voice string) ([]byte, error) {
	dir, err := os.MkdirTemp("", "synthbot-speech-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "voice.wav")
	argv := filled(s.c.Program, "{file}", file, "{voice}", voice)
	run := program.Program{Argv: argv, Timeout: s.c.Timeout, MaxOutput: maxSpoken, Nice: true}
	data, err := run.Run(ctx, []byte(text))
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(s.c.Program, hasFile) {
		if data, err = readFile(file, maxSpoken); err != nil {
			return nil, err
		}
	} else if err := os.WriteFile(file, data, 0o600); err != nil {
		return nil, err
	}
	kind, ok := formatOf(data)
	if !ok || kind == ogg || !installed(s.ffmpeg) {
		return data, nil
	}
	encoded := filepath.Join(dir, "voice.ogg")
	err = convert(ctx, s.ffmpeg, kind, file, encoded, s.c.Timeout,
		"-ac", "1", "-ar", "48000", "-c:a", "libopus", "-b:a", "32k", "-application", "voip", "-f", "ogg")
	if err != nil {
		return nil, err
	}
	return readFile(encoded, maxSpoken)
}

// readFile reads a file that a program wrote. It must be a regular file of at most max bytes.
func readFile(name string, max int64) ([]byte, error) {
	info, err := os.Lstat(name)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular() || info.Size() > max:
		return nil, errors.New("the program's output is not a regular file, or too large")
	}
	return os.ReadFile(name)
}
