package engine

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"

	"github.com/tmc/langchaingo/llms"

	"synthbot/core"
)

// openAIClient writes the requests of the openAI API. It takes the place of the library's
// client, which encodes a request three times and compiles patterns for each.
type openAIClient struct {
	transport *transport
	address   string // of the API
}

var _ llms.Model = openAIClient{}

// Call implements llms.Model.
func (o openAIClient) Call(ctx context.Context, prompt string, options ...llms.CallOption) (string, error) {
	return llms.GenerateFromSinglePrompt(ctx, o, prompt, options...)
}

// GenerateContent implements llms.Model. Its context carries a call.
func (o openAIClient) GenerateContent(
	ctx context.Context, messages []llms.MessageContent, options ...llms.CallOption,
) (*llms.ContentResponse, error) {
	var with llms.CallOptions
	for _, option := range options {
		option(&with)
	}
	turns := make([]openAITurn, len(messages))
	for i, m := range messages {
		turns[i] = newOpenAITurn(m)
	}
	c := callOf(ctx)
	body := map[string]json.RawMessage{"messages": core.JSON(turns)}
	if with.MaxTokens > 0 {
		set(body, c.preset.maxField, with.MaxTokens)
	}
	if len(with.Tools) > 0 {
		set(body, "tools", with.Tools)
	}
	r, err := o.transport.post(ctx, o.address+"/chat/completions", c.bearer(), body)
	return &llms.ContentResponse{Choices: []*llms.ContentChoice{{Content: r.text, StopReason: r.stop}}}, err
}

// bearer is the header of a request of the openAI API.
func (c *call) bearer() http.Header {
	return http.Header{"Content-Type": {"application/json"}, "Authorization": {"Bearer " + c.cfg.APIKey.Reveal()}}
}

// openAITurn is a message of a request.
type openAITurn struct {
	Role    string           `json:"role"`
	Content any              `json:"content"` // a text, or parts
	Calls   []openAITurnCall `json:"tool_calls,omitempty"`
	CallID  string           `json:"tool_call_id,omitempty"`
}

type openAITurnCall struct {
	ID       string             `json:"id"`
	Type     string             `json:"type"`
	Function *llms.FunctionCall `json:"function"`
}

func newOpenAITurn(from llms.MessageContent) openAITurn {
	roles := map[llms.ChatMessageType]string{
		llms.ChatMessageTypeSystem: "system", llms.ChatMessageTypeAI: "assistant", llms.ChatMessageTypeTool: "tool",
	}
	t := openAITurn{Role: cmp.Or(roles[from.Role], "user"), Content: ""}
	var parts []any
	for _, part := range from.Parts {
		switch p := part.(type) {
		case llms.ToolCall:
			t.Calls = append(t.Calls, openAITurnCall{p.ID, p.Type, p.FunctionCall})
		case llms.ToolCallResponse:
			t.CallID, t.Content = p.ToolCallID, p.Content
		case llms.BinaryContent:
			data := base64.StdEncoding.EncodeToString(p.Data)
			sound := map[string]string{"data": data, "format": soundFormat(p.MIMEType)}
			parts = append(parts, map[string]any{"type": "input_audio", "input_audio": sound})
		default:
			parts = append(parts, p)
		}
	}
	if len(parts) > 0 {
		t.Content = parts
	}
	if text, ok := from.Parts[0].(llms.TextContent); ok && len(parts) == 1 {
		t.Content = text.Text
	}
	return t
}
