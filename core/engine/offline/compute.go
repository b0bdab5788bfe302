package offline

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"strconv"
	"strings"

	"synthbot/core/engine/offline/phrases"
	"synthbot/core/engine/offline/sums"
)

// actionDice is the action that rolls dice, which may not exist.
const actionDice = "dice_roll"

// number reads an integer, in digits or in words.
func number(b *phrases.Book, word string) (int, bool) {
	n, err := strconv.Atoi(cmp.Or(b.Lists["numbers"][word], word))
	return n, err == nil
}

func (s *speaker) dice(text string) plan {
	r, _ := sums.Dice(text, sumsOf(s.book))
	switch {
	case !r.OK():
		return s.speak("", s.say("dicebad"))
	case s.has(actionDice):
		return plan{Intent: "action", Actions: []step{newStep(actionDice, map[string]any{"dice": r.String()})}}
	}
	total := r.Plus
	var each []string
	for range r.N {
		n := 1 + s.pick(r.Sides)
		each = append(each, strconv.Itoa(n))
		total += n
	}
	if len(each) == 1 && r.Plus == 0 {
		return s.speak("", s.sayWith("dice", "result", each[0]))
	}
	sum := strings.Join(each, " + ")
	if r.Plus != 0 {
		sum += strings.NewReplacer("+", " + ", "-", " - ").Replace(fmt.Sprintf("%+d", r.Plus))
	}
	return s.speak("", s.sayWith("dice", "result", fmt.Sprintf("%s = %d", sum, total)))
}

func (s *speaker) sayRoll(raw json.RawMessage) string {
	var r struct {
		Rolls []struct {
			Faces []int `json:"faces"`
		} `json:"rolls"`
		Total int `json:"total"`
	}
	_ = json.Unmarshal(raw, &r)
	result := strconv.Itoa(r.Total)
	if len(r.Rolls) > 0 && len(r.Rolls[0].Faces) > 1 {
		result = strings.Trim(strings.ReplaceAll(fmt.Sprint(r.Rolls[0].Faces), " ", " + "), "[]")
		result += " = " + strconv.Itoa(r.Total)
	}
	return s.sayWith("dice", "result", result)
}

// chance flips a coin, or picks a number or one of several things.
func (s *speaker) chance(m understood) string {
	switch m.topic {
	case "coin":
		return s.say([]string{"heads", "tails"}[s.pick(2)])
	case "choose":
		if len(m.slots) > 1 {
			return s.sayWith("choose", "result", clipForeign(m.slots[s.pick(len(m.slots))]))
		}
		return s.say("choosewhat")
	}
	from, to := 1, 100
	if len(m.slots) > 1 {
		from, _ = number(s.book, strings.ToLower(m.slots[0]))
		to, _ = number(s.book, strings.ToLower(m.slots[1]))
	}
	if to <= from || to-from > 1_000_000_000 {
		return s.say("numberbad")
	}
	return s.sayWith("choose", "result", strconv.Itoa(from+s.pick(to-from+1)))
}

// sumsOf returns the words of a language for numbers, operators and units.
func sumsOf(b *phrases.Book) *sums.Words {
	return &sums.Words{Operators: b.Lists["operators"], Numbers: b.Lists["numbers"], Units: b.Lists["units"],
		Fillers: b.Lists["to"], Dice: b.Lists["sided"], Comma: b.Says["decimal"][0] == ","}
}

func (s *speaker) result(a sums.Answer) string {
	switch {
	case errors.Is(a.Err, sums.ErrZero):
		return s.say("sumzero")
	case errors.Is(a.Err, sums.ErrNegative):
		return s.say("sumnegative")
	case errors.Is(a.Err, sums.ErrCold):
		return s.say("sumcold")
	case a.Err != nil:
		return s.say("sumlarge")
	}
	digits := 10
	if a.Unit != "" {
		digits = 4
		if new(big.Rat).Abs(a.Value).Cmp(big.NewRat(1, 1)) >= 0 {
			digits = 2
		}
	}
	text, exact := sums.Decimal(a.Value, digits, s.say("decimal"))
	if len(text) > 40 {
		return s.say("sumlarge")
	}
	sign := "="
	if !exact {
		sign = "≈"
	}
	if a.Unit != "" {
		return strings.Replace(a.From, ".", s.say("decimal"), 1) + " " + sign + " " + text + " " + a.Unit
	}
	if !exact {
		return s.sayWith("sumabout", "result", text)
	}
	return s.sayWith("sum", "result", text)
}
