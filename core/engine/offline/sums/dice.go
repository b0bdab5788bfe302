package sums

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"synthbot/core/txt"
)

// Roll is a roll of dice, such as "2d6+3".
type Roll struct{ N, Sides, Plus int }

// OK reports whether the numbers of dice and sides are within the limits.
func (r Roll) OK() bool { return r.N >= 1 && r.N <= 20 && r.Sides >= 2 && r.Sides <= 1000 }

// String returns the roll in the notation of players.
func (r Roll) String() string {
	text := fmt.Sprintf("%dd%d", r.N, r.Sides)
	if r.Plus != 0 {
		text += fmt.Sprintf("%+d", r.Plus)
	}
	return text
}

// notation is the notation of players, with the letter for dice of any language.
var notation = txt.Pattern(`^(\d{0,3})\s?[dw](\d{1,5})(?:\s?([+-])\s?(\d{1,5}))?$`)

// Dice reads "two", "2d6+3", "three 20 sided"; "" is one die.
func Dice(text string, w *Words) (Roll, bool) {
	r := Roll{1, 6, 0}
	text = strings.TrimSpace(strings.ToLower(text))
	m := notation().FindStringSubmatch(text)
	if m != nil {
		if m[1] != "" {
			r.N, _ = strconv.Atoi(m[1])
		}
		r.Sides, _ = strconv.Atoi(m[2])
		r.Plus, _ = strconv.Atoi(m[3] + m[4])
		return r, true
	}
	words := strings.Fields(txt.Fold(text))
	var numbers []int
	for _, each := range words {
		n, err := strconv.Atoi(cmp.Or(w.Numbers[each], each))
		_, isFiller := w.Dice[each]
		if err == nil {
			numbers = append(numbers, n)
		} else if !isFiller {
			return r, false
		}
	}
	switch {
	case len(numbers) == 2:
		r.N, r.Sides = numbers[0], numbers[1]
	case len(numbers) == 1 && len(words) > 1: // "20 sided"
		r.Sides = numbers[0]
	case len(numbers) == 1:
		r.N = numbers[0]
	}
	return r, len(numbers) <= 2
}
