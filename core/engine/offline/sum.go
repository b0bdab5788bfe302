package offline

import (
	"errors"
	"math/big"
	"strings"

	"synthbot/core/engine/offline/sums"
)

// sums returns the words of this language for numbers, operators and units.
func (b *phrasebook) sums() *sums.Words {
	return &sums.Words{Operators: b.lists["operators"], Numbers: b.lists["numbers"], Units: b.lists["units"],
		Fillers: b.lists["to"], Dice: b.lists["sided"], Comma: b.says["decimal"][0] == ","}
}

// result words an answer.
func (s *speaker) result(a sums.Answer) string {
	switch {
	case errors.Is(a.Err, sums.ErrZero):
		return s.say("sumzero")
	case errors.Is(a.Err, sums.ErrNegative):
		return s.say("sumnegative")
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
	text, exact := s.decimal(a.Value, digits)
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
		return s.with("sumabout", "result", text)
	}
	return s.with("sum", "result", text)
}

// decimal writes a number with the language's mark; exact is false if it is rounded.
func (s *speaker) decimal(value *big.Rat, digits int) (text string, exact bool) {
	text = value.FloatString(digits)
	if strings.Contains(text, ".") {
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	if text == "-0" || text == "" {
		text = "0"
	}
	back, _ := new(big.Rat).SetString(text)
	return strings.Replace(text, ".", s.say("decimal"), 1), back.Cmp(value) == 0
}
