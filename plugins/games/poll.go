package games

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"synthbot/core"
	"synthbot/core/command"
	"synthbot/core/loop"
	"synthbot/core/values"
)

const (
	maxOpen     = 10 // in one place
	maxOptions  = 10
	maxOption   = 55 // characters; all platforms allow that many
	maxQuestion = 300
	maxHours    = 720
)

// Prefixes of keys. A poll is stored under its place; votes and the maker are stored under the
// users' paths, with place and number in the key.
const (
	pollKey = "poll/"
	voteKey = "vote/"
	madeKey = "made/"
)

// poll is an item of a place.
type poll struct {
	Number   int       `json:"number"`
	Question string    `json:"question"`
	Options  []string  `json:"options"`
	Multiple bool      `json:"multiple,omitempty"`
	Private  bool      `json:"private,omitempty"`
	Made     core.Key  `json:"made"` // the step that made it
	Ends     time.Time `json:"ends"`
	// Once it is over:
	Closed bool  `json:"closed,omitempty"`
	Counts []int `json:"counts,omitempty"`
	Voters int   `json:"voters,omitempty"`
	Told   bool  `json:"told,omitempty"` // the result was announced, and votes were removed

	item core.Item
}

type createPayload struct {
	_ struct{} `title:"Start a poll"`

	Question string   `json:"question" doc:"The question, as plain text." min:"1" max:"300"`
	Options  []string `json:"options" doc:"The answers to choose from, each at most 55 characters." min:"2" max:"10"`
	Hours    int      `json:"hours,omitempty" doc:"How long it is open; left out: the default." min:"1" max:"720"`
	Multiple bool     `json:"multiple,omitempty" doc:"Everybody may choose several."`
}

var createAction = core.Action{
	Name: "poll_create", Similes: []string{"start_poll", "create_poll"},
	Brief: "Start a poll in this place, with two to ten options",
	Examples: core.Examples{
		Description: "Asks everybody in the place to vote: with the platform's own poll if it has one, else the bot" +
			" counts the votes.",
		Instructions: core.Instructions{
			WhenToUse: "When a group has to decide something and somebody wants a vote.",
			CommonPitfalls: []string{
				"The poll shows question and options itself: do not repeat them in your message.",
				"Do not make up people's votes, and do not vote yourself.",
				"Each option is at most 55 characters; put explanations into a message.",
			},
			Notes: []string{
				"A poll that the bot counts has a number; context.games shows its votes so far. It ends by itself;" +
					" its result comes as a reminder.",
				"You do not see the votes of the platform's own polls, and poll_close cannot close them.",
			},
		},
		SideEffects: []string{"The poll is shown in the place."},
		Similar:     []string{"poll_vote", "poll_close", "random_choice"},
		Examples: []core.Example{
			core.NewExample("Finding a day",
				`{"question":"When do we play?","options":["Friday","Saturday","Sunday"],"multiple":true,"hours":48}`),
			core.NewExample("A quick decision", `{"question":"Pizza tonight?","options":["Yes","No"],"hours":1}`),
		},
	},
	Effects: core.EffectWrites, Permission: core.PermissionEveryone, Idempotent: true,
	RateLimit: core.RateLimit{Count: 5, Per: time.Hour},
}

// check validates and normalises the payload, beyond the schema.
func (c *createPayload) check() error {
	if utf8.RuneCountInString(c.Question) > maxQuestion || strings.TrimSpace(c.Question) == "" {
		return core.Errorf(core.Invalid, "The question must have between 1 and %d characters.", maxQuestion)
	}
	if len(c.Options) < 2 || len(c.Options) > maxOptions {
		return core.Errorf(core.Invalid, "A poll has between 2 and %d options.", maxOptions)
	}
	for i, o := range c.Options {
		c.Options[i] = strings.Join(strings.Fields(o), " ")
		n := utf8.RuneCountInString(c.Options[i])
		if n == 0 || n > maxOption {
			return core.Errorf(core.Invalid, "Option %d must have between 1 and %d characters.", i+1, maxOption)
		}
		same := func(other string) bool { return strings.EqualFold(other, c.Options[i]) }
		if slices.ContainsFunc(c.Options[:i], same) {
			return core.Errorf(core.Invalid, "Option %d is listed twice.", i+1)
		}
	}
	if c.Hours < 0 || c.Hours > maxHours {
		return core.Errorf(core.Invalid, "A poll is open for at most %d hours.", maxHours)
	}
	c.Question = strings.Join(strings.Fields(c.Question), " ")
	return nil
}

// native returns the native polls of a place's interface. ok is false if it has none, and in private chats.
func (p *Plugin) native(place core.Path, private bool) (n native, ok bool) {
	for _, text := range p.config.Native {
		n, err := parseNative(text)
		if err == nil && n.iface == place.Interface() {
			return n, !private
		}
	}
	return n, false
}

func (p *Plugin) create(ctx context.Context, c core.Call, payload createPayload) (core.Result, error) {
	if err := payload.check(); err != nil {
		return core.Result{}, err
	}
	n, ok := p.native(c.Path, c.Private)
	if ok {
		fields := map[string]any{"question": payload.Question, n.options: payload.Options}
		if payload.Multiple {
			fields["multiple"] = true
		}
		if n.hours != "" {
			fields[n.hours] = cmp.Or(payload.Hours, max(int(p.config.PollFor/time.Hour), 1))
		}
		step := core.Step{Type: "poll_" + n.iface, Payload: core.JSON(fields), Priority: core.DefaultPriority}
		return core.Result{Next: []core.Step{step}}, nil
	}
	if c.Author.ID == "" {
		return core.Result{}, core.Errorf(core.Forbidden,
			"Several people spoke at once: one of them must ask for the poll.")
	}
	made, err := p.open(ctx, c, payload)
	if err != nil {
		return core.Result{}, err
	}
	return core.Result{Next: []core.Step{c.Say(made.shown())}}, nil
}

// undoCreate closes the poll that the call made, or the one whose number is in its result, without announcing the
// result.
func (p *Plugin) undoCreate(ctx context.Context, c core.Call, done core.Result) error {
	if _, ok := p.native(c.Path, c.Private); ok {
		return core.Errorf(core.Forbidden, "this is a poll of the platform: it can be deleted there")
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	there, err := p.polls(ctx, c.Path)
	i := slices.IndexFunc(there, func(o poll) bool {
		isIt := o.Made == c.Key || done.Undo != nil && bytes.Equal(core.JSON(o.Number), done.Undo)
		return isIt && !o.Closed
	})
	if err != nil || i < 0 {
		return err
	}
	return p.close(ctx, &there[i])
}

// pollForm is an example of the arguments of /poll.
const pollForm = "When do we play? Friday | Saturday | Sunday"

// pollCommand starts a poll that the bot counts. It refuses if the platform has native
// polls, which a command cannot make.
func (p *Plugin) pollCommand(ctx context.Context, c command.Call) (string, error) {
	if _, ok := p.native(c.Path, c.Private); ok {
		return "", core.Errorf(core.Invalid,
			"This platform has its own polls: start one from the menu, or ask me for one in your words.")
	}
	payload := readPollText(c.Args["poll"])
	if len(payload.Options) < 2 {
		return "", core.Errorf(core.Invalid, "Write it like `/poll "+pollForm+"`.")
	}
	if err := payload.check(); err != nil {
		return "", err
	}
	made, err := p.open(ctx, core.Call{Path: c.Path, Private: c.Private, Author: c.Author}, payload)
	if err != nil {
		return "", err
	}
	c.NoteDone(createAction.Name, payload, core.Result{Undo: core.JSON(made.Number)})
	return made.shown(), nil
}

// readPollText parses "Question? one | two" and "Question | one | two". Line breaks separate like |.
func readPollText(text string) (c createPayload) {
	parts := strings.FieldsFunc(text, func(r rune) bool { return r == '|' || r == '\n' })
	for _, part := range parts {
		part = strings.TrimSpace(part)
		if part == "" {
			continue
		}
		if c.Question != "" {
			c.Options = append(c.Options, part)
			continue
		}
		question, first, asks := strings.Cut(part, "? ")
		c.Question = question
		if asks {
			c.Question += "?"
		}
		first = strings.TrimSpace(first)
		if first != "" {
			c.Options = append(c.Options, first)
		}
	}
	return c
}

// open makes a poll in the place, or returns the one that the same call made before a crash.
func (p *Plugin) open(ctx context.Context, c core.Call, payload createPayload) (poll, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	there, err := p.polls(ctx, c.Path)
	if err != nil {
		return poll{}, err
	}
	number, open := 1, 0
	for _, other := range there {
		if other.Made == c.Key && c.Key != (core.Key{}) { // commands have no key
			return other, p.mark(ctx, c, other.Number)
		}
		number = max(number, other.Number+1)
		if !other.Closed {
			open++
		}
	}
	if open >= maxOpen {
		return poll{}, core.Errorf(core.Occupied, "There are %d open polls here already; close one first.", open)
	}
	duration := cmp.Or(time.Duration(payload.Hours)*time.Hour, p.config.PollFor)
	made := poll{
		Number: number, Question: payload.Question, Options: payload.Options, Multiple: payload.Multiple,
		Private: c.Private, Made: c.Key, Ends: p.host.Clock().Add(duration),
		item: core.Item{Path: c.Path, Key: fmt.Sprintf("%s%06d", pollKey, number)},
	}
	if err := p.put(ctx, &made); err != nil {
		return poll{}, err
	}
	loop.Notify(p.wake)
	return made, p.mark(ctx, c, number)
}

// maker is an item under the path of the user who made a poll.
type maker struct {
	ID   string `json:"id"`
	Name string `json:"name,omitempty"`
}

func (p *Plugin) mark(ctx context.Context, c core.Call, number int) error {
	person, err := c.Path.Person(c.Author.ID)
	if err != nil {
		return err
	}
	key := ofPoll(madeKey, c.Path, number)
	return values.Put(ctx, p.host.Items, person, key, maker{c.Author.ID, c.Author.Name})
}

func ofPoll(kind string, place core.Path, number int) string {
	return kind + place.String() + "#" + strconv.Itoa(number)
}

// polls returns the polls of a place, or of all places for the zero Path, oldest first. It leaves out those that
// cannot be decoded.
func (p *Plugin) polls(ctx context.Context, place core.Path) ([]poll, error) {
	items, err := p.host.Items.List(ctx, place)
	if err != nil {
		return nil, err
	}
	var list []poll
	for _, i := range items {
		if !place.IsZero() && i.Path != place || !strings.HasPrefix(i.Key, pollKey) {
			continue
		}
		one := poll{item: i}
		if err := i.Decode(&one); err != nil {
			p.host.Log.Error("poll left out", "path", i.Path, "err", err)
			continue
		}
		list = append(list, one)
	}
	return list, nil
}

func (p *Plugin) put(ctx context.Context, one *poll) (err error) {
	one.item.Value = core.JSON(one)
	one.item.Version, err = p.host.Items.Put(ctx, one.item)
	return err
}

func (o *poll) shown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "📊 %s", o.Question)
	for i, option := range o.Options {
		fmt.Fprintf(&b, "\n%d. %s", i+1, option)
	}
	how := "one"
	if o.Multiple {
		how = "one or several"
	}
	fmt.Fprintf(&b, "\nChoose %s until %s: tell me the number or the words, or write /vote and the number. (Poll %d)",
		how, o.Ends.Format("2 Jan 15:04"), o.Number)
	return b.String()
}

const (
	maxSleep   = time.Hour   // between two calls of endDue
	retryDelay = time.Minute // after an error
)

// Refresh implements core.Refresher.
func (p *Plugin) Refresh() { loop.Notify(p.wake) }

// Run implements core.Runner: it ends due polls.
func (p *Plugin) Run(ctx context.Context) error {
	loop.Repeat(ctx, p.wake, func() time.Duration {
		next, err := p.endDue(ctx)
		if err != nil && ctx.Err() == nil {
			p.host.Log.Error("polls could not be ended", "retry_in", retryDelay, "err", err)
			return retryDelay
		}
		return next
	})
	return nil
}

// endDue ends all due polls, removes old ones, and returns when to call it again. An error of
// one poll does not concern the others.
func (p *Plugin) endDue(ctx context.Context) (time.Duration, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	all, err := p.polls(ctx, core.Path{})
	if err != nil {
		return 0, err
	}
	now, next := p.host.Clock(), maxSleep
	var errs error
	for _, one := range all {
		var err error
		switch {
		case one.Told && now.Sub(one.Ends) > p.config.Keep:
			one.item.Value = nil
			_, err = p.host.Items.Put(ctx, one.item)
		case one.Told:
		case one.Closed || !now.Before(one.Ends):
			err = p.announce(ctx, &one)
		default:
			next = min(next, one.Ends.Sub(now))
		}
		errs = errors.Join(errs, err)
	}
	return next, errs
}

// announce makes a turn that announces the result. The event's id is unique to the poll, so that there is only one.
func (p *Plugin) announce(ctx context.Context, o *poll) error {
	if !o.Closed {
		if err := p.count(ctx, o); err != nil {
			return err
		}
	}
	by := maker{p.host.Name, p.host.Name}
	makers, err := p.ofPeople(ctx, o, madeKey)
	if len(makers) > 0 {
		err = makers[0].Decode(&by)
	}
	if err != nil {
		return err
	}
	err = p.host.Inbox.Receive(ctx, core.Event{Kind: core.KindReminder, Message: core.Message{
		Path: o.item.Path, ID: fmt.Sprintf("%s-poll-%d-%d", p.host.Name, o.Number, o.Ends.Unix()),
		Author: core.Author{ID: by.ID, Name: by.Name}, Time: p.host.Clock(), Private: o.Private,
		Text: fmt.Sprintf("Poll %d is over: %s", o.Number, o.result().text()),
	}})
	if errors.Is(err, core.ErrBadEvent) { // it would fail again
		p.host.Log.Error("result of a poll left out", "path", o.item.Path, "err", err)
		err = nil
	}
	if err != nil {
		return fmt.Errorf("result: %w", err)
	}
	return p.settle(ctx, o)
}
