package speech

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"synthbot/core"
	"synthbot/core/epochs"
	"synthbot/core/secret"
)

// tone returns a silent WAV file of that length, 8 kHz mono.
func tone(length time.Duration) []byte {
	const rate = 8000
	n := int(length.Seconds() * rate * 2)
	var b bytes.Buffer
	b.WriteString("RIFF")
	for _, v := range []any{uint32(36 + n), []byte("WAVEfmt "), uint32(16), uint16(1), uint16(1), uint32(rate),
		uint32(2 * rate), uint16(2), uint16(16), []byte("data"), uint32(n)} {
		if err := binary.Write(&b, binary.LittleEndian, v); err != nil {
			panic(err)
		}
	}
	b.Write(make([]byte, n))
	return b.Bytes()
}

// opus returns the first and the last page of an Ogg Opus file of that length.
func opus(length time.Duration) []byte {
	page := func(granule uint64, data string) []byte {
		head := make([]byte, oggHeader)
		copy(head, "OggS")
		binary.LittleEndian.PutUint64(head[oggGranule:], granule)
		head[oggSegments] = 1
		return append(append(head, byte(len(data))), data...)
	}
	return append(page(0, "OpusHead\x01\x01"), page(uint64(length.Seconds()*opusRate), "sound")...)
}

// free is a meter that books nothing.
func free(ctx context.Context, do func(context.Context) (int, error)) error {
	_, err := do(ctx)
	return err
}

func content(data []byte) func(context.Context, int64) ([]byte, error) {
	return func(context.Context, int64) ([]byte, error) { return data, nil }
}

// recogniser starts a server that is as strict as OpenAI's.
func recogniser(t *testing.T, answer func(r *http.Request, sound []byte) (int, string)) *Listener {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		file, head, err := r.FormFile("file")
		switch {
		case r.Method != http.MethodPost || r.URL.Path != "/v1/audio/transcriptions":
			http.Error(w, "no such page", http.StatusNotFound)
			return
		case r.Header.Get("Authorization") != "Bearer key":
			http.Error(w, "who are you?", http.StatusUnauthorized)
			return
		case err != nil || !strings.HasPrefix(head.Filename, "voice.") || r.FormValue("model") == "":
			http.Error(w, fmt.Sprint("bad form: ", err), http.StatusBadRequest)
			return
		}
		sound, err := io.ReadAll(file)
		if err != nil {
			t.Error(err)
		}
		status, text := answer(r, sound)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, text)
	}))
	t.Cleanup(s.Close)
	l := NewListener(&Config{In: In{
		Provider: byServer, BaseURL: s.URL + "/v1", APIKey: secret.New("key"), Model: "whisper-1",
		Timeout: time.Minute, Longest: time.Minute, MaxSize: 1 << 20,
	}})
	t.Cleanup(l.client.CloseIdleConnections)
	return l
}

func TestServerHears(t *testing.T) {
	var asked atomic.Int64
	l := recogniser(t, func(r *http.Request, sound []byte) (int, string) {
		asked.Add(1)
		if r.FormValue("response_format") != "verbose_json" || r.FormValue("language") != "pt" || !bytes.HasPrefix(sound, []byte("OggS")) {
			return 400, "bad form"
		}
		return 200, `{"text":" Bom\n dia ","duration":3.4,"segments":[{"avg_logprob":-0.1},{"avg_logprob":-0.3}]}`
	})
	booked := 0
	meter := func(ctx context.Context, do func(context.Context) (int, error)) error {
		n, err := do(ctx)
		booked += n
		return err
	}
	for range 2 {
		got, err := l.Hear(t.Context(), core.Attachment{}, "pt-BR", meter, content(opus(3*time.Second)))
		if err != nil || got.Text != "Bom\ndia" || got.Percent != 82 {
			t.Errorf("unexpected transcript %+v, %v", got, err)
		}
	}
	if asked.Load() != 1 || booked != 4 {
		t.Errorf("asked %d times and booked %d seconds, want 1 and 4", asked.Load(), booked)
	}
	forgotten := epochs.With(t.Context(), 1)
	_, err := l.Hear(forgotten, core.Attachment{}, "pt", free, content(opus(3*time.Second)))
	if err != nil || asked.Load() != 2 {
		t.Errorf("a transcript was kept after its user was forgotten: %v", err)
	}
	l.slots = make(chan struct{}, 2)
	meanwhile := func(ctx context.Context, do func(context.Context) (int, error)) error {
		later := epochs.With(t.Context(), 2) // as if a user was forgotten meanwhile
		if _, err := l.Hear(later, core.Attachment{}, "pt", free, content(opus(4*time.Second))); err != nil {
			t.Error(err)
		}
		_, err := do(ctx)
		return err
	}
	for range 2 {
		if _, err := l.Hear(forgotten, core.Attachment{}, "pt", meanwhile, content(opus(5*time.Second))); err != nil {
			t.Fatal(err)
		}
	}
	before := asked.Load()
	_, err = l.Hear(epochs.With(t.Context(), 2), core.Attachment{}, "pt", free, content(opus(5*time.Second)))
	if err != nil || asked.Load() != before+1 {
		t.Errorf("a transcript from while a user was forgotten was kept: %v", err)
	}
	kept := l.kept.In(2)
	l.Forget(3)
	if l.kept.In(2) == kept { // at once, not with the next voice message
		t.Error("transcripts were kept after a user was forgotten")
	}
	l.c.Model = "gpt-4o-transcribe" // has no verbose format
	if _, err := l.Hear(t.Context(), core.Attachment{}, "pt", free, content(opus(2*time.Second))); err == nil {
		t.Error("the server was asked for a format that the model does not have")
	}
}

// TestClearAnswers: whatever is wrong with a sound, its author gets a clear message, and only the
// log gets details.
func TestClearAnswers(t *testing.T) {
	status, answer := 200, ""
	l := recogniser(t, func(*http.Request, []byte) (int, string) { return status, answer })
	fine := opus(time.Second)
	for name, tc := range map[string]struct {
		file   core.Attachment
		data   []byte
		status int
		answer string
		kind   core.ErrorKind
		want   string
	}{
		"said to last two hours":  {core.Attachment{Duration: 2 * time.Hour}, fine, 200, `{"text":"a"}`, core.Invalid, "at most"},
		"lasts two hours":         {core.Attachment{Duration: time.Second}, opus(2 * time.Hour), 200, `{"text":"a"}`, core.Invalid, "1 minute at most"},
		"a long WAV":              {core.Attachment{}, tone(62 * time.Second), 200, `{"text":"a"}`, core.Invalid, "at most"},
		"said to be large":        {core.Attachment{Size: 1 << 30}, fine, 200, `{"text":"a"}`, core.Invalid, "too large"},
		"is large":                {core.Attachment{}, append(fine, make([]byte, 1<<20)...), 200, `{"text":"a"}`, core.Invalid, "too large"},
		"a picture":               {core.Attachment{}, []byte("\x89PNG\r\n\x1a\n"), 200, `{"text":"a"}`, core.Invalid, "kind of sound"},
		"a playlist":              {core.Attachment{}, []byte("#EXTM3U\n/etc/passwd"), 200, `{"text":"a"}`, core.Invalid, "kind of sound"},
		"empty":                   {core.Attachment{}, nil, 200, `{"text":"a"}`, core.Invalid, "kind of sound"},
		"silence":                 {core.Attachment{}, fine, 200, `{"text":""}`, core.Invalid, "any words"},
		"music":                   {core.Attachment{}, fine, 200, `{"text":" [Music] ♪ (wind blows)"}`, core.Invalid, "any words"},
		"imagined words":          {core.Attachment{}, fine, 200, `{"text":"Thank you.","segments":[{"avg_logprob":-1.2,"no_speech_prob":0.9}]}`, core.Invalid, "any words"},
		"the server is down":      {core.Attachment{}, fine, 503, `secret`, core.Temporary, "just now"},
		"the server refuses":      {core.Attachment{}, fine, 400, `secret`, core.Temporary, "just now"},
		"the server is confused":  {core.Attachment{}, fine, 200, `<html>`, core.Temporary, "just now"},
		"the server says nothing": {core.Attachment{}, fine, 200, `{}`, core.Temporary, "just now"},
	} {
		t.Run(name, func(t *testing.T) {
			status, answer = tc.status, tc.answer
			l.kept.In(0).Take(sha256.Sum256(tc.data))
			_, err := l.Hear(t.Context(), tc.file, "", free, content(tc.data))
			var e *core.Error
			if !errors.As(err, &e) || e.Kind != tc.kind || !strings.Contains(e.Text, tc.want) || strings.Contains(e.Text, "secret") {
				t.Errorf("unexpected error %v", err)
			}
		})
	}
	fails := func(context.Context, int64) ([]byte, error) { return nil, errors.New("gone") }
	if _, err := l.Hear(t.Context(), core.Attachment{}, "", free, fails); !strings.Contains(fmt.Sprint(err), "just now") {
		t.Errorf("unexpected error %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	l.slots <- struct{}{}
	if _, err := l.Hear(ctx, core.Attachment{}, "", free, content(fine)); !errors.Is(err, context.Canceled) {
		t.Errorf("unexpected error %v", err)
	}
}

func TestProgramHears(t *testing.T) {
	c := Config{In: In{
		Provider: byProgram, Timeout: time.Minute, Longest: time.Minute, MaxSize: 1 << 20,
		Program: []string{"sh", "-c", `cat "$1"; echo "|$2;$HOME"`, "sh", "{file}", "{language}"},
	}}
	wave := append([]byte("OggS"), " what is said"...)
	t.Setenv("HOME", "/home")
	t.Setenv("TMPDIR", t.TempDir())
	file := core.Attachment{Duration: 3 * time.Second}
	got, err := NewListener(&c).Hear(t.Context(), file, "", free, content(wave))
	if want := "OggS what is said|auto;/home"; err != nil || got.Text != want || got.Percent != core.HeardUnrated || got.Length != 3*time.Second {
		t.Errorf("got %+v, %v, want %q", got, err, want)
	}
	for name, argv := range map[string][]string{
		"too slow":  {"sleep", "60"},
		"endless":   {"yes"},
		"fails":     {"false"},
		"not there": {"/nowhere/at/all", "{file}"},
	} {
		c.In.Program, c.In.Timeout = argv, 100*time.Millisecond
		_, err := NewListener(&c).Hear(t.Context(), core.Attachment{}, "", free, content(wave))
		if !strings.Contains(fmt.Sprint(err), "just now") {
			t.Errorf("%s: unexpected error %v", name, err)
		}
	}
	if left, err := os.ReadDir(os.TempDir()); err != nil || len(left) != 0 {
		t.Errorf("unexpected files left: %v, %v", left, err)
	}
}

func TestCheck(t *testing.T) {
	for want, c := range map[string]In{
		"":                   {Provider: byProgram, Program: []string{"hear", "--in={file}"}},
		"program":            {Provider: byProgram},
		"program ":           {Provider: byProgram, Program: []string{"hear"}},
		"base_url":           {Provider: byServer, BaseURL: "nowhere"},
		"base_url (allowed)": {BaseURL: "nowhere"},
	} {
		got := ""
		c.Check(func(_ string, at ...any) { got += fmt.Sprint(at...) })
		want, allowed := strings.CutSuffix(want, " (allowed)")
		if strings.TrimSpace(want) != got && !allowed || allowed && got != "" {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestProbe(t *testing.T) {
	c := Config{FFmpeg: "/nowhere/ffmpeg", In: In{Provider: byProgram, Program: []string{"sh"}}}
	list := c.Probe()
	if len(list) != 2 || list[0].Fix != "" || list[1].Fix == "" || list[1].Fatal {
		t.Errorf("unexpected findings %+v", list)
	}
	c.In.Program = []string{"/nowhere/hear"}
	if list := c.Probe(); !list[0].Fatal {
		t.Errorf("unexpected findings %+v", list)
	}
	if list := (&Config{In: In{Provider: byServer}}).Probe(); len(list) != 0 {
		t.Errorf("unexpected findings %+v", list)
	}
}

// FuzzTranscript: whatever a server answers, a transcript is short, in lines, and has a valid
// confidence.
func FuzzTranscript(f *testing.F) {
	f.Add([]byte(`{"text":"hello","duration":1e300,"segments":[{"avg_logprob":-1e9,"no_speech_prob":2}]}`))
	f.Add([]byte(`{"text":"a\u0000\u202eb\n\n[c]"}`))
	f.Fuzz(func(t *testing.T, answer []byte) {
		got, err := transcript(answer)
		words := clean(got.Text)
		sure := got.Percent == core.HeardUnrated || got.Percent > 0 && got.Percent <= 100
		if err == nil && (!sure || got.Length < 0 || got.Length > maxLength) {
			t.Errorf("invalid transcript %+v", got)
		}
		if len([]rune(words)) > maxWords || strings.ContainsAny(words, "\x00\u202e\r") {
			t.Errorf("invalid words %q", words)
		}
	})
}

// FuzzSound: whatever a file holds, its length is valid.
func FuzzSound(f *testing.F) {
	f.Add(opus(3 * time.Second))
	f.Add(tone(time.Second))
	f.Add([]byte("OggSOpusHeadOggS"))
	f.Add(opus(100 * time.Hour))
	f.Fuzz(func(t *testing.T, data []byte) {
		if d := lengthOf(data); d < 0 {
			t.Errorf("invalid length %v", d)
		}
	})
}

func TestLengths(t *testing.T) {
	for _, data := range [][]byte{opus(90 * time.Second), tone(90 * time.Second)} {
		if got := lengthOf(data); got != 90*time.Second {
			t.Errorf("unexpected length %v", got)
		}
	}
}

func TestFormats(t *testing.T) {
	for data, want := range map[string]string{
		"OggS": "ogg", "RIFF....WAVE": "wav", "RIFF....AVI ": "", "....WAVE": "", "fLaC": "flac", "....ftypisom": "m4a",
		"\x1a\x45\xdf\xa3": "webm", "#!AMR\n": "amr", "\xff\xf1\x50": "aac", "\xff\xfb\x90": "mp3", "ID3\x04": "mp3",
		"\xff\xd8\xff": "", "\x7f\xf1\x50": "", "\x7f\xfb\x90": "", "\xff\xf1": "", "": "", "Ogg": "",
	} {
		f, ok := formatOf([]byte(data))
		if f.ending != want || ok != (want != "") {
			t.Errorf("%q: got %q, want %q", data, f.ending, want)
		}
	}
}

// TestSilentSegments: a transcript is dropped as imagined only if every segment is silent.
func TestSilentSegments(t *testing.T) {
	for answer, want := range map[string]string{
		`{"text":"a b","segments":[{"avg_logprob":-2,"no_speech_prob":0.9},{"avg_logprob":-0.5}]}`:                  "a b 37",
		`{"text":"a b","segments":[{"avg_logprob":-2,"no_speech_prob":0.9},{"avg_logprob":-2,"no_speech_prob":1}]}`: " 14",
		`{"text":"a b","segments":[{"avg_logprob":-2,"no_speech_prob":0.1}]}`:                                       "a b 14",
		`{"text":"a b","segments":[{"avg_logprob":-0.5,"no_speech_prob":0.9}]}`:                                     "a b 61",
		`{"text":"a b","segments":[{"no_speech_prob":0.9}]}`:                                                        "a b -1",
		`{"text":"a b","duration":-3}`: "a b -1",
	} {
		got, err := transcript([]byte(answer))
		if err != nil || fmt.Sprint(got.Text, " ", got.Percent) != want || got.Length != 0 {
			t.Errorf("%s: unexpected transcript %+v, %v", answer, got, err)
		}
	}
}
