package engine

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/tmc/langchaingo/llms"

	"synthbot/core"
	"synthbot/core/llm"
	"synthbot/core/txt"
)

// openAI is the chat completions API, which most servers speak.
type openAI struct {
	completionTokens bool // max_tokens is sent as max_completion_tokens
}

func (openAI) path() string { return "/chat/completions" }

func (openAI) authorize(h http.Header, key string) {
	if key != "" {
		h.Set("Authorization", "Bearer "+key)
	}
}

// requestForm is which optional features a request uses. If a server refuses a
// request, it is sent again in the next form.
type requestForm int32

const (
	formStrict       requestForm = iota // an answer by a schema, which the provider guarantees
	formSchema                          // an answer by a schema, as far as the server supports it
	formObject                          // an answer that is any JSON object
	formUnstructured                    // only the prompt asks for JSON
	formMinimal                         // like formUnstructured, without fields that some servers refuse
)

// sampling holds the fields that both APIs have.
type sampling struct {
	Model       string   `json:"model"`
	Temperature *float64 `json:"temperature,omitempty"`
	TopP        float64  `json:"top_p,omitempty"`
	Stream      bool     `json:"stream,omitempty"`
}

func (c *call) sampling() sampling {
	s := sampling{Model: c.cfg.Model, TopP: max(c.cfg.TopP, 0), Stream: c.stream != nil}
	if c.cfg.Temperature >= 0 {
		s.Temperature = &c.cfg.Temperature
	}
	return s
}

// openAIRequest is the body of a request without response_format and messages, which are written after it.
type openAIRequest struct {
	sampling
	Effort           string          `json:"reasoning_effort,omitempty"`
	MaxTokens        int             `json:"max_tokens,omitempty"`
	CompletionTokens int             `json:"max_completion_tokens,omitempty"`
	StreamOptions    json.RawMessage `json:"stream_options,omitempty"`
	Tools            []llms.Tool     `json:"tools,omitempty"`
	ToolChoice       string          `json:"tool_choice,omitempty"`
}

func (o openAI) write(b *bytes.Buffer, c *call, messages []llms.MessageContent, with llms.CallOptions) error {
	r := openAIRequest{sampling: c.sampling(), MaxTokens: with.MaxTokens, Tools: with.Tools}
	if o.completionTokens {
		r.MaxTokens, r.CompletionTokens = 0, with.MaxTokens
	}
	if c.form < formMinimal {
		r.Effort = c.cfg.Effort
		if c.stream != nil && c.preset.name != "mistral" { // Mistral refuses unknown fields
			r.StreamOptions = json.RawMessage(`{"include_usage":true}`)
		}
	}
	if len(with.Tools) > 0 {
		r.ToolChoice = "auto"
	}
	if err := encode(b, r); err != nil {
		return err
	}
	b.Truncate(b.Len() - len("}\n"))
	switch c.form {
	case formStrict, formSchema: // the schema is valid JSON already
		const format = `,"response_format":{"type":"json_schema","json_schema":{"name":"plan","strict":%t,"schema":%s}}`
		fmt.Fprintf(b, format, c.form == formStrict, c.request.Schema)
	case formObject:
		b.WriteString(`,"response_format":{"type":"json_object"}`)
	}
	b.WriteString(`,"messages":[`)
	for i, m := range messages {
		if i > 0 {
			b.WriteByte(',')
		}
		writeTurn(b, m)
	}
	b.WriteString(`]}`)
	return nil
}

type openAICall struct {
	ID       string             `json:"id"`
	Type     string             `json:"type"`
	Function *llms.FunctionCall `json:"function"`
}

// roles maps langchaingo's roles to the API's.
var roles = map[llms.ChatMessageType]string{"system": "system", "human": "user", "ai": "assistant", "tool": "tool"}

// writeTurn writes a message of a request. Its content is a string, or a list if it has files.
func writeTurn(b *bytes.Buffer, m llms.MessageContent) {
	fmt.Fprintf(b, `{"role":%q`, roles[m.Role])
	var texts []string
	var parts []any
	var calls []openAICall
	for _, part := range m.Parts {
		switch p := part.(type) {
		case llms.ToolCall:
			calls = append(calls, openAICall{p.ID, p.Type, p.FunctionCall})
		case llms.ToolCallResponse:
			fmt.Fprintf(b, `,"tool_call_id":%s`, core.JSON(p.ToolCallID))
			texts = append(texts, p.Content)
		case llms.TextContent:
			texts, parts = append(texts, p.Text), append(parts, p)
		case llms.BinaryContent:
			parts = append(parts, openAIPart(p))
		}
	}
	if len(calls) > 0 {
		fmt.Fprintf(b, `,"tool_calls":%s`, core.JSON(calls))
	}
	if len(parts) > len(texts) {
		b.WriteString(`,"content":`)
		_ = encode(b, parts) // strings always encode
	} else {
		b.WriteString(`,"content":"`)
		for i, text := range texts {
			if i > 0 {
				b.WriteString(`\n\n`)
			}
			txt.WriteJSON(b, text)
		}
		b.WriteByte('"')
	}
	b.WriteByte('}')
}

func openAIPart(p llms.BinaryContent) any {
	if strings.HasPrefix(p.MIMEType, "image/") {
		return llms.ImageURLPart(p.String())
	}
	data := base64.StdEncoding.EncodeToString(p.Data)
	sound := map[string]string{"data": data, "format": soundFormat(p.MIMEType)}
	return map[string]any{"type": "input_audio", "input_audio": sound}
}

// soundFormat returns the API's name of an audio format. OpenAI accepts wav and mp3
// (https://platform.openai.com/docs/guides/audio); other servers accept Ogg, too.
func soundFormat(mime string) string {
	kind, _, _ := strings.Cut(strings.ToLower(mime), ";")
	name := strings.TrimPrefix(strings.TrimPrefix(strings.TrimSpace(kind), "audio/"), "x-")
	formats := map[string]string{
		"mpeg": "mp3", "wave": "wav", "vnd.wave": "wav", "mp4": "m4a", "aac": "m4a", "opus": "ogg", "": "ogg",
	}
	return cmp.Or(formats[name], name)
}

// openAIText returns the text of a content: a string, or a list of parts. Any other value has no text.
func openAIText(content any) string {
	var b strings.Builder
	parts, _ := content.([]any)
	for _, part := range parts {
		p, _ := part.(map[string]any)
		text, ok := p["text"].(string)
		if ok && (p["type"] == "text" || p["type"] == "output_text") {
			b.WriteString(text)
		}
	}
	text, _ := content.(string)
	return text + b.String()
}

// openAIMessage is a message, or the delta of one.
type openAIMessage struct {
	Content any    `json:"content"`
	Refusal string `json:"refusal"`
	Calls   []struct {
		Index    *int   `json:"index"`
		ID       string `json:"id"`
		Function struct {
			Name      string          `json:"name"`
			Arguments json.RawMessage `json:"arguments"`
		} `json:"function"`
	} `json:"tool_calls"`
}

// openAIAnswer is a complete answer, with messages, or one event of a stream, with deltas.
type openAIAnswer struct {
	Choices []struct {
		Index   int           `json:"index"`
		Message openAIMessage `json:"message"`
		Delta   openAIMessage `json:"delta"`
		Finish  string        `json:"finish_reason"`
	} `json:"choices"`
	Usage *struct {
		In      int `json:"prompt_tokens"`
		Out     int `json:"completion_tokens"`
		Details struct {
			Cached int `json:"cached_tokens"`
		} `json:"prompt_tokens_details"`
	} `json:"usage"`
	Error json.RawMessage `json:"error"`
}

// openAIStream assembles an answer from its events. It decodes all events into the same memory.
type openAIStream struct {
	pieces
	data    bytes.Reader // the current event
	decoder *json.Decoder
	read    openAIAnswer
}

func (openAI) events() streamReader {
	s := new(openAIStream)
	s.decoder = json.NewDecoder(&s.data)
	return s
}

func (s *openAIStream) event(_ string, data []byte) (string, error) {
	if string(data) == doneMark {
		return "", errStop
	}
	a := &s.read
	clear(a.Choices[:cap(a.Choices)])
	*a = openAIAnswer{Choices: a.Choices[:0]}
	s.data.Reset(data)
	if !json.Valid(data) {
		return "", nil // some servers send comments and pings as data
	}
	_ = s.decoder.Decode(a) // leaves out what has another type
	if isPresent(a.Error) {
		return "", parseErrorValue(a.Error)
	}
	if a.Usage != nil {
		s.usage = llm.Usage{In: a.Usage.In, Out: a.Usage.Out, Cached: a.Usage.Details.Cached}
	}
	for i := range a.Choices {
		choice := &a.Choices[i]
		if choice.Index != 0 {
			continue
		}
		if choice.Finish != "" {
			s.stop = choice.Finish
		}
		for _, m := range []*openAIMessage{&choice.Delta, &choice.Message} {
			text := openAIText(m.Content)
			if text != "" || m.Refusal != "" || len(m.Calls) > 0 {
				s.add(m, text)
				return text, nil
			}
		}
	}
	return "", nil
}

func (s *openAIStream) add(m *openAIMessage, text string) {
	s.text.WriteString(text)
	s.refused = s.refused || m.Refusal != ""
	for _, c := range m.Calls {
		target := s.callFor(c.Index, c.ID, c.Function.Name)
		target.Name, target.ID = cmp.Or(target.Name, c.Function.Name), cmp.Or(target.ID, c.ID)
		if s.text.Len()+len(target.Arguments) <= maxAnswer {
			var text string // arguments are a string of JSON, or JSON
			if json.Unmarshal(c.Function.Arguments, &text) != nil {
				text = string(bytes.TrimSpace(c.Function.Arguments))
			}
			target.Arguments = append(target.Arguments, text...)
		}
	}
}

// callFor finds the call that a delta belongs to, or begins a new one. The index decides, unless the id is another one:
// some servers always send index 0. Without an index the id decides; a delta with neither belongs to the last call.
func (s *openAIStream) callFor(index *int, id, name string) *callPieces {
	for _, c := range s.calls {
		switch {
		case index != nil && c.index == *index && (id == "" || c.ID == "" || c.ID == id):
			return c
		case index == nil && id != "" && c.ID == id:
			return c
		}
	}
	last := len(s.calls) - 1
	if index == nil && id == "" && name == "" && last >= 0 {
		return s.calls[last]
	}
	c := &callPieces{index: len(s.calls)}
	if index != nil {
		c.index = *index
	}
	const most = 128 // tool calls in one answer
	if len(s.calls) < most {
		s.calls = append(s.calls, c)
	}
	return c
}
