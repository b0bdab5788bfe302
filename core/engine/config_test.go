package engine

import (
	"fmt"
	"reflect"
	"strings"
	"synthbot/core/secret"
	"testing"
	"time"
)

func TestCheck(t *testing.T) {
	key := secret.New("k")
	for name, tc := range map[string]struct {
		cfg  Config
		want string // "" if valid
	}{
		"offline":          {Config{}, ""},
		"disabled":         {Config{Provider: "nonsense", Disabled: true}, ""},
		"ollama":           {Config{Provider: "ollama", Model: "m"}, ""},
		"openai":           {Config{Provider: "openai", Model: "m", APIKey: key}, ""},
		"own openai":       {Config{Provider: "openai", Model: "m", BaseURL: "http://127.0.0.1:1"}, ""},
		"no key":           {Config{Provider: "anthropic", Model: "m"}, "api_key: missing"},
		"no model":         {Config{Provider: "groq", APIKey: key}, "model: missing"},
		"unknown provider": {Config{Provider: "gpt"}, `provider: "gpt" is unknown; use one of offline, openai`},
		"bad address":      {Config{Provider: "vllm", Model: "m", BaseURL: "127.0.0.1:80"}, "base_url: not an address"},
		"key in address":   {Config{Provider: "vllm", Model: "m", BaseURL: "http://me:secret@x"}, "base_url: must not have a user name or password"},
		"query":            {Config{Provider: "vllm", Model: "m", BaseURL: "http://x/v1?key=secret"}, "base_url: must not have a query"},
		"too small":        {Config{Provider: "vllm", Model: "m", MaxPromptChars: 100}, "max_prompt_chars: 100 characters"},
		"window too small": {Config{Provider: "vllm", Model: "m", ContextTokens: 2048, MaxTokens: 2000}, "context_tokens: 48 tokens"},
	} {
		err := tc.cfg.Check()
		if got := fmt.Sprint(err); (err == nil) != (tc.want == "") || !strings.Contains(got, tc.want) || strings.Contains(got, "secret@") {
			t.Errorf("%s: got %v, want %q", name, err, tc.want)
		}
	}
}

func TestEndpoints(t *testing.T) {
	for given, want := range map[string]string{
		"http://127.0.0.1:11434":         "http://127.0.0.1:11434/v1",
		"http://127.0.0.1:11434/":        "http://127.0.0.1:11434/v1",
		"https://x.example/api/openai/":  "https://x.example/api/openai",
		"https://x.example:8443/v1beta1": "https://x.example:8443/v1beta1",
	} {
		p, _ := presetOf("ollama")
		if got, err := (Config{BaseURL: given}).endpoint(p); got != want || err != nil {
			t.Errorf("%s: got %s, %v", given, got, err)
		}
	}
	for _, p := range presets() {
		if got, err := (Config{Provider: p.name}).endpoint(p); err != nil || !strings.HasPrefix(got, "http") || p.wire == nil {
			t.Errorf("%s: got %s, %v", p.name, got, err)
		}
		if strings.HasPrefix(p.base, "https") != p.key {
			t.Errorf("%s: want a key for a public service, none for a local one", p.name)
		}
	}
}

func TestLimits(t *testing.T) {
	for _, tc := range []struct{ chars, window, answer, want int }{
		{0, 0, 0, 0}, {24000, 0, 2048, 0}, {24000, 8192, 2048, 6144}, {0, 4096, 1024, 3072}, {0, 100, 200, 1},
	} {
		c := Config{MaxPromptChars: tc.chars, ContextTokens: tc.window, MaxTokens: tc.answer}
		c.Vision, c.Hearing = true, true
		l := c.Limits()
		if l.Tokens != tc.want || l.Chars != tc.chars || !l.Vision || !l.Hearing {
			t.Errorf("%+v: got %+v", tc, l)
		}
	}
}

// TestTags checks the struct tags from which the configuration and its reference page are generated.
func TestTags(t *testing.T) {
	for _, table := range []any{Config{}, BudgetConfig{}, PlaceBudget{}} {
		for _, f := range reflect.VisibleFields(reflect.TypeOf(table)) {
			doc := f.Tag.Get("doc")
			if f.Tag.Get("toml") == "" || !strings.HasSuffix(doc, ".") || len(doc) > 200 {
				t.Errorf("%T.%s: %q", table, f.Name, doc)
			}
		}
	}
	provider, _ := reflect.TypeOf(Config{}).FieldByName("Provider")
	if got := provider.Tag.Get("oneof"); got != strings.Join(Providers(), "|") {
		t.Errorf("oneof %q, providers %q", got, Providers())
	}
	timeout, _ := reflect.TypeOf(Config{}).FieldByName("Timeout")
	if d, err := time.ParseDuration(timeout.Tag.Get("default")); err != nil || d != defaultTimeout {
		t.Errorf("got %v, %v", d, err)
	}
}

func TestOfflineConfiguredOut(t *testing.T) {
	if _, err := New([]Config{{Disabled: true}}, Options{}); err == nil {
		t.Error("New accepts a chain without any engine")
	}
	c, err := New([]Config{{Provider: "ollama", Model: "m"}, {Disabled: true}}, Options{})
	if err != nil || strings.Join(c.Names(), ",") != "ollama" {
		t.Fatalf("got %v, %v", c, err)
	}
	c, err = New([]Config{{Provider: "offline", Name: "small", MaxPromptChars: 9000}, {Provider: "ollama", Model: "m"}}, Options{})
	if err != nil || strings.Join(c.Names(), ",") != "ollama,small" || c.last.Limits().Chars != 9000 {
		t.Errorf("got %v, %v", c.Names(), err)
	}
}
