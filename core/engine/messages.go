package engine

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/tmc/langchaingo/llms"

	"synthbot/core/llm"
)

// messagesOf converts a request to langchaingo's messages, without files that the model does not accept.
func messagesOf(r llm.Request, cfg Config, names map[string]string) []llms.MessageContent {
	var made []llms.MessageContent
	add := func(role llms.ChatMessageType, parts []llms.ContentPart) {
		if len(parts) > 0 {
			made = append(made, llms.MessageContent{Role: role, Parts: parts})
		}
	}
	add(llms.ChatMessageTypeSystem, textParts(r.System...))
	for _, u := range r.Messages {
		parts := textParts(u.Text)
		switch {
		case u.CallID != "":
			result := llms.ToolCallResponse{ToolCallID: u.CallID, Content: u.Text}
			add(llms.ChatMessageTypeTool, []llms.ContentPart{result})
		case u.Role == llm.RoleModel:
			for _, call := range u.Calls {
				function := &llms.FunctionCall{Name: apiName(names, call.Name), Arguments: string(call.Arguments)}
				parts = append(parts, llms.ToolCall{ID: call.ID, Type: "function", FunctionCall: function})
			}
			add(llms.ChatMessageTypeAI, parts)
		default:
			var files []llm.File
			if cfg.Hearing {
				files = append(files, u.Sounds...)
			}
			if cfg.Vision {
				files = append(files, u.Pictures...)
			}
			for _, f := range files {
				parts = append(parts, llms.BinaryPart(f.MIME, f.Data))
			}
			add(llms.ChatMessageTypeHuman, parts)
		}
	}
	return made
}

// textParts returns the texts that are not blank.
func textParts(texts ...string) (parts []llms.ContentPart) {
	for _, text := range texts {
		if !isBlank(text) {
			parts = append(parts, llms.TextPart(text))
		}
	}
	return parts
}

func isBlank(text string) bool { return strings.TrimSpace(text) == "" }

func toolsOf(r llm.Request, names map[string]string) (tools []llms.Tool) {
	for _, t := range r.Tools {
		schema := t.Schema
		if !isObject(schema) {
			schema = json.RawMessage(`{"type":"object","properties":{}}`)
		}
		function := &llms.FunctionDefinition{Name: apiName(names, t.Name), Description: t.Brief, Parameters: schema}
		tools = append(tools, llms.Tool{Type: "function", Function: function})
	}
	return tools
}

// isObject reports whether data is one whole JSON object.
func isObject(data []byte) bool {
	data = bytes.TrimSpace(data)
	return len(data) > 1 && data[0] == '{' && json.Valid(data)
}

// toolNames maps names with dots, which the APIs do not accept, to unique names without.
func toolNames(from []llm.Tool) map[string]string {
	taken := make(map[string]bool, len(from))
	for _, t := range from {
		taken[t.Name] = true
	}
	names := make(map[string]string)
	for _, t := range from {
		if !strings.Contains(t.Name, ".") {
			continue
		}
		plain := strings.ReplaceAll(t.Name, ".", "_")
		for taken[plain] {
			plain += "_"
		}
		taken[plain] = true
		names[t.Name] = plain
	}
	return names
}

func apiName(names map[string]string, name string) string {
	if plain, ok := names[name]; ok {
		return plain
	}
	return strings.ReplaceAll(name, ".", "_")
}
