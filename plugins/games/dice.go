package games

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"synthbot/core"
)

// Bounds of a roll.
const (
	maxNotation = 100 // bytes
	maxTerms    = 10
	maxDice     = 100 // of all terms
	maxSides    = 1000
	maxConstant = 1_000_000
)

type dicePayload struct {
	_ struct{} `title:"Roll dice"`

	Dice string `json:"dice" doc:"Dice notation: 2d6+3, d20, 4d6kh3 (keep the highest 3), 2d20kl1 (the lowest), d% (percent)." default:"1d6" min:"1" max:"100"`
	For  string `json:"for,omitempty" doc:"What the roll decides, in a few words." max:"200"`
}

var diceAction = core.Action{
	Name: "dice_roll", Similes: []string{"roll_dice", "throw_dice"},
	Brief: "Roll dice with true randomness, in notation like 2d6+3",
	Examples: core.Examples{
		Description: "Throws dice and gives each die and the total back. The numbers come from the program, not from" +
			" you.",
		Instructions: core.Instructions{
			WhenToUse: "When somebody wants dice, a coin (d2), or a random number, or a game calls for a roll.",
			CommonPitfalls: []string{
				"Never make a result up and never tell one before the output is there.",
				"At most 100 dice of at most 1000 sides; no spaces are needed.",
				"To pick one of several things, random_choice is the better one.",
			},
			Notes: []string{"Terms are joined by + and -. kh and kl keep the highest or lowest dice of a term."},
		},
		Similar: []string{"random_choice"},
		Examples: []core.Example{
			core.NewExample("An attack in a role-playing game", `{"dice":"1d20+5","for":"Ann's attack on the troll"}`),
			core.NewExample("An ability score: four dice, the best three count", `{"dice":"4d6kh3"}`),
		},
	},
	Effects: core.EffectNone, Permission: core.PermissionEveryone, Idempotent: true,
}

// dice is a notation that was read: terms to be added.
type dice struct {
	text  string
	terms []term
}

// term is n dice of so many sides, or, with no sides, the constant n.
type term struct {
	minus    bool
	n, sides int
	keep     int  // how many count; 0: all
	lowest   bool // the lowest ones count
}

// parseDice reads a notation; "" is one die. The error is for people.
func parseDice(text string) (dice, error) {
	if len(text) > maxNotation {
		return dice{}, core.Errorf(core.Invalid, "That is too long for dice: at most %d characters.", maxNotation)
	}
	text = strings.ToLower(strings.Join(strings.Fields(text), ""))
	if text == "" {
		text = "1d6"
	}
	d := dice{text: text}
	total := 0
	signed := strings.TrimPrefix(strings.ReplaceAll(text, "-", "+-"), "+")
	for one := range strings.SplitSeq(signed, "+") {
		t, err := parseTerm(one)
		if err != nil {
			return dice{}, err
		}
		if t.sides > 0 {
			total += t.n
		}
		d.terms = append(d.terms, t)
		if len(d.terms) > maxTerms || total > maxDice {
			return dice{}, core.Errorf(core.Invalid, "That is too much: at most %d dice in %d terms.", maxDice,
				maxTerms)
		}
	}
	return d, nil
}

// parseTerm reads "-2d6kh1" and the like.
func parseTerm(text string) (t term, err error) {
	wrong := core.Errorf(core.Invalid, "I can't read %q as dice. Write them like 2d6+3, d20, 4d6kh3 or d%%.", text)
	rest, minus := strings.CutPrefix(text, "-")
	t.minus = minus
	count, rest, isDice := strings.Cut(rest, "d")
	if !isDice {
		if t.n, err = strconv.Atoi(count); err != nil || !digits(count) || t.n > maxConstant {
			return term{}, wrong
		}
		return t, nil
	}
	sides, keep, keeps := strings.Cut(rest, "k")
	t.n = 1
	if count != "" {
		if t.n, err = strconv.Atoi(count); err != nil || !digits(count) || t.n < 1 {
			return term{}, wrong
		}
	}
	if sides == "%" {
		sides = "100"
	}
	if t.sides, err = strconv.Atoi(sides); err != nil || !digits(sides) || t.sides < 1 {
		return term{}, wrong
	}
	if t.sides > maxSides {
		return term{}, core.Errorf(core.Invalid, "A die has at most %d sides.", maxSides)
	}
	if keeps {
		t.lowest = strings.HasPrefix(keep, "l")
		if !t.lowest && !strings.HasPrefix(keep, "h") {
			return term{}, wrong
		}
		if t.keep, err = strconv.Atoi(keep[1:]); err != nil || !digits(keep[1:]) || t.keep < 1 || t.keep > t.n {
			return term{}, wrong
		}
	}
	return t, nil
}

// digits reports whether the text is a number without a sign.
func digits(text string) bool {
	return len(text) <= 7 && strings.Trim(text, "0123456789") == ""
}

// rolled is how dice fell.
type rolled struct {
	Dice  string `json:"dice"`
	Rolls []roll `json:"rolls"`
	Total int    `json:"total"`
	For   string `json:"for,omitempty"`
}

// roll is how the dice of one term fell; Kept is there where not all count.
type roll struct {
	Term  string `json:"term"`
	Faces []int  `json:"faces,omitempty"`
	Kept  []int  `json:"kept,omitempty"`
	Sum   int    `json:"sum"`
}

// roll throws the dice; pick gives a number below n.
func (d dice) roll(pick func(n int) int) rolled {
	r := rolled{Dice: d.text}
	for _, t := range d.terms {
		one := t.roll(pick)
		r.Rolls = append(r.Rolls, one)
		r.Total += one.Sum
	}
	return r
}

func (t term) roll(pick func(n int) int) roll {
	r := roll{Term: t.String(), Sum: t.n}
	if t.sides > 0 {
		for range t.n {
			r.Faces = append(r.Faces, 1+pick(t.sides))
		}
		counted := r.Faces
		if t.keep > 0 {
			sorted := slices.Sorted(slices.Values(r.Faces))
			if !t.lowest {
				slices.Reverse(sorted)
			}
			r.Kept = sorted[:t.keep]
			counted = r.Kept
		}
		r.Sum = 0
		for _, face := range counted {
			r.Sum += face
		}
	}
	if t.minus {
		r.Sum = -r.Sum
	}
	return r
}

func (t term) String() string {
	s := strconv.Itoa(t.n)
	if t.sides > 0 {
		s += "d" + strconv.Itoa(t.sides)
	}
	if t.keep > 0 {
		s += "k" + map[bool]string{true: "l", false: "h"}[t.lowest] + strconv.Itoa(t.keep)
	}
	if t.minus {
		return "-" + s
	}
	return s
}

// String tells the roll in a line: "2d6+3: [4, 2] + 3 = 9".
func (r rolled) String() string {
	var b strings.Builder
	b.WriteString(r.Dice + ": ")
	for i, one := range r.Rolls {
		sign := map[bool]string{true: "", false: " + "}[i == 0]
		if strings.HasPrefix(one.Term, "-") {
			sign = map[bool]string{true: "-", false: " - "}[i == 0]
		}
		b.WriteString(sign + one.shown())
	}
	return b.String() + " = " + strconv.Itoa(r.Total)
}

// shown are the faces, with what counts of them where that is not all.
func (r roll) shown() string {
	if r.Faces == nil {
		return strings.TrimPrefix(r.Term, "-")
	}
	list := strings.ReplaceAll(fmt.Sprint(r.Faces), " ", ", ")
	if r.Kept != nil {
		list += "→" + strings.ReplaceAll(fmt.Sprint(r.Kept), " ", ", ")
	}
	return list
}

func (p *Plugin) rollDice(_ context.Context, _ core.Call, payload dicePayload) (core.Result, error) {
	d, err := parseDice(payload.Dice)
	if err != nil {
		return core.Result{}, err
	}
	r := d.roll(p.pick)
	r.For = payload.For
	return core.Output(r), nil
}
