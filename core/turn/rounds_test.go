package turn_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"synthbot/core"
	"synthbot/core/coretest"
	"synthbot/core/llm"
	"synthbot/core/turn"
	"synthbot/core/watch"
)

// withPlugin starts a bot with this plugin.
func withPlugin(t *testing.T, p core.Plugin, script ...any) *bot {
	s := open(t, t.TempDir())
	t.Cleanup(func() { s.Close() })
	room := coretest.NewRoom("room")
	return start(t, s, room, coretest.NewAsker(script...), func(o *turn.Options) {
		o.Catalogue = catalogueOf(t, room, p)
	})
}

func TestFollowUp(t *testing.T) {
	web := coretest.NewPlugin("web",
		core.Action{Name: "search", Brief: "Search", Permission: core.PermissionEveryone},
		core.Action{Name: "fetch", Brief: "Fetch", Permission: core.PermissionEveryone},
		core.Action{Name: "count", Brief: "Count", Permission: core.PermissionEveryone})
	b := withPlugin(t, web,
		`{"response":"Let me look.","actions":[{"type":"search","payload":{"q":"moss"}}]}`,
		`{"actions":[{"type":"fetch","payload":{"url":"x"}}]}`,
		plan("Moss is green."))
	b.receive(said("1", "jay", "what is moss?"))
	b.ended(1)
	b.holds("Let me look.", "Moss is green.")
	offered := func(i int) string { return strings.Join(b.asker.Asked()[i].System, "\n") }
	for i, want := range []string{"count fetch search", "count fetch", ""} {
		var got []string
		for _, name := range []string{"count", "fetch", "search"} {
			if strings.Contains(offered(i), `"`+name+`":{`) {
				got = append(got, name)
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("round %d offers %q, want %q", i+1, got, want)
		}
	}
	if in := b.input(1); !strings.Contains(in, `"q":"moss"`) || !strings.Contains(in, "Let me look.") {
		t.Errorf("unexpected prompt of round 2: %s", in)
	}
}

// TestRepeatedCall: a model that repeats a call instead of answering is corrected. The action runs
// once, and its result is kept.
func TestRepeatedCall(t *testing.T) {
	dice := coretest.NewPlugin("dice", core.Action{Name: "roll", Brief: "Roll dice", Permission: core.PermissionEveryone,
		Do: func(context.Context, core.Call) (core.Result, error) { return core.Output(4), nil }})
	const call = `{"actions":[{"type":"roll","payload":{"sides":6}}]}`
	b := withPlugin(t, dice, call, call, plan("It is a four."))
	b.receive(said("1", "jay", "roll the dice"))
	b.ended(1)
	b.holds("It is a four.")
	asked := b.asker.Asked()
	if len(asked) != 3 || len(dice.Calls()) != 1 {
		t.Fatalf("unexpected: the model was asked %d times and the action ran %d times", len(asked), len(dice.Calls()))
	}
	var all strings.Builder
	for _, u := range asked[2].Messages {
		all.WriteString(u.Text + "\n")
	}
	for _, want := range []string{`"outputs":[{"action":"roll"`, "was done already, and the outputs are above"} {
		if !strings.Contains(all.String(), want) {
			t.Errorf("the correction lacks %q: %s", want, &all)
		}
	}
}

// TestFollowUpAfterACrash: after a crash the model is not asked again for the first round, and the
// second round does not offer the action that ran.
func TestFollowUpAfterACrash(t *testing.T) {
	s := open(t, t.TempDir())
	defer s.Close()
	room := coretest.NewRoom("room")
	web := coretest.NewPlugin("web",
		core.Action{Name: "search", Brief: "Search", Permission: core.PermissionEveryone},
		core.Action{Name: "fetch", Brief: "Fetch", Permission: core.PermissionEveryone})
	with := func(o *turn.Options) { o.Catalogue = catalogueOf(t, room, web) }
	first := coretest.NewAsker(`{"actions":[{"type":"search","payload":{"q":"moss"}}]}`, plan("never said"))
	first.Hold = make(chan struct{}, 1)
	first.Hold <- struct{}{} // for round 1 only
	m := &mortal{Store: s, left: 1000, die: func() {}}
	b := start(t, m, room, first, with)
	b.receive(said("1", "jay", "what is moss?"))
	b.thinks(2)
	m.kill() // writes nothing more, like a dead process
	b.kill()

	b = start(t, s, room, coretest.NewAsker(plan("Moss is green.")), with)
	b.ended(1)
	b.holds("Moss is green.")
	asked := b.asker.Asked()
	if len(asked) != 1 || len(web.Calls()) != 1 {
		t.Fatalf("unexpected: the model was asked %d times and the action ran %d times", len(asked), len(web.Calls()))
	}
	system := strings.Join(asked[0].System, "\n")
	if strings.Contains(system, `"search":{`) || !strings.Contains(system, `"fetch":{`) || !strings.Contains(b.input(0), `"q":"moss"`) {
		t.Errorf("unexpected prompt of the follow-up: %s and %s", system, b.input(0))
	}
}

func TestFailuresAreTold(t *testing.T) {
	broken := coretest.NewPlugin("oven", core.Action{Name: "bake", Brief: "Bake", Permission: core.PermissionEveryone,
		Do: func(context.Context, core.Call) (core.Result, error) {
			return core.Result{}, core.Errorf(core.Broken, "the oven is cold")
		}})
	b := withPlugin(t, broken, `{"actions":[{"type":"bake"}]}`, plan("The oven is cold, sorry."))
	b.receive(said("1", "jay", "bake"))
	b.ended(1)
	b.holds("The oven is cold, sorry.")
	if in := b.input(1); !strings.Contains(in, "the oven is cold") {
		t.Errorf("unexpected prompt: %s", in)
	}
}

func TestContinue(t *testing.T) {
	b := fresh(t, `{"response":"more","actions":[{"type":"CONTINUE"}]}`)
	b.receive(said("1", "jay", "count"))
	ends := b.ended(4) // the message and three follow-ups in a row
	for i, end := range ends {
		if last := i == len(ends)-1; (end.GoesOn == "") != last || !last && ends[i+1].Messages[0] != end.GoesOn {
			t.Errorf("unexpected follow-up of turn %d: %q", i, end.GoesOn)
		}
	}
	b.holds("more", "more", "more", "more")
}

func TestIgnoreIsSilent(t *testing.T) {
	b := fresh(t, `{"actions":[{"type":"IGNORE"}]}`)
	b.receive(said("1", "jay", "hm"))
	if end := b.ended(1)[0]; end.Answered {
		t.Error("the message was answered")
	}
	b.holds()
}

func TestStateIsCarriedOn(t *testing.T) {
	b := fresh(t, `{"response":"How much?","context":{"topic":"transfer","slotsFilled":{"to":"Ann"},"slotsRequired":["amount"]}}`,
		`{"actions":[{"type":"message_room","payload":{"text":"ok"},"conditions":[{"field":"to","operator":"exists"}]}]}`)
	b.receive(said("1", "jay", "send Ann money"))
	b.ended(1)
	b.receive(said("2", "jay", "five"))
	b.ended(1)
	var in struct {
		Context struct {
			State core.State `json:"conversation_state"`
		} `json:"context"`
	}
	if err := json.Unmarshal([]byte(b.input(1)), &in); err != nil {
		t.Fatal(err)
	}
	if s := in.Context.State; s.Topic != "transfer" || string(s.SlotsFilled["to"]) != `"Ann"` || len(s.SlotsRequired) != 1 {
		t.Errorf("unexpected state %+v", s)
	}
	b.holds("How much?", "ok")
	if n := len(b.asker.Asked()); n != 2 {
		t.Errorf("the model was asked %d times, want 2: a condition on a known slot needs no correction", n)
	}
}

// TestNobodyIsLeftInSilence: after actions that ran without text, the model is asked to report
// them. If it only repeats the call, the bot sends the outputs itself. No action runs twice.
func TestNobodyIsLeftInSilence(t *testing.T) {
	save := `{"actions":[{"type":"save","payload":{"what":"tea"}}]}`
	fields := `{"gone_at":[{"by":"Ann","n":7},{"by":"Jay"}],"dice":"4, 2","private_thought":"sly"}`
	for name, c := range map[string]struct {
		script []any
		gives  core.Result
		want   string
		asked  int
	}{
		"the model tells it":      {[]any{save, plan("I'll remember that.")}, core.Result{}, "I'll remember that.", 2},
		"the model repeats it":    {[]any{save}, core.Result{}, "Done.", 2},
		"with an output":          {[]any{save}, core.Result{Output: []byte(`"kept"`)}, "kept", 4},
		"with fields":             {[]any{save}, core.Result{Output: []byte(fields)}, "dice: 4, 2|gone at: by: Ann, n: 7; by: Jay", 4},
		"with nothing to show":    {[]any{save}, core.Result{Output: []byte(`{"private_thought":"sly","none":null}`)}, "Done.", 4},
		"the model says nothing":  {[]any{save, `{"actions":[{"type":"NONE"}]}`}, core.Result{}, "", 2},
		"shown by the action":     {[]any{save}, core.Result{Shown: true}, "", 1},
		"the model chose silence": {[]any{`{"actions":[{"type":"save","payload":{"what":"tea"}},{"type":"IGNORE"}]}`}, core.Result{}, "", 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, t.TempDir())
			t.Cleanup(func() { s.Close() })
			memo := coretest.NewPlugin("memo", core.Action{Name: "save", Permission: core.PermissionEveryone,
				Schema: json.RawMessage(`{"type":"object","properties":{"what":{"type":"string"}}}`),
				Do:     func(context.Context, core.Call) (core.Result, error) { return c.gives, nil }})
			room := coretest.NewRoom("room")
			b := start(t, s, room, coretest.NewAsker(c.script...), func(o *turn.Options) {
				o.Catalogue = catalogueOf(t, room, memo)
			})
			b.receive(said("1", "jay", "I like tea"))
			b.ended(1)
			b.stop()
			if got := strings.Join(room.Texts(), "|"); got != c.want || len(memo.Calls()) != 1 || len(b.asker.Asked()) != c.asked {
				t.Errorf("the bot sent %q after %d calls and %d questions, want %q, 1 and %d", got, len(memo.Calls()), len(b.asker.Asked()), c.want, c.asked)
			}
		})
	}
}

// TestResultsSurviveTheModel: if the model cannot report what its actions did, the bot does, and says why.
func TestResultsSurviveTheModel(t *testing.T) {
	const (
		save = `{"actions":[{"type":"save","payload":{}}]}`
		tell = `{"response":"I'll try.","actions":[{"type":"save","payload":{}}]}`
		fly  = `{"actions":[{"type":"fly"}]}`
		more = "I can't say more about it just now. "
	)
	spent := &llm.Error{Kind: llm.ErrorRefused, Err: core.Errorf(core.Occupied, "You have used up your share.")}
	broken := errors.New("broken")
	for name, c := range map[string]struct {
		script []any
		fails  error // of the action
		want   string
	}{
		"no engine":           {[]any{save, broken}, nil, "kept||" + more + "(E-ENGINE)"},
		"a long output":       {[]any{save, &llm.Error{Kind: llm.ErrorTooLong}}, nil, "kept||" + more + "(E-LONG)"},
		"a limit":             {[]any{save, spent}, nil, "kept||You have used up your share."},
		"a limit, twice":      {[]any{save, spent, save, spent}, nil, "kept||You have used up your share.|kept"},
		"no usable plan":      {[]any{save, fly}, nil, "kept"},
		"after words":         {[]any{tell, broken}, nil, "I'll try.|kept||" + more + "(E-ENGINE)"},
		"the action failed":   {[]any{tell, broken}, core.Errorf(core.Broken, "It is full."), "I'll try.|" + trouble},
		"nothing happened":    {[]any{broken}, nil, trouble},
		"a limit, and no act": {[]any{spent, spent}, nil, "You have used up your share."},
	} {
		t.Run(name, func(t *testing.T) {
			memo := coretest.NewPlugin("memo", core.Action{Name: "save", Permission: core.PermissionEveryone,
				Do: func(context.Context, core.Call) (core.Result, error) { return core.Output("kept"), c.fails }})
			b := withPlugin(t, memo, c.script...)
			turns := 1
			if strings.HasPrefix(name, "a limit, ") {
				turns = 2
			}
			for i := range turns {
				b.receive(said(fmt.Sprint(i), "jay", "I like tea"))
				b.ended(1)
			}
			if got := strings.Join(b.room.Texts(), "|"); got != c.want {
				t.Errorf("the bot sent %q, want %q", got, c.want)
			}
		})
	}
}

// trouble is what the bot says if no engine answers.
const trouble = "Sorry, I can't think straight just now. Please try again in a little while. (E-ENGINE)"

// TestFallbackIsHeard: if a step's fallback message reached the user, the model is not asked to
// report the failure. If the message went elsewhere or failed, it is.
func TestFallbackIsHeard(t *testing.T) {
	const to = `{"type":"message_room","payload":{"text":"It is shut.","interface_path":"%s"}}`
	refused := strings.ReplaceAll(fmt.Sprintf(to, "room/1"), "It is shut.", "REFUSED")
	for fallback, want := range map[string][]string{
		fmt.Sprintf(to, "room/1"):   {"It is shut."},
		fmt.Sprintf(to, "room/1/7"): {"It is shut.", "sorry"},
		`{"type":"look"}`:           {"sorry"},
		refused:                     {"sorry"},
	} {
		s := open(t, t.TempDir())
		room := coretest.NewRoom("room")
		door := coretest.NewPlugin("door", core.Action{Name: "look", Permission: core.PermissionEveryone}, core.Action{
			Name: "enter", Permission: core.PermissionEveryone, Do: func(context.Context, core.Call) (core.Result, error) {
				return core.Result{}, core.Errorf(core.Invalid, "it is shut")
			}})
		room.Fail = func(text string) error {
			if text == "REFUSED" {
				return core.Errorf(core.Broken, "gone")
			}
			return nil
		}
		script := `{"actions":[{"type":"enter","fallbackAction":` + fallback + `}]}`
		b := start(t, s, room, coretest.NewAsker(script, plan("sorry")), func(o *turn.Options) { o.Catalogue = catalogueOf(t, room, door) })
		b.receive(said("1", "jay", "enter"))
		b.ended(1)
		b.holds(want...)
		b.stop()
		s.Close()
	}
}

// TestShutOut: if the bot may not write in the place, the model is not asked again. Other refusals,
// and refusals elsewhere, go back to it.
func TestShutOut(t *testing.T) {
	for name, c := range map[string]struct {
		err   error
		to    string
		known bool // before it is sent
		asked int
	}{
		"here":                    {core.Errorf(core.Forbidden, "you may not write there"), "room/1", false, 1},
		"here, too long":          {core.Errorf(core.Invalid, "too long"), "room/1", false, 2},
		"in another place":        {core.Errorf(core.Forbidden, "you may not write there"), "room/1/7", false, 2},
		"here, known":             {core.Errorf(core.Forbidden, "you may not write there"), "room/1", true, 1},
		"here, known as too long": {core.Errorf(core.Invalid, "too long"), "room/1", true, 2},
		"in another place, known": {core.Errorf(core.Forbidden, "you may not write there"), "room/1/7", true, 2},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, t.TempDir())
			defer s.Close()
			room := coretest.NewRoom("room")
			room.Fail = func(text string) error {
				if text == "REFUSED" {
					return c.err
				}
				return nil
			}
			if c.known {
				room.Refuse = func(call core.Call) error {
					if strings.Contains(string(call.Payload), "REFUSED") {
						return c.err
					}
					return nil
				}
			}
			const message = `{"actions":[{"type":"message_room","payload":{"text":"REFUSED","interface_path":%q}}]}`
			say := fmt.Sprintf(message, c.to)
			asker := coretest.NewAsker(say, plan("sorry"))
			b := start(t, s, room, asker)
			b.receive(said("1", "jay", "hi"))
			b.ended(1)
			if n := len(asker.Asked()); n != c.asked {
				t.Errorf("unexpected: the model was asked %d times", n)
			}
			b.stop()
		})
	}
}

// TestShutOutReminder: the end of a turn says that the place of a reminder refused it.
func TestShutOutReminder(t *testing.T) {
	for _, kind := range []core.ErrorKind{core.Forbidden, core.Broken} {
		for _, known := range []bool{false, true} { // before it is sent
			s := open(t, t.TempDir())
			room := coretest.NewRoom("room")
			refused := core.Errorf(kind, "that topic is gone")
			room.Fail = func(string) error { return refused }
			if known {
				room.Refuse = func(core.Call) error { return refused }
			}
			b := start(t, s, room, coretest.NewAsker(plan("tea"), plan("tea"), plan("tea"), plan("tea")))
			due := said("reminder-jay-1", "jay", "tea")
			due.Kind = core.KindReminder
			b.receive(due)
			end := b.ended(1)[0]
			isRefused := func(s watch.Step) bool { return s.Progress != core.ProgressDone && s.Kind == kind }
			if end.Answered || end.Messages[0] != due.Message.ID || !slices.ContainsFunc(end.Trace.Steps, isRefused) {
				t.Errorf("%s, known %t: the turn ends with %+v, steps %+v", kind, known, end, end.Trace.Steps)
			}
			b.stop()
			s.Close()
		}
	}
}

// TestLastRoundSpeaks: the last round only offers messages. Other calls are corrected and do not
// run.
func TestLastRoundSpeaks(t *testing.T) {
	eye := coretest.NewPlugin("eye", core.Action{Name: "look", Permission: core.PermissionEveryone, Do: func(_ context.Context, c core.Call) (core.Result, error) {
		return core.Result{Output: c.Payload}, nil
	}})
	look := func(n int) string { return fmt.Sprintf(`{"actions":[{"type":"look","payload":{"n":%d}}]}`, n) }
	b := withPlugin(t, eye, look(1), look(2), look(3), plan("I saw it."))
	b.receive(said("1", "jay", "look"))
	b.ended(1)
	b.holds("I saw it.")
	if calls := eye.Calls(); len(calls) != 2 {
		t.Errorf("the action ran %d times, want 2", len(calls))
	}
	if in := b.input(3); !strings.Contains(in, "look is no longer available") {
		t.Errorf("the correction does not say that look is unavailable: %s", in)
	}
}

// TestSilentStepsAreTold: if a step fails, the model also learns which other steps ran.
func TestSilentStepsAreTold(t *testing.T) {
	oven := coretest.NewPlugin("oven",
		core.Action{Name: "bake", Permission: core.PermissionEveryone, Do: func(context.Context, core.Call) (core.Result, error) {
			return core.Result{}, core.Errorf(core.Broken, "the oven is cold")
		}},
		core.Action{Name: "knead", Permission: core.PermissionEveryone, Do: func(context.Context, core.Call) (core.Result, error) { return core.Result{}, nil }},
	)
	b := withPlugin(t, oven, `{"actions":[{"type":"knead"},{"type":"bake"}]}`, plan("The oven is cold."))
	b.receive(said("1", "jay", "bake"))
	b.ended(1)
	if in := b.input(1); !strings.Contains(in, "the oven is cold") || !strings.Contains(in, `"knead"`) {
		t.Errorf("unexpected prompt: %s", in)
	}
}

// TestFallbackBesideABuiltIn: a built-in action that ran does not hide that a step failed.
func TestFallbackBesideABuiltIn(t *testing.T) {
	door := coretest.NewPlugin("door", core.Action{Name: "enter", Permission: core.PermissionEveryone, Do: func(context.Context, core.Call) (core.Result, error) {
		return core.Result{}, core.Errorf(core.Invalid, "it is shut")
	}})
	b := withPlugin(t, door, `{"actions":[{"type":"IGNORE","priority":9},{"type":"enter","fallbackAction":{"type":"message","payload":{"text":"It is shut."}}}]}`)
	b.receive(said("1", "jay", "enter"))
	b.ended(1)
	b.holds("It is shut.")
}

// TestIntentOfTheLatestPlan: intent and confidence come from the latest plan that has an intent.
func TestIntentOfTheLatestPlan(t *testing.T) {
	eye := coretest.NewPlugin("eye", core.Action{Name: "look", Permission: core.PermissionEveryone, Do: func(context.Context, core.Call) (core.Result, error) {
		return core.Result{Output: json.RawMessage(`"a cat"`)}, nil
	}})
	for second, want := range map[string]string{
		`{"response":"A cat.","intent":"greeting"}`:                  "greeting 0",
		`{"response":"A cat.","intent":"greeting","confidence":0.5}`: "greeting 0.5",
		`{"response":"A cat."}`:                                      "query 0.9",
	} {
		b := withPlugin(t, eye, `{"intent":"query","confidence":0.9,"actions":[{"type":"look"}]}`, second)
		b.receive(said("1", "jay", "look"))
		if end := b.ended(1)[0]; fmt.Sprint(end.Intent, " ", end.Confidence) != want {
			t.Errorf("%s: unexpected intent %s with confidence %v", second, end.Intent, end.Confidence)
		}
	}
}

// TestSamePayloadOfAnother: an action runs although another one, or one that failed, had the same
// payload.
func TestSamePayloadOfAnother(t *testing.T) {
	tries := 0
	eye := coretest.NewPlugin("eye",
		core.Action{Name: "look", Permission: core.PermissionEveryone}, core.Action{Name: "glance", Permission: core.PermissionEveryone},
		core.Action{Name: "blink", Permission: core.PermissionEveryone, Do: func(context.Context, core.Call) (core.Result, error) {
			if tries++; tries == 1 {
				return core.Result{}, core.Errorf(core.Broken, "dust")
			}
			return core.Result{Output: []byte(`"ok"`)}, nil
		}})
	b := withPlugin(t, eye, `{"actions":[{"type":"look","payload":{}},{"type":"blink","payload":{}}]}`,
		`{"actions":[{"type":"look","payload":{}},{"type":"glance","payload":{}},{"type":"blink","payload":{}}]}`, plan("I saw it."))
	b.receive(said("1", "jay", "look"))
	b.ended(1)
	b.holds("I saw it.")
	if n := len(eye.Calls()); n != 4 || tries != 2 {
		t.Errorf("unexpected: %d calls, %d tries of blink", n, tries)
	}
}

// TestFailedSignsAreNotSeen: an action that the interface failed to show is reported to the model
// as failed.
func TestFailedSignsAreNotSeen(t *testing.T) {
	s := open(t, t.TempDir())
	defer s.Close()
	room := signing{coretest.NewRoom("room")}
	memo := coretest.NewPlugin("memo", core.Action{Name: "save", Permission: core.PermissionEveryone,
		Do: func(context.Context, core.Call) (core.Result, error) { return core.Result{}, nil }})
	b := start(t, s, room.Room, coretest.NewAsker(`{"actions":[{"type":"save"},{"type":"wave"}]}`, plan("Kept.")), func(o *turn.Options) {
		o.Catalogue = catalogueOf(t, room, memo)
	})
	b.receive(said("1", "jay", "keep that"))
	b.ended(1)
	if in := b.input(1); !strings.Contains(in, `"save"`) || !strings.Contains(in, "no hands") {
		t.Errorf("unexpected prompt: %s", in)
	}
}

// signing is a room with an action that fails.
type signing struct{ *coretest.Room }

func (r signing) Actions() []core.Action {
	return append(r.Room.Actions(), core.Action{Name: "wave", Brief: "Wave", Permission: core.PermissionEveryone, Schema: json.RawMessage(`{"type":"object"}`),
		Do: func(context.Context, core.Call) (core.Result, error) {
			return core.Result{}, core.Errorf(core.Broken, "no hands")
		}})
}
