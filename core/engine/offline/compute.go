package offline

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"synthbot/core/engine/offline/phrases"
	"synthbot/core/engine/offline/sums"
	"synthbot/core/txt"
)

// actionDice is the action that rolls dice, which may not exist.
const actionDice = "dice_roll"

// number reads an integer, in digits or in words.
func number(b *phrases.Book, word string) (int, bool) {
	n, err := strconv.Atoi(cmp.Or(b.Lists["numbers"][word], word))
	return n, err == nil
}

type chanceReplies struct{ *speaker }

func (s chanceReplies) isRoll(h hit) bool {
	_, ok := sums.Dice(h.rest(), sumsOf(s.book))
	return ok
}

func (s chanceReplies) roll(m understood) plan {
	r, _ := sums.Dice(m.rest(), sumsOf(s.book))
	switch {
	case !r.OK():
		return s.speak("", s.say("dicebad"))
	case s.has(actionDice):
		return act("action", newStep(actionDice, map[string]any{"dice": r.String()}))
	}
	total := r.Plus
	var each []string
	for range r.N {
		n := 1 + s.pick(r.Sides)
		each = append(each, strconv.Itoa(n))
		total += n
	}
	if len(each) == 1 && r.Plus == 0 {
		return s.speak("", s.say("dice", "result", each[0]))
	}
	sum := strings.Join(each, " + ")
	if r.Plus != 0 {
		sum += strings.NewReplacer("+", " + ", "-", " - ").Replace(fmt.Sprintf("%+d", r.Plus))
	}
	return s.speak("", s.say("dice", "result", fmt.Sprintf("%s = %d", sum, total)))
}

func (s chanceReplies) rolled(raw json.RawMessage) string {
	var r struct {
		Rolls []struct{ Faces []int }
		Total int
	}
	_ = json.Unmarshal(raw, &r)
	result := strconv.Itoa(r.Total)
	if len(r.Rolls) > 0 && len(r.Rolls[0].Faces) > 1 {
		result = strings.Trim(strings.ReplaceAll(fmt.Sprint(r.Rolls[0].Faces), " ", " + "), "[]")
		result += " = " + strconv.Itoa(r.Total)
	}
	return s.say("dice", "result", result)
}

func (s chanceReplies) coin(understood) string { return s.say([]string{"heads", "tails"}[s.pick(2)]) }

func (s chanceReplies) choose(m understood) string {
	if len(m.slots) < 2 {
		return s.say("choosewhat")
	}
	return s.say("choose", "result", clipForeign(m.slots[s.pick(len(m.slots))]))
}

func (s chanceReplies) areNumbers(h hit) bool {
	isNone := func(text string) bool { return sums.ReadWord(txt.Fold(text), sumsOf(s.book)) == nil }
	return !slices.ContainsFunc(h.slots, isNone)
}

func (s chanceReplies) number(m understood) string {
	from, to := 1, 100
	if len(m.slots) > 1 {
		from, _ = number(s.book, strings.ToLower(m.slots[0]))
		to, _ = number(s.book, strings.ToLower(m.slots[1]))
	}
	if to <= from || to-from > 1_000_000_000 {
		return s.say("numberbad")
	}
	return s.say("choose", "result", strconv.Itoa(from+s.pick(to-from+1)))
}

// sumsOf returns the words of a language for numbers, operators and units.
func sumsOf(b *phrases.Book) *sums.Words {
	return &sums.Words{Operators: b.Lists["operators"], Numbers: b.Lists["numbers"], Units: b.Lists["units"],
		Fillers: b.Lists["to"], Dice: b.Lists["sided"], Comma: b.Says["decimal"][0] == ","}
}

func (s *speaker) result(a sums.Answer) string {
	failed := map[error]string{
		sums.ErrZero: "sumzero", sums.ErrNegative: "sumnegative", sums.ErrCold: "sumcold", sums.ErrTooLarge: "sumlarge",
	}
	if a.Err != nil {
		return s.say(failed[a.Err])
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
	topic, sign := "sum", " = "
	if !exact {
		topic, sign = "sumabout", " ≈ "
	}
	if a.Unit != "" {
		return strings.Replace(a.From, ".", s.say("decimal"), 1) + sign + text + " " + a.Unit
	}
	return s.say(topic, "result", text)
}
