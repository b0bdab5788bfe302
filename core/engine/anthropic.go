package engine

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"

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

// replyTool is how this API is held to a schema: a tool that the model has to call. Its
// input is the text of the answer.
const replyTool = "synthbot_reply"

// anthropicRequest is the body of a request.
type anthropicRequest struct {
	sampling
	MaxTokens  int              `json:"max_tokens"`
	Tools      []anthropicTool  `json:"tools,omitempty"`
	ToolChoice *anthropicChoice `json:"tool_choice,omitempty"`
	System     []block          `json:"system,omitempty"`
	Messages   []anthropicTurn  `json:"messages"`
}

type anthropicTool struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	Schema      any    `json:"input_schema"`
}

type anthropicChoice struct {
	Type string `json:"type"`
	Name string `json:"name,omitempty"`
}

type anthropicTurn struct {
	Role    string  `json:"role"`
	Content []block `json:"content"`
}

// block is a part of a message. What it holds depends on its type.
type block struct {
	Type    string          `json:"type"`
	Text    string          `json:"text,omitempty"`
	Source  *imageSource    `json:"source,omitempty"`
	ID      string          `json:"id,omitempty"`
	Name    string          `json:"name,omitempty"`
	Input   json.RawMessage `json:"input,omitempty"`
	CallID  string          `json:"tool_use_id,omitempty"`
	Content string          `json:"content,omitempty"`
	Cache   *cacheMark      `json:"cache_control,omitempty"`
}

type imageSource struct {
	Type string `json:"type"`
	MIME string `json:"media_type"`
	Data string `json:"data"`
}

// cacheMark ends a stretch of the prompt that the provider may keep.
type cacheMark struct {
	Type string `json:"type"`
}

var ephemeral = &cacheMark{"ephemeral"}

func (anthropicWire) body(c *call, messages []llms.MessageContent, o llms.CallOptions) any {
	r := anthropicRequest{sampling: c.sampling(), MaxTokens: cmp.Or(o.MaxTokens, anthropicTokens)}
	for _, t := range o.Tools {
		r.Tools = append(r.Tools, anthropicTool{t.Function.Name, t.Function.Description, t.Function.Parameters})
	}
	switch {
	case len(r.Tools) > 0:
		r.ToolChoice = &anthropicChoice{Type: "auto"}
	case c.form <= formSchema:
		r.Tools = []anthropicTool{{replyTool, "Send the reply", json.RawMessage(c.schema)}}
		r.ToolChoice = &anthropicChoice{"tool", replyTool}
	}
	for _, m := range messages {
		blocks := blocksOf(m)
		if m.Role == llms.ChatMessageTypeSystem {
			for i := max(0, len(blocks)-2); i < len(blocks); i++ { // what all share helps where the rest differs
				blocks[i].Cache = ephemeral
			}
			r.System = blocks
			continue
		}
		r.add(m.Role == llms.ChatMessageTypeAI, blocks)
	}
	if len(r.Messages) > 1 { // the end of what was there before the newest turn
		before := r.Messages[len(r.Messages)-2].Content
		before[len(before)-1].Cache = ephemeral
	}
	return r
}

// add adds a message. Neighbours of one role are one turn, and the first turn is a user's.
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
			source := &imageSource{"base64", p.MIMEType, base64.StdEncoding.EncodeToString(p.Data)}
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

type anthropicBlock struct {
	Type  string          `json:"type"`
	Text  string          `json:"text"`
	ID    string          `json:"id"`
	Name  string          `json:"name"`
	Input json.RawMessage `json:"input"`
}

type anthropicUsage struct {
	In      int `json:"input_tokens"`
	Out     int `json:"output_tokens"`
	Created int `json:"cache_creation_input_tokens"`
	Read    int `json:"cache_read_input_tokens"`
}

type anthropicMessage struct {
	Content []anthropicBlock `json:"content"`
	Stop    string           `json:"stop_reason"`
	Usage   json.RawMessage  `json:"usage"`
	Error   json.RawMessage  `json:"error"`
}

// anthropicStream puts an answer together from its events. Blocks of a kind that
// carries no words (thinking, and whatever comes next) are passed over.
type anthropicStream struct {
	blocks map[int]*anthropicOpenBlock
	order  []int
	stop   string
	usage  anthropicUsage
	done   bool
}

type anthropicOpenBlock struct {
	head  anthropicBlock
	words strings.Builder // text, or the JSON of the input
}

func (anthropicWire) events() streamReader {
	return &anthropicStream{blocks: map[int]*anthropicOpenBlock{}}
}

func (anthropicWire) whole(data []byte) (reply, error) {
	var m anthropicMessage
	if !isObject(data) || json.Unmarshal(data, &m) != nil {
		return reply{}, errNoAnswer
	}
	if isPresent(m.Error) {
		return reply{}, parseErrorValue(m.Error)
	}
	s := anthropicStream{blocks: map[int]*anthropicOpenBlock{}, stop: m.Stop}
	s.count(m.Usage)
	for i, b := range m.Content {
		s.open(i, b)
	}
	r, _ := s.reply()
	return r, nil
}

// count takes in the counts that an event has.
func (s *anthropicStream) count(usage json.RawMessage) { _ = json.Unmarshal(usage, &s.usage) }

func (s *anthropicStream) open(i int, b anthropicBlock) {
	const most = 256 // blocks of one answer
	if len(s.order) >= most {
		return
	}
	o := &anthropicOpenBlock{head: b}
	o.words.WriteString(b.Text)
	if s.blocks[i] == nil {
		s.order = append(s.order, i)
	}
	s.blocks[i] = o
}

type anthropicEvent struct {
	Type    string            `json:"type"`
	Index   int               `json:"index"`
	Message *anthropicMessage `json:"message"`
	Block   *anthropicBlock   `json:"content_block"`
	Delta   *struct {
		Type    string `json:"type"`
		Text    string `json:"text"`
		Partial string `json:"partial_json"`
		Stop    string `json:"stop_reason"`
	} `json:"delta"`
	Usage json.RawMessage `json:"usage"`
	Error json.RawMessage `json:"error"`
}

func (s *anthropicStream) event(name string, data []byte) (string, error) {
	var e anthropicEvent
	if json.Unmarshal(data, &e) != nil {
		return "", nil
	}
	if e.Type == "" {
		e.Type = name
	}
	s.count(e.Usage)
	switch e.Type {
	case "error":
		return "", parseErrorValue(e.Error)
	case "message_start":
		if e.Message != nil {
			s.count(e.Message.Usage)
		}
	case "content_block_start":
		if e.Block != nil {
			s.open(e.Index, *e.Block)
			return e.Block.Text, nil
		}
	case "content_block_delta":
		o := s.blocks[e.Index]
		switch {
		case o == nil || e.Delta == nil:
		case o.head.Type == "text" && e.Delta.Type == "text_delta":
			o.words.WriteString(e.Delta.Text)
			return e.Delta.Text, nil
		case o.head.Type == "tool_use" && e.Delta.Type == "input_json_delta" && o.words.Len() <= maxAnswer:
			o.words.WriteString(e.Delta.Partial)
			if o.head.Name == replyTool {
				return e.Delta.Partial, nil
			}
		}
	case "message_delta":
		if e.Delta != nil && e.Delta.Stop != "" {
			s.stop = e.Delta.Stop
		}
	case "message_stop":
		s.done = true
		return "", errStop
	}
	return "", nil
}

func (s *anthropicStream) reply() (reply, bool) {
	var text strings.Builder
	u := s.usage
	r := reply{stop: s.stop, usage: llm.Usage{In: u.In + u.Created + u.Read, Out: u.Out, Cached: u.Read}}
	for _, i := range s.order {
		o := s.blocks[i]
		switch o.head.Type {
		case "text":
			text.WriteString(o.words.String())
		case "tool_use":
			arguments := json.RawMessage(o.words.String())
			if len(arguments) == 0 {
				arguments = o.head.Input
			}
			if o.head.Name == replyTool {
				text.Write(arguments)
				continue
			}
			r.calls = append(r.calls, llm.ToolCall{ID: o.head.ID, Name: o.head.Name, Arguments: arguments})
		}
	}
	r.text = text.String()
	return r, s.done || s.stop != ""
}
