package engine

// preset holds the defaults of a provider.
type preset struct {
	name string
	wire wire
	base string      // scheme and host
	path string      // used if the configured address has none
	key  bool        // its public address requires an API key
	form requestForm // the strictest form of structured output that may work
}

// presets lists the providers. All but anthropic speak the openai API.
func presets() []preset {
	ai, strict, schema, object := openAI{}, formStrict, formSchema, formObject
	return []preset{
		{"openai", openAI{completionTokens: true}, "https://api.openai.com", "/v1", true, strict},
		{"anthropic", anthropicWire{}, "https://api.anthropic.com", "/v1", true, schema},
		{"ollama", ai, "http://127.0.0.1:11434", "/v1", false, schema},
		{"gemini", ai, "https://generativelanguage.googleapis.com", "/v1beta/openai", true, object},
		{"mistral", ai, "https://api.mistral.ai", "/v1", true, schema},
		{"groq", ai, "https://api.groq.com", "/openai/v1", true, object},
		{"openrouter", ai, "https://openrouter.ai", "/api/v1", true, schema},
		{"llamacpp", ai, "http://127.0.0.1:8080", "/v1", false, schema},
		{"vllm", ai, "http://127.0.0.1:8000", "/v1", false, schema},
		{"lmstudio", ai, "http://127.0.0.1:1234", "/v1", false, schema},
		{"deepseek", ai, "https://api.deepseek.com", "/v1", true, object},
		{"together", ai, "https://api.together.xyz", "/v1", true, object},
		{"xai", ai, "https://api.x.ai", "/v1", true, schema},
	}
}

func presetOf(provider string) (preset, bool) {
	for _, p := range presets() {
		if p.name == provider {
			return p, true
		}
	}
	return preset{}, false
}

// Providers lists what Config.Provider may be.
func Providers() []string {
	names := []string{providerOffline}
	for _, p := range presets() {
		names = append(names, p.name)
	}
	return names
}
