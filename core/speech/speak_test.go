package speech

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"synthbot/core"
	"synthbot/core/secret"
)

// countingMeter returns a meter that notes what is booked.
func countingMeter(booked *int) Meter {
	return func(ctx context.Context, do func(context.Context) (int, error)) error {
		n, err := do(ctx)
		*booked += n
		return err
	}
}

func TestServerSpeaks(t *testing.T) {
	status, answer := 200, string(opus(3*time.Second))
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var q struct{ Model, Voice, Input, Response_format string }
		err := json.NewDecoder(r.Body).Decode(&q)
		asked := fmt.Sprint(q.Model, q.Voice, q.Input, q.Response_format, r.URL.Path, r.Header.Get("Authorization"))
		if err != nil || asked != "tts-1novaHello, Jay.opus/v1/audio/speechBearer key" {
			t.Errorf("unexpected request %q, %v", asked, err)
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, answer)
	}))
	defer s.Close()
	speaker := NewSpeaker(&Config{Out: Out{
		Provider: byServer, BaseURL: s.URL + "/v1", APIKey: secret.New("key"), Model: "tts-1", Voice: "alloy",
		When: "reply", Timeout: time.Minute, MaxText: 20,
	}})
	defer speaker.client.CloseIdleConnections()
	booked := 0
	f, err := speaker.Speak(t.Context(), "Hello, **Jay**.", "nova", countingMeter(&booked))
	if err != nil || f.Name != "voice.ogg" || f.MIME != "audio/ogg" || f.Length != 3*time.Second || f.Kind != core.MediaAudio || booked != 11 {
		t.Errorf("unexpected file %+v, %v, booked %d", f, err, booked)
	}
	for _, text := range []string{"", "👍", "`—`", strings.Repeat("too long ", 10)} {
		if _, err := speaker.Speak(t.Context(), text, "", countingMeter(&booked)); !errors.Is(err, ErrUnspeakable) {
			t.Errorf("%q: unexpected error %v", text, err)
		}
	}
	answer = "<html>"
	if _, err := speaker.Speak(t.Context(), "Hello, **Jay**.", "nova", countingMeter(&booked)); err == nil {
		t.Error("an HTML page was accepted as a sound")
	}
	status = 500
	if _, err := speaker.Speak(t.Context(), "Hello, **Jay**.", "nova", countingMeter(&booked)); err == nil {
		t.Error("an error response was accepted as a sound")
	}
}

func TestProgramSpeaks(t *testing.T) {
	sound := filepath.Join(t.TempDir(), "sound")
	if err := os.WriteFile(sound, tone(2*time.Second), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", t.TempDir())
	for name, tc := range map[string]struct {
		argv []string
		want string
	}{
		"into a file":        {[]string{"sh", "-c", `cp "$1" "$2"; [ "$(cat)/$3" = "Hello./nova" ]`, "sh", sound, "{file}", "{voice}"}, "audio/wav"},
		"to standard output": {[]string{"cat", sound}, "audio/wav"},
		"nothing":            {[]string{"true", "{file}"}, ""},
		"a link":             {[]string{"ln", "-s", sound, "{file}"}, ""},
		"no sound":           {[]string{"echo", "hello"}, ""},
		"fails":              {[]string{"false"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := NewSpeaker(&Config{Out: Out{Provider: byProgram, Program: tc.argv, When: "always", Timeout: time.Minute, MaxText: 100}})
			f, err := s.Speak(t.Context(), "Hello.", "nova", free)
			left, readErr := os.ReadDir(os.TempDir())
			if len(left) > 0 || readErr != nil {
				t.Errorf("unexpected files left: %v, %v", left, readErr)
			}
			if f.MIME != tc.want || (err == nil) != (tc.want != "") || tc.want != "" && f.Length != 2*time.Second {
				t.Errorf("unexpected type %q, length %v, %v", f.MIME, f.Length, err)
			}
		})
	}
}

// TestWaveform: each bar is the loudest packet of its section; header packets do not count.
func TestWaveform(t *testing.T) {
	page := func(granule byte, sizes ...byte) []byte {
		data := make([]byte, oggHeader, 1000)
		copy(data, "OggS")
		data[oggGranule+1], data[oggSegments] = granule, byte(len(sizes))
		data = append(data, sizes...)
		for _, n := range sizes {
			data = append(data, make([]byte, n)...)
		}
		return data
	}
	head := page(0, 19)
	copy(head[oggHeader+1:], "OpusHead")
	file := slices.Concat(head, page(0, 200), page(1, 10, 100, 50), page(2, 255, 45, 0))
	if got := waveform(file); !slices.Equal(got, []byte{8, 85, 42, 255, 0}) {
		t.Errorf("unexpected waveform %v", got)
	}
	long := bytes.Repeat(page(9, 10, 20), 300)
	if got := waveform(slices.Concat(head, page(0, 1), long)); len(got) != maxBars || slices.Min(got) != 255 {
		t.Errorf("unexpected: %d bars, %v", len(got), got)
	}
	for _, none := range [][]byte{nil, head, []byte("OggS"), tone(time.Second), file[:len(head)+oggHeader+2]} {
		if got := waveform(none); got != nil {
			t.Errorf("unexpected waveform %v", got)
		}
	}
}

func TestNobodySpeaks(t *testing.T) {
	for _, o := range []Out{{}, {When: "reply"}} {
		if NewSpeaker(&Config{Out: o}) != nil {
			t.Errorf("%+v has a speaker, want none", o)
		}
	}
	faults := 0
	(&Out{When: "reply"}).Check(func(string, ...any) { faults++ })
	(&Out{When: "reply", Provider: byProgram, Program: []string{"espeak-ng"}}).Check(func(string, ...any) { faults += 10 })
	(&Out{When: "never", Program: []string{"espeak-ng"}}).Check(func(text string, at ...any) {
		if text != `has no effect unless provider = "program"` || fmt.Sprint(at) != "[program]" {
			t.Errorf("unexpected fault %v %s", at, text)
		}
		faults += 100
	})
	if faults != 101 {
		t.Errorf("unexpected number of faults: %d", faults)
	}
}

// FuzzWaveform: whatever a file holds, its waveform has at most 256 bars.
func FuzzWaveform(f *testing.F) {
	f.Add(opus(time.Second))
	f.Fuzz(func(t *testing.T, data []byte) {
		if n := len(waveform(data)); n > maxBars {
			t.Errorf("%d bars, want at most 256", n)
		}
	})
}

// TestRealVoice: the waveform of speech by espeak-ng with a pause in it has a valley.
func TestRealVoice(t *testing.T) {
	for _, name := range []string{"espeak-ng", "ffmpeg"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Skip(name + " is not installed (Debian: espeak-ng, ffmpeg)")
		}
	}
	s := NewSpeaker(&Config{FFmpeg: "ffmpeg", Out: Out{
		Provider: byProgram, Program: []string{"espeak-ng", "--stdin", "-v", "{voice}", "-w", "{file}"}, Voice: "de",
		When: "always", Timeout: time.Minute, MaxText: 1000,
	}})
	f, err := s.Speak(t.Context(), "Turn left at the next crossing, and go on until you see the sea.", "en-us", free)
	if err != nil || f.MIME != "audio/ogg" || f.Length < 2*time.Second || f.Length > 10*time.Second || len(f.Waveform) < 100 {
		t.Errorf("unexpected: %s, %v, %d bars, %v", f.MIME, f.Length, len(f.Waveform), err)
	}
	dir := t.TempDir()
	pause := encoded(t, dir, "-f", "lavfi", "-i", "sine=frequency=440:duration=1", "-f", "lavfi", "-i", "anullsrc=r=44100:cl=mono:d=1",
		"-filter_complex", "[0][1][0]concat=n=3:v=0:a=1")
	bars := waveform(pause)
	third := len(bars) / 3
	if len(bars) < 100 || mean(bars[third+5:2*third-5]) > mean(bars[:third])/2 {
		t.Errorf("the waveform has no valley: %v", bars)
	}
}

func mean(bars []byte) (sum int) {
	for _, b := range bars {
		sum += int(b)
	}
	return sum / max(1, len(bars))
}
