package engine

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"slices"

	"github.com/tmc/langchaingo/llms"

	"synthbot/core/llm"
)

// anthropicWire is the messages API.
type anthropicWire struct{}

func (anthropicWire) path() string { return "/messages" }

func (anthropicWire) authorize(h http.Header, key string) {
	h.Set("Anthropic-Version", "2023-06-01")
	if key != "" {
		h.Set("X-Api-Key", key)
	}
}

// replyTool is the tool that the model has to call if the answer must match a schema. The tool's input is the answer.
const replyTool = "synthbot_reply"

type anthropicRequest struct {
	sampling
	MaxTokens  int             `json:"max_tokens"`
	Tools      []anthropicTool `json:"tools,omitempty"`
	ToolChoice json.RawMessage `json:"tool_choice,omitempty"`
	System     []block         `json:"system,omitempty"`
	Messages   []anthropicTurn `json:"messages"`
}

type anthropicTool struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	Schema      any    `json:"input_schema"`
}

type anthropicTurn struct {
	Role    string  `json:"role"`
	Content []block `json:"content"`
}

type block struct {
	Type    string            `json:"type"`
	Text    string            `json:"text,omitempty"`
	Source  map[string]string `json:"source,omitempty"`
	ID      string            `json:"id,omitempty"`
	Name    string            `json:"name,omitempty"`
	Input   json.RawMessage   `json:"input,omitempty"`
	CallID  string            `json:"tool_use_id,omitempty"`
	Content string            `json:"content,omitempty"`
	Cache   json.RawMessage   `json:"cache_control,omitempty"`
}

// cacheMark is the cache_control of the last block of a prefix that the provider may cache.
const cacheMark = `{"type":"ephemeral"}`

func (anthropicWire) write(b *bytes.Buffer, c *call, messages []llms.MessageContent, o llms.CallOptions) error {
	r := anthropicRequest{sampling: c.sampling(), MaxTokens: cmp.Or(o.MaxTokens, anthropicTokens)}
	for _, t := range o.Tools {
		r.Tools = append(r.Tools, anthropicTool{t.Function.Name, t.Function.Description, t.Function.Parameters})
	}
	switch {
	case len(r.Tools) > 0:
		r.ToolChoice = json.RawMessage(`{"type":"auto"}`)
	case c.form <= formSchema:
		r.Tools = []anthropicTool{{replyTool, "Send the reply", json.RawMessage(c.request.Schema)}}
		r.ToolChoice = json.RawMessage(`{"type":"tool","name":"` + replyTool + `"}`)
	}
	for _, m := range messages {
		blocks := blocksOf(m)
		if m.Role == llms.ChatMessageTypeSystem {
			for i := max(0, len(blocks)-2); i < len(blocks); i++ { // two prefixes: the first is shared by more prompts
				blocks[i].Cache = json.RawMessage(cacheMark)
			}
			r.System = blocks
			continue
		}
		r.add(m.Role == llms.ChatMessageTypeAI, blocks)
	}
	if len(r.Messages) > 1 { // cache everything before the newest turn
		before := r.Messages[len(r.Messages)-2].Content
		before[len(before)-1].Cache = json.RawMessage(cacheMark)
	}
	return encode(b, r)
}

// add adds a message. Adjacent messages of one role are merged, and the first turn must be the user's.
func (r *anthropicRequest) add(byModel bool, blocks []block) {
	role := "user"
	if byModel {
		role = "assistant"
	}
	last := len(r.Messages) - 1
	switch {
	case last >= 0 && r.Messages[last].Role == role:
		r.Messages[last].Content = append(r.Messages[last].Content, blocks...)
		return
	case last < 0 && byModel:
		r.Messages = append(r.Messages, anthropicTurn{"user", []block{{Type: "text", Text: "[…]"}}})
	}
	r.Messages = append(r.Messages, anthropicTurn{role, blocks})
}

func blocksOf(m llms.MessageContent) (blocks []block) {
	for _, part := range m.Parts {
		switch p := part.(type) {
		case llms.TextContent:
			blocks = append(blocks, block{Type: "text", Text: p.Text})
		case llms.BinaryContent:
			data := base64.StdEncoding.EncodeToString(p.Data)
			source := map[string]string{"type": "base64", "media_type": p.MIMEType, "data": data}
			blocks = append(blocks, block{Type: "image", Source: source})
		case llms.ToolCall:
			input := json.RawMessage(p.FunctionCall.Arguments)
			blocks = append(blocks, block{Type: "tool_use", ID: p.ID, Name: p.FunctionCall.Name, Input: input})
		case llms.ToolCallResponse:
			blocks = append(blocks, block{Type: "tool_result", CallID: p.ToolCallID, Content: p.Content})
		}
	}
	return blocks
}

// anthropicBlock is a part of an answer. Blocks of other types than text and tool_use are ignored.
type anthropicBlock struct {
	Type  string          `json:"type"`
	Text  string          `json:"text"`
	ID    string          `json:"id"`
	Name  string          `json:"name"`
	Input json.RawMessage `json:"input"`
}

// anthropicStream assembles an answer from its events. It skips thinking and unknown blocks.
type anthropicStream struct {
	pieces
	counts struct {
		In      int `json:"input_tokens"`
		Out     int `json:"output_tokens"`
		Created int `json:"cache_creation_input_tokens"`
		Read    int `json:"cache_read_input_tokens"`
	}
}

func (anthropicWire) events() streamReader { return new(anthropicStream) }

func (s *anthropicStream) count(usage json.RawMessage) { _ = json.Unmarshal(usage, &s.counts) }

// open begins a block and returns the text that the block adds to the answer.
func (s *anthropicStream) open(i int, b anthropicBlock) string {
	const most = 256 // tool calls in one answer
	switch {
	case b.Type == "text":
		s.text.WriteString(b.Text)
		return b.Text
	case b.Type == "tool_use" && len(s.calls) < most:
		c := &callPieces{llm.ToolCall{ID: b.ID, Name: b.Name}, i}
		if string(b.Input) != "{}" { // a streamed block begins with {}; its input follows
			c.Arguments = b.Input
		}
		s.calls = append(s.calls, c)
	}
	return ""
}

// anthropicEvent is one event of a stream, or a complete answer, which has Content.
type anthropicEvent struct {
	Type    string          `json:"type"`
	Index   int             `json:"index"`
	Message json.RawMessage `json:"message"` // in message_start; some servers send a string
	Block   *anthropicBlock `json:"content_block"`
	Delta   struct {
		Type    string `json:"type"`
		Text    string `json:"text"`
		Partial string `json:"partial_json"`
		Stop    string `json:"stop_reason"`
	} `json:"delta"`
	Content []anthropicBlock `json:"content"`
	Stop    string           `json:"stop_reason"`
	Usage   json.RawMessage  `json:"usage"`
	Error   json.RawMessage  `json:"error"`
}

func (s *anthropicStream) event(name string, data []byte) (string, error) {
	var e anthropicEvent
	if json.Unmarshal(data, &e) != nil {
		return "", nil
	}
	kind := cmp.Or(e.Type, name)
	if kind == "error" || isPresent(e.Error) {
		return "", parseErrorValue(e.Error)
	}
	var begun struct{ Usage json.RawMessage }
	_ = json.Unmarshal(e.Message, &begun)
	s.count(begun.Usage)
	s.count(e.Usage)
	s.stop = cmp.Or(e.Stop, e.Delta.Stop, s.stop)
	for i, b := range e.Content {
		s.open(i, b)
	}
	switch kind {
	case "content_block_start":
		if e.Block != nil {
			return s.open(e.Index, *e.Block), nil
		}
	case "content_block_delta":
		return s.add(e), nil
	case "message_stop":
		return "", errStop
	}
	return "", nil
}

// add adds a delta to its block and returns the text that the delta adds to the answer.
func (s *anthropicStream) add(e anthropicEvent) string {
	switch e.Delta.Type {
	case "text_delta":
		s.text.WriteString(e.Delta.Text)
		return e.Delta.Text
	case "input_json_delta":
		for _, c := range slices.Backward(s.calls) {
			if c.index != e.Index || len(c.Arguments) > maxAnswer {
				continue
			}
			c.Arguments = append(c.Arguments, e.Delta.Partial...)
			if c.Name == replyTool {
				return e.Delta.Partial
			}
			break
		}
	}
	return ""
}

// reply implements streamReader. The input of replyTool becomes the answer's text.
func (s *anthropicStream) reply() (r reply, finished bool) {
	r, finished = s.pieces.reply()
	r.calls = slices.DeleteFunc(r.calls, func(c llm.ToolCall) bool {
		if c.Name == replyTool {
			r.text += cmp.Or(string(c.Arguments), "{}")
		}
		return c.Name == replyTool
	})
	u := s.counts
	read := countOrZero(u.Read)
	r.usage = llm.Usage{In: countOrZero(u.In) + countOrZero(u.Created) + read, Out: u.Out, Cached: read}
	return r, finished
}
