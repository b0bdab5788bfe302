package engine

import (
	"fmt"
	"net/http"
	"sort"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"synthbot/core"
	"synthbot/core/llm"
)

// TestTooLongWordings checks that the error of each server about a prompt that is too long is recognised, with
// the sizes in it.
func TestTooLongWordings(t *testing.T) {
	said := func(message string) string {
		return fmt.Sprintf(`{"error":{"message":%q,"type":"invalid_request_error"}}`, message)
	}
	for name, tc := range map[string]struct {
		status int
		body   string
		want   sizes
	}{
		"llama.cpp":        {400, `{"error":{"code":400,"message":"request (5021 tokens) exceeds the available context size (4096 tokens), try increasing it","type":"exceed_context_size_error","n_prompt_tokens":5021,"n_ctx":4096}}`, sizes{5021, 0, 4096}},
		"llama.cpp, words": {500, `{"error":{"code":500,"message":"request (5021 tokens) exceeds the available context size (4096 tokens), try increasing it","type":"server_error"}}`, sizes{5021, 0, 4096}},
		"llama.cpp, old":   {400, said("the request exceeds the available context size. try increasing the context size or enable context shift"), sizes{}},
		"openai": {400, `{"error":{"message":"This model's maximum context length is 8192 tokens. However, your messages resulted in 9021 tokens. Please reduce the length of the messages.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}`,
			sizes{9021, 0, 8192}},
		"openai, answer": {400, said("This model's maximum context length is 8192 tokens. However, you requested 9500 tokens (7452 in the messages, 2048 in the completion). Please reduce the length of the messages or completion."), sizes{7452, 2048, 8192}},
		"openai, input":  {400, said("Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 300001 tokens. Please reduce the length of the messages."), sizes{300001, 0, 272000}},
		"openai, minute": {429, said("Request too large for gpt-4o in organization org-x on tokens per min (TPM): Limit 30000, Requested 38541. The input or output tokens must be reduced in order to run successfully."), sizes{38541, 0, 30000}},
		"vllm": {400, `{"object":"error","message":"This model's maximum context length is 4096 tokens. However, you requested 2048 output tokens and your prompt contains at least 2049 input tokens, for a total of at least 4097 tokens. Please reduce the length of the input prompt or the number of requested output tokens.","type":"BadRequestError","code":400}`,
			sizes{2049, 2048, 4096}},
		"vllm, answer":      {400, said("'max_tokens' or 'max_completion_tokens' is too large: 2048. This model's maximum context length is 4096 tokens and your request has 3000 input tokens (2048 > 4096 - 3000)."), sizes{3000, 2048, 4096}},
		"vllm, prompt":      {400, said("The decoder prompt (length 5000) is longer than the maximum model length of 4096. Make sure that `max_model_len` is no smaller than the number of text tokens."), sizes{5000, 0, 4096}},
		"anthropic":         {400, `{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 210000 tokens > 200000 maximum"}}`, sizes{210000, 0, 200000}},
		"anthropic, answer": {400, `{"type":"error","error":{"type":"invalid_request_error","message":"input length and ` + "`max_tokens`" + ` exceed context limit: 197000 + 8192 > 200000, decrease input length or ` + "`max_tokens`" + ` and try again"}}`, sizes{197000, 8192, 200000}},
		"mistral":           {400, `{"object":"error","message":"Prompt contains 40123 tokens and 0 draft tokens, too large for model with 32768 maximum context length","type":"invalid_request_prompt","code":"3051"}`, sizes{40123, 0, 32768}},
		"groq":              {400, `{"error":{"message":"Please reduce the length of the messages or completion.","type":"invalid_request_error","code":"context_length_exceeded"}}`, sizes{}},
		"groq, minute":      {413, `{"error":{"message":"Request too large for model x in organization org_y on tokens per minute (TPM): Limit 6000, Requested 7312, please reduce your message size and try again.","type":"tokens","code":"rate_limit_exceeded"}}`, sizes{7312, 0, 6000}},
		"gemini":            {400, `[{"error":{"code":400,"message":"The input token count (1100000) exceeds the maximum number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}]`, sizes{1100000, 0, 1048576}},
		"openrouter":        {400, said("This endpoint's maximum context length is 8192 tokens. However, you requested about 10000 tokens (8000 of text input, 2000 in the output). Please reduce the length of either one."), sizes{8000, 2000, 8192}},
		"xai":               {400, `{"code":"Client specified an invalid argument","error":"This model's maximum prompt length is 131072 but the request contains 150000 tokens."}`, sizes{150000, 0, 131072}},
		"lm studio":         {400, `{"error":"Trying to keep the first 5000 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens, which is not enough."}`, sizes{5000, 0, 4096}},
		"together":          {422, `{"error":{"message":"Input validation error: ` + "`inputs` tokens + `max_new_tokens` must be <= 4097. Given: 5000 `inputs` tokens and 2048 `max_new_tokens`" + `","type":"invalid_request_error"}}`, sizes{5000, 2048, 4097}},
		"ollama":            {500, `{"error":{"message":"the input length exceeds the context length","type":"api_error"}}`, sizes{}},
		"thousands":         {400, said("prompt is too long: 210,000 tokens > 200,000 maximum"), sizes{210000, 0, 200000}},
		"no number":         {400, said("prompt is too long: 99999999999999999999 tokens > 0 maximum"), sizes{}},
		"in words alone":    {400, `prompt is too long: 300 tokens > 200 maximum`, sizes{300, 0, 200}},
	} {
		e := readHTTPError(&http.Response{StatusCode: tc.status}, []byte(tc.body), time.Now())
		if kind := kindOf(e); kind != llm.ErrorTooLong {
			t.Errorf("%s: got %s", name, kind)
		}
		if e.sizes != tc.want {
			t.Errorf("%s: got %+v, want %+v", name, e.sizes, tc.want)
		}
	}
}

// smallServer is a server with a small context window. Its tokenizer makes one token of chars characters. It
// rejects longer prompts with the text of say.
type smallServer struct {
	tokens, chars int
	refused       int
	sent          []int // the sizes of the accepted prompts, in tokens
}

func (w *smallServer) answer(s *server, say func(prompt, limit int) string) http.HandlerFunc {
	return func(rw http.ResponseWriter, r *http.Request) {
		n := 0
		for _, m := range s.last().body["messages"].([]any) {
			n += utf8.RuneCountInString(m.(map[string]any)["content"].(string))
		}
		n /= w.chars
		if n > w.tokens {
			w.refused++
			body(400, say(n, w.tokens))(rw, r)
			return
		}
		w.sent = append(w.sent, n)
		body(200, fmt.Sprintf(`{"choices":[{"message":{"content":"yo"},"finish_reason":"stop"}],"usage":{"prompt_tokens":%d,"completion_tokens":1}}`, n))(rw, r)
	}
}

// talk returns a question whose prompt has n lines, or as many of them as fit.
func talk(line string, n int) core.Question {
	return question(func(l llm.Limits) (llm.Request, error) {
		whole := strings.Repeat(line, n)
		over := sort.Search(n, func(i int) bool { return !l.Fit(hello().System[0], whole[:(i+1)*len(line)]) })
		if over > 0 {
			said := []llm.Utterance{{Role: llm.RoleUser, Text: whole[:over*len(line)]}}
			return llm.Request{System: hello().System[:1], Messages: said}, nil
		}
		return llm.Request{}, &llm.Error{Kind: llm.ErrorTooLong, Engine: l.Engine}
	})
}

// TestTooLongIsBuiltShorter checks that a prompt that the server rejects as too long is built shorter at once,
// whatever the error's text and the tokenizer, and that later prompts fit.
func TestTooLongIsBuiltShorter(t *testing.T) {
	exact := func(n, limit int) string {
		return fmt.Sprintf(`{"error":{"code":400,"type":"exceed_context_size_error","message":"x","n_prompt_tokens":%d,"n_ctx":%d}}`, n, limit)
	}
	limitOnly := func(_, limit int) string {
		return fmt.Sprintf(`{"error":{"message":"This model's maximum context length is %d tokens."}}`, limit)
	}
	silent := func(int, int) string { return `{"error":{"code":"context_length_exceeded","message":"too long"}}` }
	for name, tc := range map[string]struct {
		say   func(int, int) string
		line  string
		chars int
		most  int // allowed refusals
		least float64
	}{
		"exact":            {exact, "the quick brown fox jumps\n", 3, 1, 0.7},
		"exact, small":     {exact, "the quick brown fox jumps\n", 1, 1, 0.7},
		"exact, large":     {exact, "the quick brown fox jumps\n", 5, 1, 0.7},
		"Russian":          {exact, "съешь ещё этих мягких булок\n", 2, 1, 0.7},
		"Chinese":          {exact, "我能吞下玻璃而不伤身体\n", 1, 1, 0.7},
		"the limit":        {limitOnly, "the quick brown fox jumps\n", 3, 1, 0.6},
		"the limit, small": {limitOnly, "the quick brown fox jumps\n", 1, 4, 0.3},
		"nothing":          {silent, "the quick brown fox jumps\n", 3, 4, 0.5},
		"nothing, small":   {silent, "the quick brown fox jumps\n", 1, 4, 0.5},
	} {
		t.Run(name, func(t *testing.T) {
			w := &smallServer{tokens: 4096, chars: tc.chars}
			s := newServer(t, nil)
			s.say(w.answer(s, tc.say))
			c, err := New([]Config{s.table()}, Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			lines := 12000 * tc.chars / utf8.RuneCountInString(tc.line) // three times as much as fits
			for i := range 6 {
				a, err := c.Ask(bounded(t), talk(tc.line, lines))
				if err != nil || a.Engine != "test" {
					t.Fatalf("question %d: %q answers, %v", i, a.Engine, err)
				}
			}
			if w.refused == 0 || w.refused > tc.most {
				t.Errorf("%d calls were refused, want at most %d", w.refused, tc.most)
			}
			if last := w.sent[len(w.sent)-1]; float64(last) < tc.least*4096 {
				t.Errorf("the last prompt uses %d of 4096 tokens, want more", last)
			}
		})
	}
}

// TestTooLongForGood checks that a prompt that cannot be shortened is not sent repeatedly.
func TestTooLongForGood(t *testing.T) {
	s := newServer(t, body(400, `{"error":{"code":"context_length_exceeded","message":"too long"}}`))
	c, err := New([]Config{s.table(), {Provider: "offline", Disabled: true}}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for name, q := range map[string]core.Question{"as long": plainQuestion(), "a little shorter": talk("the quick brown fox jumps\n", 400)} {
		before := len(s.got())
		_, err = c.Ask(bounded(t), q)
		if failed, ok := err.(*llm.Error); !ok || failed.Kind != llm.ErrorTooLong {
			t.Errorf("%s: got %v", name, err)
		}
		if n := len(s.got()) - before; n > maxTooLong {
			t.Errorf("%s: got %d calls", name, n)
		}
	}
}

// TestOneQuestionTeachesOnce checks that a question that is rejected at every length shortens later prompts by
// one step for a day, not by one for each of its calls.
func TestOneQuestionTeachesOnce(t *testing.T) {
	now := time.Now()
	s := newServer(t, body(400, `{"error":{"code":"context_length_exceeded","message":"too long"}}`))
	c, err := New([]Config{s.table(), {Provider: "offline", Disabled: true}}, Options{Clock: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	limit := func() int { return c.Limits(core.Path{}).Tokens }
	c.Ask(bounded(t), talk("the quick brown fox jumps\n", 4000))
	step := len(fmt.Sprint(s.got()[0].body["messages"])) / llm.CharsPerToken * 7 / 10
	if got := limit(); len(s.got()) != maxTooLong || got < step-100 || got > step+100 {
		t.Errorf("limit after %[2]d calls: got %[1]d, want about %[3]d", got, len(s.got()), step)
	}
	now = now.Add(learnedTime)
	if got := limit(); got != 0 {
		t.Errorf("limit a day later: got %d", got)
	}
}

// TestRateLimitIsNotTooLong checks that an error about a rate limit in tokens pauses the engine and does not
// shorten prompts.
func TestRateLimitIsNotTooLong(t *testing.T) {
	for _, said := range []string{
		"This request would exceed your organization's rate limit of 50,000 input tokens per minute.",
		"Too many tokens, please wait before trying again.",
	} {
		s := newServer(t, body(429, fmt.Sprintf(`{"error":{"type":"rate_limit_error","message":%q}}`, said), "Retry-After", "20"))
		c, err := New([]Config{s.table()}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		c.Ask(bounded(t), talk("the quick brown fox jumps\n", 2000))
		if l := c.Limits(core.Path{}); len(s.got()) != 1 || l.Tokens != 0 {
			t.Errorf("%s: got %d calls and a limit of %d tokens afterwards", said, len(s.got()), l.Tokens)
		}
	}
	for said, want := range map[string]llm.ErrorKind{
		`{"error":{"type":"rate_limit_error","message":"50,000 input tokens per minute"}}`:                      llm.ErrorRetryLater,
		`{"error":{"message":"Rate limit reached: at most 50,000 input tokens per minute"}}`:                    llm.ErrorRetryLater,
		`{"error":{"code":"rate_limit_exceeded","message":"Request too large: limit 6000, requested 7312"}}`:    llm.ErrorTooLong,
		`{"error":{"code":"context_length_exceeded","message":"this is no rate limit, but a prompt too long"}}`: llm.ErrorTooLong,
	} {
		if kind := kindOf(parseErrorBody([]byte(said))); kind != want { // in a successful response
			t.Errorf("%s: got %s", said, kind)
		}
	}
}

// TestShorter checks that a prompt is built to the learned limit if that makes it shorter, and is shortened by
// a fixed step otherwise.
func TestShorter(t *testing.T) {
	for name, tc := range map[string]struct{ before, now, size, try, want int }{
		"learnt":           {0, 3000, 4000, 1, 3000},
		"learnt too much":  {0, 4000, 4000, 1, 2800},
		"learnt nothing":   {0, 0, 4000, 1, 2800},
		"as before":        {5000, 5000, 4000, 1, 2800},
		"before was less":  {3000, 6000, 4000, 1, 2100},
		"a second time":    {3000, 3000, 4000, 2, 2100},
		"learnt by it":     {3000, 2000, 4000, 2, 1400},
		"still no limit":   {0, 0, 4000, 3, 2800},
		"nothing is left":  {1, 1, 1, 2, 1},
		"no limit, learnt": {0, 3000, 4000, 2, 2100},
	} {
		got := shorter(llm.Limits{Tokens: tc.before}, llm.Limits{Tokens: tc.now, Chars: 7}, tc.size, tc.try)
		if got.Tokens != tc.want || got.Chars != 7 {
			t.Errorf("%s: got %+v, want %d", name, got, tc.want)
		}
	}
}
