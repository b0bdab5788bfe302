package games

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"synthbot/core"
	"synthbot/core/action"
	"synthbot/core/command"
	"synthbot/core/txt"
)

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
	Examples: action.Guide(
		"Rolls dice and returns each die and the total. The numbers come from the program, not from you.",
		"When somebody wants dice, a coin (d2) or a random number, or a game needs a roll.",
		[]string{
			"Never make up a result, and never tell one before you see the output.",
			"At most 100 dice of at most 1000 sides; no spaces are needed.",
			"To pick one of several things, use random_choice.",
		},
		core.NewExample("An attack in a role-playing game", `{"dice":"1d20+5","for":"Ann's attack on the troll"}`),
		core.NewExample("An ability score: four dice, the best three count", `{"dice":"4d6kh3"}`),
	).Note("Terms are joined by + and -. kh and kl keep the highest or lowest dice of a term.").
		SeeAlso("random_choice"),
	Effects: core.EffectNone, Permission: core.PermissionEveryone, Idempotent: true,
}

// dice is a parsed notation: terms that are added.
type dice struct {
	text  string
	terms []term
}

// term is n dice with a number of sides or, if sides is 0, the constant n.
type term struct {
	minus    bool
	n, sides int
	keep     int  // how many count; 0: all
	lowest   bool // the lowest ones count
}

// parseDice parses a notation; "" is one die. The error is for users.
func parseDice(text string) (dice, error) {
	if len(text) > maxNotation {
		return dice{}, core.Errorf(core.Invalid, "That is too long for dice: at most %d characters.", maxNotation)
	}
	text = cmp.Or(strings.ToLower(strings.Join(strings.Fields(text), "")), "1d6")
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

// termPattern is a term like "-2d6kh1": sign, count, sides, which dice to keep, and how many.
var termPattern = txt.Pattern(`^(-?)(\d{0,7})(?:d(\d{1,7}|%)(?:k([hl])(\d{1,7}))?)?$`)

func parseTerm(text string) (term, error) {
	wrong := core.Errorf(core.Invalid, "I can't read %q as dice. Write them like 2d6+3, d20, 4d6kh3 or d%%.", text)
	found := termPattern().FindStringSubmatch(text)
	if found == nil {
		return term{}, wrong
	}
	sign, count, sides, which, keep := found[1], found[2], found[3], found[4], found[5]
	number := func(text string) int {
		n, _ := strconv.Atoi(text) // 0 if there is none
		return n
	}
	t := term{
		minus: sign == "-", n: number(cmp.Or(count, "1")), sides: number(strings.ReplaceAll(sides, "%", "100")),
		keep: number(keep), lowest: which == "l",
	}
	if sides == "" {
		if count == "" || t.n > maxConstant {
			return term{}, wrong
		}
		return t, nil
	}
	switch {
	case t.n < 1, t.sides < 1, which != "" && t.keep < 1, t.keep > t.n:
		return term{}, wrong
	case t.sides > maxSides:
		return term{}, core.Errorf(core.Invalid, "A die has at most %d sides.", maxSides)
	}
	return t, nil
}

// rolled is the result of all terms.
type rolled struct {
	Dice  string `json:"dice"`
	Rolls []roll `json:"rolls"`
	Total int    `json:"total"`
	For   string `json:"for,omitempty"`
}

// roll is the result of one term. Kept is nil if all dice count.
type roll struct {
	Term  string `json:"term"`
	Faces []int  `json:"faces,omitempty"`
	Kept  []int  `json:"kept,omitempty"`
	Sum   int    `json:"sum"`
}

// roll rolls the dice. pick returns a random number from 0 to n-1.
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
		r.Sum = 0
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

// String returns the result on a line: "2d6+3: [4, 2] + 3 = 9". If not all dice of a term count, those
// that do follow an arrow.
func (r rolled) String() string {
	var b strings.Builder
	b.WriteString(r.Dice + ": ")
	list := func(faces []int) string { return strings.ReplaceAll(fmt.Sprint(faces), " ", ", ") }
	for i, one := range r.Rolls {
		shown, minus := strings.CutPrefix(one.Term, "-")
		switch {
		case i == 0 && minus:
			b.WriteString("-")
		case minus:
			b.WriteString(" - ")
		case i > 0:
			b.WriteString(" + ")
		}
		if one.Faces != nil {
			shown = list(one.Faces)
		}
		if one.Kept != nil {
			shown += "→" + list(one.Kept)
		}
		b.WriteString(shown)
	}
	return b.String() + " = " + strconv.Itoa(r.Total)
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

func (p *Plugin) rollCommand(_ context.Context, c command.Call) (string, error) {
	d, err := parseDice(c.Args["dice"])
	return "🎲 " + d.roll(p.pick).String(), err
}

const maxThing = 200 // bytes

type choicePayload struct {
	_ struct{} `title:"Choose at random"`

	Options []string `json:"options" doc:"The things to choose from; one that is listed twice is twice as likely." min:"1" max:"100"`
	Count   int      `json:"count" doc:"How many to choose, in random order; all of them: a shuffle." default:"1" min:"1" max:"100"`
}

var choiceAction = core.Action{
	Name: "random_choice", Similes: []string{"choose_random", "pick_random", "flip_coin", "shuffle"},
	Brief: "Choose one or several of the given things at random",
	Examples: action.Guide(
		"Picks at random, and returns what it picked, in that order.",
		"When people leave something to chance: a winner, who begins, heads or tails, an order.",
		[]string{
			"Never choose yourself when people want chance: you have favourites.",
			"Give the things themselves, not a text that lists them.",
		},
		core.NewExample("Heads or tails", `{"options":["heads","tails"]}`),
		core.NewExample("An order of play", `{"options":["Ann","Ben","Jay"],"count":3}`),
	).Note("To let a group decide instead, use poll_create.").SeeAlso("dice_roll", "poll_create"),
	Effects: core.EffectNone, Permission: core.PermissionEveryone, Idempotent: true,
}

func (p *Plugin) choose(_ context.Context, _ core.Call, payload choicePayload) (core.Result, error) {
	left := slices.Clone(payload.Options)
	for _, thing := range left {
		if thing == "" || len(thing) > maxThing {
			return core.Result{}, core.Errorf(core.Invalid, "Each thing must have between 1 and %d letters.", maxThing)
		}
	}
	if payload.Count < 1 || payload.Count > len(left) {
		return core.Result{}, core.Errorf(core.Invalid, "Between 1 and %d things can be chosen.", len(left))
	}
	chosen := make([]string, payload.Count)
	for n := range chosen {
		i := p.pick(len(left))
		chosen[n] = left[i]
		left = slices.Delete(left, i, i+1)
	}
	return core.Output(map[string]any{"chosen": chosen, "of": len(payload.Options)}), nil
}
