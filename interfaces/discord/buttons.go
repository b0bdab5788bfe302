package discord

import (
	"fmt"
	"slices"
	"strings"

	"synthbot/core"
	"synthbot/core/markdown"
)

// Bounds of buttons.
const (
	maxButtons    = 25
	rowButtons    = 5
	maxLabel      = 80 // UTF-16 units, as all of these
	maxSuggestion = 75
	maxCustom     = 100
	maxAddress    = 512
)

// Who may press a button stands before its data: a person's id, or one of these.
const (
	anyone = "*"
	judged = "?" // the core decides itself
)

// button is a button below a message: it says Data, or opens URL. Without Data
// it says its label.
type button struct {
	Label string `json:"label"`
	Data  string `json:"data"`
	URL   string `json:"url"`
}

// owner is who may press the buttons of a message: who caused it, or everyone
// where that was nobody.
func owner(call core.Call) string {
	if call.Author.ID == "" || call.Author.Rank == core.Bot {
		return anyone
	}
	return call.Author.ID
}

// buttons are those that were asked for, and behind them one for each suggestion
// there is room for; who presses that one says it.
func (s *say) buttons() []button {
	list := s.Buttons
	for _, text := range s.Suggest {
		text = strings.Join(strings.Fields(text), " ")
		same := func(b button) bool { return b.Data == text }
		if text != "" && markdown.UTF16(text) <= maxSuggestion && len(list) < maxButtons && !slices.ContainsFunc(list, same) {
			list = append(slices.Clip(list), button{Label: text, Data: text})
		}
	}
	return list
}

// components are rows of buttons.
func components(list []button, whom string) ([]any, error) {
	if len(list) > maxButtons {
		return nil, core.Errorf(core.Invalid, "buttons: at most %d are allowed", maxButtons)
	}
	var all []any
	seen := make(map[string]bool)
	for i, b := range list {
		c, id, err := component(b, whom)
		if err == nil && seen[id] {
			err = fmt.Errorf("its data is another one's as well")
		}
		if err != nil {
			return nil, core.Errorf(core.Invalid, "buttons[%d]: %v", i, err)
		}
		seen[id] = true
		all = append(all, c)
	}
	var rows []any
	for row := range slices.Chunk(all, rowButtons) {
		rows = append(rows, map[string]any{"type": 1, "components": row})
	}
	return rows, nil
}

func component(b button, whom string) (c map[string]any, id string, err error) {
	label := line(b.Label, 4*maxLabel)
	if label == "" || markdown.UTF16(label) > maxLabel {
		return nil, "", fmt.Errorf("label must have 1 to %d characters", maxLabel)
	}
	if b.URL != "" {
		if !webAddress(b.URL) || markdown.UTF16(b.URL) > maxAddress {
			return nil, "", fmt.Errorf("url must begin with https:// and have at most %d characters", maxAddress)
		}
		return map[string]any{"type": 2, "style": 5, "label": label, "url": b.URL}, b.URL, nil
	}
	data := b.Data
	if data == "" {
		data = label
	}
	id = whom + ":" + data
	if markdown.UTF16(id) > maxCustom {
		return nil, "", fmt.Errorf("data must have at most %d characters", maxCustom-len(whom)-1)
	}
	return map[string]any{"type": 2, "style": 2, "label": label, "custom_id": id}, id, nil
}
