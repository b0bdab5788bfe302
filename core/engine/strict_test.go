package engine

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
)

var toolName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

// strictOpenAI returns why the OpenAI API would reject a body, or "".
func strictOpenAI(b map[string]any) string {
	if b["model"] == "" || b["model"] == nil {
		return "model is missing"
	}
	if _, both := b["max_tokens"]; both && b["max_completion_tokens"] != nil {
		return "max_tokens and max_completion_tokens"
	}
	if strings.HasPrefix(fmt.Sprint(b["model"]), "o4") && b["temperature"] != nil {
		return "temperature is not supported with this model"
	}
	if _, stray := b["tool_choice"]; stray && b["tools"] == nil {
		return "tool_choice without tools"
	}
	if why := strictTools(b["tools"]); why != "" {
		return why
	}
	open := map[string]bool{}
	messages, _ := b["messages"].([]any)
	for i, m := range messages {
		if why := strictOpenAIMessage(i, m.(map[string]any), open); why != "" {
			return why
		}
	}
	if len(open) > 0 {
		return fmt.Sprintf("tool calls without a response: %v", open)
	}
	return ""
}

func strictTools(tools any) string {
	list, _ := tools.([]any)
	seen := map[string]bool{}
	for _, t := range list {
		f, _ := t.(map[string]any)["function"].(map[string]any)
		name := fmt.Sprint(f["name"])
		if !toolName.MatchString(name) || seen[name] {
			return "bad tool name " + name
		}
		seen[name] = true
		if p, ok := f["parameters"].(map[string]any); !ok || p["type"] != "object" {
			return "bad parameters of " + name
		}
	}
	return ""
}

func strictOpenAIMessage(i int, m map[string]any, open map[string]bool) string {
	role := m["role"]
	if id, ok := m["tool_call_id"].(string); ok || role == "tool" {
		if !open[id] {
			return "tool message without its call"
		}
		delete(open, id)
		return ""
	}
	if len(open) > 0 {
		return "tool calls must be followed by their responses"
	}
	if role == "system" && i > 0 {
		return "system message must be the first"
	}
	calls, _ := m["tool_calls"].([]any)
	for _, c := range calls {
		call := c.(map[string]any)
		f := call["function"].(map[string]any)
		if !toolName.MatchString(fmt.Sprint(f["name"])) || call["type"] != "function" {
			return "bad call"
		}
		if arguments, ok := f["arguments"].(string); !ok || !json.Valid([]byte(arguments)) {
			return "the arguments of a call are no JSON"
		}
		open[call["id"].(string)] = true
	}
	if text, ok := m["content"].(string); ok {
		if text == "" && len(calls) == 0 {
			return "empty message"
		}
		return ""
	}
	parts, _ := m["content"].([]any)
	for _, p := range parts {
		switch part := p.(map[string]any); part["type"] {
		case "text":
		case "image_url":
			if url := part["image_url"].(map[string]any)["url"].(string); !strings.HasPrefix(url, "data:image/") {
				return "bad image"
			}
		case "input_audio":
			sound := part["input_audio"].(map[string]any)
			if data, err := base64.StdEncoding.DecodeString(sound["data"].(string)); err != nil || len(data) == 0 || sound["format"] == "" || len(sound) != 2 {
				return "bad sound"
			}
		default:
			return fmt.Sprintf("unknown part %v", part["type"])
		}
	}
	if len(parts) == 0 {
		return "message without content"
	}
	return ""
}

// strictAnthropic returns why the messages API would reject a body, or "".
func strictAnthropic(b map[string]any) string {
	if n, ok := b["max_tokens"].(float64); !ok || n < 1 {
		return "max_tokens: Field required"
	}
	marks := countMarks(b["system"]) + countMarks(b["tools"])
	if s, ok := b["system"].([]any); ok {
		for _, part := range s {
			if strings.TrimSpace(part.(map[string]any)["text"].(string)) == "" {
				return "system: text content blocks must be non-empty"
			}
		}
	}
	messages, _ := b["messages"].([]any)
	before := ""
	open := map[string]bool{}
	for i, m := range messages {
		message := m.(map[string]any)
		role := message["role"].(string)
		if i == 0 && role != "user" || role == before {
			return "roles must alternate, beginning with the user"
		}
		before = role
		why := strictBlocks(role, message["content"].([]any), open)
		if why != "" {
			return why
		}
		marks += countMarks(message["content"])
	}
	if len(open) > 0 {
		return "tool_use ids without tool_result"
	}
	if marks > 4 {
		return "A maximum of 4 blocks with cache_control may be provided"
	}
	return ""
}

func strictBlocks(role string, blocks []any, open map[string]bool) string {
	if len(blocks) == 0 {
		return "empty content"
	}
	for _, raw := range blocks {
		b := raw.(map[string]any)
		switch b["type"] {
		case "text":
			if strings.TrimSpace(b["text"].(string)) == "" {
				return "text content blocks must be non-empty"
			}
		case "tool_use":
			if _, ok := b["input"].(map[string]any); !ok || role != "assistant" || !toolName.MatchString(b["name"].(string)) {
				return "bad tool_use"
			}
			open[b["id"].(string)] = true
		case "tool_result":
			if id := b["tool_use_id"].(string); role != "user" || !open[id] {
				return "unexpected tool_use_id " + id
			}
			delete(open, b["tool_use_id"].(string))
		case "image":
			if b["source"].(map[string]any)["type"] != "base64" {
				return "bad image"
			}
		default:
			return fmt.Sprintf("unknown block %v", b["type"])
		}
	}
	if role == "user" && len(open) > 0 {
		return "tool_use ids without tool_result"
	}
	return ""
}

func countMarks(v any) int {
	n := 0
	list, _ := v.([]any)
	for _, item := range list {
		if b, ok := item.(map[string]any); ok && b["cache_control"] != nil {
			n++
		}
	}
	return n
}
