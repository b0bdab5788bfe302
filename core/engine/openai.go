package engine

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"synthbot/core/llm"
)

// openAI is the chat completions API, which most servers speak.
type openAI struct{}

func (openAI) order() []string {
	return strings.Fields("model temperature top_p reasoning_effort max_tokens max_completion_tokens stream" +
		" stream_options response_format tools tool_choice messages")
}

// amend puts in what a list of messages does not say.
func (openAI) amend(body map[string]json.RawMessage, c *call) error {
	if c.cfg.Effort != "" && c.form < formPlain {
		set(body, "reasoning_effort", c.cfg.Effort)
	}
	switch c.form {
	case formStrict, formSchema:
		const head = `{"type":"json_schema","json_schema":{"name":"plan","strict":%t,"schema":`
		body["response_format"] = slices.Concat(fmt.Appendf(nil, head, c.form == formStrict), c.schema, []byte("}}"))
	case formObject:
		body["response_format"] = json.RawMessage(`{"type":"json_object"}`)
	}
	if c.tools {
		set(body, "tool_choice", "auto")
	}
	if c.stream != nil && c.preset.name != "mistral" && c.form < formPlain { // Mistral refuses unknown fields
		body["stream_options"] = json.RawMessage(`{"include_usage":true}`)
	}
	return nil
}

// requestForm is how much is asked of a server beyond plain chat. A server that
// refuses a request is asked again with the next one.
type requestForm int32

const (
	formStrict requestForm = iota // a schema that the provider guarantees
	formSchema                    // a schema
	formObject                    // any JSON object
	formWords                     // the instructions alone
	formPlain                     // nor anything else that is not in every server
)

// openAIText is a content that may be a string, null, or a list of parts.
type openAIText string

func (t *openAIText) UnmarshalJSON(data []byte) error {
	if data[0] == '"' && bytes.IndexByte(data, '\\') < 0 && utf8.Valid(data) { // nothing to decode
		*t = openAIText(data[1 : len(data)-1])
		return nil
	}
	var plain string
	if json.Unmarshal(data, &plain) == nil {
		*t = openAIText(plain)
		return nil
	}
	var parts []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	if json.Unmarshal(data, &parts) != nil {
		return nil // some other shape: as good as no text
	}
	var b strings.Builder
	for _, p := range parts {
		if p.Type == "text" || p.Type == "output_text" {
			b.WriteString(p.Text)
		}
	}
	*t = openAIText(b.String())
	return nil
}

// openAIMessage is a message, or a piece of one.
type openAIMessage struct {
	Content openAIText `json:"content"`
	Refusal string     `json:"refusal"`
	Calls   []struct {
		Index    *int   `json:"index"`
		ID       string `json:"id"`
		Function struct {
			Name      string          `json:"name"`
			Arguments json.RawMessage `json:"arguments"`
		} `json:"function"`
	} `json:"tool_calls"`
}

type openAIUsage struct {
	In      int `json:"prompt_tokens"`
	Out     int `json:"completion_tokens"`
	Details struct {
		Cached int `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
}

// openAIAnswer is a whole answer or one event of a stream: they differ in the key of the
// message.
type openAIAnswer struct {
	Choices []*struct {
		Index   int            `json:"index"`
		Message *openAIMessage `json:"message"`
		Delta   *openAIMessage `json:"delta"`
		Finish  string         `json:"finish_reason"`
	} `json:"choices"`
	Usage *openAIUsage    `json:"usage"`
	Error json.RawMessage `json:"error"`
}

// openAIStream puts an answer together from its pieces.
type openAIStream struct {
	text, refusal strings.Builder
	calls         []*openAICall
	stop          string
	usage         llm.Usage
	done          bool
}

type openAICall struct {
	index     int
	id, name  string
	arguments strings.Builder
}

func (openAI) events() streamReader { return new(openAIStream) }

// whole reads an answer in one piece, as a stream of a single event.
func (openAI) whole(data []byte) (reply, error) {
	var s openAIStream
	if !isObject(data) {
		return reply{}, errNoAnswer
	}
	if _, err := s.event("", data); err != nil && !errors.Is(err, errStop) {
		return reply{}, err
	}
	r, _ := s.reply()
	return r, nil
}

func (s *openAIStream) event(_ string, data []byte) (string, error) {
	if string(data) == doneMark {
		s.done = true
		return "", errStop
	}
	var a openAIAnswer
	if err := json.Unmarshal(data, &a); err != nil {
		return "", nil // servers send comments and pings of their own as data
	}
	if isPresent(a.Error) {
		return "", parseErrorValue(a.Error)
	}
	if a.Usage != nil {
		s.usage = llm.Usage{In: a.Usage.In, Out: a.Usage.Out, Cached: a.Usage.Details.Cached}
	}
	for _, choice := range a.Choices {
		if choice == nil || choice.Index != 0 {
			continue
		}
		if choice.Finish != "" {
			s.stop = choice.Finish
		}
		m := cmp.Or(choice.Delta, choice.Message)
		if m != nil {
			return s.add(m), nil
		}
	}
	return "", nil
}

func (s *openAIStream) add(m *openAIMessage) string {
	s.text.WriteString(string(m.Content))
	s.refusal.WriteString(m.Refusal)
	for _, c := range m.Calls {
		target := s.callFor(c.Index, c.ID, c.Function.Name)
		target.name, target.id = cmp.Or(target.name, c.Function.Name), cmp.Or(target.id, c.ID)
		if s.text.Len()+target.arguments.Len() <= maxAnswer {
			target.arguments.WriteString(argumentText(c.Function.Arguments))
		}
	}
	return string(m.Content)
}

// callFor finds the call that a piece belongs to, or begins one. The index
// decides, unless a new id shows that the server does not count; without an
// index the id does; a piece with neither goes to the last call.
func (s *openAIStream) callFor(index *int, id, name string) *openAICall {
	for _, c := range s.calls {
		switch {
		case index != nil && c.index == *index && (id == "" || c.id == "" || c.id == id):
			return c
		case index == nil && id != "" && c.id == id:
			return c
		}
	}
	last := len(s.calls) - 1
	if index == nil && id == "" && name == "" && last >= 0 {
		return s.calls[last]
	}
	c := &openAICall{index: len(s.calls)}
	if index != nil {
		c.index = *index
	}
	const most = 128 // calls of one answer
	if len(s.calls) < most {
		s.calls = append(s.calls, c)
	}
	return c
}

// argumentText unpacks arguments, which are a string of JSON, or JSON.
func argumentText(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	return string(bytes.TrimSpace(raw))
}

func (s *openAIStream) reply() (reply, bool) {
	r := reply{text: s.text.String(), stop: s.stop, usage: s.usage}
	for _, c := range s.calls {
		r.calls = append(r.calls, llm.ToolCall{ID: c.id, Name: c.name, Arguments: []byte(c.arguments.String())})
	}
	if r.text == "" && len(r.calls) == 0 && s.refusal.Len() > 0 {
		r.stop = stopFiltered
	}
	return r, s.done || s.stop != ""
}
