package games

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"synthbot/core"
	"synthbot/core/action"
	"synthbot/core/command"
	"synthbot/core/sorting"
	"synthbot/core/txt"
	"synthbot/core/values"
)

type votePayload struct {
	_ struct{} `title:"Vote"`

	Poll    int      `json:"poll,omitempty" doc:"The poll's number from context.games; left out: the only open one." min:"1"`
	Choices []string `json:"choices" doc:"The options that the person chose, as they are written, or their numbers." min:"1" max:"10"`
}

var voteAction = core.Action{
	Name: "poll_vote", Similes: []string{"vote"},
	Brief: "Count the vote of the author in an open poll",
	Examples: action.Guide(
		"Stores the vote of the message's author in a poll that the bot counts. It replaces their earlier one.",
		"When the author says which option of an open poll they choose.",
		[]string{
			"Only for the author: votes that they report of others do not count.",
			"Do not guess: if their choice is unclear, ask.",
		},
		core.NewExample("\"Saturday is fine for me\"", `{"choices":["Saturday"]}`),
		core.NewExample("\"In poll 2 I take the first and the third\"", `{"poll":2,"choices":["1","3"]}`),
	).SeeAlso("poll_create", "poll_close"),
	Effects: core.EffectReadsChat | core.EffectWrites, Permission: core.PermissionEveryone, Idempotent: true,
}

// vote is an item under the path of a voter.
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
	number, choices := readVote(c.Args["option"], there)
	one, chosen, err := p.cast(ctx, c.Path, c.Author.ID, number, choices)
	return fmt.Sprintf("✓ %s: %s", one.Question, strings.Join(chosen, ", ")), err
}

// readVote parses "2 pizza", "pizza", "3" and "1,3". The first number is the poll's if
// there is such a poll and more text follows.
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
	err = values.Put(ctx, p.host.Items, person, ofPoll(voteKey, place, one.Number), vote{options})
	chosen := make([]string, len(options))
	for i, o := range options {
		chosen[i] = one.Options[o]
	}
	return one, chosen, err
}

// find returns an open poll of the place by its number, or for 0 the only one.
func (p *Plugin) find(ctx context.Context, place core.Path, number int) (poll, error) {
	there, err := p.polls(ctx, place)
	if err != nil {
		return poll{}, err
	}
	now := p.host.Clock()
	var open []poll
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
	}
	switch {
	case number == 0 && len(open) == 1:
		return open[0], nil
	case number == 0 && len(open) > 1:
		name := func(o poll) string { return fmt.Sprintf("%d (%s)", o.Number, o.Question) }
		return poll{}, core.Errorf(core.Invalid, "There are several open polls here: say which one, %s.",
			txt.JoinFunc(open, " or ", name))
	case over:
		return poll{}, core.Errorf(core.Invalid, "Poll %d is over.", number)
	}
	return poll{}, core.Errorf(core.Invalid, "There is no such open poll here.")
}

// read returns the options, from 0, that choices name.
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

// option returns the option that a text names: by its words, its number, or as the only one
// that begins like that; -1 if none.
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

type closePayload struct {
	_ struct{} `title:"Close a poll"`

	Poll int `json:"poll,omitempty" doc:"The poll's number; left out: the only open one." min:"1"`
}

var closeAction = core.Action{
	Name: "poll_close", Similes: []string{"end_poll", "close_poll"},
	Brief: "Close an open poll that the bot counts, and get its result",
	Examples: action.Guide("Ends a poll before its time. Only its maker and moderators may do so.",
		"When the person wants to end the vote now and see the result.",
		[]string{"The votes of an open poll are in context.games: do not close it to read them.",
			"It cannot be opened again."},
		core.NewExample("\"Enough, what is the result of poll 2?\"", `{"poll":2}`),
	).SeeAlso("poll_create", "poll_vote"),
	Effects: core.EffectRanked | core.EffectReadsChat, Permission: core.PermissionEveryone, Idempotent: true,
}

func (p *Plugin) closePoll(ctx context.Context, c core.Call, payload closePayload) (core.Result, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	one, err := p.find(ctx, c.Path, payload.Poll)
	if err != nil {
		return core.Result{}, err
	}
	person, _ := c.Path.Person(c.Author.ID) // zero for several users
	_, isMaker, err := p.host.Items.Get(ctx, person, ofPoll(madeKey, c.Path, one.Number))
	if err == nil && !isMaker && c.Author.Rank < core.RankModerator {
		err = core.Errorf(core.Forbidden, "Only its maker or a moderator can close the poll.")
	}
	if err == nil {
		err = p.close(ctx, &one)
	}
	if err != nil {
		return core.Result{}, err
	}
	return core.Output(one.result()), nil
}

// close ends a poll without announcing its result.
func (p *Plugin) close(ctx context.Context, o *poll) error {
	if err := p.count(ctx, o); err != nil {
		return err
	}
	return p.settle(ctx, o)
}

func (p *Plugin) tally(ctx context.Context, o *poll) error {
	votes, err := p.ofPeople(ctx, o, voteKey)
	o.Counts, o.Voters = make([]int, len(o.Options)), len(votes)
	for i := range votes {
		var v vote
		if err := votes[i].Decode(&v); err != nil {
			return err
		}
		for _, option := range v.Options {
			if option >= 0 && option < len(o.Counts) {
				o.Counts[option]++
			}
		}
	}
	return err
}

// ofPeople returns the items about a poll of a kind (voteKey or madeKey) of all users.
func (p *Plugin) ofPeople(ctx context.Context, o *poll, kind string) ([]core.Item, error) {
	place := o.item.Path
	anybody, err := place.Person("x")
	if err != nil {
		return nil, err
	}
	items, err := p.host.Items.List(ctx, anybody.Parent())
	key := ofPoll(kind, place, o.Number)
	return slices.DeleteFunc(items, func(i core.Item) bool { return i.Key != key }), err
}

// count closes a poll with its present votes.
func (p *Plugin) count(ctx context.Context, o *poll) error {
	if err := p.tally(ctx, o); err != nil {
		return err
	}
	o.Closed = true
	return p.put(ctx, o)
}

// settle records that the result was announced, and removes the votes and the maker.
func (p *Plugin) settle(ctx context.Context, o *poll) error {
	o.Told = true
	if err := p.put(ctx, o); err != nil {
		return err
	}
	for _, kind := range []string{voteKey, madeKey} {
		items, err := p.ofPeople(ctx, o, kind)
		if err != nil {
			return err
		}
		for _, i := range items {
			if err := values.Put(ctx, p.host.Items, i.Path, i.Key, nil); err != nil {
				return err
			}
		}
	}
	return nil
}

// standing is a poll as the model sees it.
type standing struct {
	Poll     int        `json:"poll"`
	Question string     `json:"question"`
	Votes    []counted  `json:"votes"`
	Voters   int        `json:"voters"`
	Multiple bool       `json:"multiple,omitempty"`
	Ends     *time.Time `json:"ends,omitempty"` // of one that is open
}

type counted struct {
	Option string `json:"option"`
	Votes  int    `json:"votes"`
}

// result returns the poll as the model sees it. Counts must be set.
func (o *poll) result() standing {
	s := standing{Poll: o.Number, Question: o.Question, Voters: o.Voters, Multiple: o.Multiple}
	for i, option := range o.Options {
		s.Votes = append(s.Votes, counted{option, o.Counts[i]})
	}
	if !o.Closed {
		s.Ends = &o.Ends
	}
	return s
}

func (s standing) text() string {
	list := slices.Clone(s.Votes)
	sorting.SortStable(list, func(a, b counted) int { return b.Votes - a.Votes })
	votes := txt.JoinFunc(list, ", ", func(c counted) string { return fmt.Sprintf("%s: %d", c.Option, c.Votes) })
	return fmt.Sprintf("%s — %s (%d voted)", s.Question, votes, s.Voters)
}

// standings returns the polls of a place, newest first.
func (p *Plugin) standings(ctx context.Context, place core.Path, open bool) ([]standing, error) {
	there, err := p.polls(ctx, place)
	if err != nil {
		return nil, err
	}
	var list []standing
	for _, o := range slices.Backward(there) {
		if open && o.Closed {
			continue
		}
		if !o.Closed {
			err = p.tally(ctx, &o)
		}
		if err != nil {
			return nil, err
		}
		list = append(list, o.result())
	}
	return list, nil
}

const (
	maxInjected      = 1800 // bytes in a prompt, below the limit of a turn
	maxInjectedPolls = 5
)

// Inject implements core.Injector: it returns the current counts of the place's open polls.
func (p *Plugin) Inject(ctx context.Context, s core.Scene) (json.RawMessage, error) {
	if s.Path.IsZero() {
		return nil, nil
	}
	list, err := p.standings(ctx, s.Path, true)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	for list = list[:min(len(list), maxInjectedPolls)]; len(list) > 0; list = list[:len(list)-1] {
		for _, limit := range []int{maxQuestion, 40, 12} {
			raw := core.JSON(map[string]any{"polls": shortened(list, limit)})
			if len(raw) <= maxInjected {
				return raw, nil
			}
		}
	}
	return nil, nil
}

func shortened(list []standing, limit int) []standing {
	list = slices.Clone(list)
	for i := range list {
		list[i].Question = txt.Clip(list[i].Question, limit)
		list[i].Votes = slices.Clone(list[i].Votes)
		for k := range list[i].Votes {
			list[i].Votes[k].Option = txt.Clip(list[i].Votes[k].Option, limit)
		}
	}
	return list
}

const shownMax = 10

func (p *Plugin) pollsCommand(ctx context.Context, c command.Call) (string, error) {
	list, err := p.standings(ctx, c.Path, false)
	if err != nil {
		return "", err
	}
	if len(list) == 0 {
		return "There are no polls here.", nil
	}
	return txt.JoinFunc(list[:min(len(list), shownMax)], "\n", func(s standing) string {
		state := "over"
		if s.Ends != nil {
			state = "open until " + s.Ends.In(p.host.Clock().Location()).Format("2 Jan 15:04")
		}
		return fmt.Sprintf("%d. %s, %s", s.Poll, s.text(), state)
	}), nil
}
