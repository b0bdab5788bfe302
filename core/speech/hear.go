package speech

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"synthbot/core"
	"synthbot/core/epochs"
	"synthbot/core/outbound"
	"synthbot/core/program"
	"synthbot/core/recent"
	"synthbot/core/secret"
	"synthbot/core/txt"
)

const (
	maxWords   = 20000   // characters of one transcript
	maxAnswer  = 1 << 20 // bytes of a provider's answer
	maxKept    = 512     // cached transcripts
	sampleRate = 16000   // of what programs get
)

// Transcript is the text of a voice message.
type Transcript struct {
	Text    string
	Percent int           // confidence; core.HeardUnrated if unknown
	Length  time.Duration // of the sound; 0 if unknown
}

// Meter calls do if a budget allows it, and charges the seconds or characters that do returns. Its error is
// that of do or of the budget.
type Meter func(ctx context.Context, do func(context.Context) (used int, err error)) error

// Listener recognises speech. Safe for concurrent use.
type Listener struct {
	c      In
	ffmpeg string
	url    *url.URL
	client *http.Client
	slots  chan struct{} // holds a token for each recognition that runs
	kept   *recent.PerEpoch[*transcripts]
}

// transcripts is a cache by the hashes of sounds.
type transcripts = recent.Shared[[sha256.Size]byte, Transcript]

// NewListener returns a Listener for a checked configuration; nil if there is no provider.
func NewListener(c *Config) *Listener {
	if c.In.Provider == "" {
		return nil
	}
	l := &Listener{
		c: c.In, ffmpeg: c.FFmpeg, slots: make(chan struct{}, max(1, c.In.Parallel)),
		kept: recent.NewPerEpoch(func() *transcripts {
			return recent.NewShared[[sha256.Size]byte, Transcript](maxKept / 2)
		}),
	}
	if c.In.Provider == byServer {
		l.url, l.client = server(c.In.BaseURL, "audio/transcriptions", c.In.Timeout, maxAnswer)
	}
	return l
}

// server returns the URL of a path below a base, and a client that can only connect to that server.
func server(base, path string, timeout time.Duration, answer int64) (*url.URL, *http.Client) {
	u, _ := url.Parse(base) // it was checked
	peer := outbound.PeerOf(u)
	o := outbound.Options{Allow: []outbound.Peer{peer}, Timeout: timeout, MaxBody: answer}
	return u.JoinPath(path), outbound.New(o)
}

// Hear transcribes a voice message. fetch returns its content, at most max bytes. language may be "". Hear blocks while
// too many recognitions run, and until the provider has answered. Transcripts are cached by content, so that the same
// sound is recognised only once. Errors are a *core.Error with a text for the author, or those of meter or ctx.
func (l *Listener) Hear(ctx context.Context, a core.Attachment, language string, meter Meter,
	fetch func(ctx context.Context, max int64) ([]byte, error)) (Transcript, error) {
	if err := l.checkSize(a.Duration, a.Size); err != nil {
		return Transcript{}, err
	}
	select {
	case l.slots <- struct{}{}:
		defer func() { <-l.slots }()
	case <-ctx.Done():
		return Transcript{}, ctx.Err()
	}
	data, err := fetch(ctx, l.c.MaxSize)
	if err != nil {
		return Transcript{}, tryLater(err)
	}
	kind, ok := formatOf(data)
	if !ok {
		return Transcript{}, core.Errorf(core.Invalid, "I'm sorry, I can't open that kind of sound. "+
			"Could you send an ordinary voice message, or write it?")
	}
	length := cmp.Or(lengthOf(data), a.Duration)
	if err := l.checkSize(length, int64(len(data))); err != nil {
		return Transcript{}, err
	}
	key := sha256.Sum256(data)
	epoch, _, _ := epochs.Of(ctx)
	kept := l.kept.In(epoch) // it is dropped if a user is forgotten meanwhile
	t, known := kept.Get(key)
	if known {
		return t, checkNotEmpty(t)
	}
	err = meter(ctx, func(ctx context.Context) (int, error) {
		var err error
		t, err = l.recognise(ctx, data, kind, language)
		t.Length = cmp.Or(t.Length, length)
		return int(math.Ceil(t.Length.Seconds())), err
	})
	if err != nil {
		return Transcript{}, err
	}
	kept.Put(key, t)
	return t, checkNotEmpty(t)
}

// Forget clears the cache of transcripts, since a user was forgotten: the epoch is the one that began then.
func (l *Listener) Forget(epoch uint64) { l.kept.In(epoch) }

// checkSize returns an error if a sound is too long or too large.
func (l *Listener) checkSize(length time.Duration, size int64) error {
	switch {
	case length > l.c.Longest+time.Second:
		return core.Errorf(core.Invalid, "I'm sorry, that is too long for me: I can listen to %s at most. "+
			"Could you send less at once, or write it?", txt.SpanWords(l.c.Longest))
	case size > l.c.MaxSize:
		return core.Errorf(core.Invalid, "I'm sorry, that file is too large for me to listen to. "+
			"Could you send less at once, or write it?")
	}
	return nil
}

// checkNotEmpty returns an error if a transcript is empty.
func checkNotEmpty(t Transcript) error {
	if t.Text != "" {
		return nil
	}
	return core.Errorf(core.Invalid, "I'm sorry, I couldn't make out any words in that. "+
		"Could you say it again, or write it?")
}

// tryLater turns a failure into an error that asks the author to try again.
func tryLater(err error) error {
	if errors.Is(err, context.Canceled) {
		return err
	}
	const text = "I'm sorry, I couldn't listen to your voice message just now. Could you write it, or try again later?"
	return &core.Error{Kind: core.Temporary, Err: err, Text: text}
}

// recognise has the provider transcribe a sound.
func (l *Listener) recognise(ctx context.Context, data []byte, kind format, language string) (t Transcript, err error) {
	if l.client != nil {
		t, err = l.ask(ctx, data, kind, language)
	} else {
		t, err = l.run(ctx, data, kind, language)
	}
	if err != nil {
		known, _ := errors.AsType[*core.Error](err)
		if l.client == nil && known != nil && known.Kind == core.Invalid { // it is about the sound
			return t, err
		}
		return t, tryLater(err)
	}
	t.Text = clean(t.Text)
	return t, nil
}

// run has the program transcribe a sound.
func (l *Listener) run(ctx context.Context, data []byte, kind format, language string) (t Transcript, err error) {
	dir, err := os.MkdirTemp("", "synthbot-speech-")
	if err != nil {
		return t, err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "voice."+kind.ending)
	if err := os.WriteFile(file, data, 0o600); err != nil {
		return t, err
	}
	if installed(l.ffmpeg) {
		if file, t.Length, err = l.convert(ctx, dir, file, kind); err != nil {
			return t, err
		}
	}
	argv := filled(l.c.Program, "{file}", file, "{language}", cmp.Or(language, "auto"))
	out, err := program.Program{Argv: argv, Timeout: l.c.Timeout, MaxOutput: maxAnswer, Nice: true}.Run(ctx, nil)
	t.Text, t.Percent = string(out), core.HeardUnrated
	return t, err
}

// convert converts a sound to the WAV format that recognisers read, and returns its file and duration. A
// sound that is longer than it claims is cut off.
func (l *Listener) convert(ctx context.Context, dir, file string, kind format) (string, time.Duration, error) {
	converted := filepath.Join(dir, "mono.wav")
	err := convert(ctx, l.ffmpeg, kind, file, converted, l.c.Timeout,
		"-t", fmt.Sprintf("%.3f", (l.c.Longest+2*time.Second).Seconds()),
		"-ac", "1", "-ar", strconv.Itoa(sampleRate), "-c:a", "pcm_s16le", "-f", "wav")
	if err != nil {
		return "", 0, err
	}
	info, err := os.Stat(converted)
	if err != nil {
		return "", 0, err
	}
	length := time.Duration(info.Size()-wavHeader) * time.Second / (2 * sampleRate) // two bytes each
	return converted, length, l.checkSize(length, 0)
}

// filled replaces placeholders in arguments. placeholders are pairs of old and new.
func filled(argv []string, placeholders ...string) []string {
	r := strings.NewReplacer(placeholders...)
	list := make([]string, len(argv))
	for i, a := range argv {
		list[i] = r.Replace(a)
	}
	return list
}

// ask has the server transcribe a sound.
func (l *Listener) ask(ctx context.Context, data []byte, kind format, language string) (Transcript, error) {
	fields := map[string]string{"model": l.c.Model, "response_format": "verbose_json"}
	if strings.HasPrefix(l.c.Model, "gpt-") { // these models support only json
		fields["response_format"] = "json"
	}
	if language != "" {
		fields["language"], _, _ = strings.Cut(language, "-")
	}
	var body bytes.Buffer // writing to it never fails
	form := multipart.NewWriter(&body)
	for name, value := range fields {
		_ = form.WriteField(name, value)
	}
	part, _ := form.CreatePart(textproto.MIMEHeader{
		"Content-Disposition": {`form-data; name="file"; filename="voice.` + kind.ending + `"`},
		"Content-Type":        {kind.mime},
	})
	_, _ = part.Write(data)
	_ = form.Close()
	call := outbound.Call{
		Server: "The server", Method: http.MethodPost, URL: l.url, Type: form.FormDataContentType(), Body: body.Bytes(),
		Headers: bearer(l.c.APIKey),
	}
	answer, err := call.Send(ctx, l.client)
	if err != nil {
		return Transcript{}, err
	}
	return transcript(answer)
}

// bearer returns the Authorization header for a key; nil if there is no key.
func bearer(key secret.Secret) map[string]secret.Secret {
	if key.IsZero() {
		return nil
	}
	return map[string]secret.Secret{"Authorization": secret.New("Bearer " + key.Reveal())}
}

// reply is a server's answer, as verbose_json or json.
type reply struct {
	Text     *string   `json:"text"`
	Duration float64   `json:"duration"`
	Segments []segment `json:"segments"`
}

type segment struct {
	LogProb  *float64 `json:"avg_logprob"`
	NoSpeech float64  `json:"no_speech_prob"`
}

// speaks reports whether somebody may speak in a segment, by Whisper's own rule.
func (s segment) speaks() bool { return s.LogProb == nil || s.NoSpeech <= 0.6 || *s.LogProb >= -1 }

// transcript parses a server's answer. The confidence is the mean of that of the segments.
func transcript(answer []byte) (t Transcript, err error) {
	var r reply
	if err := json.Unmarshal(answer, &r); err != nil || r.Text == nil {
		return t, &core.Error{Kind: core.Broken, Text: "The server's answer is not a transcript.", Err: err}
	}
	t = Transcript{Text: *r.Text, Percent: core.HeardUnrated}
	if r.Duration > 0 && r.Duration < maxLength.Seconds() {
		t.Length = time.Duration(r.Duration * float64(time.Second))
	}
	sum, n := 0.0, 0
	for _, s := range r.Segments {
		if s.LogProb != nil && *s.LogProb <= 0 {
			sum, n = sum+math.Exp(*s.LogProb), n+1
		}
	}
	if n > 0 {
		t.Percent = max(1, int(math.Round(100*sum/float64(n))))
	}
	if len(r.Segments) > 0 && !slices.ContainsFunc(r.Segments, segment.speaks) {
		t.Text = ""
	}
	return t, nil
}

// noise is how recognisers describe sounds that are not words: [BLANK_AUDIO], (music), *coughs*, ♪.
var noise = txt.Pattern(`\[[^\]]*\]|\([^)]*\)|\*[^*]*\*|♪`)

func hasWords(text string) bool {
	return strings.ContainsFunc(text, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) })
}

// clean normalises white space. It returns "" if there are no letters or digits besides noise.
func clean(text string) string {
	text = strings.TrimSpace(txt.Lines(strings.ToValidUTF8(text, "")))
	if !hasWords(noise().ReplaceAllString(text, "")) {
		return ""
	}
	var lines []string
	for line := range strings.Lines(text) {
		line = strings.Join(strings.Fields(line), " ")
		if line != "" {
			lines = append(lines, line)
		}
	}
	return txt.Clip(strings.Join(lines, "\n"), maxWords)
}
