package telegram

import (
	"encoding/json"
	"slices"
	"strings"

	"synthbot/core"
	"synthbot/core/markdown"
)

// Rich messages are made of blocks: headings, lists, tables. This file reads those of
// others as text.

// maxRichDepth is how deep rich messages are read.
const maxRichDepth = 16

// richMessage is a rich message of an update. Its texts come in several shapes,
// and what has none of them is left out.
type richMessage struct {
	Blocks []richBlock `json:"blocks"`
}

type richBlock struct {
	Type       string      `json:"type"`
	Text       any         `json:"text"`
	Summary    any         `json:"summary"`
	Credit     any         `json:"credit"`
	Caption    any         `json:"caption"`
	Expression string      `json:"expression"`
	Blocks     []richBlock `json:"blocks"`
	Items      []struct {
		Label    string      `json:"label"`
		Blocks   []richBlock `json:"blocks"`
		Checkbox bool        `json:"has_checkbox"`
		Checked  bool        `json:"is_checked"`
	} `json:"items"`
	Cells [][]struct {
		Text any `json:"text"`
	} `json:"cells"`
}

// readRich is the text of a rich message, or "". The entities mark its quotes.
func readRich(raw json.RawMessage) (text string, quotes []entity) {
	var m richMessage
	if len(raw) == 0 || json.Unmarshal(raw, &m) != nil {
		return "", nil
	}
	for i := range m.Blocks {
		one := strings.Join(richLines(m.Blocks[i:i+1], 0), "\n")
		if one == "" {
			continue
		}
		if text != "" {
			text += "\n"
		}
		if m.Blocks[i].quotes(0) {
			at, length := markdown.UTF16(text), markdown.UTF16(one)
			quotes = append(quotes, entity{Type: "blockquote", Offset: at, Length: length})
		}
		text = cut(text+one, core.MaxText)
	}
	return text, quotes
}

// quotes reports whether a block, or one in it, quotes somebody.
func (b *richBlock) quotes(depth int) bool {
	if depth > maxRichDepth || strings.Contains(strings.ToLower(b.Type), "quot") {
		return true
	}
	quotes := func(blocks []richBlock) bool {
		return slices.ContainsFunc(blocks, func(inner richBlock) bool { return inner.quotes(depth + 1) })
	}
	for _, item := range b.Items {
		if quotes(item.Blocks) {
			return true
		}
	}
	return quotes(b.Blocks)
}

func richLines(blocks []richBlock, depth int) (lines []string) {
	if depth > maxRichDepth {
		return nil
	}
	add := func(s string) {
		s = strings.TrimSpace(s)
		if s != "" {
			lines = append(lines, s)
		}
	}
	for i := range blocks {
		b := &blocks[i]
		add(richText(b.Summary, 0))
		add(richText(b.Text, 0))
		add(b.Expression)
		for _, item := range b.Items {
			mark := strings.TrimSpace(item.Label)
			if item.Checkbox {
				mark = map[bool]string{false: "☐", true: "☑"}[item.Checked]
			}
			add(mark + " " + strings.Join(richLines(item.Blocks, depth+1), "\n"))
		}
		for _, row := range b.Cells {
			var cells []string
			for _, c := range row {
				cells = append(cells, strings.TrimSpace(richText(c.Text, 0)))
			}
			add(strings.Join(cells, " | "))
		}
		lines = append(lines, richLines(b.Blocks, depth+1)...)
		add(richText(b.Caption, 0))
		add(richText(b.Credit, 0))
		switch b.Type { // blocks without text
		case "photo", "video", "audio", "animation", "map":
			add("[" + b.Type + "]")
		case "voice_note":
			add("[voice]")
		}
	}
	return lines
}

// richText reads a text: a string, a list of texts, or an object that holds one. What has
// another shape is left out.
func richText(text any, depth int) string {
	if depth > 2*maxRichDepth {
		return ""
	}
	switch v := text.(type) {
	case string:
		return v
	case []any:
		parts := make([]string, len(v))
		for i, part := range v {
			parts[i] = richText(part, depth+1)
		}
		return strings.Join(parts, "")
	case map[string]any:
		alternative, _ := v["alternative_text"].(string)
		expression, _ := v["expression"].(string)
		address, _ := v["url"].(string)
		shown := richText(v["text"], depth+1) + alternative + expression
		if !shows(shown, address) {
			shown += " (" + oneAddress(address) + ")"
		}
		return shown
	}
	return ""
}
