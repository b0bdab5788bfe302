package telegram

import (
	"strconv"
	"strings"

	"synthbot/core"
	"synthbot/core/markdown"
	"synthbot/interfaces/telegram/markup"
)

// buttons are what a message offers below it: the part of a payload that is the
// same in every interface.
type buttons struct {
	Buttons []button `json:"buttons"`
}

// button says its label when it is pressed, or opens an address.
type button struct {
	Label string `json:"label"`
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
		s = strings.Join(strings.Fields(markup.Visible(s)), " ")
		if markup.HasVisible(s) && markdown.UTF16(s) <= maxSuggestion && len(b.Buttons) < maxButtons {
			b.Buttons = append(b.Buttons, button{Label: s})
		}
	}
}

// pressers are the only users who may press the buttons of a message: those whom it
// answers there. None means everybody.
func (d *delivery) pressers(call core.Call, to target) (ids []int64) {
	for _, a := range call.Authors {
		id, err := strconv.ParseInt(a.ID, 10, 64)
		if err == nil && id > 0 && a.Rank < core.RankBot && d.same(call.Path, to) {
			ids = append(ids, id)
		}
	}
	return ids
}

// keyboard writes the buttons below a message; "" if there are none. A row has one of
// up to 3, three of up to 15, and five of more.
func (d *delivery) keyboard(call core.Call, to target, list buttons) (string, error) {
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
	var rows [][]keyboardButton
	width, pressers := 0, d.pressers(call, to)
	for i, b := range list.Buttons {
		made, ok, err := d.button(to.key.chat, i, b, pressers)
		if err != nil {
			return "", err
		}
		if !ok {
			continue
		}
		units := markdown.UTF16(made.Text)
		width += units
		if len(rows) == 0 || width > rowUnits || len(rows[len(rows)-1]) >= across {
			rows, width = append(rows, nil), units
		}
		rows[len(rows)-1] = append(rows[len(rows)-1], made)
	}
	if len(rows) == 0 {
		return "", nil
	}
	return keyboardRows{rows}.json(), nil
}

// button is the i-th button. ok is false if more people may press it than it can name.
func (d *delivery) button(chat int64, i int, b button, pressers []int64) (made keyboardButton, ok bool, err error) {
	label := strings.Join(strings.Fields(markup.Visible(b.Label)), " ")
	made.Text = label
	switch {
	case !markup.HasVisible(label) || markdown.UTF16(label) > 128:
		return made, false, core.Errorf(core.Invalid, "buttons[%d].label: say what the button does, in a few words", i)
	case b.URL != "" && !markup.Linkable(b.URL):
		return made, false, core.Errorf(core.Invalid, "buttons[%d].url: it must be a full https address", i)
	case b.URL != "":
		made.URL = &b.URL
		return made, true, nil
	}
	sealed, ok := d.keys.seal(chat, kindText, pressers, strconv.Itoa(i))
	made.CallbackData = &sealed
	return made, ok, nil
}
