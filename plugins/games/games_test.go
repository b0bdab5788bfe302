package games

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"synthbot/core"
	"synthbot/core/command"
	"synthbot/core/coretest"
	"synthbot/plugins/plugintest"
)

// seeded returns a plugin whose dice fall the same way in each test.
func seeded(h core.Host, c Config) (*Plugin, error) {
	p, err := New(h, c)
	if err == nil {
		p.pick = rand.New(rand.NewPCG(1, 2)).IntN
	}
	return p, err
}

func TestScripts(t *testing.T) {
	plugintest.Run(t, "testdata/[cdp]*.txt", plugintest.Of(seeded))
}

func TestNative(t *testing.T) {
	own := coretest.NewPlugin("own", core.Action{
		Name: "poll_room", Brief: "Start a poll", Permission: core.PermissionEveryone,
		Schema: json.RawMessage(`{"type":"object","properties":{"question":{"type":"string"},"answers":{"type":"array"},"hours":{"type":"integer"}},"additionalProperties":false}`),
		Do:     func(context.Context, core.Call) (core.Result, error) { return core.Result{Shown: true}, nil },
	})
	plugintest.Run(t, "testdata/native.txt", plugintest.Of(seeded), plugintest.With(own),
		plugintest.Verb("native", func(s *plugintest.Script, arg string) {
			if calls := own.Calls(); len(calls) != 1 || string(calls[0].Payload) != arg {
				s.Fatalf("the interface's own poll was called %d times: %+v", len(calls), calls)
			}
		}))
}

func make1(t testing.TB, s *plugintest.Harness) *Plugin {
	t.Helper()
	p, err := seeded(s.Host, Config{PollFor: 24 * 3600e9, Keep: 720 * 3600e9})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestConform(t *testing.T) {
	plugintest.Conform(t, plugintest.Case{
		Name: "games", Make: func(t *testing.T, s *plugintest.Harness) core.Plugin { return make1(t, s) },
		Keep: []plugintest.Sample{
			{Action: "poll_create", Payload: `{"question":"Is it ` + plugintest.Canary + `?","options":["yes","no"]}`},
			{Action: "poll_vote", Payload: `{"choices":["yes"]}`},
		},
		Ask: []plugintest.Sample{{Command: "polls"}, {Action: "poll_vote", Payload: `{"choices":["no"]}`}},
	})
}

func TestDice(t *testing.T) {
	for text, want := range map[string]string{
		"":                       "1d6: [1] = 1",
		"d20":                    "d20: [1] = 1",
		" 2D6 + 3 ":              "2d6+3: [1, 1] + 3 = 5",
		"10-d4":                  "10-d4: 10 - [1] = 9",
		"-1+d4":                  "-1+d4: -1 + [1] = 0",
		"+2":                     "+2: 2 = 2",
		"4d6kh3":                 "4d6kh3: [1, 1, 1, 1]→[1, 1, 1] = 3",
		"2d20kl1":                "2d20kl1: [1, 1]→[1] = 1",
		"d%":                     "d%: [1] = 1",
		"100d1000":               "",
		"100d6+1d6":              "at most 100 dice",
		"1d1001":                 "at most 1000 sides",
		"0d6":                    "can't read",
		"2d0":                    "can't read",
		"2d6kh3":                 "can't read",
		"2d6k1":                  "can't read",
		"2d-6":                   "can't read",
		"1++1":                   "can't read",
		"1+":                     "can't read",
		"2d6kh":                  "can't read",
		"99999999999":            "can't read",
		"2d6; rm":                "can't read",
		"1+1+1+1+1+1+1+1+1+1+1":  "in 10 terms",
		strings.Repeat("9", 200): "too long",
	} {
		d, err := parseDice(text)
		if err == nil {
			got := d.roll(func(int) int { return 0 }).String()
			if want != "" && got != want {
				t.Errorf("%q: got %q, want %q", text, got, want)
			}
			continue
		}
		var told *core.Error
		if !errors.As(err, &told) || told.Kind != core.Invalid || want == "" || !strings.Contains(told.Text, want) {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
}

// FuzzDice checks that accepted dice are within their limits, and that the total is the sum of the counted
// ones.
func FuzzDice(f *testing.F) {
	for _, s := range []string{"2d6+3", "4d6kh3-1", "d%", "-d4", "10"} {
		f.Add(s, uint64(1))
	}
	f.Fuzz(func(t *testing.T, text string, seed uint64) {
		d, err := parseDice(text)
		if err != nil {
			return
		}
		r := d.roll(rand.New(rand.NewPCG(seed, 0)).IntN)
		thrown, total := 0, 0
		for i, one := range r.Rolls {
			sum := d.terms[i].n
			if counted := one.Faces; counted != nil {
				if one.Kept != nil {
					counted = one.Kept
				}
				sum = 0
				for _, face := range counted {
					sum += face
				}
			}
			if d.terms[i].minus {
				sum = -sum
			}
			thrown, total = thrown+len(one.Faces), total+sum
		}
		if total != r.Total || thrown > maxDice || len(r.Rolls) > maxTerms || len(r.String()) > 2000 {
			t.Errorf("%q: got %+v", text, r)
		}
	})
}

// TestChoiceIsFair checks that no option is chosen more often than chance allows.
func TestChoiceIsFair(t *testing.T) {
	p := make1(t, plugintest.NewHarness(t, "games"))
	seen := make(map[string]int)
	const n = 3000
	for range n {
		r, err := p.choose(t.Context(), core.Call{}, choicePayload{Options: []string{"a", "b", "c"}, Count: 1})
		if err != nil {
			t.Fatal(err)
		}
		seen[string(r.Output)]++
	}
	for out, times := range seen {
		if len(seen) != 3 || times < n/3-150 || times > n/3+150 {
			t.Errorf("%s was chosen %d times of %d", out, times, n)
		}
	}
}

func TestChoiceKeepsItsOptions(t *testing.T) {
	p := make1(t, plugintest.NewHarness(t, "games"))
	options := []string{"a", "b", "c"}
	r, err := p.choose(t.Context(), core.Call{}, choicePayload{Options: options, Count: 3})
	if err != nil || fmt.Sprint(options) != "[a b c]" {
		t.Errorf("%v: got %q", err, options)
	}
	var out struct{ Chosen []string }
	if err := json.Unmarshal(r.Output, &out); err != nil ||
		!slices.Equal(slices.Sorted(slices.Values(out.Chosen)), options) {
		t.Errorf("shuffle: got %s, %v", r.Output, err)
	}
}

func createCall(t *testing.T, p *Plugin, seq uint64) core.Result {
	t.Helper()
	a := p.Actions()[2]
	c := coretest.Call(&a, core.MustPath("room/1"), core.Author{ID: "jay"}, json.RawMessage(`{"question":"Tea?","options":["Yes","No"]}`))
	c.Key.Turn.Seq = seq
	r, err := a.Do(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestCreateTwice checks that a call that is repeated after a crash does not create a second poll.
func TestCreateTwice(t *testing.T) {
	s := plugintest.NewHarness(t, "games")
	p := make1(t, s)
	first, again, other := createCall(t, p, 1), createCall(t, p, 1), createCall(t, p, 2)
	if string(first.Next[0].Payload) != string(again.Next[0].Payload) ||
		string(first.Next[0].Payload) == string(other.Next[0].Payload) {
		t.Errorf("got %s, then %s, then %s", first.Next[0].Payload, again.Next[0].Payload, other.Next[0].Payload)
	}
	polls, err := p.polls(t.Context(), core.MustPath("room/1"))
	if err != nil || len(polls) != 2 {
		t.Errorf("got %d polls, %v", len(polls), err)
	}
}

// refusing is an inbox that rejects the events of a place.
type refusing struct {
	core.Inbox
	place core.Path
	err   error
}

func (i refusing) Receive(ctx context.Context, events ...core.Event) error {
	if events[0].Message.Path == i.place {
		return i.err
	}
	return i.Inbox.Receive(ctx, events...)
}

// TestOnePollFails: a poll that cannot be announced or decoded does not keep others from being announced. One whose
// result can never be received is not announced again.
func TestOnePollFails(t *testing.T) {
	full := errors.New("the disk is full")
	for refused, again := range map[error]error{full: full, core.ErrBadEvent: nil} {
		s := plugintest.NewHarness(t, "games")
		s.Inbox = refusing{s, core.MustPath("room/0"), refused}
		p := make1(t, s)
		broken := core.Item{Path: core.MustPath("room/2"), Key: pollKey + "000001", Value: json.RawMessage(`{"number":"x"}`)}
		if _, err := s.Items.Put(t.Context(), broken); err != nil {
			t.Fatal(err)
		}
		a := p.Actions()[2]
		for _, place := range []string{"room/0", "room/1"} {
			payload := json.RawMessage(`{"question":"Tea?","options":["Yes","No"]}`)
			if _, err := a.Do(t.Context(), coretest.Call(&a, core.MustPath(place), core.Author{ID: "jay"}, payload)); err != nil {
				t.Fatal(err)
			}
		}
		s.Advance(25 * time.Hour)
		for range 2 {
			if _, err := p.endDue(t.Context()); !errors.Is(err, again) {
				t.Error(err)
			}
		}
		if events := s.Received(); len(events) != 1 || events[0].Message.Path != core.MustPath("room/1") {
			t.Errorf("received %+v", events)
		}
	}
}

// TestResultIsTold checks that a result is announced exactly once, although the inbox fails at first.
func TestResultIsTold(t *testing.T) {
	s := plugintest.NewHarness(t, "games")
	p := make1(t, s)
	createCall(t, p, 1)
	if next, err := p.endDue(t.Context()); err != nil || next != maxSleep || len(s.Received()) != 0 {
		t.Fatalf("got %v, %v, %v", next, err, s.Received())
	}
	s.Advance(23*3600e9 + 1800e9)
	if next, err := p.endDue(t.Context()); err != nil || next > maxSleep/2 {
		t.Fatalf("got %v, %v", next, err)
	}
	s.Advance(3600e9)
	s.Deaf = errors.New("the disk is full")
	if _, err := p.endDue(t.Context()); !errors.Is(err, s.Deaf) {
		t.Fatal(err)
	}
	s.Deaf = nil
	p = make1(t, s) // after a crash
	for range 2 {
		if _, err := p.endDue(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	events := s.Received()
	if len(events) != 1 || events[0].Kind != core.KindReminder || events[0].Message.Author.ID != "jay" || !strings.Contains(events[0].Message.Text, "Poll 1 is over: Tea?") {
		t.Errorf("received %+v", events)
	}
	items, err := s.Items.List(t.Context(), core.MustPath("room/@user"))
	if err != nil || len(items) != 0 {
		t.Errorf("items of users remain: %v, %v", items, err)
	}
	s.Advance(721 * 3600e9)
	if _, err := p.endDue(t.Context()); err != nil {
		t.Fatal(err)
	}
	if items, err = s.Items.List(t.Context(), core.Path{}); err != nil || len(items) != 0 {
		t.Errorf("items of old polls remain: %v, %v", items, err)
	}
}

// TestForgottenVoter checks that the vote of a forgotten user does not count.
func TestForgottenVoter(t *testing.T) {
	s := plugintest.NewHarness(t, "games")
	p := make1(t, s)
	createCall(t, p, 1)
	for _, id := range []string{"ann", "ben"} {
		call := command.Call{Path: core.MustPath("room/1"), Author: core.Author{ID: id}, Args: map[string]string{"option": "Yes"}}
		if _, err := p.voteCommand(t.Context(), call); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.DB.Forget(t.Context(), core.MustPath("room/@user/ann")); err != nil {
		t.Fatal(err)
	}
	list, err := p.standings(t.Context(), core.MustPath("room/1"), true)
	if err != nil || list[0].Voters != 1 {
		t.Errorf("got %+v, %v", list, err)
	}
}

func TestLimits(t *testing.T) {
	s := plugintest.NewHarness(t, "games")
	p := make1(t, s)
	for i := range maxOpen {
		createCall(t, p, uint64(i+1))
	}
	a := p.Actions()[2]
	c := coretest.Call(&a, core.MustPath("room/1"), core.Author{ID: "ann"}, json.RawMessage(`{"question":"More?","options":["Yes","No"]}`))
	c.Key.Turn.Seq = maxOpen + 1
	_, err := a.Do(t.Context(), c)
	var told *core.Error
	if !errors.As(err, &told) || told.Kind != core.Occupied {
		t.Errorf("eleventh poll: got %v", err)
	}
	raw, err := p.Inject(t.Context(), core.Scene{Path: core.MustPath("room/1")})
	if err != nil || len(raw) > maxInjected || strings.Count(string(raw), `"poll":`) != maxInjectedPolls {
		t.Errorf("got %d bytes, %v: %s", len(raw), err, raw)
	}
	for _, bad := range []createPayload{
		{Question: " ", Options: []string{"a", "b"}}, {Question: "x", Options: []string{"a"}}, {Question: "x", Options: []string{"a", "A"}},
		{Question: "x", Options: []string{"a", strings.Repeat("é", 56)}}, {Question: "x", Options: []string{"a", "b"}, Hours: 721},
		{Question: strings.Repeat("x", 301), Options: []string{"a", "b"}},
	} {
		if err := bad.check(); err == nil {
			t.Errorf("%+v was accepted", bad)
		}
	}
}

// TestLongPolls checks that prompts show polls with long texts, within the limit.
func TestLongPolls(t *testing.T) {
	for _, letter := range []string{"a", "é", "🫖", "<"} {
		s := plugintest.NewHarness(t, "games")
		p := make1(t, s)
		a := p.Actions()[2]
		for i := range 3 {
			c := createPayload{Question: strings.Repeat(letter, maxQuestion)}
			for n := range maxOptions {
				c.Options = append(c.Options, fmt.Sprint(n)+strings.Repeat(letter, maxOption-1))
			}
			call := coretest.Call(&a, core.MustPath("room/1"), core.Author{ID: "jay"}, nil)
			call.Key.Turn.Seq = uint64(i + 1)
			if _, err := p.open(t.Context(), call, c); err != nil {
				t.Fatal(err)
			}
		}
		raw, err := p.Inject(t.Context(), core.Scene{Path: core.MustPath("room/1")})
		if err != nil || len(raw) > maxInjected || !json.Valid(raw) || !strings.Contains(string(raw), `"poll":3`) {
			t.Errorf("%s: got %d bytes, %v: %s", letter, len(raw), err, raw)
		}
	}
}

// FuzzPollText checks that every poll that the command accepts is valid, with texts from its input.
func FuzzPollText(f *testing.F) {
	for _, text := range []string{"When? a | b", "When | a | b", "Tea?\nYes\nNo", "? a|b", "a?b? c|d", "||", "x? |a|b", "Really?? yes | no"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		c := readPollText(text)
		if c.check() != nil {
			return
		}
		plain := func(s string) string {
			return strings.Join(strings.FieldsFunc(s, func(r rune) bool { return r == '|' || unicode.IsSpace(r) }), "")
		}
		if got := plain(c.Question + strings.Join(c.Options, "")); got != plain(text) || strings.Contains(c.Question, "\n") {
			t.Errorf("%q: got %q, %q", text, c.Question, c.Options)
		}
	})
}

// TestPercentDice: a die of percent has 100 sides, and a number before it counts dice.
func TestPercentDice(t *testing.T) {
	for text, want := range map[string]term{"d%": {n: 1, sides: 100}, "3d%": {n: 3, sides: 100}, "d6": {n: 1, sides: 6}} {
		got, err := parseTerm(text)
		if err != nil || got != want {
			t.Errorf("%s: %+v, %v, want %+v", text, got, err, want)
		}
	}
}
