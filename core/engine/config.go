package engine

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"synthbot/core/llm"
	"synthbot/core/secret"
)

// Config is one [[engine]] table.
type Config struct {
	Name      string        `toml:"name" doc:"The engine's name in other settings and in the log; empty: the provider's name." example:"home"`
	Provider  string        `toml:"provider" doc:"The API: offline, openai, anthropic, or a preset for the openai client." default:"offline" oneof:"offline|openai|anthropic|ollama|gemini|mistral|groq|openrouter|llamacpp|vllm|lmstudio|deepseek|together|xai"`
	Model     string        `toml:"model" doc:"The model's name, as the provider spells it." example:"llama3.1"`
	BaseURL   string        `toml:"base_url" doc:"The address of the API; empty: the provider's public address. If it has no path, the provider's usual one (such as /v1) is added." example:"http://127.0.0.1:11434"`
	APIKey    secret.Secret `toml:"api_key" doc:"The key: a literal, env:NAME or file:PATH." example:"env:OPENAI_API_KEY"`
	Timeout   time.Duration `toml:"timeout" doc:"How long one call may take in total." default:"120s" min:"1s" max:"1h"`
	Dialect   string        `toml:"dialect" doc:"json: a JSON plan in the text. tools: the API's native tool calls, with the history as native messages." default:"json" oneof:"json|tools"`
	Structure string        `toml:"structure" doc:"How the provider is asked for JSON: strict (a schema it guarantees), schema, object or off. auto begins with the strictest that the provider supports and falls back in that order." default:"auto" oneof:"auto|strict|schema|object|off"`

	MaxPromptChars int  `toml:"max_prompt_chars" doc:"The longest prompt in characters; 0 for no limit." default:"24000" min:"0" max:"10000000"`
	ContextTokens  int  `toml:"context_tokens" doc:"The model's context window in tokens; a prompt leaves room in it for the answer. 0: what the server reports when a prompt is too long." default:"0" min:"0" max:"100000000"`
	MaxTokens      int  `toml:"max_tokens" doc:"The longest answer in tokens; 0 leaves it to the server." default:"2048" min:"0" max:"1000000"`
	Vision         bool `toml:"vision" doc:"Whether the model accepts pictures." default:"false"`
	Hearing        bool `toml:"hearing" doc:"Whether the model accepts voice messages (APIs with input_audio)." default:"false"`
	Stream         bool `toml:"stream" doc:"Whether the engine streams answers, if the interface shows them while they are written." default:"true"`

	Parallel int `toml:"parallel" doc:"How many calls may run at a time. Further calls wait, with the users taking turns; the timeout begins after the wait. 0 for no limit; 1 suits a server at home." default:"0" min:"0" max:"1000"`

	Temperature float64 `toml:"temperature" doc:"The sampling temperature, 0 to 2; below 0 leaves it to the server." default:"-1" min:"-1" max:"2"`
	TopP        float64 `toml:"top_p" doc:"Nucleus sampling, 0 to 1; 0 leaves it to the server." default:"0" min:"0" max:"1"`
	Effort      string  `toml:"reasoning_effort" doc:"How long a reasoning model may think, if the provider supports it; empty leaves it to the server." default:"" oneof:"|none|minimal|low|medium|high"`

	PriceIn     float64 `toml:"price_in" doc:"Price of a million prompt tokens, in the currency of your budget; 0 for free." default:"0" min:"0"`
	PriceOut    float64 `toml:"price_out" doc:"Price of a million answer tokens." default:"0" min:"0"`
	PriceCached float64 `toml:"price_cached" doc:"Price of a million prompt tokens that the provider had cached; 0 means price_in." default:"0" min:"0"`

	EmbeddingModel string `toml:"embedding_model" doc:"The embedding model. The first engine that has one makes the embeddings." example:"nomic-embed-text"`

	Disabled bool `toml:"disabled" doc:"Leave this engine out. With provider offline: also leave out the built-in last engine." default:"false"`
}

const (
	defaultTimeout  = 120 * time.Second
	minPromptChars  = 2000 // the instructions need that much
	anthropicTokens = 4096 // used if max_tokens is 0: Anthropic requires a number
	minPromptTokens = 700
	providerOffline = "offline"
	structureAuto   = "auto"
)

// withDefaults sets the empty fields of a Config that was made in code.
func (c Config) withDefaults() Config {
	c.Provider = cmp.Or(c.Provider, providerOffline)
	c.Name = cmp.Or(c.Name, c.Provider)
	c.Timeout = cmp.Or(max(c.Timeout, 0), defaultTimeout)
	c.Dialect = cmp.Or(c.Dialect, string(llm.DialectJSON))
	c.Structure = cmp.Or(c.Structure, structureAuto)
	return c
}

// Check returns all faults of the table that its tags do not describe, joined. Each names the key and the fix.
func (c Config) Check() error {
	c = c.withDefaults()
	if c.Disabled || c.Provider == providerOffline {
		return nil
	}
	p, known := presetOf(c.Provider)
	if !known {
		return fmt.Errorf("provider: %q is unknown; use one of %s", c.Provider, strings.Join(Providers(), ", "))
	}
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	if c.Model == "" {
		fault("model: missing; name the model as %s spells it", c.Provider)
	}
	if c.APIKey.IsZero() && p.key && c.BaseURL == "" {
		fault("api_key: missing; %s needs one (env:NAME or file:PATH keeps it out of this file)", c.Provider)
	}
	if _, err := c.endpoint(p); err != nil {
		fault("base_url: %w", err)
	}
	if c.MaxPromptChars != 0 && c.MaxPromptChars < minPromptChars {
		const text = "max_prompt_chars: %d characters are too few for a prompt; use at least %d"
		fault(text, c.MaxPromptChars, minPromptChars)
	}
	if c.ContextTokens != 0 && c.promptTokens() < minPromptTokens {
		const text = "context_tokens: %d tokens are left for the prompt beside max_tokens, at least %d are needed; " +
			"raise it, or lower max_tokens"
		fault(text, c.ContextTokens-c.MaxTokens, minPromptTokens)
	}
	if c.Hearing && p.name == "anthropic" {
		fault("hearing: this API does not accept sounds; remove it")
	}
	return errors.Join(faults...)
}

func (c Config) endpoint(p preset) (string, error) {
	if c.BaseURL == "" {
		if p.base == "" {
			return "", fmt.Errorf("missing; say where %s runs", c.Provider)
		}
		return p.base + p.path, nil
	}
	u, err := url.Parse(c.BaseURL)
	switch {
	case err != nil:
		return "", errors.New("not an address; write it as http://host:port")
	case u.Scheme != "http" && u.Scheme != "https", u.Host == "":
		return "", fmt.Errorf("%q is not an http or https address; write it as http://host:port", u.Redacted())
	case u.RawQuery != "" || u.Fragment != "":
		return "", errors.New("must not have a query or fragment")
	case u.User != nil:
		return "", errors.New("must not have a user name or password; use api_key")
	}
	if strings.Trim(u.Path, "/") == "" {
		u.Path = p.path
	}
	return strings.TrimRight(u.String(), "/"), nil
}

// promptTokens returns how much of the context window is left for the prompt; 0 means no limit.
func (c Config) promptTokens() int {
	if c.ContextTokens <= 0 {
		return 0
	}
	return max(1, c.ContextTokens-c.MaxTokens)
}

// Limits returns the configured limits of the engine's prompts.
func (c Config) Limits() llm.Limits {
	return llm.Limits{
		Engine: c.Name, Chars: c.MaxPromptChars, Tokens: c.promptTokens(), Dialect: llm.Dialect(c.Dialect),
		Vision: c.Vision, Hearing: c.Hearing,
	}
}

// Cost returns the price of a call, in the currency of the prices.
func (c Config) Cost(u llm.Usage) float64 {
	cached := cmp.Or(c.PriceCached, c.PriceIn)
	const million = 1e6
	return (float64(u.In-u.Cached)*c.PriceIn + float64(u.Cached)*cached + float64(u.Out)*c.PriceOut) / million
}
