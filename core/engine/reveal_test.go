package engine

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"synthbot/core"
	"synthbot/core/llm"
	"synthbot/core/plan"
)

// grow feeds the answer in pieces of n bytes. It checks that the shown text only grows, or is hidden.
func grow(t *testing.T, answer string, n int) *Reveal {
	t.Helper()
	r := NewReveal(core.MustPath("tg/1"), "message_tg")
	before := ""
	for piece := range slices.Chunk([]byte(answer), n) {
		r.Write(string(piece))
		text := r.Text()
		if !strings.HasPrefix(text, before) && text != "" && r.shown != "" && before != "" && r.tries == 0 && strings.Count(answer, `"response"`) < 2 {
			t.Fatalf("%q shows %q after %q", answer, text, before)
		}
		before = text
	}
	return r
}

func TestReveal(t *testing.T) {
	for name, tc := range map[string]struct {
		answer string
		half   string // the shown text after the first half of the answer; "-" skips the check
		want   string
	}{
		"response":          {`{"response":"Hello there, Jay.","actions":[]}`, "Hello the", "Hello there, Jay."},
		"response last":     {`{"actions":[],"intent":"query","response":"Hello"}`, "", "Hello"},
		"escapes":           {`{"response":"a\n\"b\" \u00e9 \ud83d\ude00 \/ \\ é😀"}`, "-", "a\n\"b\" é 😀 / \\ é😀"},
		"lone half":         {`{"response":"\ud83d x \udc00"}`, "-", "\uFFFD x \uFFFD"},
		"raw newline":       {"{\"response\":\"a\nb\"}", "-", "a\nb"},
		"fenced":            {"Here you are:\n```json\n{\"response\":\"x\"}\n```\n", "-", "x"},
		"thinking":          {`<think>{"response":"secret"} hm</think>{"response":"x"}`, "", "x"},
		"a thought inside":  {`{"response":"<think>they greet me</think>Hello there, Jay."}`, "", "Hello there, Jay."},
		"another in front":  {`{"response":"\n<THINKING>hm</THINKING>\n\nHello","intent":"x"}`, "", "Hello"},
		"in the middle":     {`{"response":"Hello <think>x <think>y</think> z</think>Jay"}`, "Hello", "Hello Jay"},
		"not ended":         {`{"response":"Hello <think>should I say more? I think so, but let me see"}`, "Hello", "Hello"},
		"thought alone":     {`{"response":"<think>nothing to say</think>","actions":[]}`, "", ""},
		"in code":           {"{\"response\":\"Write `<think>` and a < b\"}", "Write `", "Write `<think>` and a < b"},
		"in a message":      {`{"actions":[{"type":"message_tg","payload":{"interface_path":"tg/1","text":"<think>x</think>Hello"}}]}`, "", "Hello"},
		"escaped":           {`{"response":"\u003cthink\u003ehm\u003c/think\u003eHello"}`, "", "Hello"},
		"mistral":           {`[THINK]{"response":"secret"}[/THINK]{"response":"x"}`, "", "x"},
		"channels":          {`<|channel|>analysis<|message|>{"response":"secret"}<|end|><|start|>assistant<|channel|>final<|message|>{"response":"x"}`, "", "x"},
		"Reasoning":         {`<Reasoning>{"response":"secret"}</REASONING>a < b {"response":"x"}`, "", "x"},
		"braces in prose":   {`Well {like this} or [this], so: {"response":"x"}`, "-", "x"},
		"prose":             {`I am fine, thank you.`, "", ""},
		"message, path 1st": {`{"actions":[{"type":"message_tg","payload":{"interface_path":"tg/1","text":"Hello there, this is me speaking to you"}}]}`, "", "Hello there, this is me speaking to you"},
		"message, path 2nd": {`{"actions":[{"type":"message_tg","payload":{"text":"Hello","interface_path":"tg/1"}}]}`, "", "Hello"},
		"message, no path":  {`{"actions":[{"type":"Message-TG","params":{"message":"Hello"}}]}`, "", "Hello"},
		"type last":         {`{"actions":[{"payload":{"text":"Hello"},"type":"message"}]}`, "", "Hello"},
		"bare":              {`{"type":"message_tg","payload":{"text":"Hello"}}`, "", "Hello"},
		"list":              {`[{"type":"dice","payload":{}},{"type":"message_tg","payload":{"text":"Hello"}}]`, "", "Hello"},
		"action_input":      {`{"action":"message_tg","action_input":{"text":"Hello"}}`, "", "Hello"},
		"elsewhere":         {`{"actions":[{"type":"message_tg","payload":{"text":"Psst","interface_path":"tg/2"}}]}`, "", ""},
		"recipient":         {`{"actions":[{"type":"message_tg","payload":{"text":"Psst","recipient":"Ann"}}]}`, "", ""},
		"late recipient":    {`{"actions":[{"type":"message_tg","payload":{"interface_path":"tg/1","text":"Psst, Ann","recipient":"Ann"}}]}`, "-", ""},
		"other action":      {`{"actions":[{"type":"diary_add","payload":{"text":"secret"}}]}`, "", ""},
		"other interface":   {`{"actions":[{"type":"message_dc","payload":{"text":"x"}}]}`, "", ""},
		"conditions":        {`{"actions":[{"type":"message_tg","payload":{"interface_path":"tg/1","text":"x"},"conditions":[{"field":"a"}]}]}`, "-", ""},
		"confirmation":      {`{"actions":[{"type":"message_tg","requiresConfirmation":true,"payload":{"text":"x"}}]}`, "", ""},
		"no confirmation":   {`{"actions":[{"type":"message_tg","requiresConfirmation":false,"payload":{"text":"x"}}]}`, "", "x"},
		"fallback":          {`{"actions":[{"type":"dice","payload":{},"fallbackAction":{"type":"message_tg","payload":{"text":"x"}}}]}`, "", ""},
		"empty response":    {`{"response":"","actions":[{"type":"message_tg","payload":{"text":"Hello"}}]}`, "", "Hello"},
		"both":              {`{"response":"first","actions":[{"type":"message_tg","payload":{"text":"second"}}]}`, "-", "first"},
		"two messages":      {`{"actions":[{"type":"message_tg","payload":{"text":"one"}},{"type":"message_tg","payload":{"text":"two"}}]}`, "-", "one"},
		"nested response":   {`{"context":{"response":"no"},"metadata":{"payload":{"text":"no"}},"response":"yes"}`, "", "yes"},
		"response no text":  {`{"response":{"text":"x"}}`, "", ""},
		"broken":            {`{"response":"Hello" oops}`, "-", ""},
		"cut":               {`{"response":"Hello th`, "-", "Hello th"},
		"numbers":           {`{"confidence":0.9,"a":-1e5,"b":null,"c":[1,[2]],"response":"x"}`, "", "x"},
	} {
		t.Run(name, func(t *testing.T) {
			for n := 1; n < 9; n++ {
				if got := grow(t, tc.answer, n).Text(); got != tc.want {
					t.Fatalf("in pieces of %d: got %q", n, got)
				}
			}
			if got := grow(t, tc.answer[:len(tc.answer)/2], 3).Text(); got != tc.half && tc.half != "-" {
				t.Errorf("after the first half: got %q", got)
			}
		})
	}
}

func TestRevealGrowsBeforeTheEnd(t *testing.T) {
	r := grow(t, `{"actions":[{"type":"message_tg","payload":{"interface_path":"tg/1","text":"Hello th`, 1)
	if r.Text() != "Hello th" || r.closed {
		t.Errorf("%q, closed %v", r.Text(), r.closed)
	}
	r.Write(`ere"}}`)
	if r.Text() != "Hello there" || !r.closed {
		t.Errorf("%q, closed %v", r.Text(), r.closed)
	}
}

func TestRevealNeverCutsACharacter(t *testing.T) {
	r := NewReveal(core.MustPath("tg/1"), "message_tg")
	for _, b := range []byte(`{"response":"é😀漢"}`) {
		r.Write(string([]byte{b}))
		if !utf8.ValidString(r.Text()) {
			t.Fatalf("got %q", r.Text())
		}
	}
}

func TestRevealIsBounded(t *testing.T) {
	r := NewReveal(core.MustPath("tg/1"), "message_tg")
	r.Write(`{"response":"`)
	for range 64 {
		r.Write(strings.Repeat("x", 16<<10))
	}
	if r.Text() != "" || len(r.in) > maxReveal {
		t.Errorf("got %d bytes shown, %d kept", len(r.Text()), len(r.in))
	}
	begin := time.Now()
	for _, filler := range []string{"<think>aaaa", "aaaa", "{", "<", "{ ", "{\"a\":", "<th"} {
		slow := NewReveal(core.MustPath("tg/1"), "message_tg")
		slow.Write(filler)
		for range maxReveal / 8 {
			slow.Write(filler[len(filler)-1:] + "<{\"b")
		}
	}
	if took := time.Since(begin); took > 2*time.Minute { // a quadratic algorithm needs many minutes
		t.Errorf("took %v, want at most 2m", took)
	}
	deep := NewReveal(core.MustPath("tg/1"), "message_tg")
	for range 2000 {
		deep.Write(`{"a":[`)
	}
	if deep.tries == 0 || len(deep.levels) > maxLevels {
		t.Errorf("got %d levels", len(deep.levels))
	}
}

// FuzzReveal checks that the text shown of a valid plan is a message of that plan.
func FuzzReveal(f *testing.F) {
	f.Add(`{"response":"Hello \u00e9","actions":[]}`, uint8(3))
	f.Add(`{"actions":[{"type":"message_tg","payload":{"interface_path":"tg/1","text":"Hi"},"conditions":[]}]}`, uint8(1))
	f.Add("```json\n[{\"type\":\"message\",\"payload\":{\"message\":\"x\",\"text\":\"y\"}}]```", uint8(2))
	f.Add(`<think>x</think> a {b} {"action":"message_tg","action_input":{"text":"x"}} c`, uint8(4))
	f.Add(`{"type":"message","payload":{"Message":"x"}}`, uint8(9))
	f.Fuzz(func(t *testing.T, answer string, n uint8) {
		if !utf8.ValidString(answer) {
			return
		}
		r := NewReveal(core.MustPath("tg/1"), "message_tg")
		for piece := range slices.Chunk([]byte(answer), int(n)+1) {
			r.Write(string(piece))
		}
		p, faults := plan.Read(llm.Answer{Text: answer})
		text := strings.TrimSpace(r.Text()) // like the plan's response
		if len(faults) > 0 || p.Repaired || text == "" {
			return
		}
		if text == p.Response || slices.ContainsFunc(p.Steps, func(s core.Step) bool { return stepSays(s, text) }) {
			return
		}
		t.Errorf("%q shows %q, the plan is %+v", answer, r.Text(), p)
	})
}

// stepSays reports whether a step sends the text.
func stepSays(s core.Step, text string) bool {
	var payload map[string]json.RawMessage
	if json.Unmarshal(s.Payload, &payload) != nil {
		return false
	}
	for _, key := range []string{"text", "message"} {
		var said string
		if json.Unmarshal(payload[key], &said) == nil && strings.TrimSpace(said) == text {
			return true
		}
	}
	return false
}

func BenchmarkReveal(b *testing.B) {
	answer := `{"actions":[{"type":"message_tg","payload":{"interface_path":"tg/1","text":"` + strings.Repeat("lorem ipsum ", 200) + `"}}]}`
	b.SetBytes(int64(len(answer)))
	for b.Loop() {
		r := NewReveal(core.MustPath("tg/1"), "message_tg")
		for i := 0; i < len(answer); i += 4 {
			r.Write(answer[i:min(i+4, len(answer))])
			_ = r.Text()
		}
	}
}
