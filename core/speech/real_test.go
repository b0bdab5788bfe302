package speech

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"synthbot/core"
	"synthbot/core/coretest"
)

// sentences are spoken by a synthesiser and recognised.
var sentences = strings.Split(strings.TrimSpace(`
turn left at the next crossing
what is the weather like today
remind me to call my mother tomorrow
the train leaves at seven in the evening
please open the window in the kitchen
how many people are coming to dinner
i would like a cup of coffee
where did you put the green book
the meeting was moved to friday afternoon
tell me a story about the sea
my sister lives in a small house
we need bread milk and butter
can you hear me from over there
the doctor will see you on monday
music makes me happy in the morning
write a letter to the director
it is going to rain this weekend
the children are playing in the garden
show me the way to the station
good night and sleep well
`), "\n")

// TestRealSpeech: espeak-ng speaks the sentences, ffmpeg makes voice messages like Telegram's, and
// pocketsphinx recognises which sentence each is. Its models are made for human voices, so it would
// not understand espeak-ng with an open vocabulary.
func TestRealSpeech(t *testing.T) {
	for _, name := range []string{"espeak-ng", "ffmpeg", "pocketsphinx_continuous"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Skip(name + " is not installed (Debian: espeak-ng, ffmpeg, pocketsphinx, pocketsphinx-en-us)")
		}
	}
	dir := t.TempDir()
	grammar := filepath.Join(dir, "sentences.gram")
	rules := "#JSGF V1.0;\ngrammar g;\npublic <s> = " + strings.Join(sentences, " | ") + ";\n"
	if err := os.WriteFile(grammar, []byte(rules), 0o600); err != nil {
		t.Fatal(err)
	}
	l := NewListener(&Config{FFmpeg: "ffmpeg", In: In{
		Provider: byProgram, Timeout: time.Minute, Longest: time.Minute, MaxSize: 1 << 20,
		Program: []string{"pocketsphinx_continuous", "-infile", "{file}", "-logfn", os.DevNull, "-jsgf", grammar},
	}})
	some := sentences[:coretest.Sample(len(sentences), 3)]
	wrong, all := 0, 0
	for _, s := range some {
		got, err := l.Hear(t.Context(), core.Attachment{}, "en", free, content(spoken(t, dir, s)))
		var known *core.Error
		if err != nil && (!errors.As(err, &known) || known.Kind != core.Invalid) {
			t.Fatalf("%s: %v", s, err)
		}
		if got.Length < time.Second || got.Length > 10*time.Second {
			t.Errorf("%q: unexpected length %v", s, got.Length)
		}
		said := strings.Fields(s)
		wrong, all = wrong+distance(said, strings.Fields(got.Text)), all+len(said)
	}
	rate := float64(wrong) / float64(all)
	t.Logf("word error rate: %.1f %% of %d words", 100*rate, all)
	if rate > 0.5 {
		t.Errorf("word error rate %.2f, want at most 0.5", rate)
	}
	for name, input := range map[string]string{
		"silence": "anullsrc=r=16000:cl=mono:d=3", "a whistle": "sine=frequency=440:duration=3",
		"a sound that is longer than it may be": "anullsrc=r=16000:cl=mono:d=120",
	} {
		data := encoded(t, dir, "-f", "lavfi", "-i", input)
		_, err := l.Hear(t.Context(), core.Attachment{Duration: time.Second}, "en", free, content(data))
		var known *core.Error
		if !errors.As(err, &known) || known.Kind != core.Invalid {
			t.Errorf("%s: unexpected error %v", name, err)
		}
		t.Logf("%s: %v", name, err)
	}
}

// spoken returns a sentence as a voice message in Ogg Opus.
func spoken(t *testing.T, dir, text string) []byte {
	t.Helper()
	wave := filepath.Join(dir, "said.wav")
	execute(t, "espeak-ng", "-v", "en-us", "-s", "130", "-w", wave, text)
	return encoded(t, dir, "-i", wave)
}

// encoded returns the output of ffmpeg.
func encoded(t *testing.T, dir string, input ...string) []byte {
	t.Helper()
	file := filepath.Join(dir, "said.ogg")
	args := append([]string{"-nostdin", "-loglevel", "error", "-y"}, input...)
	execute(t, "ffmpeg", append(args, "-c:a", "libopus", "-b:a", "32k", file)...)
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func execute(t *testing.T, name string, args ...string) {
	t.Helper()
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", name, err, out)
	}
}

// distance returns how many words differ.
func distance(a, b []string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i, x := range a {
		before := row[0]
		row[0] = i + 1
		for j, y := range b {
			change := before
			if x != y {
				change++
			}
			before, row[j+1] = row[j+1], min(change, row[j+1]+1, row[j]+1)
		}
	}
	return row[len(b)]
}
