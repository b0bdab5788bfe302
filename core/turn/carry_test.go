package turn_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"synthbot/core"
	"synthbot/core/action"
	"synthbot/core/command"
	"synthbot/core/coretest"
	"synthbot/core/hint"
	"synthbot/core/llm"
	"synthbot/core/recon"
	"synthbot/core/turn"
)

// called returns the event of a chat command.
func called(id, author, name string, args ...string) core.Event {
	e := said(id, author, "/"+name+" "+strings.Join(args, " "))
	e.Kind, e.Command = core.KindCommand, &core.Command{Name: name, Args: args}
	return e
}

// commands returns commands that append their calls to calls.
func commands(t *testing.T, calls *[]command.Call) *command.Registry {
	t.Helper()
	do := func(_ context.Context, c command.Call) (string, error) {
		*calls = append(*calls, c)
		switch c.Args["what"] {
		case "nothing":
			return "", &core.Error{Kind: core.Invalid}
		case "fail":
			return "", errors.New("a secret of the machine")
		case "refuse":
			return "", core.Errorf(core.Invalid, "Not that.")
		case "silent":
			return "", nil
		}
		return "You said " + c.Args["what"] + ".", nil
	}
	what := []command.Arg{{Name: "what", Brief: "Anything", Required: true, Rest: true}}
	r, err := command.New([]command.Command{
		{Spec: command.Spec{Name: "echo", Brief: "Say it back", Args: what}, Do: do},
		{Spec: command.Spec{Name: "usage", Brief: "Tell what was spent", Rank: core.RankAdmin, Args: what}, Do: do},
		{Spec: command.Spec{Name: "mydata", Brief: "Show what is kept", Private: true, Args: what}, Do: do},
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestCommands(t *testing.T) {
	typed := func(id, text string) core.Event { // typed as plain text
		e := called(id, "jay", "x")
		e.Kind, e.Command, e.Message.Text = core.KindMessage, nil, text
		return e
	}
	asGroup := func(e core.Event) core.Event {
		e.Message.Path, e.Message.Private = square, false
		return e
	}
	s := open(t, t.TempDir())
	t.Cleanup(func() { s.Close() })
	var calls []command.Call
	b := start(t, s, coretest.NewRoom("room"), coretest.NewAsker(plan("What do you mean?")), func(o *turn.Options) {
		o.Plugins.Commands = commands(t, &calls)
		o.Admins = []core.Path{core.MustPath("room/@user/boss")}
	})
	open := called("8", "jay", "mydata", "x")
	open.Message.Private, open.Message.Addressed = false, ""
	stray := called("10", "jay", "usage", "x")
	stray.Message.Path, stray.Message.Private, stray.Message.Addressed = square, false, ""
	for _, c := range []struct {
		e    core.Event
		want string
	}{
		{called("1", "jay", "ECHO", "a", "b"), "You said a b."},
		{called("2", "jay", "echo"), "what is missing. Usage: `/echo what`"},
		{called("3", "jay", "echo", "fail"), "Sorry, that did not work. (E-COMMAND)"},
		{asGroup(called("3a", "jay", "echo", "x")), "You said x."},
		{called("3b", "jay", "echo", "nothing"), "Sorry, that did not work. (E-COMMAND)"},
		{called("4", "jay", "echo", "refuse"), "Not that."},
		{called("5", "jay", "echo", "silent"), "Done."},
		{called("6", "jay", "usage", "x"), "I don't know the command /usage."}, // hidden from members
		{called("6b", "jay", "mydata", "x"), "You said x."},
		{called("7", "boss", "usage", "x"), "You said x."},
		{open, "That is between us: please say /mydata to me in a private chat."},
		{called("9", "jay", "nonsense"), "I don't know the command /nonsense."},
		{called("9a", "jay", "ehco"), "I don't know the command /ehco. Did you mean /echo?"},
		{typed("9b", "/my"), "I don't know the command /my."},
		{typed("9c", "/myd x"), "I don't know the command /myd. Did you mean /mydata?"},
		{typed("9d", "/etc/hosts is a file"), "What do you mean?"},
		{asGroup(called("9e", "jay", "nonsense")), "What do you mean?"}, // may be meant for another bot
	} {
		b.receive(c.e)
		b.ended(1)
		if texts := b.room.Texts(); texts[len(texts)-1] != c.want {
			t.Errorf("%v: %q, want %q", c.e.Command, texts[len(texts)-1], c.want)
		}
	}
	b.receive(stray) // may be meant for another bot
	if end := b.ended(1)[0]; end.Turn.Seq != 0 || len(end.Messages) != 1 || end.Messages[0] != "10" {
		t.Errorf("an ignored command ended as %+v, want message 10 and no turn", end)
	}
	if n := len(b.asker.Asked()); n != 2 {
		t.Errorf("the model was asked %d times, want 2", n)
	}
	if last := calls[len(calls)-1]; last.Person != core.MustPath("room/@user/boss") || last.Author.Rank != core.RankAdmin || !last.Private {
		t.Errorf("the last call was %+v, want boss's as an admin, in private", last)
	}
}

// TestCallTellsWhatItAnswers: a call lists the messages that its turn answers, or the press that
// confirmed it, but no other waiting messages.
func TestCallTellsWhatItAnswers(t *testing.T) {
	s := open(t, t.TempDir())
	t.Cleanup(func() { s.Close() })
	room := coretest.NewRoom("room")
	tools := coretest.NewPlugin("tools", core.Action{Name: "look", Permission: core.PermissionEveryone}, core.Action{Name: "leap", Permission: core.PermissionEveryone, Confirm: true})
	b := start(t, s, room, coretest.NewAsker(`{"actions":[{"type":"look"}]}`, plan("seen"), `{"actions":[{"type":"leap"}]}`, plan("leapt")), func(o *turn.Options) {
		o.Catalogue = catalogueOf(t, room, tools)
		o.Places.Chooser = func(core.Path) core.Chooser { return room }
	})
	b.receive(said("1", "jay", "look"), said("2", "jay", "now"), said("3", "ann", "and me"))
	b.ended(2)
	asked := room.Sent()[len(room.Sent())-1]
	press := said("4", "ann", "")
	press.Kind, press.Target, press.Data = core.KindPress, asked.ID, room.Choices()[asked.ID][0].Data
	b.receive(press)
	b.ended(1)
	var got []string
	for _, c := range tools.Calls() {
		got = append(got, strings.Join(c.Answers, ","))
	}
	if strings.Join(got, " ") != "1,2 4" {
		t.Errorf("the calls answer %q, want 1,2 and 4", got)
	}
}

// TestCommandsStayOutOfPrompts: later prompts do not hold commands and their answers.
func TestCommandsStayOutOfPrompts(t *testing.T) {
	s := open(t, t.TempDir())
	t.Cleanup(func() { s.Close() })
	var calls []command.Call
	b := start(t, s, coretest.NewRoom("room"), coretest.NewAsker(plan("Hello.")), func(o *turn.Options) { o.Plugins.Commands = commands(t, &calls) })
	b.receive(called("1", "jay", "echo", "PRIVATEDATA"))
	b.ended(1)
	b.receive(said("2", "jay", "hi"))
	b.ended(1)
	if in := b.input(0); strings.Contains(in, "PRIVATEDATA") {
		t.Errorf("unexpected prompt: %s", in)
	}
}

func TestReminder(t *testing.T) {
	s := open(t, t.TempDir())
	t.Cleanup(func() { s.Close() })
	b := start(t, s, coretest.NewRoom("room"), coretest.NewAsker(plan("Time for tea!"), &llm.Error{Kind: llm.ErrorRetryLater}))
	due := said("r-1", "jay", "tea")
	due.Kind, due.Data = core.KindReminder, `{"late":"2h"}`
	b.receive(due)
	b.ended(1)
	b.receive(due)
	b.ended(1) // ends at once, as it was answered before
	if in := b.input(0); !strings.Contains(in, `"type":"event_reminder"`) || !strings.Contains(in, "late") {
		t.Errorf("unexpected prompt: %s", in)
	}
	due.Message.ID = "r-2"
	b.receive(due)
	b.ended(1)
	b.holds("Time for tea!", "⏰ tea") // the second in the user's own words, as the model failed
}

// beat returns the event of a beat, by which the bot acts on its own initiative.
func beat(id, data string) core.Event {
	return core.Event{Kind: core.KindBeat, Data: data, Message: core.Message{
		Path: square, ID: id, Text: "Look after the diary.", Time: time.Now(), Author: core.Author{Rank: core.RankBot},
	}}
}

func TestBeat(t *testing.T) {
	s := open(t, t.TempDir())
	t.Cleanup(func() { s.Close() })
	diary := coretest.NewPlugin("diary", core.Action{Name: "diary_write", Permission: core.PermissionBot}, core.Action{Name: "other", Permission: core.PermissionEveryone})
	room := coretest.NewRoom("room")
	b := start(t, s, room, coretest.NewAsker(
		`{"response":"Hello all!","actions":[{"type":"diary_write","payload":{}}]}`,
		`{"actions":[{"type":"message_room","payload":{"text":"Heard?"}},{"type":"other","payload":{}}]}`,
	), func(o *turn.Options) { o.Catalogue = catalogueOf(t, room, diary) })
	b.receive(beat("b1", `{"beat":"diary","quiet":true,"actions":["diary_*"]}`))
	b.ended(1)
	if calls := diary.Calls(); len(calls) != 1 || calls[0].Author.Rank != core.RankBot {
		t.Errorf("the calls were %+v, want one by the bot", calls)
	}
	if in := b.input(0); !strings.Contains(in, `"type":"beat"`) {
		t.Errorf("unexpected prompt: %s", in)
	}
	if sys := strings.Join(b.asker.Asked()[0].System, ""); strings.Contains(sys, "message_room") || !strings.Contains(sys, "diary_write") || strings.Contains(sys, `"other"`) {
		t.Errorf("the model was offered %s, want only diary_write", sys)
	}
	b.receive(beat("b2", `{"beat":"diary","quiet":true,"actions":["diary_*"]}`))
	b.ended(1)
	if calls := diary.Calls(); len(calls) != 1 {
		t.Errorf("an action that the beat does not allow was run: %+v", calls)
	}
	b.holds() // a quiet beat never sends a message
}

func TestBeatSpeaks(t *testing.T) {
	b := fresh(t, plan("Good morning, all."))
	b.receive(beat("b1", `{"beat":"morning"}`))
	b.ended(1)
	b.holds("Good morning, all.")
}

// biographer returns a bio for Jay and one that is too long for Ann.
type biographer struct{}

func (biographer) Bios(_ context.Context, s core.Scene, people []core.Author) (map[string]json.RawMessage, error) {
	return map[string]json.RawMessage{"jay": json.RawMessage(`{"likes":"tea"}`), "ann": json.RawMessage(`"` + strings.Repeat("x", 1000) + `"`)}, nil
}

// weather is an injector.
type weather struct{}

func (weather) Inject(context.Context, core.Scene) (json.RawMessage, error) {
	return json.RawMessage(`"sunny"`), nil
}

func TestContributions(t *testing.T) {
	s := open(t, t.TempDir())
	t.Cleanup(func() { s.Close() })
	b := start(t, s, coretest.NewRoom("room"), coretest.NewAsker(plan("Hello.")), func(o *turn.Options) {
		o.Plugins.Bios = []core.BioSource{biographer{}}
		o.Plugins.Injectors = map[string]core.Injector{"weather": weather{}}
		o.Prompt.Open = func(_ context.Context, _ core.Path, files []core.Attachment) llm.Contents {
			return llm.Contents{Texts: map[string]string{files[0].Ref: "what stands in the file"}}
		}
		o.Settings = func(core.Path) turn.Settings { return turn.Settings{Language: "it"} }
	})
	first := talk("1", "ann", "hi")
	second := talk("2", "jay", "Aria, read this")
	second.Message.Attachments = []core.Attachment{{Kind: core.MediaFile, Name: "a.txt", Ref: "ref-1"}}
	b.receive(first, second)
	b.ended(1)
	in := b.input(0)
	for _, want := range []string{`"bio":{"likes":"tea"}`, `{"username":"ann"}`, `"weather":"sunny"`, "what stands in the file", `"language":"it"`} {
		if !strings.Contains(in, want) {
			t.Errorf("the prompt lacks %s: %s", want, in)
		}
	}
	b.receive(said("1", "jay", "Now in private."))
	b.ended(1)
	if in := b.input(1); !strings.Contains(in, `"language":"it"`) {
		t.Errorf("the settings of a private place do not count: %s", in)
	}
}

// TestSees: a call sees its own place and the places that share with it. A private place sees only
// itself.
func TestSees(t *testing.T) {
	s := open(t, t.TempDir())
	t.Cleanup(func() { s.Close() })
	eye := coretest.NewPlugin("eye", core.Action{Name: "look", Permission: core.PermissionEveryone, Do: func(context.Context, core.Call) (core.Result, error) { return core.Result{}, nil }})
	room := coretest.NewRoom("room")
	b := start(t, s, room, coretest.NewAsker(`{"actions":[{"type":"look","payload":{}}]}`), func(o *turn.Options) {
		o.Catalogue = catalogueOf(t, room, eye)
		o.Prompt.Shares = []turn.Share{{Paths: []core.Path{core.MustPath("hall")}}, {Paths: []core.Path{core.MustPath("room")}}}
	})
	elsewhere := talk("0", "jay", "in another hall")
	elsewhere.Message.Path = core.MustPath("hall/1")
	b.receive(elsewhere)
	private := said("1", "jay", "Aria, between us")
	other := talk("2", "jay", "in the hall")
	other.Message.Path = core.MustPath("room/hall")
	b.receive(private)
	b.ended(1)
	b.receive(other, talk("3", "jay", "Aria!"))
	b.ended(1)
	calls := eye.Calls()
	if got := calls[0].Sees; len(got) != 1 || got[0] != place {
		t.Errorf("a private place sees %v, want only %v", got, place)
	}
	if got := calls[1].Sees; len(got) != 2 || got[0] != square || got[1] != other.Message.Path {
		t.Errorf("a shared place sees %v, want both shared places", got)
	}
}

func TestTrace(t *testing.T) {
	b := fresh(t, "no plan at all: {", plan("Hello."))
	b.receive(said("1", "jay", "hi"))
	end := b.ended(1)[0]
	if end.Trace != nil && end.Trace.Thought <= 0 {
		t.Errorf("the model thought for %s, want more than 0", end.Trace.Thought)
	}
	if end.Trace == nil || len(end.Trace.Asks) != 2 || len(end.Trace.Plans) != 1 || end.Person != core.MustPath("room/@user/jay") || !end.Private {
		t.Fatalf("the turn ended as %+v", end)
	}
	if a := end.Trace.Asks[0]; len(a.Faults) == 0 || len(a.Sections) == 0 || a.Engine != "script" {
		t.Errorf("the first question was %+v, want faults, sections and the engine", a)
	}
	if s := end.Trace.Steps; len(s) != 1 || s[0].Action != "message_room" || s[0].Progress != core.ProgressDone {
		t.Errorf("the steps were %+v, want one message that was sent", s)
	}
	if end.Trace.Asks[0].Prompt != nil {
		t.Error("the trace holds a prompt although nobody watches")
	}
	if a := end.Trace.Asks[1]; len(a.Faults) != 0 {
		t.Errorf("the second question was %+v, want no faults", a)
	}
}

// TestCommandsRunOnce: a command is not run again if its answer cannot be sent.
func TestCommandsRunOnce(t *testing.T) {
	s := open(t, t.TempDir())
	t.Cleanup(func() { s.Close() })
	var calls []command.Call
	room := coretest.NewRoom("room")
	room.Fail = func(text string) error {
		if strings.HasPrefix(text, "You said") {
			return core.Errorf(core.Broken, "gone")
		}
		return nil
	}
	b := start(t, s, room, coretest.NewAsker(plan("Hello.")), func(o *turn.Options) { o.Plugins.Commands = commands(t, &calls) })
	b.receive(called("1", "jay", "echo", "once"))
	b.ended(1)
	if len(calls) != 1 || len(b.asker.Asked()) != 0 {
		t.Errorf("%d calls and %d questions to the model, want 1 and 0", len(calls), len(b.asker.Asked()))
	}
	b.holds("Sorry, I lost my thread there. Could you say that again, maybe in other words?")
}

// TestAdminsCommandsInASleepingPlace: an admin by configuration can use admin commands in a
// sleeping place.
func TestAdminsCommandsInASleepingPlace(t *testing.T) {
	s := open(t, t.TempDir())
	t.Cleanup(func() { s.Close() })
	var calls []command.Call
	b := start(t, s, coretest.NewRoom("room"), coretest.NewAsker(plan("Hello.")), func(o *turn.Options) {
		o.Places.Asleep = func(core.Path) bool { return true }
		o.Admins = []core.Path{core.MustPath("room/@user/boss")}
		o.Plugins.Commands = commands(t, &calls)
	})
	b.receive(called("1", "boss", "usage", "x"))
	b.ended(1)
	b.holds("You said x.")
}

// TestSentElsewhere: a message that the bot sends to another place is private only if that place is
// already known to be private.
func TestSentElsewhere(t *testing.T) {
	s := open(t, t.TempDir())
	t.Cleanup(func() { s.Close() })
	room := coretest.NewRoom("room")
	snapshot := catalogueOf(t, room).With(action.Policy{Grants: []action.Grant{{From: core.MustPath("room"), To: core.MustPath("room")}}})
	b := start(t, s, room, coretest.NewAsker(
		plan("Between us."),
		`{"actions":[{"type":"message_room","payload":{"text":"News!","interface_path":"room/new"}},{"type":"message_room","payload":{"text":"Psst!","interface_path":"room/1"}}]}`,
	), func(o *turn.Options) { o.Catalogue = snapshot })
	b.Reconfigure(b.options(func(o *turn.Options) {
		o.Prompt.Persona = func(place core.Path, _ string) core.Persona { return core.Persona{Name: "Aria of " + place.String()} }
	}))
	b.receive(said("1", "jay", "a private word"))
	b.ended(1)
	b.receive(talk("2", "ann", "Aria, tell the others"))
	b.ended(1)
	for path, want := range map[string]bool{"room/new": false, "room/1": true} {
		err := s.View(t.Context(), func(v core.View) error {
			last, err := v.Last(core.MustPath(path), 1)
			if len(last) != 1 || last[0].Message.Author.Name != "Aria of "+path || !last[0].Self || last[0].Message.Private != want {
				t.Errorf("%s holds %+v, want the bot's message with private %v", path, last, want)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// injector is an injector made of a function.
type injector func(context.Context) (json.RawMessage, error)

func (i injector) Inject(ctx context.Context, _ core.Scene) (json.RawMessage, error) { return i(ctx) }

// TestBadContributions: contributions that are late, broken, panicking or too long are left out of
// the prompt and do not delay the turn.
func TestBadContributions(t *testing.T) {
	s := open(t, t.TempDir())
	t.Cleanup(func() { s.Close() })
	never := make(chan struct{})
	t.Cleanup(func() { close(never) })
	says := func(text string) injector {
		return func(context.Context) (json.RawMessage, error) { return json.RawMessage(text), nil }
	}
	b := start(t, s, coretest.NewRoom("room"), coretest.NewAsker(plan("Hello.")), func(o *turn.Options) {
		o.Plugins.Injectors = map[string]core.Injector{
			"good":   says(`"sunny"`),
			"late":   injector(func(context.Context) (json.RawMessage, error) { <-never; return json.RawMessage(`1`), nil }),
			"broken": injector(func(context.Context) (json.RawMessage, error) { return json.RawMessage(`2`), errors.New("no") }),
			"panics": injector(func(context.Context) (json.RawMessage, error) { panic("no") }),
			"most":   says(`"` + strings.Repeat("x", 1998) + `"`),
			"large":  says(`"` + strings.Repeat("x", 1999) + `"`),
			"wrong":  says(`{`),
			"empty":  says(""),
		}
	})
	b.receive(said("1", "jay", "hi"))
	b.ended(1) // although one injector never returns
	in := b.input(0)
	for name, want := range map[string]bool{"good": true, "most": true, "late": false, "broken": false, "panics": false, "large": false, "wrong": false, "empty": false} {
		if strings.Contains(in, `"`+name+`":`) != want {
			t.Errorf("%s is in the prompt: got %v, want %v", name, !want, want)
		}
	}
}

// TestBeatsAreBound: a beat has no follow-up turn, its prompt holds no overheard messages, and the
// bot does not report what a beat did.
func TestBeatsAreBound(t *testing.T) {
	save := coretest.NewPlugin("memo", core.Action{Name: "save", Permission: core.PermissionEveryone,
		Do: func(context.Context, core.Call) (core.Result, error) { return core.Result{}, nil }})
	b := withPlugin(t, save, `{"actions":[{"type":"save","payload":{}},{"type":"CONTINUE"}]}`)
	b.receive(beat("b1", `{"beat":"diary","actions":["save"]}`))
	if end := b.ended(1)[0]; end.GoesOn != "" {
		t.Errorf("the turn ended as %+v, want no follow-up", end)
	}
	if in := b.input(0); len(b.asker.Asked()) != 1 || strings.Contains(in, "overheard") {
		t.Errorf("the model was asked %d times, want once without overheard messages: %s", len(b.asker.Asked()), in)
	}
	b.holds()
}

// TestSceneTellsWhatIsSaid: the scene that plugins get holds all texts that the turn answers and
// their author.
func TestSceneTellsWhatIsSaid(t *testing.T) {
	s := open(t, t.TempDir())
	defer s.Close()
	scenes := make(chan core.Scene, 10)
	b := start(t, s, coretest.NewRoom("room"), coretest.NewAsker(plan("ok")), func(o *turn.Options) { o.Plugins.Recons = []hint.Source{scout(scenes)} })
	b.receive(said("1", "jay", "one"), said("2", "jay", ""), said("3", "jay", "two"))
	b.ended(1)
	if s := <-scenes; s.Text != "one\ntwo" || s.Author.ID != "jay" || !s.Private || s.Path != place {
		t.Errorf("the scene was %+v, want both texts and jay", s)
	}
}

// scout is a hint source that records the scenes it gets.
type scout chan core.Scene

func (s scout) Recon(_ context.Context, scene core.Scene) ([]hint.Hint, error) {
	s <- scene
	return nil, nil
}

// lingering is an injector that may still hold the scene when the turn has ended.
type lingering struct {
	scenes chan core.Scene
	goOn   chan struct{}
}

func (l lingering) Inject(ctx context.Context, s core.Scene) (json.RawMessage, error) {
	l.scenes <- s
	<-l.goOn
	return nil, nil
}

// TestHistoryIsLent: a turn's history slice is cleared and reused, unless a late plugin may still
// read it.
func TestHistoryIsLent(t *testing.T) {
	for _, late := range []bool{false, true} {
		s := open(t, t.TempDir())
		defer s.Close()
		l := lingering{make(chan core.Scene, 10), make(chan struct{})}
		if !late {
			close(l.goOn)
		}
		b := start(t, s, coretest.NewRoom("room"), coretest.NewAsker(plan("ok")), func(o *turn.Options) {
			o.Plugins.Injectors = map[string]core.Injector{"lingering": l}
		})
		for i := range 3 {
			b.receive(said(fmt.Sprint(i), "jay", "knock knock"))
			b.ended(1)
		}
		b.stop()
		<-l.scenes
		kept := (<-l.scenes).Recent
		if len(kept) != 2 || (kept[0].Message.Text == "knock knock" && kept[1].Message.Text == "ok") != late {
			t.Errorf("late %v: the plugin reads %+v, want the history intact: %[1]v", late, kept)
		}
		if late {
			close(l.goOn)
		}
	}
}

// slowAsker is a model that takes 20 seconds.
type slowAsker struct{}

func (slowAsker) Ask(ctx context.Context, _ core.Question) (llm.Answer, error) {
	select {
	case <-time.After(20 * time.Second):
		return llm.Answer{Text: `{"conversation_tone":"playful","message_tone":"sad"}`}, nil
	case <-ctx.Done():
		return llm.Answer{}, ctx.Err()
	}
}

// TestSlowRecon: what a slow hint source finds is in the next prompt. Its delay is not logged.
func TestSlowRecon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, t.TempDir())
		defer s.Close()
		var log bytes.Buffer
		small := recon.NewSmall(slowAsker{})
		go small.Run(t.Context())
		synctest.Wait()
		b := start(t, s, coretest.NewRoom("room"), coretest.NewAsker(plan("ok")), func(o *turn.Options) {
			o.Plugins.Recons = []hint.Source{small}
			o.Log = slog.New(slog.NewTextHandler(&log, nil))
		})
		defer b.stop()
		for i, want := range []bool{false, true} {
			b.receive(said(fmt.Sprint(i), "jay", "knock knock"))
			b.ended(1)
			if in := b.input(i); strings.Contains(in, "playful") != want || strings.Contains(in, "sad") {
				t.Errorf("message %d: the prompt has the hint: got %v, want %v: %s", i, !want, want, in)
			}
			time.Sleep(30 * time.Second)
		}
		if strings.Contains(log.String(), "late") {
			t.Error(log.String())
		}
	})
}

// TestLateReminders: a reminder that is at least two minutes late says so.
func TestLateReminders(t *testing.T) {
	for waited, late := range map[time.Duration]bool{2*time.Minute - time.Second: false, 2 * time.Minute: true} {
		for _, mute := range []bool{false, true} {
			b, c := group(t, turn.Settings{}, plan("Tea!"))
			if mute {
				b, c = group(t, turn.Settings{}, &llm.Error{Kind: llm.ErrorRetryLater})
			}
			due := said("r", "jay", "tea")
			due.Kind, due.Message.Time = core.KindReminder, c.Now().Add(-waited)
			b.receive(due)
			b.ended(1)
			if in := b.input(0); strings.Contains(in, "comes late") != late {
				t.Errorf("after %s the prompt is %s, want it late: %v", waited, in, late)
			}
			if text := b.room.Texts()[0]; mute && strings.Contains(text, "late by 2 minutes") != late {
				t.Errorf("after %s the bot says %s, want it late: %v", waited, text, late)
			}
		}
	}
}

// TestLateTwice: a reminder that was late when it was received, and then waited, says its whole delay once.
func TestLateTwice(t *testing.T) {
	b, c := group(t, turn.Settings{}, &llm.Error{Kind: llm.ErrorRetryLater})
	due := said("r", "jay", "tea (at 5) (late by 8h 30m)")
	due.Kind, due.Message.Time, due.Data = core.KindReminder, c.Now().Add(-90*time.Minute), `{"late_seconds":30600}`
	b.receive(due)
	b.ended(1)
	if in := b.input(0); !strings.Contains(in, "that was 10 hours ago") {
		t.Errorf("the prompt is %s, want the whole delay", in)
	}
	if text := b.room.Texts()[0]; text != "⏰ tea (at 5) (late by 10 hours)" {
		t.Errorf("the bot says %q, want the whole delay once", text)
	}
}

// TestPreviewIsPrivateInPrivate: the preview of a private place's prompt holds nothing of other
// places, and other previews nothing of it.
func TestPreviewIsPrivateInPrivate(t *testing.T) {
	s := open(t, t.TempDir())
	defer s.Close()
	b := start(t, s, coretest.NewRoom("room"), coretest.NewAsker(plan("ok")), func(o *turn.Options) {
		o.Config.Recent = 10
		setScope(o, "unified")
		o.Prompt.Shares = []turn.Share{{Paths: []core.Path{core.MustPath("room")}}}
	})
	b.receive(said("1", "jay", "a private word"))
	b.ended(1)
	b.receive(talk("2", "ann", "Aria, news"))
	b.ended(1)
	for path, shared := range map[string]bool{"room/1": false, "room/5": true} {
		p, err := b.Preview(t.Context(), core.Message{Path: core.MustPath(path), ID: "9", Text: "what is new?", Time: time.Now(), Author: core.Author{ID: "jay"}}, llm.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		text := p.Request().Messages[0].Text
		if system := strings.Join(p.Request().System, ""); !strings.Contains(system, "message_room") {
			t.Errorf("the preview does not offer message_room: %s", system)
		}
		if strings.Count(text, "a private word") != map[string]int{"room/1": 1}[path] || strings.Count(text, "what is new?") != 1 {
			t.Errorf("the preview of %s is %s", path, text)
		}
		if strings.Contains(text, "Aria, news") != shared || path != "room/1" && strings.Contains(text, "private word") {
			t.Errorf("the preview of %s is %s", path, text)
		}
	}
}

// tardy is an injector that takes longer than a turn waits.
type tardy struct{}

func (tardy) Inject(ctx context.Context, _ core.Scene) (json.RawMessage, error) {
	select {
	case <-time.After(time.Second):
	case <-ctx.Done():
	}
	return json.RawMessage(`"it rains"`), ctx.Err()
}

// TestPreviewIsWhole: a preview waits for slow plugins that a turn would leave out.
func TestPreviewIsWhole(t *testing.T) {
	s := open(t, t.TempDir())
	defer s.Close()
	b := start(t, s, coretest.NewRoom("room"), coretest.NewAsker(plan("ok")), func(o *turn.Options) {
		o.Plugins.Injectors = map[string]core.Injector{"weather": tardy{}}
	})
	p, err := b.Preview(t.Context(), said("1", "jay", "hi").Message, llm.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if text := p.Request().Messages[0].Text; !strings.Contains(text, "it rains") {
		t.Errorf("the preview lacks the slow injector's text: %s", text)
	}
}

// TestFilesOfCommands: a command's files are sent before its text. The text says which could not be
// sent.
func TestFilesOfCommands(t *testing.T) {
	full := errors.New("no room")
	for name, tc := range map[string]struct {
		carrier func(*carrier) core.FileSender
		want    string
		files   int
	}{
		"sent":      {func(c *carrier) core.FileSender { return c }, "Here.", 2},
		"no sender": {nil, "Here.\n\nI cannot send files here.", 0},
		"refused":   {func(*carrier) core.FileSender { return failing{core.Errorf(core.Broken, "It is too large.")} }, "Here.\n\nIt is too large.", 0},
		"internal":  {func(*carrier) core.FileSender { return failing{full} }, "Here.\n\nSorry, that did not work. (E-COMMAND)", 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, t.TempDir())
			t.Cleanup(func() { s.Close() })
			files := &carrier{}
			room := coretest.NewRoom("room")
			b := start(t, s, room, coretest.NewAsker(), func(o *turn.Options) {
				o.Plugins.Commands = registry(t, map[string]commandFunc{"export": func(_ context.Context, c call) (string, error) {
					c.Attach(core.Upload{Name: "a"})
					c.Attach(core.Upload{Name: "b"})
					return "Here.", nil
				}})
				if tc.carrier != nil {
					o.Places.Carrier = func(core.Path) core.FileSender { return tc.carrier(files) }
				}
			})
			b.receive(called("1", "jay", "export"))
			b.ended(1)
			if texts := strings.Join(room.Texts(), "|"); texts != strings.ReplaceAll(tc.want, "\n", "|") || len(files.files) != tc.files {
				t.Errorf("%d files and texts %q, want %d and %q", len(files.files), texts, tc.files, tc.want)
			}
		})
	}
}

// failing is a file sender that always fails.
type failing struct{ err error }

func (f failing) SendFile(context.Context, core.Deliveries, int, core.Sent, core.Upload) error {
	return f.err
}

// TestThinkingIsShownToPeople: the typing indicator is shown where the interface has one, but not
// for quiet beats.
func TestThinkingIsShownToPeople(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, t.TempDir())
		defer s.Close()
		shown := 0
		var log strings.Builder
		b := start(t, s, coretest.NewRoom("room"), pondering(time.Second), func(o *turn.Options) {
			o.Config.Attempts = 0
			o.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelError}))
			o.Places.Typing = func(p core.Path) core.TypingIndicator {
				if p != place {
					return nil
				}
				return shower(func() { shown++ })
			}
		})
		defer b.stop()
		elsewhere, quiet := said("2", "jay", "hello"), beat("b1", `{"beat":"diary","quiet":true}`)
		elsewhere.Message.Path, quiet.Message.Path = square, place
		for _, e := range []core.Event{said("1", "jay", "hello"), elsewhere, quiet} {
			b.receive(e)
			if asks := b.ended(1)[0].Trace.Asks; len(asks) != 1 {
				t.Errorf("the model was asked %+v, want once", asks)
			}
		}
		if shown != 1 || log.Len() > 0 {
			t.Errorf("typing was shown %d times, want once; log: %s", shown, &log)
		}
	})
}

// shower is a typing indicator that calls itself.
type shower func()

func (s shower) ShowTyping(ctx context.Context, _ core.Path) { s(); <-ctx.Done() }

// TestInjectorsFail: an injector that failed is asked again in the next turn; bios that are too
// long are left out.
func TestInjectorsFail(t *testing.T) {
	s := open(t, t.TempDir())
	defer s.Close()
	flaky := &flakyInjector{}
	b := start(t, s, coretest.NewRoom("room"), coretest.NewAsker(plan("Hello.")), func(o *turn.Options) {
		o.Plugins.Injectors = map[string]core.Injector{"weather": flaky}
		o.Plugins.Bios = []core.BioSource{bioLengths{"jay": 400, "ann": 401}}
	})
	for i, who := range []string{"jay", "jay", "jay", "ann"} {
		b.receive(said(fmt.Sprint(i), who, "hi"))
		b.ended(1)
	}
	for i, want := range []bool{false, true, true, true} {
		if in := b.input(i); strings.Contains(in, `"weather":"sunny"`) != want {
			t.Errorf("turn %d: the prompt has the weather: got %v, want %v: %s", i, !want, want, in)
		}
	}
	if in := b.input(3); !strings.Contains(in, strings.Repeat("x", 398)) || strings.Contains(in, strings.Repeat("x", 399)) {
		t.Errorf("the prompt should hold only the shorter bio: %s", in)
	}
}

// flakyInjector fails the first time.
type flakyInjector struct{ asked int }

func (f *flakyInjector) Inject(context.Context, core.Scene) (json.RawMessage, error) {
	if f.asked++; f.asked == 1 {
		return nil, errors.New("no")
	}
	return json.RawMessage(`"sunny"`), nil
}

// bioLengths is a source of bios with a length for each user.
type bioLengths map[string]int

func (l bioLengths) Bios(context.Context, core.Scene, []core.Author) (map[string]json.RawMessage, error) {
	bios := make(map[string]json.RawMessage)
	for id, n := range l {
		bios[id] = json.RawMessage(`"` + strings.Repeat("x", n-2) + `"`)
	}
	return bios, nil
}

// TestPeopleAreToldOnce: a user with several messages is listed once among the participants.
func TestPeopleAreToldOnce(t *testing.T) {
	b, _ := group(t, turn.Settings{}, plan("ok"))
	b.receive(talk("1", "jay", "one"), talk("2", "ann", "two"), talk("3", "jay", "Aria?"))
	b.ended(1)
	if in := b.input(0); strings.Count(in, `{"username":"jay"}`) != 1 || strings.Count(in, `{"username":"ann"}`) != 1 {
		t.Errorf("unexpected prompt: %s", in)
	}
}

// TestSilentBeatsStaySilent: after a beat whose action ran without text, the model is not asked to
// report it.
func TestSilentBeatsStaySilent(t *testing.T) {
	diary := coretest.NewPlugin("diary", core.Action{Name: "diary_write", Permission: core.PermissionBot,
		Do: func(context.Context, core.Call) (core.Result, error) { return core.Result{}, nil }})
	b := withPlugin(t, diary, `{"actions":[{"type":"diary_write","payload":{}}]}`)
	b.receive(beat("b1", `{"beat":"diary","actions":["diary_*"]}`))
	b.ended(1)
	if n := len(b.asker.Asked()); n != 1 || len(diary.Calls()) != 1 {
		t.Errorf("the model was asked %d times with %d calls, want 1 and 1", n, len(diary.Calls()))
	}
	b.holds()
}
