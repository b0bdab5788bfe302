package prompt

import (
	"errors"
	"strings"
	"testing"

	"synthbot/core"
	"synthbot/core/llm"
)

// talkIn returns a prompt's parts with a history in one script.
func talkIn(text string, n int) Parts {
	p := Parts{Cache: NewCache(), Interface: "room", Messages: []core.Entry{said("room/1", 1000, "Jay", text)}}
	for i := range n {
		p.History = append(p.History, said("room/1", uint64(i+1), "Ann", text))
	}
	return p
}

func TestTokens(t *testing.T) {
	for name, text := range map[string]string{
		"English":  strings.Repeat("the quick brown fox ", 10),
		"Russian":  strings.Repeat("съешь ещё этих булок ", 10),
		"Japanese": strings.Repeat("いろはにほへとちりぬるを", 15),
		"emoji":    strings.Repeat("🦊🍵", 50),
	} {
		p := talkIn(text, 60)
		free, err := Build(&p, llm.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		tight, err := Build(&p, llm.Limits{Tokens: 2500})
		if err != nil {
			t.Fatalf("%s: unexpected error %v", name, err)
		}
		if tight.before != free.chars() || tight.chars() >= free.chars() {
			t.Errorf("%s: unexpected sizes: %d before, %d after the reduction, %d without a limit", name, tight.before, tight.chars(), free.chars())
		}
		if n := tight.tokens(); n > 2500 || n < 1200 {
			t.Errorf("%s: unexpected: %d of 2500 tokens were used", name, n)
		}
		if !strings.Contains(string(tight.input.raw), text) {
			t.Errorf("%s: the input was cut", name)
		}
	}
	if a, b := tokensOf(t, strings.Repeat("x", 1000)), tokensOf(t, strings.Repeat("界", 1000)); b < a+900 {
		t.Errorf("unexpected: 1,000 letters are %d tokens, 1,000 ideographs %d", a, b)
	}
}

func tokensOf(t *testing.T, text string) int {
	t.Helper()
	p, err := Build(new(talkIn(text, 0)), llm.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return p.tokens()
}

// TestTokensTooFew: a prompt that cannot fit the limit of tokens is an error that says so.
func TestTokensTooFew(t *testing.T) {
	_, err := Build(new(talkIn("hello", 5)), llm.Limits{Tokens: 50})
	var m *llm.Error
	if !errors.As(err, &m) || m.Kind != llm.ErrorTooLong {
		t.Errorf("got error %v, want %s", err, llm.ErrorTooLong)
	}
}

// TestLearnedTokensTooFew: a learned limit is only an estimate, so the shortest prompt is built
// although it exceeds it. A configured limit is an error.
func TestLearnedTokensTooFew(t *testing.T) {
	p := talkIn("hello", 60)
	alone, err := Build(new(talkIn("hello", 0)), llm.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	got, err := Build(&p, llm.Limits{Tokens: 50, Learned: true})
	if err != nil {
		t.Fatal(err)
	}
	whole, err := Build(&p, llm.Limits{})
	if err != nil || got.before != whole.chars() {
		t.Errorf("the size before was %d, want %d; %v", got.before, whole.chars(), err)
	}
	if got.chars() > alone.chars()+100 || !strings.Contains(string(got.input.raw), "hello") {
		t.Errorf("unexpected: %d characters, %d without history; %s", got.chars(), alone.chars(), got.input.raw)
	}
	if _, err := Build(&p, llm.Limits{Tokens: 50, Chars: 100, Learned: true}); err == nil {
		t.Error("a prompt exceeds the configured limit")
	}
}

func TestSounds(t *testing.T) {
	p := talkIn("listen", 0)
	p.Messages[0].Message.Attachments = []core.Attachment{{Kind: core.MediaAudio, Ref: "v"}}
	p.Sounds = map[string]llm.File{"v": {MIME: "audio/ogg", Data: []byte("noise")}}
	for _, hears := range []bool{false, true} {
		built, err := Build(&p, llm.Limits{Hearing: hears})
		if err != nil {
			t.Fatal(err)
		}
		r := built.Request()
		if got := len(r.Messages[len(r.Messages)-1].Sounds); (got == 1) != hears || strings.Contains(string(built.input.raw), `"heard":true`) != hears {
			t.Errorf("hearing %v: unexpected: %d sounds, input %s", hears, got, built.input.raw)
		}
	}
}
