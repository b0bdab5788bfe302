package games

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"synthbot/core"
	"synthbot/core/command"
	"synthbot/core/txt"
)

type votePayload struct {
	_ struct{} `title:"Vote"`

	Poll    int      `json:"poll,omitempty" doc:"The poll's number, as context.games tells; left out: the only one that is open." min:"1"`
	Choices []string `json:"choices" doc:"What the person chose: options as they are written, or their numbers." min:"1" max:"10"`
}

var voteAction = core.Action{
	Name: "poll_vote", Similes: []string{"vote"},
	Brief: "Count the vote of the person who speaks, in an open poll",
	Examples: core.Examples{
		Description: "Notes what the person chose in a poll that the bot counts. A later vote replaces their earlier" +
			" one.",
		Instructions: core.Instructions{
			WhenToUse: "When the person says which option of an open poll they are for.",
			CommonPitfalls: []string{
				"Only for the one who speaks: votes that they report of others do not count.",
				"Not for a guess: if it is unclear what they are for, ask.",
			},
		},
		Similar: []string{"poll_create", "poll_close"},
		Examples: []core.Example{
			core.NewExample("\"Saturday is fine for me\"", `{"choices":["Saturday"]}`),
			core.NewExample("\"In poll 2 I take the first and the third\"", `{"poll":2,"choices":["1","3"]}`),
		},
	},
	Effects: core.EffectReadsChat | core.EffectWrites, Permission: core.PermissionEveryone, Idempotent: true,
}

// vote is an item of a person.
type vote struct {
	Options []int `json:"options"` // from 0
}

func (p *Plugin) castVote(ctx context.Context, c core.Call, payload votePayload) (core.Result, error) {
	if c.Author.ID == "" {
		return core.Result{}, core.Errorf(core.Forbidden, "Several people spoke at once: each votes for themselves.")
	}
	one, chosen, err := p.cast(ctx, c.Path, c.Author.ID, payload.Poll, payload.Choices)
	return core.Output(map[string]any{"poll": one.Number, "question": one.Question, "counted": chosen}), err
}

func (p *Plugin) voteCommand(ctx context.Context, c command.Call) (string, error) {
	there, err := p.polls(ctx, c.Path)
	if err != nil {
		return "", err
	}
	number, choices := readVote(c.Args["choice"], there)
	one, chosen, err := p.cast(ctx, c.Path, c.Author.ID, number, choices)
	return fmt.Sprintf("✓ %s: %s", one.Question, strings.Join(chosen, ", ")), err
}

// readVote reads "2 pizza", "pizza", "3", "1,3": the poll's number comes first,
// if there is such a poll and something behind it.
func readVote(text string, there []poll) (number int, choices []string) {
	text = strings.TrimSpace(text)
	first, rest, more := strings.Cut(text, " ")
	n, err := strconv.Atoi(first)
	if err == nil && more && slices.ContainsFunc(there, func(o poll) bool { return o.Number == n }) {
		number, text = n, strings.TrimSpace(rest)
	}
	fields := strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' })
	isWord := func(f string) bool { return strings.Trim(f, "0123456789") != "" }
	if len(fields) > maxOptions || slices.ContainsFunc(fields, isWord) {
		fields = []string{text}
	}
	return number, fields
}

// cast counts a user's vote, which replaces their earlier one.
func (p *Plugin) cast(ctx context.Context, place core.Path, id string, number int, choices []string) (poll, []string,
	error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	one, err := p.find(ctx, place, number)
	if err != nil {
		return poll{}, nil, err
	}
	options, err := one.read(choices)
	if err != nil {
		return poll{}, nil, err
	}
	person, err := place.Person(id)
	if err != nil {
		return poll{}, nil, err
	}
	err = core.PutItem(ctx, p.host.Items, person, ofPoll(voteKey, place, one.Number), vote{options})
	chosen := make([]string, len(options))
	for i, o := range options {
		chosen[i] = one.Options[o]
	}
	return one, chosen, err
}

// find returns an open poll of the place; 0 stands for the only one.
func (p *Plugin) find(ctx context.Context, place core.Path, number int) (poll, error) {
	there, err := p.polls(ctx, place)
	if err != nil {
		return poll{}, err
	}
	now := p.host.Clock()
	var open []poll
	var names []string
	over := false
	for _, o := range there {
		if o.Closed || !now.Before(o.Ends) {
			over = over || o.Number == number
			continue
		}
		if o.Number == number {
			return o, nil
		}
		open = append(open, o)
		names = append(names, fmt.Sprintf("%d (%s)", o.Number, o.Question))
	}
	switch {
	case number == 0 && len(open) == 1:
		return open[0], nil
	case number == 0 && len(open) > 1:
		return poll{}, core.Errorf(core.Invalid, "There are several open polls here: say which one, %s.",
			strings.Join(names, " or "))
	case over:
		return poll{}, core.Errorf(core.Invalid, "Poll %d is over.", number)
	}
	return poll{}, core.Errorf(core.Invalid, "There is no such open poll here.")
}

// read finds the options that somebody means.
func (o *poll) read(choices []string) ([]int, error) {
	var listed []string
	for i, option := range o.Options {
		listed = append(listed, fmt.Sprintf("%d. %s", i+1, option))
	}
	all := strings.Join(listed, ", ")
	var options []int
	for _, text := range choices {
		i := o.option(text)
		if i < 0 {
			return nil, core.Errorf(core.Invalid, "%q is none of the options; they are: %s.",
				txt.Clip(text, maxOption), all)
		}
		if !slices.Contains(options, i) {
			options = append(options, i)
		}
	}
	switch {
	case len(options) == 0:
		return nil, core.Errorf(core.Invalid, "Nothing was chosen; the options are: %s.", all)
	case len(options) > 1 && !o.Multiple:
		return nil, core.Errorf(core.Invalid, "In this poll only one option can be chosen.")
	}
	slices.Sort(options)
	return options, nil
}

// option is the one that a text means: by its words, its number, or the only one
// that begins so; -1: none.
func (o *poll) option(text string) int {
	text = strings.ToLower(strings.Join(strings.Fields(strings.Trim(text, " .\"'")), " "))
	var begun []int // options that begin with the text
	for i, option := range o.Options {
		option = strings.ToLower(option)
		if option == text {
			return i
		}
		if text != "" && strings.HasPrefix(option, text) {
			begun = append(begun, i)
		}
	}
	n, err := strconv.Atoi(text)
	switch {
	case err == nil && n >= 1 && n <= len(o.Options):
		return n - 1
	case len(begun) == 1:
		return begun[0]
	}
	return -1
}
