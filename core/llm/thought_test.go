package llm

import (
	"bytes"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func TestUnthink(t *testing.T) {
	for name, tc := range map[string]struct{ text, want string }{
		"none":              {" Hello [there] <b>Jay</b> ", " Hello [there] <b>Jay</b> "},
		"in front":          {"<think>hm</think>\n\nHello", "Hello"},
		"behind":            {"Hello\n<think>hm</think>", "Hello"},
		"between":           {"Hello <think>hm</think>Jay", "Hello Jay"},
		"two":               {"<think>a</think>Hello<think>b</think> Jay", "Hello Jay"},
		"not ended":         {"Hello <think>hm", "Hello"},
		"not begun":         {"They greet me.</think>Hello", "Hello"},
		"neither":           {"a</think>b<think>c", "b"},
		"nested":            {"Hello <think>a<think>b</think>c</think>Jay", "Hello Jay"},
		"nested, one end":   {"<think><think>a</think>Hello", "Hello"},
		"nested thrice":     {"<think>a<think>b<think>c</think>d</think>e</think>Hello", "Hello"},
		"any case":          {"<THINK>hm</Think>Hello", "Hello"},
		"other names":       {"<thinking>a</thinking><thought>b</thought><reasoning>c</reasoning><reflection>d</reflection><scratchpad>e</scratchpad>Hello", "Hello"},
		"brackets":          {"[THINK]hm[/THINK]Hello", "Hello"},
		"triangles":         {"◁think▷hm◁/think▷Hello ◁ ▷", "Hello ◁ ▷"},
		"words":             {"<|begin_of_thought|>hm<|end_of_thought|>Hello", "Hello"},
		"channels":          {"<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final<|message|>Hello", "Hello"},
		"one channel":       {"<|channel|>analysis<|message|>hm", ""},
		"code":              {"Write `<think>` and `</think>`.", "Write `<think>` and `</think>`."},
		"code block":        {"```\n<think>x</think>\n```\nis how", "```\n<think>x</think>\n```\nis how"},
		"behind code":       {"```\nx\n```<think>hm</think>", "```\nx\n```"},
		"code in a thought": {"<think>```\nx</think>Hello", "Hello"},
		"code for a tool":   {"a, b = t.split('</think>'), \"<think>\"", "a, b = t.split('</think>'), \"<think>\""},
		"behind code words": {"Run `ls`<think>SECRET</think> now", "Run `ls` now"},
		"code, not ended":   {"Run `ls`<think>SECRET", "Run `ls`"},
		"behind a quote":    {`She said "hi"<think>"SECRET"</think> ok`, `She said "hi" ok`},
		"one fence":         {"Use ``` for code.<think>SECRET</think> Bye", "Use ``` for code. Bye"},
		"a fenced line":     {"```ls``` <think>SECRET</think>Bye", "```ls``` Bye"},
		"an open tick":      {"It`s <think>SECRET</think>Bye", "It`s Bye"},
		"ticks in lines":    {"`a\n<think>SECRET</think>b`", "`a\nb`"},
		"entities":          {"&lt;think&gt;hm&lt;/think&gt;Hello &lt;b&gt;", "Hello &lt;b&gt;"},
		"similar":           {"<thinker> <think </thinks> [THINKER]", "<thinker> <think </thinks> [THINKER]"},
	} {
		if got := Unthink(tc.text); got != tc.want {
			t.Errorf("%s: got %q, want %q", name, got, tc.want)
		}
		if got := Unthink(Unthink(tc.text)); got != Unthink(tc.text) {
			t.Errorf("%s: a second Unthink gave %q", name, got)
		}
	}
}

// TestUnthinkGrowing: while a text arrives, no thought is shown and the shown text only grows.
func TestUnthinkGrowing(t *testing.T) {
	for _, text := range []string{
		"<think>secret</think>Hello, Jay. 1 < 2", "Hello <think>secret</think>Jay", "Hello <think>secret<think>secret</think>secret</think>Jay",
		"<think><think>secret</think>Hello", "Hello [THINK]secret[/THINK] [Jay](x)", "◁think▷secret◁/think▷Hällö ◁",
		"<|channel|>analysis<|message|>secret<|end|><|start|>assistant<|channel|>final<|message|>Hello", "Hello <thi", "<THINKING>secret",
		"Run `ls`<think>secret</think> now", "Write `<think>` and `a`<think>secret</think>", "`open <think>secret</think>",
		"Hello <|begin_of_thought|>secret<|end_of_thought|> you",
	} {
		shown := ""
		for i := range text {
			now := UnthinkGrowing(text[:i])
			for n := 1; n <= len("secret"); n++ {
				if strings.HasSuffix(text[:i], "secret"[:n]) && n > 1 && strings.HasSuffix(now, "secret"[:n]) {
					t.Fatalf("%q shows %q", text[:i], now)
				}
			}
			if !strings.HasPrefix(now, shown) || strings.ContainsAny(now, "▷|") || !utf8.ValidString(now) {
				t.Fatalf("%q shows %q after %q", text[:i], now, shown)
			}
			shown = now
		}
		if now := Unthink(text); !strings.HasPrefix(now, shown) || strings.Contains(now, "secret") {
			t.Errorf("%q becomes %q after %q", text, now, shown)
		}
	}
}

// TestUnthinkIsLinear: a hostile text takes time in proportion to its length.
func TestUnthinkIsLinear(t *testing.T) {
	began := time.Now()
	for _, piece := range []string{"<think>", "</think>", "<think></think>", "`<think>`", "`<think></think>", "```\n<think></think>", "<", "[", "```<think>", "<|channel|>final<|message|>"} {
		Unthink(strings.Repeat(piece, 1<<20/len(piece)))
	}
	if took := time.Since(began); took > 2*time.Minute { // quadratic time would be many minutes
		t.Errorf("took %v, want at most 2m", took)
	}
}

func FuzzUnthink(f *testing.F) {
	f.Add("a<think>b</think>c", 5)
	f.Add("`<think>`[THINK]x", 3)
	f.Fuzz(func(t *testing.T, text string, at int) {
		whole := Unthink(text)
		if len(whole) > len(text) || utf8.ValidString(text) && !utf8.ValidString(whole) {
			t.Fatalf("%q becomes %q", text, whole)
		}
		if at < 0 || at > len(text) || !utf8.ValidString(text[:at]) {
			return
		}
		if open, _ := FindThought(text[:at]); UnthinkGrowing(text[:at]) != strings.TrimRight(text[:at], blanks) && open == nil && !strings.ContainsAny(text[:at], "<[◁&") {
			t.Fatalf("%q is held back", text[:at])
		}
	})
}

// TestThoughtlessLines: stored lines are shown to users without the bot's private thoughts.
func TestThoughtlessLines(t *testing.T) {
	const in = `{"item":{"value":{"entries":[{"id":"1","n":12345678901234567890,"private_thought":"Canaria"}]}}}
{"record":{"data":{"actions":[{"payload":{"Private_Thought":"Canaria","summary":"<b>"}},{"payload":{"private\u005fthought":"Canaria"}}]}}}
{"plain":"as it is",  "spaced":1}
`
	const want = `{"item":{"value":{"entries":[{"id":"1","n":12345678901234567890}]}}}
{"record":{"data":{"actions":[{"payload":{"summary":"<b>"}},{"payload":{}}]}}}
{"plain":"as it is",  "spaced":1}
`
	var out bytes.Buffer
	w := ThoughtlessLines(&out)
	for line := range strings.Lines(in) {
		if n, err := w.Write([]byte(line)); err != nil || n != len(line) {
			t.Fatal(n, err)
		}
	}
	if got := out.String(); got != want || strings.Contains(got, "Canaria") {
		t.Errorf("unexpected lines: %s", got)
	}
	if _, err := w.Write([]byte("private_thought of no JSON\n")); err == nil {
		t.Error("a line that is not JSON was written")
	}
}
