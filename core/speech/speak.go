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

// maxSpoken is the largest sound that a provider makes, in bytes.
const maxSpoken = 20 << 20

// ErrUnspeakable says that a text is not to be spoken: it is too long, or has no words.
var ErrUnspeakable = core.Errorf(core.Invalid, "This is too long to be spoken, or has no words.")

// Speaker synthesises speech. Safe for concurrent use.
type Speaker struct {
	c      Out
	ffmpeg string
	url    *url.URL
	client *http.Client
}

// NewSpeaker makes a Speaker of a checked configuration; nil if nobody can speak.
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

// Run implements core.Runner: at the end it lets idle connections go.
func (s *Speaker) Run(ctx context.Context) error { return closeAfter(ctx, s.client) }

// Speak returns a voice message that says a Markdown text; voice may be "". It is Ogg/Opus
// if the provider or ffmpeg makes that, else whatever the provider makes. The meter books
// characters.
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
		return f, core.Errorf(core.Broken, "What was to be spoken came back as no sound.")
	}
	return core.Upload{
		Name: "voice." + kind.ending, MIME: kind.mime, Data: data, Kind: core.MediaAudio,
		Length: lengthOf(data), Waveform: waveform(data),
	}, nil
}

// ask asks the server.
func (s *Speaker) ask(ctx context.Context, text, voice string) ([]byte, error) {
	call := outbound.Call{
		Server: "The server", Method: http.MethodPost, URL: s.url, Accept: "*/*", Headers: bearer(s.c.APIKey),
		Body: core.JSON(map[string]string{
			"model": s.c.Model, "voice": voice, "input": text, "response_format": "opus",
		}),
	}
	return call.Send(ctx, s.client)
}

// run asks the program.
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
	return s.encode(ctx, kind, file, filepath.Join(dir, "voice.ogg"))
}

// encode makes a file of another kind a voice message, and returns its content.
func (s *Speaker) encode(ctx context.Context, kind format, from, to string) ([]byte, error) {
	err := convert(ctx, s.ffmpeg, kind, from, to, s.c.Timeout,
		"-ac", "1", "-ar", "48000", "-c:a", "libopus", "-b:a", "32k", "-application", "voip", "-f", "ogg")
	if err != nil {
		return nil, err
	}
	return readFile(to, maxSpoken)
}

// readFile reads a file that a program made, if it is a regular one of at most max bytes.
func readFile(name string, max int64) ([]byte, error) {
	info, err := os.Lstat(name)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular() || info.Size() > max:
		return nil, errors.New("the program made no file, or too large a one")
	}
	return os.ReadFile(name)
}
