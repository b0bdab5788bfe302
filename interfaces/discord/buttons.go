package discord

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"synthbot/core"
	"synthbot/core/markdown"
)

const (
	maxButtons    = 25
	rowButtons    = 5
	maxLabel      = 80 // UTF-16 units, as all of these
	maxSuggestion = 75
	maxCustom     = 100
	maxAddress    = 512
)

// A button's id begins with who may press it: user ids, or one of these.
const (
	anyone = "*"
	judged = "?" // the core decides; its own data follows
	opens  = "!" // the same, with what is written in the field that the button opens
)

// button is a button below a message: it says its label, or opens URL.
type button struct {
	Label string `json:"label"`
	URL   string `json:"url"`

	data string // of a choice of the core's
	mark string // before the data: judged or opens
}

// owner is who may press the buttons of a message: the users who caused it, or everyone
// if nobody did.
func owner(call core.Call) string {
	var ids []string
	for _, a := range call.Authors {
		if a.ID != "" && a.Rank < core.RankBot {
			ids = append(ids, a.ID)
		}
	}
	if len(ids) == 0 {
		return anyone
	}
	return strings.Join(ids, ",")
}

// buttons are those of the payload, and one for each suggestion that there is room for.
// A user who presses a suggestion says it.
func (s *say) buttons() []button {
	list := s.Buttons
	for _, text := range s.Suggest {
		text = strings.Join(strings.Fields(text), " ")
		known := slices.ContainsFunc(list, func(b button) bool { return b.Label == text })
		if text != "" && markdown.UTF16(text) <= maxSuggestion && len(list) < maxButtons && !known {
			list = append(slices.Clip(list), button{Label: text})
		}
	}
	return list
}

func components(list []button, whom string) ([]any, error) {
	if len(list) > maxButtons {
		return nil, core.Errorf(core.Invalid, "buttons: at most %d are allowed", maxButtons)
	}
	var all []any
	for i, b := range list {
		c, err := component(b, whom, i)
		if err != nil {
			return nil, core.Errorf(core.Invalid, "buttons[%d]: %v", i, err)
		}
		if c != nil {
			all = append(all, c)
		}
	}
	var rows []any
	for row := range slices.Chunk(all, rowButtons) {
		rows = append(rows, map[string]any{"type": 1, "components": row})
	}
	return rows, nil
}

// component is the i-th button. It is nil if more users may press it than a button's id
// can hold.
func component(b button, whom string, i int) (map[string]any, error) {
	label := line(b.Label, 4*maxLabel)
	if label == "" || markdown.UTF16(label) > maxLabel {
		return nil, fmt.Errorf("label must have 1 to %d characters", maxLabel)
	}
	if b.URL != "" {
		if !webAddress(b.URL) || markdown.UTF16(b.URL) > maxAddress {
			return nil, fmt.Errorf("url must begin with https:// and have at most %d characters", maxAddress)
		}
		return map[string]any{"type": 2, "style": 5, "label": label, "url": b.URL}, nil
	}
	id := whom + ":" + strconv.Itoa(i)
	if whom == judged {
		id = b.mark + ":" + b.data
	}
	if len(id) > maxCustom {
		return nil, nil
	}
	return map[string]any{"type": 2, "style": 2, "label": label, "custom_id": id}, nil
}
