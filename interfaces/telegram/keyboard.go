package telegram

import (
	"encoding/json"
	"strconv"
	"strings"

	tgbotapi "github.com/go-telegram-bot-api/telegram-bot-api/v5"

	"synthbot/core"
	"synthbot/core/markdown"
)

// buttons are what a message offers below it: the part of a payload that is the
// same in every interface.
type buttons struct {
	Buttons []button `json:"buttons"`
}

// button says data when it is pressed, or its label where there is none; or it
// opens an address.
type button struct {
	Label string `json:"label"`
	Data  string `json:"data"`
	URL   string `json:"url"`
}

const (
	maxButtons = 25
	rowUnits   = 36 // labels of one row, together: more would not be seen

	// maxSuggestion is the longest suggestion that fits on a button, in UTF-16
	// units.
	maxSuggestion = 64
)

// suggest adds a button for each suggestion there is room for; who presses it
// says it.
func (b *buttons) suggest(texts []string) {
	for _, s := range texts {
		s = strings.Join(strings.Fields(visible(s)), " ")
		if speaks(s) && markdown.UTF16(s) <= maxSuggestion && len(b.Buttons) < maxButtons {
			b.Buttons = append(b.Buttons, button{Label: s})
		}
	}
}

// presser is the only person who may press the buttons of a message: who asked
// for it there. 0: anybody may.
func (d *Driver) presser(call core.Call, to target) int64 {
	who, err := strconv.ParseInt(call.Author.ID, 10, 64)
	if err != nil || who <= 0 || call.Author.Rank == core.Bot || !d.same(call.Path, to) {
		return 0
	}
	return who
}

// keyboard writes the buttons below a message; "" for none. Up to three stand
// one a row, more of them three a row, and many of them five.
func (d *Driver) keyboard(call core.Call, to target, list buttons) (string, error) {
	n := len(list.Buttons)
	if n == 0 {
		return "", nil
	}
	if n > maxButtons {
		return "", core.Errorf(core.Invalid, "buttons: at most %d are possible", maxButtons)
	}
	across := 1
	switch {
	case n > 15:
		across = 5
	case n > 3:
		across = 3
	}
	var rows [][]tgbotapi.InlineKeyboardButton
	width, presser := 0, d.presser(call, to)
	for i, b := range list.Buttons {
		made, err := d.button(to.spot.chat, i, b, presser)
		if err != nil {
			return "", err
		}
		units := markdown.UTF16(made.Text)
		if width += units; len(rows) == 0 || width > rowUnits || len(rows[len(rows)-1]) >= across {
			rows, width = append(rows, nil), units
		}
		rows[len(rows)-1] = append(rows[len(rows)-1], made)
	}
	data, err := json.Marshal(tgbotapi.NewInlineKeyboardMarkup(rows...))
	return string(data), err
}

func (d *Driver) button(chat int64, i int, b button, presser int64) (tgbotapi.InlineKeyboardButton, error) {
	label := strings.Join(strings.Fields(visible(b.Label)), " ")
	made := tgbotapi.InlineKeyboardButton{Text: label}
	switch {
	case !speaks(label) || markdown.UTF16(label) > 128:
		return made, core.Errorf(core.Invalid, "buttons[%d].label: say what the button does, in a few words", i)
	case b.URL != "":
		if !linkable(b.URL) {
			return made, core.Errorf(core.Invalid, "buttons[%d].url: it must be a full https address", i)
		}
		made.URL = &b.URL
		return made, nil
	}
	kind, data := byte(kindData), b.Data
	if data == "" {
		kind, data = kindText, strconv.Itoa(i)
	}
	sealed, ok := d.keys.seal(chat, kind, presser, data)
	if !ok {
		return made, core.Errorf(core.Invalid, "buttons[%d].data: at most 40 bytes are possible", i)
	}
	made.CallbackData = &sealed
	return made, nil
}
