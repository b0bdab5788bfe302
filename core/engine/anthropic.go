package engine

import (
	"encoding/json"
	"slices"
	"strings"

	"synthbot/core"
	"synthbot/core/llm"
)

// anthropicWire is the messages API.
type anthropicWire struct{}

func (anthropicWire) order() []string {
	return strings.Fields("model max_tokens temperature top_p stream tools tool_choice system messages")
}

// cacheMark ends a stretch of the prompt that the provider may keep.
const cacheMark = `{"type":"ephemeral"}`

// replyTool is how this API is held to a schema: a tool that the model has to call. Its
// input is the text of the answer.
const replyTool = "synthbot_reply"

type block = map[string]json.RawMessage

func (anthropicWire) amend(body map[string]json.RawMessage, c *call) error {
	switch {
	case c.tools:
		body["tool_choice"] = json.RawMessage(`{"type":"auto"}`)
	case c.form <= formSchema:
		tool := map[string]any{"name": replyTool, "description": "Send the reply", "input_schema": c.schema}
		set(body, "tools", []any{tool})
		set(body, "tool_choice", map[string]string{"type": "tool", "name": replyTool})
	}
	var blocks []block
	for i, text := range c.system {
		blocks = append(blocks, textBlock(text))
		if i >= len(c.system)-2 { // what everyone shares stays useful where the part after it differs
			blocks[i]["cache_control"] = json.RawMessage(cacheMark)
		}
	}
	if len(blocks) > 0 {
		set(body, "system", blocks)
	}
	return amendTurns(body)
}

func textBlock(text string) block { return block{"type": core.JSON("text"), "text": core.JSON(text)} }

type turn struct {
	Role    string  `json:"role"`
	Content []block `json:"content"`
}

// amendTurns joins neighbours of one role, which the library has to write one
// by one, unwraps the arguments of calls, begins with a user's turn, and marks
// the end of what was there before the newest turn.
func amendTurns(body map[string]json.RawMessage) error {
	var turns, joined []turn
	if err := json.Unmarshal(body["messages"], &turns); err != nil {
		return err
	}
	for _, t := range turns {
		for _, b := range t.Content {
			var w wrappedArguments
			if string(b["type"]) == `"tool_use"` && json.Unmarshal(b["input"], &w) == nil && w.JSON != "" {
				b["input"] = json.RawMessage(w.JSON)
			}
		}
		last := len(joined) - 1
		if last < 0 || joined[last].Role != t.Role {
			joined = append(joined, t)
			continue
		}
		joined[last].Content = append(joined[last].Content, t.Content...)
	}
	if len(joined) > 0 && joined[0].Role != "user" {
		joined = slices.Insert(joined, 0, turn{"user", []block{textBlock("[…]")}})
	}
	if len(joined) > 1 {
		before := joined[len(joined)-2].Content
		before[len(before)-1]["cache_control"] = json.RawMessage(cacheMark)
	}
	set(body, "messages", joined)
	return nil
}

// wrappedArguments carries arguments through the library as text: it would put them into
// a map of floats, and numbers above 2^53 would come out changed.
type wrappedArguments struct {
	JSON string `json:"json"`
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

// forLibrary is an answer that the library accepts. The real one is read here.
const forLibrary = `{"type":"message","content":[{"type":"text","text":"."}],"stop_reason":"end_turn"}`
